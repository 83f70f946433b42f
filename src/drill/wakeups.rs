//! Drills that break wake-ups.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::bench::{Bench, Terms, all_done, setup};
use super::{DrillError, Verdict};
use crate::ledger;
use crate::model::{Event, Wake};
use crate::pg::{ListenConfig, ListenState, Listener, Purpose, Session};

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

/// Wake-ups of one commit.
const EQUAL: usize = 1000;

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
    // One job goes before, so that the worker is known to be at work.
    bench.enqueue(1).await?;
    bench.wait(|t| t.done == 1).await?;
    let before = heard.load(Ordering::Relaxed);
    let payloads = vec!["{}".to_owned(); EQUAL];
    ledger::enqueue_one_by_one(&bench.session, "drill", &payloads).await.map_err(setup)?;
    bench.wait(|t| t.done == 1001).await?;
    let wakeups = heard.load(Ordering::Relaxed).saturating_sub(before);
    let mut verdict = bench.judge(vec![worker], all_done(1001), Some(1001)).await?;
    // For information: how many arrive is the server's affair, and no promise hangs on it.
    verdict.evidence.push(format!("{wakeups} of {EQUAL} equal wake-ups heard"));
    Ok(verdict)
}

/// A job is committed when the worker's startup scan has looked and is not yet over. Its wake-up is all
/// that tells of it: who begins to listen only now waits for the fallback.
pub(super) async fn late_commit(bench: &Bench<'_>) -> Result<Verdict, DrillError> {
    let gate = Session::connect(&bench.conninfo, Purpose::Command).await.map_err(setup)?;
    ledger::shut_gate(&gate).await.map_err(setup)?;
    let worker = bench.work(Terms::default());
    let waiting = async || ledger::at_gate(&bench.session).await;
    let waiting = bench.until(waiting, |n| *n > 0).await.map_err(setup)?;
    bench.enqueue(1).await?;
    ledger::open_gate(&gate).await.map_err(setup)?;
    let began = Instant::now();
    bench.wait(|t| t.done == 1).await?;
    let took = began.elapsed();
    let mut verdict = bench.judge(vec![worker], all_done(1), Some(1)).await?;
    verdict.expect(waiting > 0, || "the worker should look at its start".to_owned());
    verdict.evidence.push("committed after the startup scan had looked and before it was over".to_owned());
    verdict.recovered(took);
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

/// What is done to a listen session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Terminated,
    Frozen,
}

/// A worker whose sessions have asked nothing for so long has looked at everything.
const IDLE_S: f64 = 0.3;

pub(super) async fn listener_cut(bench: &Bench<'_>) -> Result<Verdict, DrillError> {
    cut(bench, &[Cut::Terminated, Cut::Terminated]).await
}

pub(super) async fn listener_frozen(bench: &Bench<'_>) -> Result<Verdict, DrillError> {
    cut(bench, &[Cut::Frozen]).await
}

async fn cut(bench: &Bench<'_>, cuts: &[Cut]) -> Result<Verdict, DrillError> {
    let worker = bench.work(Terms { takes: Duration::from_millis(500), ..Terms::default() });
    let mut verdict = Verdict::default();
    let mut done = 0;
    let mut gone = Vec::new();
    for cut in cuts.iter().copied() {
        // With jobs in hand: none of them may be begun again.
        listening(bench, &mut gone).await?;
        bench.enqueue(5).await?;
        let held = bench.wait(|t| t.running == 5).await?.running;
        verdict.expect(held == 5, || format!("five jobs should be in hand before it is {cut:?}"));
        let began = Instant::now();
        if cut == Cut::Frozen {
            let pid = gone.last().copied().unwrap_or_default();
            bench.server(move |server| server.freeze_backend(pid)).await?;
        } else {
            ledger::terminate_listeners(&bench.session).await.map_err(setup)?;
            listening(bench, &mut gone).await?;
        }
        done += 5;
        bench.wait(|t| t.done == done).await?;
        // With a worker that waits: from now on only its next scan can find anything.
        settled(bench).await?;
        let began = if cut == Cut::Frozen {
            bench.enqueue(10).await?;
            began
        } else {
            // After the cut they could come too late for the scan.
            bench.enqueue_quiet(10).await?;
            let began = Instant::now();
            ledger::terminate_listeners(&bench.session).await.map_err(setup)?;
            began
        };
        done += 10;
        let found = bench.wait(|t| t.done == done).await?.done;
        verdict.expect(found == done, || {
            format!("with the listen session {cut:?}, jobs should be found: {found} of {done} done")
        });
        if !verdict.broken.is_empty() {
            break;
        }
        verdict.recovered(began.elapsed());
        verdict.evidence.push(format!("{cut:?}: mended after {:.1} s", began.elapsed().as_secs_f64()));
    }
    let all = 15 * cuts.len() as u64;
    let rest = bench.judge(vec![worker], all_done(all), Some(all)).await?;
    verdict.broken.extend(rest.broken);
    verdict.evidence.extend(rest.evidence);
    Ok(verdict)
}

/// Waits until the worker has looked at everything it was told of. One that opens a session for each look
/// has none in between: it has to have none for as long.
async fn settled(bench: &Bench<'_>) -> Result<(), DrillError> {
    let none_since = Cell::new(None::<Instant>);
    let idle = async || ledger::idle_for(&bench.session).await;
    let settled = |idle: &Option<f64>| match idle {
        Some(seconds) => {
            none_since.set(None);
            *seconds > IDLE_S
        }
        None => {
            let since = none_since.get().unwrap_or_else(Instant::now);
            none_since.set(Some(since));
            since.elapsed().as_secs_f64() > IDLE_S
        }
    };
    bench.until(idle, settled).await.map(drop).map_err(setup)
}

/// Waits for a listen session that has not been cut yet, and adds it to those that will have been.
async fn listening(bench: &Bench<'_>, gone: &mut Vec<u32>) -> Result<(), DrillError> {
    let fresh = |pids: &Vec<i32>| {
        let mut all = pids.iter().filter_map(|pid| u32::try_from(*pid).ok());
        all.find(|pid| !gone.contains(pid))
    };
    let ask = async || ledger::listeners(&bench.session).await;
    let pids = bench.until(ask, |pids| fresh(pids).is_some()).await.map_err(setup)?;
    let pid = fresh(&pids).ok_or_else(|| setup("the worker does not listen again"))?;
    gone.push(pid);
    Ok(())
}
