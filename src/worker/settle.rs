//! Recording how jobs ended, keeping their leases, and the orderly end of the worker.

use std::time::{Duration, Instant};

use tokio::task::{Id, JoinError};
use tokio::time::{sleep, timeout};

use super::Summary;
use super::handler::Handler;
use super::run::{Ended, Run};
use super::scan::backoff;
use crate::ledger::{self, Failure, Finished, Giveback};
use crate::model::WorkerEvent;
use crate::pg::Error;

/// Tries of a record that met a deadlock or serialization failure.
const TRIES: usize = 5;
/// Before a record that could not be made is tried again.
const AGAIN: Duration = Duration::from_millis(250);

impl<H: Handler> Run<H> {
    /// Notes the end of a handler task, and of all others that have ended by now, so that they are
    /// recorded together.
    pub(super) fn handlers_ended(&mut self, first: Result<(Id, Ended), JoinError>) {
        self.handler_ended(first);
        while let Some(next) = self.tasks.try_join_next_with_id() {
            self.handler_ended(next);
        }
    }

    /// A panic is a failed attempt.
    fn handler_ended(&mut self, joined: Result<(Id, Ended), JoinError>) {
        match joined {
            Ok((_, (key, token, how))) => {
                self.inflight.ended(&key, &token, how.map_err(|e| e.to_string()));
            }
            Err(error) if error.is_cancelled() => {}
            Err(error) => {
                let Some((key, token)) = self.inflight.of_task(error.id()) else { return };
                let text = match error.try_into_panic() {
                    Ok(panic) => panic_text(panic.as_ref()),
                    Err(_) => "unknown".to_owned(),
                };
                self.inflight.ended(&key, &token, Err(format!("the handler panicked: {text}")));
            }
        }
    }

    /// Records every ended job, batched: one statement for the done, one for the failed of each ledger.
    pub(super) async fn settle(&mut self, now: Instant) {
        if self.settle_after.is_some_and(|at| at > now) {
            return;
        }
        self.settle_after = None;
        for at in 0..self.served.len() {
            let s = self.setup.settings;
            let mut done = Vec::new();
            let mut failed = Vec::new();
            for (id, held) in self.inflight.unrecorded(at, now) {
                match &held.ended {
                    Some(Ok(())) => done.push((id.to_owned(), held.token.clone())),
                    Some(Err(error)) => failed.push(Failure {
                        id: id.to_owned(),
                        token: held.token.clone(),
                        error: error.clone(),
                        delay: backoff(s.backoff, s.backoff_max, held.attempt, fastrand::f64()),
                    }),
                    None => {}
                }
            }
            if !done.is_empty() {
                let outcome = self.record_done(at, &done).await;
                self.recorded(at, outcome, "done");
            }
            if !failed.is_empty() {
                let outcome = self.record_failed(at, &failed).await;
                self.recorded(at, outcome, "failed");
            }
        }
    }

    async fn record_done(&self, at: usize, done: &[(String, String)]) -> Result<Finished, Error> {
        let Some(session) = &self.session else { return Err(Error::Deadline(Duration::ZERO)) };
        let mut tries = 0;
        loop {
            tries += 1;
            match self.served[at].ledger.done(session, done).await {
                Err(e) if e.is_retryable() && tries < TRIES => {}
                outcome => return outcome,
            }
        }
    }

    async fn record_failed(&self, at: usize, failed: &[Failure]) -> Result<Finished, Error> {
        let Some(session) = &self.session else { return Err(Error::Deadline(Duration::ZERO)) };
        let mut tries = 0;
        loop {
            tries += 1;
            match self.served[at].ledger.failed(session, failed).await {
                Err(e) if e.is_retryable() && tries < TRIES => {}
                outcome => return outcome,
            }
        }
    }

    fn recorded(&mut self, at: usize, outcome: Result<Finished, Error>, what: &str) {
        let finished = match outcome {
            Ok(finished) => finished,
            Err(error) => {
                // The ends are kept and recorded later with the same tokens, for as long as the leases hold.
                if self.session.is_some() {
                    tracing::warn!(reason = %error.loss(), what, "could not record");
                    if error.is_session_lost() {
                        self.session_lost(&error);
                    }
                }
                self.settle_after = Some(Instant::now() + AGAIN);
                return;
            }
        };
        let counters = &mut self.served[at].stats.counters;
        let n = finished.recorded.len() as i64;
        if what == "done" {
            counters.jobs_done += n;
        } else {
            counters.jobs_failed += n;
        }
        for id in finished.recorded {
            self.inflight.remove(&(at, id));
        }
        // A retry may be due before the next fallback scan: look at the head of the order again.
        if what == "failed" && self.served[at].scan.is_none() {
            self.served[at].due_by(Instant::now() + self.setup.settings.backoff);
        }
        for id in finished.lost {
            self.lost(at, &id, what);
        }
        for id in finished.busy {
            self.inflight.busy(&(at, id), Instant::now() + AGAIN);
        }
    }

