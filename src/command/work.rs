//! `pgwake work`: a drain worker without a screen.

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use super::handler::{Flags, Job};
use super::{Failure, Outcome, conninfo_to_change, print, profiles, settings};
use crate::cli::{Connect, Work};
use crate::config;
use crate::model::Event;
use crate::report;
use crate::worker::{self, Exec, Stop};

pub(super) async fn run(connect: &Connect, args: Work) -> Outcome {
    let found = settings::load(connect)?.settings;
    let file = found.worker;
    let settings = config::Worker {
        batch: args.batch.map_or(file.batch, Into::into),
        concurrency: args.concurrency.map_or(file.concurrency, Into::into),
        sessions: args.sessions.map_or(file.sessions, Into::into),
        lease: args.lease.unwrap_or(file.lease),
        fallback: args.fallback.unwrap_or(file.fallback),
        debounce: args.debounce.unwrap_or(file.debounce),
        eager: args.eager || file.eager,
        budget: args.budget.map_or(file.budget, |b| b.0),
        grace: args.grace.unwrap_or(file.grace),
        keep: args.keep.map_or(file.keep, |k| k.0),
        ..file
    };
    let prunes = settings.keep.is_some_and(|keep| !keep.is_zero());
    let flags = Flags { name: args.handler, command: &args.command, job_timeout: args.job_timeout };
    let Some(job) = Job::find(&flags, &found.handling)? else {
        return Err(Failure::usage(
            "what is to be done with a job? name a command after --, as in: pgwake work -- ./job --flag; or \
             command in [worker] of the configuration file; or --handler",
        ));
    };
    let name = args.name.unwrap_or_else(worker::unique_name);
    if name.is_empty() || crate::text::clean(&name) != name {
        return Err(Failure::usage("--name: a worker name is one line of plain text"));
    }
    let setup = worker::Setup {
        name,
        conninfo: conninfo_to_change(connect, args.conninfo.clone())?,
        profiles: profiles(connect, args.conninfo.as_deref())?,
        settings,
        until_empty: args.until_empty,
    };
    let log = |event: Event| {
        if let Some(line) = report::event(&event) {
            eprintln!("{} {line}", chrono::Utc::now().format("%Y-%m-%dT%H:%M:%S%.3fZ"));
        }
    };
    let (stop, ear) = Stop::new();
    stop_on_signals(stop, job.exec().cloned()).map_err(Failure::failed)?;
    let summary = worker::run(setup, job, None, Arc::new(log), ear).await.map_err(Failure::failed)?;
    if summary.unrecorded > 0 {
        eprintln!(
            "{} jobs have ended, but the ledger could not be told: they run again when their leases are over",
            summary.unrecorded
        );
    }
    let mut line = format!(
        "done {}  failed {}  lost {}  given back {}",
        summary.done, summary.failed, summary.lost, summary.given_back
    );
    if summary.deferred > 0 {
        line += &format!("  put off {}", summary.deferred);
    }
    if prunes {
        line += &format!("  pruned {}", summary.pruned);
    }
    print(&format!("{line}\n"))
}

/// The first signal ends the worker in order, the second at once, commands with it.
fn stop_on_signals(stop: Stop, exec: Option<Exec>) -> std::io::Result<()> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    let mut hup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        let mut asked = false;
        loop {
            let code = tokio::select! {
                _ = term.recv() => 143,
                _ = int.recv() => 130,
                _ = hup.recv() => 129,
            };
            if asked {
                if let Some(exec) = &exec {
                    exec.kill_all();
                }
                std::process::exit(code);
            }
            asked = true;
            stop.stop();
        }
    });
    Ok(())
}
