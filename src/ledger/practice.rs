//! What a throwaway server is told to do: nothing here is for a database that somebody needs.

use std::time::Duration;

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
