//! The handler that runs a command for each job.

use std::collections::VecDeque;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Access, access};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::time::timeout;

use super::group::{Group, Groups};
use super::handler::{Handler, HandlerError};
use crate::ledger::Job;
use crate::text::{clean, clean_block, time_text};

/// EX_TEMPFAIL of sysexits.h: not now, try again.
const LATER: i32 = 75;
/// Of what a command writes to standard error, this much of the end is kept, in bytes.
const TAIL: usize = 1900;
/// After the end of a command: how long a process that left the group may hold standard error open.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// A command that cannot be run at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// Nothing there by that name.
    #[error("{0}: no such program; name one on the PATH, or by its path")]
    Missing(String),
    /// It is there, but no program that this user may run.
    #[error("{0}: not a program that may be run; make it executable with chmod +x")]
    NotExecutable(String),
}

/// Runs a command for each job, as the leader of a process group of its own.
///
/// The payload is on its standard input; standard output is thrown away. Its environment is that of
/// pgwake, with PGWAKE_LEDGER, PGWAKE_JOB_ID, PGWAKE_JOB_TYPE, PGWAKE_JOB_KEY, PGWAKE_ATTEMPT,
/// PGWAKE_MAX_ATTEMPTS, PGWAKE_SCAN_REASON and PGWAKE_IDEMPOTENCY_KEY (ledger and id, the same at every
/// attempt); what is unknown is not set. Nothing of the connection is added.
///
/// Exit status 0 is done; 75 puts the job off, and the attempt does not count; anything else, an end by a
/// signal and the deadline are failed attempts with the end of standard error as their error. When the
/// lease is lost, at the deadline and at shutdown the group gets TERM, and KILL two seconds later. What a
/// command leaves running in its group when it ends is killed.
#[derive(Clone, Debug)]
pub struct Exec {
    program: PathBuf,
    args: Vec<OsString>,
    deadline: Option<Duration>,
    groups: Arc<Groups>,
}

impl Exec {
    /// A program, by its path or looked up on the PATH once, with its arguments.
    ///
    /// # Errors
    /// When there is no such program, or this user may not run it.
    pub fn new(program: impl AsRef<OsStr>, args: &[OsString]) -> Result<Self, ExecError> {
        let program = find(program.as_ref())?;
        Ok(Self { program, args: args.to_vec(), deadline: None, groups: Arc::default() })
    }

    /// The longest that one command may run.
    #[must_use]
    pub fn deadline(self, deadline: Option<Duration>) -> Self {
        Self { deadline, ..self }
    }

    /// Whether the program is still there and may be run.
    ///
    /// # Errors
    /// When it is not.
    pub fn check(&self) -> Result<(), ExecError> {
        find(self.program.as_os_str()).map(drop)
    }

