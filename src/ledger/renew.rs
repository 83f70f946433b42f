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
        let renewed: Vec<(String, DateTime<Utc>)> = rows.iter().map(|r| (r.get(0), r.get(1))).collect();
        let lost = ids
            .iter()
            .filter(|id| !renewed.iter().any(|(r, _)| r == *id))
            .map(|s| (*s).to_owned())
            .collect();
        Ok(Renewed { renewed, lost })
    }
}
