//! The one key table: it dispatches, draws the footer, the help and the palette, and prints the docs.
//! A person's own keys lie over it as a [`Keymap`](super::Keymap).

use std::borrow::Cow;

pub use super::key::Key;
use crate::model::Play;

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// To the screen Overview.
    Overview,
    /// To the screen Backlog.
    Backlog,
    /// To the screen Leases.
    Leases,
    /// To the screen Workers.
    Workers,
    /// To the screen Sessions.
    Sessions,
    /// To the screen Wake-ups.
    WakeUps,
    /// To the screen Events.
    Events,
    /// To the next screen.
    NextScreen,
    /// To the screen before.
    PreviousScreen,
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// One page up.
    PageUp,
    /// One page down.
    PageDown,
    /// To the first row.
    Top,
    /// To the last row.
    Bottom,
    /// Opens what is selected.
    Open,
    /// One step back.
    Back,
    /// Filters the list.
    Filter,
    /// Sorts the list by its next column.
    Sort,
    /// Turns the order of the list round.
    Reverse,
    /// Shows or hides a job's payload.
    Payload,
    /// Freezes the picture, or follows again.
    Freeze,
    /// One sample back in time.
    Earlier,
    /// One sample forward in time.
    Later,
    /// A minute back in time.
    MuchEarlier,
    /// A minute forward in time.
    MuchLater,
    /// Samples more often.
    SampleFaster,
    /// Samples less often.
    SampleSlower,
    /// Shows the next ledger.
    NextLedger,
    /// Starts or stops the embedded worker.
    Worker,
    /// Releases the selected lease.
    Release,
    /// Releases all expired leases, after a dry run.
    ReleaseExpired,
    /// Makes the selected failed job ready again.
    Retry,
    /// Marks the selected waiting job failed.
    GiveUp,
    /// Makes the selected scheduled job due now.
    RunNow,
    /// Cancels what the selected session runs.
    CancelQuery,
    /// Ends the selected session.
    Terminate,
    /// Shows how the server would claim.
    ClaimPlan,
    /// Sends one wake-up.
    Wake,
    /// Lists the alerts; each opens its runbook.
    Alerts,
    /// Opens the fault menu.
    Faults,
    /// Changes the colours.
    Theme,
    /// Copies what is selected.
    Copy,
    /// Finds every action by name.
    Palette,
    /// Draws everything anew.
    Redraw,
    /// Stops the program until the shell goes on with it.
    Suspend,
    /// Shows the keys.
    Help,
    /// Leaves.
    Quit,
    /// Moves through a recording.
    Play(Play),
}

impl Action {
    /// Its name in the configuration file and in the palette: `release-expired`.
    pub fn name(self) -> String {
        let debug = match self {
            Self::Play(Play::Jump(by)) => (if by < 0 { "ReplayBack" } else { "ReplayOn" }).to_owned(),
            Self::Play(play) => format!("Replay{play:?}"),
            other => format!("{other:?}"),
        };
        let mut name = String::new();
        for c in debug.chars() {
            if c.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.extend(c.to_lowercase());
        }
        name
    }

    /// Whether it changes something in the database: not offered where that is refused.
    pub fn changes(self) -> bool {
        matches!(
            self,
            Self::Release
                | Self::ReleaseExpired
                | Self::Retry
                | Self::GiveUp
                | Self::RunNow
                | Self::CancelQuery
                | Self::Terminate
                | Self::Wake
                | Self::Worker
        )
    }

    /// Whether it does much at once: such a key is never pressed by accident, so it is upper case.
    pub fn is_dangerous(self) -> bool {
        matches!(self, Self::ReleaseExpired | Self::CancelQuery | Self::Terminate)
    }
}

/// Where a binding is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// On every screen.
    Everywhere,
    /// Where leases are listed: Overview and Leases.
    Leases,
    /// Where jobs are listed: Backlog, after Enter.
    Jobs,
    /// Where sessions are listed.
    Sessions,
    /// On every screen of the demo.
    Demo,
    /// On every screen of a replay; there these keys go before all others.
    Replay,
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// What it does.
    pub action: Action,
    /// Where it is offered.
    pub scope: Scope,
    /// The keys that do it.
    pub keys: Cow<'static, [Key]>,
    /// A word or two for the footer; empty keeps it out of the footer.
    pub short: &'static str,
    /// Position in the footer's order of importance; the highest numbers leave first when room is short.
    pub rank: u8,
    /// The line in the help.
    pub help: &'static str,
}

impl Binding {
    /// The keys as one word: `j/↓`.
    pub fn keys_text(&self) -> String {
        self.keys.iter().map(Key::to_string).collect::<Vec<_>>().join(" ")
    }
}

