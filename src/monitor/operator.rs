//! Carries out what a person asked for, on a session of its own that is opened by the first action.

mod jobs;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::audit::{AuditFile, operator_name};
use super::ending;
use crate::ledger::{Audit, Ledger, LedgerError, Release};
use crate::model::{ActionEvent, Ending, Event, Lease, Note, Session as Seen, Sink};
use crate::pg::{Conninfo, Error, Purpose, Session};
use crate::profile::Profile;

/// A dry run counts this far.
const CAP: i64 = 100_000;

/// Stops a bulk release after the batch in hand.
#[derive(Clone, Debug, Default)]
pub struct Stopper(Arc<AtomicU8>);

const GO: u8 = 0;
const THIS_ONE: u8 = 1;
const FOR_GOOD: u8 = 2;

impl Stopper {
    /// Asks for it; the next bulk release begins afresh.
    pub fn stop(&self) {
        self.0.fetch_max(THIS_ONE, Ordering::Relaxed);
    }

    /// Asks for it, and no other bulk release is begun: those that wait their turn when a person leaves must
    /// not go on behind their back.
    pub fn stop_for_good(&self) {
        self.0.store(FOR_GOOD, Ordering::Relaxed);
    }

    fn reset(&self) {
        let _ = self.0.compare_exchange(THIS_ONE, GO, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed) != GO
    }
}

