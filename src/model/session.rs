//! Other sessions of the server, as far as `pg_stat_activity` and `pg_locks` show them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::LockWait;

/// Why a session is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionMark {
    /// Its transaction is older than the threshold.
    LongTransaction,
    /// Its last statement was LISTEN. There is no view of other sessions' channels, so this is a guess.
    ProbableListener,
    /// It does not read its socket (wait event ClientWrite) while it pins a snapshot.
    NotReading,
    /// It waits for its client within a transaction.
    IdleInTransaction,
    /// It has the NOTIFY commit lock.
    NotifyHolder,
    /// It waits for the NOTIFY commit lock.
    NotifyWaiter,
    /// Others wait for it.
    Blocking,
    /// It waits for a lock.
    Blocked,
}

/// One session worth showing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Backend pid.
    pub pid: i32,
    /// Role name.
    pub user: String,
    /// application_name.
    pub application: String,
    /// State, `None` when hidden from this role.
    pub state: Option<String>,
    /// Wait event as `Type/event`.
    pub wait: Option<String>,
    /// Age of the open transaction, seconds.
    pub transaction_age: Option<f64>,
    /// The last or running statement, cleaned and cut; `None` when hidden.
    pub query: Option<String>,
    /// Why it is listed.
    pub marks: Vec<SessionMark>,
    /// When it began; `None` when hidden. A pid is used again, the two together are not.
    #[serde(default)]
    pub started: Option<DateTime<Utc>>,
    /// Its database, when that is another than the ledger's.
    #[serde(default)]
    pub database: Option<String>,
    /// Whether this role may not see what it does: then every empty field is unknown.
    #[serde(default)]
    pub hidden: bool,
    /// The lock that it waits for.
    #[serde(default)]
    pub lock: Option<LockWait>,
}

/// The lock that serialises commits of transactions that notified (`pg_locks`: object lock on
/// `pg_database` with database 0).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NotifyLock {
    /// Who holds it.
    pub holder: Option<i32>,
    /// How many wait for it.
    pub waiters: u64,
    /// application_name of the holder.
    pub application: String,
    /// What the holder itself waits for, as `Type/event`: `IPC/SyncRep` is a standby that does not answer.
    pub wait: Option<String>,
    /// Age of the holder's transaction, seconds; `None` when hidden.
    pub transaction_age: Option<f64>,
    /// Whether this role may not see what the holder does.
    pub hidden: bool,
    /// The longest wait, seconds; servers before 14 do not tell.
    pub longest: Option<f64>,
    /// The first waiters, longest wait first.
    pub waiting: Vec<i32>,
}
