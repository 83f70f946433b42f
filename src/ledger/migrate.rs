//! Creating and upgrading the schema `pgwake` (refinery).

use tokio_postgres::types::Type;

use super::DEADLINE;
use crate::pg::{Error, Session};
use crate::text::clean;

mod embedded {
    refinery::embed_migrations!("migrations");
}

/// Where refinery keeps its history.
const HISTORY: &str = "pgwake.schema_history";

/// Serialises migrators: two at once would both try to create the same tables. An arbitrary constant.
const LOCK: i64 = 0x7067_7761_6b65;

/// What a migration did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Migrated {
    /// Names of the migrations applied now.
    pub applied: Vec<String>,
    /// The version the schema is at.
    pub version: i64,
}

/// Every migration as (file name, SQL), in order.
pub fn migrations() -> Vec<(String, String)> {
    embedded::migrations::runner()
        .get_migrations()
        .iter()
        .map(|m| (format!("V{}__{}.sql", m.version(), m.name()), m.sql().unwrap_or_default().to_owned()))
        .collect()
}

/// Brings the schema to the newest version; a no-op when it is there.
///
/// # Errors
/// The server's refusal. Migrations run in one transaction: all or none.
pub async fn migrate(session: &mut Session) -> Result<Migrated, Error> {
    // Let go with the session if the process dies.
    session.query("select pg_advisory_lock($1)", &[(&LOCK, Type::INT8)], DEADLINE).await?;
    let outcome = run(session).await;
    let _ = session.query("select pg_advisory_unlock($1)", &[(&LOCK, Type::INT8)], DEADLINE).await;
    outcome
}

async fn run(session: &mut Session) -> Result<Migrated, Error> {
    session.batch("create schema if not exists pgwake", DEADLINE).await?;
    let mut runner = embedded::migrations::runner().set_grouped(true);
    runner.set_migration_table_name(HISTORY);
    let report = runner.run_async(session.client_mut()).await.map_err(|e| migration_error(&e))?;
    let applied: Vec<String> =
        report.applied_migrations().iter().map(|m| format!("V{} {}", m.version(), m.name())).collect();
    let row = session.one("select max(version)::bigint from pgwake.schema_history", &[], DEADLINE).await?;
    Ok(Migrated { applied, version: row.get::<_, Option<i64>>(0).unwrap_or(0) })
}

fn migration_error(e: &refinery::Error) -> Error {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(e);
    while let Some(inner) = source {
        if let Some(pg) = inner.downcast_ref::<tokio_postgres::Error>() {
            return Error::Statement(crate::pg::loss_of(pg));
        }
        source = inner.source();
    }
    Error::Statement(crate::model::Loss {
        sqlstate: Some("XX000".to_owned()),
        message: clean(&e.to_string()),
    })
}
