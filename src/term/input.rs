//! What is typed, in the words of the app.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind};

use crate::app::Msg;
use crate::config::keys::Key;

/// Rows of one notch of the wheel.
const WHEEL: i8 = 3;

/// The message of a terminal event; `None` for what means nothing here. Releases are ignored: some
/// terminals report them, and every key would act twice.
pub fn message(event: Event) -> Option<Msg> {
    match event {
        Event::Key(KeyEvent {
            code, modifiers, kind: KeyEventKind::Press | KeyEventKind::Repeat, ..
        }) => key(code, modifiers).map(Msg::Key),
        Event::Paste(text) => Some(Msg::Paste(text)),
        // only where the mouse was taken
        Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollUp => Some(Msg::Scroll(-WHEEL)),
            MouseEventKind::ScrollDown => Some(Msg::Scroll(WHEEL)),
            MouseEventKind::Down(MouseButton::Left) => Some(Msg::Click(mouse.column, mouse.row)),
            _ => None,
        },
        Event::Resize(width, height) => Some(Msg::Resize(width, height)),
        _ => None,
    }
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Option<Key> {
    Some(match code {
        KeyCode::Char(c) if modifiers.contains(KeyModifiers::CONTROL) => Key::Ctrl(c.to_ascii_lowercase()),
        // alt and a letter is not that letter
        KeyCode::Char(_) if modifiers.intersects(KeyModifiers::ALT | KeyModifiers::META) => return None,
        // with the shift already applied, as most terminals send it; the others tell it apart
        KeyCode::Char(c) if modifiers.contains(KeyModifiers::SHIFT) && c.is_ascii_lowercase() => {
            Key::Char(c.to_ascii_uppercase())
        }
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Tab if modifiers.contains(KeyModifiers::SHIFT) => Key::BackTab,
        KeyCode::Tab => Key::Tab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::F(n @ 1..=12) => Key::F(n),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode, modifiers: KeyModifiers) -> Option<Msg> {
        message(Event::Key(KeyEvent::new(code, modifiers)))
    }

    #[test]
    fn a_key_acts_when_it_goes_down_and_not_when_it_comes_up() {
        let mut up = KeyEvent::new(KeyCode::Char('R'), KeyModifiers::SHIFT);
        assert_eq!(message(Event::Key(up)), Some(Msg::Key(Key::Char('R'))));
        up.kind = KeyEventKind::Release;
        assert_eq!(message(Event::Key(up)), None);
    }

    #[test]
    fn modifiers_make_another_key() {
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Msg::Key(Key::Ctrl('c'))));
        assert_eq!(press(KeyCode::Char('q'), KeyModifiers::ALT), None);
        assert_eq!(press(KeyCode::Char('r'), KeyModifiers::SHIFT), Some(Msg::Key(Key::Char('R'))));
        assert_eq!(press(KeyCode::Tab, KeyModifiers::SHIFT), Some(Msg::Key(Key::BackTab)));
    }

    #[test]
    fn a_paste_arrives_as_a_paste() {
        assert_eq!(message(Event::Paste("y\n".into())), Some(Msg::Paste("y\n".into())));
    }
}
