//! Plain data that crosses rooms. No behaviour beyond what the data itself means, no I/O, no clock.
//!
//! [`Event`] flows from the world to the screen, [`Intent`] from the screen to the world; together
//! they are the whole contract between the half that talks to PostgreSQL and the half that draws.

mod backlog;
mod event;
mod evidence;
mod fault;
mod hand;
mod intent;
mod lease;
mod plan;
mod reading;
mod sample;
mod server;
mod session;
mod worker;

pub use backlog::{
    Backlog, JobDetail, JobFacts, JobList, JobRow, JobState, Looked, PastRelease, Payload, TableFacts,
    TypeCount,
};
pub use event::{
    ActionEvent, Event, Link, Listen, Loss, Note, Phases, Recovery, Sink, Stamped, Wake, WorkerEvent,
};
pub use evidence::{
    Evidence, Hidden, Inconsistent, LockWait, LockedRows, NotifyTrigger, Pin, PinKind, RowLocker, TableLock,
};
pub use fault::Fault;
pub use hand::{JobAction, Offer, ShownJob};
pub use intent::{Ending, Intent, Play};
pub use lease::{Fencing, Found, Holder, Lease};
pub use plan::{ClaimPlan, PlanCheck};
pub use reading::{Quality, Reading, Trouble};
pub use sample::{Cost, Counts, Flow, Sample, Vitals};
pub use server::{LedgerFacts, Role, Server};
pub use session::{NotifyLock, Session, SessionMark};
pub use worker::{BudgetState, ClaimOutcome, Counters, Percentiles, ScanReason, WorkerRow};

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The moment something happens on this side, passed in wherever time matters so that every pure
/// part is deterministic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// Time since the program began, by the monotonic clock: the measure of staleness.
    pub mono: Duration,
    /// The client's wall clock, for display only; ages and expiries use the server's clock.
    pub wall: DateTime<Utc>,
}
