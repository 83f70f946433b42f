//! The handler of a worker: from flags, or from the configuration file.

use std::ffi::OsString;
use std::time::Duration;

use super::Failure;
use crate::cli::HandlerName;
use crate::config::{HandlerKind, Handling};
use crate::ledger;
use crate::worker::{Exec, ExecError, Handler, HandlerError, Practice};

/// What the flags say.
pub(super) struct Flags<'a> {
    pub name: Option<HandlerName>,
    pub command: &'a [OsString],
    pub job_timeout: Option<Duration>,
}

/// What is done with a job.
#[derive(Clone, Debug)]
pub(super) enum Job {
    Practice(Practice),
    Exec(Exec),
}

impl Job {
    /// What flags and file ask for, with everything that can be wrong with it said before the first claim;
    /// `None` when neither asks for anything.
    pub(super) fn find(flags: &Flags<'_>, file: &Handling) -> Result<Option<Self>, Failure> {
        let name = match flags.name {
            None if !flags.command.is_empty() => Some(HandlerName::Exec),
            None => file.kind().map(name),
            named => named,
        };
        if name != Some(HandlerName::Exec) && (!flags.command.is_empty() || flags.job_timeout.is_some()) {
            return Err(Failure::usage("a command and --job-timeout are for --handler exec only"));
        }
        let practice = match name {
            None => return Ok(None),
            Some(HandlerName::Simulate) => Practice::Simulate { pace: 100 },
            Some(HandlerName::Noop) => Practice::Noop,
            Some(HandlerName::Exec) => return exec(flags, file).map(|exec| Some(Self::Exec(exec))),
        };
        Ok(Some(Self::Practice(practice)))
    }

    /// Its name.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Practice(Practice::Noop) => "noop",
            Self::Practice(Practice::Simulate { .. }) => "simulate",
            Self::Exec(_) => "exec",
        }
    }

    /// The handler that runs commands, if it is that.
    pub(super) fn exec(&self) -> Option<&Exec> {
        match self {
            Self::Exec(exec) => Some(exec),
            Self::Practice(_) => None,
        }
    }

    /// Whether it can begin now: a program may have gone since it was found.
    pub(super) fn check(&self) -> Result<(), ExecError> {
        self.exec().map_or(Ok(()), Exec::check)
    }
}

fn name(kind: HandlerKind) -> HandlerName {
    match kind {
        HandlerKind::Exec => HandlerName::Exec,
        HandlerKind::Noop => HandlerName::Noop,
        HandlerKind::Simulate => HandlerName::Simulate,
    }
}

fn exec(flags: &Flags<'_>, file: &Handling) -> Result<Exec, Failure> {
    let of_file: Vec<OsString>;
    let command = if flags.command.is_empty() {
        of_file = file.command.iter().map(OsString::from).collect();
        &of_file
    } else {
        flags.command
    };
    let Some((program, rest)) = command.split_first() else {
        return Err(Failure::usage(
            "--handler exec: name the command after --, as in: -- ./job --flag, or as command in [worker] of \
             the configuration file",
        ));
    };
    let exec = Exec::new(program, rest).map_err(Failure::usage)?;
    Ok(exec.deadline(flags.job_timeout.or(file.job_timeout)))
}

impl Handler for Job {
    async fn handle(&self, job: ledger::Job) -> Result<(), HandlerError> {
        match self {
            Self::Practice(practice) => practice.handle(job).await,
            Self::Exec(exec) => exec.handle(job).await,
        }
    }

    fn is_practice(&self) -> bool {
        matches!(self, Self::Practice(_))
    }

    async fn quiet(&self) {
        if let Self::Exec(exec) = self {
            exec.quiet().await;
        }
    }
}