/// Why an action could not be done.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// Actions are off.
    #[error("actions are off: {0}")]
    ReadOnly(String),
    /// No such ledger.
    #[error("there is no ledger {0} here")]
    NoLedger(String),
    /// The profile or the role does not allow it.
    #[error("not offered here: {0}")]
    NotOffered(String),
    /// The server refused, or the session is lost.
    #[error(transparent)]
    Pg(#[from] Error),
    /// The ledger does not fit its profile.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// The hands.
pub struct Operator {
    conninfo: Conninfo,
    profiles: Vec<Profile>,
    read_only: Option<String>,
    reason: String,
    audit: Option<AuditFile>,
    sink: Arc<dyn Sink>,
    stopper: Stopper,
    open: Option<(Session, Vec<Ledger>)>,
}

impl Operator {
    /// Hands that have not touched anything yet. `reason` goes into the audit.
    pub fn new(
        conninfo: Conninfo,
        profiles: Vec<Profile>,
        read_only: Option<String>,
        reason: String,
        audit: Option<AuditFile>,
        sink: Arc<dyn Sink>,
    ) -> Self {
        Self { conninfo, profiles, read_only, reason, audit, sink, stopper: Stopper::default(), open: None }
    }

    /// Stops a bulk release from outside.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Releases one lease exactly as it was seen.
    ///
    /// # Errors
    /// Actions are off, or the server refused; nothing was released then.
    pub async fn release(&mut self, ledger: &str, seen: &Lease) -> Result<ActionEvent, OperatorError> {
        let audit = self.audit_entry();
        let outcome = {
            let (session, ledger) = self.ledger(ledger).await?;
            ledger.release(session, seen, &audit).await
        };
        let what = format!("job {} held by {} token {}", seen.id, seen.holder, seen.token);
        if let Err(error) = &outcome {
            // Whether it was released is not known when the answer was lost: tried it was.
            self.write_down(ledger, "one", &what, &format!("error: {}", error.loss()));
        }
        let event = match self.checked(outcome)? {
            Release::Freed => ActionEvent::Released {
                ledger: ledger.to_owned(),
                id: seen.id.clone(),
                holder: seen.holder.clone(),
            },
            Release::MovedOn(found) => {
                ActionEvent::MovedOn { ledger: ledger.to_owned(), id: seen.id.clone(), found }
            }
        };
        let outcome = match &event {
            ActionEvent::MovedOn { found, .. } => format!("nothing done: now {found}"),
            _ => "released".to_owned(),
        };
        self.write_down(ledger, "one", &what, &outcome);
        self.say(event.clone());
        Ok(event)
    }

    /// Counts what a bulk release would free.
    ///
    /// # Errors
    /// Actions are off, or the server refused.
    pub async fn count_expired(
        &mut self,
        ledger: &str,
        holders: Option<&[String]>,
    ) -> Result<(u64, bool), OperatorError> {
        let counted = {
            let (session, ledger) = self.ledger(ledger).await?;
            ledger.count_expired_of(session, holders, CAP).await
        };
        let (count, capped) = self.checked(counted)?;
        self.say(ActionEvent::ExpiredCount {
            ledger: ledger.to_owned(),
            holders: holders.map(<[String]>::to_vec),
            count,
            capped,
        });
        Ok((count, capped))
    }

    /// Frees expired leases in batches until none is left to take, or it is stopped.
    ///
    /// # Errors
    /// The server refused a batch; those before it are done and were reported.
    pub async fn release_expired(
        &mut self,
        ledger: &str,
        holders: Option<&[String]>,
    ) -> Result<u64, OperatorError> {
        self.stopper.reset();
        let audit = self.audit_entry();
        let mut total = 0;
        let result = loop {
            if self.stopper.is_stopped() {
                break Ok(());
            }
            let freed = {
                let (session, ledger) = self.ledger(ledger).await?;
                ledger.release_expired_batch(session, holders, &audit).await
            };
            match freed {
                Ok(0) => break Ok(()),
                Ok(batch) => {
                    total += batch;
                    self.say(ActionEvent::Batch { ledger: ledger.to_owned(), batch, total });
                }
                Err(e) if e.is_retryable() => {}
                Err(e) => break Err(e),
            }
        };
        let what = holders.map_or_else(
            || "all expired leases".to_owned(),
            |h| format!("expired leases of {}", h.join(", ")),
        );
        self.write_down(ledger, "all expired", &what, &format!("released {total}"));
        self.checked(result)?;
        let stopped = self.stopper.is_stopped();
        self.say(ActionEvent::BulkDone { ledger: ledger.to_owned(), total, stopped });
        Ok(total)
    }

    /// Sends one wake-up on the ledger's channel.
    ///
    /// # Errors
    /// Actions are off, there is no channel, or the server refused.
    pub async fn wake(&mut self, ledger: &str) -> Result<(), OperatorError> {
        let (sent, channel) = {
            let (session, ledger) = self.ledger(ledger).await?;
            (ledger.wake(session).await, ledger.channel().map(crate::text::clean))
        };
        let sent = self.checked(sent)?;
        match channel.filter(|_| sent) {
            Some(channel) => self.say(ActionEvent::WakeSent { channel }),
            None => self.say(ActionEvent::Refused {
                what: "send a wake-up".to_owned(),
                why: format!("ledger {ledger} has no channel in its profile"),
            }),
        }
        Ok(())
    }

    /// Cancels what a session runs, or ends it: the one that was seen, not another that has its pid by now.
    ///
    /// # Errors
    /// Actions are off, or the session of this program is lost; the server's refusal is an answer.
    pub async fn end(&mut self, how: Ending, seen: &Seen) -> Result<(), OperatorError> {
        let outcome = {
            let (session, _) = self.opened().await?;
            ending::end(session, how, seen.pid, seen.started).await
        };
        let (sent, answer) = match &outcome {
            Ok(Some(true)) => (true, "the server sent the signal".to_owned()),
            Ok(Some(false)) => (false, "the server could not send the signal".to_owned()),
            Ok(None) => (false, "nothing was done: that session is no longer there".to_owned()),
            Err(e) => (false, e.loss().to_string()),
        };
        self.write_down(
            "-",
            how.word(),
            &format!("pid {} of {} ({})", seen.pid, seen.user, seen.application),
            &answer,
        );
        if outcome.as_ref().is_err_and(Error::is_session_lost) {
            self.checked(outcome)?;
        }
        self.say(ActionEvent::Ended { pid: seen.pid, how, sent, answer });
        Ok(())
    }

    /// The session, opened at the first action, and the ledger of that name.
    async fn ledger(&mut self, name: &str) -> Result<(&Session, &Ledger), OperatorError> {
        let (session, ledgers) = self.opened().await?;
        let found = ledgers.iter().find(|l| l.name() == name);
        found.map(|l| (session, l)).ok_or_else(|| OperatorError::NoLedger(crate::text::clean(name)))
    }

    async fn opened(&mut self) -> Result<(&Session, &[Ledger]), OperatorError> {
        if let Some(why) = &self.read_only {
            return Err(OperatorError::ReadOnly(why.clone()));
        }
        if self.open.as_ref().is_some_and(|(session, _)| session.ended().borrow().is_some()) {
            self.open = None;
        }
        let there = match self.open.take() {
            Some(there) => there,
            None => {
                let session = Session::connect(&self.conninfo, Purpose::Operator).await?;
                let ledgers = crate::ledger::open_all(&session, &self.profiles).await?;
                (session, ledgers)
            }
        };
        let (session, ledgers) = self.open.insert(there);
        Ok((session, ledgers))
    }

    /// A lost session is dropped, so that the next action opens a new one.
    fn checked<T>(&mut self, outcome: Result<T, Error>) -> Result<T, OperatorError> {
        if outcome.as_ref().is_err_and(Error::is_session_lost) {
            self.open = None;
        }
        Ok(outcome?)
    }

    fn audit_entry(&self) -> Audit {
        Audit { operator: operator_name(), reason: self.reason.clone() }
    }

    fn say(&self, event: ActionEvent) {
        self.sink.emit(Event::Action(event));
    }

    fn write_down(&self, ledger: &str, how: &str, what: &str, outcome: &str) {
        let Some(file) = &self.audit else { return };
        let server = self.conninfo.address();
        if let Err(e) = file.append(chrono::Utc::now(), &server, ledger, how, what, outcome) {
            let text = format!("the audit file {} could not be written: {e}", file.path().display());
            self.sink.emit(Event::Note(Note { warn: true, text: crate::text::clean(&text) }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_holds_for_the_release_at_hand_and_a_stop_for_good_for_those_that_wait() {
        let stopper = Stopper::default();
        stopper.stop();
        assert!(stopper.is_stopped());
        stopper.reset();
        assert!(!stopper.is_stopped(), "the next one begins afresh");
        stopper.stop_for_good();
        stopper.reset();
        assert!(stopper.is_stopped());
        stopper.stop();
        stopper.reset();
        assert!(stopper.is_stopped());
    }
}
