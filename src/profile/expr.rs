//! The SQL fragments that a profile stands for. The table is aliased `t`.

use super::{AttemptsCount, Profile};
use crate::model::Fencing;
use crate::text::{qualified, quote_ident, quote_literal};

impl Profile {
    /// `"schema"."table"`.
    pub fn relation(&self) -> String {
        qualified(&self.schema, &self.table)
    }

    /// A column of `t`, quoted.
    pub fn t(&self, column: &str) -> String {
        format!("t.{}", quote_ident(column))
    }

    /// The status column of `t`.
    pub fn status(&self) -> String {
        self.t(&self.columns.status)
    }

    /// The id column of `t`.
    pub fn id(&self) -> String {
        self.t(&self.columns.id)
    }

    /// When a waiting row is due.
    pub fn run_at(&self) -> String {
        let run_at = self.t(&self.columns.run_at);
        match &self.columns.run_at_unset {
            Some(other) => format!("coalesce({run_at}, {})", self.t(other)),
            None => run_at,
        }
    }

    /// When a row is due, waiting or held: one ordering for both, served by one index.
    pub fn due(&self) -> String {
        if let Some(due) = &self.expressions.due {
            return format!("({due})");
        }
        match &self.columns.locked_until {
            Some(until) => format!(
                "(case {} when {} then {} when {} then {} end)",
                self.status(),
                quote_literal(&self.states.ready),
                self.run_at(),
                quote_literal(&self.states.running),
                self.t(until)
            ),
            None => self.run_at(),
        }
    }

    /// Rows that the due index covers.
    pub fn live(&self) -> String {
        format!(
            "{} in ({}, {})",
            self.status(),
            quote_literal(&self.states.ready),
            quote_literal(&self.states.running)
        )
    }

    /// Waiting rows.
    pub fn is_ready(&self) -> String {
        format!("{} = {}", self.status(), quote_literal(&self.states.ready))
    }

    /// Held rows.
    pub fn is_running(&self) -> String {
        format!("{} = {}", self.status(), quote_literal(&self.states.running))
    }

    /// Held rows, written so that no partial index on the state can serve it: a planner with stale
    /// statistics would choose such an index over the primary key and walk every held row.
    pub fn is_running_by_key(&self) -> String {
        format!("coalesce({}::text, '') = {}", self.status(), quote_literal(&self.states.running))
    }

    /// Finished rows.
    pub fn is_done(&self) -> String {
        format!("{} = {}", self.status(), quote_literal(&self.states.done))
    }

    /// Rows that gave up.
    pub fn is_failed(&self) -> String {
        format!("{} = {}", self.status(), quote_literal(&self.states.failed))
    }

    /// What fences a lease, as text.
    pub fn token(&self) -> String {
        let c = &self.columns;
        match (self.fencing, &c.lease_token, &c.locked_by, &c.attempts) {
            (Fencing::Token, Some(token), _, _) => format!("{}::text", self.t(token)),
            (Fencing::HolderAttempts, _, Some(holder), Some(attempts)) => {
                format!("{} || '#' || {}::text", self.t(holder), self.t(attempts))
            }
            (_, _, Some(holder), _) => format!("{}::text", self.t(holder)),
            _ => "''".to_owned(),
        }
    }

    /// Whether a held row has used its last attempt, so that it must not run again after its holder died.
    pub fn is_exhausted_when_expired(&self) -> String {
        match (&self.columns.attempts, &self.columns.max_attempts, self.attempts_count) {
            (Some(a), Some(m), AttemptsCount::Claims) => format!("{} >= {}", self.t(a), self.t(m)),
            _ => "false".to_owned(),
        }
    }

    /// Whether recording one more failure is the last one.
    pub fn is_last_failure(&self) -> String {
        match (&self.columns.attempts, &self.columns.max_attempts, self.attempts_count) {
            (Some(a), Some(m), AttemptsCount::Claims) => format!("{} >= {}", self.t(a), self.t(m)),
            (Some(a), Some(m), AttemptsCount::Failures) => format!("{} + 1 >= {}", self.t(a), self.t(m)),
            _ => "false".to_owned(),
        }
    }

    /// `set` items that clear a lease whole: a half-cleared one is picked up by nobody.
    pub fn clear_lease(&self) -> Vec<String> {
        let c = &self.columns;
        [&c.locked_by, &c.locked_until, &c.lease_token]
            .into_iter()
            .flatten()
            .map(|name| format!("{} = null", quote_ident(name)))
            .collect()
    }
}
