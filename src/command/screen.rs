//! The loop behind the screen: keys and events in, frames and intents out.
//!
//! It runs on a current-thread runtime of its own, on the main thread. The network lives on another
//! thread and is reached by the feed and by a bounded channel of intents only, so a database that
//! hangs never delays a key, and a terminal that blocks never keeps a socket from being read.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Local;
use crossterm::event::EventStream;
use futures_util::StreamExt;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::pause::Pause;
use super::source::{Live, Source};
use crate::app::{self, App, Msg};
use crate::config::{Alerts, Keymap};
use crate::model::{ActionEvent, Event, Intent, Now, Stamped};
use crate::monitor::Feed;
use crate::term::{self, Alarm, Colours, Guard, Pace, TerminalError};
use crate::ui::{self, Theme, ThemeError, Themes};

/// The screen is entered when the first connection succeeded or failed, but not later than this.
const FIRST_WORD: Duration = Duration::from_secs(10);

/// How long the other side may take to come to rest before the program stops regardless.
const REST: Duration = Duration::from_millis(1800);

/// Takes every event as it is shown, for a recording.
pub type Recorder = Box<dyn FnMut(Stamped) + Send>;

/// How the screen looks and what it is measured by.
pub struct ScreenOptions {
    /// Name of the theme to begin with.
    pub theme: String,
    /// The themes there are.
    pub themes: Themes,
    /// Whether themes may draw a background of their own.
    pub filled: bool,
    /// Draw with ASCII only.
    pub ascii: bool,
    /// Which colours the terminal shows.
    pub colours: Colours,
    /// When the program began: zero of the monotonic clock.
    pub start: Instant,
    /// Gets every event, if set.
    pub recorder: Option<Recorder>,
    /// Take the mouse: the wheel scrolls, a click selects.
    pub mouse: bool,
    /// How an alert that fires is told outside the screen.
    pub alerts: Alerts,
    /// The keys.
    pub keys: Keymap,
    /// Puts the other side to rest while the program is stopped, if there is another side.
    pub pause: Option<Pause>,
    /// Said in the log when the screen comes up.
    pub notes: Vec<String>,
}

impl ScreenOptions {
    /// The options that the environment asks for: `NO_COLOR` when it is not empty, true colour when
    /// `COLORTERM` says so, ASCII unless the locale is UTF-8.
    pub fn from_env(start: Instant) -> Self {
        Self {
            theme: "dark".to_owned(),
            themes: Themes::built_in(),
            filled: true,
            ascii: !term::is_utf8(|name| std::env::var(name).ok()),
            colours: term::colours(|name| std::env::var(name).ok()),
            start,
            recorder: None,
            mouse: false,
            alerts: Alerts::default(),
            keys: Keymap::default(),
            pause: None,
            notes: Vec::new(),
        }
    }
}

/// Why the screen was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It was asked to, by key.
    Quit,
    /// By a signal, named.
    Signal(&'static str),
    /// The terminal has gone away.
    TerminalGone,
}

