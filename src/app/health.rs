//! Is a figure as it should be? Pure comparisons against the thresholds.

use crate::config::Thresholds;
use crate::model::{Reading, Vitals};

/// How a figure stands. Unknown is its own state, never ok.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// As it should be.
    Ok,
    /// Nothing can be said.
    Unknown,
    /// Needs attention.
    Warn,
    /// Needs it now.
    Critical,
}

/// A vital sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vital {
    /// Age of the oldest ready job.
    OldestReady,
    /// Share of the notification queue in use.
    QueueUsage,
    /// Claim success.
    ClaimSuccess,
    /// p95 of lost → scanned.
    Recovery,
}

impl Vital {
    /// All four, in reading order.
    pub const ALL: [Self; 4] = [Self::OldestReady, Self::QueueUsage, Self::ClaimSuccess, Self::Recovery];

    /// The name on the screen.
    pub fn title(self) -> &'static str {
        match self {
            Self::OldestReady => "oldest ready",
            Self::QueueUsage => "queue usage",
            Self::ClaimSuccess => "claim success",
            Self::Recovery => "recovery p95",
        }
    }

    /// Its reading; the inner `None` means that there is nothing to measure.
    pub fn reading(self, vitals: &Vitals) -> Reading<Option<f64>> {
        match self {
            Self::OldestReady => vitals.oldest_ready.clone(),
            Self::QueueUsage => vitals.queue_usage.map(|u| Some(*u)),
            Self::ClaimSuccess => vitals.claim_success.clone(),
            Self::Recovery => vitals.recovery_p95.clone(),
        }
    }

    /// How it stands. A kept value of a failed reading says nothing about now; nothing to measure is ok.
    pub fn level(self, vitals: &Vitals, limits: &Thresholds) -> Level {
        let reading = self.reading(vitals);
        let Some(value) = reading.current() else { return Level::Unknown };
        let Some(value) = *value else { return Level::Ok };
        match self {
            // ten times over is not late, it is standing still
            Self::OldestReady => above(value, limits.oldest_ready_s, limits.oldest_ready_s * 10.0),
            Self::QueueUsage => above(value, limits.queue_usage_warn, limits.queue_usage_critical),
            Self::ClaimSuccess if value < limits.claim_success / 2.0 => Level::Critical,
            Self::ClaimSuccess if value < limits.claim_success => Level::Warn,
            Self::ClaimSuccess => Level::Ok,
            Self::Recovery => above(value, limits.recovery_p95_s, limits.recovery_p95_s * 10.0),
        }
    }
}

fn above(value: f64, warn: f64, critical: f64) -> Level {
    if value >= critical {
        Level::Critical
    } else if value > warn {
        Level::Warn
    } else {
        Level::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Trouble;
    use chrono::DateTime;

    fn level(oldest: Reading<Option<f64>>) -> Level {
        let vitals = Vitals { oldest_ready: oldest, ..Vitals::default() };
        Vital::OldestReady.level(&vitals, &Thresholds::default())
    }

    #[test]
    fn a_figure_is_ok_up_to_its_threshold_and_warns_above() {
        let at = DateTime::UNIX_EPOCH;
        assert_eq!(level(Reading::exact(Some(60.0), at)), Level::Ok);
        assert_eq!(level(Reading::exact(Some(60.1), at)), Level::Warn);
        assert_eq!(level(Reading::exact(Some(600.0), at)), Level::Critical);
        assert_eq!(level(Reading::exact(None, at)), Level::Ok);
    }

    #[test]
    fn unknown_is_never_ok() {
        let at = DateTime::UNIX_EPOCH;
        assert_eq!(level(Reading::default()), Level::Unknown);
        let kept = Reading::unknown(Trouble::TimedOut).or_last(&Reading::exact(Some(1.0), at));
        assert_eq!(level(kept), Level::Unknown);
    }

    #[test]
    fn claim_success_is_bad_when_low() {
        let at = DateTime::UNIX_EPOCH;
        let with = |v| {
            let vitals = Vitals { claim_success: Reading::exact(Some(v), at), ..Vitals::default() };
            Vital::ClaimSuccess.level(&vitals, &Thresholds::default())
        };
        assert_eq!(with(0.95), Level::Ok);
        assert_eq!(with(0.80), Level::Warn);
        assert_eq!(with(0.10), Level::Critical);
    }
}
