//! What the world tells the screen, a recording, or a pipe.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    Backlog, BudgetState, ClaimOutcome, Ending, Found, JobAction, JobDetail, JobList, PlanCheck, Sample,
    ScanReason, Server,
};

/// Why a session ended or could not begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The server's code, when it had a word to say.
    pub sqlstate: Option<String>,
    /// One cleaned line.
    pub message: String,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.sqlstate {
            Some(code) => write!(f, "{code} {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// The stats session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Link {
    /// Connected, with what was found.
    Up(Box<Server>),
    /// Lost.
    Down(Loss),
    /// An attempt failed; the next one comes after this many milliseconds.
    Retry {
        /// Attempts since the loss.
        attempt: u32,
        /// Pause before the next.
        after_ms: u64,
        /// Why this one failed.
        loss: Loss,
    },
}

/// Parts of coming back, in milliseconds since the loss (or since the start).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// Until the new session was there.
    pub connected_ms: u64,
    /// Until LISTEN was committed and proven.
    pub listening_ms: u64,
}

/// The listen session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Listen {
    /// LISTEN is committed and was proven in a later transaction.
    Up {
        /// Backend pid of the listen session.
        pid: i32,
        /// Channels, exact bytes.
        channels: Vec<String>,
        /// How long it took.
        phases: Phases,
        /// Whether an earlier session was lost before this one.
        again: bool,
    },
    /// Lost.
    Down {
        /// Why.
        loss: Loss,
        /// How long it had been up, milliseconds.
        up_ms: u64,
    },
    /// An attempt failed; the next one comes after this many milliseconds.
    Retry {
        /// Attempts since the loss.
        attempt: u32,
        /// Pause before the next.
        after_ms: u64,
        /// Why this one failed.
        loss: Loss,
    },
    /// LISTEN was accepted, but the registration is not on this backend: a pooler without session
    /// mode. Polling only.
    Deaf {
        /// What the proof found.
        why: String,
    },
    /// No channel is configured: polling only.
    Off,
}

/// Notifications that arrived together on one channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wake {
    /// The channel, exact bytes, cleaned for display.
    pub channel: String,
    /// How many.
    pub count: u64,
}

/// A reconnect from loss to the end of its scan, milliseconds since the loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// Session and LISTEN.
    pub phases: Phases,
    /// Until the reconnect scan ended.
    pub scanned_ms: u64,
    /// Jobs that scan found.
    pub jobs: u64,
}

/// What the embedded worker reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum WorkerEvent {
    /// It runs under this name.
    Started {
        /// The holder name.
        name: String,
    },
    /// It has stopped.
    Stopped {
        /// Jobs given back unfinished.
        given_back: u64,
        /// Why, when it was not asked to.
        trouble: Option<String>,
    },
    /// A drain ended.
    Drained {
        /// Ledger.
        ledger: String,
        /// Why it began.
        reason: ScanReason,
        /// Jobs it found.
        jobs: u64,
    },
    /// A claim attempt.
    Claim {
        /// Ledger.
        ledger: String,
        /// How it ended.
        outcome: ClaimOutcome,
        /// Jobs it got.
        jobs: u64,
        /// Milliseconds.
        ms: f64,
    },
    /// Claims that failed, with the reason.
    ClaimFailed {
        /// Ledger.
        ledger: String,
        /// Why.
        loss: Loss,
    },
    /// A job's lease had moved when it was to be finished or renewed.
    Lost {
        /// Ledger.
        ledger: String,
        /// Job.
        id: String,
        /// What was tried: done, failed, renew.
        what: String,
    },
    /// Jobs that died with their holder on their last attempt and were marked failed.
    Exhausted {
        /// Ledger.
        ledger: String,
        /// How many.
        jobs: u64,
    },
    /// Jobs that were done longer ago than they are kept were deleted.
    Pruned {
        /// Ledger.
        ledger: String,
        /// How many.
        jobs: u64,
    },
    /// They could not be deleted, and stay; or jobs that are not to be kept could not be deleted when they
    /// were done.
    PruneFailed {
        /// Ledger.
        ledger: String,
        /// Why.
        loss: Loss,
    },
    /// The budget decided something.
    Budget {
        /// What.
        state: BudgetState,
        /// The evidence.
        why: String,
    },
    /// The listen session came back and its scan has ended.
    Recovered(Recovery),
}

