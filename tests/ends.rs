//! How jobs end that do not just end: put off again and again, or refused by the table itself.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;
#[path = "support/work.rs"]
mod work;

use std::time::Duration;

use pgwake::config;
use pgwake::ledger::{Failure, Job};
use pgwake::worker::HandlerError;
use support::ledger::{LONG, PLAIN, ask, claim_one, open, run, session};
use support::{DEADLINE, database, wait_until};
use work::{Bench, Do, settings};

fn busy() -> Do<impl Fn(Job) -> std::future::Ready<Result<(), HandlerError>> + Send + Sync + 'static> {
    Do(|_: Job| std::future::ready(Err(HandlerError::later("busy"))))
}

#[tokio::test]
async fn a_job_that_is_put_off_each_time_is_asked_less_and_less_often() {
    let bench = Bench::new().await;
    bench.enqueue(1).await;
    let base = config::Worker {
        backoff: Duration::from_millis(20),
        backoff_max: Duration::from_secs(600),
        ..settings()
    };
    let worker = bench.start(base, busy()).await;
    // the first delay is 20 to 30 ms, and doubles each time
    let delay = "select coalesce(max(extract(epoch from run_at - now()) * 1000), 0)::bigint from pgwake.jobs where status = 'ready'";
    wait_until("a long delay", DEADLINE, async || (bench.number(delay).await > 600).then_some(())).await;
    assert_eq!(bench.number("select attempts from pgwake.jobs").await, 0, "no attempt counts");
    let summary = worker.stop().await;
    assert!((5..9).contains(&summary.deferred), "{summary:?}");
    assert_eq!((summary.done, summary.failed, summary.lost), (0, 0, 0));
}

#[tokio::test]
async fn the_delay_of_a_job_that_is_put_off_ends_at_the_longest_back_off() {
    let bench = Bench::new().await;
    bench.enqueue(1).await;
    let worker = bench.start(settings(), busy()).await;
    // 20, 40, 80, 80 … ms, each jittered upwards by at most a half
    let deferred = "select coalesce(sum(jobs_deferred), 0) from pgwake.workers";
    wait_until("put off often", DEADLINE, async || (bench.number(deferred).await >= 12).then_some(()))
        .await;
    let delay =
        "select coalesce(max(extract(epoch from run_at - now()) * 1000), 0)::bigint from pgwake.jobs";
    let delay = bench.number(delay).await;
    assert!(delay <= 120, "{delay} ms");
    worker.stop().await;
}

#[tokio::test]
async fn an_end_that_the_table_refuses_costs_no_other_job_its_end() {
    let bench = Bench::new().await;
    bench
        .run(
            "create function refuse() returns trigger language plpgsql as $$
             begin
                 if new.status in ('done', 'failed') or new.last_error is not null then
                     raise exception 'not this one';
                 end if;
                 return new;
             end $$;
             create trigger refuse before update on pgwake.jobs for each row when (new.job_type like 'bad%') execute function refuse();
             select pgwake.enqueue_many(array_agg(case i when 7 then 'bad' when 13 then 'bad, failed' when 14 then 'bad, later'
                                                         when 15 then 'failed' when 16 then 'later' else 't' end),
                                        array_agg('{}'::jsonb)) from generate_series(1, 20) i",
        )
        .await;
    let handler = Do(|job: Job| {
        std::future::ready(match job.job_type.as_str() {
            "bad, failed" | "failed" => Err(HandlerError::new("no")),
            "bad, later" | "later" => Err(HandlerError::later("later")),
            _ => Ok(()),
        })
    });
    let slow = config::Worker {
        batch: 20,
        concurrency: 20,
        backoff: Duration::from_secs(600),
        backoff_max: Duration::from_secs(600),
        ..settings()
    };
    let worker = bench.start(slow, handler).await;
    bench.until_done(15).await;
    let states = "select string_agg(distinct concat_ws(' ', job_type, status, attempts, last_error), '; ') from pgwake.jobs where job_type <> 't'";
    wait_until("the two that may", DEADLINE, async || {
        let now = bench.text(states).await;
        (now == "bad running 1; bad, failed running 1; bad, later running 1; failed ready 1 no; later ready 0 later")
            .then_some(())
    })
    .await;
    // mended while the leases hold, they end as they did, without running again
    bench.run("drop trigger refuse on pgwake.jobs").await;
    bench.until_done(16).await;
    wait_until("all have ended", DEADLINE, async || {
        let now = bench.text(states).await;
        (now == "bad done 1; bad, failed ready 1 no; bad, later ready 0 later; failed ready 1 no; later ready 0 later")
            .then_some(())
    })
    .await;
    let summary = worker.stop().await;
    assert_eq!((summary.done, summary.failed, summary.deferred, summary.lost), (16, 2, 2, 0));
}

#[tokio::test]
async fn where_attempts_are_the_fence_a_job_that_is_put_off_for_ever_fails_before_its_numbers_are_used_up()
{
    let db = database().await;
    let client = db.connect().await;
    run(&client, PLAIN).await;
    run(
        &client,
        "alter table public.jobs alter attempts type smallint, alter max_attempts type smallint;
         insert into public.jobs (job_type, status, attempts, max_attempts) values ('t', 'ready', 31998, 31999)",
    )
    .await;
    let session = session(&db).await;
    let ledger = open(&session, "jobs-plain").await;
    let put_off = async || {
        let job = claim_one(&session, &ledger, "w", LONG).await;
        let claim = Failure { id: job.id, token: job.token, error: "busy".into(), delay: Duration::ZERO };
        ledger.defer(&session, &[claim]).await.unwrap()
    };
    let now = "select concat_ws(' ', status, attempts, max_attempts, last_error) from public.jobs";
    let first = put_off().await;
    assert_eq!((first.recorded.len(), first.gave_up.len()), (1, 0));
    assert_eq!(ask(&client, now).await.unwrap(), "ready 31999 32000 busy");
    let second = put_off().await;
    assert_eq!((second.recorded.len(), second.gave_up.len()), (1, 1));
    assert_eq!(ask(&client, now).await.unwrap(), "failed 32000 32000 busy");
}
