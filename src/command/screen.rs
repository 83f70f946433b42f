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

use super::source::{Live, Source};
use crate::app::{self, App, Msg};
use crate::model::{ActionEvent, Event, Intent, Now, Stamped};
use crate::monitor::Feed;
use crate::term::{self, Colours, Guard, Pace, TerminalError};
use crate::ui::{self, Theme, ThemeError, Themes};

/// The screen is entered when the first connection succeeded or failed, but not later than this.
const FIRST_WORD: Duration = Duration::from_secs(10);

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
pub(super) async fn play(source: Source, options: ScreenOptions) -> Result<Exit, ScreenError> {
    Guard::check().map_err(ScreenError::NoTerminal)?;
    let themes = themes(&options)?;
    let mut signals = Signals::new()?;
    // before the screen is there as well: the half that has panicked will never say anything
    term::watch_panics();
    let app = source.app();
    let mut session = Session { app, source, start: options.start, pace: Pace::default() };
    if let Some(exit) = session.first_word(&mut signals).await? {
        return Ok(exit);
    }
    let mut guard = Guard::enter().map_err(ScreenError::NoTerminal)?;
    if let Ok((width, height)) = guard.size() {
        session.take(Msg::Resize(width, height));
    }
    let mut keys = EventStream::new();
    loop {
        let wait = session.pace.wait(session.start.elapsed());
        if wait.is_zero() {
            let now = session.now();
            let theme = &themes[session.app.theme_turns() % themes.len()];
            let app = &session.app;
            match guard.draw(|frame| ui::draw(frame, app, now, theme)) {
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
            name = signals.next() => return Ok(Exit::Signal(name)),
            key = keys.next() => match key {
                Some(Ok(event)) => {
                    if let Some(msg) = term::message(event) {
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
}

impl Session {
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
                name = signals.next() => return Ok(Some(Exit::Signal(name))),
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
            if let Err(why) = self.source.ask(intent) {
                let refused = ActionEvent::Refused { what: "this".to_owned(), why: why.to_owned() };
                self.event(Event::Action(refused));
            }
        }
    }
}

/// The signals that end the program in order.
struct Signals {
    term: Signal,
    hup: Signal,
    int: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            hup: signal(SignalKind::hangup())?,
            int: signal(SignalKind::interrupt())?,
        })
    }

    /// The name of the next one.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.hup.recv() => "SIGHUP",
            _ = self.int.recv() => "SIGINT",
        }
    }
}