/// How an action ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ActionEvent {
    /// One lease released.
    Released {
        /// Ledger.
        ledger: String,
        /// Job.
        id: String,
        /// Who held it.
        holder: String,
    },
    /// Nothing was released: the lease had moved on.
    MovedOn {
        /// Ledger.
        ledger: String,
        /// Job.
        id: String,
        /// What is there now.
        found: Found,
    },
    /// A job that nobody holds was acted on, or it had moved on.
    OnJob {
        /// Ledger.
        ledger: String,
        /// What was asked.
        action: JobAction,
        /// Job.
        id: String,
        /// What is there instead of what was seen; nothing was done then.
        moved: Option<Found>,
    },
    /// The dry run of a bulk release.
    ExpiredCount {
        /// Ledger.
        ledger: String,
        /// Only those of these holders; `None`: of all.
        #[serde(default)]
        holders: Option<Vec<String>>,
        /// How many, capped.
        count: u64,
        /// Whether the count stopped at its cap.
        capped: bool,
    },
    /// A batch of a bulk release.
    Batch {
        /// Ledger.
        ledger: String,
        /// Freed in this batch.
        batch: u64,
        /// Freed so far.
        total: u64,
    },
    /// A bulk release has ended.
    BulkDone {
        /// Ledger.
        ledger: String,
        /// Freed altogether.
        total: u64,
        /// Whether it was stopped before the end.
        stopped: bool,
    },
    /// The server's answer about a session that was to be ended.
    Ended {
        /// Which.
        pid: i32,
        /// What was asked for.
        how: Ending,
        /// Whether the server sent the signal.
        sent: bool,
        /// Its answer in words.
        answer: String,
    },
    /// A wake-up was sent.
    WakeSent {
        /// Channel.
        channel: String,
    },
    /// A fault was injected.
    FaultDone {
        /// What happened.
        text: String,
    },
    /// An action could not be done.
    Refused {
        /// What was asked.
        what: String,
        /// Why not, and what to do.
        why: String,
    },
}

/// A line for the event log that fits nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Whether it needs attention.
    pub warn: bool,
    /// One cleaned line.
    pub text: String,
}

/// Anything that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// The stats session.
    Link(Link),
    /// A pass of the sampler.
    Sample(Box<Sample>),
    /// A pass of the slow lane.
    Backlog(Box<Backlog>),
    /// Jobs that somebody asked to see.
    Jobs(Box<JobList>),
    /// One job that somebody asked to see.
    Job(Box<JobDetail>),
    /// The plan of a claim that somebody asked to see.
    Plan(Box<PlanCheck>),
    /// The listen session.
    Listen(Listen),
    /// Wake-ups.
    Wake(Wake),
    /// The embedded worker.
    Worker(WorkerEvent),
    /// An action.
    Action(ActionEvent),
    /// Anything else.
    Note(Note),
}

/// An event with the client's clocks at its arrival, as recorded and replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// Milliseconds since the program began, monotonic.
    pub mono_ms: u64,
    /// Wall clock, display only.
    pub wall: DateTime<Utc>,
    /// What happened.
    pub event: Event,
}

/// Where events go. Implementations never block and never fail: a slow reader loses detail, not
/// liveness.
pub trait Sink: Send + Sync + 'static {
    /// Takes one event.
    fn emit(&self, event: Event);
}

impl<F: Fn(Event) + Send + Sync + 'static> Sink for F {
    fn emit(&self, event: Event) {
        self(event)
    }
}
