//! A recording shows what was seen, to the letter, and holds no payload.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[allow(dead_code)]
#[path = "support/fixtures.rs"]
mod fixtures;
mod support;

use std::fs;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use pgwake::app::playback::Playback;
use pgwake::app::{App, Msg, Setup, update};
use pgwake::config::keys::Key;
use pgwake::model::*;
use pgwake::record::{self, Writer};
use pgwake::ui::{Theme, picture};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use ratatui::buffer::Buffer;
use support::{DEADLINE, ledger::migrated, wait_until};

/// What a session is told in five minutes: samples with a gap, wake-ups, losses, actions, hostile text.
fn session() -> Vec<Stamped> {
    let loss = |code: &str| Loss { sqlstate: Some(code.into()), message: "terminating connection".into() };
    let mut events = vec![
        (0.1, Event::Link(Link::Up(Box::new(fixtures::server())))),
        (
            0.25,
            Event::Listen(Listen::Up {
                pid: 4101,
                channels: vec!["pgwake_work".into()],
                phases: Phases { connected_ms: 12, listening_ms: 21 },
                again: false,
            }),
        ),
    ];
    for t in (1..300_u32).filter(|t| !(150..170).contains(t)) {
        let at = f64::from(t) + f64::from(t * 37 % 100) / 1000.0;
        let mut s = fixtures::flowing(t.into(), 40.0 + f64::from(t % 11) / 3.0, 41.7, u64::from(t % 90));
        if t % 50 > 40 {
            s.counts.ready = Reading::unknown(Trouble::TimedOut).or_last(&s.counts.ready);
            let leases = vec![fixtures::lease(t.into(), 7, "担当者-@", 130, i64::from(t % 7) - 3)];
            fixtures::hold(&mut s, leases, &[]);
        }
        events.push((at, Event::Sample(Box::new(s))));
        if t % 9 == 0 {
            events.push((at + 0.2, Event::Wake(Wake { channel: "pgwake_work".into(), count: 3 })));
        }
    }
    events.push((149.5, Event::Link(Link::Down(loss("57P01")))));
    events.push((149.5, Event::Listen(Listen::Down { loss: loss("57P01"), up_ms: 149_000 })));
    events.push((155.0, Event::Link(Link::Retry { attempt: 2, after_ms: 4_000, loss: loss("57P03") })));
    events.push((169.0, Event::Link(Link::Up(Box::new(fixtures::server())))));
    events.push((200.0, Event::Worker(WorkerEvent::Started { name: "here".into() })));
    events.push((231.5, Event::Action(ActionEvent::WakeSent { channel: "pgwake_work".into() })));
    events.push((240.0, Event::Note(Note { warn: true, text: "메일 \u{240a} @".into() })));
    events.sort_by(|a, b| a.0.total_cmp(&b.0));
    let stamp = |(at, event): (f64, Event)| {
        let now = fixtures::now_at(at);
        Stamped { mono_ms: now.mono.as_millis() as u64, wall: now.wall, event }
    };
    events.into_iter().map(stamp).collect()
}

/// Moments at which it is looked at, milliseconds.
const MOMENTS: [u64; 11] =
    [250, 3_777, 90_400, 149_499, 149_900, 158_300, 172_400, 180_400, 233_300, 240_400, 299_063];

/// Every screen at `now`, with something chosen and something opened.
fn looks(app: &App, now: Now) -> Vec<Buffer> {
    let mut out = Vec::new();
    for keys in ["1", "2", "3", "4", "5", "6", "7", "3j\n", "7jj\n", "1j?"] {
        for (size, theme) in [((60, 18), "light"), ((120, 36), "dark"), ((200, 60), "dark")] {
            let mut app = app.clone();
            for c in keys.chars() {
                let key = if c == '\n' { Key::Enter } else { Key::Char(c) };
                update(&mut app, Msg::Key(key), now);
            }
            out.push(picture::screen(&mut app, size, now, &Theme::load(theme).unwrap()));
        }
    }
    out
}

