//! What is done with a job, outside any database transaction.

use std::future::Future;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::sleep;

use crate::ledger::Job;

/// A job that was not done, with the text that is stored as its last error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct HandlerError {
    text: String,
    later: bool,
}

impl HandlerError {
    /// A failed attempt.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), later: false }
    }

    /// Not now, through no fault of the job: it is due again after the back-off, and the attempt does not
    /// count.
    pub fn later(text: impl Into<String>) -> Self {
        Self { text: text.into(), later: true }
    }

    /// Whether the job is put off rather than failed.
    pub fn is_later(&self) -> bool {
        self.later
    }
}

/// Does the work of a job.
///
/// It runs outside any transaction, at least once: after a crash or a lost lease the same job comes
/// again, perhaps on another machine. Make effects idempotent by [`Job::id`]. The future is dropped when
/// the lease is lost or the grace time at shutdown is over; a panic counts as a failed attempt.
pub trait Handler: Send + Sync + 'static {
    /// Handles one job; `Ok` marks it done, an error records a failed attempt or puts the job off.
    fn handle(&self, job: Job) -> impl Future<Output = Result<(), HandlerError>> + Send;

    /// Whether it only pretends: then it is refused on ledgers that are not marked as scratch.
    fn is_practice(&self) -> bool {
        false
    }

    /// Ready when nothing runs any more of what dropped futures left behind. Asked for at shutdown, before
    /// unfinished jobs are given back.
    fn quiet(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// Handlers that do no work, for practice and measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Practice {
    /// Does nothing.
    Noop,
    /// Sleeps `ms` and fails with probability `fail` as the payload says, times a factor in percent: a
    /// slow worker is one with 400.
    Simulate {
        /// Percent of the time the payload asks for.
        pace: u32,
    },
}

/// What `simulate` reads from a payload; anything else in it is ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Script {
    ms: f64,
    fail: f64,
}

impl Handler for Practice {
    async fn handle(&self, job: Job) -> Result<(), HandlerError> {
        let Self::Simulate { pace } = self else { return Ok(()) };
        let script: Script = serde_json::from_str(&job.payload).unwrap_or_default();
        let ms = script.ms.clamp(0.0, 3_600_000.0) * f64::from(*pace) / 100.0;
        if ms > 0.0 {
            sleep(Duration::from_secs_f64(ms / 1000.0)).await;
        }
        if fastrand::f64() < script.fail {
            return Err(HandlerError::new(format!("simulated failure (probability {})", script.fail)));
        }
        Ok(())
    }

    fn is_practice(&self) -> bool {
        true
    }
}
