//! The drills themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::DrillError;
use super::bench::{Bench, Effects, Noting, unheard};
use crate::ledger::Tally;
use crate::model::{Event, Listen, Wake};
use crate::pg::{ListenConfig, ListenState, Listener};

/// One drill.
pub struct Drill {
    /// Name on the command line.
    pub name: &'static str,
    /// What it breaks.
    pub breaks: &'static str,
    /// What must hold.
    pub promise: &'static str,
    which: Which,
}

enum Which {
    ListenerDown,
    WorkerKilled,
    OneCommit,
}

/// Every drill.
pub const ALL: &[Drill] = &[
    Drill {
        name: "listener-down",
        breaks: "100 jobs are committed while nobody listens",
        promise: "the next worker's startup scan finds all of them; each is handled once",
        which: Which::ListenerDown,
    },
    Drill {
        name: "worker-killed",
        breaks: "a worker dies holding leases",
        promise: "the leases expire, the jobs run again, none is left behind",
        which: Which::WorkerKilled,
    },
    Drill {
        name: "one-commit",
        breaks: "1000 equal wake-ups are sent in one commit",
        promise: "they arrive as one, and all 1000 jobs are drained",
        which: Which::OneCommit,
    },
];

/// What a drill found.
pub(super) struct Verdict {
    pub held: bool,
    pub evidence: String,
}

const LEASE: Duration = Duration::from_secs(2);

impl Drill {
    pub(super) async fn run(&self, bench: Bench) -> Result<Verdict, DrillError> {
        match self.which {
            Which::ListenerDown => listener_down(&bench).await,
            Which::WorkerKilled => worker_killed(&bench).await,
            Which::OneCommit => one_commit(&bench).await,
        }
    }
}

async fn listener_down(bench: &Bench) -> Result<Verdict, DrillError> {
    bench.enqueue(100).await?;
    let effects = Effects::default();
    let handler = Noting { effects: effects.clone(), takes: Duration::from_millis(1) };
    let worker = bench.work(handler, Duration::from_secs(30), unheard());
    let tally = bench.wait(|t| t.done == 100).await?;
    worker.stop.stop();
    let _ = worker.task.await;
    Ok(judge(tally, 100, effects.ended_once()))
}

async fn worker_killed(bench: &Bench) -> Result<Verdict, DrillError> {
    bench.enqueue(20).await?;
    let doomed = Effects::default();
    // Longer than the lease: it never ends a job.
    let handler = Noting { effects: doomed.clone(), takes: Duration::from_secs(600) };
    let victim = bench.work(handler, LEASE, unheard());
    let held = bench.wait(|t| t.running == 10).await?;
    // Nothing is given back, nothing is finished: the task and its sessions are gone from one moment to
    // the next.
    victim.task.abort();
    let _ = victim.task.await;
    let effects = Effects::default();
    let handler = Noting { effects: effects.clone(), takes: Duration::from_millis(1) };
    let worker = bench.work(handler, LEASE, unheard());
    let tally = bench.wait(|t| t.done == 20).await?;
    worker.stop.stop();
    let _ = worker.task.await;
    let mut verdict = judge(tally, 20, effects.ended_once());
    verdict.held &= held.running == 10 && doomed.begun() == 10;
    verdict.evidence = format!("{} were held by the dead worker; {}", held.running, verdict.evidence);
    Ok(verdict)
}

async fn one_commit(bench: &Bench) -> Result<Verdict, DrillError> {
    let heard = Arc::new(AtomicU64::new(0));
    let count = heard.clone();
    let sink = move |event: Event| {
        if let Event::Wake(Wake { count: n, .. }) = event {
            count.fetch_add(n, Ordering::Relaxed);
        }
    };
    let channels = bench.jobs.channel().map(str::to_owned).into_iter().collect();
    let config = ListenConfig::new(bench.conninfo.clone(), channels).map_err(DrillError::Setup)?;
    let listener = Listener::start(config, Arc::new(sink));
    let mut state = listener.state();
    state
        .wait_for(|s| matches!(s, ListenState::Up { .. }))
        .await
        .map_err(|_| DrillError::Setup("the listener ended".to_owned()))?;
    let effects = Effects::default();
    let handler = Noting { effects: effects.clone(), takes: Duration::ZERO };
    let (ready, mut listening) = tokio::sync::watch::channel(false);
    let worker = bench.work(
        handler,
        Duration::from_secs(30),
        Arc::new(move |event: Event| {
            if matches!(event, Event::Listen(Listen::Up { .. })) {
                ready.send_replace(true);
            }
        }),
    );
    let _ = listening.wait_for(|up| *up).await;
    bench.enqueue(1000).await?;
    let tally = bench.wait(|t| t.done == 1000).await?;
    worker.stop.stop();
    let _ = worker.task.await;
    let wakeups = heard.load(Ordering::Relaxed);
    let mut verdict = judge(tally, 1000, effects.ended_once());
    verdict.held &= wakeups == 1;
    verdict.evidence = format!("{wakeups} wake-ups heard; {}", verdict.evidence);
    Ok(verdict)
}

fn judge(tally: Tally, jobs: u64, once: usize) -> Verdict {
    let clean = Tally { done: jobs, ..Tally::default() };
    Verdict {
        held: tally == clean && once as u64 == jobs,
        evidence: format!(
            "done {}, ready {}, running {}, failed {}; {once} handled exactly once",
            tally.done, tally.ready, tally.running, tally.failed
        ),
    }
}