const fn binding(
    action: Action,
    scope: Scope,
    keys: &'static [Key],
    (short, rank): (&'static str, u8),
    help: &'static str,
) -> Binding {
    Binding { action, scope, keys: Cow::Borrowed(keys), short, rank, help }
}

/// Not in the footer.
const HELP_ONLY: (&str, u8) = ("", u8::MAX);

const fn play(play: Play, keys: &'static [Key], short: (&'static str, u8), help: &'static str) -> Binding {
    binding(Action::Play(play), Scope::Replay, keys, short, help)
}

/// Every binding, in the order of the footer and of the help.
pub const KEYS: &[Binding] = &[
    play(Play::PauseOrGoOn, &[Key::Char(' ')], ("pause", 0), "replay: pause, or go on"),
    play(Play::Jump(-10), &[Key::Left], ("10s back", 2), "replay: ten seconds back"),
    play(Play::Jump(10), &[Key::Right], ("on", 2), "replay: ten seconds on"),
    play(Play::Before, &[Key::Char('[')], HELP_ONLY, "replay: to the sample before"),
    play(Play::Next, &[Key::Char(']')], HELP_ONLY, "replay: to the next sample"),
    play(Play::Faster, &[Key::Char('+'), Key::Char('=')], ("faster", 3), "replay: faster"),
    play(Play::Slower, &[Key::Char('-')], ("slower", 3), "replay: slower"),
    play(Play::Begin, &[Key::Home], HELP_ONLY, "replay: to the beginning"),
    play(Play::End, &[Key::End], HELP_ONLY, "replay: to the end"),
    binding(Action::Overview, Scope::Everywhere, &[Key::Char('1')], ("overview", 11), "screen: overview"),
    binding(Action::Backlog, Scope::Everywhere, &[Key::Char('2')], ("backlog", 11), "screen: backlog"),
    binding(Action::Leases, Scope::Everywhere, &[Key::Char('3')], ("leases", 11), "screen: leases"),
    binding(Action::Workers, Scope::Everywhere, &[Key::Char('4')], ("workers", 11), "screen: workers"),
    binding(Action::Sessions, Scope::Everywhere, &[Key::Char('5')], ("sessions", 11), "screen: sessions"),
    binding(Action::WakeUps, Scope::Everywhere, &[Key::Char('6')], ("wake-ups", 11), "screen: wake-ups"),
    binding(Action::Events, Scope::Everywhere, &[Key::Char('7')], ("events", 11), "screen: events"),
    binding(Action::NextScreen, Scope::Everywhere, &[Key::Tab], ("1-7 screen", 5), "next screen"),
    binding(Action::PreviousScreen, Scope::Everywhere, &[Key::BackTab], HELP_ONLY, "screen before"),
    binding(Action::Up, Scope::Everywhere, &[Key::Up, Key::Char('k')], HELP_ONLY, "one row up"),
    binding(Action::Down, Scope::Everywhere, &[Key::Down, Key::Char('j')], HELP_ONLY, "one row down"),
    binding(Action::PageUp, Scope::Everywhere, &[Key::PageUp], HELP_ONLY, "one page up"),
    binding(Action::PageDown, Scope::Everywhere, &[Key::PageDown], HELP_ONLY, "one page down"),
    binding(Action::Top, Scope::Everywhere, &[Key::Char('g'), Key::Home], HELP_ONLY, "first row"),
    binding(Action::Bottom, Scope::Everywhere, &[Key::Char('G'), Key::End], HELP_ONLY, "last row"),
    binding(Action::Open, Scope::Everywhere, &[Key::Enter], ("open", 9), "open what is selected"),
    binding(Action::Back, Scope::Everywhere, &[Key::Esc], HELP_ONLY, "one step back"),
    binding(
        Action::Worker,
        Scope::Everywhere,
        &[Key::Char('w')],
        ("worker", 3),
        "start or stop a worker in this program",
    ),
    binding(
        Action::Release,
        Scope::Leases,
        &[Key::Char('r')],
        ("release", 2),
        "release the selected lease (asks, and shows the statement)",
    ),
    binding(
        Action::ReleaseExpired,
        Scope::Leases,
        &[Key::Char('R')],
        ("release expired", 2),
        "release all expired leases (counts first, then asks)",
    ),
    binding(
        Action::Retry,
        Scope::Jobs,
        &[Key::Char('a')],
        ("retry", 2),
        "retry the selected failed job: again, now (asks, and shows the statement)",
    ),
    binding(
        Action::GiveUp,
        Scope::Jobs,
        &[Key::Char('x')],
        ("give up", 2),
        "give up the selected ready or scheduled job: mark it failed (asks)",
    ),
    binding(
        Action::RunNow,
        Scope::Jobs,
        &[Key::Char('u')],
        ("run now", 2),
        "make the selected scheduled job due now (asks)",
    ),
    binding(
        Action::CancelQuery,
        Scope::Sessions,
        &[Key::Char('C')],
        ("cancel", 2),
        "cancel what the selected session runs (asks first)",
    ),
    binding(
        Action::Terminate,
        Scope::Sessions,
        &[Key::Char('K')],
        ("terminate", 2),
        "end the selected session (asks, and wants the pid typed)",
    ),
    binding(
        Action::ClaimPlan,
        Scope::Everywhere,
        &[Key::Char('e')],
        HELP_ONLY,
        "plan a claim without running it, and judge the plan",
    ),
    binding(Action::Wake, Scope::Everywhere, &[Key::Char('n')], ("wake-up", 4), "send one wake-up"),
    binding(
        Action::Alerts,
        Scope::Everywhere,
        &[Key::Char('!')],
        HELP_ONLY,
        "alerts, each with its runbook",
    ),
    binding(Action::Faults, Scope::Demo, &[Key::Char('F')], ("faults", 1), "break something (demo only)"),
    binding(
        Action::NextLedger,
        Scope::Everywhere,
        &[Key::Char('p')],
        ("next ledger", 6),
        "show the next ledger",
    ),
    binding(
        Action::Filter,
        Scope::Everywhere,
        &[Key::Char('/')],
        ("filter", 6),
        "filter the list: letters in their order, words anywhere",
    ),
    binding(
        Action::Sort,
        Scope::Everywhere,
        &[Key::Char('s')],
        ("sort", 8),
        "sort the list by its next column",
    ),
    binding(Action::Reverse, Scope::Everywhere, &[Key::Char('S')], HELP_ONLY, "turn the order round"),
    binding(
        Action::Payload,
        Scope::Jobs,
        &[Key::Char('v')],
        ("payload", 3),
        "show a job's payload, or hide it",
    ),
    binding(
        Action::Earlier,
        Scope::Everywhere,
        &[Key::Char('[')],
        ("back in time", 9),
        "one sample back in time",
    ),
    binding(Action::Later, Scope::Everywhere, &[Key::Char(']')], HELP_ONLY, "one sample forward in time"),
    binding(Action::MuchEarlier, Scope::Everywhere, &[Key::Char('{')], HELP_ONLY, "a minute back in time"),
    binding(Action::MuchLater, Scope::Everywhere, &[Key::Char('}')], HELP_ONLY, "a minute forward in time"),
    binding(
        Action::Freeze,
        Scope::Everywhere,
        &[Key::Char(' ')],
        ("freeze", 7),
        "freeze the picture, or follow again (samples go on)",
    ),
    binding(
        Action::SampleFaster,
        Scope::Everywhere,
        &[Key::Char('+'), Key::Char('=')],
        HELP_ONLY,
        "sample more often, down to every 0.2s",
    ),
    binding(
        Action::SampleSlower,
        Scope::Everywhere,
        &[Key::Char('-')],
        HELP_ONLY,
        "sample less often, up to every 30s",
    ),
    binding(Action::Copy, Scope::Everywhere, &[Key::Char('y')], HELP_ONLY, "copy what is selected"),
    binding(Action::Theme, Scope::Everywhere, &[Key::Char('t')], ("theme", 10), "next colours"),
    binding(
        Action::Palette,
        Scope::Everywhere,
        &[Key::Char(':')],
        ("find", 8),
        "find an action, screen or theme by name",
    ),
    binding(Action::Redraw, Scope::Everywhere, &[Key::Ctrl('l')], HELP_ONLY, "draw everything anew"),
    binding(
        Action::Suspend,
        Scope::Everywhere,
        &[Key::Ctrl('z')],
        HELP_ONLY,
        "stop, and give the shell the terminal; fg goes on",
    ),
    binding(Action::Help, Scope::Everywhere, &[Key::Char('?')], ("help", 0), "these keys"),
    binding(Action::Quit, Scope::Everywhere, &[Key::Char('q'), Key::Ctrl('c')], ("quit", 0), "leave"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_key_is_bound_twice_and_no_action_stands_twice() {
        let mut keys = HashSet::new();
        let mut actions = HashSet::new();
        for b in KEYS {
            assert!(actions.insert(b.action), "{:?} stands twice", b.action);
            assert!(!b.keys.is_empty() && !b.help.is_empty(), "{:?} lacks keys or help", b.action);
            for k in b.keys.iter() {
                // a replay has its own keys, which go before the others
                assert!(keys.insert((b.scope == Scope::Replay, *k)), "{k} is bound twice");
            }
        }
    }

    #[test]
    fn the_bulk_release_is_upper_case() {
        let bulk = KEYS.iter().find(|b| b.action == Action::ReleaseExpired).unwrap();
        assert!(bulk.keys.iter().all(|k| matches!(k, Key::Char(c) if c.is_uppercase())));
    }

    #[test]
    fn an_action_has_a_name_of_its_own() {
        assert_eq!(Action::ReleaseExpired.name(), "release-expired");
        let names: HashSet<String> = KEYS.iter().map(|b| b.action.name()).collect();
        assert_eq!(names.len(), KEYS.len());
    }
}
