//! Faults to inject, each with a line that says what was done.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::task::spawn_blocking;

use super::crew::{Crew, crash_publisher, jobs};
use super::load::Producer;
use super::{Demo, DemoError, Halt, locked};
use crate::ledger;
use crate::model::Fault;
use crate::pg::{Purpose, Session};

/// Jobs that are committed while nobody is there.
const MISSED: usize = 100;
/// Notifications of about 8 kB each that a listener in a transaction keeps in the queue: 32 MB of 8 GB.
const BALLAST: i64 = 4000;
/// Messages for a publisher to die with, and for others.
const MESSAGES: usize = 6;

impl Demo {
    /// Injects one fault and says what happened, for the event log.
    ///
    /// The listen sessions it kills are all of this program in the demo's database, the dashboard's among
    /// them.
    ///
    /// # Errors
    /// The server could not be reached or refused; [`DemoError::NobodyToCrash`] when the demo is ending.
    pub async fn inject(&self, fault: Fault) -> Result<String, DemoError> {
        match fault {
            Fault::KillListener => {
                let session = self.session(Purpose::Command).await?;
                let n = ledger::terminate_listeners(&session).await?;
                Ok(format!("{n} listen sessions were terminated"))
            }
            Fault::FreezeListener => self.freeze_listener().await,
            Fault::ListenerDown => self.listener_down().await,
            Fault::HoldQueue => self.hold_queue().await,
            Fault::DeafListener | Fault::HoldCommit | Fault::LockRows | Fault::PendingAlter => {
                self.jam(fault).await
            }
            Fault::MuteWakeups => Ok(if self.controls.toggle_muted() {
                "wake-ups are muted: producers commit and do not notify".to_owned()
            } else {
                "wake-ups are sent again".to_owned()
            }),
            Fault::Burst => {
                let muted = self.controls.is_muted();
                let n = self.producer().await?.burst(muted).await?;
                let wake = if muted { "no wake-up (muted)" } else { "a wake-up each" };
                Ok(format!("{n} jobs in one commit, {wake}"))
            }
            Fault::CrashWorker => {
                let crew = self.crew.lock().await;
                let crew = crew.as_ref().ok_or(DemoError::NobodyToCrash)?;
                let crash = crew.crash().await.ok_or(DemoError::NobodyToCrash)?;
                Ok(format!(
                    "{} died holding {}; its leases end within {} s",
                    crash.name,
                    jobs(crash.held),
                    self.doomed_lease.as_secs()
                ))
            }
            Fault::StopWorker => self.stop_worker().await,
            Fault::KillWorkers => {
                let mut crew = self.crew.lock().await;
                if crew.take().is_some() {
                    // Dropped, not stopped: nothing is finished, nothing is given back.
                    return Ok("every worker died; their leases end within half a minute".to_owned());
                }
                *crew = Some(self.new_crew());
                Ok("the workers were started again".to_owned())
            }
            Fault::CrashPublisher => self.crash_publisher().await,
            Fault::Poison => {
                let id = self.producer().await?.poison(self.controls.is_muted()).await?;
                Ok(format!("job {id} fails at every attempt, and ends failed after the fifth"))
            }
            Fault::RestartFast => self.restart(Halt::Fast).await,
            Fault::RestartImmediate => self.restart(Halt::Immediate).await,
        }
    }

    async fn freeze_listener(&self) -> Result<String, DemoError> {
        let session = self.session(Purpose::Command).await?;
        let careless = self.careless.lock().await.as_ref().map(Session::pid);
        let pids = ledger::listeners(&session).await?;
        let pids: Vec<i32> = pids.into_iter().filter(|pid| Some(*pid) != careless).collect();
        let pid = fastrand::choice(&pids).copied().ok_or(DemoError::NobodyListens)?;
        let pid = u32::try_from(pid).map_err(|_| DemoError::NobodyListens)?;
        self.server(|server| server.freeze_backend(pid)).ok_or(DemoError::Over)??;
        // Not kept alive by this task: the demo may end before it.
        let (server, frozen_for) = (Arc::downgrade(&self.server), self.frozen_for);
        self.runtime.spawn(async move {
            tokio::time::sleep(frozen_for).await;
            // It may have ended meanwhile, with the whole server.
            let server = server.upgrade();
            let _ = server.and_then(|server| locked(&server).as_ref().map(|s| s.thaw_backend(pid)));
        });
        let seconds = frozen_for.as_secs();
        Ok(format!("the listen session of pid {pid} is frozen for {seconds} s; its socket stays open"))
    }

