//! How the screens look, text and styles. A picture that changed is looked at before it is accepted.

use std::fmt::Write;

use pgwake::app::{App, Msg, update};
use pgwake::config::keys::Key;
use pgwake::model::*;
use pgwake::ui::{Theme, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthStr;

use crate::fixtures::*;

/// The four sizes that every screen is made for.
const SIZES: [(u16, u16); 4] = [(60, 18), (80, 24), (120, 36), (200, 60)];

fn buffer(app: &App, keys: &str, (width, height): (u16, u16), theme: &Theme) -> Buffer {
    let mut app = app.clone();
    update(&mut app, Msg::Resize(width, height), end());
    for c in keys.chars() {
        press(&mut app, if c == '\n' { Key::Enter } else { Key::Char(c) });
    }
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, &app, end(), theme)).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buf: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buf.area.height {
        let mut x = 0;
        let mut row = String::new();
        while x < buf.area.width {
            let symbol = buf[(x, y)].symbol();
            row.push_str(symbol);
            x += (symbol.width().max(1)) as u16;
        }
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out
}

fn name(style: Style) -> String {
    let colour = |c: Option<Color>| match c {
        None | Some(Color::Reset) => None,
        Some(c) => Some(c.to_string()),
    };
    let mut words = Vec::new();
    words.extend(colour(style.fg).map(|c| format!("fg={c}")));
    words.extend(colour(style.bg).map(|c| format!("bg={c}")));
    for (modifier, word) in [
        (Modifier::BOLD, "bold"),
        (Modifier::DIM, "dim"),
        (Modifier::UNDERLINED, "underlined"),
        (Modifier::REVERSED, "reversed"),
    ] {
        if style.add_modifier.contains(modifier) {
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}

/// `2:4-11 fg=114`: row, first and last column, style. Plain runs and blanks are left out.
fn styles(buf: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buf.area.height {
        let mut x = 0;
        while x < buf.area.width {
            let style = name(buf[(x, y)].style());
            let from = x;
            while x < buf.area.width && name(buf[(x, y)].style()) == style {
                x += 1;
            }
            if !style.is_empty() {
                let _ = writeln!(out, "{y}:{from}-{} {style}", x - 1);
            }
        }
    }
    out
}

fn dark() -> Theme {
    Theme::load("dark").unwrap()
}

fn picture(name: &str, app: &App, keys: &str, size: (u16, u16), theme: &Theme) {
    let buf = buffer(app, keys, size, theme);
    let at = format!("{name}_{}x{}", size.0, size.1);
    insta::assert_snapshot!(format!("{at}_text"), text(&buf));
    // the styles follow from the parts, not from the size: one size tells them all
    if size == (80, 24) {
        insta::assert_snapshot!(format!("{at}_styles"), styles(&buf));
    }
}

fn pictures(name: &str, app: &App, keys: &str) {
    for size in SIZES {
        picture(name, app, keys, size, &dark());
    }
}

#[test]
fn overview() {
    pictures("overview_empty", &empty(), "");
    pictures("overview_calm", &calm(), "");
    pictures("overview_busy", &busy(), "");
    pictures("overview_stuck", &stuck(), "");
    pictures("overview_lost", &lost(), "");
    pictures("overview_hostile", &hostile(), "");
    picture("overview_connecting", &connecting(), "", (80, 24), &dark());
}

#[test]
fn leases() {
    pictures("leases_empty", &empty(), "3");
    pictures("leases_busy", &busy(), "3");
    pictures("leases_hostile", &hostile(), "3");
    picture("leases_lost", &lost(), "3", (80, 24), &dark());
    picture("leases_of_a_holder", &busy(), "\n", (80, 24), &dark());
}

#[test]
fn events() {
    pictures("events_busy", &busy(), "7");
    pictures("events_lost", &lost(), "7");
    picture("events_hostile", &hostile(), "7", (80, 24), &dark());
}

#[test]
fn dialogs() {
    for size in [(60, 18), (80, 24), (120, 36)] {
        picture("dialog_release_expired", &busy(), "3r", size, &dark());
        picture("dialog_release_held", &busy(), "3Gr47", size, &dark());
    }
    picture("dialog_release_hostile", &hostile(), "3jr", (80, 24), &dark());
    picture("dialog_lease", &busy(), "3\n", (80, 24), &dark());
    picture("dialog_event", &hostile(), "7\n", (80, 24), &dark());
    picture("dialog_wake", &busy(), "n", (80, 24), &dark());
    picture("dialog_worker", &busy(), "w", (80, 24), &dark());
    picture("dialog_help", &busy(), "?", (120, 36), &dark());
    for size in SIZES {
        picture("dialog_palette", &busy(), ":rel", size, &dark());
    }
    picture("dialog_palette_nothing", &busy(), ":zzzz", (60, 18), &dark());
    let mut app = busy();
    press(&mut app, Key::Char('R'));
    picture("dialog_bulk_counting", &app, "", (80, 24), &dark());
    let counted =
        ActionEvent::ExpiredCount { ledger: "jobs".into(), holder: None, count: 10_000, capped: true };
    send(&mut app, END as f64, Event::Action(counted));
    picture("dialog_bulk_asking", &app, "", (80, 24), &dark());
    let mut demo = setup();
    demo.faults = Fault::ALL.to_vec();
    picture("dialog_faults", &connected(demo), "F", (80, 24), &dark());
}

#[test]
fn a_frozen_and_a_read_only_screen_say_so() {
    picture("frozen", &busy(), " ", (80, 24), &dark());
    let mut app = setup();
    app.read_only = Some("started with --read-only".into());
    picture("read_only", &connected(app), "", (80, 24), &dark());
}

#[test]
fn without_colour_and_in_ascii_everything_is_still_said() {
    picture("no_colour", &busy(), "", (80, 24), &dark().without_colour());
    picture("ascii", &busy(), "", (80, 24), &dark().with_ascii(true));
    picture("ascii_hostile", &hostile(), "3", (80, 24), &dark().with_ascii(true));
    picture("light", &busy(), "", (80, 24), &Theme::load("light").unwrap());
}
