//! What a drain worker counts and reports.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Why a drain began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScanReason {
    /// The first scan of the process.
    Startup,
    /// A wake-up arrived.
    Notify,
    /// Nothing arrived for the fallback interval.
    Fallback,
    /// The listen session was lost and came back.
    Reconnect,
}

impl ScanReason {
    /// All four, in the order of the counters.
    pub const ALL: [Self; 4] = [Self::Startup, Self::Notify, Self::Fallback, Self::Reconnect];

    /// The word on screens and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Notify => "notify",
            Self::Fallback => "fallback",
            Self::Reconnect => "reconnect",
        }
    }
}

/// How one claim attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClaimOutcome {
    /// At least one job came back.
    Got,
    /// Nothing was due.
    Empty,
    /// Due rows exist, but other sessions hold them all.
    Contended,
    /// The statement failed.
    Error,
}

/// Monotone counters of one worker on one ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Jobs found by the startup scan.
    pub found_startup: i64,
    /// Jobs found after a wake-up.
    pub found_notify: i64,
    /// Jobs found only by the fallback scan.
    pub found_fallback: i64,
    /// Jobs found by the scan after a reconnect.
    pub found_reconnect: i64,
    /// Of `found_fallback`, those that became due by time (scheduled, or a retry): no wake-up could be
    /// expected for them.
    pub found_timed: i64,
    /// Claims that returned jobs.
    pub claims_got: i64,
    /// Claims that found nothing due.
    pub claims_empty: i64,
    /// Claims that found due rows, all locked by others.
    pub claims_contended: i64,
    /// Claims that failed.
    pub claims_error: i64,
    /// Jobs finished.
    pub jobs_done: i64,
    /// Failed attempts, final ones included.
    pub jobs_failed: i64,
    /// Jobs whose lease had moved when they were finished or renewed.
    pub jobs_lost: i64,
    /// Jobs that were put off, each time that they were: neither done nor failed.
    #[serde(default)]
    pub jobs_deferred: i64,
    /// Wake-ups received for this ledger's channel.
    pub wakeups: i64,
}

impl Counters {
    /// Adds jobs to the counter of their scan reason.
    pub fn found(&mut self, reason: ScanReason, jobs: i64) {
        match reason {
            ScanReason::Startup => self.found_startup += jobs,
            ScanReason::Notify => self.found_notify += jobs,
            ScanReason::Fallback => self.found_fallback += jobs,
            ScanReason::Reconnect => self.found_reconnect += jobs,
        }
    }

    /// Jobs found for one reason.
    pub fn found_by(&self, reason: ScanReason) -> i64 {
        match reason {
            ScanReason::Startup => self.found_startup,
            ScanReason::Notify => self.found_notify,
            ScanReason::Fallback => self.found_fallback,
            ScanReason::Reconnect => self.found_reconnect,
        }
    }

    /// Counts one claim attempt.
    pub fn claim(&mut self, outcome: ClaimOutcome) {
        match outcome {
            ClaimOutcome::Got => self.claims_got += 1,
            ClaimOutcome::Empty => self.claims_empty += 1,
            ClaimOutcome::Contended => self.claims_contended += 1,
            ClaimOutcome::Error => self.claims_error += 1,
        }
    }

    /// Share of the jobs that a wake-up should have announced but only the fallback scan found; `None`
    /// without such jobs.
    pub fn fallback_share(&self) -> Option<f64> {
        let missed = self.found_fallback - self.found_timed;
        let announced = self.found_notify + missed;
        (announced > 0).then(|| missed as f64 / announced as f64)
    }

    /// got ÷ (got + contended + error); `None` without an attempt that counts. Empty claims after a
    /// wake-up are normal and stay out of it.
    pub fn claim_success(&self) -> Option<f64> {
        let tried = self.claims_got + self.claims_contended + self.claims_error;
        (tried > 0).then(|| self.claims_got as f64 / tried as f64)
    }

