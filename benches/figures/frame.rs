//! Building a frame of 200×60 over 10,000 leases, on every screen.

use std::time::Instant;

use pgwake::app::{Msg, update};
use pgwake::config::keys::Key;
use pgwake::model::{Event, Reading};
use pgwake::ui::{Theme, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::fixtures::{self, END, end};
use crate::{ms, quantile};

/// Frames whose median and 99th percentile are given.
const FRAMES: usize = 2_000;

pub fn all() {
    let mut app = fixtures::connected(fixtures::setup());
    let mut s = fixtures::flowing(END, 3.0, 3.0, 4);
    let leases = (0..10_000)
        .map(|i| fixtures::lease(END, i, &format!("worker-{}", i % 500), 5, 60 - i as i64 % 70))
        .collect();
    fixtures::hold(&mut s, leases, &[]);
    let rows = (0..500).map(|i| fixtures::worker_row(&format!("worker-{i}"), END, 1)).collect();
    s.workers = Reading::exact(rows, s.taken_at);
    s.sessions = Reading::exact(fixtures::sessions(), s.taken_at);
    fixtures::send(&mut app, END as f64, Event::Sample(Box::new(s)));
    fixtures::send(&mut app, END as f64, Event::Backlog(Box::new(fixtures::some_backlog(END))));
    update(&mut app, Msg::Resize(200, 60), end());
    let theme = Theme::load("dark").unwrap();
    println!("building one frame of 200x60 over 10,000 leases and 500 workers, {FRAMES} frames each:");
    for (name, keys) in [
        ("overview", "1"),
        ("backlog", "2"),
        ("leases", "3"),
        ("leases, sorted", "3ss"),
        ("leases, filtered", "3/wo\n"),
        ("leases, the last row", "3G"),
        ("leases, a release dialog", "3r"),
        ("workers", "4"),
        ("sessions", "5"),
        ("wake-ups", "6"),
        ("events", "7"),
        ("help", "?"),
        ("palette", ":"),
        ("leases, a sample ago", "3["),
    ] {
        let mut app = app.clone();
        for c in keys.chars() {
            fixtures::press(&mut app, if c == '\n' { Key::Enter } else { Key::Char(c) });
        }
        let mut terminal = Terminal::new(TestBackend::new(200, 60)).unwrap();
        let mut times = Vec::with_capacity(FRAMES);
        for _ in 0..FRAMES {
            let mut took = None;
            // from the empty buffer to the filled one; what the terminal is sent is not part of it
            terminal
                .draw(|frame| {
                    let began = Instant::now();
                    draw(frame, &app, end(), &theme);
                    took = Some(began.elapsed());
                })
                .unwrap();
            times.extend(took);
        }
        let times = ms(times);
        println!(
            "    {name:26} median {:.3} ms, p99 {:.3} ms",
            quantile(&times, 0.5),
            quantile(&times, 0.99)
        );
    }
}
