//! Recording how jobs ended, keeping their leases, and the orderly end of the worker.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tokio::task::{Id, JoinError};
use tokio::time::sleep;

use super::Summary;
use super::ends::{Ends, TRIES};
use super::handler::{Handler, HandlerError};
use super::inflight::Stage;
use super::lane::{Answer, Kind, What};
use super::run::{Ended, Run};
use super::scan::backoff;
use crate::ledger::{self, Failure, Finished, Giveback};
use crate::model::WorkerEvent;
use crate::pg::Error;

/// Before a record that could not be made is tried again.
const AGAIN: Duration = Duration::from_millis(250);
/// An end waits this long at most for others to be recorded with it.
const FLUSH: Duration = Duration::from_millis(2);
/// Ends that one statement records at most.
const MOST: usize = 1000;
/// After the grace time: how long answers that are under way are waited for.
const LAST_WORD: Duration = Duration::from_secs(2);

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
        let now = Instant::now();
        match joined {
            Ok((_, (key, token, how, took))) => {
                self.pace.record(took);
                self.inflight.ended(key, &token, how, now);
            }
            Err(error) if error.is_cancelled() => {}
            Err(error) => {
                let Some((key, token)) = self.inflight.of_task(error.id()) else { return };
                let text = match error.try_into_panic() {
                    Ok(panic) => panic_text(panic.as_ref()),
                    Err(_) => "unknown".to_owned(),
                };
                self.inflight.ended(
                    key,
                    &token,
                    Err(HandlerError::new(format!("the handler panicked: {text}"))),
                    now,
                );
            }
        }
    }

    /// Sends the ends of jobs to the ledgers: when there are enough for a statement, or the first has waited
    /// for a few milliseconds, or nothing else is at work that could still join them.
    pub(super) fn settle(&mut self, now: Instant) {
        if self.settle_after.is_some_and(|at| at > now) {
            return;
        }
        self.settle_after = None;
        while let Some((n, since)) = self.inflight.unrecorded(now) {
            let idle = self.tasks.is_empty() && self.inflight.waiting() == 0;
            if n < self.setup.settings.batch && !idle && now < since + FLUSH {
                return;
            }
            if !self.send_ends() {
                return;
            }
        }
    }

    /// When ends want to be sent next.
    pub(super) fn next_settle(&self) -> Option<Instant> {
        let later = self.inflight.next_later();
        let first = self.inflight.waits_since().filter(|_| self.free_lane().is_some()).map(|at| at + FLUSH);
        let next = first.into_iter().chain(later).min()?;
        Some(self.settle_after.map_or(next, |after| next.max(after)))
    }

    /// The session that has the least to do; none of them has two statements of ends under way.
    fn free_lane(&self) -> Option<usize> {
        let free = self.lanes.iter().enumerate().filter(|(_, l)| l.session.is_some() && l.recording == 0);
        free.min_by_key(|(_, l)| l.claiming).map(|(at, _)| at)
    }

    /// One batch: one statement for the done, one for the failed of each ledger.
    fn send_ends(&mut self) -> bool {
        let Some(lane) = self.free_lane() else { return false };
        let Some(session) = self.lanes[lane].session.clone() else { return false };
        let s = self.setup.settings;
        let mut done = vec![Vec::new(); self.served.len()];
        let mut failed = vec![Vec::new(); self.served.len()];
        let mut later = vec![Vec::new(); self.served.len()];
        for ((at, id), held) in self.inflight.record(MOST) {
            match &held.stage {
                Stage::Recording(Ok(())) => done[at].push((id, held.token.clone())),
                Stage::Recording(Err(error)) => {
                    let to = if error.is_later() { &mut later } else { &mut failed };
                    let key = (at, id);
                    // An attempt that does not count says nothing of how often the job came.
                    let times = match error.is_later() {
                        true => i64::from(self.deferred.times(&key)) + 1,
                        false => held.attempt,
                    };
                    to[at].push(Failure {
                        id: key.1,
                        token: held.token.clone(),
                        error: error.to_string(),
                        delay: backoff(s.backoff, s.backoff_max, times, fastrand::f64()),
                    });
                }
                _ => {}
            }
        }
        let serial = self.lanes[lane].serial;
        for (at, ((mut done, mut failed), mut later)) in done.into_iter().zip(failed).zip(later).enumerate()
        {
            // Rows of one page one after the other.
            done.sort_by(|a, b| ledger::by_id(&a.0, &b.0));
            failed.sort_by(|a, b| ledger::by_id(&a.id, &b.id));
            later.sort_by(|a, b| ledger::by_id(&a.id, &b.id));
            let done = if self.served[at].removes { Ends::Gone(done) } else { Ends::Done(done) };
            for ends in [done, Ends::Failed(failed), Ends::Later(later)] {
                if ends.is_empty() {
                    continue;
                }
                let (ledger, session) = (self.served[at].ledger.clone(), session.clone());
                self.lanes[lane].recording += 1;
                self.pending.spawn(async move {
                    let outcome = ends.record(&ledger, &session).await;
                    let (kind, claims) = ends.claims();
                    Answer { lane, serial, what: What::Recorded(at, kind, claims, outcome) }
                });
            }
        }
        true
    }

    pub(super) fn recorded(
        &mut self,
        lane: usize,
        serial: u64,
        at: usize,
        kind: Kind,
        claims: &[(String, String)],
        outcome: Result<Finished, Error>,
    ) {
        let finished = match outcome {
            Ok(finished) => finished,
            Err(error) => {
                // The ends are kept and recorded later with the same tokens, for as long as the leases hold.
                tracing::warn!(reason = %error.loss(), what = kind.word(), "could not record");
                if error.is_session_lost() {
                    self.session_lost(lane, serial, &error);
                } else if kind == Kind::Gone && !error.is_retryable() {
                    // A row that somebody refers to, a grant that was taken back: a job is not run again because
                    // it cannot be deleted.
                    self.keep_done(at, &error);
                }
                for (id, token) in claims {
                    self.inflight.record_again((at, id.clone()), token, None);
                }
                self.settle_after = Some(Instant::now() + AGAIN);
                return;
            }
        };
        let counters = &mut self.served[at].stats.counters;
        let n = finished.recorded.len() as i64;
        match kind {
            Kind::Done | Kind::Gone => counters.jobs_done += n,
            Kind::Failed => counters.jobs_failed += n,
            Kind::Later => {
                let gave_up = finished.gave_up.len() as i64;
                counters.jobs_deferred += n - gave_up;
                counters.jobs_failed += gave_up;
            }
        }
        // A retry may be due before the next fallback scan: look at the head of the order again.
        if matches!(kind, Kind::Failed | Kind::Later) && self.served[at].scan.is_none() {
            self.served[at].due_by(Instant::now() + self.setup.settings.backoff);
        }
        let lost: HashSet<&String> = finished.lost.iter().collect();
        // One that is refused is tried again until its lease is over: what refuses it may be mended meanwhile.
        let busy: HashSet<&String> = finished.busy.iter().chain(&finished.refused).collect();
        let again = Instant::now() + AGAIN;
        for (id, token) in claims {
            let key = (at, id.clone());
            if busy.contains(id) {
                self.inflight.record_again(key, token, Some(again));
                continue;
            }
            match kind {
                Kind::Later => self.deferred.once_more(&key),
                _ => self.deferred.over(&key),
            }
            if self.inflight.remove_claim(&key, token) && lost.contains(id) {
                self.tell_lost(at, id, kind.word());
            }
        }
    }

    /// From now on what is done is kept.
    fn keep_done(&mut self, at: usize, error: &Error) {
        let served = &mut self.served[at];
        if std::mem::take(&mut served.removes) {
            let (ledger, loss) = (served.ledger.name().to_owned(), error.loss());
            self.emit(WorkerEvent::PruneFailed { ledger, loss });
        }
    }

    pub(super) fn lost(&mut self, at: usize, id: &str, what: &str) {
        self.inflight.remove(&(at, id.to_owned()));
        self.tell_lost(at, id, what);
    }

    fn tell_lost(&mut self, at: usize, id: &str, what: &str) {
        let served = &mut self.served[at];
        served.stats.counters.jobs_lost += 1;
        let ledger = served.ledger.name().to_owned();
        self.emit(WorkerEvent::Lost { ledger, id: crate::text::clean(id), what: what.to_owned() });
    }

    /// Renews leases at a third of their length; a lease that has moved or is over stops its job.
    pub(super) async fn look_after_leases(&mut self, now: Instant) {
        if !self.inflight.leases_due(now) {
            return;
        }
        for at in 0..self.served.len() {
            let due = self.inflight.renewable(at, now);
            if due.is_empty() {
                continue;
            }
            let asked = Instant::now();
            let lease = self.setup.settings.lease;
            let live = self.session();
            let outcome = match &live {
                Some((_, _, session)) => self.served[at].ledger.renew(session, &due, lease).await,
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
                    if let Some((lane, serial, _)) = live
                        && error.is_session_lost()
                    {
                        self.session_lost(lane, serial, &error);
                    }
                    self.inflight.renew_again(at, due.iter().map(|(id, _)| id), now);
                }
            }
        }
        // Over by our own clock, and the server could not be asked: after this nothing that the job does
        // is covered by its lease. An end that waits to be recorded is still tried: the fence decides.
        for key in self.inflight.overdue(Instant::now()) {
            self.lost(key.0, &key.1, "renew");
        }
        self.inflight.leases_seen();
    }

    /// Stops claiming (it has), gives back what was not begun, lets jobs end within the grace time, records
    /// them, gives back the rest.
    pub(super) async fn wind_down(&mut self) -> Summary {
        let end = Instant::now() + self.setup.settings.grace;
        let mut given_back = 0;
        loop {
            let now = Instant::now();
            self.ensure_sessions(now);
            self.settle(now);
            self.look_after_leases(now).await;
            if self.inflight.waiting() > 0 {
                given_back += self.give_back(|stage| matches!(stage, Stage::Waiting(_)), 1).await;
            }
            let left = end.saturating_duration_since(Instant::now());
            // A claim that is under way may bring leases that nobody would look after.
            let asked = self.served.iter().any(|s| s.asked > 0);
            if (self.inflight.is_empty() && !asked) || left.is_zero() {
                break;
            }
            self.next_of_the_end(left.min(AGAIN)).await;
        }
        // What has ended is recorded rather than given back, and run again, while that is possible at all.
        self.settle_after = None;
        self.inflight.hurry();
        self.settle(Instant::now() + AGAIN);
        let last = Instant::now() + LAST_WORD;
        while self.lanes.iter().any(|l| l.session.is_some() && (l.recording > 0 || l.claiming)) {
            let left = last.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.next_of_the_end(left).await;
            self.settle(Instant::now() + AGAIN);
        }
        // What handlers have started elsewhere, processes for one, is over before the job is anybody else's.
        self.tasks.shutdown().await;
        self.handler.quiet().await;
        given_back += self.give_back(|_| true, TRIES).await;
        let unrecorded = self.unrecorded;
        if unrecorded > 0 {
            tracing::warn!(
                jobs = unrecorded,
                "ends could not be recorded; the jobs run again when their leases are over"
            );
        }
        if let Some((_, _, session)) = self.session().filter(|_| self.reports) {
            let (host, pid) = (super::host_name(), super::process_id());
            let _ = ledger::delete_worker(&session, &self.setup.name, &host, pid).await;
        }
        self.emit(WorkerEvent::Stopped { given_back, trouble: None });
        let mut summary = Summary { given_back, unrecorded, ..Summary::default() };
        for served in &self.served {
            let c = &served.stats.counters;
            summary.done += c.jobs_done;
            summary.failed += c.jobs_failed;
            summary.lost += c.jobs_lost;
            summary.deferred += c.jobs_deferred;
        }
        summary
    }

    /// The next answer or end of a handler, within this time.
    async fn next_of_the_end(&mut self, pause: Duration) {
        tokio::select! {
            biased;
            Some(Ok(answer)) = self.pending.join_next() => self.answered(answer),
            Some(done) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => self.handlers_ended(done),
            () = sleep(pause) => {}
        }
    }

    /// Gives jobs back to the queue, and stops their handlers before they are anybody else's. An attempt
    /// that never began is not counted. Returns how many.
    async fn give_back(&mut self, which: impl Fn(&Stage) -> bool, tries: usize) -> u64 {
        let mut given_back = 0;
        for at in 0..self.served.len() {
            let mut rest: Vec<Giveback> = self
                .inflight
                .of(at)
                .filter(|(_, held)| which(&held.stage))
                .map(|(id, held)| Giveback {
                    id: id.to_owned(),
                    token: held.token.clone(),
                    started: !matches!(held.stage, Stage::Waiting(_)),
                })
                .collect();
            let mut ended: HashSet<String> = HashSet::new();
            for job in &rest {
                let held = self.inflight.remove(&(at, job.id.clone()));
                if held.is_some_and(|h| matches!(h.stage, Stage::Ended(_) | Stage::Recording(_))) {
                    ended.insert(job.id.clone());
                }
            }
            let before = given_back;
            let live = self.session().filter(|_| !rest.is_empty());
            for _ in 0..tries {
                let Some((_, _, session)) = &live else { break };
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
            self.unrecorded += rest.iter().filter(|job| ended.contains(&job.id)).count() as u64;
            if let Some((_, _, session)) = live.filter(|_| given_back > before) {
                // Somebody else can take them now instead of at their fallback scan.
                let _ = self.served[at].ledger.wake(&session).await;
            }
        }
        given_back
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a text".to_owned())
}
