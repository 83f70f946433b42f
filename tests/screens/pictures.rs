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

/// One file for all sizes; the styles follow from the parts, so one size tells them all.
fn pictures(name: &str, app: &App, keys: &str) {
    let mut out = String::new();
    for size in SIZES {
        let _ = writeln!(out, "{}x{}\n{}", size.0, size.1, text(&buffer(app, keys, size, &dark())));
    }
    let _ = write!(out, "styles of 80x24\n{}", styles(&buffer(app, keys, (80, 24), &dark())));
    insta::assert_snapshot!(name, out);
}

/// A screen in every state.
fn in_every_state(name: &str, keys: &str) {
    for (state, app) in [
        ("empty", empty()),
        ("calm", calm()),
        ("busy", busy()),
        ("stuck", stuck()),
        ("stale", stale()),
        ("lost", lost()),
        ("no_privilege", no_privilege()),
        ("hostile", hostile()),
    ] {
        pictures(&format!("{name}_{state}"), &app, keys);
    }
}

#[test]
fn overview() {
    in_every_state("overview", "");
    picture("overview_connecting", &connecting(), "", (80, 24), &dark());
}

#[test]
fn backlog() {
    in_every_state("backlog", "2");
    picture("backlog_connecting", &connecting(), "2", (80, 24), &dark());
}

#[test]
fn leases() {
    in_every_state("leases", "3");
    picture("leases_of_a_holder", &busy(), "\n", (80, 24), &dark());
}

#[test]
fn workers() {
    in_every_state("workers", "4");
}

#[test]
fn sessions_of_the_server() {
    in_every_state("sessions", "5");
}

#[test]
fn wakeups() {
    in_every_state("wakeups", "6");
    pictures("wakeups_working", &working(), "6");
}

#[test]
fn events() {
    in_every_state("events", "7");
}

/// The jobs of the first type, as the server answered.
fn looking() -> App {
    let mut app = busy();
    press(&mut app, Key::Char('2'));
    press(&mut app, Key::Enter);
    send(&mut app, END as f64, Event::Jobs(Box::new(jobs_of_mail(END))));
    app
}

#[test]
fn jobs() {
    pictures("jobs", &looking(), "");
    picture("jobs_asking", &busy(), "2\n", (80, 24), &dark());
    let mut app = looking();
    press(&mut app, Key::Enter);
    picture("job_asking", &app, "", (80, 24), &dark());
    send(&mut app, END as f64, Event::Job(Box::new(job_4700(END, false))));
    pictures("job", &app, "");
    press(&mut app, Key::Char('v'));
    send(&mut app, END as f64, Event::Job(Box::new(job_4700(END, true))));
    picture("job_payload", &app, "", (120, 36), &dark());
    press(&mut app, Key::Char('v'));
    let hidden = text(&buffer(&app, "", (120, 36), &dark()));
    assert!(hidden.contains("payload hidden") && !hidden.contains("someone@example.com"));
}

#[test]
fn retry_give_up_and_run_now() {
    for (name, keys, id) in
        [("retry", "Ga", "4400"), ("give_up", "jjjx", "4801"), ("run_now", "jjjju", "4900")]
    {
        let mut app = looking();
        for c in keys.chars() {
            press(&mut app, Key::Char(c));
        }
        picture(&format!("dialog_{name}_looking"), &app, "", (80, 24), &dark());
        send(&mut app, END as f64, Event::Job(Box::new(detail_of(id, END))));
        for size in [(60, 18), (80, 24), (120, 36)] {
            picture(&format!("dialog_{name}"), &app, "", size, &dark());
        }
    }
}

#[test]
fn details_of_a_worker_and_of_a_session() {
    picture("dialog_worker_detail", &busy(), "4j\n", (80, 24), &dark());
    picture("dialog_worker_silent", &busy(), "4\n", (80, 24), &dark());
    picture("dialog_holder_without_reports", &hostile(), "4\n", (80, 24), &dark());
    picture("dialog_session_detail", &busy(), "5j\n", (80, 24), &dark());
}

#[test]
fn filters_and_orders_are_told() {
    picture("filter_typing", &busy(), "3/mw4", (80, 24), &dark());
    picture("filter_without_match", &busy(), "3/zzz\n", (80, 24), &dark());
    picture("sorted", &busy(), "3ssS", (80, 24), &dark());
}

#[test]
fn the_past_is_told_loudly() {
    picture("past", &busy(), "{{", (120, 36), &dark());
    picture("past_small", &busy(), "{{", (60, 18), &dark());
    picture("past_wakeups", &busy(), "6[[", (80, 24), &dark());
    // half a minute without an answer is a gap, and the step over it says so
    picture("past_gap", &busy(), "{{[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", (120, 36), &dark());
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
    for size in SIZES {
        picture("dialog_alerts", &stuck(), "a", size, &dark());
        picture("dialog_runbook", &stuck(), "a\n", size, &dark());
    }
    picture("dialog_palette_nothing", &busy(), ":zzzz", (60, 18), &dark());
    let mut app = busy();
    press(&mut app, Key::Char('R'));
    picture("dialog_bulk_counting", &app, "", (80, 24), &dark());
    let counted =
        ActionEvent::ExpiredCount { ledger: "jobs".into(), holders: None, count: 10_000, capped: true };
    send(&mut app, END as f64, Event::Action(counted));
    picture("dialog_bulk_asking", &app, "", (80, 24), &dark());
    picture("dialog_bulk_filtered", &busy(), "3/mail\nR", (80, 24), &dark());
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
