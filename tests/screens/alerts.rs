//! Alerts on the screen: in the log, in the head line, in their list, and their runbooks.

use pgwake::app::alerts::{ALERTS, Alert, Phase};
use pgwake::app::dialog::Dialog;
use pgwake::app::playback::Playback;
use pgwake::app::{App, Msg, Screen, update};
use pgwake::config::keys::{Action, Key};
use pgwake::model::*;
use pgwake::ui::{Theme, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::fixtures::*;

/// What is drawn at `t`, as one text.
fn text(app: &App, t: f64, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, app, now_at(t), &Theme::load("dark").unwrap())).unwrap();
    let buf = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| buf[(x, y)].symbol()).collect::<String>() + "\n";
    (0..height).map(row).collect()
}

/// A sample whose oldest ready job is so old.
fn late(t: u64, oldest: f64) -> Event {
    let mut s = quiet(t);
    s.vitals.oldest_ready = Reading::exact(Some(oldest), s.taken_at);
    Event::Sample(Box::new(s))
}

/// Late from the second second to the fourth, then not.
fn story() -> Vec<(u64, Event)> {
    let age = |t| if (2..5).contains(&t) { 75.0 } else { 2.0 };
    (1..=30).map(|t| (t, late(t, age(t)))).collect()
}

fn phase(app: &App, name: &str) -> Phase {
    let (at, _) = Alert::find(name).unwrap();
    app.ledger().unwrap().alerts.all().nth(at).unwrap().1.phase()
}

fn told(app: &App) -> Vec<(String, u64)> {
    let lines = app.live().log.newest().filter(|l| l.alert.is_some());
    lines.map(|l| (l.text.clone(), l.at.as_secs())).collect()
}

const TOLD: [(&str, u64); 2] = [
    ("jobs: alert oldest-ready is resolved, 2.0s", 20),
    ("jobs: alert oldest-ready: oldest ready job is late, 75.0s", 2),
];

fn is_told(app: &App) {
    let told = told(app);
    assert_eq!(told.iter().map(|(t, s)| (t.as_str(), *s)).collect::<Vec<_>>(), TOLD);
}

#[test]
fn an_alert_is_told_when_it_fires_and_when_it_was_good_for_long_enough() {
    let mut app = connected(setup());
    for (t, event) in story() {
        send(&mut app, t as f64, event);
        let firing = matches!(phase(&app, "oldest-ready"), Phase::Firing { .. });
        assert_eq!(firing, (2..20).contains(&t), "at {t}");
        assert_eq!(text(&app, t as f64, 80, 24).contains("▲ 1 alert !"), firing, "at {t}");
    }
    is_told(&app);
}

#[test]
fn a_replay_fires_the_same_alerts_at_the_same_samples_forward_and_back() {
    let events: Vec<Stamped> = story()
        .into_iter()
        .map(|(t, event)| Stamped { mono_ms: t * 1000, wall: now_at(t as f64).wall, event })
        .collect();
    let mut playback = Playback::new(setup(), events);
    let mut app = playback.app();
    let seconds = std::time::Duration::from_secs;
    playback.go(&mut app, seconds(30));
    is_told(&app);
    playback.go(&mut app, seconds(10));
    assert!(phase(&app, "oldest-ready").is_firing());
    assert_eq!(told(&app).len(), 1);
    playback.go(&mut app, seconds(30));
    is_told(&app);
}

#[test]
fn stepping_back_shows_the_alerts_of_that_moment() {
    let mut app = connected(setup());
    for (t, event) in story().into_iter().take(6) {
        send(&mut app, t as f64, event);
    }
    assert!(phase(&app, "oldest-ready").is_firing());
    for _ in 0..5 {
        press(&mut app, Key::Char('['));
    }
    assert_eq!(app.sample().unwrap().taken_at, quiet(1).taken_at);
    assert_eq!(phase(&app, "oldest-ready"), Phase::Ok);
    press(&mut app, Key::Char(' '));
    assert!(phase(&app, "oldest-ready").is_firing());
}

#[test]
fn when_samples_stay_away_that_is_told_once_and_resolved_by_samples_that_come_again() {
    let mut app = connected(setup());
    send(&mut app, 1.0, late(1, 2.0));
    for t in [4.0, 6.0] {
        update(&mut app, Msg::Tick, now_at(t));
        assert_eq!(phase(&app, "numbers-stale"), Phase::Ok, "5 seconds are not too long");
    }
    let asked = update(&mut app, Msg::Tick, now_at(7.0));
    assert_eq!(asked, [Intent::Alarm("jobs: no numbers arrive, 6.0s old".into())]);
    assert!(phase(&app, "numbers-stale").is_firing());
    assert_eq!(update(&mut app, Msg::Tick, now_at(8.0)), []);
    press(&mut app, Key::Char('!'));
    assert!(text(&app, 9.0, 80, 24).contains("no numbers arrive         firing"));
    let shown = text(&app, 9.0, 80, 24);
    assert!(shown.contains("8.0s old") && shown.contains("no sample for 8.0s"), "{shown}");
    assert!(!shown.contains(" ok "), "of an old sample nothing is said to be ok\n{shown}");
    for t in 10..30 {
        send(&mut app, t as f64, late(t, 2.0));
    }
    assert_eq!(phase(&app, "numbers-stale"), Phase::Resolved { at: quiet(25).taken_at });
}

