//! Memory and CPU after an hour.
//!
//! A process of its own takes in an hour of events, second by second of simulated time, by the same
//! `app::update` and draws every second by the same `ui::draw` and terminal backend as the program does,
//! at 120×36. It holds nothing else, so what it grows by is what an hour adds to the dashboard; the idle
//! dashboard is measured in `server`, with its sessions.

use std::io::{BufWriter, sink};
use std::process::Command;
use std::time::Instant;

use pgwake::app::{App, Msg, update};
use pgwake::config::keys::Key;
use pgwake::model::*;
use pgwake::record::Writer;
use pgwake::ui::{Theme, draw};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

use crate::fixtures::{self, now_at};
use crate::memory;
use crate::terminal::Running;

/// Says which hour the child takes in.
pub const CHILD: &str = "PGWAKE_BENCH_HOUR";

const HOUR: u64 = 3_600;

/// Simulated hours, from nothing to more than anybody has.
const LOADS: [(&str, &str); 3] = [
    ("idle", "two empty ledgers"),
    ("busy", "two ledgers, 40 leases that come and go, 12 workers, 40 wake-ups/s, a loss every 10 min"),
    ("maximal", "10,000 leases that come and go, 500 workers, 200 sessions, 400 wake-ups/s"),
];

/// What a second of the hour brings.
fn second(load: &str, t: u64) -> Vec<Event> {
    let mut out = Vec::new();
    let mut outbox = fixtures::quiet(t);
    outbox.ledger = "outbox".into();
    let (leases, workers, sessions, wakes) = match load {
        "idle" => {
            out.push(Event::Sample(Box::new(fixtures::quiet(t))));
            out.push(Event::Sample(Box::new(outbox)));
            return out;
        }
        "busy" => (40_u64, 12_u64, 4, 40),
        _ => (10_000, 500, 200, 400),
    };
    let mut s = fixtures::flowing(t, 40.0 + (t % 11) as f64, 41.0 + (t % 7) as f64, t * 7 % 900);
    // a tenth of them is new each second
    let held = (0..leases).map(|i| {
        let id = (t * leases / 10 + i) * 10_007;
        fixtures::lease(t, id, &format!("mail-worker-{}", i % workers), i as i64 * 10 / leases as i64, 60)
    });
    fixtures::hold(&mut s, held.collect(), &[]);
    let rows = (0..workers).map(|i| {
        let mut row = fixtures::worker_row(&format!("mail-worker-{i}"), t, (i + t) as i64 % 5);
        row.counters.jobs_done += (t * (i + 3)) as i64;
        row
    });
    s.workers = Reading::exact(rows.collect(), s.taken_at);
    let all = (0..sessions).map(|i| {
        let mut one = fixtures::sessions()[i % 4].clone();
        one.pid += i as i32 * 4;
        one.transaction_age = one.transaction_age.map(|a| a + t as f64);
        one
    });
    s.sessions = Reading::exact(all.collect(), s.taken_at);
    out.push(Event::Sample(Box::new(s)));
    out.push(Event::Sample(Box::new(outbox)));
    for i in 0..4 {
        out.push(Event::Wake(Wake { channel: "pgwake_work".into(), count: wakes / 4 }));
        let reason = ScanReason::Notify;
        let ledger = || "jobs".to_owned();
        out.push(Event::Worker(WorkerEvent::Claim {
            ledger: ledger(),
            outcome: ClaimOutcome::Got,
            jobs: 10,
            ms: 0.4 + (t % 9 + i) as f64,
        }));
        out.push(Event::Worker(WorkerEvent::Drained { ledger: ledger(), reason, jobs: 10 }));
    }
    if t.is_multiple_of(15) {
        out.push(Event::Backlog(Box::new(fixtures::some_backlog(t))));
    }
    if t.is_multiple_of(600) {
        let message = "terminating connection due to administrator command".to_owned();
        let loss = Loss { sqlstate: Some("57P01".into()), message };
        out.push(Event::Listen(Listen::Down { loss, up_ms: 600_000 }));
        let phases = Phases { connected_ms: 12, listening_ms: 20 };
        out.push(Event::Listen(Listen::Up {
            pid: 4101,
            channels: vec!["pgwake_work".into()],
            phases,
            again: true,
        }));
    }
    if load == "maximal" {
        out.push(Event::Note(Note {
            warn: true,
            text: format!("job {t} failed: {}", "much text ".repeat(40)),
        }));
    }
    out
}

