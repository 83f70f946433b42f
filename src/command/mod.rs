//! One file per subcommand; each wires the rooms below and holds no logic of its own.

mod dashboard;
mod demo;
mod drill;
mod enqueue;
mod hands;
mod leases;
mod logging;
mod migrate;
mod recorder;
mod release;
mod replay;
pub mod screen;
pub mod screenshot;
mod source;
mod status;
mod work;

use std::future::Future;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::cli::{Cli, Command, Connect};
use crate::monitor;
use crate::pg::{Conninfo, Options};
use crate::profile::Profile;

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
        Err(e) => Err(Failure::usage(one_line(&e.to_string()))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("pgwake: {}", failure.line);
            ExitCode::from(failure.code)
        }
    }
}

fn run(cli: Cli) -> Outcome {
    logging::start();
    let connect = &cli.connect;
    match cli.command {
        None => dashboard::run(connect, cli.conninfo, &cli.dashboard),
        Some(Command::Demo(args)) => demo::run(&args),
        Some(Command::Work(args)) => block_on(work::run(connect, args)),
        Some(Command::Enqueue(args)) => block_on(enqueue::run(connect, args)),
        Some(Command::Migrate(args)) => block_on(migrate::run(connect, args)),
        Some(Command::Status(args)) => block_on(status::run(connect, args)),
        Some(Command::Leases(args)) => block_on(leases::run(connect, args)),
        Some(Command::Release(args)) => block_on(release::run(connect, args)),
        Some(Command::Drill(args)) => drill::run(&args),
        Some(Command::Replay(args)) => replay::run(&args),
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

/// Where the options, the connection string, the environment and the defaults lead.
fn conninfo(connect: &Connect, conninfo: Option<String>) -> Result<Conninfo, Failure> {
    let options = Options {
        conninfo,
        host: connect.host.clone(),
        port: connect.port.clone(),
        user: connect.user.clone(),
        dbname: connect.dbname.clone(),
    };
    Conninfo::resolve(&options, &|name| std::env::var(name).ok()).map_err(Failure::usage)
}

/// The profiles asked for; none means every known one that exists.
fn profiles(connect: &Connect) -> Result<Vec<Profile>, Failure> {
    let found: Vec<Profile> = connect
        .profile
        .iter()
        .map(|p| Profile::find(p).map_err(Failure::failed))
        .collect::<Result<_, _>>()?;
    for (i, profile) in found.iter().enumerate() {
        if found[..i].iter().any(|p| p.name == profile.name) {
            return Err(Failure::usage(format!("--profile: two profiles have the name {}", profile.name)));
        }
    }
    Ok(found)
}

/// A monitor's setup with the defaults of a single command.
fn monitor_setup(connect: &Connect, text: Option<String>) -> Result<monitor::Setup, Failure> {
    Ok(monitor::Setup {
        conninfo: conninfo(connect, text)?,
        profiles: profiles(connect)?,
        sampling: crate::config::Sampling::default(),
        thresholds: crate::config::Thresholds::default(),
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
