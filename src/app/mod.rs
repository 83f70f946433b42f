//! The screen's state and everything that changes it. Pure: no I/O, no clock, no terminal.
//!
//! ```text
//! Msg (a key, an event of the world, a tick) ─▶ update(&mut App, Msg, Now) ─▶ Vec<Intent>
//!                                                     │
//!                                                     ▼
//!                                        App, which ui::draw only reads
//! ```

mod actions;
pub mod alerts;
pub mod diagnosis;
pub mod dialog;
mod ending;
pub mod events;
pub mod fuzzy;
pub mod gaps;
pub mod health;
pub mod history;
mod jobs;
pub mod lists;
mod moves;
pub mod on_job;
pub mod palette;
pub mod playback;
mod rows;
mod screen;
pub mod seen;
pub mod selection;
pub mod series;
pub mod sessions;
mod setup;
mod state;
pub mod table;
pub mod tape;
mod time;
mod update;
mod view;
mod world;

pub use jobs::JobsView;
pub use playback::Playing;
pub use screen::Screen;
pub use setup::{Setup, WorkerSetup};
pub use state::{Embedded, LedgerState, LinkState, ListenState, World};
pub use time::Past;
pub use update::update;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::config::Keymap;
use crate::config::keys::{Key, Scope};
use crate::model::{Event, Lease, LedgerFacts, Now, Sample};
use diagnosis::{Diagnosis, Evidence};
use dialog::{Dialog, Release};
use lists::{Lists, TypeLine, WorkerLine};
use series::Series;
use sessions::SessionLine;

/// What reaches the screen.
#[derive(Clone, Debug, PartialEq)]
pub enum Msg {
    /// A key was pressed.
    Key(Key),
    /// Text was pasted. It never confirms anything.
    Paste(String),
    /// The terminal has this size now, in cells.
    Resize(u16, u16),
    /// Something happened in the world.
    Event(Box<Event>),
    /// The mouse wheel was turned by so many rows, down if positive.
    Scroll(i8),
    /// The mouse was clicked on this cell of the terminal: column and row. What stands there only the
    /// picture knows, which makes another message of it.
    Click(u16, u16),
    /// The row of the list on the screen was chosen, the list being shown from `top` on.
    Row {
        /// Which row, in the order shown.
        row: usize,
        /// The first row on the screen.
        top: usize,
    },
    /// Time has passed.
    Tick,
    /// The replay stands here now.
    Playing(Playing),
}

/// A lease's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseKey {
    /// The job.
    pub id: String,
    /// The token.
    pub token: String,
}

impl LeaseKey {
    /// Of `lease`.
    pub fn of(lease: &Lease) -> Self {
        Self { id: lease.id.clone(), token: lease.token.clone() }
    }

    fn is(&self, lease: &Lease) -> bool {
        self.id == lease.id && self.token == lease.token
    }
}

/// Rows of a full-height list screen that are not list: two head lines, the frame, the column heads,
/// the footer. `update` pages by what `ui` shows.
pub const LIST_CHROME: u16 = 6;

/// The state of the screen. `ui::draw` reads it; only [`update`] changes it.
#[derive(Clone, Debug)]
pub struct App {
    setup: Setup,
    world: World,
    /// The world as it was when the picture was frozen.
    frozen: Option<Box<(World, Now)>>,
    /// What is kept for stepping back.
    past: Past,
    /// Index of the ledger that is shown.
    current: usize,
    screen: Screen,
    size: (u16, u16),
    dialog: Option<Dialog>,
    /// One line over the footer, and when it came (monotonic).
    notice: Option<(String, Duration)>,
    lists: Lists,
    /// The rows of the list of types.
    types: Vec<TypeLine>,
    /// The rows of the list of workers.
    workers: Vec<WorkerLine>,
    /// The rows of the list of sessions.
    sessions: Vec<SessionLine>,
    /// On the screen Backlog: the jobs of one type.
    jobs: Option<JobsView>,
    /// Whether the filter of the list on the screen is being typed.
    typing: bool,
    /// On the screen Leases: only this holder's.
    only_holder: Option<String>,
    playing: Option<Playing>,
    /// The sampling interval that was asked for here, milliseconds.
    pace: Option<u64>,
    theme: usize,
    quit: bool,
}

