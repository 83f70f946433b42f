//! Claims: when one is sent, what came, and what it says about the ledger.

use std::time::{Duration, Instant};

use super::handler::Handler;
use super::lane::{Answer, Asked, What};
use super::run::Run;
use crate::ledger::{self, Claim, Earliest, Mark};
use crate::model::{ClaimOutcome, Recovery, ScanReason, WorkerEvent};
use crate::pg::{Backoff, Error, sqlstate};

/// After a contended claim: look again this soon, for the rows are due and whoever holds them may let go.
pub(super) const CONTENDED_PAUSE: Duration = Duration::from_secs(1);
/// Jobs that are claimed ahead are begun within this, as far as can be told, and within a small part of
/// their lease: another worker could have taken them.
const AHEAD: Duration = Duration::from_secs(1);
const AHEAD_OF_LEASE: u32 = 10;

impl<H: Handler> Run<H> {
    /// Sends claims for the ledgers that are being drained, one for each free session at most: enough that
    /// handlers do not wait for the next one while the backlog is deep.
    pub(super) async fn claim_ahead(&mut self, now: Instant) {
        while let Some(at) = self.next_ledger() {
            let free = |l: &super::lane::Lane| l.session.is_some() && !l.claiming;
            let Some(lane) = self.lanes.iter().position(free) else { return };
            let asked: usize = self.asked();
            let s = self.setup.settings;
            let room = self.room().saturating_sub(asked);
            // With jobs in stock there is time for a whole batch.
            let stocked = asked + self.inflight.waiting() > 0;
            if room == 0 || (stocked && room < s.batch) {
                return;
            }
            let mut left = self.budget.left(now).saturating_sub(asked as u64);
            if left == 0 && asked == 0 && !self.budget.is_waiting() {
                self.decide_budget(at, now).await;
                left = self.budget.left(now);
            }
            let limit = s.batch.min(room).min(usize::try_from(left).unwrap_or(usize::MAX));
            if limit == 0 || self.lanes[lane].session.is_none() {
                return;
            }
            self.turn = at + 1;
            self.send_claim(lane, at, limit);
        }
    }

    /// In turn, so that a deep ledger does not keep the others waiting.
    fn next_ledger(&self) -> Option<usize> {
        let n = self.served.len();
        (0..n).map(|i| (self.turn + i) % n).find(|i| {
            let served = &self.served[*i];
            // More than one claim at a time only where the last one was full.
            served.scan.is_some_and(|scan| !served.looking && (served.asked == 0 || scan.deep))
        })
    }

    fn asked(&self) -> usize {
        self.served.iter().map(|s| s.asked).sum()
    }

    /// How many more jobs may be in hand: as many as handlers can take, and some ahead of need. Ends that
    /// the ledger does not take keep their place.
    fn room(&self) -> usize {
        let s = self.setup.settings;
        let stock = 2 * s.batch * self.lanes.len();
        let time = AHEAD.min(s.lease / AHEAD_OF_LEASE);
        let ahead = self.pace.begun_within(time, s.concurrency).min(stock);
        let at_work = self.tasks.len() + self.inflight.waiting();
        let room = (s.concurrency + ahead).saturating_sub(at_work);
        let most = s.concurrency + ahead + 2 * stock;
        room.min(most.saturating_sub(self.inflight.len()))
    }

    fn send_claim(&mut self, lane: usize, at: usize, limit: usize) {
        let served = &mut self.served[at];
        let (mark, head) = served.start();
        let reason = served.scan.map_or(ScanReason::Fallback, |scan| scan.reason);
        served.asked += limit;
        let (ledger, lease) = (served.ledger.clone(), self.setup.settings.lease);
        let asked = Asked { ledger: at, limit, reason, head, began: Instant::now() };
        let l = &mut self.lanes[lane];
        l.claiming = true;
        let (serial, name) = (l.serial, self.setup.name.clone());
        let Some(session) = l.session.clone() else { return };
        self.pending.spawn(async move {
            let outcome = ledger.claim_from(&session, &name, limit, lease, mark).await;
            Answer { lane, serial, what: What::Claimed(asked, asked.began.elapsed(), outcome) }
        });
    }

