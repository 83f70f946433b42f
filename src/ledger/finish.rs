//! Ending a claim: done, a failed attempt, or given back. Always fenced; a row that does not come back
//! was lost to somebody else, which is an event and not a success.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{DEADLINE, Ledger};
use crate::pg::{Error, Session};
use crate::text::clean_block;

/// A failed attempt to record.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Job.
    pub id: String,
    /// Its fence.
    pub token: String,
    /// What went wrong; cleaned and cut before it is stored.
    pub error: String,
    /// Not before this much later.
    pub delay: Duration,
}

/// A claim to give back unfinished.
#[derive(Clone, Debug, PartialEq)]
pub struct Giveback {
    /// Job.
    pub id: String,
    /// Its fence.
    pub token: String,
    /// Whether a handler had begun: an attempt that never began is not counted.
    pub started: bool,
}

/// What became of a fenced batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finished {
    /// Recorded.
    pub recorded: Vec<String>,
    /// Of those, jobs that have now given up (failed attempts only).
    pub gave_up: Vec<String>,
    /// The lease had moved: nothing was changed.
    pub lost: Vec<String>,
    /// The row is locked by somebody else at this moment: nothing was changed, try again.
    pub busy: Vec<String>,
}

/// Longest error text that is stored, in characters.
const MAX_ERROR: usize = 2000;

impl Ledger {
    /// Marks claims done: (id, token) each.
    ///
    /// # Errors
    /// As any statement; nothing is recorded then.
    pub async fn done(&self, session: &Session, claims: &[(String, String)]) -> Result<Finished, Error> {
        let ids: Vec<&str> = claims.iter().map(|(id, _)| id.as_str()).collect();
        let tokens: Vec<&str> = claims.iter().map(|(_, token)| token.as_str()).collect();
        let rows = session
            .query(&self.inner.sql.done, &[(&ids, Type::TEXT_ARRAY), (&tokens, Type::TEXT_ARRAY)], DEADLINE)
            .await?;
        Ok(sort_out(&ids, &rows))
    }

    /// Records failed attempts: the lease is cleared, the error stored, and the job is due again after its
    /// delay, or has given up at max_attempts.
    ///
    /// # Errors
    /// As any statement; nothing is recorded then.
    pub async fn failed(&self, session: &Session, failures: &[Failure]) -> Result<Finished, Error> {
        let ids: Vec<&str> = failures.iter().map(|f| f.id.as_str()).collect();
        let tokens: Vec<&str> = failures.iter().map(|f| f.token.as_str()).collect();
        let errors: Vec<String> =
            failures.iter().map(|f| clean_block(&f.error).chars().take(MAX_ERROR).collect()).collect();
        let delays: Vec<f64> = failures.iter().map(|f| f.delay.as_secs_f64()).collect();
        let rows = session
            .query(
                &self.inner.sql.failed,
                &[
                    (&ids, Type::TEXT_ARRAY),
                    (&tokens, Type::TEXT_ARRAY),
                    (&errors, Type::TEXT_ARRAY),
                    (&delays, Type::FLOAT8_ARRAY),
                ],
                DEADLINE,
            )
            .await?;
        Ok(sort_out(&ids, &rows))
    }

    /// Gives claims back to the queue, due as before.
    ///
    /// # Errors
    /// As any statement; the leases then end by themselves.
    pub async fn give_back(&self, session: &Session, claims: &[Giveback]) -> Result<Finished, Error> {
        let ids: Vec<&str> = claims.iter().map(|c| c.id.as_str()).collect();
        let tokens: Vec<&str> = claims.iter().map(|c| c.token.as_str()).collect();
        let refunds: Vec<i32> = claims.iter().map(|c| i32::from(!c.started)).collect();
        let rows = session
            .query(
                &self.inner.sql.give_back,
                &[(&ids, Type::TEXT_ARRAY), (&tokens, Type::TEXT_ARRAY), (&refunds, Type::INT4_ARRAY)],
                DEADLINE,
            )
            .await?;
        Ok(sort_out(&ids, &rows))
    }
}

fn sort_out(asked: &[&str], rows: &[Row]) -> Finished {
    let mut out = Finished::default();
    for row in rows {
        let id: String = row.get(0);
        if !row.get::<_, bool>(1) {
            out.busy.push(id);
            continue;
        }
        if row.get::<_, Option<bool>>(2) == Some(true) {
            out.gave_up.push(id.clone());
        }
        out.recorded.push(id);
    }
    let ours = |id: &str| out.recorded.iter().chain(&out.busy).any(|o| o == id);
    out.lost = asked.iter().filter(|id| !ours(id)).map(|id| (*id).to_owned()).collect();
    out
}
