//! Drills that break workers and what they hold.

use std::time::{Duration, Instant};

use super::bench::{Bench, Terms, all_done, jobs, setup};
use super::process::Process;
use super::under::{Book, Hang, POISON};
use super::{DrillError, Verdict};
use crate::ledger::{NewJob, Tally};

/// Soon over.
const LEASE: Duration = Duration::from_secs(2);
const FALLBACK: Duration = Duration::from_secs(1);

pub(super) async fn worker_killed(bench: &Bench<'_>) -> Result<Verdict, DrillError> {
    enqueue_slow(bench, 20).await?;
    let mut process = Process::start(bench, &["--lease", "2s"])?;
    let held = bench.wait(|t| t.running >= 10).await?.running;
    process.kill().await?;
    let began = Instant::now();
    let worker = bench.work(Terms { lease: LEASE, fallback: FALLBACK, ..Terms::default() });
    bench.wait(|t| t.done == 20).await?;
    let took = began.elapsed();
    let mut verdict = bench.judge(vec![worker], all_done(20), Some(20)).await?;
    verdict.evidence.push(format!("{held} were held by the process when it was killed"));
    verdict.expect(held == 10, || format!("it should hold a batch of 10 when it is killed, not {held}"));
    verdict.recovered(took);
    Ok(verdict)
}

/// Jobs that take a process, which sleeps as the payload says, half a minute each; the handlers of other
/// workers do not look at it.
async fn enqueue_slow(bench: &Bench<'_>, n: usize) -> Result<(), DrillError> {
    let slow = NewJob { payload: r#"{"ms": 30000}"#.to_owned(), ..jobs("drill", 1).remove(0) };
    bench.ledger.enqueue(&bench.session, &vec![slow; n]).await.map(drop).map_err(setup)
}

pub(super) async fn late_completion(bench: &Bench<'_>) -> Result<Verdict, DrillError> {
    bench.enqueue(1).await?;
    // Renewed only after the job has ended: its lease is long.
    let late = bench.work(Terms { takes: Duration::from_secs(3), ..Terms::default() });
    bench.until(async || Ok(bench.book.in_hand()), |n| *n == 1).await.map_err(setup)?;
    let expired = crate::ledger::expire_leases(&bench.session).await.map_err(setup)?;
    // The new holder keeps the job in hand, which is meant to overlap: its book is another one.
    let book = Book::new(bench.conninfo.clone());
    let terms = Terms { lease: LEASE, fallback: FALLBACK, ..Terms::default() };
    let holder = bench.work(Terms { hang: Some(Hang::AtOnce), book: Some(book.clone()), ..terms.clone() });
    let taken = bench.until(async || Ok(book.in_hand()), |n| *n == 1).await.map_err(setup)?;
    let sent = async || crate::ledger::effects(&bench.session).await;
    let sent = bench.until(sent, |e| e.applied == 1).await.map_err(setup)?;
    // In order: whatever it has to record is recorded, or refused.
    late.stop.stop();
    let _ = late.task.await;
    let held = bench.ledger.tally(&bench.session).await.map_err(setup)?;
    holder.task.abort();
    let _ = holder.task.await;
    let worker = bench.work(terms);
    bench.wait(|t| t.done == 1).await?;
    let mut verdict = Verdict::default();
    verdict.expect((expired, taken, sent.applied) == (1, 1, 1), || {
        format!("the job should change hands before its end, not {:?}", (expired, taken, sent.applied))
    });
    verdict.expect(held.running == 1 && held.done == 0, || {
        "the late end should change nothing, but the job was taken from its new holder".to_owned()
    });
    verdict.evidence.push(format!("after the late end: done {}, running {}", held.done, held.running));
    let rest = bench.judge(vec![worker], all_done(1), Some(2)).await?;
    verdict.broken.extend(rest.broken);
    verdict.evidence.extend(rest.evidence);
    Ok(verdict)
}

pub(super) async fn poison(bench: &Bench<'_>) -> Result<Verdict, DrillError> {
    bench.ledger.enqueue(&bench.session, &jobs(POISON, 1)).await.map_err(setup)?;
    bench.enqueue(50).await?;
    let terms = Terms { concurrency: 1, fallback: FALLBACK, ..Terms::default() };
    let worker = bench.work(terms);
    bench.wait(|t| t.done == 50 && t.failed == 1).await?;
    // 50 effects, and the five attempts without one.
    let want = Tally { done: 50, failed: 1, ..Tally::default() };
    bench.judge(vec![worker], want, Some(55)).await
}

pub(super) async fn outbox_crash(bench: &Bench<'_>) -> Result<Verdict, DrillError> {
    bench.enqueue(10).await?;
    let terms = Terms { lease: LEASE, fallback: FALLBACK, ..Terms::default() };
    let victim = bench.work(Terms { hang: Some(Hang::AroundEffect), ..terms.clone() });
    let ask = async || crate::ledger::effects(&bench.session).await;
    let half = bench.until(ask, |e| e.attempted >= 5 && bench.book.in_hand() == 10).await.map_err(setup)?;
    victim.task.abort();
    let _ = victim.task.await;
    let began = Instant::now();
    let worker = bench.work(terms);
    bench.wait(|t| t.done == 10).await?;
    // A ledger may say SENT of what is still in hand.
    bench
        .until(async || crate::ledger::effects(&bench.session).await, |e| e.applied == 10)
        .await
        .map_err(setup)?;
    let took = began.elapsed();
    let mut verdict = bench.judge(vec![worker], all_done(10), Some(15)).await?;
    verdict.evidence.push(format!("{} of 10 were published before the crash", half.attempted));
    verdict.expect(half.attempted == 5, || "5 should be published before the crash".to_owned());
    verdict.recovered(took);
    Ok(verdict)
}

/// What jobs in hand may take to end; far less than they need.
const GRACE: Duration = Duration::from_secs(1);
/// To start a program, and to end it beside its grace time, on a busy machine.
const SPARE: Duration = Duration::from_secs(10);

pub(super) async fn worker_stopped(bench: &Bench<'_>) -> Result<Verdict, DrillError> {
    enqueue_slow(bench, 20).await?;
    let mut process = Process::start(bench, &["--grace", &format!("{}s", GRACE.as_secs())])?;
    let held = bench.wait(|t| t.running >= 10).await?.running;
    let began = Instant::now();
    process.terminate()?;
    let status = process.wait(GRACE + SPARE).await?;
    let left = began.elapsed();
    let after = bench.ledger.tally(&bench.session).await.map_err(setup)?;
    let worker = bench.work(Terms { fallback: FALLBACK, ..Terms::default() });
    let mut verdict = Verdict::default();
    verdict.expect(held == 10, || format!("it should be in the middle of a batch of 10, not {held}"));
    verdict.expect(status.is_some_and(|s| s.success()), || match status {
        None => "it did not leave in time".to_owned(),
        Some(status) => format!("it should leave in order, not with {status}"),
    });
    verdict.expect(after.running == 0, || format!("{} jobs were left leased", after.running));
    if verdict.broken.is_empty() {
        bench.wait(|t| t.done == 20).await?;
    }
    let rest = bench.judge(vec![worker], all_done(20), Some(20)).await?;
    verdict.broken.extend(rest.broken);
    verdict.evidence.push(format!(
        "{held} in hand at the signal, {} leased when it had left, {:.1} s later",
        after.running,
        left.as_secs_f64()
    ));
    verdict.evidence.extend(rest.evidence);
    Ok(verdict)
}
