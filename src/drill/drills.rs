//! Which drills there are.

use super::bench::Bench;
use super::{DrillError, Outcome, Report, Verdict, leases, queue, server, wakeups};

/// One drill.
pub struct Drill {
    /// Name on the command line.
    pub name: &'static str,
    /// What it breaks.
    pub breaks: &'static str,
    /// What must hold.
    pub promise: &'static str,
    /// Why it is run on a throwaway server only, if so.
    pub needs_own_server: Option<&'static str>,
    /// The ledger it works on.
    pub(super) ledger: &'static str,
    which: Which,
}

enum Which {
    ListenerDown,
    LateCommit,
    WorkerKilled,
    LateCompletion,
    OneCommit,
    WakeupsLost,
    Poison,
    WorkerStopped,
    OutboxCrash,
    ListenerCut,
    ListenerFrozen,
    ServerRestarted,
    ListenerHoldsQueue,
}

/// Every drill.
pub const ALL: &[Drill] = &[
    Drill {
        name: "listener-down",
        breaks: "100 jobs are committed while nobody listens",
        promise: "the next worker's startup scan finds all of them; each is handled once",
        needs_own_server: None,
        ledger: "jobs",
        which: Which::ListenerDown,
    },
    Drill {
        name: "late-commit",
        breaks: "a job is committed when the startup scan has looked, and is not yet over",
        promise: "its wake-up is heard, because LISTEN came before the scan: it waits for no fallback",
        needs_own_server: None,
        ledger: "jobs",
        which: Which::LateCommit,
    },
    Drill {
        name: "worker-killed",
        breaks: "a worker process is killed (SIGKILL) holding leases",
        promise: "the leases expire, the jobs run again, none is left behind",
        needs_own_server: None,
        ledger: "jobs",
        which: Which::WorkerKilled,
    },
    Drill {
        name: "late-completion",
        breaks: "a worker ends a job after its lease was over and another worker took the job",
        promise: "the late end changes nothing: the job stays with its new holder",
        needs_own_server: None,
        ledger: "jobs",
        which: Which::LateCompletion,
    },
    Drill {
        name: "one-commit",
        breaks: "1000 equal wake-ups are sent in one commit",
        promise: "however many of them arrive, all 1000 jobs are drained, each once",
        needs_own_server: None,
        ledger: "jobs",
        which: Which::OneCommit,
    },
    Drill {
        name: "wakeups-lost",
        breaks: "jobs are committed and no wake-up is ever sent",
        promise: "no job waits longer than the fallback interval and a claim; each is handled once",
        needs_own_server: None,
        ledger: "jobs",
        which: Which::WakeupsLost,
    },
    Drill {
        name: "poison",
        breaks: "a job fails at every attempt, at the head of the queue of a worker with one hand",
        promise: "it ends failed after its five attempts, and the jobs behind it are done",
        needs_own_server: None,
        ledger: "jobs",
        which: Which::Poison,
    },
    Drill {
        name: "worker-stopped",
        breaks: "a worker process gets SIGTERM in the middle of a batch",
        promise: "it leaves within its grace time with nothing leased, and the next worker does the rest",
        needs_own_server: None,
        ledger: "jobs",
        which: Which::WorkerStopped,
    },
    Drill {
        name: "outbox-crash",
        breaks: "a publisher dies with messages in hand: half not yet published, half published and not yet SENT",
        promise: "all are SENT in the end; what was published goes out twice, and its reader applies it once",
        needs_own_server: None,
        ledger: "outbox",
        which: Which::OutboxCrash,
    },
    Drill {
        name: "listener-cut",
        breaks: "the listen session is terminated, twice, with jobs in hand",
        promise: "the scan after each reconnect finds what was missed; no job is in two hands at the same time",
        needs_own_server: None,
        ledger: "jobs",
        which: Which::ListenerCut,
    },
    Drill {
        name: "listener-frozen",
        breaks: "the listen session is frozen, with its socket open: only its heartbeat can tell",
        promise: "the scan after the reconnect finds what was missed; no job is in two hands at the same time",
        needs_own_server: Some("it stops a process of the server"),
        ledger: "jobs",
        which: Which::ListenerFrozen,
    },
    Drill {
        name: "server-restarted",
        breaks: "the server is restarted during a drain, fast, and then immediately, as after a crash",
        promise: "the worker comes back and drains the rest; every effect is applied once",
        needs_own_server: Some("it restarts the server"),
        ledger: "jobs",
        which: Which::ServerRestarted,
    },
    Drill {
        name: "listener-holds-queue",
        breaks: "a listener leaves a transaction open, and the notification queue cannot shrink",
        promise: "its usage climbs in the sample, that session alone is the suspect, and its end clears it",
        needs_own_server: Some("it fills the notification queue, which all databases share"),
        ledger: "jobs",
        which: Which::ListenerHoldsQueue,
    },
];

impl Drill {
    /// A report with nothing in it yet.
    pub(super) fn report(&self, outcome: Outcome) -> Report {
        Report {
            name: self.name,
            breaks: self.breaks,
            promise: self.promise,
            outcome,
            not_run: None,
            broken: Vec::new(),
            evidence: Vec::new(),
            recoveries_s: Vec::new(),
            took_s: 0.0,
        }
    }

    pub(super) async fn run(&self, bench: &mut Bench<'_>) -> Result<Verdict, DrillError> {
        match self.which {
            Which::ListenerDown => wakeups::listener_down(bench).await,
            Which::LateCommit => wakeups::late_commit(bench).await,
            Which::WorkerKilled => leases::worker_killed(bench).await,
            Which::LateCompletion => leases::late_completion(bench).await,
            Which::OneCommit => wakeups::one_commit(bench).await,
            Which::WakeupsLost => wakeups::wakeups_lost(bench).await,
            Which::Poison => leases::poison(bench).await,
            Which::WorkerStopped => leases::worker_stopped(bench).await,
            Which::OutboxCrash => leases::outbox_crash(bench).await,
            Which::ListenerCut => wakeups::listener_cut(bench).await,
            Which::ListenerFrozen => wakeups::listener_frozen(bench).await,
            Which::ServerRestarted => server::server_restarted(bench).await,
            Which::ListenerHoldsQueue => queue::listener_holds_queue(bench).await,
        }
    }
}