#[test]
fn enter_on_an_alert_in_the_log_opens_its_runbook_with_the_live_evidence() {
    let mut app = connected(setup());
    send(&mut app, 1.0, late(1, 75.0));
    press(&mut app, Key::Char('7'));
    press(&mut app, Key::Enter);
    assert!(matches!(app.dialog(), Some(Dialog::Runbook { listed: false, .. })));
    let shown = text(&app, 1.0, 120, 50);
    for part in [
        "Runbook: oldest ready job is late",
        "firing: 75.0s",
        "oldest ready job: 75.0s, limit 60.0s",
        "Steps",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    send(&mut app, 2.0, late(2, 90.0));
    assert!(text(&app, 2.0, 120, 50).contains("oldest ready job: 90.0s"), "it is live");
}

#[test]
fn the_list_opens_a_runbook_whose_keys_work_and_esc_goes_back() {
    let mut app = connected(setup());
    send(&mut app, 1.0, late(1, 75.0));
    press(&mut app, Key::Char('!'));
    let (at, _) = Alert::find("oldest-ready").unwrap();
    assert_eq!(app.dialog(), Some(&Dialog::Alerts { at }), "it begins at the one that fires");
    for (width, height) in [(60, 18), (80, 24), (120, 36), (200, 60)] {
        let shown = text(&app, 1.0, width, height);
        assert!(shown.contains("▶ ▲ oldest ready job is late"), "{width}x{height}\n{shown}");
        assert!(shown.contains("75.0s"), "{width}x{height}\n{shown}");
    }
    press(&mut app, Key::Enter);
    press(&mut app, Key::Esc);
    assert_eq!(app.dialog(), Some(&Dialog::Alerts { at }));
    press(&mut app, Key::Enter);
    // a key that the steps do not name does nothing, one that they name does it
    press(&mut app, Key::Char('5'));
    assert!(matches!(app.dialog(), Some(Dialog::Runbook { .. })));
    press(&mut app, Key::Char('2'));
    assert_eq!((app.dialog(), app.screen()), (None, Screen::Backlog));
}

#[test]
fn what_cannot_be_judged_says_why_and_is_not_ok() {
    let mut app = no_privilege();
    press(&mut app, Key::Char('!'));
    let shown = text(&app, END as f64, 120, 36);
    let row = shown.lines().find(|l| l.contains("claims find rows locked")).unwrap();
    assert!(row.contains("? claims") && row.contains("unknown  — no privilege"), "{row}");
    for c in ":runbook claim success".chars() {
        press(&mut app, if c == ':' { Key::Esc } else { Key::Char(c) });
        if c == ':' {
            press(&mut app, Key::Char(':'));
        }
    }
    press(&mut app, Key::Enter);
    let shown = text(&app, END as f64, 120, 36);
    assert!(shown.contains("unknown, cannot be judged: no privilege"), "{shown}");
}

#[test]
fn every_runbook_is_found_in_the_palette_and_can_be_read_to_its_end() {
    for (at, alert) in ALERTS.iter().enumerate() {
        let mut app = stuck();
        press(&mut app, Key::Char(':'));
        for c in format!("runbook {}", alert.name.replace('-', " ")).chars() {
            press(&mut app, Key::Char(c));
        }
        press(&mut app, Key::Enter);
        assert!(
            matches!(app.dialog(), Some(Dialog::Runbook { alert, .. }) if *alert == at),
            "{}",
            alert.name
        );
        let last = alert.runbook.split_whitespace().next_back().unwrap().trim_end_matches(['`', '.']);
        let mut all = String::new();
        for _ in 0..40 {
            all += &text(&app, END as f64, 60, 18);
            press(&mut app, Key::Down);
        }
        assert!(all.contains(last), "{}: {last}", alert.name);
        assert!(!all.contains('{'), "{}", alert.name);
        // what a key of the steps is, the key table says
        for action in alert.actions().filter(|a| *a != Action::Wake) {
            assert!(all.contains(&app.keys().key_text(action)), "{}: {action:?}", alert.name);
        }
    }
}
