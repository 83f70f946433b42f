//! `pgwake replay FILE`: a recording on the screen, with time control.

use std::time::{Duration, Instant};

use super::screen::{self, ScreenError};
use super::source::Source;
use super::{Failure, Outcome, block_on, screenshot, settings};
use crate::app::playback::Playback;
use crate::app::{App, Msg, Playing, Setup, WorkerSetup, update};
use crate::cli;
use crate::model::{Event, Intent, Note, Now, Play};
use crate::record::Recording;

/// Recorded time in real time.
const SPEEDS: [f64; 10] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 60.0, 120.0];
/// Where in them a replay begins.
const REAL_TIME: usize = 2;

pub(super) fn run(connect: &cli::Connect, args: &cli::Replay) -> Outcome {
    let start = Instant::now();
    crate::term::Guard::check().map_err(|e| Failure::usage(ScreenError::NoTerminal(e)))?;
    let recording = screenshot::open(&args.recording)?;
    let broken = recording.broken.clone();
    let mut player = Player::new(recording, start)?;
    if let Some(at) = args.at {
        player.jump(player.playback.begin() + at);
    }
    let options = settings::screen(&settings::load(connect)?, &args.looks, start);
    let left = block_on(async {
        screen::play(Source::Replay(Box::new(player)), options).await.map(drop).map_err(Failure::failed)
    });
    // it was said on the screen too, but that is gone
    if let Some(broken) = broken {
        eprintln!("pgwake: {}: broken off at {broken}", args.recording.display());
    }
    left
}

/// A recording with a clock of its own.
pub(super) struct Player {
    playback: Playback,
    /// Zero of real time.
    start: Instant,
    /// Real time and recorded time of the last jump or change of speed.
    since: (Duration, Duration),
    speed: usize,
    paused: bool,
}

impl Player {
    fn new(mut recording: Recording, start: Instant) -> Result<Self, Failure> {
        let last = recording.events.last().map(|e| (e.mono_ms, e.wall));
        if let (Some(broken), Some((mono_ms, wall))) = (recording.broken.take(), last) {
            let text = format!("the recording is broken off here, at {broken}");
            let event = Event::Note(Note { warn: true, text });
            recording.events.push(crate::model::Stamped { mono_ms, wall, event });
        }
        let playback = screenshot::playback(recording, harmless)?;
        let since = (start.elapsed(), playback.begin());
        Ok(Self { playback, start, since, speed: REAL_TIME, paused: false })
    }

    pub(super) fn app(&self) -> App {
        self.playback.app()
    }

    /// Recorded time now.
    fn at(&self) -> Duration {
        let (real, recorded) = self.since;
        if self.paused {
            return recorded;
        }
        let went = self.start.elapsed().saturating_sub(real).mul_f64(SPEEDS[self.speed]);
        // whole milliseconds, as the recording has them
        let at = u64::try_from((recorded + went).as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(at).min(self.playback.end())
    }

    fn jump(&mut self, to: Duration) {
        let to = to.clamp(self.playback.begin(), self.playback.end());
        self.since = (self.start.elapsed(), to);
    }

    /// Brings `app` to the present of the recording, and gives that.
    pub(super) fn sync(&mut self, app: &mut App) -> Now {
        let at = self.at();
        self.playback.go(app, at);
        let now = self.playback.now();
        let begin = self.playback.begin();
        let playing = Playing {
            at: at.saturating_sub(begin),
            length: self.playback.end() - begin,
            speed: SPEEDS[self.speed],
            paused: self.paused,
        };
        update(app, Msg::Playing(playing), now);
        now
    }

    /// Ends when the next event of the recording is due; never while time stands still.
    pub(super) async fn next(&self) {
        match self.playback.next() {
            Some(due) if !self.paused => {
                let wait = due.saturating_sub(self.at()).div_f64(SPEEDS[self.speed]);
                tokio::time::sleep(wait).await;
            }
            _ => std::future::pending().await,
        }
    }

    /// Carries out what moves through the recording; anything else would need a server.
    pub(super) fn ask(&mut self, intent: &Intent) -> Result<(), &'static str> {
        let Intent::Play(play) = intent else {
            return if *intent == Intent::Quit { Ok(()) } else { Err(NO_SERVER) };
        };
        let at = self.at();
        match play {
            Play::PauseOrGoOn if at >= self.playback.end() => {
                self.paused = false;
                self.jump(self.playback.begin());
            }
            Play::PauseOrGoOn => {
                self.jump(at);
                self.paused = !self.paused;
            }
            Play::Faster | Play::Slower => {
                self.jump(at);
                let step =
                    if *play == Play::Faster { self.speed + 1 } else { self.speed.saturating_sub(1) };
                self.speed = step.min(SPEEDS.len() - 1);
            }
            Play::Jump(seconds) => {
                let by = Duration::from_secs(u64::from(seconds.unsigned_abs()));
                self.jump(if *seconds < 0 { at.saturating_sub(by) } else { at + by });
            }
            Play::Next => self.stop_at(self.playback.sample_after(at)),
            Play::Before => self.stop_at(self.playback.sample_before(at)),
            Play::Begin => self.jump(self.playback.begin()),
            Play::End => self.jump(self.playback.end()),
        }
        Ok(())
    }

