//! `pgwake demo`: a throwaway PostgreSQL with producers, workers, and the dashboard on it.

use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::sleep;

use super::dashboard::{Network, show};
use super::handler::Job;
use super::screen::{ScreenError, utc_offset_s};
use super::{Failure, Outcome, block_on, print, recorder, runtime, settings};
use crate::app::alerts::Boards;
use crate::cli;
use crate::config::{self, Settings};
use crate::demo::{Demo, DemoOptions};
use crate::model::Fault;
use crate::monitor::{self, Feed, Sampler};
use crate::pg::Conninfo;
use crate::worker::Practice;
use crate::{app, report};

/// Stopping workers and server may take this long; the server's reaper sees to the rest.
const LEAVE: Duration = Duration::from_secs(15);

pub(super) fn run(connect: &cli::Connect, args: &cli::Demo) -> Outcome {
    if !(0.0..=5000.0).contains(&args.rate) {
        return Err(Failure::usage("--rate: jobs per second, from 0 to 5000"));
    }
    if args.headless { block_on(headless(args)) } else { on_screen(connect, args) }
}

fn monitor_setup(conninfo: Conninfo) -> monitor::Setup {
    monitor::Setup {
        conninfo,
        profiles: Vec::new(),
        sampling: config::Sampling::default(),
        thresholds: config::Thresholds::default(),
        read_only: None,
    }
}

/// The demo runs on a thread of its own, so that the dashboard is as alone with its work as in earnest.
fn on_screen(connect: &cli::Connect, args: &cli::Demo) -> Outcome {
    let start = Instant::now();
    crate::term::Guard::check().map_err(|e| Failure::usage(ScreenError::NoTerminal(e)))?;
    // before the server is started: a word about a bad file should not take that long
    let found = settings::load(connect)?;
    eprintln!("pgwake: starting a throwaway PostgreSQL …");
    let feed = Arc::new(Feed::new());
    let options = DemoOptions {
        pg_bin: args.pg_bin.clone(),
        rate: args.rate,
        sink: Some(feed.clone()),
        ..DemoOptions::default()
    };
    let fallback = options.fallback;
    let (started, first) = std_mpsc::channel();
    let (leave, mut left) = watch::channel(false);
    let thread = std::thread::Builder::new()
        .name("demo".to_owned())
        .spawn(move || -> Outcome {
            runtime()?.block_on(async {
                let demo = match Demo::start(options).await {
                    Ok(demo) => Arc::new(demo),
                    Err(error) => {
                        let _ = started.send(Err(error.to_string()));
                        return Ok(());
                    }
                };
                let _ = started.send(Ok(demo.clone()));
                let _ = left.wait_for(|left| *left).await;
                match Arc::try_unwrap(demo) {
                    Ok(demo) => demo.shutdown().await.map_err(Failure::failed),
                    // Somebody still works on it: the end of the process lets go, and the reaper cleans up.
                    Err(_) => Ok(()),
                }
            })
        })
        .map_err(Failure::failed)?;
    let demo = match first.recv() {
        Ok(Ok(demo)) => demo,
        Ok(Err(line)) => return Err(Failure::failed(line)),
        Err(_) => return Err(Failure::failed("the demo ended before it began")),
    };
    let hint = demo.psql_hint();
    let mut setup = app::Setup::new(demo.conninfo().address());
    setup.label = Some("DEMO".to_owned());
    setup.faults = Fault::ALL.to_vec();
    setup.worker = app::WorkerSetup::Available { handler: "simulate".to_owned() };
    setup.lease_s = crate::demo::LEASE.as_secs_f64();
    setup.fallback_s = fallback.as_secs_f64();
    let mut screen = settings::screen(&found, &args.looks, start);
    setup.utc_offset_s = utc_offset_s();
    if let Some(path) = &args.record {
        screen.recorder = Some(recorder::begin(path, &setup, feed.clone())?);
    }
    let network = Network {
        monitor: monitor_setup(demo.conninfo().clone()),
        handler: Some(Job::Practice(Practice::Simulate { pace: 100 })),
        worker: config::Worker { fallback, ..config::Worker::default() },
        demo: Some(demo),
    };
    crate::monitor::note(feed.as_ref(), &format!("look inside with: {hint}"));
    let shown = show(setup, screen, network, feed);
    let _ = leave.send(true);
    let end = Instant::now() + LEAVE;
    while !thread.is_finished() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = if thread.is_finished() { thread.join().unwrap_or(Ok(())) } else { Ok(()) };
    shown.and(ended)
}

/// The same without a terminal: the final sample as JSON.
async fn headless(args: &cli::Demo) -> Outcome {
    let options = DemoOptions { pg_bin: args.pg_bin.clone(), rate: args.rate, ..DemoOptions::default() };
    let demo = Demo::start(options).await.map_err(Failure::failed)?;
    let outcome = watch_it(&demo, Duration::from_secs(args.seconds)).await;
    let ended = demo.shutdown().await.map_err(Failure::failed);
    let text = outcome?;
    print(&format!("{text}\n"))?;
    ended
}

async fn watch_it(demo: &Demo, time: Duration) -> Result<String, Failure> {
    let mut term = signal(SignalKind::terminate()).map_err(Failure::failed)?;
    let mut int = signal(SignalKind::interrupt()).map_err(Failure::failed)?;
    let mut hup = signal(SignalKind::hangup()).map_err(Failure::failed)?;
    let mut sampler =
        Sampler::connect(monitor_setup(demo.conninfo().clone())).await.map_err(Failure::failed)?;
    let end = tokio::time::Instant::now() + time;
    let settings = Settings::default();
    let mut boards = Boards::new(settings.thresholds, settings.worker.fallback.as_secs_f64());
    loop {
        let samples = sampler.sample().await.map_err(|e| Failure::failed(e.loss()))?;
        samples.iter().for_each(|sample| drop(boards.observe(sample)));
        if tokio::time::Instant::now() >= end {
            return Ok(format!("{:#}", report::status(sampler.server(), &samples, &[], &boards)));
        }
        let left = end - tokio::time::Instant::now();
        tokio::select! {
            () = sleep(left.min(Duration::from_secs(1))) => {}
            _ = term.recv() => return Err(Failure::failed("ended by SIGTERM")),
            _ = int.recv() => return Err(Failure::failed("ended by SIGINT")),
            _ = hup.recv() => return Err(Failure::failed("ended by SIGHUP")),
        }
    }
}
