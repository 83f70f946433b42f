//! Keeping a lease: only while it has not expired, and only by its own token.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::Ledger;
use super::claim::from_epoch;
use crate::pg::{Arg, Error, Session};

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
        let more = [Arg::Float(lease.as_secs_f64())];
        let sql = &self.inner.sql;
        let (done, busy) = self.fenced(session, (&sql.renew, &sql.still_alive), claims, &more).await?;
        let mut out = Renewed::default();
        let mut renewed = HashSet::with_capacity(done.len());
        for (at, epoch) in done {
            let Some(claim) = claims.get(at) else { continue };
            renewed.insert(claim);
            let expires = epoch.and_then(|e| e.parse().ok()).and_then(from_epoch).unwrap_or_default();
            out.renewed.push((claim.0.clone(), expires));
        }
        for (at, claim) in claims.iter().enumerate() {
            if busy.contains(&at) {
                out.busy.push(claim.0.clone());
            } else if !renewed.contains(claim) {
                out.lost.push(claim.0.clone());
            }
        }
        Ok(out)
    }
}
