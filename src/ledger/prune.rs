//! Retention: deleting jobs that were done long ago, a page of the table at a time.

use std::time::Duration;

use super::{DEADLINE, Ledger};
use crate::pg::{Arg, Error, Session};

/// Why jobs cannot be kept for a limited time in a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RetentionProblem {
    /// Nothing says since when a job is done.
    #[error("its profile names no finished_at and no done_at")]
    NoFinish,
    /// Nothing says when to stop looking.
    #[error("its profile names no created_at")]
    NoCreation,
    /// What is done is not told apart from what must stay.
    #[error("in its profile the state done is empty, or that of other jobs too")]
    NoDone,
}

/// What a look at one page of the table brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pruned {
    /// Rows of the page; fewer than asked for: the table ends here.
    pub rows: usize,
    /// Of those, deleted.
    pub gone: u64,
    /// Whether one of the rows was there before the time that is kept. In a page without such a row nothing
    /// can have been done that long ago.
    pub early: bool,
    /// The last id of the page: the next one begins after it.
    pub last: Option<String>,
    /// The last id of those that were deleted from the begin of the page on without a gap: up to here
    /// nothing is left.
    pub cleared: Option<String>,
}

impl Ledger {
    /// Whether jobs can be kept for a limited time here.
    ///
    /// # Errors
    /// What the profile lacks.
    pub fn retention(&self) -> Result<(), RetentionProblem> {
        let p = self.profile();
        let s = &p.states;
        if p.columns.finished_at.is_none() && p.columns.done_at.is_none() {
            return Err(RetentionProblem::NoFinish);
        }
        if p.columns.created_at.is_none() {
            return Err(RetentionProblem::NoCreation);
        }
        if s.done.is_empty() || [&s.ready, &s.running, &s.failed].contains(&&s.done) {
            return Err(RetentionProblem::NoDone);
        }
        Ok(())
    }

    /// Whether this role may delete from the table.
    pub fn may_delete(&self) -> bool {
        self.inner.may_delete
    }

    /// Whether ids grow with time, so that what comes after a young row is young, too. Of random ids, that
    /// is not so.
    pub fn ids_grow(&self) -> bool {
        self.inner.sequence.is_some()
    }

    /// Deletes, of the next `limit` rows by id after `after`, those that were done longer ago than `keep` by
    /// the server's clock. Rows that somebody else holds locked are passed over; no other row is locked.
    ///
    /// # Errors
    /// As any statement; nothing is deleted then.
    pub async fn prune(
        &self,
        session: &Session,
        keep: Duration,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Pruned, Error> {
        let (limit, keep) = (Arg::Int(i64::try_from(limit).unwrap_or(i64::MAX)), keep.as_secs_f64());
        let args = [limit, Arg::Float(keep), Arg::Text(after.unwrap_or_default())];
        let (sql, args) = match after {
            None => (&self.inner.sql.prune, &args[..2]),
            Some(_) => (&self.inner.sql.prune_after, &args[..]),
        };
        let lines = session.kept(sql, args, DEADLINE).await?;
        let Some(line) = lines.first() else { return Ok(Pruned::default()) };
        Ok(Pruned {
            rows: line.number(0).unwrap_or(0),
            gone: line.number(1).unwrap_or(0),
            early: line.is_true(2),
            last: line.cell(3).map(str::to_owned),
            cleared: line.cell(4).map(str::to_owned),
        })
    }
}
