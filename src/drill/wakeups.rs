//! Drills that break wake-ups.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::bench::{Bench, Terms, all_done, setup};
use super::{DrillError, Verdict};
use crate::model::{Event, Wake};
use crate::pg::{ListenConfig, ListenState, Listener};

pub(super) async fn listener_down(bench: &Bench<'_>) -> Result<Verdict, DrillError> {
    bench.enqueue(100).await?;
    let began = Instant::now();
    let worker = bench.work(Terms::default());
    bench.wait(|t| t.done == 100).await?;
    let took = began.elapsed();
    let mut verdict = bench.judge(vec![worker], all_done(100), Some(100)).await?;
    verdict.recovered(took);
    Ok(verdict)
}

pub(super) async fn one_commit(bench: &Bench<'_>) -> Result<Verdict, DrillError> {
    let heard = Arc::new(AtomicU64::new(0));
    let count = heard.clone();
    let sink = move |event: Event| {
        if let Event::Wake(Wake { count: n, .. }) = event {
            count.fetch_add(n, Ordering::Relaxed);
        }
    };
    let channels = bench.ledger.channel().map(str::to_owned).into_iter().collect();
    let config = ListenConfig::new(bench.conninfo.clone(), channels).map_err(DrillError::Setup)?;
    let listener = Listener::start(config, Arc::new(sink));
    let mut state = listener.state();
    state
        .wait_for(|s| matches!(s, ListenState::Up { .. }))
        .await
        .map_err(|_| setup("the listener ended"))?;
    let worker = bench.work(Terms::default());
    // One job goes before, so that the worker is known to be at work, and its wake-up is counted, too.
    bench.enqueue(1).await?;
    bench.wait(|t| t.done == 1).await?;
    bench.enqueue(1000).await?;
    bench.wait(|t| t.done == 1001).await?;
    let wakeups = heard.load(Ordering::Relaxed);
    let mut verdict = bench.judge(vec![worker], all_done(1001), Some(1001)).await?;
    verdict.evidence.push(format!("{wakeups} wake-ups heard for two commits"));
    verdict.expect(wakeups == 2, || format!("two commits should be two wake-ups, not {wakeups}"));
    Ok(verdict)
}

/// The fallback interval of the drill.
const FALLBACK: Duration = Duration::from_secs(2);
/// A scan that is due is begun, and its claim has come back, this much later on a busy machine.
const SLACK: Duration = Duration::from_secs(2);

pub(super) async fn wakeups_lost(bench: &Bench<'_>) -> Result<Verdict, DrillError> {
    let worker = bench.work(Terms { fallback: FALLBACK, ..Terms::default() });
    let bound = FALLBACK + SLACK;
    let mut oldest: f64 = 0.0;
    let mut times = Vec::new();
    for round in 1..=3 {
        bench.enqueue_quiet(10).await?;
        let began = Instant::now();
        loop {
            let age = bench.ledger.oldest_ready(&bench.session).await.map_err(setup)?;
            oldest = oldest.max(age.unwrap_or(0.0));
            let tally = bench.ledger.tally(&bench.session).await.map_err(setup)?;
            if tally.done == 10 * round {
                times.push(began.elapsed());
                break;
            }
            if began.elapsed() > bound + SLACK {
                break;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
    let mut verdict = bench.judge(vec![worker], all_done(30), Some(30)).await?;
    verdict
        .evidence
        .push(format!("oldest ready {oldest:.1} s with a fallback of {} s", FALLBACK.as_secs()));
    verdict.expect(oldest < bound.as_secs_f64(), || {
        format!("the oldest ready job should stay under {} s", bound.as_secs())
    });
    times.into_iter().for_each(|t| verdict.recovered(t));
    Ok(verdict)
}
