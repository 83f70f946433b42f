//! A throwaway PostgreSQL server: a private folder, a private socket, and an end that always comes.
//!
//! It is made to be mistreated: stopped, crashed, started again, its backends frozen. Nothing in it is
//! meant to outlive it, so it never waits for a disk.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::binaries::{Binaries, NoBinaries};
use super::cluster::{configuration, initdb, last_word, quiet, random_password};
use super::folder::Folder;

/// Until the server takes connections; a crash recovery on a busy machine included.
const START_WITHIN: Duration = Duration::from_secs(60);
/// A fast stop that takes longer becomes an immediate one.
const FAST_WITHIN: Duration = Duration::from_secs(10);
/// The postmaster itself kills what hangs after five seconds of an immediate stop.
const IMMEDIATE_WITHIN: Duration = Duration::from_secs(10);
/// Another program can take the free port between the question and the answer.
const PORT_TRIES: usize = 5;
const PORT_TAKEN: &str = "could not create any TCP/IP sockets";
const POLL: Duration = Duration::from_millis(5);

/// The superuser of every throwaway server.
pub const SUPERUSER: &str = "postgres";

/// How to make a server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder of `initdb` and `postgres`; searched for if none is given.
    pub pg_bin: Option<PathBuf>,
    /// Listen on the loopback address as well as on the socket. The socket trusts whoever can reach it,
    /// which its folder limits to us; the loopback is open to the whole machine and asks for a password.
    pub tcp: bool,
    /// The superuser's password for TCP; a random one if none is given.
    pub password: Option<String>,
    /// Server settings, as `postgresql.conf` takes them, without quotes.
    pub settings: Vec<(String, String)>,
    /// Files for the data folder, which is where settings look for a relative path (certificates).
    pub files: Vec<(String, Vec<u8>)>,
}

/// How to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// Sessions are ended, and the next start is clean.
    Fast,
    /// A crash: sessions are cut off, and the next start recovers.
    Immediate,
}

/// Why there is no server. One line each.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Nothing to run.
    #[error(transparent)]
    Binaries(#[from] NoBinaries),
    /// Root without anybody to hand over to.
    #[error(
        "PostgreSQL does not run as root, and there is no user postgres or nobody to run it: start pgwake as another user"
    )]
    NoUser,
    /// The folder or a file in it.
    #[error("cannot make a folder for the throwaway server in {}: {source}", base.display())]
    Folder {
        /// Where it was to be.
        base: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A program that does not run.
    #[error("cannot run {}: {source}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// `initdb` said no.
    #[error("initdb failed: {0}")]
    Initdb(String),
    /// The server gave up or was not ready in time; with the last word of its log.
    #[error("the throwaway server did not start ({how}): {log}")]
    Start {
        /// Exit status, or the time that was waited.
        how: String,
        /// The last telling line of its log.
        log: String,
    },
    /// Started twice.
    #[error("the throwaway server is running already")]
    Running,
    /// A process that is not for us to signal.
    #[error("process {0} is not a backend of the throwaway server")]
    NotABackend(u32),
    /// The system refused a signal.
    #[error("cannot signal process {pid}: {source}")]
    Signal {
        /// The process.
        pid: u32,
        /// The system's reason.
        source: io::Error,
    },
}

/// A running throwaway server. Dropping it, or the end of this process in any way, stops the server and
/// removes its folder.
#[derive(Debug)]
pub struct Server {
    binaries: Binaries,
    port: u16,
    password: Option<String>,
    child: Option<Child>,
    frozen: Mutex<BTreeSet<u32>>,
    // opened once: the folder belongs to the server's user, who could put a link in its place
    log: File,
    // after the child: the folder goes last
    folder: Folder,
}