    async fn listener_down(&self) -> Result<String, DemoError> {
        let mut crew = self.crew.lock().await;
        if let Some(crew) = crew.take() {
            crew.stop().await;
        }
        let added = async {
            let producer = self.producer().await?;
            producer.some(MISSED, self.controls.is_muted()).await
        };
        let added = added.await;
        *crew = Some(self.new_crew());
        added?;
        Ok(format!("the workers left, {MISSED} jobs were committed, the workers are back"))
    }

    async fn hold_queue(&self) -> Result<String, DemoError> {
        let mut careless = self.careless.lock().await;
        // It may have been ended by somebody else, or with the server.
        if let Some(session) = careless.take().filter(|s| s.ended().borrow().is_none()) {
            session.close().await;
            return Ok("the listener has ended its transaction: the queue can shrink".to_owned());
        }
        let session = self.session(Purpose::Listen).await?;
        let channel = self.profiles[0].channel.as_deref().unwrap_or_default();
        ledger::listen_in_transaction(&session, channel).await?;
        ledger::fill_queue(&self.session(Purpose::Command).await?, BALLAST).await?;
        let pid = session.pid();
        *careless = Some(session);
        Ok(format!("pid {pid} listens and stays in a transaction: notifications pile up behind it"))
    }

    async fn stop_worker(&self) -> Result<String, DemoError> {
        let crew = self.crew.lock().await;
        let crew = crew.as_ref().ok_or(DemoError::NobodyToCrash)?;
        let left = crew.leave().await.ok_or(DemoError::NobodyToCrash)?;
        let leased = ledger::leased_by(&self.session(Purpose::Command).await?, left.name).await?;
        Ok(format!(
            "{} left within {:.1} s: {} given back, {leased} left leased; it comes back soon",
            left.name,
            left.took.as_secs_f64(),
            jobs(usize::try_from(left.given_back).unwrap_or(usize::MAX)),
        ))
    }

    async fn crash_publisher(&self) -> Result<String, DemoError> {
        let producer = self.producer().await?;
        let number = self.publishers.fetch_add(1, Ordering::Relaxed) + 1;
        let crash = crash_publisher(&self.plan, number, async || producer.messages(MESSAGES).await).await?;
        Ok(format!(
            "{} died with {} messages published, not SENT; they go out again within {} s",
            crash.name,
            crash.held,
            self.doomed_lease.as_secs()
        ))
    }

    async fn restart(&self, how: Halt) -> Result<String, DemoError> {
        let server = self.server.clone();
        let began = Instant::now();
        let restart = move || {
            let mut server = locked(&server);
            let server = server.as_mut().ok_or(DemoError::Over)?;
            match how {
                Halt::Fast => server.restart_fast()?,
                Halt::Immediate => server.restart_immediate()?,
            }
            Ok(())
        };
        spawn_blocking(restart).await?.map(|()| {
            let what = match how {
                Halt::Fast => "the server was restarted",
                Halt::Immediate => "the server crashed and recovered",
            };
            format!("{what} within {:.1} s", began.elapsed().as_secs_f64())
        })
    }

    /// On the demo's own runtime, whoever asks.
    fn new_crew(&self) -> Crew {
        let _on = self.runtime.enter();
        Crew::start(&self.plan)
    }

    pub(super) async fn session(&self, purpose: Purpose) -> Result<Session, DemoError> {
        Ok(Session::connect(self.conninfo(), purpose).await?)
    }

    pub(super) async fn producer(&self) -> Result<Producer, DemoError> {
        Producer::connect(self.conninfo(), &self.profiles).await
    }
}
