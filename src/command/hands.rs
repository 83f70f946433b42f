//! From intents to the operator, the embedded worker and the faults of the demo.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::handler::Job;
use super::pause::Rest;
use crate::demo::Demo;
use crate::model::{ActionEvent, Event, Intent, Sink, WorkerEvent};
use crate::monitor::{Operator, OperatorError, Stopper};
use crate::pg::Listener;
use crate::worker::{self, Stop};

/// Before the program stands still, commands may take this long to end; the screen waits longer than that.
const COMMANDS_REST: Duration = Duration::from_millis(1500);

/// What the intents of a screen are carried out with.
pub(super) struct Hands {
    pub operator: Operator,
    pub crew: Crew,
    pub sink: Arc<dyn Sink>,
    pub demo: Option<Arc<Demo>>,
    /// Takes the questions that the slow lane answers.
    pub questions: mpsc::Sender<Intent>,
    /// Takes the interval of the sampler.
    pub pace: watch::Sender<Duration>,
}

/// The embedded worker and the listen session it shares.
pub(super) struct Crew {
    /// The embedded worker's setup and handler, when one may run.
    pub worker: Option<(worker::Setup, Job)>,
    pub listener: Arc<Listener>,
    pub sink: Arc<dyn Sink>,
    pub running: Mutex<Option<Running>>,
}

/// A worker at work.
pub(super) struct Running {
    stop: Stop,
    task: JoinHandle<()>,
}

impl Hands {
    /// Carries intents out in order until the screen has gone, then stops the embedded worker in order.
    /// A bulk release can be stopped while it runs: that intent does not wait its turn. Neither does rest.
    pub(super) async fn work(self, mut intents: mpsc::Receiver<Intent>, mut rest: Rest) {
        let Self { mut operator, crew, sink, demo, questions, pace } = self;
        let stopper = operator.stopper();
        let (queue, mut turn) = mpsc::channel::<Intent>(16);
        let stop_bulk = stopper.clone();
        let ear = sink.clone();
        let sort = async move {
            while let Some(intent) = intents.recv().await {
                match intent {
                    Intent::Quit => break,
                    Intent::StopBulk => stop_bulk.stop(),
                    Intent::Pace { interval_ms } => {
                        pace.send_replace(Duration::from_millis(interval_ms));
                    }
                    other => {
                        // a look does not wait behind an action
                        let look =
                            matches!(other, Intent::Jobs { .. } | Intent::Job { .. } | Intent::Plan { .. });
                        let to = if look { &questions } else { &queue };
                        if to.try_send(other).is_err() {
                            ear.emit(Event::Action(ActionEvent::Refused {
                                what: "this".to_owned(),
                                why: "earlier requests are still under way".to_owned(),
                            }));
                        }
                    }
                }
            }
            stop_bulk.stop_for_good();
        };
        let carry_out = async {
            while let Some(intent) = turn.recv().await {
                one(&mut operator, &crew, demo.as_ref(), sink.as_ref(), intent).await;
            }
        };
        tokio::select! {
            _ = async { tokio::join!(sort, carry_out) } => {}
            () = crew.obey(&mut rest, &stopper) => {}
        }
        crew.stop().await;
    }
}

impl Crew {
    /// Rests when wished: first the listen session, which must not be there unread, then the worker, which
    /// could not renew its leases.
    async fn obey(&self, rest: &mut Rest, stopper: &Stopper) {
        let mut worked = false;
        while rest.wish.changed().await.is_ok() {
            let wished = *rest.wish.borrow_and_update();
            if wished {
                stopper.stop();
                self.listener.rest().await;
                worked |= self.stop_for_rest().await;
            } else {
                self.listener.go_on();
                if std::mem::take(&mut worked) {
                    self.start().await;
                }
            }
            rest.resting.send_replace(wished);
        }
        // the screen has gone: its last word comes as an intent
        std::future::pending().await
    }

    /// Stops the worker in order; whether there was one.
    async fn stop(&self) -> bool {
        let Some(old) = self.running.lock().await.take() else { return false };
        let worked = !old.task.is_finished();
        old.stop.stop();
        let _ = old.task.await;
        worked
    }

