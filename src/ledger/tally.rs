//! Exact counts per state, by reading the whole table: for practice ledgers only, where a drill or a
//! demo judges by the final state. The monitor never counts like this.

use super::{DEADLINE, Ledger};
use crate::pg::{Error, Fields, Session};

/// Rows per state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Waiting.
    pub ready: u64,
    /// Held.
    pub running: u64,
    /// Finished.
    pub done: u64,
    /// Gave up.
    pub failed: u64,
}

impl Ledger {
    /// Counts every row.
    ///
    /// # Errors
    /// As any statement.
    pub async fn tally(&self, session: &Session) -> Result<Tally, Error> {
        let states = &self.inner.profile.states;
        let rows = session.query(&self.inner.sql.tally, &[], DEADLINE).await?;
        let mut out = Tally::default();
        for row in rows {
            let (state, n): (String, i64) = (row.field(0)?, row.field(1)?);
            let n = u64::try_from(n).unwrap_or(0);
            match state {
                s if s == states.ready => out.ready = n,
                s if s == states.running => out.running = n,
                s if s == states.done => out.done = n,
                s if s == states.failed => out.failed = n,
                _ => {}
            }
        }
        Ok(out)
    }
}
