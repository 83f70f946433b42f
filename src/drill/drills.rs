//! Which drills there are.

use super::bench::Bench;
use super::{DrillError, Verdict, leases, wakeups};

/// One drill.
pub struct Drill {
    /// Name on the command line.
    pub name: &'static str,
    /// What it breaks.
    pub breaks: &'static str,
    /// What must hold.
    pub promise: &'static str,
    /// The ledger it works on.
    pub(super) ledger: &'static str,
    which: Which,
}

enum Which {
    ListenerDown,
    WorkerKilled,
    OneCommit,
    WakeupsLost,
    Poison,
    WorkerStopped,
    OutboxCrash,
}

/// Every drill.
pub const ALL: &[Drill] = &[
    Drill {
        name: "listener-down",
        breaks: "100 jobs are committed while nobody listens",
        promise: "the next worker's startup scan finds all of them; each is handled once",
        ledger: "jobs",
        which: Which::ListenerDown,
    },
    Drill {
        name: "worker-killed",
        breaks: "a worker dies holding leases",
        promise: "the leases expire, the jobs run again, none is left behind",
        ledger: "jobs",
        which: Which::WorkerKilled,
    },
    Drill {
        name: "one-commit",
        breaks: "1000 equal wake-ups are sent in one commit",
        promise: "they arrive as one, and all 1000 jobs are drained",
        ledger: "jobs",
        which: Which::OneCommit,
    },
    Drill {
        name: "wakeups-lost",
        breaks: "jobs are committed and no wake-up is ever sent",
        promise: "no job waits longer than the fallback interval and a claim; each is handled once",
        ledger: "jobs",
        which: Which::WakeupsLost,
    },
    Drill {
        name: "poison",
        breaks: "a job fails at every attempt, at the head of the queue of a worker with one hand",
        promise: "it ends failed after its five attempts, and the jobs behind it are done",
        ledger: "jobs",
        which: Which::Poison,
    },
    Drill {
        name: "worker-stopped",
        breaks: "a worker process gets SIGTERM in the middle of a batch",
        promise: "it leaves within its grace time with nothing leased, and the next worker does the rest",
        ledger: "jobs",
        which: Which::WorkerStopped,
    },
    Drill {
        name: "outbox-crash",
        breaks: "a publisher dies with messages in hand: half not yet published, half published and not yet SENT",
        promise: "all are SENT in the end; what was published goes out twice, and its reader applies it once",
        ledger: "outbox",
        which: Which::OutboxCrash,
    },
];

impl Drill {
    pub(super) async fn run(&self, bench: &Bench<'_>) -> Result<Verdict, DrillError> {
        match self.which {
            Which::ListenerDown => wakeups::listener_down(bench).await,
            Which::WorkerKilled => leases::worker_killed(bench).await,
            Which::OneCommit => wakeups::one_commit(bench).await,
            Which::WakeupsLost => wakeups::wakeups_lost(bench).await,
            Which::Poison => leases::poison(bench).await,
            Which::WorkerStopped => leases::worker_stopped(bench).await,
            Which::OutboxCrash => leases::outbox_crash(bench).await,
        }
    }
}
