//! The loop.
//!
//! One task owns everything: it sends claims and ends to the work sessions, takes their answers, starts
//! handlers on tasks of their own, renews leases, and sleeps until the next of these is due. Handlers run
//! beside it; nothing of theirs happens inside a transaction.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use super::budget::Budget;
use super::claim::CONTENDED_PAUSE;
use super::debounce::Debounce;
use super::deferred::Deferred;
use super::handler::{Handler, HandlerError};
use super::inflight::{InFlight, Key};
use super::lane::{Answer, Lane, What};
use super::scan::Served;
use super::stats::{Pace, Times};
use super::{Setup, Summary};
use crate::ledger::{self, Ledger};
use crate::model::{Event, Phases, Sink, Wake, WorkerEvent, WorkerRow};
use crate::pg::{Backoff, Error, ListenState, Listener, Session};

/// At the start: wait this long for LISTEN before the first scan is made without it.
pub(super) const LISTEN_PATIENCE: Duration = Duration::from_secs(3);

/// What a finished handler task says.
pub(super) type Ended = (Key, String, Result<(), HandlerError>, Duration);

/// A reconnect on its way from the loss to the end of its scan.
#[derive(Clone, Copy)]
pub(super) struct Returning {
    pub lost_at: Instant,
    pub phases: Phases,
    pub jobs: u64,
}

pub(super) struct Run<H> {
    pub(super) setup: Setup,
    pub(super) handler: Arc<H>,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) stop: watch::Receiver<bool>,
    pub(super) lanes: Vec<Lane>,
    /// What is under way on the work sessions: on tasks, because an answer that nobody takes holds up those
    /// that follow on its session, and this loop now and then waits for one of its own.
    pub(super) pending: JoinSet<Answer>,
    pub(super) backoff: Backoff,
    pub(super) served: Vec<Served>,
    pub(super) inflight: InFlight,
    pub(super) tasks: JoinSet<Ended>,
    pub(super) debounce: Vec<Debounce>,
    pub(super) budget: Budget,
    pub(super) listen: watch::Receiver<ListenState>,
    pub(super) wakes: broadcast::Receiver<Wake>,
    /// Generation of the listen session that the last startup or reconnect scan covered.
    pub(super) covered: u64,
    /// The covered session is lost, and the loss is counted.
    pub(super) deaf: bool,
    pub(super) returning: Option<Returning>,
    pub(super) started: bool,
    pub(super) turn: usize,
    pub(super) began: Instant,
    pub(super) fallback_at: Instant,
    pub(super) heartbeat_at: Instant,
    pub(super) reports: bool,
    pub(super) reconnects: i64,
    pub(super) recovery: Times,
    /// No end is sent to the ledger before this.
    pub(super) settle_after: Option<Instant>,
    /// How long handlers take.
    pub(super) pace: Pace,
    pub(super) deferred: Deferred,
    /// Ended jobs that were left to their leases.
    pub(super) unrecorded: u64,
}

impl<H: Handler> Run<H> {
    pub(super) async fn prepare(
        setup: Setup,
        handler: Arc<H>,
        session: Session,
        ledgers: Vec<Ledger>,
        listener: &Arc<Listener>,
        sink: Arc<dyn Sink>,
        stop: watch::Receiver<bool>,
    ) -> RunWith<H> {
        let now = Instant::now();
        // Where the schema has no table of workers, or the role may not write it, the worker works unseen.
        let reports = ledger::has_workers(&session).await.unwrap_or(false);
        let s = setup.settings;
        let served: Vec<Served> =
            ledgers.into_iter().map(|l| Served::new(l, s.keep == Some(Duration::ZERO))).collect();
        let mut run = Self {
            budget: Budget::new(s.budget, s.budget_window, now),
            debounce: served.iter().map(|_| Debounce::new(s.debounce, s.eager)).collect(),
            listen: listener.state(),
            wakes: listener.wakes(),
            setup,
            handler,
            sink,
            stop,
            lanes: Vec::new(),
            pending: JoinSet::new(),
            backoff: Backoff::new(),
            served,
            inflight: InFlight::default(),
            tasks: JoinSet::new(),
            covered: 0,
            deaf: false,
            returning: None,
            started: false,
            turn: 0,
            began: now,
            fallback_at: now + s.fallback,
            heartbeat_at: now,
            reports,
            reconnects: 0,
            recovery: Times::new(),
            settle_after: None,
            pace: Pace::default(),
            deferred: Deferred::default(),
            unrecorded: 0,
        };
        run.lanes.resize_with(s.sessions.max(1), Lane::default);
        run.connected(0, session);
        RunWith { run, _listener: listener.clone() }
    }

