//! Keeping a lease: only while it has not expired, and only by its own token.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_postgres::types::Type;

use super::{DEADLINE, Ledger};
use crate::pg::{Error, Session};

/// What became of a renewal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Renewed {
    /// Job ids with their new expiry.
    pub renewed: Vec<(String, DateTime<Utc>)>,
    /// The lease has moved or expired: stop the job, never renew again.
    pub lost: Vec<String>,
    /// Still held, but the row is locked by somebody else at this moment: try again.
    pub busy: Vec<String>,
}

impl Ledger {
    /// Renews claims: (id, token) each. A lease that has expired by the server's clock is not revived:
    /// somebody else may be claiming it at this moment.
    ///
    /// # Errors
    /// As any statement; the leases then stand as they were.
    pub async fn renew(
        &self,
        session: &Session,
        claims: &[(String, String)],
        lease: Duration,
    ) -> Result<Renewed, Error> {
        let ids: Vec<&str> = claims.iter().map(|(id, _)| id.as_str()).collect();
        let tokens: Vec<&str> = claims.iter().map(|(_, token)| token.as_str()).collect();
        let rows = session
            .query(
                &self.inner.sql.renew,
                &[
                    (&ids, Type::TEXT_ARRAY),
                    (&tokens, Type::TEXT_ARRAY),
                    (&lease.as_secs_f64(), Type::FLOAT8),
                ],
                DEADLINE,
            )
            .await?;
        let mut out = Renewed::default();
        for row in &rows {
            match row.get(2) {
                Some(expires) => out.renewed.push((row.get(0), expires)),
                None => out.busy.push(row.get(0)),
            }
        }
        let ours = |id: &str| out.renewed.iter().map(|(r, _)| r).chain(&out.busy).any(|o| o == id);
        out.lost = ids.iter().filter(|id| !ours(id)).map(|id| (*id).to_owned()).collect();
        Ok(out)
    }
}