#[test]
fn a_recording_replays_to_the_same_screens_to_the_letter() {
    let setup = fixtures::setup();
    let mut app = App::new(setup.clone());
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &setup).unwrap();
    let events = session();
    let mut seen = Vec::new();
    let mut next = 0;
    for moment in MOMENTS {
        while let Some(event) = events.get(next).filter(|e| e.mono_ms <= moment) {
            let now = Now { mono: Duration::from_millis(event.mono_ms), wall: event.wall };
            writer.write(event).unwrap();
            update(&mut app, Msg::Event(Box::new(event.event.clone())), now);
            next += 1;
        }
        seen.push(looks(&app, fixtures::now_at(moment as f64 / 1e3)));
    }
    assert_eq!(next, events.len(), "the last moment is the last event's");
    let recording = record::read(bytes.as_slice()).unwrap();
    let setup: Setup = serde_json::from_value(recording.about).unwrap();
    let mut playback = Playback::new(setup, recording.events);
    let mut app = playback.app();
    // forward as it happened, and then back
    for i in (0..MOMENTS.len()).chain((0..MOMENTS.len()).rev()) {
        playback.go(&mut app, Duration::from_millis(MOMENTS[i]));
        let again = looks(&app, playback.now());
        for (again, seen) in again.iter().zip(&seen[i]) {
            let difference = seen.diff(again).into_iter().map(|(x, y, c)| (x, y, c.symbol().to_owned()));
            assert_eq!(difference.collect::<Vec<_>>(), [], "the screens of {} ms differ", MOMENTS[i]);
        }
    }
}

#[test]
fn what_was_chosen_stays_where_it_was_when_the_recording_goes_back() {
    let mut playback = Playback::new(fixtures::setup(), session());
    let mut app = playback.app();
    playback.go(&mut app, Duration::from_secs(100));
    for key in [Key::Char('3'), Key::Down] {
        update(&mut app, Msg::Key(key), playback.now());
    }
    let chosen = app.lease_selection().key().cloned();
    assert!(chosen.is_some());
    playback.go(&mut app, Duration::from_secs(60));
    assert_eq!(app.lease_selection().key().cloned(), chosen);
    assert_eq!(app.screen(), pgwake::app::Screen::Leases);
}

fn pgwake() -> Command {
    Command::new(env!("CARGO_BIN_EXE_pgwake"))
}

#[test]
fn a_damaged_file_gives_what_is_readable_and_says_where_it_broke() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.jsonl");
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &fixtures::setup()).unwrap();
    session()[..40].iter().for_each(|e| writer.write(e).unwrap());
    fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
    let out = pgwake().arg("screenshot").arg(&path).assert().success().get_output().clone();
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("cut.jsonl: broken off at line 41: it was cut off in the middle"), "{said}");
    let svg = String::from_utf8(out.stdout).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("mail-worker-3"));
    fs::write(&path, "no recording\n").unwrap();
    let said = pgwake().arg("screenshot").arg(&path).assert().code(1).get_output().stderr.clone();
    assert!(String::from_utf8(said).unwrap().contains("no recording of pgwake"));
}

#[test]
fn pictures_are_the_same_every_time() {
    let path = tempfile::NamedTempFile::new().unwrap();
    let mut writer = Writer::new(path.reopen().unwrap(), &fixtures::setup()).unwrap();
    session().iter().for_each(|e| writer.write(e).unwrap());
    let shot = || {
        let args = ["--screen", "3", "--size", "80x24", "--theme", "light", "--at", "2m"];
        let out = pgwake().arg("screenshot").arg(path.path()).args(args).assert().success();
        out.get_output().stdout.clone()
    };
    let first = shot();
    assert_eq!(first, shot());
    assert!(String::from_utf8(first).unwrap().contains("<title>pgwake, 21:28:07</title>"));
}

