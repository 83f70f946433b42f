//! What a worker counts and times per ledger.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::model::{Counters, Percentiles};

const HOUR_US: u64 = 3_600_000_000;

/// Durations in microseconds, two significant digits: a few kilobytes, whatever is recorded.
#[derive(Debug)]
pub(super) struct Times(Option<Histogram<u32>>);

impl Times {
    pub(super) fn new() -> Self {
        // Two digits is a valid precision, so this is never `None`.
        Self(Histogram::new(2).ok())
    }

    pub(super) fn record(&mut self, took: Duration) {
        if let Some(h) = &mut self.0 {
            // Grows as far as it must, an hour at most, so it cannot fail.
            let _ = h.record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX).clamp(1, HOUR_US));
        }
    }

    pub(super) fn percentiles(&self) -> Percentiles {
        let at = |q: f64| {
            self.0.as_ref().filter(|h| !h.is_empty()).map(|h| h.value_at_quantile(q) as f64 / 1000.0)
        };
        Percentiles { p50: at(0.50), p95: at(0.95), p99: at(0.99) }
    }

    pub(super) fn clear(&mut self) {
        if let Some(h) = &mut self.0 {
            h.reset();
        }
    }
}

/// How long handlers take of late: a moving mean.
#[derive(Debug, Default)]
pub(super) struct Pace(Option<f64>);

impl Pace {
    pub(super) fn record(&mut self, took: Duration) {
        let new = took.as_secs_f64();
        self.0 = Some(self.0.map_or(new, |mean| mean + (new - mean) / 16.0));
    }

    /// Jobs that `handlers` of them begin within `time`; none while nothing is known.
    pub(super) fn begun_within(&self, time: Duration, handlers: usize) -> usize {
        // Anything that takes less than this is no work to speak of.
        const LEAST: f64 = 1e-6;
        self.0.map_or(0, |mean| (handlers as f64 * time.as_secs_f64() / mean.max(LEAST)) as usize)
    }
}

/// Of one ledger.
#[derive(Debug)]
pub(super) struct Stats {
    pub counters: Counters,
    /// Wake-up received to claim begun.
    pub wake: Times,
    /// Claim statement, client side.
    pub claim: Times,
    /// The same since the budget last looked.
    pub recent: Times,
}

impl Stats {
    pub(super) fn new() -> Self {
        Self {
            counters: Counters::default(),
            wake: Times::new(),
            claim: Times::new(),
            recent: Times::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_recorded_is_unknown_and_not_zero() {
        assert_eq!(Times::new().percentiles(), Percentiles::default());
    }

    #[test]
    fn nothing_is_claimed_ahead_of_slow_handlers_or_of_unknown_ones() {
        let mut pace = Pace::default();
        assert_eq!(pace.begun_within(Duration::from_secs(1), 10), 0);
        pace.record(Duration::from_millis(100));
        assert_eq!(pace.begun_within(Duration::from_secs(1), 10), 100);
        for _ in 0..200 {
            pace.record(Duration::from_secs(20));
        }
        assert_eq!(pace.begun_within(Duration::from_secs(1), 10), 0);
    }

    #[test]
    fn percentiles_are_in_milliseconds() {
        let mut t = Times::new();
        for _ in 0..100 {
            t.record(Duration::from_millis(20));
        }
        let p50 = t.percentiles().p50.unwrap();
        assert!((19.5..20.5).contains(&p50), "{p50}");
    }
}