    /// The same before the program stands still: commands that have not ended by then would run on without
    /// anybody who looks after their leases.
    async fn stop_for_rest(&self) -> bool {
        let stopping = self.stop();
        tokio::pin!(stopping);
        match timeout(COMMANDS_REST, &mut stopping).await {
            Ok(worked) => worked,
            Err(_) => {
                if let Some(exec) = self.worker.as_ref().and_then(|(_, job)| job.exec()) {
                    exec.kill_all();
                }
                stopping.await
            }
        }
    }

    async fn start(&self) {
        let mut running = self.running.lock().await;
        if running.as_ref().is_some_and(|r| !r.task.is_finished()) {
            return;
        }
        let Some((setup, handler)) = self.worker.clone() else {
            refused(self.sink.as_ref(), "start the worker", "no handler is configured");
            return;
        };
        if let Err(error) = handler.check() {
            refused(self.sink.as_ref(), "start the worker", &error.to_string());
            return;
        }
        let (stop, ear) = Stop::new();
        let (listener, sink) = (Some(self.listener.clone()), self.sink.clone());
        let task = tokio::spawn(async move {
            if let Err(error) = worker::run(setup, handler, listener, sink.clone(), ear).await {
                let trouble = Some(error.to_string());
                sink.emit(Event::Worker(WorkerEvent::Stopped { given_back: 0, trouble }));
            }
        });
        *running = Some(Running { stop, task });
    }
}

async fn one(
    operator: &mut Operator,
    crew: &Crew,
    demo: Option<&Arc<Demo>>,
    sink: &dyn Sink,
    intent: Intent,
) {
    let outcome: Result<(), OperatorError> = match &intent {
        Intent::Release { ledger, lease } => operator.release(ledger, lease).await.map(drop),
        Intent::OnJob { ledger, action, job } => operator.on_job(ledger, *action, job).await.map(drop),
        Intent::CountExpired { ledger, holders } => {
            operator.count_expired(ledger, holders.as_deref()).await.map(drop)
        }
        Intent::ReleaseExpired { ledger, holders } => {
            operator.release_expired(ledger, holders.as_deref()).await.map(drop)
        }
        Intent::End { how, session } => operator.end(*how, session).await,
        Intent::Wake { ledger } => operator.wake(ledger).await,
        Intent::Worker { on } => {
            if *on {
                crew.start().await;
            } else {
                crew.stop().await;
            }
            Ok(())
        }
        Intent::Fault(fault) => {
            let Some(demo) = demo else { return };
            match demo.inject(*fault).await {
                Ok(text) => sink.emit(Event::Action(ActionEvent::FaultDone { text })),
                Err(e) => refused(sink, "inject a fault", &e.to_string()),
            }
            Ok(())
        }
        // the slow lane answers looks
        Intent::Jobs { .. } | Intent::Job { .. } | Intent::Plan { .. } => Ok(()),
        Intent::Quit | Intent::StopBulk | Intent::Pace { .. } | Intent::Play(_) => Ok(()),
        // the loop of the screen has done them
        Intent::Copy(_) | Intent::Redraw | Intent::Suspend | Intent::Alarm(_) => Ok(()),
    };
    if let Err(error) = outcome {
        refused(sink, what(&intent), &error.to_string());
    }
}

fn refused(sink: &dyn Sink, what: &str, why: &str) {
    sink.emit(Event::Action(ActionEvent::Refused { what: what.to_owned(), why: why.to_owned() }));
}

fn what(intent: &Intent) -> &'static str {
    match intent {
        Intent::Release { .. } => "release",
        Intent::CountExpired { .. } | Intent::ReleaseExpired { .. } | Intent::StopBulk => {
            "release all expired"
        }
        Intent::OnJob { action, .. } => action.word(),
        Intent::End { .. } => "end a session",
        Intent::Wake { .. } => "send a wake-up",
        Intent::Worker { .. } => "switch the worker",
        Intent::Jobs { .. } | Intent::Job { .. } => "look at jobs",
        Intent::Plan { .. } => "plan a claim",
        Intent::Pace { .. } => "change the interval",
        Intent::Fault(_) => "inject a fault",
        Intent::Quit => "quit",
        Intent::Play(_) => "move through a recording",
        Intent::Copy(_) | Intent::Redraw | Intent::Suspend | Intent::Alarm(_) => "this",
    }
}
