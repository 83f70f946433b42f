//! What may hold the queue, by name: locks, lockers of rows, and what keeps old rows alive.

use serde::{Deserialize, Serialize};

use super::Reading;

/// What a session waits for, and behind whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockWait {
    /// The lock in words: `table pgwake.jobs (AccessExclusiveLock)`, `a row`, `NOTIFY commit lock`.
    pub what: String,
    /// For how long, seconds; servers before 14 do not tell.
    pub seconds: Option<f64>,
    /// Backends that it waits for (`pg_blocking_pids`).
    pub by: Vec<i32>,
    /// The prepared transaction that it waits for; that has no backend.
    pub prepared: Option<String>,
}

/// A lock on a ledger's table against which claims, or all readers, wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TableLock {
    /// The backend; `None`: a prepared transaction.
    pub pid: Option<i32>,
    /// The prepared transaction's name.
    pub prepared: Option<String>,
    /// application_name.
    pub application: String,
    /// Whether it has the lock; otherwise it waits for it, and all who come later wait behind it.
    pub granted: bool,
    /// As in `pg_locks`: `AccessExclusiveLock`.
    pub mode: String,
    /// Age of its wait, or of its transaction when it has the lock, seconds.
    pub seconds: Option<f64>,
    /// Whom it waits for itself.
    pub by: Vec<i32>,
    /// Its statement, cleaned, without literals; `None` when hidden.
    pub query: Option<String>,
}

impl TableLock {
    /// Whether even reading waits for it; otherwise only claims and other writes do.
    pub fn is_against_readers(&self) -> bool {
        self.mode == "AccessExclusiveLock"
    }
}

/// Who has rows locked that are due.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RowLocker {
    /// The backend; `None`: a prepared transaction.
    pub pid: Option<i32>,
    /// The prepared transaction's name.
    pub prepared: Option<String>,
    /// application_name, or the owner of the prepared transaction.
    pub application: String,
    /// State; `None` when hidden.
    pub state: Option<String>,
    /// Age of its transaction, or since it was prepared, seconds; `None` when hidden.
    pub seconds: Option<f64>,
    /// Of the rows looked at, how many it has.
    pub rows: u64,
}

/// The first due rows, and who has them locked. A row that several transactions share is not seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockedRows {
    /// Rows looked at.
    pub seen: u64,
    /// The lockers, most rows first.
    pub by: Vec<RowLocker>,
}

impl LockedRows {
    /// Rows that somebody has locked.
    pub fn locked(&self) -> u64 {
        self.by.iter().map(|l| l.rows).sum()
    }
}

/// Sessions whose state this role may not see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hidden {
    /// How many.
    pub sessions: u64,
    /// This role, quoted: to whom `pg_read_all_stats` would be granted.
    pub role: String,
}

impl Hidden {
    /// What to ask for.
    pub fn grant(&self) -> String {
        format!("grant pg_read_all_stats to {}", self.role)
    }
}

/// What the fast lane knows besides counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Locks on the table that keep claims or readers away.
    pub table_locks: Reading<Vec<TableLock>>,
    /// Due rows that others have locked; asked only while due rows stay.
    pub locked_rows: Reading<LockedRows>,
    /// By how much the notification queue fills, share per second over the last half minute.
    pub queue_growth: Reading<f64>,
    /// Whether row security hides rows of this table from this role: every count may be partial.
    pub row_security: Reading<bool>,
    /// What is hidden.
    pub hidden: Reading<Hidden>,
}

impl Evidence {
    /// Seconds until the notification queue is full at its present growth; `None` when it does not grow.
    pub fn full_in(&self, usage: f64) -> Option<f64> {
        let growth = *self.queue_growth.current()?;
        // a page more now and then is no trend
        (growth > 1e-7).then(|| (1.0 - usage).max(0.0) / growth)
    }
}

/// What keeps dead rows from being removed, or log from being recycled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PinKind {
    /// A session's snapshot or transaction.
    #[default]
    Session,
    /// A prepared transaction that nobody has ended.
    Prepared,
    /// A replication slot.
    Slot,
    /// A standby with hot_standby_feedback.
    Standby,
}

/// One holder of an old snapshot, a prepared transaction, a slot or a standby.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pin {
    /// What it is.
    pub kind: PinKind,
    /// The backend, where there is one.
    pub pid: Option<i32>,
    /// Name of the prepared transaction or slot, application_name of the others.
    pub name: String,
    /// Its role, database, state.
    pub about: String,
    /// Age of the oldest transaction that it may still need, in transactions; `None`: it holds none.
    pub xids: Option<i64>,
    /// Age in time, seconds; `None` when hidden or not known.
    pub seconds: Option<f64>,
    /// Log that a slot keeps, bytes.
    pub retained: Option<u64>,
}

/// Rows that no claim will ever take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inconsistent {
    /// Ready or running without a time at which they are due: half-cleared leases.
    pub without_due: u64,
    /// Running with a lease that never ends.
    pub for_ever: u64,
    /// Whether a count stopped at its cap.
    pub more: bool,
    /// Status values that the profile does not know, with their share of the table by the statistics.
    pub unknown_states: Vec<(String, f64)>,
}

impl Inconsistent {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.without_due == 0 && self.for_ever == 0 && self.unknown_states.is_empty()
    }
}

/// A trigger of the ledger's table that notifies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NotifyTrigger {
    /// Its name.
    pub name: String,
    /// Its function.
    pub function: String,
    /// Once for each row, as against once for each statement.
    pub per_row: bool,
    /// Whether the row itself goes into the payload, which fails beyond 8000 bytes.
    pub carries_row: bool,
}
