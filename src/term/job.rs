//! Stopping as a job of a shell.

use rustix::process::{Signal, getpgrp, getpid, getsid, kill_current_process_group, kill_process};

/// Whether a shell would go on with this process after it has stopped; says why not.
pub fn may_stop() -> Result<(), &'static str> {
    // a shell with job control gives every job a process group of its own; without one nobody would
    // ever continue what has stopped
    match getsid(None) {
        Ok(session) if session != getpgrp() => Ok(()),
        _ => Err("there is no shell with job control to go back to"),
    }
}

/// Stops the whole job, as Ctrl-Z does where the terminal still sees to it, and this process for certain:
/// it has a handler for the signal. Returns when it was continued. The others of the job, such as a
/// wrapper that started this one, must stop too or the shell would wait for them.
pub fn stop() -> std::io::Result<()> {
    kill_current_process_group(Signal::TSTP)?;
    kill_process(getpid(), Signal::STOP)?;
    Ok(())
}

/// Number of the signal that asks to stop.
pub fn stop_signal() -> i32 {
    Signal::TSTP.as_raw()
}

/// Number of the signal that comes with going on.
pub fn continue_signal() -> i32 {
    Signal::CONT.as_raw()
}
