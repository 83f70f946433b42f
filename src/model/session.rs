//! Other sessions of the server, as far as `pg_stat_activity` and `pg_locks` show them.

use serde::{Deserialize, Serialize};

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
}

/// One session worth showing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
}

/// The lock that serialises commits of transactions that notified (`pg_locks`: object lock on
/// `pg_database` with database 0).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NotifyLock {
    /// Who holds it.
    pub holder: Option<i32>,
    /// How many wait for it.
    pub waiters: u64,
}
