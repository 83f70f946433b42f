//! The dashboard: the network on a thread of its own, the screen on the main one.

use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::handler::{Flags, Job};
use super::hands::{Crew, Hands};
use super::pause::{self, Rest};
use super::screen::{self, Exit, ScreenError, ScreenOptions};
use super::{Failure, Outcome, conninfo, profiles, recorder, runtime, settings};
use crate::app;
use crate::cli::{Connect, Dashboard};
use crate::config::{self, Settings, Target};
use crate::demo::Demo;
use crate::model::Sink;
use crate::monitor::{self, AuditFile, Feed, Operator, Sampler, Slow};
use crate::pg::{ListenConfig, Listener};
use crate::worker;

/// Leaving may take this long: what is in hand ends or is given back, then the program ends regardless.
const LEAVE: Duration = Duration::from_secs(2);

/// Beyond that: how long commands may take that have been told to end, before they are killed.
const COMMANDS_LEAVE: Duration = Duration::from_secs(4);

/// What the network side of a dashboard needs.
pub(super) struct Network {
    pub monitor: monitor::Setup,
    pub handler: Option<Job>,
    pub worker: config::Worker,
    pub demo: Option<Arc<Demo>>,
}

/// `pgwake [CONNINFO]`.
pub(super) fn run(connect: &Connect, text: Option<String>, args: &Dashboard) -> Outcome {
    let start = Instant::now();
    crate::term::Guard::check().map_err(|e| Failure::usage(ScreenError::NoTerminal(e)))?;
    let found = settings::load(connect)?;
    let target = settings::target(connect, text.as_deref())?;
    let mut sampling = found.settings.sampling;
    if let Some(interval) = args.interval {
        if interval < Duration::from_millis(100) {
            return Err(Failure::usage(
                "--interval: at least 100ms; every sample costs the server something",
            ));
        }
        sampling.interval = interval;
    }
    let read_only = why_read_only(args, &found.settings, target.as_ref());
    let monitor = monitor::Setup {
        profiles: profiles(connect, text.as_deref())?,
        conninfo: conninfo(connect, text)?,
        sampling,
        thresholds: found.settings.thresholds,
        read_only: read_only.clone(),
    };
    let flags = Flags { name: args.handler, command: &[], job_timeout: None };
    let (handler, why_none) = match Job::find(&flags, &found.settings.handling) {
        Ok(job) => (job, None),
        // One that was not asked for on the command line does not keep anybody from looking.
        Err(failure) if args.handler.is_none() => (None, Some(failure.line)),
        Err(failure) => return Err(failure),
    };
    let mut options = settings::screen(&found, &args.looks, start);
    let mut setup = app::Setup::new(monitor.conninfo.address());
    setup.read_only = read_only;
    setup.label = target.as_ref().map(|t| t.label.clone().unwrap_or_else(|| t.name.clone()));
    setup.bar = target.and_then(|t| t.bar);
    setup.show_payloads = args.show_payloads || found.settings.show_payloads;
    setup.thresholds = monitor.thresholds;
    setup.fallback_s = found.settings.worker.fallback.as_secs_f64();
    setup.lease_s = found.settings.worker.lease.as_secs_f64();
    setup.worker = match &handler {
        Some(job) => app::WorkerSetup::Available { handler: job.word().to_owned() },
        None => app::WorkerSetup::Unavailable { how: why_none.unwrap_or_else(|| NO_HANDLER.to_owned()) },
    };
    setup.runs = handler.as_ref().and_then(Job::exec).map(worker::Exec::shown);
    setup.utc_offset_s = screen::utc_offset_s();
    let feed = Arc::new(Feed::new());
    if let Some(path) = &args.record {
        options.recorder = Some(recorder::begin(path, &setup, feed.clone())?);
    }
    let network = Network { monitor, handler, worker: found.settings.worker, demo: None };
    show(setup, options, network, feed)
}

/// How to get a handler.
const NO_HANDLER: &str = "For real work: command = [\"./job\", \"--flag\"] in [worker] of the configuration file. For practice: \
     start pgwake with --handler simulate or noop, on a ledger marked as scratch.";

/// Why every action is taken away, if so.
fn why_read_only(args: &Dashboard, settings: &Settings, target: Option<&Target>) -> Option<String> {
    if args.read_only {
        return Some("--read-only".to_owned());
    }
    if let Some(target) = target.filter(|t| t.read_only) {
        return Some(super::read_only_target(target));
    }
    settings.read_only.then(|| "read_only in the configuration file".to_owned())
}

