//! What the monitor reads: capped counts, the edges of the due order, and leases.

use chrono::{DateTime, Utc};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::{DEADLINE, Ledger};
use crate::pg::{Error, Session};
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

/// Rows of a statement of ours, pipelined: no wait between them when awaited together.
pub(super) async fn rows(
    session: &Session,
    sql: &str,
    params: &[(&(dyn ToSql + Sync), Type)],
) -> Result<Vec<Row>, Error> {
    session.query(sql, params, DEADLINE).await
}

impl Ledger {
    /// Jobs per state, each up to `cap`, of one snapshot.
    ///
    /// # Errors
    /// As any statement; the session's own statement_timeout bounds it.
    pub async fn counts(&self, session: &Session, cap: i64) -> Result<CappedCounts, Error> {
        let rows = rows(session, &self.inner.sql.counts, &[(&(cap + 1), Type::INT8)]).await?;
        let at = |i: usize| under_cap(rows.first().map_or(0, |r| r.get(i)), cap);
        Ok(CappedCounts { ready: at(0), scheduled: at(1), running: at(2), expired: at(3), failed: at(4) })
    }

    /// Expired leases of one holder, or of all, up to `cap`: the dry run of a bulk release.
    ///
    /// # Errors
    /// As any statement.
    pub async fn count_expired_of(
        &self,
        session: &Session,
        holder: Option<&str>,
        cap: i64,
    ) -> Result<(u64, bool), Error> {
        let rows = rows(
            session,
            &self.inner.sql.count_expired_of,
            &[(&(cap + 1), Type::INT8), (&holder, Type::TEXT)],
        )
        .await?;
        Ok(under_cap(rows.first().map_or(0, |r| r.get(0)), cap))
    }

    /// Age of the oldest ready job in seconds, since it became due; `None` when nothing is ready.
    ///
    /// # Errors
    /// As any statement.
    pub async fn oldest_ready(&self, session: &Session) -> Result<Option<f64>, Error> {
        Ok(rows(session, &self.inner.sql.oldest_ready, &[]).await?.first().map(|r| r.get(0)))
    }

    /// Seconds until the next scheduled job; `None` when nothing is scheduled.
    ///
    /// # Errors
    /// As any statement.
    pub async fn next_scheduled(&self, session: &Session) -> Result<Option<f64>, Error> {
        Ok(rows(session, &self.inner.sql.next_scheduled, &[]).await?.first().map(|r| r.get(0)))
    }

    /// Leases, earliest expiry first, at most `limit`.
    ///
    /// # Errors
    /// As any statement.
    pub async fn leases(&self, session: &Session, limit: i64) -> Result<Vec<LeaseRow>, Error> {
        let rows = rows(session, &self.inner.sql.leases, &[(&limit, Type::INT8)]).await?;
        Ok(rows.iter().map(lease).collect())
    }

    /// The row of one job, held or not; `None` when there is none.
    ///
    /// # Errors
    /// As any statement; also an id that the column's type does not take.
    pub async fn lease_of(&self, session: &Session, id: &str) -> Result<Option<LeaseRow>, Error> {
        let rows =
            rows(session, &self.inner.sql.lease_of, &[(&1_i64, Type::INT8), (&id, Type::TEXT)]).await?;
        Ok(rows.first().map(lease))
    }

    /// The last value of the sequence behind the id: differences tell how many jobs came in. `None` when
    /// the id has no sequence, or nothing was ever inserted.
    ///
    /// # Errors
    /// As any statement.
    pub async fn arrived(&self, session: &Session) -> Result<Option<i64>, Error> {
        let Some(sequence) = &self.inner.sequence else { return Ok(None) };
        let rows =
            rows(session, "select pg_sequence_last_value($1::text::regclass)", &[(sequence, Type::TEXT)])
                .await?;
        Ok(rows.first().and_then(|r| r.get(0)))
    }

    /// Whether the id has a sequence at all.
    pub fn has_sequence(&self) -> bool {
        self.inner.sequence.is_some()
    }
}

fn under_cap(n: i64, cap: i64) -> (u64, bool) {
    (u64::try_from(n.min(cap)).unwrap_or(0), n > cap)
}

fn lease(row: &Row) -> LeaseRow {
    let text = |i: usize| clean(&row.get::<_, Option<String>>(i).unwrap_or_default());
    LeaseRow {
        id: text(0),
        token: row.get::<_, Option<String>>(1).unwrap_or_default(),
        holder: text(2),
        job_type: text(3),
        expires: row.get(4),
        attempts: row.get(5),
        max_attempts: row.get(6),
        running: row.get(7),
        expired: row.get::<_, Option<bool>>(8).unwrap_or(false),
    }
}
