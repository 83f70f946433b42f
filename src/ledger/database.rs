//! A database for practice.

use super::DEADLINE;
use crate::pg::{Error, Session};
use crate::text::quote_ident;

/// Creates a database on a throwaway server.
///
/// # Errors
/// As any statement.
pub async fn create_database(session: &Session, name: &str) -> Result<(), Error> {
    session.batch(&format!("create database {}", quote_ident(name)), DEADLINE).await
}
