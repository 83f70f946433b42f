//! The effects of a drill's jobs, in a table: what was attempted, and what was applied, once for each key,
//! as a reader with an idempotency key does. On scratch databases only.

use tokio_postgres::types::Type;

use super::DEADLINE;
use crate::pg::{Error, Fields, Session};

/// What the effects table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EffectCount {
    /// Effects sent, each time it was tried.
    pub attempted: u64,
    /// Effects applied: one for each key, however often it was sent.
    pub applied: u64,
}

/// Creates the empty tables.
///
/// # Errors
/// As any statement; tables that exist among them.
pub async fn create_effects(session: &Session) -> Result<(), Error> {
    session
        .batch(
            "create schema drill;
             create table drill.attempts (id bigint generated always as identity primary key, key text not null);
             create table drill.effects (key text primary key)",
            DEADLINE,
        )
        .await
}

/// Sends an effect: every attempt is noted, and the first one of its key is applied.
///
/// # Errors
/// As any statement; neither is recorded then, unless the answer alone was lost.
pub async fn send_effect(session: &Session, key: &str) -> Result<(), Error> {
    session
        .query(
            "with sent as (insert into drill.attempts (key) values ($1) returning key)
             insert into drill.effects select key from sent on conflict do nothing",
            &[(&key, Type::TEXT)],
            DEADLINE,
        )
        .await
        .map(drop)
}

/// Notes an attempt that has no effect: its handler failed.
///
/// # Errors
/// As any statement.
pub async fn note_attempt(session: &Session, key: &str) -> Result<(), Error> {
    session
        .query("insert into drill.attempts (key) values ($1)", &[(&key, Type::TEXT)], DEADLINE)
        .await
        .map(drop)
}

/// What was attempted and applied so far.
///
/// # Errors
/// As any statement.
pub async fn effects(session: &Session) -> Result<EffectCount, Error> {
    let sql = "select (select count(*) from drill.attempts), (select count(*) from drill.effects)";
    let row = session.one(sql, &[], DEADLINE).await?;
    let number = |i| row.field::<i64>(i).map(|n| u64::try_from(n).unwrap_or(0));
    Ok(EffectCount { attempted: number(0)?, applied: number(1)? })
}
