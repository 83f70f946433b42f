//! What the worker does to be fast, and what it must not cost: claims ahead of need, ends in batches,
//! several sessions, a mark in the due order.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;
#[path = "support/work.rs"]
mod work;

use std::sync::Arc;
use std::time::Duration;

use pgwake::config;
use pgwake::ledger::Job;
use pgwake::model::WorkerEvent;
use pgwake::worker::Setup;
use support::{DEADLINE, wait_until};
use tokio::sync::Semaphore;
use work::{Bench, Do, Effects, Running, settings};

fn open(batch: usize, sessions: usize) -> config::Worker {
    config::Worker { batch, concurrency: 2 * batch, sessions, ..settings() }
}

#[tokio::test]
async fn thousands_of_jobs_are_done_each_once_with_and_without_history_on_one_session_and_on_four() {
    for (sessions, keep) in [(1, None), (4, None), (1, Some(Duration::ZERO)), (4, Some(Duration::ZERO))] {
        let bench = Bench::new().await;
        bench.insert(5000).await;
        let effects = Effects::default();
        let s = config::Worker { keep, ..open(100, sessions) };
        let setup = Setup { until_empty: true, ..bench.setup(s) };
        let summary = Running::start(setup, effects.handler()).task.await.unwrap().unwrap();
        assert_eq!((summary.done, summary.lost, summary.given_back, summary.unrecorded), (5000, 0, 0, 0));
        effects.assert_each_once(5000);
        let done = "select count(*) from pgwake.jobs where status = 'done' and attempts = 1";
        assert_eq!(bench.number(done).await, if keep.is_none() { 5000 } else { 0 }, "{sessions} {keep:?}");
        let rest = "select count(*) from pgwake.jobs where status <> 'done'";
        assert_eq!(bench.number(rest).await, 0);
    }
}

/// Ends at once up to job `quick`; later jobs wait for a permit.
fn gated(effects: &Effects, quick: i64, gate: &Arc<Semaphore>) -> impl pgwake::worker::Handler + use<> {
    let (effects, gate) = (effects.clone(), gate.clone());
    Do(move |job: Job| {
        effects.add(job.id.clone());
        let gate = gate.clone();
        async move {
            if job.id.parse::<i64>().unwrap() > quick {
                gate.acquire().await.unwrap().forget();
            }
            Ok(())
        }
    })
}

#[tokio::test]
async fn on_stop_every_end_is_recorded_and_what_was_claimed_ahead_goes_back_uncounted() {
    let bench = Bench::new().await;
    bench.insert(100).await;
    let (effects, gate) = (Effects::default(), Arc::new(Semaphore::new(0)));
    let s = config::Worker { batch: 10, concurrency: 5, grace: Duration::from_secs(1), ..settings() };
    let worker = Running::start(bench.setup(s), gated(&effects, 60, &gate));
    let ahead = "select count(*) from pgwake.jobs where status = 'running'";
    wait_until("jobs are claimed ahead", DEADLINE, async || (bench.number(ahead).await > 5).then_some(()))
        .await;
    wait_until("five are at work", DEADLINE, async || (effects.len() == 65).then_some(())).await;
    bench.until_done(60).await;
    let held = bench.number(ahead).await;
    // Two of the five end while it stops.
    gate.add_permits(2);
    let summary = worker.stop().await;
    assert_eq!((summary.done, summary.lost, summary.unrecorded), (62, 0, 0));
    assert_eq!(summary.given_back as i64, held - 2, "{held} were held");
    assert_eq!(bench.number("select count(*) from pgwake.jobs where status = 'done'").await, 62);
    assert_eq!(bench.number("select count(*) from pgwake.jobs where status = 'ready'").await, 38);
    assert_eq!(effects.len(), 65, "none of those that waited was begun");
    let counted = "select count(*) from pgwake.jobs where status = 'ready' and attempts > 0";
    assert_eq!(bench.number(counted).await, 3, "only those that were begun");
}

