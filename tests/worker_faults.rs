//! The drain worker when things break under it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;
#[path = "support/work.rs"]
mod work;

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pgwake::config;
use pgwake::demo::{Halt, Options, Server};
use pgwake::ledger::Job;
use pgwake::model::{BudgetState, ScanReason, WorkerEvent};
use pgwake::worker::Setup;
use support::{DEADLINE, connect, wait_until};
use tokio::sync::Notify;
use work::{Bench, Do, Effects, Running, busy, settings};

fn own_server(settings: &[(&str, &str)]) -> Server {
    let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Server::start(Options { settings, ..Options::default() }).unwrap()
}

#[tokio::test]
async fn a_session_lost_between_the_work_and_its_record_costs_no_second_run() {
    let bench = Bench::new().await;
    bench.insert(1).await;
    let effects = Effects::default();
    let (ran, conninfo) = (effects.clone(), bench.db.conninfo().to_owned());
    let cut_off = Do(move |job: Job| {
        ran.add(job.id);
        // The last thing that the work does is to end the session that would record it. On a thread that
        // is waited for, so that the worker learns of both ends at the same moment.
        let conninfo = conninfo.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let sql = "select pg_terminate_backend(pid, 5000) from pg_stat_activity \
                       where datname = current_database() and application_name like '%/work w'";
            runtime.block_on(async { connect(&conninfo).await.batch_execute(sql).await.unwrap() });
        })
        .join()
        .unwrap();
        std::future::ready(Ok(()))
    });
    let worker = bench.start(settings(), cut_off).await;
    bench.until_done(1).await;
    assert_eq!(bench.number("select attempts from pgwake.jobs").await, 1);
    let summary = worker.stop().await;
    assert_eq!((summary.done, summary.lost), (1, 0));
    effects.assert_each_once(1);
}

#[tokio::test]
async fn a_listener_killed_twenty_times_is_counted_and_the_next_wakeup_works() {
    let bench = Bench::new().await;
    let effects = Effects::default();
    let _worker = bench.start(settings(), effects.handler()).await;
    let mut last = 0;
    for _ in 0..20 {
        last =
            wait_until("a new listen session", DEADLINE, async || match bench.pids("listen").await[..] {
                [pid] if pid != last => Some(pid),
                _ => None,
            })
            .await;
        // It has lived for a while: sessions that end as they begin are opened with growing pauses.
        tokio::time::sleep(Duration::from_millis(550)).await;
        bench.terminate(last).await;
    }
    wait_until("it listens again", DEADLINE, async || match bench.pids("listen").await[..] {
        [pid] if pid != last => Some(()),
        _ => None,
    })
    .await;
    wait_until("the losses are counted", DEADLINE, async || {
        (bench.counter("reconnects").await >= 19).then_some(())
    })
    .await;
    bench.enqueue(1).await;
    bench.until_done(1).await;
    bench.until_counter("found_notify", 1).await;
    let n = bench.counter("reconnects").await;
    assert!((19..=21).contains(&n), "{n} losses");
    let p95 = bench.text("select coalesce(recovery_p95_ms, -1) from pgwake.workers").await;
    assert!(p95.parse::<f64>().unwrap() > 0.0, "recovery is timed");
}

#[tokio::test]
async fn a_server_that_is_away_for_a_while_is_one_loss_and_costs_no_second_run() {
    let mut server = own_server(&[]);
    let bench = Bench::on(&server).await;
    bench.insert(2).await;
    let (effects, gate) = (Effects::default(), Arc::new(Notify::new()));
    let (ran, open) = (effects.clone(), gate.clone());
    let waiting = Do(move |job: Job| {
        ran.add(job.id);
        let open = open.clone();
        async move {
            open.notified().await;
            Ok(())
        }
    });
    let worker = Running::start(bench.setup(settings()), waiting);
    wait_until("two are in hand", DEADLINE, async || (effects.len() == 2).then_some(())).await;
    server.stop_only(Halt::Immediate).unwrap();
    wait_until("it has tried to come back", DEADLINE, async || {
        use pgwake::model::{Event, Listen};
        let events = worker.events.lock().unwrap();
        events.iter().any(|e| matches!(e, Event::Listen(Listen::Retry { attempt: 3.., .. }))).then_some(())
    })
    .await;
    gate.notify_waiters();
    server.start_again().unwrap();
    let bench = Bench { sql: bench.db.connect().await, ..bench };
    bench.until_done(2).await;
    bench.until_counter("reconnects", 1).await;
    worker.until("it has recovered", |e| matches!(e, WorkerEvent::Recovered(_))).await;
    assert_eq!(bench.number("select max(attempts) from pgwake.jobs").await, 1);
    effects.assert_each_once(2);
}

