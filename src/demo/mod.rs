//! A throwaway PostgreSQL to play with: found, started, broken on purpose, and gone without a trace.
//!
//! [`Server`] is the server alone; [`Demo`] puts producers and workers of different temper on it.

pub mod binaries;
mod cluster;
mod controls;
mod crew;
mod faults;
mod folder;
mod jams;
mod load;
mod reaper;
pub mod server;

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

pub use binaries::{Binaries, NoBinaries};
pub use server::{Halt, Options, Server, ServerError};

use crate::config;
use crate::ledger::{self, LedgerError, ScratchError};
use crate::model::{Event, Sink};
use crate::pg::{self, Conninfo, ConninfoError, Purpose, Session};
use crate::profile::{Profile, builtin};
use controls::Controls;
use crew::{Crew, Plan};
use jams::Jam;

/// The database of the demo.
const DATABASE: &str = "demo";

/// The lease of a worker that is not doomed.
pub const LEASE: Duration = Duration::from_secs(30);

/// How the demo is set up.
#[derive(Clone)]
pub struct DemoOptions {
    /// The folder of `initdb` and `postgres`; searched for if none is given.
    pub pg_bin: Option<PathBuf>,
    /// Jobs per second. The workers manage a bit more than the default.
    pub rate: f64,
    /// The workers' fallback interval: shorter than in earnest, for nobody likes to wait in a demo.
    pub fallback: Duration,
    /// The lease of the worker that dies.
    pub doomed_lease: Duration,
    /// It dies by itself after about this time.
    pub doomed_life: Duration,
    /// A frozen process of the server goes on after this time: a heartbeat has found out before.
    pub frozen_for: Duration,
    /// Where notes go: a worker died, a worker lost its listen session.
    pub sink: Option<Arc<dyn Sink>>,
}

impl Default for DemoOptions {
    fn default() -> Self {
        Self {
            pg_bin: None,
            rate: 40.0,
            fallback: Duration::from_secs(15),
            doomed_lease: Duration::from_secs(18),
            doomed_life: Duration::from_secs(50),
            frozen_for: Duration::from_secs(30),
            sink: None,
        }
    }
}

