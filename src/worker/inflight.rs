//! Jobs in hand: claimed and not yet recorded as ended.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::task::{AbortHandle, Id};

/// A job by ledger index and id.
pub(super) type Key = (usize, String);

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
    /// Stops the handler.
    pub handler: AbortHandle,
    /// How it ended, once it has; kept until the ledger has recorded it.
    pub ended: Option<Result<(), String>>,
    /// Its end met a row that somebody else holds locked, and is recorded not before this moment.
    pub busy_until: Option<Instant>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    jobs: HashMap<Key, Held>,
}

impl InFlight {
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub(super) fn insert(&mut self, key: Key, held: Held) {
        self.jobs.insert(key, held);
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Held> {
        self.jobs.get(key)
    }

    /// Notes how a handler ended; `false` when the job is no longer ours.
    pub(super) fn ended(&mut self, key: &Key, token: &str, how: Result<(), String>) -> bool {
        match self.jobs.get_mut(key) {
            Some(held) if held.token == token => {
                held.ended = Some(how);
                true
            }
            _ => false,
        }
    }

    /// The job that a handler task worked on.
    pub(super) fn of_task(&self, task: Id) -> Option<(Key, String)> {
        self.jobs.iter().find(|(_, h)| h.handler.id() == task).map(|(k, h)| (k.clone(), h.token.clone()))
    }

    /// Forgets a job and stops its handler.
    pub(super) fn remove(&mut self, key: &Key) -> Option<Held> {
        let held = self.jobs.remove(key)?;
        held.handler.abort();
        Some(held)
    }

    /// Jobs of one ledger that have ended and are to be recorded by `now`.
    pub(super) fn unrecorded(&self, ledger: usize, now: Instant) -> Vec<(&str, &Held)> {
        let due = |h: &Held| h.ended.is_some() && h.busy_until.is_none_or(|at| at <= now);
        self.of(ledger).filter(|(_, h)| due(h)).collect()
    }

    /// An end could not be recorded because somebody holds the row locked.
    pub(super) fn busy(&mut self, key: &Key, until: Instant) {
        if let Some(held) = self.jobs.get_mut(key) {
            held.busy_until = Some(until);
        }
    }

    /// Jobs of one ledger whose lease is to be renewed by `now`.
    pub(super) fn renewable(&self, ledger: usize, now: Instant) -> Vec<(String, String)> {
        self.of(ledger)
            .filter(|(_, h)| h.renew_at <= now)
            .map(|(id, h)| (id.to_owned(), h.token.clone()))
            .collect()
    }

    /// Jobs whose lease is over by this side's clock and could not be renewed.
    pub(super) fn overdue(&self, now: Instant) -> Vec<Key> {
        self.jobs.iter().filter(|(_, h)| h.ends_at <= now).map(|(k, _)| k.clone()).collect()
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

    /// The next moment at which a lease wants something; nothing is recorded before `settle_after`. An end
    /// that waits to be recorded wants nothing at the end of its lease: it is tried until the fence has
    /// decided.
    pub(super) fn next(&self, settle_after: Option<Instant>) -> Option<Instant> {
        let at = |h: &Held| match (&h.ended, h.busy_until) {
            (None, _) => h.renew_at.min(h.ends_at),
            (Some(_), None) => h.renew_at,
            (Some(_), Some(busy)) => h.renew_at.min(busy.max(settle_after.unwrap_or(busy))),
        };
        self.jobs.values().map(at).min()
    }

    /// Everything of one ledger, to give back.
    pub(super) fn of(&self, ledger: usize) -> impl Iterator<Item = (&str, &Held)> {
        self.jobs.iter().filter(move |((l, _), _)| *l == ledger).map(|((_, id), h)| (id.as_str(), h))
    }
}
