//! What is recorded together: one statement for the ends of many jobs.

use std::ops::Range;

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
        self.len() == 0
    }

    /// Records them all, but for those rows that the server refuses: one of them must not cost the others
    /// their ends.
    ///
    /// # Errors
    /// What is wrong with more than single rows; and with a single end, whatever is wrong.
    pub(super) async fn record(&self, ledger: &Ledger, session: &Session) -> Result<Finished, Error> {
        let mut all = Finished::default();
        let mut parts = Vec::from([(0, self.len())]);
        while let Some((start, end)) = parts.pop() {
            match self.record_part(ledger, session, start..end).await {
                Ok(finished) => all = all.and(finished),
                // What cannot be deleted is kept instead, all of it.
                Err(e) if matches!(self, Self::Gone(_)) || !e.is_about_a_row() || self.len() < 2 => {
                    if all == Finished::default() {
                        return Err(e);
                    }
                    // Parts of it are recorded and said so; the rest is tried again.
                    tracing::warn!(reason = %e.loss(), "some ends could not be recorded");
                    for (start, end) in parts.into_iter().chain([(start, end)]) {
                        all.refused.extend((start..end).filter_map(|at| self.id(at)).map(str::to_owned));
                    }
                    return Ok(all);
                }
                Err(e) if end - start < 2 => {
                    tracing::warn!(reason = %e.loss(), "the end of one job is refused");
                    all.refused.extend(self.id(start).map(str::to_owned));
                }
                Err(_) => {
                    let middle = start + (end - start) / 2;
                    parts.extend([(middle, end), (start, middle)]);
                }
            }
        }
        Ok(all)
    }

    /// Once more after a deadlock or a serialization failure.
    async fn record_part(
        &self,
        ledger: &Ledger,
        session: &Session,
        part: Range<usize>,
    ) -> Result<Finished, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let outcome = match self {
                Self::Done(claims) => ledger.done(session, &claims[part.clone()]).await,
                Self::Gone(claims) => ledger.remove_done(session, &claims[part.clone()]).await,
                Self::Failed(failures) => ledger.failed(session, &failures[part.clone()]).await,
                Self::Later(failures) => ledger.defer(session, &failures[part.clone()]).await,
            };
            match outcome {
                Err(e) if e.is_retryable() && tries < TRIES => {}
                outcome => return outcome,
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Done(claims) | Self::Gone(claims) => claims.len(),
            Self::Failed(failures) | Self::Later(failures) => failures.len(),
        }
    }

    fn id(&self, at: usize) -> Option<&str> {
        match self {
            Self::Done(claims) | Self::Gone(claims) => claims.get(at).map(|(id, _)| id.as_str()),
            Self::Failed(failures) | Self::Later(failures) => failures.get(at).map(|f| f.id.as_str()),
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
