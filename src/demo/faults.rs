//! Faults to inject, each with a line that says what was done.

use super::crew::{Crew, jobs};
use super::load::Producer;
use super::{Demo, DemoError};
use crate::ledger;
use crate::model::Fault;
use crate::pg::{Purpose, Session};

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
                let session = Session::connect(self.conninfo(), Purpose::Command).await?;
                let n = ledger::terminate_listeners(&session).await?;
                Ok(format!("{n} listen sessions were terminated"))
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
            Fault::KillWorkers => {
                let mut crew = self.crew.lock().await;
                if crew.take().is_some() {
                    // Dropped, not stopped: nothing is finished, nothing is given back.
                    return Ok("every worker died; their leases end within half a minute".to_owned());
                }
                // On the demo's own runtime, whoever asks.
                let _on = self.runtime.enter();
                *crew = Some(Crew::start(&self.plan));
                Ok("the workers were started again".to_owned())
            }
            Fault::MuteWakeups => Ok(if self.controls.toggle_muted() {
                "wake-ups are muted: producers commit and do not notify".to_owned()
            } else {
                "wake-ups are sent again".to_owned()
            }),
            Fault::Burst => {
                let muted = self.controls.is_muted();
                let producer = Producer::connect(self.conninfo(), &self.profiles).await?;
                let n = producer.burst(muted).await?;
                let wake = if muted { "no wake-up (muted)" } else { "one wake-up" };
                Ok(format!("{n} jobs in one commit, {wake}"))
            }
        }
    }
}
