//! The drain worker: wait for a wake-up, claim until nothing is due, and never trust the wake-up for more
//! than a reason to look.
//!
//! ```text
//! connect (back-off with jitter) → LISTEN, committed → drain(startup)
//! loop: wait up to 30 s (jittered) for a wake-up
//!       wake-up → wait out the debounce → drain(notify)
//!       nothing → drain(fallback)
//!       lost    → event with SQLSTATE and message → reconnect with back-off → LISTEN, committed → drain(reconnect)
//! ```
//!
//! A Rust service embeds it with a [`Handler`] of its own; see `examples/embed.rs`.

mod budget;
mod claim;
mod debounce;
mod deferred;
mod ends;
mod exec;
mod group;
mod handler;
mod inflight;
mod lane;
mod prune;
mod reasons;
mod run;
mod scan;
mod settle;
mod stats;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

pub use exec::{Exec, ExecError};
pub use handler::{Handler, HandlerError, Practice};

use crate::config;
use crate::ledger::{self, Ledger, LedgerError, RetentionProblem};
use crate::model::{Event, Listen, Sink};
use crate::pg::{Conninfo, Error, ListenConfig, Listener, Purpose, Session};
use crate::profile::Profile;

/// Everything a worker needs to know.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The holder name on its leases; unique per process.
    pub name: String,
    /// Where to work.
    pub conninfo: Conninfo,
    /// Which ledgers; empty: every built-in one that exists in the database.
    pub profiles: Vec<Profile>,
    /// How.
    pub settings: config::Worker,
    /// End when nothing is due and nothing is held.
    pub until_empty: bool,
}

/// What a worker did in its life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Jobs finished.
    pub done: i64,
    /// Failed attempts.
    pub failed: i64,
    /// Jobs whose lease had moved.
    pub lost: i64,
    /// Times that jobs were put off.
    pub deferred: i64,
    /// Jobs deleted because they were done longer ago than they are kept.
    pub pruned: u64,
    /// Jobs given back at the end.
    pub given_back: u64,
    /// Jobs that had ended when the worker left, whose end the ledger could not be told: they stay leased
    /// and run again when the lease is over.
    pub unrecorded: u64,
}

/// Why a worker could not start.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// No session, or the server refused.
    #[error(transparent)]
    Pg(#[from] Error),
    /// A ledger is missing or does not fit its profile.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// No ledger at all.
    #[error("no ledger of a known profile in this database; create one with: pgwake migrate")]
    NoLedger,
    /// A practice handler on real work.
    #[error(
        "ledger {0} is not marked as scratch: this handler does no work and would mark real jobs as done; \
         for practice, mark an empty ledger with: pgwake migrate --scratch"
    )]
    NotScratch(String),
    /// No lease columns.
    #[error("ledger {0} has no lease columns in its profile; it can be watched but not worked on")]
    NoLease(String),
    /// The role may not update.
    #[error("ledger {0}: this role may not update the table; ask for: grant update on {1}")]
    NoGrant(String, String),
    /// Not to be kept, but not to be deleted either.
    #[error(
        "ledger {0}: keep = \"0\" deletes jobs when they are done, and this role may not; ask for: grant delete on {1}"
    )]
    NoDelete(String, String),
    /// A profile by which jobs cannot be kept for a limited time.
    #[error("ledger {0}: jobs cannot be kept for a limited time, {1}; add it, or use keep = \"forever\"")]
    NoRetention(String, RetentionProblem),
    /// A channel that PostgreSQL would cut.
    #[error("{0}")]
    Channel(String),
}

/// A name that no other worker has: host, process, and a few random letters.
pub fn unique_name() -> String {
    let host = host_name();
    let tail: String = (0..4).map(|_| fastrand::lowercase()).collect();
    format!("{host}:{}:{tail}", std::process::id())
}

/// The name of this host, cleaned.
pub(crate) fn host_name() -> String {
    crate::text::clean(&rustix::system::uname().nodename().to_string_lossy())
}

/// Asks a worker to stop, in order; dropping it does the same.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// A stop that has not been asked for, and the ear for it.
    pub fn new() -> (Self, watch::Receiver<bool>) {
        let (tell, ear) = watch::channel(false);
        (Self(tell), ear)
    }

    /// Stop claiming, finish within the grace time, give back the rest.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// This process.
fn process_id() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}

/// A work session that bears the worker's name.
async fn connect(setup: &Setup) -> Result<Session, Error> {
    let session = Session::connect(&setup.conninfo, Purpose::Work).await?;
    session.label(&setup.name).await?;
    Ok(session)
}

/// Runs a worker until it is stopped (or, with `until_empty`, until nothing is due).
///
/// With `listener` it shares a listen session, which must listen on the channels of its ledgers;
/// without, it opens its own. Once it has started it survives whatever happens to the server.
///
/// # Errors
/// Only at the start: no connection, a ledger that does not fit, or a practice handler on real work.
pub async fn run<H: Handler>(
    setup: Setup,
    handler: H,
    listener: Option<Arc<Listener>>,
    sink: Arc<dyn Sink>,
    stop: watch::Receiver<bool>,
) -> Result<Summary, WorkerError> {
    let session = connect(&setup).await?;
    let ledgers = ledger::open_all(&session, &setup.profiles).await?;
    if ledgers.is_empty() {
        return Err(WorkerError::NoLedger);
    }
    for ledger in &ledgers {
        check(ledger, setup.settings.keep)?;
        if handler.is_practice() && !ledger.is_scratch() {
            return Err(WorkerError::NotScratch(ledger.name().to_owned()));
        }
    }
    let listener = match listener {
        Some(shared) => shared,
        None => {
            let channels = ledgers.iter().filter_map(|l| l.channel().map(str::to_owned)).collect();
            let config =
                ListenConfig::new(setup.conninfo.clone(), channels).map_err(WorkerError::Channel)?;
            let own = sink.clone();
            // Of its own listen session a worker reports losses and returns, not every wake-up.
            let quiet = move |event: Event| match event {
                Event::Listen(Listen::Off) | Event::Wake(_) => {}
                other => own.emit(other),
            };
            Arc::new(Listener::start(config, Arc::new(quiet)))
        }
    };
    let pruner = prune::Pruner::start(&setup, &ledgers, &sink);
    let run = run::Run::prepare(setup, Arc::new(handler), session, ledgers, &listener, sink, stop).await;
    let summary = run.run().await;
    Ok(Summary { pruned: pruner.stop().await, ..summary })
}

/// Whether jobs of a ledger can be worked on, and kept for as long as they should.
fn check(ledger: &Ledger, keep: Option<Duration>) -> Result<(), WorkerError> {
    let (name, relation) = (ledger.name().to_owned(), ledger.profile().relation());
    if !ledger.profile().has_lease() {
        return Err(WorkerError::NoLease(name));
    }
    if !ledger.may_write() {
        return Err(WorkerError::NoGrant(name, relation));
    }
    match keep {
        Some(Duration::ZERO) if !ledger.may_delete() => Err(WorkerError::NoDelete(name, relation)),
        None | Some(Duration::ZERO) => Ok(()),
        Some(_) => ledger.retention().map_err(|why| WorkerError::NoRetention(name, why)),
    }
}