#[tokio::test]
async fn a_lease_is_kept_while_its_job_waits_behind_slow_ones() {
    let bench = Bench::new().await;
    bench.insert(60).await;
    let effects = Effects::default();
    let ran = effects.clone();
    let handler = Do(move |job: Job| {
        ran.add(job.id.clone());
        async move {
            if job.id.parse::<i64>().unwrap() > 52 {
                tokio::time::sleep(Duration::from_millis(1500)).await;
            }
            Ok(())
        }
    });
    let lease = Duration::from_secs(1);
    let s = config::Worker { batch: 10, concurrency: 2, lease, ..settings() };
    let worker = Running::start(bench.setup(s), handler);
    let waiting = "select count(*) from pgwake.jobs where status = 'running'";
    wait_until("some wait", DEADLINE, async || (bench.number(waiting).await > 4).then_some(())).await;
    bench.until_done(60).await;
    effects.assert_each_once(60);
    assert_eq!(bench.number("select max(attempts) from pgwake.jobs").await, 1);
    assert_eq!(worker.stop().await.lost, 0);
}

#[tokio::test]
async fn sessions_that_are_lost_with_ends_under_way_cost_no_end_and_no_second_run() {
    let bench = Bench::new().await;
    bench.insert(3000).await;
    let effects = Effects::default();
    let worker = Running::start(bench.setup(open(10, 2)), effects.handler());
    for _ in 0..5 {
        let before = effects.len();
        wait_until("it goes on", DEADLINE, async || (effects.len() > before.min(2900)).then_some(())).await;
        for pid in bench.pids("work").await {
            bench.terminate(pid).await;
        }
    }
    // A claim whose answer was lost is nobody's until its lease ends; everything else is done, once.
    let rest = "select count(*) from pgwake.jobs where status = 'ready'";
    bench.until(0, "nothing is ready", rest).await;
    wait_until("all that ran is recorded", DEADLINE, async || {
        let done = bench.number("select count(*) from pgwake.jobs where status = 'done'").await;
        (usize::try_from(done).unwrap() == effects.len()).then_some(())
    })
    .await;
    let all = effects.all();
    let mut once = all.clone();
    once.dedup();
    assert_eq!(once.len(), all.len(), "none ran twice");
    assert_eq!(worker.stop().await.lost, 0);
}

#[tokio::test]
async fn from_the_mark_a_late_commit_is_found_within_the_slack_and_otherwise_by_the_fallback_scan() {
    let bench = Bench::new().await;
    // One drain that goes on: the first claim is from the head, the next ones from the mark.
    bench.run("insert into pgwake.jobs (job_type, run_at) select 'old', now() - interval '1 minute' from generate_series(1, 2)").await;
    let (effects, gate) = (Effects::default(), Arc::new(Semaphore::new(0)));
    let fallback = Duration::from_secs(15);
    let s = config::Worker { batch: 1, concurrency: 1, fallback, ..settings() };
    let worker = bench.start(config::Worker { eager: true, ..s }, gated(&effects, 2, &gate)).await;
    bench.until_counter("found_startup", 2).await;
    bench.enqueue(20).await;
    wait_until("the first of them is at work", DEADLINE, async || (effects.len() == 3).then_some(())).await;
    // Committed now, due before what was claimed: a second, and an hour.
    bench
        .run(
            "insert into pgwake.jobs (job_type, run_at, created_at) values
             ('late', (select min(run_at) from pgwake.jobs where status <> 'done') - interval '1 s', now() - interval '2 h'),
             ('very late', now() - interval '1 h', now() - interval '2 h')",
        )
        .await;
    gate.add_permits(21);
    bench
        .until(
            1,
            "the late one is done",
            "select count(*) from pgwake.jobs where job_type = 'late' and status = 'done'",
        )
        .await;
    let drained = |e: &WorkerEvent| matches!(e, WorkerEvent::Drained { reason, jobs: 21, .. } if *reason == pgwake::model::ScanReason::Notify);
    worker.until("the drain ends without the very late one", drained).await;
    gate.add_permits(1);
    bench.until_done(24).await;
    bench.until_counter("found_notify", 21).await;
    bench.until_counter("found_fallback", 1).await;
}
