//! The real binary: run for its output, or in a pseudo-terminal that an emulator reads.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::io::{Read, Write};
use std::num::NonZero;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// Long enough for two busy cores; a test that passes never waits for it.
pub const LIMIT: Duration = Duration::from_secs(30);

/// What a run printed.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("home-{}", std::process::id()))
}

/// The environment of a test: nothing of the person's own.
fn clean_env() -> Vec<(String, String)> {
    let home = home();
    std::fs::create_dir_all(&home).unwrap();
    vec![
        ("PATH".into(), std::env::var("PATH").unwrap_or_default()),
        ("HOME".into(), home.display().to_string()),
        ("TERM".into(), "xterm-256color".into()),
        ("LC_ALL".into(), "C.UTF-8".into()),
        ("TZ".into(), "UTC".into()),
    ]
}

/// Where the runs of this test binary keep their state.
pub fn state_dir() -> PathBuf {
    home().join(".local/state/pgwake")
}

/// Runs the binary without a terminal.
pub fn run(args: &[&str], env: &[(&str, &str)], input: &str) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pgwake"))
        .args(args)
        .env_clear()
        .envs(clean_env())
        .envs(env.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that fails early does not read its input.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let out = child.wait_with_output().unwrap();
    Ran {
        code: out.status.code().unwrap_or(-1),
        out: String::from_utf8(out.stdout).unwrap(),
        err: String::from_utf8(out.stderr).unwrap(),
    }
}

/// The emulator has no use for a screen without cells.
fn cells(n: u16) -> NonZero<u16> {
    NonZero::new(n).unwrap_or(NonZero::<u16>::MIN)
}

/// The binary in a pseudo-terminal.
pub struct Screen {
    parser: Arc<Mutex<vt100::Parser>>,
    raw: Arc<Mutex<Vec<u8>>>,
    master: Box<dyn MasterPty + Send>,
    writer: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
}

impl Screen {
    pub fn start(args: &[&str], env: &[(&str, &str)], size: (u16, u16)) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_pgwake"));
        command.args(args);
        Self::spawn(command, env, size)
    }

    /// Runs a script of the shell; the binary is `$PGWAKE`.
    pub fn shell(script: &str, env: &[(&str, &str)], size: (u16, u16)) -> Self {
        let mut command = CommandBuilder::new("sh");
        command.args(["-c", script]);
        let mut env = env.to_vec();
        env.push(("PGWAKE", env!("CARGO_BIN_EXE_pgwake")));
        Self::spawn(command, &env, size)
    }

    fn spawn(mut command: CommandBuilder, env: &[(&str, &str)], (cols, rows): (u16, u16)) -> Self {
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        command.env_clear();
        for (k, v) in clean_env() {
            command.env(k, v);
        }
        for (k, v) in env {
            command.env(k, v);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let parser = Arc::new(Mutex::new(vt100::Parser::new(cells(rows), cells(cols), 0)));
        let raw = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, screen, bytes) =
            (pair.master.try_clone_reader().unwrap(), parser.clone(), raw.clone());
        std::thread::spawn(move || {
            let mut buf = [0; 8192];
            while let Ok(n) = reader.read(&mut buf) {
                if n == 0 {
                    break;
                }
                screen.lock().unwrap().process(&buf[..n]);
                bytes.lock().unwrap().extend_from_slice(&buf[..n]);
            }
        });
        let writer = pair.master.take_writer().unwrap();
        Self { parser, raw, master: pair.master, writer, child }
    }

    pub fn text(&self) -> String {
        self.parser.lock().unwrap().screen().contents()
    }

    /// Everything that was written to the terminal, escape sequences included.
    pub fn raw(&self) -> Vec<u8> {
        self.raw.lock().unwrap().clone()
    }

    pub fn is_alternate(&self) -> bool {
        self.parser.lock().unwrap().screen().alternate_screen()
    }

    /// Waits until the screen says so; fails with what it shows instead.
    pub fn wait(&self, what: &str, mut seen: impl FnMut(&str) -> bool) -> String {
        let end = Instant::now() + LIMIT;
        loop {
            let text = self.text();
            if seen(&text) {
                return text;
            }
            assert!(Instant::now() < end, "not on the screen within {LIMIT:?}: {what}\n{text}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn wait_for(&self, part: &str) -> String {
        self.wait(part, |t| t.contains(part))
    }

    pub fn press(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).unwrap();
        self.writer.flush().unwrap();
    }

    pub fn resize(&mut self, cols: u16, rows: u16) {
        self.parser.lock().unwrap().screen_mut().set_size(cells(rows), cells(cols));
        self.master.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Waits until the emulator has read that the alternate screen was left: its last bytes may come after
    /// the program's end.
    pub fn wait_given_back(&self) {
        let end = Instant::now() + LIMIT;
        while self.is_alternate() {
            assert!(Instant::now() < end, "the terminal was not given back");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end and gives the exit code and how long it took.
    pub fn end(&mut self) -> (u32, Duration) {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.exit_code(), began.elapsed());
            }
            assert!(began.elapsed() < LIMIT, "did not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
