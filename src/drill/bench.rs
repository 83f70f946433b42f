//! A scratch database and the means to work on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::DrillError;
use crate::config;
use crate::demo::Server;
use crate::ledger::{self, Job, Ledger, NewJob, Tally};
use crate::model::{Event, Sink};
use crate::pg::{Conninfo, Options, Purpose, Session};
use crate::profile::Profile;
use crate::worker::{self, Handler, HandlerError, Stop, Summary, WorkerError};

/// No drill waits longer for a state.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often each job's effect was begun and ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects(Arc<Mutex<BTreeMap<String, (u32, u32)>>>);

impl Effects {
    fn with<T>(&self, f: impl FnOnce(&mut BTreeMap<String, (u32, u32)>) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Jobs whose handler began.
    pub(super) fn begun(&self) -> usize {
        self.with(|m| m.len())
    }

    /// Jobs that ended exactly once.
    pub(super) fn ended_once(&self) -> usize {
        self.with(|m| m.values().filter(|(_, ended)| *ended == 1).count())
    }
}

/// Takes its time, and notes that it began and ended.
#[derive(Clone, Debug)]
pub(super) struct Noting {
    pub effects: Effects,
    pub takes: Duration,
}

impl Handler for Noting {
    async fn handle(&self, job: Job) -> Result<(), HandlerError> {
        self.effects.with(|m| m.entry(job.id.clone()).or_default().0 += 1);
        sleep(self.takes).await;
        self.effects.with(|m| m.entry(job.id).or_default().1 += 1);
        Ok(())
    }

    fn is_practice(&self) -> bool {
        true
    }
}

/// A running worker of a drill.
pub(super) struct Working {
    pub stop: Stop,
    pub task: JoinHandle<Result<Summary, WorkerError>>,
}

/// A migrated scratch database with the ledger `jobs`.
pub(super) struct Bench {
    pub conninfo: Conninfo,
    pub session: Session,
    pub jobs: Ledger,
}

impl Bench {
    pub(super) async fn new(server: &Server, name: &str) -> Result<Self, DrillError> {
        let setup = |e: &dyn std::fmt::Display| DrillError::Setup(e.to_string());
        let text = server.conninfo("postgres");
        let options = Options { conninfo: Some(text), ..Options::default() };
        let admin = Conninfo::resolve(&options, &|_| None).map_err(|e| setup(&e))?;
        let session = Session::connect(&admin, Purpose::Command).await.map_err(|e| setup(&e))?;
        let dbname = format!("drill_{}", name.replace('-', "_"));
        ledger::create_database(&session, &dbname).await.map_err(|e| setup(&e))?;
        let conninfo = admin.with_dbname(dbname);
        let mut session = Session::connect(&conninfo, Purpose::Command).await.map_err(|e| setup(&e))?;
        ledger::migrate(&mut session).await.map_err(|e| setup(&e))?;
        let profile = Profile::find("jobs").map_err(|e| setup(&e))?;
        let jobs = Ledger::open(&session, profile.clone()).await.map_err(|e| setup(&e))?;
        ledger::mark_scratch(&session, &jobs).await.map_err(|e| setup(&e))?;
        let jobs = Ledger::open(&session, profile).await.map_err(|e| setup(&e))?;
        Ok(Self { conninfo, session, jobs })
    }

    /// Commits `n` jobs in one transaction.
    pub(super) async fn enqueue(&self, n: usize) -> Result<(), DrillError> {
        let job = NewJob { job_type: "drill".to_owned(), payload: "{}".to_owned(), ..NewJob::default() };
        let added = self.jobs.enqueue(&self.session, &vec![job; n]).await;
        added.map(drop).map_err(|e| DrillError::Setup(e.to_string()))
    }

    /// Starts a worker with this handler.
    pub(super) fn work(&self, handler: Noting, lease: Duration, sink: Arc<dyn Sink>) -> Working {
        let settings = config::Worker {
            lease,
            fallback: Duration::from_secs(1),
            budget: None,
            grace: Duration::from_secs(2),
            ..config::Worker::default()
        };
        let setup = worker::Setup {
            name: worker::unique_name(),
            conninfo: self.conninfo.clone(),
            profiles: vec![self.jobs.profile().clone()],
            settings,
            until_empty: false,
        };
        let (stop, ear): (Stop, watch::Receiver<bool>) = Stop::new();
        let task = tokio::spawn(worker::run(setup, handler, None, sink, ear));
        Working { stop, task }
    }

    /// Waits for a state of the ledger, as long as patience lasts; gives the last tally either way.
    pub(super) async fn wait(&self, reached: impl Fn(&Tally) -> bool) -> Result<Tally, DrillError> {
        let end = Instant::now() + PATIENCE;
        loop {
            let tally =
                self.jobs.tally(&self.session).await.map_err(|e| DrillError::Setup(e.to_string()))?;
            if reached(&tally) || Instant::now() >= end {
                return Ok(tally);
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Events nobody looks at.
pub(super) fn unheard() -> Arc<dyn Sink> {
    Arc::new(|_: Event| ())
}
