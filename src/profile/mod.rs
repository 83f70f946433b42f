//! A profile says how one table's columns and states map to the words of this program.
//!
//! Profiles are TOML: three are built in, and a user's file works the same. Identifiers are the exact
//! bytes of the names and are always quoted. Nothing outside this room and `ledger` knows a column name.

mod builtin;
mod expr;
mod parse;

use serde::Deserialize;

use crate::model::Fencing;

pub use builtin::{BUILTIN, builtin};
pub use parse::ProfileError;

/// When an attempt is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptsCount {
    /// At the claim: a crash counts, so a job that kills its worker ends as failed.
    Claims,
    /// At a recorded failure: a crash leaves the count as it was.
    Failures,
}

/// One table's mapping.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name of the ledger on screens and in JSON.
    pub name: String,
    /// Schema, exact.
    pub schema: String,
    /// Table, exact.
    pub table: String,
    /// The wake-up channel, exact; without one there is only the fallback scan.
    pub channel: Option<String>,
    /// What a late completion does.
    pub fencing: Fencing,
    /// When an attempt is counted.
    pub attempts_count: AttemptsCount,
    /// The columns.
    pub columns: Columns,
    /// The states, as the values of the status column.
    pub states: States,
    /// Expressions that replace what is derived from columns and states.
    #[serde(default)]
    pub expressions: Expressions,
}

/// Column names, exact bytes; quoted wherever they are used.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    /// Primary key, of any type that casts from text.
    pub id: String,
    /// State of the job.
    pub status: String,
    /// Not before.
    pub run_at: String,
    /// Stands in for an unset `run_at`.
    pub run_at_unset: Option<String>,
    /// Insertion time.
    pub created_at: Option<String>,
    /// Kind of job, or topic.
    pub job_type: Option<String>,
    /// The work itself.
    pub payload: Option<String>,
    /// Message key.
    pub key: Option<String>,
    /// Attempts so far.
    pub attempts: Option<String>,
    /// Attempts allowed.
    pub max_attempts: Option<String>,
    /// Holder.
    pub locked_by: Option<String>,
    /// Expiry.
    pub locked_until: Option<String>,
    /// Token, new at every claim.
    pub lease_token: Option<String>,
    /// Error of the last failed attempt.
    pub last_error: Option<String>,
    /// Set when done and when failed.
    pub finished_at: Option<String>,
    /// Set when done only.
    pub done_at: Option<String>,
}

/// Values of the status column.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct States {
    /// Waiting, due now or later.
    pub ready: String,
    /// Held.
    pub running: String,
    /// Finished.
    pub done: String,
    /// Gave up.
    pub failed: String,
}

/// SQL that replaces a derived expression. The table is aliased `t` in every statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expressions {
    /// When a row is due: must match the expression of an index, or claims sort the table.
    pub due: Option<String>,
}

impl Profile {
    /// Columns that the table must have, in declaration order.
    pub fn column_names(&self) -> Vec<&str> {
        let c = &self.columns;
        [Some(&c.id), Some(&c.status), Some(&c.run_at)]
            .into_iter()
            .chain([
                c.run_at_unset.as_ref(),
                c.created_at.as_ref(),
                c.job_type.as_ref(),
                c.payload.as_ref(),
                c.key.as_ref(),
                c.attempts.as_ref(),
                c.max_attempts.as_ref(),
                c.locked_by.as_ref(),
                c.locked_until.as_ref(),
                c.lease_token.as_ref(),
                c.last_error.as_ref(),
                c.finished_at.as_ref(),
                c.done_at.as_ref(),
            ])
            .flatten()
            .map(String::as_str)
            .collect()
    }

    /// Whether rows carry a lease, so that jobs can be claimed and released.
    pub fn has_lease(&self) -> bool {
        self.columns.locked_by.is_some() && self.columns.locked_until.is_some()
    }
}
