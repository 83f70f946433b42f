//! Work sessions, and what is under way on them.
//!
//! Each session has room for one claim and for the ends of jobs beside it: the server finds the next
//! statement in its socket when it has finished one, and never waits for this side to think.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ledger::{Claim, Earliest, Finished};
use crate::model::ScanReason;
use crate::pg::{Error, Session};

/// One work session, or its place while it is lost.
#[derive(Default)]
pub(super) struct Lane {
    pub session: Option<Arc<Session>>,
    /// Counts the sessions of this place: an answer of an earlier one says nothing about this one.
    pub serial: u64,
    /// A claim, or the look at the head that follows an empty one, is under way.
    pub claiming: bool,
    /// Statements under way that record ends.
    pub recording: usize,
    pub connecting: bool,
    pub reconnect_at: Option<Instant>,
}

/// A claim that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub ledger: usize,
    pub limit: usize,
    pub reason: ScanReason,
    /// From the head of the due order, not from a mark.
    pub head: bool,
    pub began: Instant,
}

/// What comes back from a session.
pub(super) enum What {
    Connected(Result<Session, Error>),
    Ended(Error),
    Claimed(Asked, Duration, Result<Claim, Error>),
    Looked(Asked, Duration, Result<Earliest, Error>),
    /// `done` or `failed` of a ledger, with the claims that were to be recorded.
    Recorded(usize, Kind, Vec<(String, String)>, Result<Finished, Error>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Done,
    /// Done, and deleted.
    Gone,
    Failed,
    Later,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Done | Self::Gone => "done",
            Self::Failed => "failed",
            Self::Later => "later",
        }
    }
}

/// With the place it comes from.
pub(super) struct Answer {
    pub lane: usize,
    pub serial: u64,
    pub what: What,
}
