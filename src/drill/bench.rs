//! A scratch database and the means to work on it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::place::Place;
use super::under::{Book, Hang, Post, Task, Worker, Working};
use super::{DrillError, Verdict};
use crate::config;
use crate::demo::{Server, ServerError};
use crate::ledger::{self, EffectCount, Ledger, NewJob, Tally};
use crate::model::{Event, Sink};
use crate::pg::{Conninfo, Error, Purpose, Session};
use crate::profile::Profile;
use crate::worker;

/// An error of the drill's own statements.
pub(super) fn setup(e: impl std::fmt::Display) -> DrillError {
    DrillError::Setup(e.to_string())
}

/// A wait for wake-ups so long that no drill sees its end.
pub(super) const NO_FALLBACK: Duration = Duration::from_secs(600);

/// How a worker of a drill differs from the others.
#[derive(Clone)]
pub(super) struct Terms {
    pub lease: Duration,
    pub fallback: Duration,
    pub concurrency: usize,
    pub takes: Duration,
    pub hang: Option<Hang>,
    /// Where its handlers write; the book of the bench if none is given.
    pub book: Option<Arc<Book>>,
    pub sink: Arc<dyn Sink>,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            fallback: NO_FALLBACK,
            concurrency: 10,
            takes: Duration::from_millis(1),
            hang: None,
            book: None,
            sink: Arc::new(|_: Event| ()),
        }
    }
}

/// A migrated scratch database, one ledger of it, and the worker under test.
pub(super) struct Bench<'a> {
    pub worker: &'a dyn Worker,
    place: Place,
    pub conninfo: Conninfo,
    pub session: Session,
    pub ledger: Ledger,
    pub book: Arc<Book>,
    /// No drill waits longer for a state.
    pub patience: Duration,
    /// Every worker that was started.
    started: Mutex<Vec<AbortHandle>>,
}

