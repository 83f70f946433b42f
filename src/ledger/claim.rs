//! Taking due jobs: one short statement that stamps a lease on up to N of them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_postgres::types::Type;

use super::{DEADLINE, Ledger};
use crate::pg::{Error, Session};

/// A claimed job, as the handler gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Id as text, whatever its type; stable over attempts: the idempotency key of effects.
    pub id: String,
    /// What fences this claim.
    pub token: String,
    /// Type or topic.
    pub job_type: String,
    /// The work, raw as stored (JSON text); not cleaned.
    pub payload: String,
    /// Message key, where the table has one.
    pub key: Option<String>,
    /// Number of this attempt from 1, where the table counts them.
    pub attempt: Option<i64>,
    /// Attempts allowed.
    pub max_attempts: Option<i64>,
    /// When the lease ends, by the server's clock.
    pub expires: Option<DateTime<Utc>>,
    /// Whether it was taken over from a holder whose lease had expired.
    pub was_expired: bool,
    /// Whether it became due by time (scheduled, or a retry): no wake-up could be expected for it.
    pub timed: bool,
}

/// What one claim brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    /// The jobs, in due order.
    pub jobs: Vec<Job>,
    /// Jobs whose lease expired on their last attempt: marked failed, not run.
    pub gave_up: u64,
}

/// The head of the due order, seen without locking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Earliest {
    /// Rows are due, but a claim did not get them: others hold them locked at this moment.
    DueNow,
    /// The next row is due after this time.
    In(Duration),
    /// Nothing waits and nothing is held.
    Nothing,
}

impl Ledger {
    /// Claims up to `limit` due jobs for `holder`.
    ///
    /// # Errors
    /// The server's refusal or the loss of the session; nothing is claimed then, or it comes back when the
    /// lease ends.
    pub async fn claim(
        &self,
        session: &Session,
        holder: &str,
        limit: usize,
        lease: Duration,
    ) -> Result<Claim, Error> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = session
            .query(
                &self.inner.sql.claim,
                &[(&limit, Type::INT8), (&holder, Type::TEXT), (&lease.as_secs_f64(), Type::FLOAT8)],
                DEADLINE,
            )
            .await?;
        let mut claim = Claim::default();
        let mut ordered = Vec::with_capacity(rows.len());
        for row in rows {
            claim.gave_up = u64::try_from(row.get::<_, i64>(11)).unwrap_or(0);
            let Some(id) = row.get::<_, Option<String>>(0) else { continue };
            let attempts: Option<i64> = row.get(5);
            let job = Job {
                id,
                token: row.get(1),
                job_type: row.get::<_, Option<String>>(2).unwrap_or_default(),
                payload: row.get::<_, Option<String>>(3).unwrap_or_default(),
                key: row.get(4),
                // Counted at the claim the number is this attempt; counted at failures it is those before.
                attempt: match self.inner.profile.attempts_count {
                    crate::profile::AttemptsCount::Claims => attempts,
                    crate::profile::AttemptsCount::Failures => attempts.map(|a| a + 1),
                },
                max_attempts: row.get(6),
                expires: row.get(7),
                was_expired: row.get::<_, Option<bool>>(8).unwrap_or(false),
                timed: row.get::<_, Option<bool>>(9).unwrap_or(false),
            };
            ordered.push((row.get::<_, Option<f64>>(10).unwrap_or(0.0), job));
        }
        ordered.sort_by(|a, b| a.0.total_cmp(&b.0));
        claim.jobs = ordered.into_iter().map(|(_, job)| job).collect();
        Ok(claim)
    }

    /// What stands at the head of the due order, without locking anything: tells an empty ledger from
    /// rows that others hold, and when to look again.
    ///
    /// # Errors
    /// As any statement.
    pub async fn earliest(&self, session: &Session) -> Result<Earliest, Error> {
        let rows = session.query(&self.inner.sql.earliest, &[], DEADLINE).await?;
        Ok(match rows.first().map(|r| r.get::<_, f64>(0)) {
            None => Earliest::Nothing,
            Some(seconds) if seconds <= 0.0 => Earliest::DueNow,
            Some(seconds) => Earliest::In(Duration::from_secs_f64(seconds.min(86_400.0))),
        })
    }
}
