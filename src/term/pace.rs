//! When to draw: on change, at most twenty frames a second, and once a second for what ages.

use std::time::Duration;

/// The shortest time between two frames.
const FRAME: Duration = Duration::from_millis(50);

/// Ages on the screen are whole seconds or move by themselves this often.
const TICK: Duration = Duration::from_secs(1);

/// Decides from monotonic times alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    dirty: bool,
    drawn: Option<Duration>,
}

impl Pace {
    /// Something on the screen has changed.
    pub fn changed(&mut self) {
        self.dirty = true;
    }

    /// A frame was drawn at `now`.
    pub fn drawn(&mut self, now: Duration) {
        self.dirty = false;
        self.drawn = Some(now);
    }

    /// How long to wait from `now` until the next frame; nothing when it is due.
    pub fn wait(&self, now: Duration) -> Duration {
        let Some(drawn) = self.drawn else { return Duration::ZERO };
        let gap = if self.dirty { FRAME } else { TICK };
        (drawn + gap).saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_change_after_a_quiet_spell_is_drawn_at_once() {
        let mut pace = Pace::default();
        assert_eq!(pace.wait(ms(0)), Duration::ZERO);
        pace.drawn(ms(0));
        pace.changed();
        assert_eq!(pace.wait(ms(400)), Duration::ZERO);
    }

    #[test]
    fn a_storm_of_changes_is_drawn_twenty_times_a_second() {
        let mut pace = Pace::default();
        let mut frames = 0;
        for t in 0..1000 {
            pace.changed();
            if pace.wait(ms(t)).is_zero() {
                pace.drawn(ms(t));
                frames += 1;
            }
        }
        assert_eq!(frames, 20);
    }

    #[test]
    fn without_a_change_there_is_one_frame_a_second() {
        let mut pace = Pace::default();
        pace.drawn(ms(100));
        assert_eq!(pace.wait(ms(100)), ms(1000));
    }
}