    fn free(&mut self, lane: usize, serial: u64) {
        if self.lanes[lane].serial == serial {
            self.lanes[lane].claiming = false;
        }
    }

    pub(super) fn claim_answered(
        &mut self,
        lane: usize,
        serial: u64,
        asked: Asked,
        took: Duration,
        outcome: Result<Claim, Error>,
    ) {
        self.free(lane, serial);
        let served = &mut self.served[asked.ledger];
        served.asked -= asked.limit;
        served.stats.claim.record(took);
        served.stats.recent.record(took);
        match outcome {
            Ok(claim) => {
                self.backoff = Backoff::new();
                self.budget.spend(claim.jobs.len() as u64);
                if asked.head {
                    served.head_claim_took(took);
                }
                if claim.gave_up > 0 {
                    let ledger = served.ledger.name().to_owned();
                    self.emit(WorkerEvent::Exhausted { ledger, jobs: claim.gave_up });
                }
                if claim.jobs.is_empty() && claim.gave_up == 0 {
                    self.came_back_empty(lane, asked, took);
                } else {
                    self.claimed(asked, claim, took);
                }
            }
            Err(error) => self.claim_failed(lane, serial, asked.ledger, &error, took),
        }
    }

    fn claimed(&mut self, asked: Asked, claim: Claim, took: Duration) {
        let at = asked.ledger;
        let lease = self.setup.settings.lease;
        let served = &mut self.served[at];
        let n = claim.jobs.len() as i64;
        served.passed(claim.last_due);
        if n > 0 {
            served.stats.counters.claim(ClaimOutcome::Got);
        }
        let mut reason = asked.reason;
        if let Some(scan) = &mut served.scan {
            if let Some(woken) = scan.woken.take() {
                served.stats.wake.record(asked.began.saturating_duration_since(woken));
            }
            scan.jobs += n as u64;
            scan.doubted = false;
            scan.deep = claim.jobs.len() >= asked.limit;
            reason = scan.reason;
        }
        served.stats.counters.found(reason, n);
        if reason == ScanReason::Fallback {
            let timed = claim.jobs.iter().filter(|j| j.timed || j.was_expired).count();
            served.stats.counters.found_timed += timed as i64;
        }
        if n > 0 {
            let (ledger, ms) = (served.ledger.name().to_owned(), took.as_secs_f64() * 1000.0);
            self.emit(WorkerEvent::Claim { ledger, outcome: ClaimOutcome::Got, jobs: n as u64, ms });
        }
        for mut job in claim.jobs {
            job.reason = Some(reason);
            if self.inflight.get(&(at, job.id.clone())).is_some() {
                // Our own lease of it ran out: the run under the old token is over.
                self.lost(at, &job.id, "renew");
            }
            self.inflight.insert(at, job, asked.began, lease);
        }
    }

    /// Sets waiting jobs to work, as many as may run at once.
    pub(super) fn start_handlers(&mut self) {
        while self.tasks.len() < self.setup.settings.concurrency {
            let (handler, tasks) = (&self.handler, &mut self.tasks);
            let started = self.inflight.start_next(|key, job| {
                let handler = handler.clone();
                let token = job.token.clone();
                tasks.spawn(async move {
                    let began = Instant::now();
                    let how = handler.handle(job).await;
                    (key, token, how, began.elapsed())
                })
            });
            if !started {
                return;
            }
        }
    }

    /// Nothing came: an empty ledger, or rows that others hold. The head of the order tells.
    fn came_back_empty(&mut self, lane: usize, asked: Asked, took: Duration) {
        let at = asked.ledger;
        let served = &mut self.served[at];
        let Some(scan) = &mut served.scan else { return };
        // While another claim is under way, it has the last word. And a scan that is to find what no
        // wake-up announced ends with a look from the head, not from the mark.
        let thorough = !asked.head && scan.thorough;
        scan.deep = false;
        scan.head |= thorough;
        let session = self.lanes[lane].session.clone();
        let Some(session) = session.filter(|_| served.asked == 0 && !thorough) else {
            return self.counted(at, ClaimOutcome::Empty, took);
        };
        let mark = if asked.head { Mark::HEAD } else { served.mark() };
        served.looking = true;
        let ledger = served.ledger.clone();
        let l = &mut self.lanes[lane];
        l.claiming = true;
        let serial = l.serial;
        self.pending.spawn(async move {
            let outcome = ledger.earliest_from(&session, mark).await;
            Answer { lane, serial, what: What::Looked(asked, took, outcome) }
        });
    }