struct Screen<B: Backend>(Terminal<B>, Theme);

impl<B: Backend<Error = std::io::Error>> Screen<B> {
    fn draw(&mut self, app: &App, at: f64) {
        self.0.draw(|frame| draw(frame, app, now_at(at), &self.1)).unwrap();
    }
}

/// Processor time of this thread, seconds; the child has no other. Manual: proc(5), schedstat.
fn ran() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// The process that takes an hour in.
pub fn child(load: &str) {
    let viewport = Viewport::Fixed(Rect::new(0, 0, 120, 36));
    let backend = CrosstermBackend::new(BufWriter::with_capacity(64 * 1024, sink()));
    let terminal = Terminal::with_options(backend, TerminalOptions { viewport }).unwrap();
    let mut screen = Screen(terminal, Theme::load("dark").unwrap());
    let mut app = fixtures::connected(fixtures::setup());
    update(&mut app, Msg::Resize(120, 36), now_at(0.3));
    let (mut first, mut began, mut making) = (0.0, 0.0, 0.0);
    for t in 1..=HOUR {
        // making the events is not the dashboard's work
        let before = ran();
        let events = second(load, t);
        making += ran() - before;
        for event in events {
            fixtures::send(&mut app, t as f64, event);
        }
        screen.draw(&app, t as f64 + 0.2);
        if t == 1 {
            (first, began, making) = (memory("self", "VmRSS"), ran(), 0.0);
        }
    }
    let busy = ran() - began - making;
    let after = memory("self", "VmRSS");
    let before = Instant::now();
    update(&mut app, Msg::Key(Key::Char('[')), now_at(HOUR as f64 + 0.4));
    screen.draw(&app, HOUR as f64 + 0.5);
    let step = before.elapsed().as_secs_f64() * 1e3;
    println!(
        "    {load}: {first:.1} MiB resident after the first second, {after:.1} MiB after the hour (highest \
         {:.1}); update and draw {:.2} % of a core; one step back in time {step:.1} ms",
        memory("self", "VmHWM"),
        busy / HOUR as f64 * 100.0,
    );
}

pub fn all() {
    println!(
        "an hour of samples through update and draw, 120x36, 1 s, in a process that does nothing else:"
    );
    for (load, what) in LOADS {
        println!("  {load}: {what}");
        let status = Command::new(std::env::current_exe().unwrap()).env(CHILD, load).status().unwrap();
        assert!(status.success());
    }
    for load in ["idle", "busy"] {
        replayed(load);
    }
}

/// The real program on a recording of the hour.
fn replayed(load: &str) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = Writer::new(BufWriter::new(file.reopen().unwrap()), &fixtures::setup()).unwrap();
    let mut write = |at: f64, event: Event| {
        let now = now_at(at);
        writer.write(&Stamped { mono_ms: now.mono.as_millis() as u64, wall: now.wall, event }).unwrap();
    };
    write(0.1, Event::Link(Link::Up(Box::new(fixtures::server()))));
    for t in 1..=HOUR {
        second(load, t).into_iter().for_each(|event| write(t as f64, event));
    }
    let size = file.as_file().metadata().unwrap().len() as f64 / 1e6;
    let mut run = Running::start(&["replay", file.path().to_str().unwrap()]);
    let start = run.wait("the first frame", |t| t.contains("REPLAY"));
    let fresh = memory(&run.pid(), "VmRSS");
    run.press(" ", "a pause", |t| t.contains("REPLAY paused"));
    let end = run.press("\x1b[F", "the end", |t| t.contains("59:59 of 59:59"));
    let back = run.press("\x1b[D", "ten seconds back", |t| t.contains("59:49 of 59:59"));
    println!(
        "  replay of the {load} hour ({size:.1} MB): first frame after {:.0} ms with {fresh:.1} MiB resident; to \
         the end {:.0} ms, from there ten seconds back {:.0} ms, then {:.1} MiB",
        start.as_secs_f64() * 1e3,
        end.as_secs_f64() * 1e3,
        back.as_secs_f64() * 1e3,
        memory(&run.pid(), "VmRSS"),
    );
}
