//! The load a worker looks at before it takes another budget.

use chrono::{DateTime, Utc};

use super::DEADLINE;
use crate::pg::{Error, Fields, Session};

/// A few figures of the server, cheap to read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// `pg_notification_queue_usage()`, 0–1.
    pub queue_usage: f64,
    /// Client sessions.
    pub connections: i64,
    /// `max_connections`.
    pub max_connections: i64,
}

/// The server's clock.
///
/// # Errors
/// As any statement.
pub async fn server_now(session: &Session) -> Result<DateTime<Utc>, Error> {
    session.one("select clock_timestamp()", &[], DEADLINE).await?.field(0)
}

/// Reads the load.
///
/// # Errors
/// As any statement.
pub async fn load(session: &Session) -> Result<Load, Error> {
    let row = session
        .one(
            "select pg_notification_queue_usage(),
                    (select count(*) from pg_stat_activity where backend_type = 'client backend'),
                    current_setting('max_connections')::bigint",
            &[],
            DEADLINE,
        )
        .await?;
    Ok(Load { queue_usage: row.field(0)?, connections: row.field(1)?, max_connections: row.field(2)? })
}
