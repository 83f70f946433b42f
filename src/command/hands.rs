//! From intents to the operator, the embedded worker and the faults of the demo.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::demo::Demo;
use crate::model::{ActionEvent, Event, Intent, Sink, WorkerEvent};
use crate::monitor::{Operator, OperatorError};
use crate::pg::Listener;
use crate::worker::{self, Practice, Stop};

/// What the intents of a screen are carried out with.
pub(super) struct Hands {
    pub operator: Operator,
    /// The embedded worker's setup and handler, when one may run.
    pub worker: Option<(worker::Setup, Practice)>,
    pub listener: Arc<Listener>,
    pub sink: Arc<dyn Sink>,
    pub demo: Option<Arc<Demo>>,
    /// Takes the questions that the slow lane answers.
    pub questions: mpsc::Sender<Intent>,
}

struct Running {
    stop: Stop,
    task: JoinHandle<()>,
}

impl Hands {
    /// Carries intents out in order until the screen has gone, then stops the embedded worker in order.
    /// A bulk release can be stopped while it runs: that intent does not wait its turn.
    pub(super) async fn work(mut self, mut intents: mpsc::Receiver<Intent>) {
        let stopper = self.operator.stopper();
        let (queue, mut turn) = mpsc::channel::<Intent>(16);
        let (sink, questions) = (self.sink.clone(), self.questions.clone());
        let sort = async move {
            while let Some(intent) = intents.recv().await {
                match intent {
                    Intent::Quit => break,
                    Intent::StopBulk => stopper.stop(),
                    other => {
                        // a look does not wait behind an action
                        let look = matches!(other, Intent::Jobs { .. } | Intent::Job { .. });
                        let to = if look { &questions } else { &queue };
                        if to.try_send(other).is_err() {
                            sink.emit(Event::Action(ActionEvent::Refused {
                                what: "this".to_owned(),
                                why: "earlier requests are still under way".to_owned(),
                            }));
                        }
                    }
                }
            }
            stopper.stop();
        };
        let carry_out = async {
            let mut running: Option<Running> = None;
            while let Some(intent) = turn.recv().await {
                self.one(intent, &mut running).await;
            }
            if let Some(running) = running {
                running.stop.stop();
                let _ = running.task.await;
            }
        };
        tokio::join!(sort, carry_out);
    }

    async fn one(&mut self, intent: Intent, running: &mut Option<Running>) {
        let outcome: Result<(), OperatorError> = match &intent {
            Intent::Release { ledger, lease } => self.operator.release(ledger, lease).await.map(drop),
            Intent::CountExpired { ledger, holder } => {
                self.operator.count_expired(ledger, holder.as_deref()).await.map(drop)
            }
            Intent::ReleaseExpired { ledger, holder } => {
                self.operator.release_expired(ledger, holder.as_deref()).await.map(drop)
            }
            Intent::Wake { ledger } => self.operator.wake(ledger).await,
            Intent::Worker { on } => {
                self.switch_worker(*on, running).await;
                Ok(())
            }
            Intent::Fault(fault) => {
                let Some(demo) = self.demo.clone() else { return };
                match demo.inject(*fault).await {
                    Ok(text) => self.sink.emit(Event::Action(ActionEvent::FaultDone { text })),
                    Err(e) => self.refused("inject a fault", &e.to_string()),
                }
                Ok(())
            }
            Intent::Quit | Intent::StopBulk | Intent::Jobs { .. } | Intent::Job { .. } => Ok(()),
        };
        if let Err(error) = outcome {
            self.refused(what(&intent), &error.to_string());
        }
    }

    fn refused(&self, what: &str, why: &str) {
        self.sink.emit(Event::Action(ActionEvent::Refused { what: what.to_owned(), why: why.to_owned() }));
    }

    async fn switch_worker(&self, on: bool, running: &mut Option<Running>) {
        if !on {
            if let Some(old) = running.take() {
                old.stop.stop();
                let _ = old.task.await;
            }
            return;
        }
        if running.as_ref().is_some_and(|r| !r.task.is_finished()) {
            return;
        }
        let Some((setup, handler)) = self.worker.clone() else {
            self.refused("start the worker", "no handler is configured");
            return;
        };
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

fn what(intent: &Intent) -> &'static str {
    match intent {
        Intent::Release { .. } => "release",
        Intent::CountExpired { .. } | Intent::ReleaseExpired { .. } | Intent::StopBulk => {
            "release all expired"
        }
        Intent::Wake { .. } => "send a wake-up",
        Intent::Worker { .. } => "switch the worker",
        Intent::Jobs { .. } | Intent::Job { .. } => "look at jobs",
        Intent::Fault(_) => "inject a fault",
        Intent::Quit => "quit",
    }
}
