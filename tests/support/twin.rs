//! A worker in a page, right or wrong on purpose: what a drill must be able to tell apart.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use pgwake::drill::{Post, Task, Worker, Working};
use pgwake::ledger::{Failure, Giveback, Job, Ledger, listen_in_transaction};
use pgwake::model::Event;
use pgwake::pg::{Error, ListenConfig, ListenState, Listener, Purpose, Session};
use pgwake::worker::{Handler, Setup, Stop, Summary};
use tokio::sync::watch;
use tokio::time::sleep;

/// What it does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Nothing: when this one passes and another fails, it is the flaw that the drill found.
    None,
    /// Looks only when it is woken: never at its start.
    NoStartupScan,
    /// Begins to listen when its first scan is over.
    ListensAfterScan,
    /// Never looks without a wake-up.
    NoFallback,
    /// Trusts the number of wake-ups: takes one job for each.
    OneJobPerWakeup,
    /// Leaves the jobs of dead workers alone.
    NoTakeover,
    /// Gives a failed job back as if it had not been tried.
    EndlessRetries,
    /// Says that a job is done before it does it.
    DoneFirst,
    /// Does not look when its listen session is back.
    NoScanOnReconnect,
    /// Believes in its listen session for as long as its socket is open.
    NoHeartbeat,
    /// Ends with its session.
    NoReconnect,
    /// Listens on a second session, inside a transaction that stays open.
    ListensInTransaction,
    /// Completes by the job's id, whoever holds it.
    NoToken,
}

#[derive(Clone)]
pub struct Twin {
    pub flaw: Flaw,
    pub program: Vec<OsString>,
}

impl Twin {
    pub fn with(flaw: Flaw) -> Self {
        Self { flaw, program: vec![env!("CARGO_BIN_EXE_pgwake").into()] }
    }

    /// Another program in the place of `pgwake`.
    pub fn process(program: &[&str]) -> Self {
        Self { flaw: Flaw::None, program: program.iter().map(OsString::from).collect() }
    }
}

impl Worker for Twin {
    fn start(&self, post: Post) -> Working {
        let (stop, ear) = Stop::new();
        let life = Life { flaw: self.flaw, setup: post.setup, task: post.task };
        let task = tokio::spawn(async move {
            life.run(ear).await;
            Ok(Summary::default())
        });
        Working { stop, task }
    }

    fn program(&self) -> Vec<OsString> {
        self.program.clone()
    }
}

struct Life {
    flaw: Flaw,
    setup: Setup,
    task: Task,
}

impl Life {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut config = ListenConfig::new(
            self.setup.conninfo.clone(),
            self.setup.profiles[0].channel.clone().into_iter().collect(),
        )
        .unwrap();
        if self.has(Flaw::NoHeartbeat) {
            config.heartbeat = Duration::from_secs(3600);
        }
        let mut second = None;
        if self.has(Flaw::ListensInTransaction) {
            let session = Session::connect(&self.setup.conninfo, Purpose::Listen).await.unwrap();
            listen_in_transaction(&session, &config.channels[0]).await.unwrap();
            second = Some(session);
        }
        if self.has(Flaw::ListensAfterScan) {
            self.drain().await.unwrap();
        }
        let listener = Listener::start(config, Arc::new(|_: Event| ()));
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => {}
            () = self.live(&listener) => {}
        }
        drop(second);
    }

    async fn live(&self, listener: &Listener) {
        let mut wakes = listener.wakes();
        let mut state = listener.state();
        let mut due = !self.has(Flaw::NoStartupScan) && !self.has(Flaw::ListensAfterScan);
        let _ = state.wait_for(|s| matches!(s, ListenState::Up { .. })).await;
        loop {
            if due && self.drain().await.is_err() {
                if self.has(Flaw::NoReconnect) {
                    return;
                }
                sleep(Duration::from_millis(50)).await;
                continue;
            }
            let fallback = if self.has(Flaw::NoFallback) {
                Duration::from_secs(3600)
            } else {
                self.setup.settings.fallback
            };
            due = tokio::select! {
                _ = wakes.recv() => true,
                changed = state.changed() => {
                    changed.unwrap();
                    !self.has(Flaw::NoScanOnReconnect) && matches!(*state.borrow_and_update(), ListenState::Up { .. })
                }
                () = sleep(fallback) => true,
            };
        }
    }

    /// Claims until nothing is due.
    async fn drain(&self) -> Result<(), Error> {
        let session = Session::connect(&self.setup.conninfo, Purpose::Work).await?;
        let ledger = Ledger::open(&session, self.setup.profiles[0].clone()).await.map_err(|e| match e {
            pgwake::ledger::LedgerError::Pg(e) => e,
            other => panic!("{other}"),
        })?;
        let s = &self.setup.settings;
        let batch = if self.has(Flaw::OneJobPerWakeup) { 1 } else { s.batch };
        loop {
            let claim = ledger.claim(&session, &self.setup.name, batch, s.lease).await?;
            if claim.jobs.is_empty() {
                return Ok(());
            }
            let jobs: Vec<Job> =
                claim.jobs.into_iter().filter(|j| !(self.has(Flaw::NoTakeover) && j.was_expired)).collect();
            join_all(jobs.into_iter().map(|job| self.handle(&ledger, &session, job))).await;
            if self.has(Flaw::OneJobPerWakeup) {
                return Ok(());
            }
        }
    }

    async fn handle(&self, ledger: &Ledger, session: &Session, job: Job) {
        let (id, token) = (job.id.clone(), job.token.clone());
        if self.has(Flaw::DoneFirst) {
            let _ = ledger.done(session, &[(id.clone(), token.clone())]).await;
        }
        match self.task.handle(job).await {
            Ok(()) if self.has(Flaw::NoToken) => {
                let sql = format!(
                    "update pgwake.jobs set status = 'done', finished_at = now(), locked_by = null, \
                     locked_until = null, lease_token = null where id = {id}"
                );
                drop(session.batch(&sql, Duration::from_secs(5)).await);
            }
            Ok(()) => drop(ledger.done(session, &[(id, token)]).await),
            Err(_) if self.has(Flaw::EndlessRetries) => {
                drop(ledger.give_back(session, &[Giveback { id, token, started: false }]).await);
            }
            Err(e) => {
                let failure =
                    Failure { id, token, error: e.to_string(), delay: Duration::from_millis(100) };
                drop(ledger.failed(session, &[failure]).await);
            }
        }
    }
}