    fn stop_at(&mut self, moment: Option<Duration>) {
        let to = moment.unwrap_or_else(|| self.at());
        self.paused = true;
        self.jump(to);
    }
}

/// Why nothing can be changed in a replay.
const NO_SERVER: &str = "this is a recording";

/// What a recording says of its session, without what would need a server.
fn harmless(mut setup: Setup) -> Setup {
    setup.read_only = Some(NO_SERVER.to_owned());
    setup.faults = Vec::new();
    setup.worker = WorkerSetup::Unavailable { how: NO_SERVER.to_owned() };
    setup
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Sample, Stamped};

    fn player(events: u64) -> (Player, App) {
        let wall = chrono::DateTime::UNIX_EPOCH;
        let events = (0..events).map(|i| Stamped {
            mono_ms: 5_000 + i * 1_000,
            wall: wall + chrono::TimeDelta::seconds(i as i64),
            event: Event::Sample(Box::new(Sample::empty("jobs", wall))),
        });
        let recording = Recording { events: events.collect(), ..Recording::default() };
        let mut player = Player::new(recording, Instant::now()).unwrap();
        player.paused = true;
        let mut app = player.app();
        player.sync(&mut app);
        (player, app)
    }

    fn at(player: &mut Player, app: &mut App) -> u64 {
        player.sync(app);
        app.playing().unwrap().at.as_secs()
    }

    #[test]
    fn every_key_moves_through_the_recording_and_no_further() {
        let (mut player, mut app) = player(101);
        for (play, then) in [
            (Play::Jump(10), 10),
            (Play::Jump(-30), 0),
            (Play::Next, 1),
            (Play::Next, 2),
            (Play::Before, 1),
            (Play::End, 100),
            (Play::Next, 100),
            (Play::Before, 99),
            (Play::Jump(10), 100),
            (Play::Begin, 0),
            (Play::Before, 0),
        ] {
            player.ask(&Intent::Play(play)).unwrap();
            assert_eq!(at(&mut player, &mut app), then, "{play:?}");
        }
    }

    #[test]
    fn pausing_at_the_end_begins_anew_and_speeds_have_limits() {
        let (mut player, mut app) = player(11);
        player.ask(&Intent::Play(Play::End)).unwrap();
        player.ask(&Intent::Play(Play::PauseOrGoOn)).unwrap();
        assert_eq!((at(&mut player, &mut app), player.paused), (0, false));
        for _ in 0..20 {
            player.ask(&Intent::Play(Play::Faster)).unwrap();
        }
        assert_eq!(SPEEDS[player.speed], 120.0);
        for _ in 0..20 {
            player.ask(&Intent::Play(Play::Slower)).unwrap();
        }
        assert_eq!(SPEEDS[player.speed], 0.25);
    }

    #[test]
    fn what_needs_a_server_is_refused_with_the_reason() {
        let (mut player, app) = player(2);
        assert_eq!(player.ask(&Intent::Wake { ledger: "jobs".into() }), Err(NO_SERVER));
        assert_eq!(app.refusal().as_deref(), Some(NO_SERVER));
    }
}
