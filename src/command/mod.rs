//! One file per subcommand; each wires the rooms below and holds no logic of its own.

mod check;
mod config;
mod dashboard;
mod demo;
mod drill;
mod enqueue;
mod handler;
mod hands;
mod leases;
mod logging;
mod migrate;
mod on_job;
pub(crate) mod pause;
mod recorder;
mod release;
mod replay;
mod runbook;
pub mod screen;
pub mod screenshot;
mod settings;
mod source;
mod status;
mod work;

use std::future::Future;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::cli::{Cli, Command, Connect};
use crate::config::Target;
use crate::model::JobAction;
use crate::monitor;
use crate::pg::{Conninfo, Options};
use crate::profile::Profile;
use crate::report::check::{State, line};

/// Why a command failed: one line, and the exit code that goes with it.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    line: String,
}

impl Failure {
    /// Could not do it: exit code 1.
    pub fn failed(why: impl ToString) -> Self {
        Self { code: 1, line: why.to_string() }
    }

    /// All is said already; only the exit code is left.
    fn said(code: u8) -> Self {
        Self { code, line: String::new() }
    }

    /// Usage, or no terminal: exit code 2.
    pub fn usage(why: impl ToString) -> Self {
        Self { code: 2, line: why.to_string() }
    }
}

/// What a command returns.
pub type Outcome = Result<(), Failure>;

/// Runs the program and gives its exit code: 0 ok, 1 could not do it, 2 usage or no terminal.
pub fn main() -> ExitCode {
    let outcome = match Cli::try_parse() {
        Ok(cli) => run(cli),
        Err(e) if matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            let _ = e.print();
            return ExitCode::SUCCESS;
        }
        // to a monitoring system 2 is critical, and what was typed wrong says nothing about the queue
        Err(e) if std::env::args().nth(1).is_some_and(|a| a == "check") => {
            println!("{}", line(State::Unknown, &one_line(&e.to_string())));
            Err(Failure::said(State::Unknown.code()))
        }
        Err(e) => Err(Failure::usage(one_line(&e.to_string()))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.line.is_empty() {
                eprintln!("pgwake: {}", failure.line);
            }
            ExitCode::from(failure.code)
        }
    }
}

fn run(cli: Cli) -> Outcome {
    logging::start();
    let connect = &cli.connect;
    match cli.command {
        None => dashboard::run(connect, cli.conninfo, &cli.dashboard),
        Some(Command::Demo(args)) => demo::run(connect, &args),
        Some(Command::Config(args)) => config::run(connect, &args),
        Some(Command::Work(args)) => block_on(work::run(connect, args)),
        Some(Command::Enqueue(args)) => block_on(enqueue::run(connect, args)),
        Some(Command::Migrate(args)) => block_on(migrate::run(connect, args)),
        Some(Command::Status(args)) => block_on(status::run(connect, args)),
        Some(Command::Check(args)) => block_on(check::run(connect, args)),
        Some(Command::Leases(args)) => block_on(leases::run(connect, args)),
        Some(Command::Release(args)) => block_on(release::run(connect, args)),
        Some(Command::Retry(args)) => block_on(on_job::run(connect, JobAction::Retry, args)),
        Some(Command::GiveUp(args)) => block_on(on_job::run(connect, JobAction::GiveUp, args)),
        Some(Command::RunNow(args)) => block_on(on_job::run(connect, JobAction::RunNow, args)),
        Some(Command::Drill(args)) => drill::run(connect, args),
        Some(Command::Replay(args)) => replay::run(connect, &args),
        Some(Command::Runbook(args)) => runbook::run(connect, &args),
        Some(Command::Screenshot(args)) => screenshot::run(&args),
    }
}

/// A runtime of one thread: none of the commands computes, they wait.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)
}

fn block_on(command: impl Future<Output = Outcome>) -> Outcome {
    runtime()?.block_on(command)
}

/// A clap error as one line: what, and what to do.
fn one_line(text: &str) -> String {
    let mut parts = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("Usage:") || line.starts_with("For more information") {
            break;
        }
        if !line.is_empty() {
            parts.push(line.strip_prefix("error: ").unwrap_or(line).trim_start_matches("tip: "));
        }
    }
    format!("{}; see pgwake --help", parts.join("; ").replace(":; ", ": "))
}

/// Where the options, the connection string, the target, the environment and the defaults lead.
fn conninfo(connect: &Connect, conninfo: Option<String>) -> Result<Conninfo, Failure> {
    let target = settings::target(connect, conninfo.as_deref())?;
    // what is parsed later counts more: options over a connection string over a target
    let not_a_name = |text: &String| !text.starts_with('@');
    let dbname = connect.dbname.clone().filter(not_a_name);
    let conninfo = conninfo.filter(not_a_name);
    let (dbname, conninfo) = match &target {
        Some(target) => (Some(target.conninfo().to_owned()).filter(|c| !c.is_empty()), conninfo.or(dbname)),
        None => (dbname, conninfo),
    };
    let options = Options {
        conninfo,
        host: connect.host.clone(),
        port: connect.port.clone(),
        user: connect.user.clone(),
        dbname,
    };
    Conninfo::resolve(&options, &|name| std::env::var(name).ok()).map_err(Failure::usage)
}

/// The same for what changes something there: a target may forbid that.
fn conninfo_to_change(connect: &Connect, text: Option<String>) -> Result<Conninfo, Failure> {
    if let Some(target) = settings::target(connect, text.as_deref())?.filter(|t| t.read_only) {
        return Err(Failure::failed(read_only_target(&target)));
    }
    conninfo(connect, text)
}

/// Why nothing may be changed there.
fn read_only_target(target: &Target) -> String {
    format!("the target @{} is read_only in the configuration file", target.name)
}

/// The profiles asked for, or those of the target; none means every known one that exists.
fn profiles(connect: &Connect, text: Option<&str>) -> Result<Vec<Profile>, Failure> {
    let of_target = settings::target(connect, text)?.map(|t| t.profiles).unwrap_or_default();
    let asked = if connect.profile.is_empty() { &of_target } else { &connect.profile };
    let found: Vec<Profile> =
        asked.iter().map(|p| Profile::find(p).map_err(Failure::failed)).collect::<Result<_, _>>()?;
    for (i, profile) in found.iter().enumerate() {
        if found[..i].iter().any(|p| p.name == profile.name) {
            return Err(Failure::usage(format!("--profile: two profiles have the name {}", profile.name)));
        }
    }
    Ok(found)
}

/// A monitor's setup with the settings of the file.
fn monitor_setup(connect: &Connect, text: Option<String>) -> Result<monitor::Setup, Failure> {
    let settings = settings::load(connect)?.settings;
    Ok(monitor::Setup {
        profiles: profiles(connect, text.as_deref())?,
        conninfo: conninfo(connect, text)?,
        sampling: settings.sampling,
        thresholds: settings.thresholds,
        read_only: None,
    })
}

/// Writes to standard output; a reader that has gone away (`| head`) is no error.
fn print(text: &str) -> Outcome {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("standard output: {e}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_error_is_one_line() {
        let e = Cli::try_parse_from(["pgwake", "work", "--handler", "nop"]).unwrap_err();
        let line = one_line(&e.to_string());
        assert!(!line.contains('\n') && line.contains("nop") && line.contains("--help"), "{line}");
    }
}
