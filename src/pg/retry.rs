//! Capped, jittered back-off.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// The first pause after a failed attempt.
const FIRST: Duration = Duration::from_millis(200);
/// The longest pause before jitter; jitter at most doubles it.
const CAP: Duration = Duration::from_secs(5);

/// Pauses between attempts to come back: the first attempt is made at once, then 0.2 s doubling to 5 s,
/// each lengthened by a random share of itself so that many clients do not return in step.
pub struct Backoff {
    pauses: ExponentialBackoff,
    attempts: u32,
}

impl Backoff {
    /// As if nothing had failed yet.
    pub fn new() -> Self {
        let pauses = ExponentialBuilder::new()
            .with_min_delay(FIRST)
            .with_max_delay(CAP)
            .with_factor(2.0)
            .without_max_times()
            .with_jitter()
            .build();
        Self { pauses, attempts: 0 }
    }

    /// Counts one failure and gives the pause before the next attempt.
    pub fn failed(&mut self) -> Duration {
        self.attempts = self.attempts.saturating_add(1);
        self.pauses.next().unwrap_or(CAP)
    }

    /// Failures so far.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_cap_and_never_vanish() {
        for _ in 0..50 {
            let mut backoff = Backoff::new();
            let pauses: Vec<Duration> = (0..20).map(|_| backoff.failed()).collect();
            assert!(pauses.iter().all(|p| *p >= FIRST && *p <= 2 * CAP), "{pauses:?}");
            assert!(pauses[10..].iter().all(|p| *p >= CAP), "{pauses:?}");
            assert_eq!(backoff.attempts(), 20);
        }
    }

    #[test]
    fn a_server_that_is_away_for_a_minute_sees_at_most_15_attempts() {
        for _ in 0..50 {
            let mut backoff = Backoff::new();
            let (mut elapsed, mut attempts) = (Duration::ZERO, 1);
            loop {
                elapsed += backoff.failed();
                if elapsed > Duration::from_secs(60) {
                    break;
                }
                attempts += 1;
            }
            assert!(attempts <= 15, "{attempts}");
        }
    }
}
