//! What is asked of the server besides the ledgers. Each statement fails alone.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::locks::HIDDEN;
use crate::model::Hidden;
use crate::pg::{Error, Fields, Session};
use crate::text::{clean, quote_ident};

/// Backends whose application_name is looked at for holders, at most.
const BACKENDS: i64 = 1000;

pub(super) fn first(rows: Vec<Row>) -> Result<Row, Error> {
    rows.into_iter().next().ok_or_else(|| {
        Error::Statement(crate::model::Loss {
            sqlstate: Some("02000".into()),
            message: "no row came back".into(),
        })
    })
}

/// The server's clock and whether it is in recovery.
pub(super) async fn clock(session: &Session) -> Result<(DateTime<Utc>, bool), Error> {
    let row = first(session.rows("select now(), pg_is_in_recovery()", &[]).await?)?;
    Ok((row.field(0)?, row.field(1)?))
}

/// Version text, version number, in recovery, read-only by default for others.
pub(super) async fn server(session: &Session) -> Result<(String, i32, bool), Error> {
    let row = first(
        session.rows("select current_setting('server_version'), current_setting('server_version_num')::int, pg_is_in_recovery()",
            &[],
        )
        .await?,
    )?;
    let version: String = row.field(0)?;
    let short = version.split_whitespace().next().unwrap_or_default();
    Ok((clean(short), row.field(1)?, row.field(2)?))
}

/// Limits of every probe: its own statement_timeout, and a lock_timeout so short that a pass over a
/// table locked by ALTER stays short, too. A LIMIT bounds an index scan, but neither a bitmap scan, which
/// reads every match of the index first, nor a sequential scan that finds few matches: on this session
/// the planner takes them only where nothing else is possible.
pub(super) async fn limits(session: &Session, probe: Duration) -> Result<(), Error> {
    let ms = probe.as_millis();
    let lock = (ms / 5).max(20);
    session
        .batch(
            &format!(
                "set statement_timeout = {ms}; set lock_timeout = {lock}; \
                 set enable_bitmapscan = off; set enable_seqscan = off"
            ),
            Duration::from_secs(5),
        )
        .await
}

/// `pg_notification_queue_usage()`: share of the server's notification queue in use. Asking also makes
/// the server move the queue's tail on.
pub(super) async fn queue_usage(session: &Session) -> Result<f64, Error> {
    first(session.rows("select pg_notification_queue_usage()", &[]).await?)?.field(0)
}

/// Client sessions and max_connections; and how many sessions are hidden from this role, with its name.
/// Without pg_read_all_stats the kind of other roles' backends is hidden too: those that are in a database
/// under a role are counted.
pub(super) async fn connections(session: &Session) -> Result<((i64, i64), Hidden), Error> {
    let row = first(
        session
            .rows(
                "select count(*) filter (where backend_type = 'client backend'
                           or (backend_type is null and usesysid is not null and datid is not null)),
                        current_setting('max_connections')::bigint,
                        count(*) filter (where query = $1), current_user::text
                 from pg_stat_activity",
                &[(&HIDDEN, Type::TEXT)],
            )
            .await?,
    )?;
    let sessions = u64::try_from(row.field::<i64>(2)?).unwrap_or(0);
    let hidden = Hidden { sessions, role: quote_ident(&clean(row.field(3)?)) };
    Ok(((row.field(0)?, row.field(1)?), hidden))
}

/// application_name and pid of this database's sessions: a holder whose name is there has a backend.
pub(super) async fn backends(session: &Session) -> Result<Vec<(String, i32)>, Error> {
    let rows = session
        .rows(
            "select application_name, pid from pg_stat_activity
         where datname = current_database() and backend_type = 'client backend' and application_name <> ''
         limit $1",
            &[(&BACKENDS, Type::INT8)],
        )
        .await?;
    rows.iter().map(|r| Ok((clean(r.field(0)?), r.field(1)?))).collect()
}
