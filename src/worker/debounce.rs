//! Folding wake-ups into scans. Pure: time comes in.

use std::time::{Duration, Instant};

/// Within these the wait is kept whatever the jitter.
const LEAST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_millis(300);

/// A wake-up starts a wait; those that follow within it fold into the same scan. The wait runs from the
/// first wake-up and is never extended, so a storm can neither starve the scan nor multiply it: at most
/// one scan per wait, whatever arrives.
#[derive(Debug)]
pub(super) struct Debounce {
    window: Duration,
    eager: bool,
    pending: Option<Pending>,
    last_scan: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    first: Instant,
    due: Instant,
}

impl Debounce {
    pub(super) fn new(window: Duration, eager: bool) -> Self {
        Self { window, eager, pending: None, last_scan: None }
    }

    /// A wake-up arrived; `jitter` in 0–1 spreads the wait over half to one and a half of the window (and
    /// keeps it within 100–300 ms when the window lies there), so
    /// that workers woken by one broadcast do not claim in step.
    pub(super) fn woke(&mut self, now: Instant, jitter: f64) {
        if self.pending.is_some() {
            return;
        }
        let quiet = self.last_scan.is_none_or(|at| now.duration_since(at) >= self.window);
        let mut wait = self.window.mul_f64(0.5 + jitter);
        if (LEAST..=MOST).contains(&self.window) {
            wait = wait.clamp(LEAST, MOST);
        }
        let due = if self.eager && quiet { now } else { now + wait };
        self.pending = Some(Pending { first: now, due });
    }

    /// When to scan, if a wake-up waits.
    pub(super) fn due(&self) -> Option<Instant> {
        self.pending.map(|p| p.due)
    }

    /// Whether a waiting wake-up wants its scan by `now`.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.pending.is_some_and(|p| p.due <= now)
    }

    /// A scan begins, for this or another reason: it serves the waiting wake-up, whose moment is given back.
    pub(super) fn scanned(&mut self, now: Instant) -> Option<Instant> {
        self.last_scan = Some(now);
        self.pending.take().map(|p| p.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_millis(200);

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_wait_is_100_to_300_ms_from_the_first_wakeup() {
        let t = Instant::now();
        for (jitter, wait) in [(0.0, 100), (0.5, 200), (1.0, 300)] {
            let mut d = Debounce::new(WINDOW, false);
            d.woke(t, jitter);
            assert_eq!(d.due(), Some(t + ms(wait)));
        }
        for window in [100, 300] {
            for jitter in [0.0, 0.5, 1.0] {
                let mut d = Debounce::new(ms(window), false);
                d.woke(t, jitter);
                assert!((t + LEAST..=t + MOST).contains(&d.due().unwrap()), "{window} {jitter}");
            }
        }
    }

    #[test]
    fn a_storm_makes_a_bounded_number_of_scans_and_starves_none() {
        let t = Instant::now();
        let mut d = Debounce::new(WINDOW, false);
        let mut scans = Vec::new();
        for i in 0..10_000u64 {
            let now = t + ms(i);
            d.woke(now, 0.5);
            if d.is_due(now) {
                scans.push(now.duration_since(d.scanned(now).unwrap()));
            }
        }
        assert!((45..=51).contains(&scans.len()), "{} scans in 10 s", scans.len());
        assert!(scans.iter().all(|delay| *delay <= ms(300)));
    }

    #[test]
    fn eager_scans_at_once_after_a_quiet_spell_and_folds_the_rest_into_one_more() {
        let t = Instant::now();
        let mut d = Debounce::new(WINDOW, true);
        d.woke(t, 0.5);
        assert!(d.is_due(t), "the first at once");
        d.scanned(t);
        d.woke(t + ms(10), 0.5);
        d.woke(t + ms(20), 0.5);
        assert!(!d.is_due(t + ms(20)));
        assert!(d.is_due(t + ms(210)));
        assert_eq!(d.scanned(t + ms(210)), Some(t + ms(10)), "the others together");
        d.woke(t + ms(1000), 0.5);
        assert!(d.is_due(t + ms(1000)), "quiet again");
    }

    #[test]
    fn a_scan_for_another_reason_serves_the_waiting_wakeup() {
        let t = Instant::now();
        let mut d = Debounce::new(WINDOW, false);
        d.woke(t, 0.5);
        assert_eq!(d.scanned(t + ms(1)), Some(t));
        assert_eq!(d.due(), None);
    }
}
