//! The help and the palette against the key table: what is drawn, not what was meant to be.

use pgwake::app::{App, Msg, update};
use pgwake::config::keys::{Action, KEYS, Key};
use pgwake::ui::{Theme, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::fixtures::*;

/// What is drawn, row by row.
fn rows(app: &App, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, app, end(), &Theme::load("dark").unwrap())).unwrap();
    let buf = terminal.backend().buffer();
    (0..height).map(|y| (0..width).map(|x| buf[(x, y)].symbol()).collect()).collect()
}

/// Every row that comes into sight while `key` is pressed through all that there is, each once, in order. A list
/// that goes round comes past its beginning again.
fn all_rows(app: &mut App, key: Key, width: u16, height: u16) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for _ in 0..2 * KEYS.len() {
        for row in rows(app, width, height) {
            if !all.contains(&row) {
                all.push(row);
            }
        }
        press(app, key);
    }
    all
}

#[test]
fn the_help_of_every_screen_lists_each_key_that_works_there_whole_and_no_other() {
    for (width, height) in [(80, 24), (120, 36), (200, 60)] {
        for screen in '1'..='7' {
            let mut app = busy();
            update(&mut app, Msg::Resize(width, height), end());
            press(&mut app, Key::Char(screen));
            let here = KEYS.iter().filter(|b| app.offers(b.scope)).collect::<Vec<_>>();
            let elsewhere = KEYS.iter().filter(|b| !app.offers(b.scope)).collect::<Vec<_>>();
            assert!(here.len() > 20, "screen {screen}");
            press(&mut app, Key::Char('?'));
            let all = all_rows(&mut app, Key::Char('j'), width, height);
            // a key, room, what it does, and the border: nothing is cut
            let lists = |keys: &str, help: &str| {
                let is = |row: &&String| {
                    row.split_once(&format!("│ {keys} ")).is_some_and(|(_, rest)| {
                        rest.trim_start().strip_prefix(help).is_some_and(|end| end.starts_with(' '))
                    })
                };
                all.iter().any(|row| is(&row))
            };
            for b in here {
                assert!(
                    lists(&b.keys_text(), b.help),
                    "{width}x{height}, screen {screen}: {} {}\n{}",
                    b.keys_text(),
                    b.help,
                    all.join("\n")
                );
            }
            for b in elsewhere {
                assert!(
                    !lists(&b.keys_text(), b.help),
                    "screen {screen}: {} works not here",
                    b.keys_text()
                );
            }
        }
    }
}

#[test]
fn the_palette_finds_every_action_and_shows_its_key() {
    let mut app = busy();
    update(&mut app, Msg::Resize(120, 36), end());
    press(&mut app, Key::Char(':'));
    let all = all_rows(&mut app, Key::Down, 120, 36);
    // but for the one that opened it
    for b in KEYS.iter().filter(|b| b.action != Action::Palette && busy().offers(b.scope)) {
        let name = b.action.name().replace(['_', '-'], " ");
        // the cursor stands in front of one of them
        let row = all.iter().find(|r| r.replace('▶', " ").contains(&format!("  {name}  ")));
        let row = row.unwrap_or_else(|| panic!("{name} is not in the palette\n{}", all.join("\n")));
        assert!(row.contains(&b.keys_text()), "{name} without {}: {row}", b.keys_text());
    }
}
