//! A child with its process group: signalled as a whole, and leaving nothing behind.
//!
//! A group's number may be used again as soon as its last process has been waited for. So the child is
//! first seen to have ended without being waited for (`waitid` with `WNOWAIT`), then the group is killed
//! while the zombie still holds the number, and only then is the child waited for.

use std::collections::HashSet;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Between TERM and KILL.
const PATIENCE: Duration = Duration::from_secs(2);
/// After KILL: how long the last of a group are waited for.
const LINGER: Duration = Duration::from_secs(1);

/// The groups of one handler that may have a living process.
#[derive(Debug)]
pub(super) struct Groups {
    alive: Mutex<HashSet<Pid>>,
    /// Groups that are not over and cleared away.
    count: watch::Sender<usize>,
}

impl Default for Groups {
    fn default() -> Self {
        Self { alive: Mutex::default(), count: watch::channel(0).0 }
    }
}

impl Groups {
    fn add(&self, pid: Pid) {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner).insert(pid);
        self.count.send_modify(|n| *n += 1);
    }

    /// It must not be signalled any more.
    fn forget(&self, pid: Pid) {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        *self.count.borrow()
    }

    /// Waits until there is none.
    pub(super) async fn none(&self) {
        let _ = self.count.subscribe().wait_for(|n| *n == 0).await;
    }

    /// Kills all of them.
    pub(super) fn kill(&self) {
        for pid in self.alive.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = kill_process_group(*pid, Signal::KILL);
        }
    }
}

/// The child and its group. Dropped before its end it kills the group.
struct Leader {
    child: Child,
    pid: Pid,
    groups: Arc<Groups>,
    /// SIGCHLD, from before the child was started.
    ends: Signals,
    reaped: bool,
}

impl Leader {
    /// Waits for the end of the child, kills what it left in its group, and takes its status.
    async fn end(&mut self) -> std::io::Result<ExitStatus> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(self.pid), look), Ok(None)) {
            self.ends.recv().await;
        }
        // Off the list before its number is free, so that nobody signals a stranger.
        let _ = kill_process_group(self.pid, Signal::KILL);
        self.groups.forget(self.pid);
        self.reaped = true;
        self.child.wait().await
    }

    async fn stop(mut self) {
        let _ = kill_process_group(self.pid, Signal::TERM);
        if timeout(PATIENCE, self.end()).await.is_err() {
            let _ = kill_process_group(self.pid, Signal::KILL);
            let _ = self.end().await;
        }
        // Killed is not yet gone. Signal 0 harms nobody; a zombie that nobody waits for counts, so not for ever.
        let end = Instant::now() + LINGER;
        while test_kill_process_group(self.pid).is_ok() && Instant::now() < end {
            sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
        self.groups.forget(self.pid);
        self.groups.count.send_modify(|n| *n = n.saturating_sub(1));
    }
}

/// A running child; dropped, it is stopped in the background: TERM to its group, then KILL.
pub(super) struct Group(Option<Leader>);

impl Group {
    /// Starts a command as the leader of a group of its own. Its pipes are taken from the child by `take`.
    pub(super) fn start<T>(
        command: &mut Command,
        groups: &Arc<Groups>,
        take: impl FnOnce(&mut Child) -> T,
    ) -> std::io::Result<(Self, T)> {
        let ends = signal(SignalKind::child())?;
        let mut child = command.process_group(0).spawn()?;
        let pipes = take(&mut child);
        let pid = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
            .ok_or_else(|| std::io::Error::other("the process has no number"))?;
        groups.add(pid);
        Ok((Self(Some(Leader { child, pid, groups: groups.clone(), ends, reaped: false })), pipes))
    }

    /// Waits for its end.
    pub(super) async fn end(&mut self) -> std::io::Result<ExitStatus> {
        match &mut self.0 {
            Some(leader) => {
                let status = leader.end().await;
                self.0 = None;
                status
            }
            None => Err(std::io::Error::other("it has ended before")),
        }
    }

    /// TERM to the group, KILL a little later; returns when the child is gone.
    pub(super) async fn stop(mut self) {
        if let Some(leader) = self.0.take() {
            leader.stop().await;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Without a runtime the leader is dropped here, which kills at once.
        if let (Some(leader), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(leader.stop());
        }
    }
}
