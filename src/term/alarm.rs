//! Bell and desktop notification. Both are off unless somebody switched them on; then at most one each ten
//! seconds, whatever fires. What fires in between is told when they are over: the last one, and how many more.

use std::time::Duration;

use crate::config::{Alerts, Notify};
use crate::text::{clean, fit, width};

/// The least time between two.
const REST: Duration = Duration::from_secs(10);

/// Longest text, in cells.
const LONGEST: usize = 120;

/// Tells alerts outside the screen.
#[derive(Clone, Debug, Default)]
pub struct Alarm {
    wanted: Alerts,
    last: Option<Duration>,
    /// The newest that waits for its time, and how many before it do.
    held: Option<(String, usize)>,
}

impl Alarm {
    /// With what was switched on.
    pub fn new(wanted: Alerts) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// What to write to the terminal for an alert that fires at `now` (monotonic); `None`: nothing yet, or never.
    pub fn bytes(&mut self, text: &str, now: Duration) -> Option<String> {
        if self.wanted == Alerts::default() {
            return None;
        }
        let before = self.held.take().map_or(0, |(_, before)| before + 1);
        self.held = Some((text.to_owned(), before));
        self.waiting(now)
    }

    /// What to write at `now` for alerts that fired too soon after another one.
    pub fn waiting(&mut self, now: Duration) -> Option<String> {
        if self.last.is_some_and(|l| now.saturating_sub(l) < REST) {
            return None;
        }
        let (text, before) = self.held.take()?;
        self.last = Some(now);
        let text = if before > 0 { format!("{before} more, and {text}") } else { text };
        // a text from elsewhere must neither end the sequence nor begin another field of it
        let text = clean(&text).replace(';', ",");
        let text = fit(&text, width(&text).min(LONGEST));
        let mut out = match self.wanted.notify {
            Notify::Off => String::new(),
            Notify::Osc9 => format!("\x1b]9;pgwake: {text}\x1b\\"),
            Notify::Osc777 => format!("\x1b]777;notify;pgwake;{text}\x1b\\"),
        };
        if self.wanted.bell {
            out.push('\x07');
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alarm(bell: bool, notify: Notify) -> Alarm {
        Alarm::new(Alerts { bell, notify })
    }

    #[test]
    fn what_is_off_writes_nothing() {
        assert_eq!(alarm(false, Notify::Off).bytes("x", Duration::ZERO), None);
        assert_eq!(alarm(true, Notify::Off).bytes("x", Duration::ZERO).unwrap(), "\x07");
        let osc9 = alarm(false, Notify::Osc9).bytes("x", Duration::ZERO).unwrap();
        assert_eq!(osc9, "\x1b]9;pgwake: x\x1b\\");
    }

    #[test]
    fn no_text_ends_the_sequence_or_adds_a_field_and_it_is_bounded() {
        let text = format!("a;b\x07c\x1b\\d\u{9c}e{}", "x".repeat(1000));
        let out = alarm(true, Notify::Osc777).bytes(&text, Duration::ZERO).unwrap();
        assert_eq!(out.matches('\x1b').count(), 2, "{out:?}");
        assert_eq!(out.matches(';').count(), 3, "{out:?}");
        assert!(out.ends_with("\x1b\\\x07") && out.matches('\x07').count() == 1, "{out:?}");
        assert!(!out.contains('\u{9c}') && out.chars().count() < 200, "{out:?}");
    }

    #[test]
    fn a_storm_rings_once_in_ten_seconds() {
        let mut alarm = alarm(true, Notify::Off);
        let rung = (0..25).filter(|s| alarm.bytes("x", Duration::from_secs(*s)).is_some()).count();
        assert_eq!(rung, 3);
    }

    #[test]
    fn what_fires_too_soon_is_told_when_its_time_has_come_and_only_once() {
        let mut alarm = alarm(true, Notify::Osc9);
        let at = Duration::from_secs;
        assert!(alarm.bytes("first", at(0)).is_some());
        assert_eq!(alarm.bytes("second", at(4)), None);
        assert_eq!(alarm.bytes("third", at(5)), None);
        assert_eq!(alarm.waiting(at(9)), None);
        assert_eq!(alarm.waiting(at(10)).unwrap(), "\x1b]9;pgwake: 1 more, and third\x1b\\\x07");
        assert_eq!(alarm.waiting(at(30)), None);
        assert!(alarm.bytes("fourth", at(31)).unwrap().contains("pgwake: fourth"));
    }
}