impl Server {
    /// Makes a cluster and starts it; returns when it takes connections.
    pub fn start(options: Options) -> Result<Self, ServerError> {
        let binaries = Binaries::find(options.pg_bin.as_deref())?;
        let folder = Folder::new()?;
        let failed = |source| ServerError::Folder { base: folder.path().to_owned(), source };
        let log_path = folder.write("log", b"").map_err(failed)?;
        let log = OpenOptions::new().append(true).open(log_path).map_err(failed)?;
        let password = match (options.tcp, options.password) {
            (false, _) => None,
            (true, Some(given)) => Some(given),
            (true, None) => Some(random_password().map_err(failed)?),
        };
        initdb(&binaries, &folder, password.as_deref())?;
        for (name, content) in &options.files {
            folder.write(Path::new("data").join(name), content).map_err(failed)?;
        }
        let conf = configuration(&folder, options.tcp, &options.settings);
        OpenOptions::new()
            .append(true)
            .open(folder.path().join("data/postgresql.conf"))
            .and_then(|mut file| file.write_all(conf.as_bytes()))
            .map_err(failed)?;

        let mut server =
            Self { binaries, port: 0, password, child: None, frozen: Mutex::default(), log, folder };
        let mut tries = PORT_TRIES;
        loop {
            server.port = free_port();
            tries -= 1;
            match server.start_again() {
                Err(ServerError::Start { log, .. }) if tries > 0 && log.contains(PORT_TAKEN) => {}
                result => return result.map(|()| server),
            }
        }
    }

    /// Which binaries it runs.
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// Connects through the socket, in key=value form.
    pub fn conninfo(&self, db: &str) -> String {
        let host = self.socket_dir();
        format!(
            "host={} port={} user={SUPERUSER} dbname={}",
            quoted(&host.to_string_lossy()),
            self.port,
            quoted(db)
        )
    }

    /// Connects through the loopback, password included; `None` if the server has only its socket.
    pub fn tcp_conninfo(&self, db: &str) -> Option<String> {
        let password = self.password.as_deref()?;
        Some(format!(
            "host=127.0.0.1 port={} user={SUPERUSER} password={} dbname={}",
            self.port,
            quoted(password),
            quoted(db)
        ))
    }

    /// The superuser's password over TCP.
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The folder with the socket.
    pub fn socket_dir(&self) -> PathBuf {
        self.folder.path().join("sock")
    }

    /// The folder that holds everything, and is removed.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The port: on TCP, and in the name of the socket.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The postmaster, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// The process that cleans up after us.
    pub fn reaper_pid(&self) -> Option<u32> {
        self.folder.reaper_pid()
    }

    /// The server's log.
    pub fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Stops it and removes the folder.
    pub fn stop(mut self) -> Result<(), ServerError> {
        self.stop_only(Halt::Fast)
    }

    /// Stops it and keeps the folder, for [`Server::start_again`]. A fast stop that hangs becomes an
    /// immediate one. A server that is down stays so.
    pub fn stop_only(&mut self, how: Halt) -> Result<(), ServerError> {
        let Some(child) = self.child.as_mut() else { return Ok(()) };
        let pid = child.id();
        let steps = [
            (Signal::INT, FAST_WITHIN),
            (Signal::QUIT, IMMEDIATE_WITHIN),
            (Signal::KILL, IMMEDIATE_WITHIN),
        ];
        let from = match how {
            Halt::Fast => 0,
            Halt::Immediate => 1,
        };
        for (signal, within) in &steps[from..] {
            // Not gone before `try_wait` says so: the pid is still ours.
            kill(pid, *signal)?;
            // A frozen backend would hold the stop up, and so would a frozen postmaster.
            kill(pid, Signal::CONT)?;
            for frozen in std::mem::take(&mut *self.frozen.lock().unwrap_or_else(PoisonError::into_inner)) {
                if is_child_of(frozen, pid) {
                    kill(frozen, Signal::CONT)?;
                }
            }
            if exit_within(child, *within).map_err(|source| ServerError::Signal { pid, source })?.is_some()
            {
                self.child = None;
                return Ok(());
            }
        }
        Err(ServerError::Signal { pid, source: io::ErrorKind::TimedOut.into() })
    }

