//! Ending what a session does, or the session.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_postgres::types::Type;

use crate::model::Ending;
use crate::pg::{Error, Session};

/// The server only sends a signal: that takes no time.
const DEADLINE: Duration = Duration::from_secs(5);

/// Pids are used again: without the start of the session that was seen, another could be hit. It is null
/// where it is hidden from this role.
fn sql(how: Ending) -> String {
    let function = match how {
        Ending::Cancel => "pg_cancel_backend",
        Ending::Terminate => "pg_terminate_backend",
    };
    format!(
        "select {function}(a.pid) from pg_stat_activity a \
         where a.pid = $1 and a.backend_start is not distinct from $2 and a.pid <> pg_backend_pid()"
    )
}

/// Sends the signal; `None` when that session is no longer there, otherwise what the function returned.
pub(super) async fn end(
    session: &Session,
    how: Ending,
    pid: i32,
    started: Option<DateTime<Utc>>,
) -> Result<Option<bool>, Error> {
    let params: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
        [(&pid, Type::INT4), (&started, Type::TIMESTAMPTZ)];
    let rows = session.query(&sql(how), &params, DEADLINE).await?;
    Ok(rows.first().map(|row| row.get(0)))
}
