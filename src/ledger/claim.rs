//! Taking due jobs: one short statement that stamps a lease on up to N of them.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{DEADLINE, Ledger};
use crate::model::ScanReason;
use crate::pg::{Arg, Error, Session};

/// A claimed job, as the handler gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name of the ledger it is from.
    pub ledger: String,
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
    /// Why the worker looked, where a worker claimed it.
    pub reason: Option<ScanReason>,
}

/// What one claim brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    /// The jobs, in due order.
    pub jobs: Vec<Job>,
    /// Jobs whose lease expired on their last attempt: marked failed, not run.
    pub gave_up: u64,
    /// The latest time at which one of the jobs was due.
    pub last_due: Mark,
}

/// A place in the due order, as seconds since 1970 by the server's clock. A hint, like a wake-up: what was
/// committed late with an earlier due time stands below it, and is found by a scan from the head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark(f64);

impl Mark {
    /// Before everything.
    pub const HEAD: Self = Self(f64::NEG_INFINITY);

    /// The later of two.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// So much earlier.
    #[must_use]
    pub fn less(self, slack: Duration) -> Self {
        Self(self.0 - slack.as_secs_f64())
    }
}

impl Default for Mark {
    fn default() -> Self {
        Self::HEAD
    }
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
    /// Claims up to `limit` due jobs for `holder`, from the head of the due order.
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
        self.claim_from(session, holder, limit, lease, Mark::HEAD).await
    }

    /// Claims from a mark: jobs that were due before it are not looked at.
    ///
    /// # Errors
    /// As [`Ledger::claim`].
    pub async fn claim_from(
        &self,
        session: &Session,
        holder: &str,
        limit: usize,
        lease: Duration,
        mark: Mark,
    ) -> Result<Claim, Error> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let args =
            [Arg::Int(limit), Arg::Text(holder), Arg::Float(lease.as_secs_f64()), Arg::Float(mark.0)];
        let lines = session.kept(&self.inner.sql.claim, &args, DEADLINE).await?;
        let mut claim = Claim::default();
        let mut ordered = Vec::with_capacity(lines.len());
        for line in &lines {
            claim.gave_up = line.number(11).unwrap_or(0);
            let (Some(id), Some(token)) = (line.cell(0), line.cell(1)) else { continue };
            let text = |i: usize| line.cell(i).map(str::to_owned);
            let attempts: Option<i64> = line.number(5);
            let job = Job {
                ledger: self.name().to_owned(),
                id: id.to_owned(),
                token: token.to_owned(),
                job_type: text(2).unwrap_or_default(),
                payload: text(3).unwrap_or_default(),
                key: text(4),
                // Counted at the claim the number is this attempt; counted at failures it is those before.
                attempt: match self.inner.profile.attempts_count {
                    crate::profile::AttemptsCount::Claims => attempts,
                    crate::profile::AttemptsCount::Failures => attempts.map(|a| a + 1),
                },
                max_attempts: line.number(6),
                expires: line.number(7).and_then(from_epoch),
                was_expired: line.is_true(8),
                timed: line.is_true(9),
                reason: None,
            };
            let due: f64 = line.number(10).unwrap_or(f64::NEG_INFINITY);
            claim.last_due = claim.last_due.max(Mark(due));
            ordered.push((due, job));
        }
        ordered.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| by_id(&a.1.id, &b.1.id)));
        claim.jobs = ordered.into_iter().map(|(_, job)| job).collect();
        Ok(claim)
    }

    /// What stands at the head of the due order, without locking anything: tells an empty ledger from
    /// rows that others hold, and when to look again.
    ///
    /// # Errors
    /// As any statement.
    pub async fn earliest(&self, session: &Session) -> Result<Earliest, Error> {
        self.earliest_from(session, Mark::HEAD).await
    }

    /// The same from a mark.
    ///
    /// # Errors
    /// As any statement.
    pub async fn earliest_from(&self, session: &Session, mark: Mark) -> Result<Earliest, Error> {
        let lines = session.kept(&self.inner.sql.earliest, &[Arg::Float(mark.0)], DEADLINE).await?;
        Ok(match lines.first().map(|line| line.number::<f64>(0).unwrap_or(0.0)) {
            None => Earliest::Nothing,
            Some(seconds) if seconds <= 0.0 => Earliest::DueNow,
            Some(seconds) => Earliest::In(Duration::from_secs_f64(seconds.min(86_400.0))),
        })
    }
}

/// Ids as numbers where they are numbers; ids of one length as text otherwise.
pub(crate) fn by_id(a: &str, b: &str) -> std::cmp::Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// Seconds since 1970 as a date; `None` for the infinities and what the calendar does not hold.
pub(super) fn from_epoch(seconds: f64) -> Option<DateTime<Utc>> {
    if !seconds.is_finite() {
        return None;
    }
    DateTime::from_timestamp_micros((seconds * 1e6).round() as i64)
}
