//! Faults to inject, each with a line that says what was done.

use super::crew::jobs;
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
                let crew = self.crew.as_ref().ok_or(DemoError::NobodyToCrash)?;
                let crash = crew.crash().await.ok_or(DemoError::NobodyToCrash)?;
                Ok(format!(
                    "{} died holding {}; its leases end within {} s",
                    crash.name,
                    jobs(crash.held),
                    self.doomed_lease.as_secs()
                ))
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