    pub(super) fn lost(&mut self, at: usize, id: &str, what: &str) {
        self.inflight.remove(&(at, id.to_owned()));
        let served = &mut self.served[at];
        served.stats.counters.jobs_lost += 1;
        let ledger = served.ledger.name().to_owned();
        self.emit(WorkerEvent::Lost { ledger, id: crate::text::clean(id), what: what.to_owned() });
    }

    /// Renews leases at a third of their length; a lease that has moved or is over stops its job.
    pub(super) async fn look_after_leases(&mut self, now: Instant) {
        for at in 0..self.served.len() {
            let due = self.inflight.renewable(at, now);
            if due.is_empty() {
                continue;
            }
            let asked = Instant::now();
            let lease = self.setup.settings.lease;
            let outcome = match &self.session {
                Some(session) => self.served[at].ledger.renew(session, &due, lease).await,
                None => Err(Error::Deadline(Duration::ZERO)),
            };
            match outcome {
                Ok(renewed) => {
                    for (id, _) in renewed.renewed {
                        self.inflight.renewed(&(at, id), asked, lease);
                    }
                    for id in renewed.lost {
                        self.lost(at, &id, "renew");
                    }
                    self.inflight.renew_again(at, &renewed.busy, now);
                }
                Err(error) => {
                    if self.session.is_some() && error.is_session_lost() {
                        self.session_lost(&error);
                    }
                    self.inflight.renew_again(at, due.iter().map(|(id, _)| id), now);
                }
            }
        }
        // Over by our own clock, and the server could not be asked: after this nothing that the job does
        // is covered by its lease. An end that waits to be recorded is still tried: the fence decides.
        for key in self.inflight.overdue(Instant::now()) {
            if self.inflight.get(&key).is_some_and(|h| h.ended.is_none()) {
                self.lost(key.0, &key.1, "renew");
            }
        }
    }

    /// Stops claiming (it has), lets jobs end within the grace time, records them, gives back the rest.
    pub(super) async fn wind_down(&mut self) -> Summary {
        let end = Instant::now() + self.setup.settings.grace;
        while !self.inflight.is_empty() {
            let now = Instant::now();
            self.settle(now).await;
            self.look_after_leases(now).await;
            let left = end.saturating_duration_since(now);
            if self.inflight.is_empty() || left.is_zero() {
                break;
            }
            let pause = left.min(AGAIN);
            match timeout(pause, self.tasks.join_next_with_id()).await {
                Ok(Some(done)) => self.handlers_ended(done),
                // No handler is left, but ends that could not be recorded yet.
                Ok(None) => sleep(pause).await,
                Err(_) => {}
            }
            if self.session.is_none() {
                let left = end.saturating_duration_since(Instant::now());
                self.session = timeout(left, super::connect(&self.setup)).await.ok().and_then(Result::ok);
            }
        }
        // What has ended is recorded rather than given back, and run again, while that is possible at all.
        self.settle_after = None;
        self.settle(Instant::now() + AGAIN).await;
        let mut given_back = 0;
        for at in 0..self.served.len() {
            let mut rest: Vec<Giveback> = self
                .inflight
                .of(at)
                .map(|(id, held)| Giveback { id: id.to_owned(), token: held.token.clone(), started: true })
                .collect();
            for job in &rest {
                // The handler is stopped before the job is anybody else's.
                self.inflight.remove(&(at, job.id.clone()));
            }
            let Some(session) = self.session.as_ref().filter(|_| !rest.is_empty()) else { continue };
            let before = given_back;
            for _ in 0..TRIES {
                match self.served[at].ledger.give_back(session, &rest).await {
                    Ok(outcome) => {
                        given_back += outcome.recorded.len() as u64;
                        rest.retain(|job| outcome.busy.contains(&job.id));
                    }
                    Err(error) => {
                        tracing::warn!(reason = %error.loss(), "could not give jobs back");
                        break;
                    }
                }
                if rest.is_empty() {
                    break;
                }
                // Somebody holds a row locked; without an end to that, its lease ends by itself.
                sleep(AGAIN / 5).await;
            }
            if given_back > before {
                // Somebody else can take them now instead of at their fallback scan.
                let _ = self.served[at].ledger.wake(session).await;
            }
        }
        self.tasks.shutdown().await;
        if let Some(session) = self.session.as_ref().filter(|_| self.reports) {
            let (host, pid) = (super::host_name(), super::process_id());
            let _ = ledger::delete_worker(session, &self.setup.name, &host, pid).await;
        }
        self.emit(WorkerEvent::Stopped { given_back, trouble: None });
        let mut summary = Summary { given_back, ..Summary::default() };
        for served in &self.served {
            let c = &served.stats.counters;
            summary.done += c.jobs_done;
            summary.failed += c.jobs_failed;
            summary.lost += c.jobs_lost;
        }
        summary
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a text".to_owned())
}
