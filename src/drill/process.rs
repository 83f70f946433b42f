//! A worker in a process of its own.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::sleep;

use super::DrillError;
use super::bench::{Bench, setup};

/// A killed process is gone at once; on a busy machine it takes a moment to be seen.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// `pgwake work`, or what stands in its place. It does not outlive the drill.
pub(super) struct Process(Child);

impl Process {
    /// Starts it on the ledger of the bench, with ten hands and the handler that sleeps as payloads say.
    /// Where to connect it is told by its environment: arguments are seen by everybody on the machine, and
    /// there may be a password.
    pub(super) fn start(bench: &Bench<'_>, args: &[&str]) -> Result<Self, DrillError> {
        let program = bench.worker.program();
        let (first, more) =
            program.split_first().ok_or_else(|| setup("where this program is, is unknown"))?;
        Command::new(first)
            .args(more)
            .args(["work", "--handler", "simulate", "--profile", bench.ledger.name()])
            .args(["--batch", "10", "--concurrency", "10"])
            .args(args)
            .envs(bench.conninfo.environment())
            // No settings but these.
            .env("PGWAKE_CONFIG", "/dev/null")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(Self)
            .map_err(|e| setup(format!("cannot run {}: {e}", first.to_string_lossy())))
    }

    /// Asks it to stop, as a service manager does.
    pub(super) fn terminate(&self) -> Result<(), DrillError> {
        // Not waited for yet, so that the number is still its own.
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| setup("a process without a number"))?;
        kill_process(pid, Signal::TERM).map_err(setup)
    }

    /// Kills it (SIGKILL), and returns when it is gone.
    pub(super) async fn kill(&mut self) -> Result<(), DrillError> {
        self.0.kill().map_err(setup)?;
        self.wait(GONE_WITHIN).await?.map(drop).ok_or_else(|| setup("a killed process is still there"))
    }

    /// Waits for its end; `None` when that did not come in time.
    pub(super) async fn wait(&mut self, within: Duration) -> Result<Option<ExitStatus>, DrillError> {
        let end = Instant::now() + within;
        loop {
            match self.0.try_wait().map_err(setup)? {
                None if Instant::now() < end => sleep(Duration::from_millis(20)).await,
                status => return Ok(status),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
