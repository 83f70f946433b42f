//! Faults that hold the queue up for as long as a person wants to watch: each is there until it is chosen again, or
//! until somebody ends its session.

use std::any::Any;

use chrono::TimeDelta;
use tokio::task::JoinHandle;

use super::{Demo, DemoError};
use crate::ledger;
use crate::model::Fault;
use crate::pg::{Purpose, Session};

/// Jobs that are added to be locked.
const LOCKED: usize = 200;
/// Notifications that a socket which nobody reads cannot take: 32 MB.
const BALLAST: i64 = 4000;

/// One of them at work.
pub(super) struct Jam {
    fault: Fault,
    /// Its backends, whoever holds them.
    pids: Vec<i32>,
    tasks: Vec<JoinHandle<()>>,
    _kept: Vec<Box<dyn Any + Send>>,
    /// The producers' rate before.
    rate: Option<f64>,
}

impl Drop for Jam {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Demo {
    /// Begins it, or ends it if it is there.
    pub(super) async fn jam(&self, fault: Fault) -> Result<String, DemoError> {
        let mut jams = self.jams.lock().await;
        if let Some(at) = jams.iter().position(|j| j.fault == fault) {
            let jam = jams.swap_remove(at);
            return self.clear(&jam).await;
        }
        let (jam, said) = match fault {
            Fault::DeafListener => self.deaf().await?,
            Fault::HoldCommit => self.hold_commit().await?,
            Fault::LockRows => self.lock_rows().await?,
            _ => self.pending_alter().await?,
        };
        jams.push(jam);
        Ok(said)
    }

    async fn clear(&self, jam: &Jam) -> Result<String, DemoError> {
        let session = self.session(Purpose::Command).await?;
        if jam.fault == Fault::HoldCommit {
            // Who waits for the standby goes on, and nothing is lost.
            ledger::wait_for_a_standby(&session, false).await?;
            return Ok("commits wait for no standby any more".to_owned());
        }
        let mut ended = 0;
        for pid in &jam.pids {
            ended += usize::from(ledger::terminate(&session, *pid).await?);
        }
        if let Some(rate) = jam.rate {
            self.controls.set_rate(rate);
        }
        Ok(match ended {
            0 => "what held it had ended already".to_owned(),
            1 => "the session that held it was ended".to_owned(),
            n => format!("the {n} sessions that held it were ended"),
        })
    }

    async fn deaf(&self) -> Result<(Jam, String), DemoError> {
        let text = self.server(|server| server.conninfo(super::DATABASE)).ok_or(DemoError::Over)?;
        let (kept, pid) = ledger::deaf_listener(&text, "deaf-listener").await?;
        ledger::fill_queue(&self.session(Purpose::Command).await?, BALLAST).await?;
        let jam = Jam {
            fault: Fault::DeafListener,
            pids: vec![pid],
            tasks: Vec::new(),
            _kept: vec![Box::new(kept)],
            rate: None,
        };
        Ok((jam, format!("pid {pid} listens and does not read what it is sent")))
    }

    async fn hold_commit(&self) -> Result<(Jam, String), DemoError> {
        ledger::wait_for_a_standby(&self.session(Purpose::Command).await?, true).await?;
        let session = self.session(Purpose::Command).await?;
        let pid = session.pid();
        let task = self.runtime.spawn(async move {
            let _ = ledger::commit_synchronously(&session).await;
        });
        let jam = Jam {
            fault: Fault::HoldCommit,
            pids: vec![pid],
            tasks: vec![task],
            _kept: Vec::new(),
            rate: None,
        };
        Ok((jam, format!("pid {pid} commits a job, and waits for a standby that does not exist")))
    }

    async fn lock_rows(&self) -> Result<(Jam, String), DemoError> {
        let rate = self.controls.rate();
        // What came after would be drained, and hide it.
        self.controls.set_rate(0.0);
        let producer = self.producer().await?;
        // Not due before they are locked: no worker is quicker.
        producer.soon(LOCKED, TimeDelta::seconds(2)).await?;
        let session = self.session(Purpose::Command).await?;
        let locked = ledger::lock_ready(&session).await?;
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        // The workers look, and find what they cannot have.
        producer.wake().await?;
        let pid = session.pid();
        let jam = Jam {
            fault: Fault::LockRows,
            pids: vec![pid],
            tasks: Vec::new(),
            _kept: vec![Box::new(session)],
            rate: Some(rate),
        };
        Ok((jam, format!("pid {pid} has {locked} ready jobs locked; the producers pause")))
    }

    async fn pending_alter(&self) -> Result<(Jam, String), DemoError> {
        let reader = self.session(Purpose::Command).await?;
        ledger::read_and_stay(&reader).await?;
        let alter = self.session(Purpose::Command).await?;
        let pids = vec![alter.pid(), reader.pid()];
        let said = format!("pid {} alters the table, and waits for the reader {}", pids[0], pids[1]);
        let task = self.runtime.spawn(async move {
            let _ = ledger::alter(&alter).await;
        });
        let jam = Jam {
            fault: Fault::PendingAlter,
            pids,
            tasks: vec![task],
            _kept: vec![Box::<Session>::new(reader)],
            rate: None,
        };
        Ok((jam, said))
    }
}
