//! One claim: what is asked, what came, and what it says about the ledger.

use std::time::{Duration, Instant};

use super::handler::Handler;
use super::inflight::Held;
use super::run::Run;
use crate::ledger::{self, Earliest, Job};
use crate::model::{ClaimOutcome, Recovery, ScanReason, WorkerEvent};
use crate::pg::{Backoff, Error, sqlstate};

/// After a contended claim: look again this soon, for the rows are due and whoever holds them may let go.
pub(super) const CONTENDED_PAUSE: Duration = Duration::from_secs(1);

impl<H: Handler> Run<H> {
    /// One claim for one ledger that is being drained. `true` when there may be more to do at once.
    pub(super) async fn claim_once(&mut self, now: Instant) -> bool {
        // In turn, so that a deep ledger does not keep the others waiting.
        let n = self.served.len();
        let Some(at) = (0..n).map(|i| (self.turn + i) % n).find(|i| self.served[*i].scan.is_some()) else {
            return false;
        };
        self.turn = at + 1;
        let s = self.setup.settings;
        let free = s.concurrency.saturating_sub(self.inflight.len());
        if free == 0 || self.session.is_none() {
            return false;
        }
        let mut left = self.budget.left(now);
        if left == 0 && !self.budget.is_waiting() {
            self.decide_budget(at, now).await;
            left = self.budget.left(now);
        }
        let Some(session) = self.session.as_ref().filter(|_| left > 0) else { return false };
        let limit = s.batch.min(free).min(usize::try_from(left).unwrap_or(usize::MAX));
        let served = &mut self.served[at];
        let began = Instant::now();
        let outcome = served.ledger.claim(session, &self.setup.name, limit, s.lease).await;
        let took = began.elapsed();
        served.stats.claim.record(took);
        served.stats.recent.record(took);
        match outcome {
            Ok(claim) => {
                let jobs = claim.jobs.len() as u64;
                self.backoff = Backoff::new();
                self.budget.spend(jobs);
                if claim.gave_up > 0 {
                    let ledger = self.served[at].ledger.name().to_owned();
                    self.emit(WorkerEvent::Exhausted { ledger, jobs: claim.gave_up });
                }
                if claim.jobs.is_empty() && claim.gave_up == 0 {
                    self.came_back_empty(at, took).await;
                } else {
                    self.claimed(at, claim.jobs, began, took);
                }
                true
            }
            Err(error) => {
                self.claim_failed(at, &error, took);
                false
            }
        }
    }

    fn claimed(&mut self, at: usize, jobs: Vec<Job>, began: Instant, took: Duration) {
        let lease = self.setup.settings.lease;
        let served = &mut self.served[at];
        let n = jobs.len() as i64;
        if n > 0 {
            served.stats.counters.claim(ClaimOutcome::Got);
        }
        if let Some(scan) = &mut served.scan {
            if let Some(woken) = scan.woken.take() {
                served.stats.wake.record(began.duration_since(woken));
            }
            scan.jobs += n as u64;
            scan.doubted = false;
            served.stats.counters.found(scan.reason, n);
            if scan.reason == ScanReason::Fallback {
                let timed = jobs.iter().filter(|j| j.timed || j.was_expired).count();
                served.stats.counters.found_timed += timed as i64;
            }
        }
        let ledger = served.ledger.name().to_owned();
        if n > 0 {
            let ms = took.as_secs_f64() * 1000.0;
            self.emit(WorkerEvent::Claim { ledger, outcome: ClaimOutcome::Got, jobs: n as u64, ms });
        }
        for job in jobs {
            let key = (at, job.id.clone());
            if self.inflight.get(&key).is_some() {
                // Our own lease of it ran out: the run under the old token is over.
                self.lost(at, &job.id, "renew");
            }
            let token = job.token.clone();
            let attempt = job.attempt.unwrap_or(1);
            let handler = self.handler.clone();
            let (task_key, task_token) = (key.clone(), token.clone());
            let task = self.tasks.spawn(async move {
                let how = handler.handle(job).await;
                (task_key, task_token, how)
            });
            self.inflight.insert(
                key,
                Held {
                    token,
                    attempt,
                    renew_at: began + lease / 3,
                    ends_at: began + lease,
                    handler: task,
                    ended: None,
                    busy_until: None,
                },
            );
        }
    }

