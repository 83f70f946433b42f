//! The loop behind the screen in a pseudo-terminal that a terminal emulator reads: entered late, left
//! exactly once, whatever happens. The program under test is this test binary itself, started again
//! for its one ignored test.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[allow(dead_code)]
#[path = "support/fixtures.rs"]
mod fixtures;

use std::io::{Read, Write};
use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use pgwake::command::screen::{self, ScreenOptions};
use pgwake::config::{Alerts, Notify};
use pgwake::model::*;
use pgwake::monitor::Feed;
use pgwake::term::Colours;
use portable_pty::{CommandBuilder, PtySize, native_pty_system};

/// Nothing here takes this long; whoever waits for it has failed.
const LIMIT: Duration = Duration::from_secs(20);

/// Says how the program under test should behave.
const MODE: &str = "PGWAKE_TEST_SCREEN";

/// Not a test: the program under test.
#[test]
#[ignore = "started by the others"]
fn program() {
    let Ok(mode) = std::env::var(MODE) else { return };
    let feed = Arc::new(Feed::new());
    let (intents, mut requests) = tokio::sync::mpsc::channel(16);
    let other_half = Arc::clone(&feed);
    pgwake::term::watch_panics();
    std::thread::spawn(move || {
        assert_ne!(mode, "panic first", "a fault before the first word");
        if mode == "slow" {
            std::thread::sleep(Duration::from_millis(700));
        }
        other_half.emit(Event::Link(Link::Up(Box::new(fixtures::server()))));
        for leases in 0..3 {
            let mut s = fixtures::flowing(1, 3.0, 3.0, 1_204 + leases);
            fixtures::hold(&mut s, vec![fixtures::lease(1, 4700, "mail-worker-7", 130, -10)], &[]);
            other_half.emit(Event::Sample(Box::new(s)));
        }
        // then the database hangs: nothing comes any more
        while let Some(intent) = requests.blocking_recv() {
            match intent {
                Intent::CountExpired { .. } if mode == "panic here" => {
                    other_half.emit(Event::Note(Note { warn: true, text: "break".into() }));
                }
                Intent::Wake { .. } if mode.starts_with("ring") => {
                    // an alert fires, and another one right behind it
                    let mut s = fixtures::flowing(2, 3.0, 3.0, 1_204);
                    s.vitals.oldest_ready = Reading::exact(Some(75.0), s.taken_at);
                    s.ledger = "jobs".into();
                    other_half.emit(Event::Sample(Box::new(s.clone())));
                    s.ledger = "outbox".into();
                    other_half.emit(Event::Sample(Box::new(s)));
                }
                Intent::Wake { .. } if mode == "panic" => panic!("a fault on another thread"),
                Intent::Wake { .. } => {
                    other_half.emit(Event::Action(ActionEvent::WakeSent { channel: "pgwake_work".into() }));
                }
                _ => {}
            }
        }
    });
    let alerts = match std::env::var(MODE).as_deref() {
        Ok("ring") => Alerts { bell: true, notify: Notify::Off },
        Ok("ring osc9") => Alerts { bell: false, notify: Notify::Osc9 },
        Ok("ring osc777") => Alerts { bell: true, notify: Notify::Osc777 },
        _ => Alerts::default(),
    };
    let options = ScreenOptions {
        ascii: false,
        alerts,
        colours: Colours::True,
        // it runs on the thread that draws
        recorder: Some(Box::new(|stamped| {
            if let Event::Note(note) = &stamped.event {
                assert_ne!(note.text, "break", "a fault on the drawing thread");
            }
        })),
        ..ScreenOptions::from_env(Instant::now())
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let left = runtime.block_on(screen::run(fixtures::setup(), feed, intents, options));
    match left {
        Ok(exit) => println!("LEFT {exit:?}"),
        Err(e) => println!("FAILED {e}"),
    }
    std::process::exit(0);
}

fn cells(n: u16) -> NonZero<u16> {
    NonZero::new(n).unwrap()
}

/// The program in its terminal.
struct Running {
    seen: Arc<(Mutex<Seen>, Condvar)>,
    keys: Box<dyn Write + Send>,
    pty: Box<dyn portable_pty::MasterPty + Send>,
    child: Box<dyn portable_pty::Child + Send + Sync>,
}

struct Seen {
    screen: vt100::Parser,
    raw: Vec<u8>,
    over: bool,
}

impl Running {
    fn start(mode: &str) -> Self {
        let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
        command.args(["--exact", "program", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(MODE, mode);
        command.env("TERM", "xterm-256color");
        command.env_remove("RUST_BACKTRACE");
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut output = pair.master.try_clone_reader().unwrap();
        let keys = pair.master.take_writer().unwrap();
        let seen =
            Seen { screen: vt100::Parser::new(cells(24), cells(80), 0), raw: Vec::new(), over: false };
        let seen = Arc::new((Mutex::new(seen), Condvar::new()));
        let filled = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut chunk = [0u8; 4096];
            loop {
                let n = output.read(&mut chunk).unwrap_or(0);
                let mut s = filled.0.lock().unwrap();
                s.screen.process(&chunk[..n]);
                s.raw.extend_from_slice(&chunk[..n]);
                s.over = n == 0;
                filled.1.notify_all();
                if n == 0 {
                    return;
                }
            }
        });
        Self { seen, keys, pty: pair.master, child }
    }

    /// Waits until what is seen satisfies `wanted`.
    fn wait(&self, what: &str, wanted: impl Fn(&Seen) -> bool) {
        let end = Instant::now() + LIMIT;
        let mut s = self.seen.0.lock().unwrap();
        while !wanted(&s) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !s.over, "{what} never came:\n{}", s.screen.screen().contents());
            s = self.seen.1.wait_timeout(s, left).unwrap().0;
        }
    }

    fn wait_text(&self, text: &str) {
        self.wait(text, |s| s.screen.screen().contents().contains(text));
    }

    fn wait_live(&self) {
        self.wait("a live screen", |s| {
            s.screen.screen().alternate_screen() && s.screen.screen().contents().contains("mail-worker-7")
        });
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    fn signal(&self, name: &str) {
        let pid = self.child.process_id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Waits for the end and checks that the terminal was given back, once.
    fn wait_left(&mut self, word: &str) {
        self.wait_text(word);
        let s = self.seen.0.lock().unwrap();
        let screen = s.screen.screen();
        assert!(!screen.alternate_screen(), "the alternate screen is left");
        assert!(!screen.hide_cursor(), "the cursor is back");
        assert!(!screen.bracketed_paste(), "bracketed paste is off");
        let times = |needle: &[u8]| s.raw.windows(needle.len()).filter(|w| *w == needle).count();
        assert_eq!(times(b"\x1b[?1049h"), 1, "entered once");
        assert_eq!(times(b"\x1b[?1049l"), 1, "left once");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn q_gives_the_terminal_back() {
    let mut run = Running::start("calm");
    run.wait_live();
    run.press("q");
    run.wait_left("LEFT Quit");
}

#[test]
fn signals_give_the_terminal_back() {
    for (signal, word) in [("-TERM", "SIGTERM"), ("-HUP", "SIGHUP"), ("-INT", "SIGINT")] {
        let mut run = Running::start("calm");
        run.wait_live();
        run.signal(signal);
        run.wait_left(word);
    }
}

#[test]
fn a_panic_on_another_thread_ends_the_screen_and_its_report_can_be_read() {
    let mut run = Running::start("panic");
    run.wait_live();
    run.press("ny");
    run.wait_left("FAILED an internal error ended the screen");
    run.wait_text("a fault on another thread");
}

#[test]
fn a_panic_on_the_drawing_thread_gives_the_terminal_back_before_its_report() {
    let mut run = Running::start("panic here");
    run.wait_live();
    run.press("R");
    run.wait_left("a fault on the drawing thread");
}

#[test]
fn a_panic_before_the_first_word_enters_no_screen() {
    let run = Running::start("panic first");
    run.wait_text("FAILED an internal error ended the screen");
    let s = run.seen.0.lock().unwrap();
    assert!(!String::from_utf8_lossy(&s.raw).contains("\x1b[?1049h"));
    assert!(s.screen.screen().contents().contains("a fault before the first word"));
}

#[test]
fn the_screen_is_entered_only_after_the_first_word_of_the_connection() {
    let run = Running::start("slow");
    run.wait_live();
    let s = run.seen.0.lock().unwrap();
    let raw = String::from_utf8_lossy(&s.raw).into_owned();
    let entered = raw.split("\x1b[?1049h").nth(1).unwrap();
    assert!(!entered.contains("? connecting"), "the first frame already knows");
}

#[test]
fn keys_work_while_the_database_hangs() {
    let mut run = Running::start("calm");
    run.wait_live();
    run.press("3");
    run.wait_text("attempts");
    run.press("7");
    run.wait_text("newest first");
    run.press("\x1b");
    run.wait_text("Vital signs");
    run.press("?");
    run.wait_text("Keys on the screen");
}

#[test]
fn a_paste_presses_no_key() {
    let mut run = Running::start("calm");
    run.wait_live();
    run.press("\x1b[200~q\x03y\n7\x1b[201~");
    run.press("n");
    run.wait_text("Send a wake-up");
    run.press("\x1b[200~y\ny\n\x1b[201~");
    // no, and then to another screen
    run.press("n3");
    run.wait_text("attempts");
    let s = run.seen.0.lock().unwrap();
    assert!(!s.screen.screen().contents().contains("wake-up sent"));
}

#[test]
fn an_alert_that_fires_rings_once_if_that_is_switched_on_and_not_at_all_if_not() {
    let text = "pgwake: jobs: oldest ready job is late, 75.0s";
    for (mode, bells, nine, other) in
        [("ring off", 0, 0, 0), ("ring", 1, 0, 0), ("ring osc9", 0, 1, 0), ("ring osc777", 1, 0, 1)]
    {
        let mut run = Running::start(mode);
        run.wait_live();
        run.press("n");
        run.wait_text("Send a wake-up");
        run.press("y");
        run.wait_text("2 alerts");
        run.press("q");
        run.wait_left("LEFT Quit");
        let raw = String::from_utf8_lossy(&run.seen.0.lock().unwrap().raw).into_owned();
        let count = |part: &str| raw.matches(part).count();
        assert_eq!(count("\x07"), bells, "{mode}");
        assert_eq!(count("\x1b]9;"), nine, "{mode}");
        assert_eq!(count(&format!("\x1b]9;{text}\x1b\\")), nine, "{mode}");
        let notify = "\x1b]777;notify;pgwake;jobs: oldest ready job is late, 75.0s\x1b\\";
        assert_eq!((count("\x1b]777;"), count(notify)), (other, other), "{mode}");
    }
}

#[test]
fn any_size_is_survived_and_the_screen_comes_back() {
    let mut run = Running::start("calm");
    run.wait_live();
    for (rows, cols, text) in [
        (10, 40, "terminal too small (40x10, needs 60x18)"),
        (1, 1, "t"),
        (3, 10, "terminal"),
        (60, 200, "Vital signs"),
        (24, 80, "Vital signs"),
    ] {
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        run.seen.0.lock().unwrap().screen.screen_mut().set_size(cells(rows), cells(cols));
        run.pty.resize(size).unwrap();
        run.wait_text(text);
    }
    run.press("q");
    run.wait_left("LEFT Quit");
}

#[test]
fn without_a_terminal_there_is_one_line_and_no_escape() {
    let out = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "program", "--ignored", "--nocapture"])
        .env(MODE, "calm")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(
        text.contains("FAILED no screen here: standard input is not a terminal; `pgwake status`"),
        "{text}"
    );
    assert!(!text.contains('\x1b'));
}