    /// Program and arguments for people, cleaned; what holds a space is quoted.
    pub fn shown(&self) -> String {
        let words =
            std::iter::once(self.program.as_os_str()).chain(self.args.iter().map(OsString::as_os_str));
        let shown = words.map(|word| {
            let word = clean(&word.to_string_lossy());
            let plain = !word.is_empty() && !word.contains([' ', '\'', '"']);
            if plain { word } else { format!("{word:?}") }
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    /// How many commands run, with what they have left in their groups.
    pub fn running(&self) -> usize {
        self.groups.len()
    }

    /// Kills every command that runs, with its group, at once: for a process that is about to exit.
    pub fn kill_all(&self) {
        self.groups.kill();
    }

    fn command(&self, job: &Job) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let number = |n: Option<i64>| n.map(|n| n.to_string());
        for (name, value) in [
            ("PGWAKE_LEDGER", Some(job.ledger.clone())),
            ("PGWAKE_JOB_ID", Some(job.id.clone())),
            ("PGWAKE_JOB_TYPE", Some(job.job_type.clone())),
            ("PGWAKE_JOB_KEY", job.key.clone()),
            ("PGWAKE_ATTEMPT", number(job.attempt)),
            ("PGWAKE_MAX_ATTEMPTS", number(job.max_attempts)),
            ("PGWAKE_SCAN_REASON", job.reason.map(|r| r.word().to_owned())),
            ("PGWAKE_IDEMPOTENCY_KEY", Some(format!("{}/{}", job.ledger, job.id))),
        ] {
            match value {
                Some(value) => command.env(name, value),
                // Not that of a worker which runs this one.
                None => command.env_remove(name),
            };
        }
        command
    }
}

impl Handler for Exec {
    async fn handle(&self, job: Job) -> Result<(), HandlerError> {
        let started = Group::start(&mut self.command(&job), &self.groups, |child| {
            (child.stdin.take(), child.stderr.take())
        });
        let (mut group, (stdin, stderr)) = started.map_err(|e| not_started(&self.program, &e))?;
        let payload = job.payload;
        let write = async move {
            // A command need not read: its end closes the pipe, and with it this.
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(payload.as_bytes()).await;
            }
        };
        let mut tail = VecDeque::with_capacity(TAIL);
        let ended = {
            let read = read_tail(stderr, &mut tail);
            tokio::pin!(read, write);
            let (mut reading, mut writing) = (true, true);
            let all = async {
                let status = {
                    let end = group.end();
                    tokio::pin!(end);
                    loop {
                        tokio::select! {
                            status = &mut end => break status,
                            () = &mut read, if reading => reading = false,
                            () = &mut write, if writing => writing = false,
                        }
                    }
                };
                if reading {
                    let _ = timeout(LAST_WORDS, &mut read).await;
                }
                status
            };
            match self.deadline {
                Some(deadline) => timeout(deadline, all).await.ok(),
                None => Some(all.await),
            }
        };
        let Some(status) = ended else {
            group.stop().await;
            let deadline = time_text(self.deadline.unwrap_or_default());
            return Err(HandlerError::new(told(&format!("stopped at its deadline of {deadline}"), &tail)));
        };
        judge(status, &tail)
    }

    async fn quiet(&self) {
        self.groups.none().await;
    }
}

/// Reads to the end and keeps the last [`TAIL`] bytes.
async fn read_tail(from: Option<impl AsyncRead + Unpin>, tail: &mut VecDeque<u8>) {
    let Some(mut from) = from else { return };
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut buffer).await {
        tail.extend(&buffer[n.saturating_sub(TAIL)..n]);
        tail.drain(..tail.len().saturating_sub(TAIL));
    }
}

fn judge(status: std::io::Result<ExitStatus>, tail: &VecDeque<u8>) -> Result<(), HandlerError> {
    let status =
        status.map_err(|e| HandlerError::new(format!("the end of the command is not known: {e}")))?;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(LATER), _) => Err(HandlerError::later(told("exit status 75, later", tail))),
        (Some(code), _) => Err(HandlerError::new(told(&format!("exit status {code}"), tail))),
        (None, Some(signal)) => {
            Err(HandlerError::new(told(&format!("killed by {}", signal_name(signal)), tail)))
        }
        (None, None) => Err(HandlerError::new(told("ended in an unknown way", tail))),
    }
}

/// What happened and the end of standard error, cleaned; no more than the ledger keeps.
fn told(what: &str, tail: &VecDeque<u8>) -> String {
    let bytes: Vec<u8> = tail.iter().copied().collect();
    // The cut may have gone through a character.
    let cut = if bytes.len() < TAIL {
        0
    } else {
        bytes.iter().take(3).take_while(|b| **b & 0xC0 == 0x80).count()
    };
    let text = clean_block(&String::from_utf8_lossy(&bytes[cut..]));
    let text = text.trim();
    if text.is_empty() {
        return what.to_owned();
    }
    let from =
        (text.len().saturating_sub(TAIL)..text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    format!("{what}: {}", &text[from..])
}

fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        6 => "ABRT",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        _ => return format!("signal {number}"),
    };
    format!("signal {number} ({name})")
}

/// A command that was there at the start and cannot be started now is no fault of the job's, unless the job
/// itself does not fit.
fn not_started(program: &Path, error: &std::io::Error) -> HandlerError {
    let text = format!("{} could not be started: {error}", program.display());
    match error.kind() {
        ErrorKind::ArgumentListTooLong | ErrorKind::InvalidInput => HandlerError::new(text),
        _ => HandlerError::later(text),
    }
}

fn find(name: &OsStr) -> Result<PathBuf, ExecError> {
    let shown = || clean_block(&name.to_string_lossy());
    let runs = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if name.as_encoded_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match path.exists() {
            true if runs(&path) => Ok(path),
            true => Err(ExecError::NotExecutable(shown())),
            false => Err(ExecError::Missing(shown())),
        };
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let found: Vec<PathBuf> =
        env::split_paths(&path).map(|dir| dir.join(name)).filter(|p| p.is_file()).collect();
    match found.iter().find(|p| runs(p)) {
        Some(path) => Ok(path.clone()),
        None if found.is_empty() => Err(ExecError::Missing(shown())),
        None => Err(ExecError::NotExecutable(shown())),
    }
}
