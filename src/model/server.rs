//! What is known of the server and its ledgers once connected.

use serde::{Deserialize, Serialize};

use super::{Fencing, Offer};

/// Primary or standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Accepts writes.
    Primary,
    /// In recovery: read only, no LISTEN.
    Standby,
}

/// Facts of one ledger that do not change while connected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerFacts {
    /// Profile name.
    pub name: String,
    /// Qualified, quoted relation.
    pub relation: String,
    /// Wake-up channel, exact bytes; `None` when the profile has none.
    pub channel: Option<String>,
    /// What a late completion does.
    pub fencing: Fencing,
    /// Whether `simulate` and `noop` may touch it.
    pub scratch: bool,
    /// The release statement as it would run, for the dialog.
    pub release_sql: String,
    /// What can be done to jobs that nobody holds. Recordings of before have none.
    #[serde(default)]
    pub offers: Vec<Offer>,
}

/// The server behind the stats session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// `user@host:port/database`; never a password.
    pub address: String,
    /// For people: `15.18`.
    pub version: String,
    /// `server_version_num`.
    pub version_num: i32,
    /// Primary or standby.
    pub role: Role,
    /// Why actions are off, if they are: standby, read-only target, `--read-only`.
    pub read_only: Option<String>,
    /// Backend pid of the stats session.
    pub pid: i32,
    /// The ledgers, in the order they are shown.
    pub ledgers: Vec<LedgerFacts>,
}