    pub(super) fn emit(&self, event: WorkerEvent) {
        self.sink.emit(Event::Worker(event));
    }

    async fn drain_forever(&mut self) -> Summary {
        self.emit(WorkerEvent::Started { name: self.setup.name.clone() });
        while !self.is_stopping() {
            let now = Instant::now();
            self.ensure_sessions(now);
            self.look_after_leases(now).await;
            self.heartbeat(now).await;
            self.begin_scans(now);
            self.claim_ahead(now).await;
            self.start_handlers();
            self.settle(now);
            if self.setup.until_empty && self.is_empty_handed() {
                break;
            }
            self.wait().await;
        }
        self.wind_down().await
    }

    /// Asked to stop, or nobody is left who could ask.
    fn is_stopping(&self) -> bool {
        *self.stop.borrow() || self.stop.has_changed().is_err()
    }

    /// Sleeps until something happens.
    async fn wait(&mut self) {
        let until = self.next_deadline();
        tokio::select! {
            biased;
            _ = self.stop.changed() => {}
            Some(Ok(answer)) = self.pending.join_next() => self.answered(answer),
            Some(done) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => self.handlers_ended(done),
            // A listener that has ended (there is no channel) has nothing to say, again and again.
            Ok(()) = self.listen.changed() => self.listen_changed(),
            wake = self.wakes.recv() => self.woke(wake),
            () = sleep_until(until.into()) => {}
        }
    }

    /// Takes an answer of a work session.
    pub(super) fn answered(&mut self, answer: Answer) {
        let (lane, serial) = (answer.lane, answer.serial);
        match answer.what {
            What::Connected(outcome) => {
                self.lanes[lane].connecting = false;
                match outcome {
                    Ok(session) => {
                        self.connected(lane, session);
                        self.heartbeat_at = Instant::now();
                    }
                    Err(error) => {
                        let pause = self.backoff.failed();
                        tracing::warn!(reason = %error, pause_ms = pause.as_millis() as u64, "cannot connect");
                        self.lanes[lane].reconnect_at = Some(Instant::now() + pause);
                    }
                }
            }
            What::Ended(error) => self.session_lost(lane, serial, &error),
            What::Claimed(asked, took, outcome) => self.claim_answered(lane, serial, asked, took, outcome),
            What::Looked(asked, took, outcome) => self.looked(lane, serial, asked, took, outcome),
            What::Recorded(ledger, kind, claims, outcome) => {
                if self.lanes[lane].serial == serial {
                    self.lanes[lane].recording -= 1;
                }
                self.recorded(lane, serial, ledger, kind, &claims, outcome);
            }
        }
    }

    fn next_deadline(&self) -> Instant {
        let mut next = self.fallback_at;
        let mut sooner = |at: Option<Instant>| {
            if let Some(at) = at {
                next = next.min(at);
            }
        };
        sooner(self.inflight.next_lease());
        sooner(self.next_settle());
        sooner(self.reports.then_some(self.heartbeat_at));
        for lane in self.lanes.iter().filter(|l| l.session.is_none() && !l.connecting) {
            sooner(lane.reconnect_at);
        }
        sooner((!self.started).then(|| self.began + LISTEN_PATIENCE));
        for (served, debounce) in self.served.iter().zip(&self.debounce) {
            sooner(debounce.due());
            sooner(served.next_due.map(|(at, _)| at));
        }
        if self.budget.is_waiting() && self.served.iter().any(|s| s.scan.is_some()) {
            sooner(Some(self.budget.reopens()));
        }
        next
    }

