//! A person's own keys over the key table.

use super::keys::{Action, Binding, KEYS, Key, Scope};

/// The key table as it is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keymap(Vec<Binding>);

impl Default for Keymap {
    fn default() -> Self {
        Self(KEYS.to_vec())
    }
}

impl Keymap {
    /// The table with `changes` laid over it: each gives an action all of its keys.
    ///
    /// # Errors
    /// One sentence that names the key and the two actions that want it, or what is wrong with it.
    pub fn with(changes: Vec<(Action, Vec<Key>)>) -> Result<Self, String> {
        let mut map = Self::default();
        for (action, keys) in changes {
            if let Some(binding) = map.0.iter_mut().find(|b| b.action == action) {
                binding.keys = keys.into();
            }
        }
        map.check()?;
        Ok(map)
    }

    fn check(&self) -> Result<(), String> {
        // a replay has keys of its own, which go before the others
        let meet = |a: &Binding, b: &Binding| (a.scope == Scope::Replay) == (b.scope == Scope::Replay);
        for binding in &self.0 {
            let others = || self.0.iter().filter(|b| b.action != binding.action && meet(b, binding));
            for key in binding.keys.iter() {
                if let Some(other) = others().find(|b| b.keys.contains(key)) {
                    let (one, two) = (binding.action.name(), other.action.name());
                    return Err(format!(
                        "{key} is bound to both {one} and {two}; give one of them another"
                    ));
                }
                if *key == Key::Ctrl('c') && binding.action != Action::Quit {
                    return Err(format!(
                        "Ctrl-C always leaves; give {} another key",
                        binding.action.name()
                    ));
                }
                if binding.action.is_dangerous() && matches!(key, Key::Char(c) if !c.is_uppercase()) {
                    let name = binding.action.name();
                    return Err(format!("{name} acts on much at once; its key is upper case, not {key}"));
                }
            }
        }
        Ok(())
    }

    /// Every binding, in the order of the footer and of the help.
    pub fn iter(&self) -> impl Iterator<Item = &Binding> {
        self.0.iter()
    }

    /// The binding of an action.
    pub fn of(&self, action: Action) -> Option<&Binding> {
        self.0.iter().find(|b| b.action == action)
    }

    /// The first key of an action, as it is shown; empty if it has none.
    pub fn key_text(&self, action: Action) -> String {
        self.of(action).and_then(|b| b.keys.first()).map(Key::to_string).unwrap_or_default()
    }

    /// What `key` does, if the table has it in a scope that `offered` accepts.
    pub fn lookup(&self, key: Key, offered: impl Fn(Scope) -> bool) -> Option<Action> {
        let bound = |b: &&Binding| b.keys.contains(&key) && offered(b.scope);
        let replay = self.0.iter().filter(|b| b.scope == Scope::Replay).find(bound);
        replay.or_else(|| self.0.iter().find(bound)).map(|b| b.action)
    }

    /// The table as Markdown, for the documentation.
    pub fn markdown(&self) -> String {
        let mut out = String::from("| key | what it does | name |\n|---|---|---|\n");
        for b in &self.0 {
            let keys = b.keys.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(" ");
            out += &format!("| {keys} | {} | `{}` |\n", b.help, b.action.name());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Play;

    #[test]
    fn the_defaults_contradict_nothing() {
        assert_eq!(Keymap::default().check(), Ok(()));
    }

    #[test]
    fn a_key_out_of_its_scope_does_nothing() {
        let map = Keymap::default();
        assert_eq!(map.lookup(Key::Char('F'), |s| s != Scope::Demo), None);
        assert_eq!(map.lookup(Key::Char('F'), |_| true), Some(Action::Faults));
    }

    #[test]
    fn the_keys_of_a_replay_go_before_the_others() {
        let (map, space) = (Keymap::default(), Key::Char(' '));
        assert_eq!(map.lookup(space, |s| s != Scope::Replay), Some(Action::Freeze));
        assert_eq!(map.lookup(space, |_| true), Some(Action::Play(Play::PauseOrGoOn)));
    }

    #[test]
    fn a_change_takes_the_place_of_all_keys_of_its_action() {
        let map =
            Keymap::with(vec![(Action::Down, vec![Key::Char('J')]), (Action::Theme, vec![])]).unwrap();
        assert_eq!(map.lookup(Key::Char('J'), |_| true), Some(Action::Down));
        assert_eq!(map.lookup(Key::Char('j'), |_| true), None);
        assert_eq!(map.lookup(Key::Char('t'), |_| true), None);
        assert_eq!(map.key_text(Action::Theme), "");
        // two that change places do not stand in each other's way
        let swapped = vec![(Action::Worker, vec![Key::Char('r')]), (Action::Release, vec![Key::Char('w')])];
        assert!(Keymap::with(swapped).is_ok());
    }

    #[test]
    fn what_two_actions_want_and_what_nobody_may_want_is_refused() {
        let refused = |action, key| Keymap::with(vec![(action, vec![key])]).unwrap_err();
        let e = refused(Action::Worker, Key::Char('q'));
        assert!(e.contains("q is bound") && e.contains("worker") && e.contains("quit"), "{e}");
        assert!(refused(Action::Worker, Key::Ctrl('c')).contains("quit"));
        let taken = vec![(Action::Quit, vec![Key::Char('q')]), (Action::Worker, vec![Key::Ctrl('c')])];
        assert!(Keymap::with(taken).unwrap_err().contains("always leaves"));
        assert!(refused(Action::ReleaseExpired, Key::Char('z')).contains("upper case"));
    }
}
