//! Is it draining, and if not, why? Ordered rules over one sample and the sessions; the first that
//! applies is the answer. Pure, and silent where nothing is known: unknown is never taken for zero.

mod beside;
mod locks;
mod rules;

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::health::Level;
use super::series::Series;
use super::state::{Embedded, LinkState, ListenState};
use crate::config::Thresholds;
use crate::model::Sample;

/// Everything the rules look at.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The newest sample of the ledger.
    pub sample: Option<&'a Sample>,
    /// Monotonic time since it arrived.
    pub age: Duration,
    /// Its history.
    pub series: &'a Series,
    /// The stats session.
    pub link: &'a LinkState,
    /// The listen session.
    pub listen: &'a ListenState,
    /// The embedded worker.
    pub worker: &'a Embedded,
    /// Whether a worker could be started here.
    pub can_start_worker: bool,
    /// The limits.
    pub limits: &'a Thresholds,
    /// The fallback interval of the workers, seconds: a lease may stay expired that long.
    pub fallback_s: f64,
    /// The server's clock now.
    pub server_now: DateTime<Utc>,
    /// Monotonic time now.
    pub mono: Duration,
}

/// Which rule answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// No session to ask on.
    Disconnected,
    /// No sample yet.
    NotYet,
    /// The newest sample is old.
    Stale,
    /// Somebody holds the table against readers.
    TableLocked,
    /// The count of ready jobs could not be read.
    CannotTell,
    /// The ledger is empty of due work.
    NothingDue,
    /// Work waits and nobody is there.
    NoWorker,
    /// Every worker waits for its budget window.
    Budget,
    /// Ready rows are held by other sessions.
    Contended,
    /// Jobs are held, none is finished.
    NothingFinishes,
    /// Only the fallback scan finds work.
    WakeupsMissing,
    /// Commits of producers queue up behind one.
    NotifyLock,
    /// Leases ran out with their holder.
    HolderDead,
    /// Work gets done.
    Draining,
    /// Work waits, and no rule says why.
    Waiting,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// Which rule.
    pub rule: Rule,
    /// How bad.
    pub level: Level,
    /// Two or three words.
    pub headline: String,
    /// The evidence.
    pub detail: String,
}

type Answer = Option<Diagnosis>;

/// The rules, first to last. The order is part of the meaning: a stale number must not be explained,
/// and a missing worker makes every later reason idle.
const RULES: &[fn(&Evidence<'_>) -> Answer] = &[
    rules::disconnected,
    rules::not_yet,
    rules::stale,
    locks::table_locked,
    rules::cannot_tell,
    rules::nothing_due,
    rules::no_worker,
    rules::budget,
    rules::contended,
    rules::nothing_finishes,
    rules::wakeups_missing,
    locks::notify_lock,
    rules::holder_dead,
    rules::draining,
];

/// The first rule that applies, and the worst of what is wrong beside it.
pub fn diagnose(e: &Evidence<'_>) -> Diagnosis {
    let answer = RULES.iter().find_map(|rule| rule(e)).unwrap_or_else(|| rules::waiting(e));
    beside::with(answer, e)
}