impl App {
    /// The state before anything has happened.
    pub fn new(setup: Setup) -> Self {
        Self {
            setup,
            world: World::default(),
            frozen: None,
            past: Past::default(),
            current: 0,
            screen: Screen::Overview,
            size: (80, 24),
            dialog: None,
            notice: None,
            lists: Lists::default(),
            types: Vec::new(),
            workers: Vec::new(),
            sessions: Vec::new(),
            jobs: None,
            typing: false,
            only_holder: None,
            playing: None,
            pace: None,
            theme: 0,
            quit: false,
        }
    }

    /// What was known before.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// What belongs to the person in front of the screen and not to what it shows: keys and themes.
    pub fn set_person(&mut self, keys: Keymap, themes: Vec<String>) {
        self.setup.keys = keys;
        self.setup.themes = themes;
    }

    /// The keys that are in force.
    pub fn keys(&self) -> &Keymap {
        &self.setup.keys
    }

    /// What is shown: the world, or the world as it was when the picture was frozen.
    pub fn world(&self) -> &World {
        self.frozen.as_ref().map_or(&self.world, |f| &f.0)
    }

    /// The world as it is, frozen or not.
    pub fn live(&self) -> &World {
        &self.world
    }

    /// The moment that is shown: `now`, or when the picture was frozen.
    pub fn shown_now(&self, now: Now) -> Now {
        self.frozen.as_ref().map_or(now, |f| f.1)
    }

    /// How long the picture has been frozen, if it is.
    pub fn frozen_for(&self, now: Now) -> Option<Duration> {
        self.frozen.as_ref().map(|f| now.mono.saturating_sub(f.1.mono))
    }

    /// What is kept for stepping back in time.
    pub fn past(&self) -> &Past {
        &self.past
    }

    /// The screen.
    pub fn screen(&self) -> Screen {
        self.screen
    }

    /// What lies over it.
    pub fn dialog(&self) -> Option<&Dialog> {
        self.dialog.as_ref()
    }

    /// The line over the footer, for a few seconds after it came.
    pub fn notice(&self, now: Now) -> Option<&str> {
        let (text, since) = self.notice.as_ref()?;
        (now.mono.saturating_sub(*since) < Duration::from_secs(6)).then_some(text.as_str())
    }

    /// Where the replay stands, if this is one.
    pub fn playing(&self) -> Option<&Playing> {
        self.playing.as_ref()
    }

    /// How often the colours were changed.
    pub fn theme_turns(&self) -> usize {
        self.theme
    }

    /// Whether it was asked to leave.
    pub fn is_quitting(&self) -> bool {
        self.quit
    }

    /// Whether bindings of `scope` are offered on this screen.
    pub fn offers(&self, scope: Scope) -> bool {
        match scope {
            Scope::Everywhere => true,
            Scope::Leases => matches!(self.screen, Screen::Overview | Screen::Leases),
            Scope::Jobs => self.screen == Screen::Backlog && self.jobs.is_some(),
            Scope::Sessions => self.screen == Screen::Sessions,
            Scope::Demo => !self.setup.faults.is_empty(),
            Scope::Replay => self.playing.is_some(),
        }
    }

    /// The ledger that is shown.
    pub fn ledger(&self) -> Option<&LedgerState> {
        self.world().ledgers.get(self.current)
    }

    /// Its facts, once the server has told them.
    pub fn facts(&self) -> Option<&LedgerFacts> {
        let name = &self.ledger()?.name;
        self.world.server.as_ref()?.ledgers.iter().find(|l| l.name == *name)
    }

    /// Its newest sample.
    pub fn sample(&self) -> Option<&Sample> {
        self.ledger()?.sample.as_ref().map(|(s, _)| s.as_ref())
    }

    /// Its history.
    pub fn series(&self) -> Option<&Series> {
        self.ledger().map(|l| &l.series)
    }