impl<'a> Bench<'a> {
    /// In a fresh database of that place.
    pub(super) async fn new(
        place: Place,
        conninfo: Conninfo,
        ledger: &str,
        (worker, patience): (&'a dyn Worker, Duration),
    ) -> Result<Self, DrillError> {
        let mut session = Session::connect(&conninfo, Purpose::Command).await.map_err(setup)?;
        ledger::migrate(&mut session).await.map_err(setup)?;
        ledger::create_effects(&session).await.map_err(setup)?;
        let profile = Profile::find(ledger).map_err(setup)?;
        let opened = Ledger::open(&session, profile.clone()).await.map_err(setup)?;
        ledger::mark_scratch(&session, &opened).await.map_err(setup)?;
        let ledger = Ledger::open(&session, profile).await.map_err(setup)?;
        let book = Book::new(conninfo.clone());
        let started = Mutex::default();
        Ok(Self { worker, place, conninfo, session, ledger, book, patience, started })
    }

    /// Does something to the server, on a thread that may wait.
    pub(super) async fn server<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Server) -> Result<T, ServerError> + Send + 'static,
    ) -> Result<T, DrillError> {
        self.place.server(f).await
    }

    /// A session in place of the one that the server ended.
    pub(super) async fn connect_again(&mut self) -> Result<(), DrillError> {
        self.session = Session::connect(&self.conninfo, Purpose::Command).await.map_err(setup)?;
        Ok(())
    }

    /// Commits `n` jobs in one transaction, with a wake-up.
    pub(super) async fn enqueue(&self, n: usize) -> Result<(), DrillError> {
        self.ledger.enqueue(&self.session, &jobs("drill", n)).await.map(drop).map_err(setup)
    }

    /// The same without a wake-up.
    pub(super) async fn enqueue_quiet(&self, n: usize) -> Result<(), DrillError> {
        self.ledger.enqueue_quiet(&self.session, &jobs("drill", n)).await.map(drop).map_err(setup)
    }

    /// Starts the worker under test.
    pub(super) fn work(&self, terms: Terms) -> Working {
        let settings = config::Worker {
            lease: terms.lease,
            fallback: terms.fallback,
            batch: terms.concurrency,
            concurrency: terms.concurrency,
            budget: None,
            grace: Duration::from_secs(2),
            backoff: Duration::from_millis(100),
            backoff_max: Duration::from_millis(400),
            ..config::Worker::default()
        };
        let setup = worker::Setup {
            name: worker::unique_name(),
            conninfo: self.conninfo.clone(),
            profiles: vec![self.ledger.profile().clone()],
            settings,
            until_empty: false,
        };
        let book = terms.book.unwrap_or_else(|| self.book.clone());
        let task = Task { book, takes: terms.takes, hang: terms.hang };
        let working = self.worker.start(Post { setup, task, sink: terms.sink });
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.push(working.task.abort_handle());
        working
    }

    /// Waits for a state of the ledger, as long as patience lasts; gives the last tally either way.
    pub(super) async fn wait(&self, reached: impl Fn(&Tally) -> bool) -> Result<Tally, DrillError> {
        let tally = self.until(async || self.ledger.tally(&self.session).await, reached).await;
        tally.map_err(setup)
    }

    /// Waits for what `ask` finds, as long as patience lasts; gives the last answer either way.
    pub(super) async fn until<T>(
        &self,
        ask: impl AsyncFn() -> Result<T, Error>,
        reached: impl Fn(&T) -> bool,
    ) -> Result<T, Error> {
        let end = Instant::now() + self.patience;
        loop {
            let found = ask().await?;
            if reached(&found) || Instant::now() >= end {
                return Ok(found);
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// What the effects table holds.
    pub(super) async fn effects(&self) -> Result<EffectCount, DrillError> {
        ledger::effects(&self.session).await.map_err(setup)
    }

    /// Stops the workers, and judges: `want` is the ledger's final state, and every job done has had its
    /// effect, which was sent `attempted` times in all where that is known.
    pub(super) async fn judge(
        &self,
        workers: Vec<Working>,
        want: Tally,
        attempted: Option<u64>,
    ) -> Result<Verdict, DrillError> {
        for worker in &workers {
            worker.stop.stop();
        }
        for worker in workers {
            let _ = worker.task.await;
        }
        let tally = self.ledger.tally(&self.session).await.map_err(setup)?;
        let effects = self.effects().await?;
        let mut verdict = Verdict::default();
        verdict.evidence.push(format!("{}; {}", words(tally), sent(effects)));
        verdict.expect(tally == want, || format!("the ledger should end with {}", words(want)));
        verdict.expect(effects.applied == want.done, || {
            format!("{} effects should be applied, not {}", want.done, effects.applied)
        });
        let overlaps = self.book.overlaps();
        verdict.expect(overlaps == 0, || format!("{overlaps} jobs were in two hands at the same time"));
        if let Some(n) = attempted {
            verdict.expect(effects.attempted == n, || {
                format!("effects should be sent {n} times, not {}", effects.attempted)
            });
        }
        Ok(verdict)
    }
}

impl Drop for Bench<'_> {
    /// However a drill ends, nothing of it goes on.
    fn drop(&mut self) {
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.iter().for_each(AbortHandle::abort);
    }
}

/// Jobs of a type.
pub(super) fn jobs(job_type: &str, n: usize) -> Vec<NewJob> {
    vec![NewJob { job_type: job_type.to_owned(), payload: "{}".to_owned(), ..NewJob::default() }; n]
}

/// A ledger on which everything is done.
pub(super) fn all_done(n: u64) -> Tally {
    Tally { done: n, ..Tally::default() }
}

fn words(t: Tally) -> String {
    format!("done {}, ready {}, running {}, failed {}", t.done, t.ready, t.running, t.failed)
}

fn sent(e: EffectCount) -> String {
    format!("effects sent {}, applied {}", e.attempted, e.applied)
}