    /// Field by field difference `self - earlier`, or `None` when any counter went backwards: the
    /// process behind the name restarted.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        let d = |a: i64, b: i64| (a >= b).then_some(a - b);
        Some(Self {
            found_startup: d(self.found_startup, earlier.found_startup)?,
            found_notify: d(self.found_notify, earlier.found_notify)?,
            found_fallback: d(self.found_fallback, earlier.found_fallback)?,
            found_reconnect: d(self.found_reconnect, earlier.found_reconnect)?,
            found_timed: d(self.found_timed, earlier.found_timed)?,
            claims_got: d(self.claims_got, earlier.claims_got)?,
            claims_empty: d(self.claims_empty, earlier.claims_empty)?,
            claims_contended: d(self.claims_contended, earlier.claims_contended)?,
            claims_error: d(self.claims_error, earlier.claims_error)?,
            jobs_done: d(self.jobs_done, earlier.jobs_done)?,
            jobs_failed: d(self.jobs_failed, earlier.jobs_failed)?,
            jobs_lost: d(self.jobs_lost, earlier.jobs_lost)?,
            jobs_deferred: d(self.jobs_deferred, earlier.jobs_deferred)?,
            wakeups: d(self.wakeups, earlier.wakeups)?,
        })
    }

    /// Field by field sum.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            found_startup: self.found_startup + other.found_startup,
            found_notify: self.found_notify + other.found_notify,
            found_fallback: self.found_fallback + other.found_fallback,
            found_reconnect: self.found_reconnect + other.found_reconnect,
            found_timed: self.found_timed + other.found_timed,
            claims_got: self.claims_got + other.claims_got,
            claims_empty: self.claims_empty + other.claims_empty,
            claims_contended: self.claims_contended + other.claims_contended,
            claims_error: self.claims_error + other.claims_error,
            jobs_done: self.jobs_done + other.jobs_done,
            jobs_failed: self.jobs_failed + other.jobs_failed,
            jobs_lost: self.jobs_lost + other.jobs_lost,
            jobs_deferred: self.jobs_deferred + other.jobs_deferred,
            wakeups: self.wakeups + other.wakeups,
        }
    }
}

/// Three points of a distribution, in milliseconds; absent without a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}

/// What the drain budget decided last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetState {
    /// Jobs are left in the window.
    #[default]
    Open,
    /// Spent, and the load was healthy: a new window was opened at once.
    Renewed,
    /// Spent, and the load was not healthy: waiting for the window to end.
    Waiting,
}

impl BudgetState {
    /// The word in the table and on screens.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Renewed => "renewed",
            Self::Waiting => "waiting",
        }
    }

    /// The state for a word of the table.
    pub fn from_word(word: &str) -> Self {
        match word {
            "renewed" => Self::Renewed,
            "waiting" => Self::Waiting,
            _ => Self::Open,
        }
    }
}

/// One row of `pgwake.workers`: a live worker on one ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerRow {
    /// The name that appears as the holder on leases.
    pub name: String,
    /// The ledger this row counts for.
    pub ledger: String,
    /// Host name of the process.
    pub host: String,
    /// Process id on that host.
    pub pid: i32,
    /// Version of the worker program.
    pub version: String,
    /// Start, by the server's clock.
    pub started_at: DateTime<Utc>,
    /// Last heartbeat, by the server's clock.
    pub seen_at: DateTime<Utc>,
    /// Counters since the start.
    pub counters: Counters,
    /// Losses of the listen session since the start.
    pub reconnects: i64,
    /// Lost to scanned.
    pub recovery: Percentiles,
    /// Wake-up received to claim begun.
    pub wake_latency: Percentiles,
    /// Claim statement, client side.
    pub claim: Percentiles,
    /// What the budget decided last.
    pub budget: BudgetState,
}

impl WorkerRow {
    /// Whether the heartbeat is recent enough to call the worker alive: three refreshes of 5 s.
    pub fn is_alive(&self, server_now: DateTime<Utc>) -> bool {
        (server_now - self.seen_at).num_milliseconds() <= 15_000
    }
}
