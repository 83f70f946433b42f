//! What a throwaway server is told to do: nothing here is for a database that somebody needs.

use std::time::Duration;

use tokio_postgres::types::Type;

use super::DEADLINE;
use crate::pg::{Error, Fields, Session};
use crate::text::quote_ident;

/// A fresh database is a copy of a template, which takes its time on a busy disk.
const CREATE_WITHIN: Duration = Duration::from_secs(60);

/// Creates a database.
///
/// # Errors
/// As any statement.
pub async fn create_database(session: &Session, name: &str) -> Result<(), Error> {
    // Not in one batch: a database cannot be created inside a transaction, and a batch is one.
    session.batch("set statement_timeout = '60s'", DEADLINE).await?;
    session.batch(&format!("create database {}", quote_ident(name)), CREATE_WITHIN).await
}

/// Terminates every listen session of this program in this database, whoever runs it. Returns how many
/// were told to end.
///
/// # Errors
/// As any statement.
pub async fn terminate_listeners(session: &Session) -> Result<usize, Error> {
    let rows = session
        .query(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and right(application_name, 7) = '/listen'
               and pid <> pg_backend_pid()",
            &[],
            DEADLINE,
        )
        .await?;
    Ok(rows.iter().filter(|row| row.field(0).unwrap_or(false)).count())
}

/// Backend pids of the listen sessions of this program in this database, whoever runs it.
///
/// # Errors
/// As any statement.
pub async fn listeners(session: &Session) -> Result<Vec<i32>, Error> {
    let sql = "select pid from pg_stat_activity
               where datname = current_database() and right(application_name, 7) = '/listen'
                 and pid <> pg_backend_pid()
               order by pid limit 100";
    session.query(sql, &[], DEADLINE).await?.iter().map(|row| row.field(0)).collect()
}

/// Ends one session; `false` when there is none of this pid.
///
/// # Errors
/// As any statement.
pub async fn terminate(session: &Session, pid: i32) -> Result<bool, Error> {
    session.one("select pg_terminate_backend($1)", &[(&pid, Type::INT4)], DEADLINE).await?.field(0)
}

/// What a badly written listener does: it listens, and then begins a transaction that stays open. Until
/// that ends, the server keeps every notification that was sent since (manual: NOTIFY).
///
/// # Errors
/// As any statement.
pub async fn listen_in_transaction(session: &Session, channel: &str) -> Result<(), Error> {
    session.batch("set idle_in_transaction_session_timeout = 0", DEADLINE).await?;
    // In a transaction of its own: LISTEN begins at its commit.
    session.batch(&format!("listen {}", quote_ident(channel)), DEADLINE).await?;
    session.batch("begin", DEADLINE).await
}

/// Sends `n` different notifications of nearly the greatest length in one transaction, on a channel where
/// nobody listens: each fills most of a page of the server's notification queue.
///
/// # Errors
/// As any statement; a full queue among them.
pub async fn fill_queue(session: &Session, n: i64) -> Result<(), Error> {
    let sql =
        "select count(pg_notify('drill_ballast', rpad(i::text, 7900, '.'))) from generate_series(1, $1) i";
    session.query(sql, &[(&n, Type::INT8)], DEADLINE).await.map(drop)
}

/// For how long the work sessions of this program in this database have asked nothing, in seconds; `None`
/// when there is none.
///
/// # Errors
/// As any statement.
pub async fn idle_for(session: &Session) -> Result<Option<f64>, Error> {
    let sql = "select case when bool_and(state = 'idle') then
                   extract(epoch from clock_timestamp() - max(state_change))::float8 else 0 end
               from pg_stat_activity
               where datname = current_database() and application_name ~ '/work( |$)'
               having count(*) > 0";
    session.query(sql, &[], DEADLINE).await?.first().map_or(Ok(None), |row| row.field(0))
}

/// Ends every lease on `pgwake.jobs` now, as if its holder had stood still for so long. Returns how many.
///
/// # Errors
/// As any statement.
pub async fn expire_leases(session: &Session) -> Result<usize, Error> {
    let sql = "update pgwake.jobs set locked_until = now() where status = 'running' returning id";
    Ok(session.query(sql, &[], DEADLINE).await?.len())
}
