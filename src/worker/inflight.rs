//! Jobs in hand: claimed and not yet recorded as ended.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use tokio::task::{AbortHandle, Id};

use super::handler::HandlerError;
use crate::ledger::Job;

/// A job by ledger index and id.
pub(super) type Key = (usize, String);

/// How far a job is.
#[derive(Debug)]
pub(super) enum Stage {
    /// Claimed ahead of need.
    Waiting(Box<Job>),
    /// Its handler runs; this stops it.
    Running(AbortHandle),
    /// It has ended, and the ledger has not recorded it yet.
    Ended(Result<(), HandlerError>),
    /// Its end is on its way to the ledger.
    Recording(Result<(), HandlerError>),
}

/// One claim.
#[derive(Debug)]
pub(super) struct Held {
    pub token: String,
    /// Attempt number, for the back-off.
    pub attempt: i64,
    /// Renew from here on.
    pub renew_at: Instant,
    /// By this side's clock the lease is over, counted from before the claim was sent.
    pub ends_at: Instant,
    pub stage: Stage,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    jobs: HashMap<Key, Held>,
    /// Those that wait for a handler, in the order of their claims; may hold some that are gone.
    queue: VecDeque<(Key, String)>,
    waiting: usize,
    /// Ends to record as soon as may be, and the moment of the first.
    ended: Vec<Key>,
    since: Option<Instant>,
    /// Ends that met a row which somebody else holds locked, each with the moment to try again.
    later: Vec<(Instant, Key)>,
    /// Nothing of a lease is due before this.
    leases_at: Option<Instant>,
}

impl InFlight {
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Jobs that wait for a handler.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// A new claim, which waits for a handler.
    pub(super) fn insert(&mut self, ledger: usize, job: Job, began: Instant, lease: Duration) {
        let key = (ledger, job.id.clone());
        let held = Held {
            token: job.token.clone(),
            attempt: job.attempt.unwrap_or(1),
            renew_at: began + lease / 3,
            ends_at: began + lease,
            stage: Stage::Waiting(Box::new(job)),
        };
        self.look_by(held.renew_at);
        self.queue.push_back((key.clone(), held.token.clone()));
        self.waiting += 1;
        self.jobs.insert(key, held);
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Held> {
        self.jobs.get(key)
    }

    /// The next job for a handler, which `start` sets to work.
    pub(super) fn start_next(&mut self, start: impl FnOnce(Key, Job) -> AbortHandle) -> bool {
        while let Some((key, token)) = self.queue.pop_front() {
            let Some(held) = self.jobs.get_mut(&key).filter(|h| h.token == token) else { continue };
            let Stage::Waiting(job) = &mut held.stage else { continue };
            let job = job.as_ref().clone();
            self.waiting -= 1;
            held.stage = Stage::Running(start(key, job));
            return true;
        }
        false
    }

    /// Notes how a handler ended, unless the job is no longer ours.
    pub(super) fn ended(&mut self, key: Key, token: &str, how: Result<(), HandlerError>, now: Instant) {
        if let Some(held) = self.jobs.get_mut(&key).filter(|h| h.token == token) {
            held.stage = Stage::Ended(how);
            self.ended.push(key);
            self.since.get_or_insert(now);
        }
    }

    /// The job that a handler task worked on.
    pub(super) fn of_task(&self, task: Id) -> Option<(Key, String)> {
        let works = |h: &Held| matches!(&h.stage, Stage::Running(handler) if handler.id() == task);
        self.jobs.iter().find(|(_, h)| works(h)).map(|(k, h)| (k.clone(), h.token.clone()))
    }

    /// Forgets a job and stops its handler.
    pub(super) fn remove(&mut self, key: &Key) -> Option<Held> {
        let held = self.jobs.remove(key)?;
        match &held.stage {
            Stage::Running(handler) => handler.abort(),
            Stage::Waiting(_) => self.waiting -= 1,
            Stage::Ended(_) | Stage::Recording(_) => {}
        }
        Some(held)
    }

    /// The same for one claim of it: the job may be in hand again under another token.
    pub(super) fn remove_claim(&mut self, key: &Key, token: &str) -> bool {
        let ours = self.jobs.get(key).is_some_and(|h| h.token == token);
        ours && self.remove(key).is_some()
    }

    /// How many ends wait to be recorded, and since when.
    pub(super) fn unrecorded(&mut self, now: Instant) -> Option<(usize, Instant)> {
        let due = |at: &Instant| *at <= now;
        if self.later.iter().any(|(at, _)| due(at)) {
            let (due, later) = self.later.drain(..).partition(|(at, _)| due(at));
            self.later = later;
            let due: Vec<(Instant, Key)> = due;
            self.ended.extend(due.into_iter().map(|(_, key)| key));
            self.since.get_or_insert(now);
        }
        self.since.filter(|_| !self.ended.is_empty()).map(|at| (self.ended.len(), at))
    }

    /// When the next end wants to be recorded that is not among [`InFlight::unrecorded`].
    pub(super) fn next_later(&self) -> Option<Instant> {
        self.later.iter().map(|(at, _)| *at).min()
    }

    /// Since when ends wait to be recorded.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        self.since
    }

