//! What others do to the rows of a worker: locks that are held for long, and rows that come in all the time.

mod support;
#[path = "support/work.rs"]
mod work;

use std::time::Duration;

use pgwake::config;
use work::{Bench, Do, Effects, settings};

/// An operator looks at one row in a transaction and goes to lunch.
#[tokio::test]
async fn a_row_that_somebody_holds_locked_costs_the_other_jobs_nothing() {
    let bench = Bench::new().await;
    let other = bench.db.connect().await;
    let effects = Effects::default();
    let told = effects.clone();
    let handler = Do(move |job: pgwake::ledger::Job| {
        told.add(job.id.clone());
        async move {
            // The first ends while its row is locked, the second is two leases long.
            tokio::time::sleep(Duration::from_millis(if job.id == "1" { 1000 } else { 8000 })).await;
            Ok(())
        }
    });
    let settings = config::Worker { lease: Duration::from_secs(4), concurrency: 3, ..settings() };
    let worker = bench.start(settings, handler).await;
    bench.enqueue(2).await;
    bench.until(2, "jobs held", "select count(*) from pgwake.jobs where status = 'running'").await;
    other.batch_execute("begin; select from pgwake.jobs where id = 1 for update").await.unwrap();
    let row_2 = "select count(*) from pgwake.jobs where id = 2 and status = 'done' and attempts = 1";
    bench.until(1, "the other job done at its first attempt", row_2).await;
    bench.until_counter("jobs_done", 1).await;
    other.batch_execute("commit").await.unwrap();
    bench.until_done(2).await;
    worker.stop().await;
    assert_eq!(effects.all().iter().filter(|id| *id == "2").count(), 1);
}

#[tokio::test]
async fn jobs_that_come_in_while_it_looks_are_not_called_contended() {
    let bench = Bench::new().await;
    let worker =
        bench.start(config::Worker { eager: true, ..settings() }, Effects::default().handler()).await;
    let other = bench.db.connect().await;
    for _ in 0..1500 {
        other.batch_execute("select pgwake.enqueue('t')").await.unwrap();
    }
    bench.until_done(1500).await;
    let contended = bench.number("select sum(claims_contended) from pgwake.workers").await;
    worker.stop().await;
    assert_eq!(contended, 0);
}
