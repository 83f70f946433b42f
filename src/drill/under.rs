//! The worker under test, and the work that drills give it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::ledger::{self, Job};
use crate::model::Sink;
use crate::pg::{Conninfo, Error, Purpose, Session};
use crate::worker::{self, Handler, HandlerError, Stop, Summary, WorkerError};

/// What a worker is told.
pub struct Post {
    /// Where, on which ledger, how.
    pub setup: worker::Setup,
    /// The work.
    pub task: Task,
    /// What it reports.
    pub sink: Arc<dyn Sink>,
}

/// A running worker of a drill.
pub struct Working {
    /// Asks it to stop in order.
    pub stop: Stop,
    /// Ends with it; aborting it is a crash: nothing is given back, nothing is recorded.
    pub task: JoinHandle<Result<Summary, WorkerError>>,
}

/// A kind of worker that drills can be run with. A drill that no worker can fail proves nothing: the
/// tests run each with one that is wrong on purpose.
pub trait Worker: Send + Sync {
    /// Starts one on a task of its own.
    fn start(&self, post: Post) -> Working;

    /// A program and its first arguments that behaves as `pgwake`, for drills that need a process.
    fn program(&self) -> Vec<OsString>;
}

/// The worker of this program.
pub struct Ours;

impl Worker for Ours {
    fn start(&self, post: Post) -> Working {
        let (stop, ear) = Stop::new();
        let task = tokio::spawn(worker::run(post.setup, post.task, None, post.sink, ear));
        Working { stop, task }
    }

    fn program(&self) -> Vec<OsString> {
        std::env::current_exe().map(|path| vec![path.into_os_string()]).unwrap_or_default()
    }
}

/// Effects go on being sent for this long while the server is away.
const SEND_WITHIN: Duration = Duration::from_secs(30);

/// Where handlers write down what they do: in the effects table, on a session of their own, and in memory
/// who has which job in hand.
pub(super) struct Book {
    conninfo: Conninfo,
    session: tokio::sync::Mutex<Option<Session>>,
    in_hand: Mutex<BTreeMap<String, u32>>,
    overlaps: AtomicU64,
}

impl Book {
    pub(super) fn new(conninfo: Conninfo) -> Arc<Self> {
        Arc::new(Self {
            conninfo,
            session: tokio::sync::Mutex::default(),
            in_hand: Mutex::default(),
            overlaps: AtomicU64::new(0),
        })
    }

    /// How often a job was begun while another handler had it in hand.
    pub(super) fn overlaps(&self) -> u64 {
        self.overlaps.load(Ordering::Relaxed)
    }

    /// Jobs in hand.
    pub(super) fn in_hand(&self) -> u32 {
        self.with_hands(|hands| hands.values().sum())
    }

    fn with_hands<T>(&self, f: impl FnOnce(&mut BTreeMap<String, u32>) -> T) -> T {
        f(&mut self.in_hand.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes an attempt, with its effect or without, however often the session must be opened anew.
    async fn write(&self, key: &str, with_effect: bool) -> Result<(), Error> {
        let end = Instant::now() + SEND_WITHIN;
        loop {
            match self.try_write(key, with_effect).await {
                Err(_) if Instant::now() < end => sleep(Duration::from_millis(50)).await,
                result => return result,
            }
        }
    }

    async fn try_write(&self, key: &str, with_effect: bool) -> Result<(), Error> {
        let mut kept = self.session.lock().await;
        let session = match kept.take() {
            Some(session) => session,
            None => Session::connect(&self.conninfo, Purpose::Command).await?,
        };
        if with_effect {
            ledger::send_effect(&session, key).await?;
        } else {
            ledger::note_attempt(&session, key).await?;
        }
        *kept = Some(session);
        Ok(())
    }
}

/// A job in hand, until its handler ends or is dropped.
struct InHand {
    book: Arc<Book>,
    key: String,
}

impl InHand {
    fn take(book: &Arc<Book>, key: &str) -> Self {
        let others = book.with_hands(|hands| {
            let n = hands.entry(key.to_owned()).or_default();
            *n += 1;
            *n - 1
        });
        if others > 0 {
            book.overlaps.fetch_add(1, Ordering::Relaxed);
        }
        Self { book: book.clone(), key: key.to_owned() }
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.book.with_hands(|hands| {
            if let Some(n) = hands.get_mut(&self.key) {
                *n = n.saturating_sub(1);
            }
        });
    }
}

/// Jobs of this type fail at every attempt.
pub(super) const POISON: &str = "poison";

/// Where a handler comes to a standstill, and waits for its worker's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hang {
    /// Before it has done anything.
    AtOnce,
    /// With odd ids before the effect, with even ids after it.
    AroundEffect,
}

/// The work of every drill: takes its time, then sends one effect, keyed by the job's id.
#[derive(Clone)]
pub struct Task {
    pub(super) book: Arc<Book>,
    pub(super) takes: Duration,
    pub(super) hang: Option<Hang>,
}

impl Handler for Task {
    async fn handle(&self, job: Job) -> Result<(), HandlerError> {
        let _in_hand = InHand::take(&self.book, &job.id);
        let failed = |e: Error| HandlerError::new(e.to_string());
        let odd = job.id.ends_with(['1', '3', '5', '7', '9']);
        match self.hang {
            Some(Hang::AtOnce) => return std::future::pending().await,
            Some(Hang::AroundEffect) if odd => return std::future::pending().await,
            _ => sleep(self.takes).await,
        }
        let is_poison = job.job_type == POISON;
        self.book.write(&job.id, !is_poison).await.map_err(failed)?;
        if self.hang.is_some() {
            return std::future::pending().await;
        }
        if is_poison { Err(HandlerError::new("poison")) } else { Ok(()) }
    }

    fn is_practice(&self) -> bool {
        true
    }
}