    /// Takes up to `most` ends to record them; what becomes of each is told later.
    pub(super) fn record(&mut self, most: usize) -> Vec<(Key, &Held)> {
        let rest = self.ended.split_off(most.min(self.ended.len()));
        let taken = std::mem::replace(&mut self.ended, rest);
        if self.ended.is_empty() {
            self.since = None;
        }
        for key in &taken {
            if let Some(held) = self.jobs.get_mut(key)
                && let Stage::Ended(how) = &mut held.stage
            {
                held.stage = Stage::Recording(std::mem::replace(how, Ok(())));
            }
        }
        let recording = |h: &&Held| matches!(h.stage, Stage::Recording(_));
        taken
            .into_iter()
            .filter_map(|key| Some((self.jobs.get(&key).filter(recording)?, key)))
            .map(|(h, k)| (k, h))
            .collect()
    }

    /// An end could not be recorded: once more, at once or at `at`.
    pub(super) fn record_again(&mut self, key: Key, token: &str, at: Option<Instant>) {
        let Some(held) = self.jobs.get_mut(&key).filter(|h| h.token == token) else { return };
        if let Stage::Recording(how) = &mut held.stage {
            held.stage = Stage::Ended(std::mem::replace(how, Ok(())));
            match at {
                Some(at) => self.later.push((at, key)),
                None => {
                    self.ended.push(key);
                    self.since.get_or_insert_with(Instant::now);
                }
            }
        }
    }

    /// Everything that was put off is to be recorded now.
    pub(super) fn hurry(&mut self) {
        let later = std::mem::take(&mut self.later);
        if !later.is_empty() {
            self.since.get_or_insert_with(Instant::now);
        }
        self.ended.extend(later.into_iter().map(|(_, key)| key));
    }

    /// Whether a lease may want something by `now`.
    pub(super) fn leases_due(&self, now: Instant) -> bool {
        self.leases_at.is_some_and(|at| at <= now)
    }

    /// The next moment at which a lease may want something.
    pub(super) fn next_lease(&self) -> Option<Instant> {
        self.leases_at.filter(|_| !self.jobs.is_empty())
    }

    /// All leases have been looked after: looks up when the next one wants something. An end that waits to
    /// be recorded wants nothing at the end of its lease: it is tried until the fence has decided.
    pub(super) fn leases_seen(&mut self) {
        let at = |h: &Held| match h.stage {
            Stage::Waiting(_) | Stage::Running(_) => h.renew_at.min(h.ends_at),
            Stage::Ended(_) => h.renew_at,
            // Its answer comes within a deadline, and says more than a renewal.
            Stage::Recording(_) => h.renew_at.max(Instant::now() + Duration::from_millis(500)),
        };
        self.leases_at = self.jobs.values().map(at).min();
    }

    fn look_by(&mut self, at: Instant) {
        self.leases_at = Some(self.leases_at.map_or(at, |before| before.min(at)));
    }

    /// Jobs of one ledger whose lease is to be renewed by `now`. One whose end is on its way to the ledger
    /// is not: it would be called lost.
    pub(super) fn renewable(&self, ledger: usize, now: Instant) -> Vec<(String, String)> {
        self.of(ledger)
            .filter(|(_, h)| h.renew_at <= now && !matches!(h.stage, Stage::Recording(_)))
            .map(|(id, h)| (id.to_owned(), h.token.clone()))
            .collect()
    }

    /// Jobs that have not ended, whose lease is over by this side's clock and could not be renewed.
    pub(super) fn overdue(&self, now: Instant) -> Vec<Key> {
        let at_work = |h: &Held| matches!(h.stage, Stage::Waiting(_) | Stage::Running(_));
        self.jobs.iter().filter(|(_, h)| h.ends_at <= now && at_work(h)).map(|(k, _)| k.clone()).collect()
    }

    /// A lease was renewed, `asked` being the moment before the statement was sent.
    pub(super) fn renewed(&mut self, key: &Key, asked: Instant, lease: Duration) {
        if let Some(held) = self.jobs.get_mut(key) {
            held.renew_at = asked + lease / 3;
            held.ends_at = asked + lease;
        }
    }

    /// Renewals could not be made: try again soon.
    pub(super) fn renew_again<'a>(
        &mut self,
        ledger: usize,
        ids: impl IntoIterator<Item = &'a String>,
        now: Instant,
    ) {
        for id in ids {
            if let Some(held) = self.jobs.get_mut(&(ledger, id.clone())) {
                held.renew_at = now + Duration::from_secs(1);
            }
        }
    }

    /// Everything of one ledger.
    pub(super) fn of(&self, ledger: usize) -> impl Iterator<Item = (&str, &Held)> {
        self.jobs.iter().filter(move |((l, _), _)| *l == ledger).map(|((_, id), h)| (id.as_str(), h))
    }
}
