//! The palette: every action, screen and theme, found by its name.

use super::App;
use super::dialog::Outcome;
use crate::config::keys::{Action, Key};

/// Longest search text.
const LONGEST: usize = 64;

/// What can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// An action of the key table.
    Action(Action),
    /// A theme, by its place.
    Theme(usize),
    /// The runbook of an alert, by its place.
    Runbook(usize),
}

/// One line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it runs.
    pub item: Item,
    /// Its name.
    pub name: String,
    /// What it does.
    pub help: String,
    /// Its keys, as they are shown.
    pub keys: String,
    /// Why it cannot be done now, if so.
    pub refusal: Option<String>,
}

/// The state of the palette.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Palette {
    entries: Vec<Entry>,
    typed: String,
    found: Vec<usize>,
    at: usize,
}

impl Palette {
    /// With everything that this screen offers.
    pub(super) fn new(app: &App) -> Self {
        let refusal = app.refusal();
        let mut entries = Vec::new();
        for b in app.keys().iter().filter(|b| app.offers(b.scope) && b.action != Action::Palette) {
            entries.push(Entry {
                item: Item::Action(b.action),
                name: b.action.name().replace('-', " "),
                help: b.help.to_owned(),
                keys: b.keys_text(),
                refusal: refusal.clone().filter(|_| b.action.changes()),
            });
        }
        for (at, name) in app.setup.themes.iter().enumerate() {
            entries.push(Entry {
                item: Item::Theme(at),
                name: format!("theme {name}"),
                help: "these colours".to_owned(),
                keys: String::new(),
                refusal: None,
            });
        }
        for (at, alert) in super::alerts::ALERTS.iter().enumerate() {
            entries.push(Entry {
                item: Item::Runbook(at),
                name: format!("runbook {}", alert.name.replace('-', " ")),
                help: alert.title.to_owned(),
                keys: String::new(),
                refusal: None,
            });
        }
        let found = (0..entries.len()).collect();
        Self { entries, typed: String::new(), found, at: 0 }
    }

    /// What was typed.
    pub fn typed(&self) -> &str {
        &self.typed
    }

    /// What was found, the best first.
    pub fn found(&self) -> impl Iterator<Item = &Entry> {
        self.found.iter().filter_map(|i| self.entries.get(*i))
    }

    /// The row of the selected one among them.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Takes pasted text into the field; it runs nothing.
    pub fn paste(&mut self, text: &str) {
        for c in text.chars().filter(|c| !c.is_control()) {
            self.push(c);
        }
        self.search();
    }

    fn push(&mut self, c: char) {
        if self.typed.chars().count() < LONGEST {
            self.typed.push(c);
        }
    }

    pub(super) fn key(&mut self, key: Key) -> Outcome {
        let last = self.found.len().saturating_sub(1);
        match key {
            Key::Esc => return Outcome::Close,
            Key::Enter => {
                let entry = self.found.get(self.at).and_then(|i| self.entries.get(*i));
                return entry.map_or(Outcome::Stay, |e| Outcome::Run(e.item));
            }
            Key::Up | Key::BackTab | Key::Ctrl('p') => {
                self.at = self.at.checked_sub(1).unwrap_or(last);
            }
            Key::Down | Key::Tab | Key::Ctrl('n') => {
                self.at = if self.at < last { self.at + 1 } else { 0 };
            }
            Key::PageUp => self.at = self.at.saturating_sub(10),
            Key::PageDown => self.at = (self.at + 10).min(last),
            Key::Home => self.at = 0,
            Key::End => self.at = last,
            Key::Backspace => {
                // nothing left to take away: out of it, as in an editor
                if self.typed.pop().is_none() {
                    return Outcome::Close;
                }
                self.search();
            }
            Key::Ctrl('u') => {
                self.typed.clear();
                self.search();
            }
            Key::Char(c) => {
                self.push(c);
                self.search();
            }
            _ => {}
        }
        Outcome::Stay
    }

    /// Finds anew, the best first; among equals the order of the table.
    fn search(&mut self) {
        let words: Vec<String> = self.typed.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let whole = words.join(" ");
        let mut scored: Vec<(u32, bool, usize)> = self
            .entries
            .iter()
            .enumerate()
            .filter_map(|(i, e)| {
                let each = words.iter().map(|w| score(w, e));
                // a whole name leads those that only begin with it
                each.sum::<Option<u32>>().map(|s| (s, e.name.to_lowercase() != whole, i))
            })
            .collect();
        scored.sort_unstable();
        self.found = scored.into_iter().map(|(_, _, i)| i).collect();
        self.at = 0;
    }
}

