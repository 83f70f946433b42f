//! Ledgers for practice, on which handlers that do no work may mark jobs as done.

use tokio_postgres::types::Type;

use super::{DEADLINE, Ledger};
use crate::pg::{Error, Session};

/// Why a ledger was not marked.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// It holds rows: they may be real work.
    #[error(
        "ledger {0} is not empty; a scratch mark lets practice handlers mark its jobs as done, so it is \
         given to empty ledgers only"
    )]
    NotEmpty(String),
    /// The server refused.
    #[error(transparent)]
    Pg(#[from] Error),
}

/// Marks a ledger as scratch. It must be empty, or marked already.
///
/// # Errors
/// [`ScratchError::NotEmpty`], or the server's refusal.
pub async fn mark_scratch(session: &Session, ledger: &Ledger) -> Result<(), ScratchError> {
    if ledger.is_scratch() {
        return Ok(());
    }
    let relation = ledger.profile().relation();
    // One statement: what it finds empty it marks.
    let marked =
        session.query(&ledger.inner.sql.mark_scratch, &[(&relation, Type::TEXT)], DEADLINE).await?;
    if marked.is_empty() {
        return Err(ScratchError::NotEmpty(ledger.name().to_owned()));
    }
    Ok(())
}
