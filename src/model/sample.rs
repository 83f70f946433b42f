//! One pass of the sampler over one ledger.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Evidence, Holder, Lease, NotifyLock, Reading, Session, WorkerRow};

/// Jobs per state, each capped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Due now and not held.
    pub ready: Reading<u64>,
    /// Due later.
    pub scheduled: Reading<u64>,
    /// Held, expired leases included.
    pub running: Reading<u64>,
    /// Held past the expiry.
    pub expired: Reading<u64>,
    /// Gave up.
    pub failed: Reading<u64>,
}

/// Jobs per second since the pass before. `None` inside: no interval to take a difference over yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Flow {
    /// Came in.
    pub arrived: Reading<f64>,
    /// Were finished.
    pub done: Reading<f64>,
    /// Failed attempts.
    pub failed: Reading<f64>,
}

/// The four figures that say how a queue is, and their company.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Vitals {
    /// Age of the oldest ready job in seconds; `None` when nothing is ready.
    pub oldest_ready: Reading<Option<f64>>,
    /// Share of the notification queue in use, 0–1.
    pub queue_usage: Reading<f64>,
    /// got ÷ (got + contended + error) of all workers over the last minute; `None` without attempts.
    pub claim_success: Reading<Option<f64>>,
    /// Largest p99 of the claim statement over the workers, milliseconds.
    pub claim_p99_ms: Reading<Option<f64>>,
    /// Largest p95 of lost → scanned over the workers, seconds; `None` without a reconnect.
    pub recovery_p95: Reading<Option<f64>>,
    /// Reconnects of all workers since their start.
    pub reconnects: Reading<i64>,
    /// Share of jobs found only by the fallback scan over the last minute, 0–1; `None` without jobs.
    pub fallback_share: Reading<Option<f64>>,
}

/// What the pass itself cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// Wall time of the pass, milliseconds, the network included.
    pub pass_ms: f64,
    /// The interval asked for, milliseconds.
    pub interval_ms: u64,
    /// The interval in use, longer when passes cost more than 5 % of it.
    pub effective_ms: u64,
}

impl Cost {
    /// Whether the interval was stretched.
    pub fn is_stretched(&self) -> bool {
        self.effective_ms > self.interval_ms
    }

    /// Share of the interval in use that the pass took, 0–1.
    pub fn share(&self) -> f64 {
        if self.effective_ms == 0 { 0.0 } else { self.pass_ms / self.effective_ms as f64 }
    }
}

/// One pass over one ledger. What an older recording does not tell is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// Profile name of the ledger.
    pub ledger: String,
    /// Number of the pass since the start.
    pub pass: u64,
    /// The server's clock at the start of the pass.
    pub taken_at: DateTime<Utc>,
    /// Jobs per state.
    pub counts: Counts,
    /// Seconds until the next scheduled job; `None` when nothing is scheduled.
    pub next_scheduled: Reading<Option<f64>>,
    /// The figures to watch.
    pub vitals: Vitals,
    /// Jobs per second.
    pub flow: Flow,
    /// Leases, earliest expiry first, bounded.
    pub leases: Reading<Vec<Lease>>,
    /// The same by holder.
    pub holders: Reading<Vec<Holder>>,
    /// Rows of `pgwake.workers` for this ledger.
    pub workers: Reading<Vec<WorkerRow>>,
    /// Sessions worth showing.
    pub sessions: Reading<Vec<Session>>,
    /// The NOTIFY commit lock.
    pub notify_lock: Reading<NotifyLock>,
    /// Connections in use and allowed.
    pub connections: Reading<(i64, i64)>,
    /// What may hold the queue, by name.
    pub evidence: Evidence,
    /// What the pass cost.
    pub cost: Cost,
}

impl Sample {
    /// A sample in which nothing is known yet.
    pub fn empty(ledger: impl Into<String>, taken_at: DateTime<Utc>) -> Self {
        Self {
            ledger: ledger.into(),
            pass: 0,
            taken_at,
            counts: Counts::default(),
            next_scheduled: Reading::default(),
            vitals: Vitals::default(),
            flow: Flow::default(),
            leases: Reading::default(),
            holders: Reading::default(),
            workers: Reading::default(),
            sessions: Reading::default(),
            notify_lock: Reading::default(),
            connections: Reading::default(),
            evidence: Evidence::default(),
            cost: Cost::default(),
        }
    }
}
