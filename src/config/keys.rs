//! The one key table: it dispatches, draws the footer and the help, and later prints the docs.

use std::fmt;

/// A key as pressed, free of any terminal library: `term` maps its own events to this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A character, shift already applied.
    Char(char),
    /// A character with control held, lower case.
    Ctrl(char),
    /// Return.
    Enter,
    /// Escape.
    Esc,
    /// Tab.
    Tab,
    /// Shift and tab.
    BackTab,
    /// Cursor up.
    Up,
    /// Cursor down.
    Down,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
    /// Deletes the character before the cursor.
    Backspace,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Char(' ') => f.write_str("space"),
            Self::Char(c) => write!(f, "{c}"),
            Self::Ctrl(c) => write!(f, "Ctrl-{}", c.to_ascii_uppercase()),
            Self::Enter => f.write_str("Enter"),
            Self::Esc => f.write_str("Esc"),
            Self::Tab => f.write_str("Tab"),
            Self::BackTab => f.write_str("Shift-Tab"),
            Self::Up => f.write_str("↑"),
            Self::Down => f.write_str("↓"),
            Self::PageUp => f.write_str("PgUp"),
            Self::PageDown => f.write_str("PgDn"),
            Self::Home => f.write_str("Home"),
            Self::End => f.write_str("End"),
            Self::Backspace => f.write_str("Backspace"),
        }
    }
}

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
    /// Shows the next ledger.
    NextLedger,
    /// Starts or stops the embedded worker.
    Worker,
    /// Releases the selected lease.
    Release,
    /// Releases all expired leases, after a dry run.
    ReleaseExpired,
    /// Sends one wake-up.
    Wake,
    /// Opens the fault menu.
    Faults,
    /// Changes the colours.
    Theme,
    /// Shows the keys.
    Help,
    /// Leaves.
    Quit,
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
    /// On every screen of the demo.
    Demo,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// What it does.
    pub action: Action,
    /// Where it is offered.
    pub scope: Scope,
    /// The keys that do it.
    pub keys: &'static [Key],
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
    Binding { action, scope, keys, short, rank, help }
}

/// Not in the footer.
const HELP_ONLY: (&str, u8) = ("", u8::MAX);

/// Every binding, in the order of the footer and of the help.
pub const KEYS: &[Binding] = &[
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
    binding(Action::Wake, Scope::Everywhere, &[Key::Char('n')], ("wake-up", 4), "send one wake-up"),
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
    binding(Action::Theme, Scope::Everywhere, &[Key::Char('t')], ("theme", 10), "next colours"),
    binding(Action::Help, Scope::Everywhere, &[Key::Char('?')], ("help", 0), "these keys"),
    binding(Action::Quit, Scope::Everywhere, &[Key::Char('q'), Key::Ctrl('c')], ("quit", 0), "leave"),
];

/// What `key` does, if the table has it in a scope that `offered` accepts.
pub fn lookup(key: Key, offered: impl Fn(Scope) -> bool) -> Option<Action> {
    KEYS.iter().find(|b| b.keys.contains(&key) && offered(b.scope)).map(|b| b.action)
}

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
            for k in b.keys {
                assert!(keys.insert(*k), "{k} is bound twice");
            }
        }
    }

    #[test]
    fn a_key_out_of_its_scope_does_nothing() {
        assert_eq!(lookup(Key::Char('F'), |s| s != Scope::Demo), None);
        assert_eq!(lookup(Key::Char('F'), |_| true), Some(Action::Faults));
    }

    #[test]
    fn screens_that_are_not_there_have_no_digit() {
        for c in ['8', '9', '0'] {
            assert_eq!(lookup(Key::Char(c), |_| true), None);
        }
    }

    #[test]
    fn the_bulk_release_is_upper_case() {
        let bulk = KEYS.iter().find(|b| b.action == Action::ReleaseExpired).unwrap();
        assert!(bulk.keys.iter().all(|k| matches!(k, Key::Char(c) if c.is_uppercase())));
    }
}
