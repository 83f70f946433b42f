//! Faults that the demo can inject.

use serde::{Deserialize, Serialize};

/// One fault of the demo's menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Terminate the listen sessions of the dashboard and of the workers.
    KillListener,
    /// A worker takes jobs and dies without a word, leaving its leases behind.
    CrashWorker,
    /// Every worker dies at once, leaving its leases behind; again to start them anew.
    KillWorkers,
    /// Producers go on committing jobs, but send no wake-up; again to switch it back.
    MuteWakeups,
    /// A thousand jobs in one commit: one notification.
    Burst,
}

impl Fault {
    /// Every fault, in menu order.
    pub const ALL: [Self; 5] =
        [Self::KillListener, Self::CrashWorker, Self::KillWorkers, Self::MuteWakeups, Self::Burst];

    /// The menu line.
    pub fn title(self) -> &'static str {
        match self {
            Self::KillListener => "kill the listener",
            Self::CrashWorker => "crash a worker that holds leases",
            Self::KillWorkers => "kill every worker (again: start them)",
            Self::MuteWakeups => "mute the wake-ups (again: unmute)",
            Self::Burst => "burst of 1000 jobs in one commit",
        }
    }

    /// What to look for on the screen afterwards.
    pub fn expect(self) -> &'static str {
        match self {
            Self::KillListener => "a loss with its SQLSTATE, then a recovery time",
            Self::CrashWorker => "leases turn expired, then are taken again",
            Self::KillWorkers => "no worker alive; leases expire and stay until R frees them and w drains",
            Self::MuteWakeups => "jobs found by fallback; the oldest age climbs to the interval",
            Self::Burst => "one wake-up, a thousand jobs drained",
        }
    }
}