    /// Starts a stopped server, on the same socket and port; returns when it takes connections.
    pub fn start_again(&mut self) -> Result<(), ServerError> {
        if self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None))) {
            return Err(ServerError::Running);
        }
        let program = self.binaries.program("postgres");
        let cannot = |source| ServerError::Spawn { program: program.clone(), source };
        let mut command = quiet(&program, &self.folder);
        command.arg("-D").arg(self.data()).arg("-p").arg(self.port.to_string());
        command.stdout(self.log.try_clone().map_err(cannot)?).stderr(self.log.try_clone().map_err(cannot)?);
        let before = fs::metadata(self.log_path()).map_or(0, |m| m.len());
        let child = self.child.insert(command.spawn().map_err(cannot)?);
        let (pid, deadline) = (child.id(), Instant::now() + START_WITHIN);
        let how = loop {
            if is_ready(&self.folder.path().join("data"), pid) {
                return Ok(());
            }
            match child.try_wait() {
                Ok(None) if Instant::now() < deadline => thread::sleep(POLL),
                Ok(None) => break format!("not ready within {} s", START_WITHIN.as_secs()),
                Ok(Some(status)) => {
                    self.child = None;
                    break ended(status);
                }
                Err(e) => break e.to_string(),
            }
        };
        let log = last_word(&self.log_path(), before);
        self.stop_only(Halt::Immediate)?;
        Err(ServerError::Start { how, log })
    }

    /// Stops fast and starts again.
    pub fn restart_fast(&mut self) -> Result<(), ServerError> {
        self.stop_only(Halt::Fast)?;
        self.start_again()
    }

    /// Crashes and starts again, through recovery.
    pub fn restart_immediate(&mut self) -> Result<(), ServerError> {
        self.stop_only(Halt::Immediate)?;
        self.start_again()
    }

    /// Stops a backend in its tracks (SIGSTOP): its connection stays open and says nothing.
    pub fn freeze_backend(&self, pid: u32) -> Result<(), ServerError> {
        self.check_backend(pid)?;
        kill(pid, Signal::STOP)?;
        self.frozen.lock().unwrap_or_else(PoisonError::into_inner).insert(pid);
        Ok(())
    }

    /// Lets a frozen backend go on.
    pub fn thaw_backend(&self, pid: u32) -> Result<(), ServerError> {
        self.check_backend(pid)?;
        self.frozen.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid);
        kill(pid, Signal::CONT)
    }

    /// A pid that came from a query may be stale, and its number somebody else's by now.
    fn check_backend(&self, pid: u32) -> Result<(), ServerError> {
        self.pid()
            .filter(|postmaster| is_child_of(pid, *postmaster))
            .map(|_| ())
            .ok_or(ServerError::NotABackend(pid))
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody will read the data again: the quicker stop will do.
        let _ = self.stop_only(Halt::Immediate);
    }
}

/// Whether the postmaster `pid` says in its lock file that it takes connections (line 8 there).
fn is_ready(data: &Path, pid: u32) -> bool {
    let Ok(file) = fs::read_to_string(data.join("postmaster.pid")) else { return false };
    let line = |n: usize| file.lines().nth(n - 1).unwrap_or_default().trim();
    // Not a file that an earlier, killed postmaster left.
    line(1) == pid.to_string() && matches!(line(8), "ready" | "standby")
}

fn is_child_of(pid: u32, parent: u32) -> bool {
    let ppid = fs::read_to_string(format!("/proc/{pid}/stat")).map_or_else(
        |_| {
            // no /proc, or no such process
            let out = Command::new("ps").args(["-o", "ppid=", "-p", &pid.to_string()]).output();
            out.ok().and_then(|o| String::from_utf8(o.stdout).ok()?.trim().parse().ok())
        },
        // The name in brackets may hold anything; state and parent follow the last bracket.
        |stat| stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok(),
    );
    ppid == Some(parent)
}

fn kill(pid: u32, signal: Signal) -> Result<(), ServerError> {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .map_or(Err(rustix::io::Errno::SRCH), |target| kill_process(target, signal))
        .map_err(|e| ServerError::Signal { pid, source: e.into() })
}

fn exit_within(child: &mut Child, within: Duration) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + within;
    loop {
        match child.try_wait()? {
            None if Instant::now() < deadline => thread::sleep(POLL),
            done => return Ok(done),
        }
    }
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (_, Some(signal)) => format!("signal {signal}"),
        _ => status.to_string(),
    }
}

/// A port nobody listens on. Without TCP it only names the socket, in a folder of our own.
fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_or_else(|_| fastrand::u16(49152..=65535), |address| address.port())
}

/// A value of a key=value conninfo.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}
