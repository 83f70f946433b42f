//! Alerts: what deserves to be told even to somebody who does not look. Pure: samples in, changes out. Time
//! is the sample's own, so that a recording fires the same alerts at the same samples.
//!
//! ```text
//! ok ──bad──▶ pending ──bad for long enough──▶ firing ──good for long enough──▶ resolved ──▶ ok
//! ```

mod board;
mod evidence;
pub mod runbook;
mod state;
mod table;

pub use board::{Board, Boards, Change};
pub use state::{Phase, State};
pub use table::{ALERTS, Alert};

use crate::app::health::Level;
use crate::config::Thresholds;
use crate::model::Sample;

/// What an alert is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// The sample.
    pub sample: &'a Sample,
    /// The limits.
    pub limits: &'a Thresholds,
    /// The fallback interval of the workers, seconds: a lease may stay expired that long.
    pub fallback_s: f64,
    /// Seconds since the sample arrived: 0 for one that is just taken in.
    pub age_s: f64,
}

impl<'a> Look<'a> {
    /// At a sample that is just taken in.
    pub fn fresh(sample: &'a Sample, limits: &'a Thresholds, fallback_s: f64) -> Self {
        Self { sample, limits, fallback_s, age_s: 0.0 }
    }

    /// A pause between two samples that is longer than this many seconds is a gap: nobody saw what was in it. A
    /// stretched interval makes samples rarer without making them stale.
    pub fn longest_pause_s(&self) -> f64 {
        self.limits.stale_s.max(self.sample.cost.effective_ms as f64 / 1e3 * 2.5)
    }
}

/// How a figure stands to the condition of an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The condition does not hold, with a margin.
    Good,
    /// It does not hold, but only just: no reason to fire, none to be resolved.
    Near,
    /// It holds.
    Bad,
    /// Nothing can be said, and why: no reason to fire, none to be resolved.
    Unknown(String),
}

/// A verdict and the figure behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// The figure, for people; `—` where it is unknown.
    pub figure: String,
}

impl Alert {
    /// How it stands in a sample.
    pub fn judge(&self, look: Look<'_>) -> Judged {
        // of an old sample nothing is said about now
        if look.age_s > look.longest_pause_s() && self.name != table::STALE {
            let why = format!("no sample for {}", crate::text::age(look.age_s));
            return Judged { verdict: Verdict::Unknown(why), figure: "—".to_owned() };
        }
        (self.judge)(look)
    }

    /// How long its condition must last before it fires, seconds.
    pub fn hold_s(&self, look: Look<'_>) -> f64 {
        (self.hold)(look)
    }

    /// The alert of that name, and its place in the table.
    pub fn find(name: &str) -> Option<(usize, &'static Self)> {
        ALERTS.iter().enumerate().find(|(_, a)| a.name == name)
    }

    /// Whether it needs somebody now.
    pub fn is_critical(&self) -> bool {
        self.level == Level::Critical
    }
}
