//! The real binary in a pseudo-terminal, whose output is kept and can be waited for.

use std::io::{Read, Write};
use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// Whoever waits longer has no figure.
const LIMIT: Duration = Duration::from_secs(20);

pub struct Seen {
    screen: vt100::Parser,
    pub bytes: usize,
}

impl Seen {
    pub fn text(&self) -> String {
        self.screen.screen().contents()
    }
}

pub struct Running {
    child: Box<dyn Child + Send + Sync>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    keys: Box<dyn Write + Send>,
    _master: Box<dyn MasterPty + Send>,
}

impl Running {
    /// At 120×36.
    pub fn start(args: &[&str]) -> Self {
        let size = PtySize { rows: 36, cols: 120, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_pgwake"));
        command.args(args);
        command.env("TERM", "xterm-256color");
        command.env("LC_ALL", "C.UTF-8");
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let cells = |n| NonZero::new(n).unwrap();
        let seen = Seen { screen: vt100::Parser::new(cells(36), cells(120), 0), bytes: 0 };
        let seen = Arc::new((Mutex::new(seen), Condvar::new()));
        let (mut reader, filled) = (pair.master.try_clone_reader().unwrap(), seen.clone());
        let keys = pair.master.take_writer().unwrap();
        std::thread::spawn(move || {
            let mut buf = [0; 65536];
            while let Ok(n @ 1..) = reader.read(&mut buf) {
                let mut seen = filled.0.lock().unwrap();
                seen.screen.process(&buf[..n]);
                seen.bytes += n;
                filled.1.notify_all();
            }
        });
        Self { child, seen, keys, _master: pair.master }
    }

    /// Waits until the screen shows what is wanted, and gives the time it took.
    pub fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> Duration {
        let began = Instant::now();
        let mut seen = self.seen.0.lock().unwrap();
        while !wanted(&seen.text()) {
            let left = LIMIT.saturating_sub(began.elapsed());
            assert!(!left.is_zero(), "{what} never came:\n{}", seen.text());
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
        began.elapsed()
    }

    /// Presses a key and gives the time until the screen shows what is wanted.
    pub fn press(&mut self, keys: &str, what: &str, wanted: impl Fn(&str) -> bool) -> Duration {
        let began = Instant::now();
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
        self.wait(what, wanted);
        began.elapsed()
    }

    pub fn text(&self) -> String {
        self.seen.0.lock().unwrap().text()
    }

    /// Bytes that came so far.
    pub fn bytes(&self) -> usize {
        self.seen.0.lock().unwrap().bytes
    }

    pub fn pid(&self) -> String {
        self.child.process_id().unwrap().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