/// Why there was no screen, or why it ended against its will.
#[derive(Debug, thiserror::Error)]
pub enum ScreenError {
    /// No terminal to draw on.
    #[error("no screen here: {0}; `pgwake status` prints one sample for pipes and cron")]
    NoTerminal(TerminalError),
    /// The theme.
    #[error(transparent)]
    Theme(#[from] ThemeError),
    /// The system.
    #[error("the terminal: {0}")]
    Io(#[from] io::Error),
    /// A panic on some thread; its report was printed.
    #[error("an internal error ended the screen; its report stands above")]
    Panicked,
}

/// Shows the screen until somebody leaves it. Events come from `feed`; intents go to `intents`, without
/// ever waiting there. Whoever starts the thread of the network calls [`term::watch_panics`] before it,
/// so that no panic over there goes unseen.
pub async fn run(
    mut setup: app::Setup,
    feed: Arc<Feed>,
    intents: mpsc::Sender<Intent>,
    mut options: ScreenOptions,
) -> Result<Exit, ScreenError> {
    setup.utc_offset_s = utc_offset_s();
    let recorder = options.recorder.take();
    let live = Live { setup, feed, intents, start: options.start, recorder, dropped: 0 };
    play(Source::Live(Box::new(live)), options).await
}

/// The loop itself, whatever the events come from.
pub(super) async fn play(source: Source, mut options: ScreenOptions) -> Result<Exit, ScreenError> {
    Guard::check().map_err(ScreenError::NoTerminal)?;
    let themes = themes(&options)?;
    let mut signals = Signals::new()?;
    // before the screen is there as well: the half that has panicked will never say anything
    term::watch_panics();
    let mut app = source.app();
    let names = themes.iter().map(|t| t.name().to_owned()).collect();
    app.set_person(std::mem::take(&mut options.keys), names);
    let mut session = Session {
        app,
        source,
        start: options.start,
        pace: Pace::default(),
        rest: options.pause.take(),
        own: Vec::new(),
        asked_to_stop: false,
    };
    for text in options.notes {
        session.event(Event::Note(crate::model::Note { warn: true, text: crate::text::clean(&text) }));
    }
    if let Some(exit) = session.first_word(&mut signals).await? {
        return Ok(exit);
    }
    let mut guard = Guard::enter().map_err(ScreenError::NoTerminal)?;
    if options.mouse {
        guard.take_mouse()?;
    }
    session.measure(&guard);
    let mut keys = EventStream::new();
    let mut zones = ui::Zones::default();
    let mut alarm = Alarm::new(options.alerts);
    loop {
        let wait = session.pace.wait(session.start.elapsed());
        if wait.is_zero() {
            let now = session.now();
            let theme = &themes[session.app.theme_turns() % themes.len()];
            let app = &session.app;
            match guard.draw(|frame| zones = ui::draw_zones(frame, app, now, theme)) {
                Ok(()) => {}
                Err(_) if !term::is_alive() => return Ok(Exit::TerminalGone),
                Err(e) => return Err(e.into()),
            }
            session.pace.drawn(session.start.elapsed());
            continue;
        }
        // in order of importance: a storm of events never starves a key or a signal
        tokio::select! {
            biased;
            () = term::panicked() => return Err(ScreenError::Panicked),
            called = signals.next() => match called {
                Call::Leave(name) => return Ok(Exit::Signal(name)),
                Call::Stop => session.stop(&mut guard).await?,
                Call::GoOn => session.go_on(&mut guard)?,
            },
            key = keys.next() => match key {
                Some(Ok(event)) => {
                    let said = match term::message(event) {
                        Some(Msg::Click(column, row)) => zones.click(column, row),
                        other => other,
                    };
                    if let Some(msg) = said {
                        // even to the same size: it may have been another in between, and be cut
                        if matches!(msg, Msg::Resize(..)) {
                            session.own.push(Intent::Redraw);
                        }
                        session.take(msg);
                    }
                }
                Some(Err(e)) if e.kind() == io::ErrorKind::Interrupted => {}
                Some(Err(_)) | None => return Ok(Exit::TerminalGone),
            },
            event = session.source.next() => session.take_in(event),
            () = tokio::time::sleep(wait) => {
                if !term::is_alive() {
                    return Ok(Exit::TerminalGone);
                }
                session.take(Msg::Tick);
            }
        }
        for intent in std::mem::take(&mut session.own) {
            match intent {
                Intent::Copy(text) => guard.copy(&text)?,
                Intent::Redraw => guard.redraw()?,
                Intent::Alarm(text) => {
                    if let Some(bytes) = alarm.bytes(&text, session.start.elapsed()) {
                        guard.ring(&bytes)?;
                    }
                }
                Intent::Suspend => session.stop(&mut guard).await?,
                _ => {}
            }
        }
        if let Some(bytes) = alarm.waiting(session.start.elapsed()) {
            guard.ring(&bytes)?;
        }
        if session.app.is_quitting() {
            return Ok(Exit::Quit);
        }
    }
}

/// Seconds east of UTC, here and now.
pub(super) fn utc_offset_s() -> i32 {
    Local::now().offset().local_minus_utc()
}

/// The themes that the theme key goes through, the chosen one first.
fn themes(options: &ScreenOptions) -> Result<Vec<Theme>, ThemeError> {
    let dress = |theme: Theme| {
        let theme = theme.with_ascii(options.ascii);
        let theme = if options.filled { theme } else { theme.unfilled() };
        match options.colours {
            Colours::None => theme.without_colour(),
            Colours::Fixed256 => theme.in_256_colours(),
            Colours::True => theme,
        }
    };
    let mut all = vec![dress(options.themes.get(&options.theme)?)];
    for name in options.themes.names().filter(|n| *n != options.theme) {
        all.push(dress(options.themes.get(name)?));
    }
    Ok(all)
}

/// What the loop carries from turn to turn.
struct Session {
    app: App,
    source: Source,
    start: Instant,
    pace: Pace,
    rest: Option<Pause>,
    /// Intents that the loop itself carries out.
    own: Vec<Intent>,
    /// Our own signal to the whole job comes back to us: that one is not a second request.
    asked_to_stop: bool,
}

impl Session {
    /// Puts the other side to rest, gives the terminal back, and stops. Going on comes with a signal.
    async fn stop(&mut self, guard: &mut Guard) -> io::Result<()> {
        if std::mem::take(&mut self.asked_to_stop) {
            return Ok(());
        }
        if let Err(why) = term::may_stop() {
            let refused = ActionEvent::Refused { what: "stopping".to_owned(), why: why.to_owned() };
            self.event(Event::Action(refused));
            return Ok(());
        }
        if let Some(rest) = &mut self.rest {
            rest.rest(REST).await;
        }
        guard.give_back();
        self.asked_to_stop = true;
        term::stop()
    }

    /// Continued, whoever stopped it: the terminal first, so that nobody listens who still waits for it.
    fn go_on(&mut self, guard: &mut Guard) -> io::Result<()> {
        guard.take_again()?;
        self.measure(guard);
        if let Some(rest) = &mut self.rest {
            rest.go_on();
        }
        Ok(())
    }

    fn measure(&mut self, guard: &Guard) {
        if let Ok((width, height)) = guard.size() {
            self.take(Msg::Resize(width, height));
        }
    }

    fn now(&mut self) -> Now {
        self.source.now(&mut self.app)
    }

    /// Takes events in until the first word about the connection; the screen stays as it is.
    async fn first_word(&mut self, signals: &mut Signals) -> Result<Option<Exit>, ScreenError> {
        if matches!(self.source, Source::Replay(_)) {
            return Ok(None);
        }
        let deadline = tokio::time::sleep(FIRST_WORD);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                biased;
                () = term::panicked() => return Err(ScreenError::Panicked),
                called = signals.next() => {
                    if let Call::Leave(name) = called {
                        return Ok(Some(Exit::Signal(name)));
                    }
                }
                event = self.source.next() => {
                    let is_link = matches!(event, Some(Event::Link(_)));
                    event.into_iter().for_each(|e| self.event(e));
                    if is_link {
                        return Ok(None);
                    }
                }
                () = &mut deadline => return Ok(None),
            }
        }
    }

