//! What is asked of the server besides the ledgers. Each statement fails alone.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::model::{NotifyLock, Session as Listed, SessionMark};
use crate::pg::{Error, Fields, Session};
use crate::text::{clean, without_literals};

/// Sessions listed at most.
const SESSIONS: i64 = 100;
/// Backends whose application_name is looked at for holders, at most.
const BACKENDS: i64 = 1000;

fn first(rows: Vec<Row>) -> Result<Row, Error> {
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

/// Client sessions and max_connections.
pub(super) async fn connections(session: &Session) -> Result<(i64, i64), Error> {
    let row = first(
        session
            .rows(
                "select (select count(*) from pg_stat_activity where backend_type = 'client backend'),
                    current_setting('max_connections')::bigint",
                &[],
            )
            .await?,
    )?;
    Ok((row.field(0)?, row.field(1)?))
}

/// The lock on which commits that notified queue up (manual: pg_locks; the object is database 0).
pub(super) async fn notify_lock(session: &Session) -> Result<NotifyLock, Error> {
    let row = first(
        session.rows("select min(pid) filter (where granted), count(*) filter (where not granted)
             from pg_locks
             where locktype = 'object' and classid = 'pg_database'::regclass and objid = 0 and database = 0",
            &[],
        )
        .await?,
    )?;
    Ok(NotifyLock { holder: row.field(0)?, waiters: u64::try_from(row.field::<i64>(1)?).unwrap_or(0) })
}

/// Sessions of this database with a long transaction, that probably listen, or that do not read. A listener
/// that proves itself with a heartbeat has another last statement; those of this program bear it in their
/// name.
pub(super) async fn sessions(session: &Session, long: Duration) -> Result<Vec<Listed>, Error> {
    let rows = session.rows("select pid, usename::text, application_name, state,
                case when wait_event is not null then wait_event_type || '/' || wait_event end,
                extract(epoch from now() - xact_start)::float8,
                left(query, 200), coalesce(query ilike 'listen%' or application_name like '%/listen%', false),
                coalesce(wait_event = 'ClientWrite' and (xact_start is not null or backend_xmin is not null), false)
         from pg_stat_activity
         where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
           and (xact_start < now() - make_interval(secs => $1) or query ilike 'listen%'
                or application_name like '%/listen%'
                or (wait_event = 'ClientWrite' and (xact_start is not null or backend_xmin is not null)))
         order by xact_start nulls last, pid
         limit $2",
        &[(&long.as_secs_f64(), Type::FLOAT8), (&SESSIONS, Type::INT8)],
    )
    .await?;
    let text = |row: &Row, i: usize| Ok::<_, Error>(row.field::<Option<&str>>(i)?.map(clean));
    rows.iter()
        .map(|row| {
            let transaction_age: Option<f64> = row.field(5)?;
            let marks = [
                (transaction_age.is_some_and(|a| a > long.as_secs_f64()), SessionMark::LongTransaction),
                (row.field(7)?, SessionMark::ProbableListener),
                (row.field(8)?, SessionMark::NotReading),
            ];
            Ok(Listed {
                pid: row.field(0)?,
                user: text(row, 1)?.unwrap_or_default(),
                application: text(row, 2)?.unwrap_or_default(),
                state: text(row, 3)?,
                wait: text(row, 4)?,
                transaction_age,
                // what they carry stays between them and the server
                query: row.field::<Option<&str>>(6)?.map(|q| clean(&without_literals(q))),
                marks: marks.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark).collect(),
            })
        })
        .collect()
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