/// Why there is no demo, or a fault was not injected. One line each.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// No server.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server cannot be reached, or refused.
    #[error(transparent)]
    Pg(#[from] pg::Error),
    /// The server's own connection string was not understood.
    #[error(transparent)]
    Conninfo(#[from] ConninfoError),
    /// A ledger does not fit its profile.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A ledger could not be marked for practice.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// A built-in profile is missing.
    #[error("the built-in profiles jobs and outbox are not usable")]
    NoLedger,
    /// No worker left to crash.
    #[error("there is no worker to crash: all are dead, or the demo is ending")]
    NobodyToCrash,
    /// No listen session to freeze.
    #[error("nobody listens at this moment")]
    NobodyListens,
    /// It is over.
    #[error("the demo is ending")]
    Over,
    /// A blocking task did not come to its end.
    #[error("starting the demo was interrupted: {0}")]
    Interrupted(#[from] JoinError),
}

/// A running demo. Dropping it, or the end of this process in any way, stops the server and removes its
/// folder; [`Demo::shutdown`] lets the workers end in order before that.
pub struct Demo {
    conninfo: Conninfo,
    profiles: [Profile; 2],
    controls: Controls,
    doomed_lease: Duration,
    frozen_for: Duration,
    producers: JoinHandle<()>,
    plan: Plan,
    // `None` while every worker is dead, by a fault
    crew: Mutex<Option<Crew>>,
    runtime: Handle,
    // of a listener that is in a transaction, by a fault
    careless: Mutex<Option<Session>>,
    // what holds the queue up until it is chosen again
    jams: Mutex<Vec<Jam>>,
    publishers: AtomicU64,
    // last: nothing that uses it outlives it
    server: Shared,
}

/// The server, which faults restart; `None` when the demo is over.
type Shared = Arc<std::sync::Mutex<Option<Server>>>;

impl Demo {
    /// Starts a server, creates the ledgers, and puts producers and workers to work on the current
    /// runtime.
    ///
    /// # Errors
    /// One line that says what is missing; nothing is left behind then.
    pub async fn start(options: DemoOptions) -> Result<Self, DemoError> {
        let profiles = profiles()?;
        // There is no standby; with this, only who asks for it ever waits for one.
        let settings = vec![("synchronous_commit".to_owned(), "local".to_owned())];
        let server_options = Options { pg_bin: options.pg_bin, settings, ..Options::default() };
        let server = spawn_blocking(move || Server::start(server_options)).await??;
        let connect = |db| {
            let given = pg::Options { conninfo: Some(server.conninfo(db)), ..pg::Options::default() };
            // Not the environment's: the server is nobody else's.
            Conninfo::resolve(&given, &|_| None)
        };
        let admin = Session::connect(&connect("postgres")?, Purpose::Command).await?;
        ledger::create_database(&admin, DATABASE).await?;
        let conninfo = connect(DATABASE)?;
        let mut session = Session::connect(&conninfo, Purpose::Command).await?;
        ledger::migrate(&mut session).await?;
        for ledger in ledger::open_all(&session, &profiles).await? {
            ledger::mark_scratch(&session, &ledger).await?;
        }

        let controls = Controls::new(options.rate);
        let plan = Plan {
            conninfo: conninfo.clone(),
            profiles: profiles.clone(),
            settings: crew_settings(options.fallback),
            doomed_lease: options.doomed_lease,
            doomed_life: options.doomed_life,
            sink: options.sink.unwrap_or_else(|| Arc::new(|_: Event| {})),
        };
        let crew = Crew::start(&plan);
        let producers = tokio::spawn(load::produce(conninfo.clone(), profiles.clone(), controls.clone()));
        Ok(Self {
            conninfo,
            profiles,
            controls,
            doomed_lease: options.doomed_lease,
            frozen_for: options.frozen_for,
            producers,
            plan,
            crew: Mutex::new(Some(crew)),
            runtime: Handle::current(),
            careless: Mutex::new(None),
            jams: Mutex::new(Vec::new()),
            publishers: AtomicU64::new(0),
            server: Arc::new(std::sync::Mutex::new(Some(server))),
        })
    }

    /// Where the demo's database is.
    pub fn conninfo(&self) -> &Conninfo {
        &self.conninfo
    }

    /// A command for a curious person.
    pub fn psql_hint(&self) -> String {
        let hint = self.server(|server| {
            format!(
                "psql -h {} -p {} -U {} -d {DATABASE}",
                server.socket_dir().display(),
                server.port(),
                server::SUPERUSER
            )
        });
        hint.unwrap_or_default()
    }

    /// Asks the server underneath; `None` when the demo is over. It waits while the server is restarted.
    pub fn server<T>(&self, ask: impl FnOnce(&Server) -> T) -> Option<T> {
        locked(&self.server).as_ref().map(ask)
    }

    /// Jobs per second, as set.
    pub fn rate(&self) -> f64 {
        self.controls.rate()
    }

    /// Sets the jobs per second, within 0–5000.
    pub fn set_rate(&self, rate: f64) {
        self.controls.set_rate(rate);
    }

    /// Whether producers commit without a wake-up at this moment.
    pub fn is_muted(&self) -> bool {
        self.controls.is_muted()
    }

    /// Stops producers and workers in order, then the server, and removes the folder.
    ///
    /// # Errors
    /// The server could not be stopped in order; it is gone all the same.
    pub async fn shutdown(mut self) -> Result<(), DemoError> {
        self.producers.abort();
        if let Some(crew) = self.crew.get_mut().take() {
            crew.stop().await;
        }
        let server = locked(&self.server).take();
        if let Some(server) = server {
            spawn_blocking(move || server.stop()).await??;
        }
        Ok(())
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.producers.abort();
        // Here, whoever else still has a hand on it.
        drop(locked(&self.server).take());
    }
}

fn locked(server: &Shared) -> MutexGuard<'_, Option<Server>> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

fn profiles() -> Result<[Profile; 2], DemoError> {
    match (builtin("jobs"), builtin("outbox")) {
        (Some(Ok(jobs)), Some(Ok(outbox))) => Ok([jobs, outbox]),
        _ => Err(DemoError::NoLedger),
    }
}

/// Two steady workers with these slots manage the default rate, but for its tops.
fn crew_settings(fallback: Duration) -> config::Worker {
    config::Worker {
        batch: 3,
        concurrency: 3,
        fallback,
        // Short, so that bars are seen draining; renewed all the same.
        lease: LEASE,
        // Above what one of them manages in a window, so that a slow machine does not stall the demo.
        budget: Some(600),
        grace: Duration::from_secs(3),
        ..config::Worker::default()
    }
}
