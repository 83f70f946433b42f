//! Faults that the demo can inject.

use serde::{Deserialize, Serialize};

/// One fault of the demo's menu. Between them they are what the drills break, as far as it can be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Terminate the listen sessions of the dashboard and of the workers.
    KillListener,
    /// Stop one listen session in its tracks for a while: its socket stays open and says nothing.
    FreezeListener,
    /// A hundred jobs are committed while no worker is there; then they come back.
    ListenerDown,
    /// A listener leaves a transaction open, so that the notification queue cannot shrink; again to end it.
    HoldQueue,
    /// A listener stops reading its socket while notifications go on; again to end it.
    DeafListener,
    /// A commit waits for a standby that does not exist, and holds the NOTIFY commit lock; again to let it go.
    HoldCommit,
    /// A transaction has every due job locked; again to end it.
    LockRows,
    /// An ALTER TABLE waits for a reader, and everybody waits behind it; again to end both.
    PendingAlter,
    /// Producers go on committing jobs, but send no wake-up; again to switch it back.
    MuteWakeups,
    /// A thousand jobs with a wake-up each in one commit: one notification.
    Burst,
    /// A worker takes jobs and dies without a word, leaving its leases behind.
    CrashWorker,
    /// A worker is asked to stop in the middle of its work, as by SIGTERM, and starts again.
    StopWorker,
    /// Every worker dies at once, leaving its leases behind; again to start them anew.
    KillWorkers,
    /// A publisher dies with messages that it has published and not marked as SENT.
    CrashPublisher,
    /// A job that fails at every attempt.
    Poison,
    /// The server is restarted in order.
    RestartFast,
    /// The server crashes, and comes back by recovery.
    RestartImmediate,
}

impl Fault {
    /// Every fault, in menu order.
    pub const ALL: [Self; 17] = [
        Self::KillListener,
        Self::FreezeListener,
        Self::ListenerDown,
        Self::HoldQueue,
        Self::DeafListener,
        Self::HoldCommit,
        Self::LockRows,
        Self::PendingAlter,
        Self::MuteWakeups,
        Self::Burst,
        Self::CrashWorker,
        Self::StopWorker,
        Self::KillWorkers,
        Self::CrashPublisher,
        Self::Poison,
        Self::RestartFast,
        Self::RestartImmediate,
    ];

    /// The menu line.
    pub fn title(self) -> &'static str {
        match self {
            Self::KillListener => "kill the listeners",
            Self::FreezeListener => "freeze a listener for half a minute",
            Self::ListenerDown => "commit 100 jobs while no worker is there",
            Self::HoldQueue => "a listener in a long transaction (again: end it)",
            Self::DeafListener => "a listener that does not read (again: end it)",
            Self::HoldCommit => "a commit that waits for a standby (again: let go)",
            Self::LockRows => "lock every due job elsewhere (again: let go)",
            Self::PendingAlter => "an ALTER that waits for a reader (again: end it)",
            Self::MuteWakeups => "mute the wake-ups (again: unmute)",
            Self::Burst => "1000 jobs and wake-ups in one commit",
            Self::CrashWorker => "crash a worker that holds leases",
            Self::StopWorker => "stop a worker in order, as SIGTERM does",
            Self::KillWorkers => "kill every worker (again: start them)",
            Self::CrashPublisher => "crash a publisher before SENT",
            Self::Poison => "a job that fails at every attempt",
            Self::RestartFast => "restart the server, fast",
            Self::RestartImmediate => "crash the server, and start it again",
        }
    }

    /// What to look for on the screen afterwards.
    pub fn expect(self) -> &'static str {
        match self {
            Self::KillListener => "a loss with its SQLSTATE, then a recovery time",
            Self::FreezeListener => "silence, a heartbeat unanswered within 12 s, a reconnect, its scan",
            Self::ListenerDown => "ready jobs pile up; the startup scan finds them all",
            Self::HoldQueue => "the queue's usage climbs; Sessions shows who holds it",
            Self::DeafListener => "Sessions marks it: it pins a snapshot and the queue; K ends it",
            Self::HoldCommit => "producers blocked: who holds the NOTIFY commit lock, and on what",
            Self::LockRows => "ready rows locked elsewhere, by pid; K ends it",
            Self::PendingAlter => "table locked: the ALTER, whom it waits for, who waits behind it",
            Self::MuteWakeups => "jobs found by fallback; the oldest age climbs to the interval",
            Self::Burst => "one wake-up, a thousand jobs drained",
            Self::CrashWorker => "leases turn expired, then are taken again",
            Self::StopWorker => "it ends what it has in hand and leaves no lease",
            Self::KillWorkers => "no worker alive; leases expire and stay until R frees them and w drains",
            Self::CrashPublisher => "p for the outbox: its leases expire, the messages go out again",
            Self::Poison => "it is tried five times, further and further apart, and ends failed",
            Self::RestartFast => "sessions end with 57P01, everybody comes back and scans",
            Self::RestartImmediate => "sessions break, recovery, everybody comes back and scans",
        }
    }
}