/// Runs network and screen until the screen is left.
pub(super) fn show(
    setup: app::Setup,
    mut options: ScreenOptions,
    network: Network,
    feed: Arc<Feed>,
) -> Outcome {
    // Before any thread that could panic: a report must not be printed over a live screen.
    crate::term::watch_panics();
    let (intents, ear) = mpsc::channel(64);
    let (leave, left) = watch::channel(false);
    let (connected, first) = std_mpsc::channel();
    let (done, ended) = std_mpsc::channel::<()>();
    let commands = network.handler.as_ref().and_then(Job::exec).cloned();
    let at_work = commands.clone();
    let (pause, rest) = pause::pause(move || match &at_work {
        Some(commands) if commands.running() > 0 => COMMANDS_LEAVE / 2,
        _ => Duration::ZERO,
    });
    options.pause = Some(pause);
    let sink = feed.clone();
    std::thread::Builder::new()
        .name("network".to_owned())
        .spawn(move || {
            let outcome =
                runtime().map(|rt| rt.block_on(serve(network, sink, ear, (left, rest), &connected)));
            if let Err(failure) = outcome {
                let _ = connected.send(Err(failure.line));
            }
            let _ = done.send(());
        })
        .map_err(Failure::failed)?;
    // The screen is entered after the first connection has succeeded; a failure is said on the normal one.
    match first.recv() {
        Ok(Ok(())) => {}
        Ok(Err(line)) => return Err(Failure::failed(line)),
        Err(_) => return Err(Failure::failed("the network thread ended before it connected")),
    }
    let shown = runtime()?.block_on(screen::run(setup, feed, intents, options));
    let _ = leave.send(true);
    let _ = ended.recv_timeout(LEAVE);
    if let Some(commands) = commands.filter(|c| c.running() > 0) {
        // The terminal is back; their jobs are given back when they are gone.
        eprintln!("pgwake: waiting for commands to end");
        let _ = ended.recv_timeout(COMMANDS_LEAVE);
        commands.kill_all();
    }
    match shown {
        Ok(Exit::Quit | Exit::Signal(_) | Exit::TerminalGone) => Ok(()),
        Err(ScreenError::NoTerminal(e)) => Err(Failure::usage(ScreenError::NoTerminal(e))),
        Err(e) => Err(Failure::failed(e)),
    }
}

/// Everything that talks to the server, until the screen has gone.
async fn serve(
    network: Network,
    feed: Arc<Feed>,
    intents: mpsc::Receiver<crate::model::Intent>,
    (leave, rest): (watch::Receiver<bool>, Rest),
    connected: &std_mpsc::Sender<Result<(), String>>,
) {
    let monitor = network.monitor;
    let sampler = match Sampler::connect(monitor.clone()).await {
        Ok(sampler) => sampler,
        Err(error) => {
            let _ = connected.send(Err(error.to_string()));
            return;
        }
    };
    let channels: Vec<String> =
        sampler.ledgers().iter().filter_map(|l| l.channel().map(str::to_owned)).collect();
    let sink: Arc<dyn Sink> = feed;
    let listener = match ListenConfig::new(monitor.conninfo.clone(), channels) {
        Ok(config) => Arc::new(Listener::start(config, sink.clone())),
        Err(problem) => {
            let _ = connected.send(Err(problem));
            return;
        }
    };
    let _ = connected.send(Ok(()));
    let operator = Operator::new(
        monitor.conninfo.clone(),
        monitor.profiles.clone(),
        // Not what the server was when it was first seen: a standby may be promoted, and refuses by itself.
        monitor.read_only.clone(),
        "from the dashboard".to_owned(),
        AuditFile::default_place(),
        sink.clone(),
    );
    let worker = network.handler.map(|handler| {
        let settings = config::Worker { grace: LEAVE.mul_f64(0.6), ..network.worker };
        let setup = worker::Setup {
            name: worker::unique_name(),
            conninfo: monitor.conninfo.clone(),
            profiles: monitor.profiles.clone(),
            settings,
            until_empty: false,
        };
        (setup, handler)
    });
    let crew = Crew { worker, listener, sink: sink.clone(), running: tokio::sync::Mutex::new(None) };
    let (pace, paces) = watch::channel(monitor.sampling.interval);
    let (questions, asked) = mpsc::channel(16);
    let slow = Slow::new(monitor).run(sink.clone(), asked, leave.clone());
    let hands = Hands { operator, crew, sink: sink.clone(), demo: network.demo, questions, pace };
    let mut gone = leave.clone();
    let work = hands.work(intents, rest);
    tokio::pin!(work);
    let fast = sampler.paced(paces).run(sink, leave);
    let watch = async { tokio::join!(fast, slow) };
    tokio::pin!(watch);
    // The sampler goes on while the hands end their work; both end when the screen has gone.
    tokio::select! {
        () = &mut work => {}
        _ = async { tokio::join!(&mut watch, gone.wait_for(|gone| *gone)) } => work.await,
    }
}