#[tokio::test]
async fn a_stop_while_the_server_is_away_ends_with_the_grace_time_and_without_spinning() {
    let mut server = own_server(&[]);
    let bench = Bench::on(&server).await;
    bench.insert(1).await;
    let (effects, gate) = (Effects::default(), Arc::new(Notify::new()));
    let (ran, open) = (effects.clone(), gate.clone());
    let waiting = Do(move |job: Job| {
        let (ran, open) = (ran.clone(), open.clone());
        async move {
            ran.add(job.id);
            open.notified().await;
            ran.add("ended");
            Ok(())
        }
    });
    let grace = Duration::from_secs(2);
    let worker = Running::start(bench.setup(config::Worker { grace, ..settings() }), waiting);
    wait_until("it is in hand", DEADLINE, async || (effects.len() == 1).then_some(())).await;
    server.stop_only(Halt::Immediate).unwrap();
    gate.notify_waiters();
    wait_until("the work is done", DEADLINE, async || (effects.len() == 2).then_some(())).await;
    let (began, spent) = (Instant::now(), busy());
    let summary = worker.stop().await;
    let spent = busy() - spent;
    assert!(began.elapsed() < grace + Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(spent < Duration::from_millis(500), "{spent:?} of processor time for waiting");
    assert_eq!((summary.done, summary.given_back), (0, 0), "what was not recorded is not claimed to be");
}

#[tokio::test]
async fn a_database_that_turned_read_only_is_not_hammered_and_is_used_again_afterwards() {
    let bench = Bench::new().await;
    let effects = Effects::default();
    let worker = bench.start(settings(), effects.handler()).await;
    let alter =
        |on: &str| format!("alter database {} set default_transaction_read_only = {on}", bench.db.name);
    bench.run(&alter("on")).await;
    bench.terminate(bench.pids("work").await[0]).await;
    bench.enqueue(1).await;
    let refused = |e: &WorkerEvent| matches!(e, WorkerEvent::ClaimFailed { loss, .. } if loss.sqlstate.as_deref() == Some("25006"));
    let began = Instant::now();
    wait_until("it has been refused for a while", DEADLINE, async || {
        (worker.count(refused) >= 3 && began.elapsed() > Duration::from_secs(1)).then_some(())
    })
    .await;
    let tries = worker.count(refused);
    assert!(tries <= 10, "{tries} tries in {:?}", began.elapsed());
    // As superuser of a session that is not read-only yet.
    bench.run(&alter("off")).await;
    bench.until_done(1).await;
    effects.assert_each_once(1);
}

#[tokio::test]
async fn after_a_deadlock_it_claims_again_soon_and_not_at_the_next_fallback_scan() {
    let bench = Bench::new().await;
    let effects = Effects::default();
    // A heartbeat would wake it.
    let s = config::Worker { heartbeat: Duration::from_secs(8), ..settings() };
    let worker = bench.start(s, effects.handler()).await;
    bench
        .run(
            "create function trip() returns trigger language plpgsql as $$ begin \
               raise exception 'deadlock detected' using errcode = '40P01'; end $$; \
             create trigger trip before update on pgwake.jobs for each row execute function trip()",
        )
        .await;
    bench.enqueue(5).await;
    worker.until("a failed claim", |e| matches!(e, WorkerEvent::ClaimFailed { .. })).await;
    bench.run("drop trigger trip on pgwake.jobs").await;
    let again = Instant::now();
    bench.until_done(5).await;
    assert!(again.elapsed() < Duration::from_secs(4), "{:?}", again.elapsed());
    effects.assert_each_once(5);
    let found =
        |e: &WorkerEvent| matches!(e, WorkerEvent::Drained { reason: ScanReason::Notify, jobs: 5, .. });
    worker.until("it still knows why it looked", found).await;
}

#[tokio::test]
async fn a_spent_budget_waits_under_load_and_is_renewed_at_once_without() {
    let server = own_server(&[("max_connections", "20")]);
    let bench = Bench::on(&server).await;
    let mut crowd = Vec::new();
    for _ in 0..15 {
        crowd.push(connect(bench.db.conninfo()).await);
    }
    bench.insert(60).await;
    let s = config::Worker { budget: Some(20), budget_window: Duration::from_secs(3), ..settings() };
    let effects = Effects::default();
    let worker = Running::start(bench.setup(s), effects.handler());
    let waiting = |e: &WorkerEvent| matches!(e, WorkerEvent::Budget { state: BudgetState::Waiting, why } if why.contains("connections in use"));
    worker.until("it waits", waiting).await;
    bench.until_done(20).await;
    bench.until(1, "it says so", "select count(*) from pgwake.workers where budget = 'waiting'").await;
    bench.until_done(40).await;
    let pause = "select extract(epoch from max(finished_at) - min(finished_at)) * 1000 from pgwake.jobs";
    let pause = bench.number(pause).await;
    assert!((2000..6000).contains(&pause), "the window was waited for: {pause} ms");
    drop(crowd);
    // On a busy machine claims may be slow, which is load, too: more work until a calm moment.
    wait_until("it is renewed", DEADLINE, async || {
        bench.insert(20).await;
        bench.run("notify pgwake_work, 'ready'").await;
        let renewed =
            |e: &WorkerEvent| matches!(e, WorkerEvent::Budget { state: BudgetState::Renewed, .. });
        (worker.count(renewed) > 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn draining_a_thousand_jobs_sends_no_notification() {
    let server = own_server(&[("log_statement", "all")]);
    let bench = Bench::on(&server).await;
    bench.insert(1000).await;
    let before = fs::metadata(server.log_path()).unwrap().len() as usize;
    let effects = Effects::default();
    let setup = Setup {
        until_empty: true,
        ..bench.setup(config::Worker { batch: 100, concurrency: 100, ..settings() })
    };
    let summary = Running::start(setup, effects.handler()).task.await.unwrap().unwrap();
    assert_eq!(summary.done, 1000);
    effects.assert_each_once(1000);
    let log = fs::read_to_string(server.log_path()).unwrap()[before..].to_lowercase();
    assert!(log.contains("skip locked") && log.contains("listen \"pgwake_work\""), "statements are logged");
    let sent: Vec<&str> =
        log.lines().filter(|l| l.contains("pg_notify") || l.contains(": notify")).collect();
    assert!(sent.is_empty(), "{sent:?}");
    // Ends are recorded in batches, not one by one.
    let records = log.matches("finished_at = now()").count();
    assert!(records <= 200, "{records} statements for 1000 jobs");
}
