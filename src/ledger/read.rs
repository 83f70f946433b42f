//! What the monitor reads: capped counts, the edges of the due order, and leases.

use chrono::{DateTime, Utc};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use super::Ledger;
use crate::pg::{Error, Fields, Session};
use crate::text::clean;

/// A lease as it stands in the table.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseRow {
    /// Job id as text.
    pub id: String,
    /// Fence.
    pub token: String,
    /// Holder, cleaned.
    pub holder: String,
    /// Type or topic, cleaned.
    pub job_type: String,
    /// Expiry unless infinite.
    pub expires: Option<DateTime<Utc>>,
    /// Attempts so far.
    pub attempts: Option<i64>,
    /// Attempts allowed.
    pub max_attempts: Option<i64>,
    /// Whether the row is held at all.
    pub running: bool,
    /// Whether it is held past its expiry, by the server's clock.
    pub expired: bool,
}

/// Jobs per state: a number, and whether there are more than that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CappedCounts {
    /// Due now and not held.
    pub ready: (u64, bool),
    /// Due later.
    pub scheduled: (u64, bool),
    /// Held, expired leases included.
    pub running: (u64, bool),
    /// Held past the expiry.
    pub expired: (u64, bool),
    /// Gave up.
    pub failed: (u64, bool),
}

impl Ledger {
    /// Jobs per state, each up to `cap`, of one snapshot.
    ///
    /// # Errors
    /// As any statement; the session's own statement_timeout bounds it.
    pub async fn counts(&self, session: &Session, cap: i64) -> Result<CappedCounts, Error> {
        let rows = session.rows(&self.inner.sql.counts, &[(&(cap + 1), Type::INT8)]).await?;
        let at = |i: usize| Ok::<_, Error>(under_cap(first(&rows, i)?.unwrap_or(0), cap));
        Ok(CappedCounts {
            ready: at(0)?,
            scheduled: at(1)?,
            running: at(2)?,
            expired: at(3)?,
            failed: at(4)?,
        })
    }

    /// Expired leases of these holders, or of all, up to `cap`: the dry run of a bulk release.
    ///
    /// # Errors
    /// As any statement.
    pub async fn count_expired_of(
        &self,
        session: &Session,
        holders: Option<&[String]>,
        cap: i64,
    ) -> Result<(u64, bool), Error> {
        let rows = session
            .rows(
                &self.inner.sql.count_expired_of,
                &[(&(cap + 1), Type::INT8), (&holders, Type::TEXT_ARRAY)],
            )
            .await?;
        Ok(under_cap(first(&rows, 0)?.unwrap_or(0), cap))
    }

    /// Age of the oldest ready job in seconds, since it became due; `None` when nothing is ready.
    ///
    /// # Errors
    /// As any statement.
    pub async fn oldest_ready(&self, session: &Session) -> Result<Option<f64>, Error> {
        first(&session.rows(&self.inner.sql.oldest_ready, &[]).await?, 0)
    }

    /// Seconds until the next scheduled job; `None` when nothing is scheduled.
    ///
    /// # Errors
    /// As any statement.
    pub async fn next_scheduled(&self, session: &Session) -> Result<Option<f64>, Error> {
        first(&session.rows(&self.inner.sql.next_scheduled, &[]).await?, 0)
    }

    /// Leases, earliest expiry first, at most `limit`.
    ///
    /// # Errors
    /// As any statement.
    pub async fn leases(&self, session: &Session, limit: i64) -> Result<Vec<LeaseRow>, Error> {
        let rows = session.rows(&self.inner.sql.leases, &[(&limit, Type::INT8)]).await?;
        rows.iter().map(lease).collect()
    }

    /// The row of one job, held or not; `None` when there is none.
    ///
    /// # Errors
    /// As any statement; also an id that the column's type does not take.
    pub async fn lease_of(&self, session: &Session, id: &str) -> Result<Option<LeaseRow>, Error> {
        let rows =
            session.rows(&self.inner.sql.lease_of, &[(&1_i64, Type::INT8), (&id, Type::TEXT)]).await?;
        rows.first().map(lease).transpose()
    }

    /// The last value of the sequence behind the id: differences tell how many jobs came in. `None` when
    /// the id has no sequence, or nothing was ever inserted.
    ///
    /// # Errors
    /// As any statement.
    pub async fn arrived(&self, session: &Session) -> Result<Option<i64>, Error> {
        let Some(sequence) = &self.inner.sequence else { return Ok(None) };
        let rows = session
            .rows("select pg_sequence_last_value($1::text::regclass)", &[(sequence, Type::TEXT)])
            .await?;
        Ok(first(&rows, 0)?.flatten())
    }

    /// Whether the id has a sequence at all.
    pub fn has_sequence(&self) -> bool {
        self.inner.sequence.is_some()
    }
}

fn under_cap(n: i64, cap: i64) -> (u64, bool) {
    (u64::try_from(n.min(cap)).unwrap_or(0), n > cap)
}

/// A value of the first row, when there is one.
fn first<'a, T: FromSql<'a>>(rows: &'a [Row], at: usize) -> Result<Option<T>, Error> {
    rows.first().map(|row| row.field(at)).transpose()
}

fn lease(row: &Row) -> Result<LeaseRow, Error> {
    let text = |i: usize| Ok::<_, Error>(clean(row.field::<Option<&str>>(i)?.unwrap_or_default()));
    Ok(LeaseRow {
        id: text(0)?,
        token: row.field::<Option<String>>(1)?.unwrap_or_default(),
        holder: text(2)?,
        job_type: text(3)?,
        expires: row.field(4)?,
        attempts: row.field(5)?,
        max_attempts: row.field(6)?,
        running: row.field::<Option<bool>>(7)?.unwrap_or(false),
        expired: row.field::<Option<bool>>(8)?.unwrap_or(false),
    })
}
