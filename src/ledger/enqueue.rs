//! Adding jobs: insert and one wake-up in one transaction.

use chrono::{DateTime, Utc};
use tokio_postgres::types::Type;

use super::{DEADLINE, Ledger};
use crate::pg::{Error, Fields, Session};

/// A job to add.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewJob {
    /// Type or topic.
    pub job_type: String,
    /// JSON text.
    pub payload: String,
    /// Message key, where the table has one.
    pub key: Option<String>,
    /// Not before; `None` is now.
    pub run_at: Option<DateTime<Utc>>,
}

impl Ledger {
    /// Adds jobs with one wake-up, all or none. Returns their ids in order.
    ///
    /// # Errors
    /// As any statement, among them a payload that is not JSON; nothing is added then.
    pub async fn enqueue(&self, session: &Session, jobs: &[NewJob]) -> Result<Vec<String>, Error> {
        add(session, &self.inner.sql.enqueue, jobs).await
    }

    /// Adds jobs without a wake-up, all or none: what a producer does that cannot or forgot to notify.
    /// Only a fallback scan finds them.
    ///
    /// # Errors
    /// As [`Ledger::enqueue`].
    pub async fn enqueue_quiet(&self, session: &Session, jobs: &[NewJob]) -> Result<Vec<String>, Error> {
        add(session, &self.inner.sql.enqueue_quiet, jobs).await
    }

    /// Sends one wake-up: a hint of five bytes. `false` when the profile has no channel.
    ///
    /// # Errors
    /// As any statement; a full notification queue among them.
    pub async fn wake(&self, session: &Session) -> Result<bool, Error> {
        let Some(channel) = self.channel() else { return Ok(false) };
        session.query("select pg_notify($1, 'ready')", &[(&channel, Type::TEXT)], DEADLINE).await?;
        Ok(true)
    }
}

async fn add(session: &Session, sql: &str, jobs: &[NewJob]) -> Result<Vec<String>, Error> {
    let types: Vec<&str> = jobs.iter().map(|j| j.job_type.as_str()).collect();
    let payloads: Vec<&str> = jobs.iter().map(|j| j.payload.as_str()).collect();
    let keys: Vec<Option<&str>> = jobs.iter().map(|j| j.key.as_deref()).collect();
    let run_ats: Vec<Option<DateTime<Utc>>> = jobs.iter().map(|j| j.run_at).collect();
    let rows = session
        .query(
            sql,
            &[
                (&types, Type::TEXT_ARRAY),
                (&payloads, Type::TEXT_ARRAY),
                (&keys, Type::TEXT_ARRAY),
                (&run_ats, Type::TIMESTAMPTZ_ARRAY),
            ],
            DEADLINE,
        )
        .await?;
    rows.iter().map(|r| r.field(0)).collect()
}
