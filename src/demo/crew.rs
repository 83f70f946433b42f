//! Workers of different temper: steady ones, a slow one, and one that dies holding leases.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::DemoError;
use crate::config;
use crate::ledger::Job;
use crate::model::{Event, Listen, Note, Sink};
use crate::pg::Conninfo;
use crate::profile::Profile;
use crate::worker::{self, Handler, HandlerError, Practice, Setup, Stop};

/// A worker that is about to die waits this long for jobs to die with.
const LAST_JOBS_WITHIN: Duration = Duration::from_secs(3);
/// The next doomed worker comes this much later.
const REST: Duration = Duration::from_secs(4);
/// Patience with workers that are asked to stop, beyond their grace time.
const BEYOND_GRACE: Duration = Duration::from_secs(5);

/// What every worker of the crew has in common.
#[derive(Clone)]
pub(super) struct Plan {
    pub conninfo: Conninfo,
    pub profiles: [Profile; 2],
    pub settings: config::Worker,
    /// Lease of the doomed one: short, so that the expiry is seen.
    pub doomed_lease: Duration,
    /// It dies by itself after about this time.
    pub doomed_life: Duration,
    pub sink: Arc<dyn Sink>,
}

impl Plan {
    fn setup(&self, name: &str) -> Setup {
        Setup {
            name: name.to_owned(),
            conninfo: self.conninfo.clone(),
            profiles: self.profiles.to_vec(),
            settings: self.settings,
            until_empty: false,
        }
    }

    /// Of a crew worker's events only the loss of its listen session is told, as a note: the event log is
    /// about the worker of the dashboard.
    fn sink_of(&self, name: &str) -> Arc<dyn Sink> {
        let (name, sink) = (name.to_owned(), self.sink.clone());
        Arc::new(move |event: Event| {
            if let Event::Listen(Listen::Down { loss, .. }) = event {
                sink.emit(Event::Note(Note {
                    warn: true,
                    text: format!("{name} stopped hearing: {loss}"),
                }));
            }
        })
    }

    fn note(&self, warn: bool, text: String) {
        self.sink.emit(Event::Note(Note { warn, text }));
    }
}

/// A crash, as it was.
#[derive(Clone, Debug)]
pub(super) struct Crash {
    pub name: String,
    pub held: usize,
}

/// A worker left because it was asked to.
#[derive(Clone, Debug)]
pub(super) struct Left {
    pub name: &'static str,
    pub given_back: u64,
    pub took: Duration,
}

/// Asks one worker for something, and brings the answer.
type Wishes<T> = mpsc::Receiver<oneshot::Sender<T>>;

/// All of them, at work.
pub(super) struct Crew {
    stop: Stop,
    workers: Vec<JoinHandle<()>>,
    crash: mpsc::Sender<oneshot::Sender<Crash>>,
    leave: mpsc::Sender<oneshot::Sender<Left>>,
    grace: Duration,
}

impl Crew {
    pub(super) fn start(plan: &Plan) -> Self {
        let (stop, ear) = Stop::new();
        let mut workers = Vec::new();
        let (leave, wishes) = mpsc::channel(1);
        let mut wishes = Some(wishes);
        let temper = [("steady-1", 100), ("steady-2", 100), ("slow-1", 400)];
        for (name, pace) in temper {
            let handler = Practice::Simulate { pace };
            // The first one is the one that is asked to leave.
            let keep = keep_running(plan.clone(), name, handler, wishes.take(), ear.clone());
            workers.push(tokio::spawn(keep));
        }
        let (crash, wishes) = mpsc::channel(1);
        workers.push(tokio::spawn(doomed(plan.clone(), wishes, ear)));
        Self { stop, workers, crash, leave, grace: plan.settings.grace }
    }

    /// A steady worker is asked to stop, and comes back after a while; `None` when it is away.
    pub(super) async fn leave(&self) -> Option<Left> {
        let (tell, told) = oneshot::channel();
        self.leave.try_send(tell).ok()?;
        told.await.ok()
    }

    /// The doomed worker takes a few jobs more and dies; `None` when there is none at this moment.
    pub(super) async fn crash(&self) -> Option<Crash> {
        let (tell, told) = oneshot::channel();
        self.crash.send(tell).await.ok()?;
        told.await.ok()
    }