    fn counted(&mut self, at: usize, outcome: ClaimOutcome, took: Duration) {
        let served = &mut self.served[at];
        served.stats.counters.claim(outcome);
        let (ledger, ms) = (served.ledger.name().to_owned(), took.as_secs_f64() * 1000.0);
        self.emit(WorkerEvent::Claim { ledger, outcome, jobs: 0, ms });
    }

    /// What stands at the head of the order after an empty claim. The scan ends, unless there is doubt.
    pub(super) fn looked(
        &mut self,
        lane: usize,
        serial: u64,
        asked: Asked,
        took: Duration,
        earliest: Result<Earliest, Error>,
    ) {
        self.free(lane, serial);
        let at = asked.ledger;
        let now = Instant::now();
        let served = &mut self.served[at];
        served.looking = false;
        let woken = served.scan.as_mut().is_some_and(|scan| std::mem::take(&mut scan.again));
        let (outcome, ended) = match earliest {
            // It may have become due since the claim: that is no contention until a second claim has missed
            // it, too.
            Ok(Earliest::DueNow) if served.doubt() => (ClaimOutcome::Empty, None),
            Ok(Earliest::DueNow) => (ClaimOutcome::Contended, served.postpone(now + CONTENDED_PAUSE)),
            // What a wake-up announced meanwhile may not have been seen.
            Ok(_) if woken => (ClaimOutcome::Empty, None),
            Ok(Earliest::In(pause)) => {
                served.next_due = Some((now + pause, ScanReason::Fallback));
                (ClaimOutcome::Empty, served.scan.take())
            }
            Ok(Earliest::Nothing) => {
                served.next_due = None;
                (ClaimOutcome::Empty, served.scan.take())
            }
            Err(error) => return self.claim_failed(lane, serial, at, &error, took),
        };
        let ledger = served.ledger.name().to_owned();
        self.counted(at, outcome, took);
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

    fn claim_failed(&mut self, lane: usize, serial: u64, at: usize, error: &Error, took: Duration) {
        let served = &mut self.served[at];
        served.stats.counters.claim(ClaimOutcome::Error);
        let ledger = served.ledger.name().to_owned();
        let loss = error.loss();
        let ms = took.as_secs_f64() * 1000.0;
        // 25006: a server that turned read-only is the wrong node; everything is dropped and looked up anew.
        let wrong_node = error.sqlstate() == Some(sqlstate::READ_ONLY);
        if error.is_session_lost() || wrong_node {
            self.session_lost(lane, serial, error);
        } else {
            // A refused statement may be refused again, and a deadlock wants a pause: the scan goes on later.
            served.postpone(Instant::now() + self.backoff.failed());
        }
        self.emit(WorkerEvent::Claim { ledger: ledger.clone(), outcome: ClaimOutcome::Error, jobs: 0, ms });
        self.emit(WorkerEvent::ClaimFailed { ledger, loss });
    }

    async fn decide_budget(&mut self, at: usize, now: Instant) {
        let Some((lane, serial, session)) = self.session() else { return };
        // Of the claims since the last decision: an old slow spell must not count for ever.
        let p99 = self.served[at].stats.recent.percentiles().p99;
        self.served[at].stats.recent.clear();
        let decided = match ledger::load(&session).await {
            Ok(load) => self.budget.decide(&load, p99, now),
            // Not a matter of load: asked again with the next session.
            Err(error) if error.is_session_lost() => return self.session_lost(lane, serial, &error),
            Err(error) => self.budget.wait(format!("the load cannot be read: {}", error.loss())),
        };
        if let Some(why) = decided {
            self.emit(WorkerEvent::Budget { state: self.budget.state(), why });
        }
    }
}