/// How far a word is from an entry, 0 being its beginning; `None` if it is not in it at all.
fn score(word: &str, entry: &Entry) -> Option<u32> {
    let name = entry.name.to_lowercase();
    let help = entry.help.to_lowercase();
    if name.starts_with(word) {
        return Some(0);
    }
    if name.split(' ').any(|w| w.starts_with(word)) {
        return Some(1);
    }
    if name.contains(word) {
        return Some(2);
    }
    if help.contains(word) {
        return Some(4);
    }
    // letters in their order, others between them: the fewer between, the better
    spread(word, &name).map(|gaps| 8 + gaps)
}

/// Letters of `text` between those of `word`, from the first that fits; `None` if they are not all there.
fn spread(word: &str, text: &str) -> Option<u32> {
    let mut wanted = word.chars().peekable();
    let mut gaps = 0;
    let mut begun = false;
    for c in text.chars() {
        match wanted.peek() {
            None => break,
            Some(w) if *w == c => {
                wanted.next();
                begun = true;
            }
            Some(_) => gaps += u32::from(begun),
        }
    }
    wanted.peek().is_none().then_some(gaps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Setup;
    use crate::config::keys::{Binding, KEYS, Scope};

    fn palette() -> Palette {
        let mut setup = Setup::new("db");
        setup.themes = vec!["dark".to_owned(), "nord".to_owned()];
        setup.faults = crate::model::Fault::ALL.to_vec();
        Palette::new(&App::new(setup))
    }

    fn found(typed: &str) -> Vec<String> {
        let mut p = palette();
        p.paste(typed);
        p.found().map(|e| e.name.clone()).collect()
    }

    #[test]
    fn every_action_and_every_theme_is_found_by_its_name() {
        // the scopes that are not there on the first screen of a dashboard
        let elsewhere = [Scope::Replay, Scope::Jobs, Scope::Sessions];
        let offered = |b: &&Binding| b.action != Action::Palette && !elsewhere.contains(&b.scope);
        for b in KEYS.iter().filter(offered) {
            let name = b.action.name().replace('-', " ");
            assert_eq!(found(&name).first(), Some(&name));
        }
        assert_eq!(found("nord").first().map(String::as_str), Some("theme nord"));
        assert_eq!(found("runbook no worker").first().map(String::as_str), Some("runbook no worker"));
    }

    #[test]
    fn letters_with_others_between_them_are_enough() {
        assert_eq!(found("rlex").first().map(String::as_str), Some("release expired"));
        assert_eq!(found("expired rel").first().map(String::as_str), Some("release expired"));
        assert!(found("zzzz").is_empty());
        assert_eq!(found("").len(), palette().entries.len());
    }

    #[test]
    fn enter_runs_what_is_selected_and_a_paste_runs_nothing() {
        let mut p = palette();
        p.paste("nord\n\u{1b}");
        assert_eq!(p.typed(), "nord");
        assert_eq!(p.key(Key::Enter), Outcome::Run(Item::Theme(1)));
        p.paste("xx");
        assert_eq!(p.key(Key::Enter), Outcome::Stay);
    }

    #[test]
    fn what_changes_something_says_why_it_cannot_be_done_now() {
        // not connected
        let p = palette();
        let refused: Vec<_> = p.entries.iter().filter(|e| e.refusal.is_some()).map(|e| &*e.name).collect();
        assert_eq!(refused, ["worker", "release", "release expired", "wake"]);
    }

    #[test]
    fn the_cursor_goes_round_and_the_field_is_bounded() {
        let mut p = palette();
        p.key(Key::Up);
        assert_eq!(p.at(), p.entries.len() - 1);
        p.key(Key::Down);
        assert_eq!(p.at(), 0);
        p.paste(&"x".repeat(1000));
        assert_eq!(p.typed().len(), LONGEST);
        p.key(Key::Ctrl('u'));
        assert_eq!(p.key(Key::Backspace), Outcome::Close);
    }
}
