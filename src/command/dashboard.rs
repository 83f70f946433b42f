//! The dashboard: the network on a thread of its own, the screen on the main one.

use std::io::BufWriter;
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::hands::Hands;
use super::screen::{self, Exit, Recorder, ScreenError, ScreenOptions};
use super::{Failure, Outcome, conninfo, profiles, runtime};
use crate::app;
use crate::cli::{Connect, Dashboard, HandlerName};
use crate::config;
use crate::demo::Demo;
use crate::model::{Event, Sink};
use crate::monitor::{self, AuditFile, Feed, Operator, Sampler, Slow};
use crate::pg::{ListenConfig, Listener};
use crate::record::Writer;
use crate::worker::{self, Practice};

/// Leaving may take this long: what is in hand ends or is given back, then the program ends regardless.
const LEAVE: Duration = Duration::from_secs(2);

/// What the network side of a dashboard needs.
pub(super) struct Network {
    pub monitor: monitor::Setup,
    pub handler: Option<Practice>,
    pub worker: config::Worker,
    pub demo: Option<Arc<Demo>>,
}

/// `pgwake [CONNINFO]`.
pub(super) fn run(connect: &Connect, text: Option<String>, args: &Dashboard) -> Outcome {
    let start = Instant::now();
    crate::term::Guard::check().map_err(|e| Failure::usage(ScreenError::NoTerminal(e)))?;
    let mut sampling = config::Sampling::default();
    if args.interval < Duration::from_millis(100) {
        return Err(Failure::usage("--interval: at least 100ms; every sample costs the server something"));
    }
    sampling.interval = args.interval;
    let read_only = args.read_only.then(|| "--read-only".to_owned());
    let monitor = monitor::Setup {
        conninfo: conninfo(connect, text)?,
        profiles: profiles(connect)?,
        sampling,
        thresholds: config::Thresholds::default(),
        read_only: read_only.clone(),
    };
    let handler = args.handler.map(practice);
    let mut options = ScreenOptions::from_env(start);
    options.theme.clone_from(&args.theme);
    options.ascii |= args.ascii;
    options.recorder = args.record.as_deref().map(recorder).transpose()?;
    let mut setup = app::Setup::new(monitor.conninfo.address());
    setup.read_only = read_only;
    setup.show_payloads = args.show_payloads;
    setup.thresholds = monitor.thresholds;
    setup.worker = match args.handler {
        Some(name) => app::WorkerSetup::Available { handler: handler_word(name).to_owned() },
        None => app::WorkerSetup::Unavailable {
            how: "start pgwake with --handler simulate or noop, on a ledger marked as scratch".to_owned(),
        },
    };
    let network = Network { monitor, handler, worker: config::Worker::default(), demo: None };
    show(setup, options, network, Arc::new(Feed::new()))
}

/// Runs network and screen until the screen is left.
pub(super) fn show(
    setup: app::Setup,
    options: ScreenOptions,
    network: Network,
    feed: Arc<Feed>,
) -> Outcome {
    // Before any thread that could panic: a report must not be printed over a live screen.
    crate::term::watch_panics();
    let (intents, ear) = mpsc::channel(64);
    let (leave, left) = watch::channel(false);
    let (connected, first) = std_mpsc::channel();
    let (done, ended) = std_mpsc::channel::<()>();
    let sink = feed.clone();
    std::thread::Builder::new()
        .name("network".to_owned())
        .spawn(move || {
            let outcome = runtime().map(|rt| rt.block_on(serve(network, sink, ear, left, &connected)));
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
    leave: watch::Receiver<bool>,
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
    let read_only = sampler.server().read_only.clone();
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
        read_only,
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
    let (questions, asked) = mpsc::channel(16);
    let slow = Slow::new(monitor).run(sink.clone(), asked, leave.clone());
    let hands = Hands { operator, worker, listener, sink: sink.clone(), demo: network.demo, questions };
    let mut gone = leave.clone();
    let work = hands.work(intents);
    tokio::pin!(work);
    let fast = sampler.run(sink, leave);
    let watch = async { tokio::join!(fast, slow) };
    tokio::pin!(watch);
    // The sampler goes on while the hands end their work; both end when the screen has gone.
    tokio::select! {
        () = &mut work => {}
        _ = async { tokio::join!(&mut watch, gone.wait_for(|gone| *gone)) } => work.await,
    }
}

/// The handler behind a name.
pub(super) fn practice(name: HandlerName) -> Practice {
    match name {
        HandlerName::Simulate => Practice::Simulate { pace: 100 },
        HandlerName::Noop => Practice::Noop,
    }
}

fn handler_word(name: HandlerName) -> &'static str {
    match name {
        HandlerName::Simulate => "simulate",
        HandlerName::Noop => "noop",
    }
}

fn recorder(path: &std::path::Path) -> Result<Recorder, Failure> {
    let failed = |e: std::io::Error| Failure::failed(format!("--record {}: {e}", path.display()));
    let file = std::fs::File::create(path).map_err(failed)?;
    let mut writer = Writer::new(BufWriter::new(file)).map_err(failed)?;
    let mut broken = false;
    Ok(Box::new(move |event| {
        // A full disk ends the recording, not the screen.
        if !broken && !matches!(event.event, Event::Link(crate::model::Link::Retry { .. })) {
            broken = writer.write(event).is_err();
        }
    }))
}