/// The program in a terminal.
struct Running {
    screen: vt100::Parser,
    output: Receiver<Vec<u8>>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn portable_pty::Child + Send + Sync>,
}

impl Running {
    fn start(args: &[&str]) -> Self {
        let size = PtySize { rows: 36, cols: 120, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_pgwake"));
        command.args(args);
        command.env("TERM", "xterm-256color");
        command.env("LC_ALL", "C.UTF-8");
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let keys = pair.master.take_writer().unwrap();
        let (to, output) = channel();
        std::thread::spawn(move || {
            let _pty = pair.master;
            let mut chunk = [0u8; 8192];
            while let Ok(n @ 1..) = reader.read(&mut chunk) {
                if to.send(chunk[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        let cells = |n| NonZero::new(n).unwrap();
        let screen = vt100::Parser::new(cells(36), cells(120), 0);
        Self { screen, output, keys, child }
    }

    fn wait(&mut self, text: &str) {
        let end = Instant::now() + DEADLINE;
        while !self.screen.screen().contents().contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) if !left.is_zero() => self.screen.process(&bytes),
                _ => panic!("{text:?} never came:\n{}", self.screen.screen().contents()),
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    fn quit(&mut self) {
        // works whatever is open
        self.press("\x03");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_replay_is_paused_moved_and_refuses_what_needs_a_server() {
    let path = tempfile::NamedTempFile::new().unwrap();
    let mut writer = Writer::new(path.reopen().unwrap(), &fixtures::setup()).unwrap();
    session().iter().for_each(|e| writer.write(e).unwrap());
    let mut run = Running::start(&["replay", path.path().to_str().unwrap()]);
    run.wait("REPLAY ▶ ×1");
    run.press("+");
    run.wait("REPLAY ▶ ×2");
    run.press(" ");
    run.wait("REPLAY paused");
    run.press("\x1b[C\x1b[C\x1b[C\x1b[C");
    run.wait("0:40 of 4:58");
    run.press("\x1b[F");
    run.wait("REPLAY at its end 4:58 of 4:58");
    run.press("w");
    run.wait("refused: this is a recording");
    run.press("\x1b[H");
    run.wait(" 0:00 of 4:58");
    run.quit();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_of_a_real_session_is_private_replays_and_holds_no_payload() {
    let db = migrated().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("night.jsonl");
    let client = db.connect().await;
    // this session is listed, and its last statement carries a payload
    let sql = "LISTEN pgwake_work; SELECT pgwake.enqueue('mail.send', '{\"to\": \"MARKER-7c1e\"}')";
    client.batch_execute(sql).await.unwrap();
    let name = path.to_str().unwrap().to_owned();
    let args = ["--record", &name, "--interval", "100ms", db.conninfo()];
    let mut run = Running::start(&args);
    run.wait("LISTEN");
    let text = wait_until("the listening session is recorded", DEADLINE, async || {
        let text = fs::read_to_string(&path).ok()?;
        text.contains("LISTEN pgwake_work; SELECT pgwake.enqueue").then_some(text)
    })
    .await;
    assert!(!text.contains("MARKER"), "a payload");
    // seen on the screen because it was asked for, and still not in the recording
    run.press("2");
    run.wait("mail.send");
    run.press("\r");
    run.wait("attempts");
    run.press("v");
    run.wait("MARKER-7c1e");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    run.quit();
    assert!(!fs::read_to_string(&path).unwrap().contains("MARKER"));
    let whole = record::read(fs::read(&path).unwrap().as_slice()).unwrap();
    assert_eq!(whole.broken, None);
    assert!(whole.events.iter().any(|e| matches!(e.event, Event::Sample(_))));
    let mut again = Running::start(&args);
    again.wait("a recording is never overwritten");
    assert_eq!(again.child.wait().unwrap().exit_code(), 1);
    let mut replay = Running::start(&["replay", &name]);
    replay.wait("REPLAY");
    replay.quit();
    assert!(Path::new(&name).exists());
}
