//! What is recorded together: one statement for the ends of many jobs.

use super::lane::Kind;
use crate::ledger::{Failure, Finished, Ledger};
use crate::pg::{Error, Session};

/// Tries of a record that met a deadlock or serialization failure.
pub(super) const TRIES: usize = 5;

/// A batch of one kind.
pub(super) enum Ends {
    /// Ids and tokens.
    Done(Vec<(String, String)>),
    /// Done, and no history is kept.
    Gone(Vec<(String, String)>),
    Failed(Vec<Failure>),
    /// Put off: no fault of the jobs.
    Later(Vec<Failure>),
}

impl Ends {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Done(claims) | Self::Gone(claims) => claims.is_empty(),
            Self::Failed(failures) | Self::Later(failures) => failures.is_empty(),
        }
    }

    /// Once more after a deadlock or a serialization failure.
    pub(super) async fn record(&self, ledger: &Ledger, session: &Session) -> Result<Finished, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let outcome = match self {
                Self::Done(claims) => ledger.done(session, claims).await,
                Self::Gone(claims) => ledger.remove_done(session, claims).await,
                Self::Failed(failures) => ledger.failed(session, failures).await,
                Self::Later(failures) => ledger.defer(session, failures).await,
            };
            match outcome {
                Err(e) if e.is_retryable() && tries < TRIES => {}
                outcome => return outcome,
            }
        }
    }

    pub(super) fn claims(self) -> (Kind, Vec<(String, String)>) {
        match self {
            Self::Done(claims) => (Kind::Done, claims),
            Self::Gone(claims) => (Kind::Gone, claims),
            Self::Failed(all) => (Kind::Failed, pairs(all)),
            Self::Later(all) => (Kind::Later, pairs(all)),
        }
    }
}

fn pairs(failures: Vec<Failure>) -> Vec<(String, String)> {
    failures.into_iter().map(|f| (f.id, f.token)).collect()
}
