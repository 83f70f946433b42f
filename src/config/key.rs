//! A key as pressed: how it is written, and how it is read.

use std::fmt;
use std::str::FromStr;

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
    /// Cursor left.
    Left,
    /// Cursor right.
    Right,
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
    /// A function key, 1–12.
    F(u8),
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
            Self::Left => f.write_str("←"),
            Self::Right => f.write_str("→"),
            Self::PageUp => f.write_str("PgUp"),
            Self::PageDown => f.write_str("PgDn"),
            Self::Home => f.write_str("Home"),
            Self::End => f.write_str("End"),
            Self::Backspace => f.write_str("Backspace"),
            Self::F(n) => write!(f, "F{n}"),
        }
    }
}

impl FromStr for Key {
    type Err = String;

    /// As it is shown, in any case: `r`, `R`, `Ctrl-L`, `space`, `Enter`, `PgUp`, `F5`; `Up` beside `↑`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut chars = text.chars();
        if let (Some(c), None) = (chars.next(), chars.next())
            && !c.is_control()
        {
            return Ok(match c {
                '↑' => Self::Up,
                '↓' => Self::Down,
                '←' => Self::Left,
                '→' => Self::Right,
                c => Self::Char(c),
            });
        }
        let lower = text.to_lowercase();
        let held = lower.strip_prefix("ctrl-").map(|rest| rest.chars().collect::<Vec<_>>());
        if let Some([c @ 'a'..='z']) = held.as_deref() {
            return match c {
                // what a terminal sends for these is another key
                'i' => Err("Ctrl-I arrives as Tab".to_owned()),
                'm' | 'j' => Err(format!("{text} arrives as Enter")),
                'h' => Err("Ctrl-H arrives as Backspace".to_owned()),
                c => Ok(Self::Ctrl(*c)),
            };
        }
        if let Some(n) = lower.strip_prefix('f').and_then(|n| n.parse().ok())
            && (1..=12).contains(&n)
        {
            return Ok(Self::F(n));
        }
        Ok(match lower.as_str() {
            "space" => Self::Char(' '),
            "enter" => Self::Enter,
            "esc" => Self::Esc,
            "tab" => Self::Tab,
            "shift-tab" => Self::BackTab,
            "up" => Self::Up,
            "down" => Self::Down,
            "left" => Self::Left,
            "right" => Self::Right,
            "pgup" => Self::PageUp,
            "pgdn" => Self::PageDown,
            "home" => Self::Home,
            "end" => Self::End,
            "backspace" => Self::Backspace,
            _ => {
                return Err(format!(
                    "{text:?} is no key; keys are written as in r, R, Ctrl-L, space, Enter, PgUp, F5"
                ));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys::KEYS;

    #[test]
    fn a_key_is_read_as_it_is_shown() {
        let shown = KEYS.iter().flat_map(|b| b.keys.iter().copied()).chain((1..=12).map(Key::F));
        for key in shown {
            assert_eq!(key.to_string().parse(), Ok(key), "{key}");
        }
        assert_eq!("ctrl-l".parse(), Ok(Key::Ctrl('l')));
        for bad in ["", "rr", "Ctrl-", "Ctrl-1", "F13", "Alt-x", "\u{1b}", "Ctrl-I", "Ctrl-M"] {
            assert!(bad.parse::<Key>().is_err(), "{bad:?}");
        }
    }
}
