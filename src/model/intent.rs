//! What the screen asks the world to do.

use serde::{Deserialize, Serialize};

use super::{Fault, JobAction, Lease, Session, ShownJob};

/// One request from the screen. Every dangerous one carries the target as the person saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Intent {
    /// Leave.
    Quit,
    /// Give one held job back, exactly as it was shown.
    Release {
        /// Profile name of the ledger.
        ledger: String,
        /// The lease that the dialog froze.
        lease: Lease,
    },
    /// Retry, give up or run now: a job exactly as it was shown.
    OnJob {
        /// Profile name of the ledger.
        ledger: String,
        /// What.
        action: JobAction,
        /// The job that the dialog froze.
        job: ShownJob,
    },
    /// Count what a bulk release would free.
    CountExpired {
        /// Profile name of the ledger.
        ledger: String,
        /// Only the leases of these holders; `None`: of all.
        holders: Option<Vec<String>>,
    },
    /// Free all expired leases in batches.
    ReleaseExpired {
        /// Profile name of the ledger.
        ledger: String,
        /// Only the leases of these holders; `None`: of all.
        holders: Option<Vec<String>>,
    },
    /// Stop a bulk release after the batch in hand.
    StopBulk,
    /// Cancel what a session runs, or end the session, exactly the one that was shown.
    End {
        /// Which of the two.
        how: Ending,
        /// The session that the dialog froze.
        session: Box<Session>,
    },
    /// Send one wake-up on the ledger's channel.
    Wake {
        /// Profile name of the ledger.
        ledger: String,
    },
    /// Start or stop the embedded worker.
    Worker {
        /// On or off.
        on: bool,
    },
    /// List jobs of one type. Read only.
    Jobs {
        /// Profile name of the ledger.
        ledger: String,
        /// The type's key; `None`: all types.
        key: Option<String>,
    },
    /// Look at one job. Read only.
    Job {
        /// Profile name of the ledger.
        ledger: String,
        /// Which.
        id: String,
        /// Whether to read the beginning of its payload.
        payload: bool,
    },
    /// Plan a claim without running it. Read only.
    Plan {
        /// Profile name of the ledger.
        ledger: String,
    },
    /// Sample this often from now on, milliseconds. For the fast lane.
    Pace {
        /// The interval that is asked for.
        interval_ms: u64,
    },
    /// Inject a fault (demo only).
    Fault(Fault),
    /// Put a text on the clipboard of the person's terminal. For the loop of the screen.
    Copy(String),
    /// Draw everything anew. For the loop of the screen.
    Redraw,
    /// Stop the program as the shell's Ctrl-Z does. For the loop of the screen.
    Suspend,
    /// An alert fired: tell it outside the screen, if that is switched on. For the loop of the screen.
    Alarm(String),
    /// Move through a recording (replay only).
    Play(Play),
}

/// What is done to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ending {
    /// Its statement is cancelled (`pg_cancel_backend`); an open transaction without a statement stays.
    Cancel,
    /// It is ended, and its transaction is rolled back (`pg_terminate_backend`).
    Terminate,
}

impl Ending {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Terminate => "terminate",
        }
    }
}

/// A move through a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Play {
    /// Stop here, or go on from here; from the end, begin anew.
    PauseOrGoOn,
    /// The next higher speed.
    Faster,
    /// The next lower speed.
    Slower,
    /// This many seconds on, or back.
    Jump(i32),
    /// To the next sample, and stop there.
    Next,
    /// To the sample before, and stop there.
    Before,
    /// To the beginning.
    Begin,
    /// To the end.
    End,
}
