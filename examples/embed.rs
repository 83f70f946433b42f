//! A service that drains its own queue: the worker of pgwake as a library call.
//!
//! ```text
//! cargo run --example embed -- "host=/run/postgresql dbname=shop"
//! cargo run --example embed                    # PGHOST, PGDATABASE … as psql takes them
//! ```
//!
//! The database needs the ledgers (`pgwake migrate`). To see it work, add a job from another terminal:
//!
//! ```text
//! psql shop -c "select pgwake.enqueue('greet', '{\"name\": \"Ada\"}')"
//! ```
//!
//! Ctrl-C stops it in order: jobs in hand get the grace time to end, the rest is given back.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pgwake::config;
use pgwake::ledger::Job;
use pgwake::model::{Event, Listen, WorkerEvent};
use pgwake::pg::{Conninfo, Options};
use pgwake::profile::{Profile, builtin};
use pgwake::worker::{self, Handler, HandlerError, Setup, Stop};

/// The work of this service. It is done at least once: after a crash the same job comes again, so a real
/// handler makes its effects idempotent, with the job's id as the key.
struct Greeter;

impl Handler for Greeter {
    async fn handle(&self, job: Job) -> Result<(), HandlerError> {
        match job.job_type.as_str() {
            "greet" => {
                let payload: serde_json::Value = serde_json::from_str(&job.payload)
                    .map_err(|e| HandlerError::new(format!("the payload is not JSON: {e}")))?;
                let name = payload["name"].as_str().unwrap_or("whoever you are");
                // No transaction is open while this runs, however long it takes; the lease is renewed.
                tokio::time::sleep(Duration::from_millis(200)).await;
                println!("job {} (attempt {}): hello, {name}", job.id, job.attempt.unwrap_or(1));
                Ok(())
            }
            // A failed attempt: tried again later, and given up after the fifth.
            other => Err(HandlerError::new(format!("no such job type here: {other}"))),
        }
    }
}

/// Events as this service logs them.
fn log(event: Event) {
    match event {
        Event::Listen(Listen::Up { pid, .. }) => println!("listening, backend {pid}"),
        Event::Listen(Listen::Down { loss, .. }) => println!("listen session lost: {loss}"),
        Event::Worker(WorkerEvent::Recovered(r)) => println!("recovered in {} ms", r.scanned_ms),
        Event::Worker(WorkerEvent::Lost { id, what, .. }) => println!("job {id}: lease lost at {what}"),
        _ => {}
    }
}

async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let given = Options { conninfo: std::env::args().nth(1), ..Options::default() };
    let conninfo = Conninfo::resolve(&given, &|name| std::env::var(name).ok())?;
    let jobs: Profile = builtin("jobs").ok_or("the profile jobs is built in")??;
    let setup = Setup {
        name: worker::unique_name(),
        conninfo,
        profiles: vec![jobs],
        settings: config::Worker { eager: true, ..config::Worker::default() },
        until_empty: false,
    };
    let (stop, ear) = Stop::new();
    let running = tokio::spawn(worker::run(setup, Greeter, None, Arc::new(log), ear));
    tokio::pin!(running);
    // A real service listens to SIGTERM, too.
    let summary = tokio::select! {
        ended = &mut running => ended??,
        _ = tokio::signal::ctrl_c() => {
            stop.stop();
            running.await??
        }
    };
    println!(
        "{} done, {} failed attempts, {} given back",
        summary.done, summary.failed, summary.given_back
    );
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("embed: {error}");
            ExitCode::FAILURE
        }
    }
}