    /// Takes in what the source had, and what waits behind it, before anything is drawn.
    fn take_in(&mut self, event: Option<Event>) {
        match event {
            Some(event) => self.event(event),
            None => self.take(Msg::Tick),
        }
        for _ in 0..256 {
            let Some(event) = self.source.try_next() else { break };
            self.event(event);
        }
        if let Some(told) = self.source.dropped() {
            self.event(told);
        }
    }

    fn event(&mut self, event: Event) {
        let now = self.now();
        self.source.shown(&event, now);
        self.take_at(Msg::Event(Box::new(event)), now);
    }

    fn take(&mut self, msg: Msg) {
        let now = self.now();
        self.take_at(msg, now);
    }

    fn take_at(&mut self, msg: Msg, now: Now) {
        self.pace.changed();
        for intent in app::update(&mut self.app, msg, now) {
            if matches!(intent, Intent::Copy(_) | Intent::Redraw | Intent::Suspend | Intent::Alarm(_)) {
                self.own.push(intent);
                continue;
            }
            if let Err(why) = self.source.ask(intent) {
                let refused = ActionEvent::Refused { what: "this".to_owned(), why: why.to_owned() };
                self.event(Event::Action(refused));
            }
        }
    }
}

/// What a signal asks for.
enum Call {
    /// The program ends in order; the signal's name.
    Leave(&'static str),
    /// The program stops.
    Stop,
    /// It was stopped and goes on.
    GoOn,
}

/// The signals that are heeded.
struct Signals {
    term: Signal,
    hup: Signal,
    int: Signal,
    stop: Signal,
    go_on: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            hup: signal(SignalKind::hangup())?,
            int: signal(SignalKind::interrupt())?,
            stop: signal(SignalKind::from_raw(term::stop_signal()))?,
            go_on: signal(SignalKind::from_raw(term::continue_signal()))?,
        })
    }

    /// The next one. A stop is seen before the going on that ended it.
    async fn next(&mut self) -> Call {
        tokio::select! {
            biased;
            _ = self.term.recv() => Call::Leave("SIGTERM"),
            _ = self.hup.recv() => Call::Leave("SIGHUP"),
            _ = self.int.recv() => Call::Leave("SIGINT"),
            _ = self.stop.recv() => Call::Stop,
            _ = self.go_on.recv() => Call::GoOn,
        }
    }
}
