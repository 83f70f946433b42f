//! Recorded events made into screens again, at any moment of the recording.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{App, Msg, Setup, update};
use crate::model::{Event, Now, Stamped};

/// Where a replay stands, for the head line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Playing {
    /// Since the beginning of the recording.
    pub at: Duration,
    /// How long it is.
    pub length: Duration,
    /// Recorded time in real time.
    pub speed: f64,
    /// Whether time stands still.
    pub paused: bool,
}

/// A recording, and how far a state has taken it in.
pub struct Playback {
    setup: Setup,
    events: Vec<Stamped>,
    taken: usize,
    at: Duration,
}

impl Playback {
    /// A recording that no state has taken in yet.
    pub fn new(setup: Setup, mut events: Vec<Stamped>) -> Self {
        // a clock that went back would bury events behind their time
        let mut latest = 0;
        for event in &mut events {
            latest = event.mono_ms.max(latest);
            event.mono_ms = latest;
        }
        let at = events.first().map_or(Duration::ZERO, mono);
        Self { setup, events, taken: 0, at }
    }

    /// The state before the first event.
    pub fn app(&self) -> App {
        App::new(self.setup.clone())
    }

    /// When the recording begins, by its own monotonic clock.
    pub fn begin(&self) -> Duration {
        self.events.first().map_or(Duration::ZERO, mono)
    }

    /// When it ends.
    pub fn end(&self) -> Duration {
        self.events.last().map_or(Duration::ZERO, mono)
    }

    /// The moment it stands at.
    pub fn now(&self) -> Now {
        Now { mono: self.at, wall: self.wall() }
    }

    /// When the next event happened that was not taken in yet.
    pub fn next(&self) -> Option<Duration> {
        self.events.get(self.taken).map(mono)
    }

    /// When the next sample was taken in, seen from `at`.
    pub fn sample_after(&self, at: Duration) -> Option<Duration> {
        self.events.iter().filter(|e| is_sample(e)).map(mono).find(|t| *t > at)
    }

    /// The same backwards.
    pub fn sample_before(&self, at: Duration) -> Option<Duration> {
        self.events.iter().rev().filter(|e| is_sample(e)).map(mono).find(|t| *t < at)
    }

    /// Brings `app` to a moment of the recording, forward or back; it must be the state that was brought
    /// to the moment before. What was chosen on the screen stays.
    pub fn go(&mut self, app: &mut App, to: Duration) {
        let to = to.clamp(self.begin(), self.end());
        if to < self.at {
            let mut again = self.app();
            self.taken = 0;
            self.take(&mut again, to);
            app.take_world_of(again);
        } else {
            self.take(app, to);
        }
        self.at = to;
    }

    /// Takes in everything that happened up to `to`.
    fn take(&mut self, app: &mut App, to: Duration) {
        while let Some(event) = self.events.get(self.taken).filter(|e| mono(e) <= to) {
            let now = Now { mono: mono(event), wall: event.wall };
            update(app, Msg::Event(Box::new(event.event.clone())), now);
            self.taken += 1;
        }
    }

    /// The wall clock: that of the last event, moved on.
    fn wall(&self) -> DateTime<Utc> {
        self.events.get(self.taken.saturating_sub(1)).map_or(DateTime::UNIX_EPOCH, |e| {
            e.wall + TimeDelta::from_std(self.at.saturating_sub(mono(e))).unwrap_or_default()
        })
    }
}

fn mono(event: &Stamped) -> Duration {
    Duration::from_millis(event.mono_ms)
}

fn is_sample(event: &Stamped) -> bool {
    matches!(event.event, Event::Sample(_))
}
