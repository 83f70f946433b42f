//! How the server would carry out a claim.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::Reading;

/// A plan, judged. Nothing was run for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimPlan {
    /// The plan, a node a line, indented.
    pub lines: Vec<String>,
    /// What is wrong with it, a sentence each.
    pub flaws: Vec<String>,
    /// The statement that makes the missing index.
    pub index: Option<String>,
    /// Rows of the table by the server's statistics; `None` when it has none.
    pub rows: Option<u64>,
    /// Whether only the choice of rows could be planned, because this role may not update.
    pub only_the_pick: bool,
}

/// The answer about one ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanCheck {
    /// Profile name of the ledger.
    pub ledger: String,
    /// The server's clock.
    pub taken_at: DateTime<Utc>,
    /// The plan.
    pub plan: Reading<ClaimPlan>,
}
