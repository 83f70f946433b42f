//! Every gap in which no wake-up could arrive: when, why, and how each part of coming back took.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::model::{Listen, Loss, Now, Phases, Recovery};

/// Gaps kept.
const KEEP: usize = 200;

/// One gap.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// When it began, monotonic.
    pub at: Duration,
    /// When it began, wall clock.
    pub wall: DateTime<Utc>,
    /// Why.
    pub loss: Loss,
    /// How long the session before it had been up, milliseconds.
    pub up_ms: Option<u64>,
    /// Attempts that failed.
    pub failed: u32,
    /// When it ended, monotonic, and how long the parts took.
    pub back: Option<(Duration, Phases)>,
    /// Until the reconnect scan had ended, milliseconds since the loss, and the jobs it found.
    pub scanned: Option<(u64, u64)>,
}

impl Gap {
    /// How long it lasted, or has lasted up to `now`.
    pub fn lasted(&self, now: Duration) -> Duration {
        self.back.map_or(now, |b| b.0).saturating_sub(self.at)
    }
}

/// Whether wake-ups could arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// Nothing is known of that time.
    Unknown,
    /// They could.
    Yes,
    /// They could not.
    No,
}

/// See the module. Oldest first; bounded.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    gaps: VecDeque<Gap>,
    /// When the listen session was first there.
    first: Option<Duration>,
    total: u64,
}

impl Gaps {
    /// Gaps, newest first.
    pub fn newest(&self) -> impl ExactSizeIterator<Item = &Gap> {
        self.gaps.iter().rev()
    }

    /// How many there were since the start.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether wake-ups could arrive throughout the time from `from` to `to`.
    pub fn hearing(&self, from: Duration, to: Duration) -> Hearing {
        let lost = |g: &Gap| g.at < to && g.back.is_none_or(|b| b.0 > from);
        if self.gaps.iter().any(lost) {
            return Hearing::No;
        }
        if self.first.is_some_and(|f| f < to) { Hearing::Yes } else { Hearing::Unknown }
    }

    /// Forgets what came after `at`.
    pub fn until(&mut self, at: Duration) {
        self.gaps.retain(|g| g.at <= at);
        for gap in &mut self.gaps {
            if gap.back.is_some_and(|b| b.0 > at) {
                (gap.back, gap.scanned) = (None, None);
            }
        }
    }

    /// Takes in what the listen session tells.
    pub fn listen(&mut self, event: &Listen, now: Now) {
        let open = self.gaps.back_mut().filter(|g| g.back.is_none());
        match (event, open) {
            (Listen::Up { phases, .. }, open) => {
                self.first.get_or_insert(now.mono);
                if let Some(gap) = open {
                    gap.back = Some((now.mono, *phases));
                }
            }
            (Listen::Retry { loss, attempt, .. }, Some(gap)) => {
                gap.failed = *attempt;
                // a message of the system without a code says less than the first one with a code
                if gap.loss.sqlstate.is_none() {
                    gap.loss = loss.clone();
                }
            }
            (Listen::Down { loss, up_ms }, None) => self.open(now, loss, Some(*up_ms), 0),
            (Listen::Retry { loss, attempt, .. }, None) => self.open(now, loss, None, *attempt),
            _ => {}
        }
    }

    fn open(&mut self, now: Now, loss: &Loss, up_ms: Option<u64>, failed: u32) {
        self.total += 1;
        self.gaps.push_back(Gap {
            at: now.mono,
            wall: now.wall,
            loss: loss.clone(),
            up_ms,
            failed,
            back: None,
            scanned: None,
        });
        while self.gaps.len() > KEEP {
            self.gaps.pop_front();
        }
    }

    /// Takes in that the scan after a gap has ended.
    pub fn recovered(&mut self, recovery: &Recovery) {
        if let Some(gap) = self.gaps.back_mut().filter(|g| g.back.is_some() && g.scanned.is_none()) {
            gap.scanned = Some((recovery.scanned_ms, recovery.jobs));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(s: u64) -> Now {
        Now { mono: Duration::from_secs(s), wall: DateTime::UNIX_EPOCH + Duration::from_secs(s) }
    }

    fn loss(code: Option<&str>) -> Loss {
        Loss { sqlstate: code.map(str::to_owned), message: "gone".into() }
    }

    fn up() -> Listen {
        let phases = Phases { connected_ms: 600, listening_ms: 700 };
        Listen::Up { pid: 1, channels: vec![], phases, again: true }
    }

    #[test]
    fn a_gap_keeps_its_first_reason_and_counts_the_attempts() {
        let mut gaps = Gaps::default();
        gaps.listen(&up(), now(0));
        gaps.listen(&Listen::Down { loss: loss(Some("57P01")), up_ms: 9_000 }, now(9));
        gaps.listen(&Listen::Retry { attempt: 1, after_ms: 1, loss: loss(None) }, now(10));
        gaps.listen(&Listen::Retry { attempt: 2, after_ms: 1, loss: loss(None) }, now(11));
        gaps.listen(&up(), now(12));
        gaps.recovered(&Recovery { phases: Phases::default(), scanned_ms: 3_100, jobs: 7 });
        let gap = gaps.newest().next().unwrap();
        assert_eq!((gap.loss.sqlstate.as_deref(), gap.failed, gap.up_ms), (Some("57P01"), 2, Some(9_000)));
        assert_eq!((gap.lasted(now(99).mono).as_secs(), gap.scanned), (3, Some((3_100, 7))));
        assert_eq!(gaps.total(), 1);
    }

    #[test]
    fn a_time_before_the_first_session_is_unknown_and_a_gap_is_heard_nowhere_in_it() {
        let mut gaps = Gaps::default();
        gaps.listen(&up(), now(5));
        gaps.listen(&Listen::Down { loss: loss(None), up_ms: 0 }, now(9));
        let at = |from: u64, to: u64| gaps.hearing(now(from).mono, now(to).mono);
        assert_eq!(
            [at(0, 5), at(5, 8), at(8, 10), at(50, 60)],
            [Hearing::Unknown, Hearing::Yes, Hearing::No, Hearing::No]
        );
    }

    #[test]
    fn seen_from_the_past_a_gap_has_not_ended_yet() {
        let mut gaps = Gaps::default();
        gaps.listen(&up(), now(0));
        gaps.listen(&Listen::Down { loss: loss(None), up_ms: 0 }, now(9));
        gaps.listen(&up(), now(20));
        gaps.until(now(12).mono);
        assert_eq!(gaps.newest().next().unwrap().back, None);
        gaps.until(now(5).mono);
        assert_eq!(gaps.newest().len(), 0);
    }
}
