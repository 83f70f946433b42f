//! Where the screen's events come from: a server, or a recording.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::replay::Player;
use super::screen::Recorder;
use crate::app::{self, App};
use crate::model::{Event, Intent, Note, Now, Stamped};
use crate::monitor::Feed;

/// What the loop draws from.
pub(super) enum Source {
    /// A server, by way of the thread of the network.
    Live(Box<Live>),
    /// A recording.
    Replay(Box<Player>),
}

/// The ends of the feed and of the channel of intents on this side.
pub(super) struct Live {
    pub setup: app::Setup,
    pub feed: Arc<Feed>,
    pub intents: mpsc::Sender<Intent>,
    /// Zero of the monotonic clock.
    pub start: Instant,
    pub recorder: Option<Recorder>,
    /// Events the feed had dropped when it was last looked at.
    pub dropped: u64,
}

impl Source {
    /// The state before anything has happened.
    pub(super) fn app(&self) -> App {
        match self {
            Self::Live(live) => App::new(live.setup.clone()),
            Self::Replay(player) => player.app(),
        }
    }

    /// The present: of this side, or of the recording, to which `app` is brought.
    pub(super) fn now(&mut self, app: &mut App) -> Now {
        match self {
            Self::Live(live) => {
                // whole milliseconds, as a recording has them: it must replay to the same screens
                let ms = u64::try_from(live.start.elapsed().as_millis()).unwrap_or(u64::MAX);
                Now { mono: Duration::from_millis(ms), wall: Utc::now() }
            }
            Self::Replay(player) => player.sync(app),
        }
    }

    /// Waits for the next event. `None`: one of the recording is due, and [`Source::now`] takes it in.
    /// Cancel-safe.
    pub(super) async fn next(&self) -> Option<Event> {
        match self {
            Self::Live(live) => Some(live.feed.next().await),
            Self::Replay(player) => {
                player.next().await;
                None
            }
        }
    }

    /// Another event that is there already.
    pub(super) fn try_next(&self) -> Option<Event> {
        match self {
            Self::Live(live) => live.feed.try_next(),
            Self::Replay(_) => None,
        }
    }

    /// An event is about to be shown.
    pub(super) fn shown(&mut self, event: &Event, now: Now) {
        let Self::Live(live) = self else { return };
        if let Some(record) = &mut live.recorder {
            let mono_ms = u64::try_from(now.mono.as_millis()).unwrap_or(u64::MAX);
            record(Stamped { mono_ms, wall: now.wall, event: event.clone() });
        }
    }

    /// Hands an intent on without ever waiting; why not, if it could not be.
    pub(super) fn ask(&mut self, intent: Intent) -> Result<(), &'static str> {
        match self {
            Self::Live(live) => match live.intents.try_send(intent) {
                Ok(()) | Err(TrySendError::Full(Intent::Quit) | TrySendError::Closed(Intent::Quit)) => {
                    Ok(())
                }
                Err(TrySendError::Full(_)) => Err("too many requests are under way"),
                Err(TrySendError::Closed(_)) => Err("the part that talks to the server has ended"),
            },
            Self::Replay(player) => player.ask(&intent),
        }
    }

    /// What the feed had to drop since the last time is told, not hidden.
    pub(super) fn dropped(&mut self) -> Option<Event> {
        let Self::Live(live) = self else { return None };
        let more = live.feed.dropped().checked_sub(live.dropped).filter(|n| *n > 0)?;
        live.dropped += more;
        let text = format!("the screen was too slow: {more} events were dropped");
        Some(Event::Note(Note { warn: true, text }))
    }
}