    /// Nothing came: an empty ledger, or rows that others hold. The scan ends either way.
    async fn came_back_empty(&mut self, at: usize, took: Duration) {
        let Some(session) = &self.session else { return };
        let earliest = self.served[at].ledger.earliest(session).await;
        let now = Instant::now();
        let served = &mut self.served[at];
        let (outcome, ended) = match earliest {
            // It may have become due since the claim: that is no contention until a second claim has missed
            // it, too.
            Ok(Earliest::DueNow) if served.doubt() => (ClaimOutcome::Empty, None),
            Ok(Earliest::DueNow) => (ClaimOutcome::Contended, served.postpone(now + CONTENDED_PAUSE)),
            Ok(Earliest::In(pause)) => {
                served.next_due = Some((now + pause, ScanReason::Fallback));
                (ClaimOutcome::Empty, served.scan.take())
            }
            Ok(Earliest::Nothing) => {
                served.next_due = None;
                (ClaimOutcome::Empty, served.scan.take())
            }
            Err(error) => return self.claim_failed(at, &error, took),
        };
        served.stats.counters.claim(outcome);
        let ledger = served.ledger.name().to_owned();
        let ms = took.as_secs_f64() * 1000.0;
        self.emit(WorkerEvent::Claim { ledger: ledger.clone(), outcome, jobs: 0, ms });
        let Some(scan) = ended else { return };
        self.emit(WorkerEvent::Drained { ledger, reason: scan.reason, jobs: scan.jobs });
        if scan.reason == ScanReason::Reconnect
            && let Some(back) = &mut self.returning
        {
            back.jobs += scan.jobs;
        }
        let scanning =
            self.served.iter().any(|s| matches!(s.scan, Some(s) if s.reason == ScanReason::Reconnect));
        if !scanning && let Some(back) = self.returning.take() {
            let took = back.lost_at.elapsed();
            self.recovery.record(took);
            self.emit(WorkerEvent::Recovered(Recovery {
                phases: back.phases,
                scanned_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                jobs: back.jobs,
            }));
            // What it recovered from is worth showing at once.
            self.heartbeat_at = now;
        }
    }

    fn claim_failed(&mut self, at: usize, error: &Error, took: Duration) {
        let served = &mut self.served[at];
        served.stats.counters.claim(ClaimOutcome::Error);
        let ledger = served.ledger.name().to_owned();
        let loss = error.loss();
        let ms = took.as_secs_f64() * 1000.0;
        // 25006: a server that turned read-only is the wrong node; everything is dropped and looked up anew.
        let wrong_node = error.sqlstate() == Some(sqlstate::READ_ONLY);
        if error.is_session_lost() || wrong_node {
            self.session_lost(error);
        } else {
            // A refused statement may be refused again, and a deadlock wants a pause: the scan goes on later.
            served.postpone(Instant::now() + self.backoff.failed());
        }
        self.emit(WorkerEvent::Claim { ledger: ledger.clone(), outcome: ClaimOutcome::Error, jobs: 0, ms });
        self.emit(WorkerEvent::ClaimFailed { ledger, loss });
    }

    async fn decide_budget(&mut self, at: usize, now: Instant) {
        let Some(session) = &self.session else { return };
        // Of the claims since the last decision: an old slow spell must not count for ever.
        let p99 = self.served[at].stats.recent.percentiles().p99;
        self.served[at].stats.recent.clear();
        let decided = match ledger::load(session).await {
            Ok(load) => self.budget.decide(&load, p99, now),
            // Not a matter of load: asked again with the next session.
            Err(error) if error.is_session_lost() => return self.session_lost(&error),
            Err(error) => self.budget.wait(format!("the load cannot be read: {}", error.loss())),
        };
        if let Some(why) = decided {
            self.emit(WorkerEvent::Budget { state: self.budget.state(), why });
        }
    }
}
