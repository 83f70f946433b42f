//! Giving held jobs back by hand: exactly what the person saw, audited and woken in the same transaction.

use chrono::{DateTime, Utc};
use tokio_postgres::types::Type;

use super::{DEADLINE, Ledger};
use crate::model::{Found, Lease};
use crate::pg::{Error, Fields, Session, sqlstate};
use crate::text::clean;

/// Jobs that one batch of a bulk release frees.
pub(super) const BATCH: i64 = 100;

/// Who releases, and why; written to `pgwake.releases` where the schema has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Operating system user and host.
    pub operator: String,
    /// In a person's words.
    pub reason: String,
}

/// How a release of one lease ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Release {
    /// Released.
    Freed,
    /// Nothing was done: this is there now.
    MovedOn(Found),
}

impl Ledger {
    /// Releases one lease if it still is as it was seen: id, token, expiry.
    ///
    /// # Errors
    /// As any statement; nothing is released then.
    pub async fn release(&self, session: &Session, seen: &Lease, audit: &Audit) -> Result<Release, Error> {
        let attempts = seen.attempts.and_then(|a| i32::try_from(a).ok());
        let name = self.name();
        let mut params: Vec<(&(dyn tokio_postgres::types::ToSql + Sync), Type)> =
            vec![(&seen.id, Type::TEXT), (&seen.token, Type::TEXT), (&seen.expires, Type::TIMESTAMPTZ)];
        if self.inner.sql.release.contains("$9") {
            params.extend_from_slice(&[
                (&audit.operator as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT),
                (&"one", Type::TEXT),
                (&audit.reason, Type::TEXT),
                (&name, Type::TEXT),
                (&seen.holder, Type::TEXT),
                (&attempts, Type::INT4),
            ]);
        }
        let freed = match session.one(&self.inner.sql.release, &params, DEADLINE).await {
            Ok(row) => row.get::<_, i64>(0),
            Err(e) if e.sqlstate() == Some(sqlstate::LOCK_NOT_AVAILABLE) => {
                return Ok(Release::MovedOn(Found::Locked));
            }
            Err(e) => return Err(e),
        };
        if freed == 1 {
            return Ok(Release::Freed);
        }
        Ok(Release::MovedOn(self.find(session, &seen.id, &seen.token).await?))
    }

    /// What stands in the ledger under this id now.
    ///
    /// # Errors
    /// As any statement.
    pub async fn find(&self, session: &Session, id: &str, token: &str) -> Result<Found, Error> {
        let rows = session.query(&self.inner.sql.find, &[(&id, Type::TEXT)], DEADLINE).await?;
        let Some(row) = rows.first() else { return Ok(Found::Gone) };
        if !row.get::<_, bool>(1) {
            let state: Option<String> = row.field(0)?;
            return Ok(Found::State { state: clean(state.as_deref().unwrap_or("without a state")) });
        }
        Ok(Found::Held {
            holder: clean(&row.get::<_, Option<String>>(2).unwrap_or_default()),
            expires: row.get::<_, Option<DateTime<Utc>>>(3),
            renewed: row.get::<_, Option<String>>(4).as_deref() == Some(token),
        })
    }

    /// Releases one batch of expired leases, of these holders or of all, oldest expiry first, passing over rows that others hold locked, so
    /// that it never waits for a worker that finishes the same jobs. Zero means there are none left to take.
    ///
    /// # Errors
    /// As any statement; the batch is then not released.
    pub async fn release_expired_batch(
        &self,
        session: &Session,
        holders: Option<&[String]>,
        audit: &Audit,
    ) -> Result<u64, Error> {
        let name = self.name();
        let mut params: Vec<(&(dyn tokio_postgres::types::ToSql + Sync), Type)> =
            vec![(&BATCH, Type::INT8), (&holders, Type::TEXT_ARRAY)];
        if self.inner.sql.release_expired.contains("$6") {
            params.extend_from_slice(&[
                (&audit.operator as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT),
                (&"all expired", Type::TEXT),
                (&audit.reason, Type::TEXT),
                (&name, Type::TEXT),
            ]);
        }
        let row = session.one(&self.inner.sql.release_expired, &params, DEADLINE).await?;
        Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or(0))
    }
}