    /// Monotonic time since its newest sample arrived.
    pub fn sample_age(&self, now: Now) -> Option<Duration> {
        let (_, arrived) = self.ledger()?.sample.as_ref()?;
        Some(self.shown_now(now).mono.saturating_sub(*arrived))
    }

    /// Whether its numbers are too old to stand for now.
    pub fn is_stale(&self, now: Now) -> bool {
        let interval = self.sample().map_or(0.0, |s| s.cost.effective_ms as f64 / 1e3);
        let limit = self.setup.thresholds.stale_s.max(interval * 2.5);
        self.sample_age(now).is_some_and(|a| a.as_secs_f64() > limit)
    }

    /// The server's clock at the moment shown: the sample's, moved on by the time since it arrived.
    pub fn server_now(&self, now: Now) -> DateTime<Utc> {
        match (self.sample(), self.sample_age(now)) {
            (Some(s), Some(age)) => s.taken_at + TimeDelta::from_std(age).unwrap_or_default(),
            _ => self.shown_now(now).wall,
        }
    }

    /// The same as it is, whatever the picture: what decides whether a lease has expired.
    pub fn live_server_now(&self, now: Now) -> DateTime<Utc> {
        let live = self.ledger().and_then(|l| self.world.ledgers.iter().find(|w| w.name == l.name));
        match live.and_then(|l| l.sample.as_ref()) {
            Some((s, arrived)) => s.taken_at + now.mono.saturating_sub(*arrived),
            None => self.server_now(now),
        }
    }

    /// Whether it is draining, and if not, why.
    pub fn diagnosis(&self, now: Now) -> Diagnosis {
        let world = self.world();
        let none = Series::default();
        let now_shown = self.shown_now(now);
        diagnosis::diagnose(&Evidence {
            sample: self.sample(),
            age: self.sample_age(now).unwrap_or_default(),
            series: self.series().unwrap_or(&none),
            link: &world.link,
            listen: &world.listen,
            worker: &world.worker,
            can_start_worker: matches!(self.setup.worker, WorkerSetup::Available { .. })
                && self.refusal().is_none(),
            limits: &self.setup.thresholds,
            fallback_s: self.setup.fallback_s,
            server_now: self.server_now(now),
            mono: now_shown.mono,
        })
    }

    /// Only this holder's leases are shown.
    pub fn only_holder(&self) -> Option<&str> {
        self.only_holder.as_deref()
    }

    /// Why nothing can be changed for as long as this connection lasts, if so.
    pub fn read_only(&self) -> Option<String> {
        self.setup.read_only.clone().or_else(|| self.world.server_refusal())
    }

    /// Why nothing can be changed now, if so.
    pub fn refusal(&self) -> Option<String> {
        if let Some(why) = &self.setup.read_only {
            return Some(why.clone());
        }
        match &self.world.link {
            LinkState::Down { loss, .. } => return Some(format!("not connected: {loss}")),
            LinkState::Connecting => return Some("not connected yet".to_owned()),
            LinkState::Up { .. } => {}
        }
        self.world.server_refusal()
    }

    /// A moment as the clock on the wall says it.
    pub fn clock(&self, at: DateTime<Utc>) -> String {
        (at + TimeDelta::seconds(i64::from(self.setup.utc_offset_s))).format("%H:%M:%S").to_string()
    }

    /// How the lease of a release dialog differs by now from what the dialog shows, if it does.
    pub fn drift(&self, release: &Release) -> Option<String> {
        let ledger = self.world.ledgers.iter().find(|l| l.name == release.facts.name)?;
        let leases = ledger.sample.as_ref()?.0.leases.current()?;
        let seen = &release.lease;
        match leases.iter().find(|l| l.id == seen.id) {
            None => Some("it is no longer among the leases of the newest sample".to_owned()),
            Some(l) if l.token != seen.token => Some(format!("it was claimed again by {}", l.holder)),
            Some(l) if l.expires != seen.expires => Some("it was renewed meanwhile".to_owned()),
            Some(_) => None,
        }
    }
}