    /// Stops all in order: jobs end or are given back.
    pub(super) async fn stop(mut self) {
        self.stop.stop();
        let patience = self.grace + BEYOND_GRACE;
        for worker in &mut self.workers {
            let _ = timeout(patience, worker).await;
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for worker in &self.workers {
            worker.abort();
        }
    }
}

/// A worker that could not start tries again: in the demo servers go away on purpose. So does one that was
/// asked to leave.
async fn keep_running(
    plan: Plan,
    name: &'static str,
    handler: Practice,
    mut wishes: Option<Wishes<Left>>,
    mut ear: watch::Receiver<bool>,
) {
    while !*ear.borrow() && ear.has_changed().is_ok() {
        let (own, own_ear) = Stop::new();
        let run = worker::run(plan.setup(name), handler, None, plan.sink_of(name), own_ear);
        tokio::pin!(run);
        let mut asked = None;
        let mut over = false;
        let ended = loop {
            tokio::select! {
                ended = &mut run => break ended,
                _ = ear.wait_for(|stop| *stop), if !over => {
                    over = true;
                    own.stop();
                }
                Some(tell) = wish(&mut wishes), if asked.is_none() => {
                    asked = Some((tell, Instant::now()));
                    own.stop();
                }
            }
        };
        match (ended, asked) {
            (Ok(summary), Some((tell, began))) => {
                let took = began.elapsed();
                drop(tell.send(Left { name, given_back: summary.given_back, took }));
            }
            (Ok(_), None) => return,
            (Err(error), _) => plan.note(true, format!("{name} could not start: {error}")),
        }
        tokio::select! {
            () = sleep(REST) => {}
            _ = ear.wait_for(|stop| *stop) => return,
        }
    }
}

/// The next wish; never, where nobody can have one.
async fn wish<T>(wishes: &mut Option<Wishes<T>>) -> Option<oneshot::Sender<T>> {
    match wishes {
        Some(wishes) => wishes.recv().await,
        None => std::future::pending().await,
    }
}

/// A publisher takes messages, publishes them, and dies before it has marked one of them as SENT. `announce`
/// adds messages: the first ones may go to others.
pub(super) async fn crash_publisher(
    plan: &Plan,
    number: u64,
    announce: impl AsyncFn() -> Result<(), DemoError>,
) -> Result<Crash, DemoError> {
    let name = format!("publisher-{number}");
    let last = LastWish::default();
    last.0.dying.store(true, Ordering::Relaxed);
    let mut setup = plan.setup(&name);
    setup.profiles = plan.profiles[1..].to_vec();
    setup.settings.lease = plan.doomed_lease;
    setup.settings.eager = true;
    let (_stop, ear) = Stop::new();
    let mut task = Killed(tokio::spawn(worker::run(setup, last.clone(), None, plan.sink_of(&name), ear)));
    let end = Instant::now() + LAST_JOBS_WITHIN;
    while last.0.ended.load(Ordering::Relaxed) == 0 && Instant::now() < end {
        announce().await?;
        let some = async {
            while last.0.ended.load(Ordering::Relaxed) < plan.settings.concurrency {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = timeout(Duration::from_millis(500), some).await;
    }
    let held = last.0.ended.load(Ordering::Relaxed);
    task.kill().await;
    if held == 0 { Err(DemoError::NobodyToCrash) } else { Ok(Crash { name, held }) }
}

/// One doomed worker after another, each with a name of its own.
async fn doomed(plan: Plan, mut wishes: Wishes<Crash>, mut ear: watch::Receiver<bool>) {
    for number in 1_u64.. {
        let name = format!("doomed-{number}");
        let last = LastWish::default();
        let mut setup = plan.setup(&name);
        setup.settings.lease = plan.doomed_lease;
        let wanted = setup.settings.concurrency;
        let (sink, own_ear, handler) = (plan.sink_of(&name), ear.clone(), last.clone());
        // On a task of its own, so that it can be ended as by kill -9: nothing of it runs any more.
        let mut task = Killed(tokio::spawn(worker::run(setup, handler, None, sink, own_ear)));
        let life = plan.doomed_life.mul_f64(0.9 + 0.2 * fastrand::f64());
        let mut asked = None;
        tokio::select! {
            wish = wishes.recv() => match wish {
                Some(tell) => asked = Some(tell),
                None => return,
            },
            () = sleep(life) => {}
            ended = &mut task.0 => {
                if *ear.borrow() || ear.has_changed().is_err() {
                    return;
                }
                if let Ok(Err(error)) = ended {
                    plan.note(true, format!("{name} could not start: {error}"));
                }
                sleep(REST).await;
                continue;
            }
        }
        let held = last.fill(wanted).await;
        task.kill().await;
        match asked {
            // Whoever asked tells it.
            Some(tell) => drop(tell.send(Crash { name, held })),
            None => plan.note(true, format!("{name} died holding {}", jobs(held))),
        }
        tokio::select! {
            () = sleep(REST) => {}
            _ = ear.changed() => return,
        }
    }
}

/// "1 job", "5 jobs".
pub(super) fn jobs(n: usize) -> String {
    if n == 1 { "1 job".to_owned() } else { format!("{n} jobs") }
}

/// A task that ends with its owner.
struct Killed(JoinHandle<Result<worker::Summary, worker::WorkerError>>);

impl Killed {
    /// Ends it and waits until nothing of it is left: sessions closed, nothing given back.
    async fn kill(&mut self) {
        self.0.abort();
        let _ = (&mut self.0).await;
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Simulates, until the end has come: then jobs are taken and never finished.
#[derive(Clone, Debug, Default)]
struct LastWish(Arc<Last>);

#[derive(Debug, Default)]
struct Last {
    dying: AtomicBool,
    held: AtomicUsize,
    /// Those of them whose work is done, and the ledger not told.
    ended: AtomicUsize,
}

impl LastWish {
    /// Lets jobs pile up in hand, up to `wanted`; returns how many there are.
    async fn fill(&self, wanted: usize) -> usize {
        self.0.dying.store(true, Ordering::Relaxed);
        let full = async {
            while self.0.held.load(Ordering::Relaxed) < wanted {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = timeout(LAST_JOBS_WITHIN, full).await;
        self.0.held.load(Ordering::Relaxed)
    }
}

/// Counts a job in hand for as long as its future lives.
struct InHand<'a>(&'a AtomicUsize);

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Handler for LastWish {
    async fn handle(&self, job: Job) -> Result<(), HandlerError> {
        self.0.held.fetch_add(1, Ordering::Relaxed);
        let _in_hand = InHand(&self.0.held);
        let outcome = Practice::Simulate { pace: 100 }.handle(job).await;
        if self.0.dying.load(Ordering::Relaxed) {
            self.0.ended.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<()>().await;
        }
        outcome
    }

    fn is_practice(&self) -> bool {
        true
    }
}
