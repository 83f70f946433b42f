//! What a click says, wherever the layout has put things.

use pgwake::app::{App, Msg, update};
use pgwake::config::keys::Key;
use pgwake::ui::{Theme, Zones, draw_zones};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::fixtures::*;

/// The frame's rows as text, and what can be clicked on it.
fn drawn(app: &App) -> (Vec<String>, Zones) {
    let mut terminal = Terminal::new(TestBackend::new(120, 36)).unwrap();
    let mut zones = Zones::default();
    terminal.draw(|frame| zones = draw_zones(frame, app, end(), &Theme::load("dark").unwrap())).unwrap();
    let buf = terminal.backend().buffer();
    let row = |y| (0..120).map(|x| buf[(x, y)].symbol()).collect();
    ((0..36).map(row).collect(), zones)
}

fn cursor(rows: &[String]) -> usize {
    rows.iter().rposition(|r| r.starts_with("│ ▶")).unwrap()
}

#[test]
fn a_click_selects_the_row_it_is_on_in_every_list() {
    for screen in ['1', '2', '3', '4', '5', '6', '7'] {
        let mut app = busy();
        press(&mut app, Key::Char(screen));
        let (rows, zones) = drawn(&app);
        let below = cursor(&rows) as u16 + 1;
        let msg = zones.click(10, below).unwrap_or_else(|| panic!("screen {screen}: nothing to click"));
        assert!(matches!(msg, Msg::Row { row: 1, .. }), "screen {screen}: {msg:?}");
        update(&mut app, msg, end());
        assert_eq!(cursor(&drawn(&app).0) as u16, below, "screen {screen}");
    }
}

#[test]
fn a_word_of_the_footer_is_its_key_and_the_rest_is_nothing() {
    let mut app = busy();
    let (rows, zones) = drawn(&app);
    let at = rows[35].find("? help").unwrap() as u16;
    assert_eq!(zones.click(at, 35), Some(Msg::Key(Key::Char('?'))));
    assert_eq!(zones.click(0, 0), None);
    press(&mut app, Key::Char('?'));
    assert_eq!(drawn(&app).1.click(at, 35), None, "under a dialog nothing is clicked");
}
