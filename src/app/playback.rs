//! Recorded events made into screens again, at any moment of the recording.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{App, Msg, Setup, update};
use crate::model::{Now, Stamped};

/// A recording and the state of the screen at one moment of it.
pub struct Playback {
    setup: Setup,
    events: Vec<Stamped>,
    /// Events that the state has taken in.
    taken: usize,
    at: Duration,
    /// The state. Keys go to it as they go to a live one.
    pub app: App,
}

impl Playback {
    /// At the first event of a recording.
    pub fn new(setup: Setup, mut events: Vec<Stamped>) -> Self {
        // a clock that went back would bury events behind their time
        let mut latest = 0;
        for event in &mut events {
            latest = event.mono_ms.max(latest);
            event.mono_ms = latest;
        }
        let at = events.first().map_or(Duration::ZERO, mono);
        let app = App::new(setup.clone());
        let mut out = Self { setup, events, taken: 0, at, app };
        out.go(at);
        out
    }

    /// When the recording begins, by its own monotonic clock.
    pub fn begin(&self) -> Duration {
        self.events.first().map_or(Duration::ZERO, mono)
    }

    /// When it ends.
    pub fn end(&self) -> Duration {
        self.events.last().map_or(Duration::ZERO, mono)
    }

    /// The moment whose state this is.
    pub fn now(&self) -> Now {
        Now { mono: self.at, wall: self.wall(self.at) }
    }

    /// When the next event happened that was not taken in yet.
    pub fn next(&self) -> Option<Duration> {
        self.events.get(self.taken).map(mono)
    }

    /// Goes to a moment of the recording, forward or back. What was chosen on the screen stays.
    pub fn go(&mut self, to: Duration) {
        let to = to.clamp(self.begin(), self.end());
        if to < self.at {
            let mut again = App::new(self.setup.clone());
            self.taken = 0;
            take(&mut again, &self.events, &mut self.taken, to);
            self.app.take_world_of(again);
        } else {
            take(&mut self.app, &self.events, &mut self.taken, to);
        }
        self.at = to;
    }

    /// The wall clock of a moment: the last event's before it, moved on.
    fn wall(&self, at: Duration) -> DateTime<Utc> {
        let before = self.taken.saturating_sub(1);
        self.events.get(before).map_or(DateTime::UNIX_EPOCH, |e| {
            e.wall + TimeDelta::from_std(at.saturating_sub(mono(e))).unwrap_or_default()
        })
    }
}

fn mono(event: &Stamped) -> Duration {
    Duration::from_millis(event.mono_ms)
}

/// Takes in everything that happened up to `to`.
fn take(app: &mut App, events: &[Stamped], taken: &mut usize, to: Duration) {
    while let Some(event) = events.get(*taken).filter(|e| mono(e) <= to) {
        let now = Now { mono: mono(event), wall: event.wall };
        update(app, Msg::Event(Box::new(event.event.clone())), now);
        *taken += 1;
    }
}
