//! Retry, give up and run now: to a job exactly as the person saw it, audited and woken in the same transaction.

use tokio_postgres::types::{ToSql, Type};

use super::{Audit, DEADLINE, Ledger};
use crate::model::{Found, JobAction, Offer, ShownJob};
use crate::pg::{Error, Session, sqlstate};

impl Ledger {
    /// What can be done to jobs here that nobody holds, and why something cannot.
    pub fn offers(&self) -> Vec<Offer> {
        JobAction::ALL
            .into_iter()
            .map(|action| Offer {
                action,
                sql: self.inner.sql.on_job(action).to_owned(),
                effect: self.effect(action),
                refusal: self.refuses(action),
            })
            .collect()
    }

    /// Why an action is not offered, if it is not.
    pub fn refuses(&self, action: JobAction) -> Option<String> {
        if !self.may_write() {
            return Some(format!("this role may not update {}", self.profile().relation()));
        }
        let s = &self.profile().states;
        let others = [(&s.done, "done"), (&s.ready, "ready"), (&s.running, "running")];
        let same = others.into_iter().find(|(state, _)| **state == s.failed)?;
        // of such a row it cannot be said which of the two it is
        Some(format!(
            "cannot {}: profile {} gives failed and {} jobs the same state",
            action.word(),
            self.name(),
            same.1
        ))
    }

    fn effect(&self, action: JobAction) -> String {
        let c = &self.profile().columns;
        match action {
            JobAction::Retry => {
                let room = match (&c.attempts, &c.max_attempts) {
                    (Some(_), Some(_)) => {
                        "; its attempts stay counted, and if they are used up, one more is allowed"
                    }
                    _ => "",
                };
                let error =
                    if c.last_error.is_some() { ", and its error stays until the next one" } else { "" };
                format!("It becomes ready, due now{room}{error}.")
            }
            JobAction::GiveUp => {
                let why = if c.last_error.is_some() {
                    "Its error names you, before the error that it had"
                } else {
                    "The table has no column for an error: only the audit says why"
                };
                format!("It is marked failed and not run again. {why}.")
            }
            JobAction::RunNow => "It is due now, and a worker takes it in its turn.".to_owned(),
        }
    }

    /// Does it to a job if that still is as it was seen: state, due time, attempts, end. `None`: done; else
    /// nothing was, and this is there now.
    ///
    /// # Errors
    /// As any statement; nothing is done then.
    pub async fn on_job(
        &self,
        session: &Session,
        action: JobAction,
        seen: &ShownJob,
        audit: &Audit,
    ) -> Result<Option<Found>, Error> {
        let sql = self.inner.sql.on_job(action);
        let name = self.name();
        let all: [(&(dyn ToSql + Sync), Type); 9] = [
            (&seen.id, Type::TEXT),
            (&seen.run_at, Type::TIMESTAMPTZ),
            (&seen.attempts, Type::INT8),
            (&seen.max_attempts, Type::INT8),
            (&seen.finished, Type::TIMESTAMPTZ),
            (&audit.operator, Type::TEXT),
            (&audit.reason, Type::TEXT),
            (&name, Type::TEXT),
            (&seen.job_type, Type::TEXT),
        ];
        let used = if sql.contains("$9") {
            9
        } else if sql.contains("$6") {
            7
        } else {
            5
        };
        match session.one(sql, &all[..used], DEADLINE).await {
            Ok(row) if row.get::<_, i64>(0) > 0 => return Ok(None),
            Ok(_) => {}
            Err(e) if e.sqlstate() == Some(sqlstate::LOCK_NOT_AVAILABLE) => return Ok(Some(Found::Locked)),
            Err(e) => return Err(e),
        }
        let now = self.job(session, &seen.id, false).await?;
        Ok(Some(now.map_or(Found::Gone, |f| Found::Job {
            state: f.row.state,
            holder: f.row.holder,
            due: f.row.due,
            attempts: f.row.attempts,
        })))
    }
}
