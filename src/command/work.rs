//! `pgwake work`: a drain worker without a screen.

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use super::dashboard::practice;
use super::{Failure, Outcome, conninfo_to_change, print, profiles, settings};
use crate::cli::{Connect, Work};
use crate::config;
use crate::model::Event;
use crate::report;
use crate::worker::{self, Stop};

pub(super) async fn run(connect: &Connect, args: Work) -> Outcome {
    let file = settings::load(connect)?.settings.worker;
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
        ..file
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
    stop_on_signals(stop).map_err(Failure::failed)?;
    let summary = worker::run(setup, practice(args.handler), None, Arc::new(log), ear)
        .await
        .map_err(Failure::failed)?;
    if summary.unrecorded > 0 {
        eprintln!(
            "{} jobs have ended, but the ledger could not be told: they run again when their leases are over",
            summary.unrecorded
        );
    }
    print(&format!(
        "done {}  failed {}  lost {}  given back {}\n",
        summary.done, summary.failed, summary.lost, summary.given_back
    ))
}

/// The first signal ends the worker in order, the second at once.
fn stop_on_signals(stop: Stop) -> std::io::Result<()> {
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
                std::process::exit(code);
            }
            asked = true;
            stop.stop();
        }
    });
    Ok(())
}