    /// A session of use, the first one if it lives, with its place.
    pub(super) fn session(&self) -> Option<(usize, u64, Arc<Session>)> {
        let live = |(i, l): (usize, &Lane)| Some((i, l.serial, l.session.clone()?));
        self.lanes.iter().enumerate().find_map(live)
    }

    fn connected(&mut self, at: usize, session: Session) {
        let lane = &mut self.lanes[at];
        let serial = lane.serial + 1;
        let session = Arc::new(session);
        let mut ended = session.ended();
        *lane = Lane { session: Some(session), serial, ..Lane::default() };
        self.pending.spawn(async move {
            let loss = ended.wait_for(Option::is_some).await.ok().and_then(|loss| loss.clone());
            let loss = loss.unwrap_or_else(crate::pg::closed);
            Answer { lane: at, serial, what: What::Ended(Error::Statement(loss)) }
        });
    }

    pub(super) fn session_lost(&mut self, at: usize, serial: u64, error: &Error) {
        let lane = &mut self.lanes[at];
        if lane.serial != serial || lane.session.take().is_none() {
            return;
        }
        tracing::warn!(reason = %error.loss(), "a work session was lost");
        // The first attempt to come back is made at once; if the new session was of no use either, the next
        // ones wait longer and longer.
        let first = self.backoff.attempts() == 0;
        let pause = self.backoff.failed();
        lane.reconnect_at = Some(Instant::now() + if first { Duration::ZERO } else { pause });
    }

    /// Opens the sessions that are not there, each when its time has come.
    pub(super) fn ensure_sessions(&mut self, now: Instant) {
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            if lane.session.is_some() || lane.connecting || lane.reconnect_at.is_some_and(|t| t > now) {
                continue;
            }
            lane.connecting = true;
            let (setup, serial) = (self.setup.clone(), lane.serial);
            self.pending.spawn(async move {
                Answer { lane: at, serial, what: What::Connected(super::connect(&setup).await) }
            });
        }
    }

    async fn heartbeat(&mut self, now: Instant) {
        if !self.reports || now < self.heartbeat_at {
            return;
        }
        self.heartbeat_at = now + self.setup.settings.heartbeat;
        let Some((lane, serial, session)) = self.session() else { return };
        for i in 0..self.served.len() {
            if let Err(error) = ledger::upsert_worker(&session, &self.row(i)).await {
                if error.is_session_lost() {
                    self.session_lost(lane, serial, &error);
                }
                return;
            }
        }
        // The session is good for writing.
        self.backoff = Backoff::new();
    }

    fn row(&self, i: usize) -> WorkerRow {
        let served = &self.served[i];
        WorkerRow {
            name: self.setup.name.clone(),
            ledger: served.ledger.name().to_owned(),
            host: super::host_name(),
            pid: super::process_id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            // Both are set by the server.
            started_at: chrono::DateTime::UNIX_EPOCH,
            seen_at: chrono::DateTime::UNIX_EPOCH,
            counters: served.stats.counters,
            reconnects: self.reconnects,
            recovery: self.recovery.percentiles(),
            wake_latency: served.stats.wake.percentiles(),
            claim: served.stats.claim.percentiles(),
            budget: self.budget.state(),
        }
    }

    /// Nothing is being drained, nothing is in hand, and the last look found nothing due.
    fn is_empty_handed(&self) -> bool {
        self.started
            && self.inflight.is_empty()
            && self.served.iter().all(|s| {
                s.scan.is_none()
                    && s.asked == 0
                    && !s.unfinished
                    && s.next_due.is_none_or(|(due, _)| due > Instant::now() + CONTENDED_PAUSE)
            })
    }
}

/// A run with the listen session it needs to stay alive.
pub(super) struct RunWith<H> {
    run: Run<H>,
    _listener: Arc<Listener>,
}

impl<H: Handler> RunWith<H> {
    pub(super) async fn run(mut self) -> Summary {
        self.run.drain_forever().await
    }
}
