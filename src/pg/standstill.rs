//! Finding out that the process did not run: stopped by a signal, or asleep with the machine.

use std::time::{Duration, Instant, SystemTime};

/// Looks at both clocks, again and again. The monotonic one goes on while the process is stopped, the
/// wall clock also while the machine sleeps; whichever jumps tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standstill {
    mono: Instant,
    wall: SystemTime,
}

impl Standstill {
    /// From `mono` and `wall` on.
    pub(super) fn new(mono: Instant, wall: SystemTime) -> Self {
        Self { mono, wall }
    }

    /// How long it stood still since the last look, if for longer than `limit`.
    pub(super) fn look(&mut self, mono: Instant, wall: SystemTime, limit: Duration) -> Option<Duration> {
        let before = std::mem::replace(self, Self { mono, wall });
        let mono = mono.saturating_duration_since(before.mono);
        // a wall clock that was set back says nothing
        let wall = wall.duration_since(before.wall).unwrap_or_default();
        Some(mono.max(wall)).filter(|gap| *gap > limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_of_either_clock_is_found_and_found_once() {
        let (mono, wall) = (Instant::now(), SystemTime::now());
        let s = Duration::from_secs;
        let mut watch = Standstill::new(mono, wall);
        assert_eq!(watch.look(mono + s(1), wall + s(1), s(5)), None);
        // stopped: both went on
        assert_eq!(watch.look(mono + s(31), wall + s(31), s(5)), Some(s(30)));
        assert_eq!(watch.look(mono + s(32), wall + s(32), s(5)), None);
        // the machine slept: only the wall clock went on
        assert_eq!(watch.look(mono + s(33), wall + s(3632), s(5)), Some(s(3600)));
        // set back
        assert_eq!(watch.look(mono + s(34), wall, s(5)), None);
    }
}
