//! Putting a claimed job off without blaming it.

use super::{Failure, Finished, Ledger};
use crate::pg::{Error, Session};

impl Ledger {
    /// Puts claims off: each is ready again after its delay, its reason stored as the last error, and the
    /// attempt does not count. Where holder and attempts are the fence, the number of the attempt is used
    /// up and one more is allowed instead, up to 32,000: then the job has failed.
    ///
    /// # Errors
    /// As any statement; nothing is recorded then.
    pub async fn defer(&self, session: &Session, claims: &[Failure]) -> Result<Finished, Error> {
        self.failures(session, &self.inner.sql.defer, claims).await
    }
}
