//! What a person can turn while the demo runs, shared by its tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Jobs per second that the producers are held to.
const RATES: std::ops::RangeInclusive<f64> = 0.0..=5000.0;

/// Rate and wake-ups of the producers.
#[derive(Clone, Debug)]
pub(super) struct Controls(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rate: AtomicU64,
    muted: AtomicBool,
}

impl Controls {
    pub(super) fn new(rate: f64) -> Self {
        let controls = Self(Arc::new(Inner { rate: AtomicU64::default(), muted: AtomicBool::new(false) }));
        controls.set_rate(rate);
        controls
    }

    pub(super) fn rate(&self) -> f64 {
        f64::from_bits(self.0.rate.load(Ordering::Relaxed))
    }

    /// Out of range is brought into it; not a number is none at all.
    pub(super) fn set_rate(&self, rate: f64) {
        let rate = if rate.is_nan() { 0.0 } else { rate.clamp(*RATES.start(), *RATES.end()) };
        self.0.rate.store(rate.to_bits(), Ordering::Relaxed);
    }

    pub(super) fn is_muted(&self) -> bool {
        self.0.muted.load(Ordering::Relaxed)
    }

    /// Switches the wake-ups off or on again; returns whether they are off now.
    pub(super) fn toggle_muted(&self) -> bool {
        !self.0.muted.fetch_xor(true, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_within_its_range() {
        let c = Controls::new(40.0);
        for (set, is) in [(80.0, 80.0), (-3.0, 0.0), (f64::NAN, 0.0), (f64::INFINITY, 5000.0)] {
            c.set_rate(set);
            assert_eq!(c.rate(), is);
        }
    }

    #[test]
    fn muting_twice_is_not_muting() {
        let c = Controls::new(1.0);
        assert!(c.toggle_muted() && c.is_muted());
        assert!(!c.toggle_muted() && !c.is_muted());
    }
}
