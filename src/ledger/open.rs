//! Resolving a profile against the catalog.

use tokio_postgres::types::Type;

use super::sql::{Statements, Types};
use super::{DEADLINE, Inner, Ledger};
use crate::pg::{Error, Fields, Session};
use crate::profile::{BUILTIN, Profile, builtin};
use crate::text::{clean, quote_ident};

/// Why a profile cannot serve here: one line that says what and what to do.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The profile does not fit the database.
    #[error("ledger {ledger}: {problem}")]
    Problem {
        /// Profile name.
        ledger: String,
        /// What is wrong.
        problem: Problem,
    },
    /// The catalog could not be read.
    #[error(transparent)]
    Pg(#[from] Error),
}

/// What is wrong between a profile and a database.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// No such schema.
    #[error("schema {schema} does not exist in database {database}; {todo}")]
    NoSchema {
        /// Quoted schema.
        schema: String,
        /// Database name.
        database: String,
        /// What to do.
        todo: String,
    },
    /// No such table.
    #[error("table {table} does not exist in database {database}; {todo}")]
    NoTable {
        /// Qualified, quoted table.
        table: String,
        /// Database name.
        database: String,
        /// What to do.
        todo: String,
    },
    /// The profile names columns that the table does not have.
    #[error("table {table} has no column {missing}; it has {has}")]
    NoColumn {
        /// Qualified, quoted table.
        table: String,
        /// The columns that are missing.
        missing: String,
        /// The columns that are there.
        has: String,
    },
    /// The role may not read it.
    #[error(
        "role {role} may not read {table}; ask for: grant usage on schema {schema} to {role}; grant select on {table} to {role}"
    )]
    NoGrant {
        /// Quoted role.
        role: String,
        /// Qualified, quoted table.
        table: String,
        /// Quoted schema.
        schema: String,
    },
}

impl Problem {
    /// Whether the table is simply not there, as against there and unusable.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::NoSchema { .. } | Self::NoTable { .. })
    }
}

/// Types are named for casts without a length: `character` alone would be cut to one character, which
/// `format_type(…, -1)` knows to call `bpchar`.
const CATALOG: &str = "\
select current_database()::text, current_user::text, n.oid is not null, c.oid is not null,
       coalesce(has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select'), false),
       coalesce(has_schema_privilege(n.oid, 'usage') and has_any_column_privilege(c.oid, 'update'), false),
       coalesce(has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'delete'), false),
       coalesce((select array_agg(a.attname::text order by a.attnum) from pg_attribute a
                 where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped), '{}'),
       coalesce((select array_agg(format_type(a.atttypid, -1) order by a.attnum) from pg_attribute a
                 where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped), '{}')
from (select 1) one
left join pg_namespace n on n.nspname = $1
left join pg_class c on c.relnamespace = n.oid and c.relname = $2 and c.relkind in ('r', 'p', 'v', 'f')";

const EXTRAS: &str = "\
select coalesce((select has_table_privilege(c.oid, 'insert') from pg_class c join pg_namespace n on n.oid = c.relnamespace
                 where n.nspname = 'pgwake' and c.relname = 'releases'
                   and has_schema_privilege(n.oid, 'usage')), false),
       coalesce((select has_table_privilege(c.oid, 'select') from pg_class c join pg_namespace n on n.oid = c.relnamespace
                 where n.nspname = 'pgwake' and c.relname = 'scratch'
                   and has_schema_privilege(n.oid, 'usage')), false),
       coalesce((select has_table_privilege(c.oid, 'insert') from pg_class c join pg_namespace n on n.oid = c.relnamespace
                 where n.nspname = 'pgwake' and c.relname = 'actions'
                   and has_schema_privilege(n.oid, 'usage')), false)";

impl Ledger {
    /// Checks every name of the profile against the catalog and builds its statements.
    ///
    /// # Errors
    /// [`LedgerError::Problem`] for a schema, table, column or grant that is missing.
    pub async fn open(session: &Session, profile: Profile) -> Result<Self, LedgerError> {
        let ledger = profile.name.clone();
        let fail = |problem| LedgerError::Problem { ledger: ledger.clone(), problem };
        let row = session
            .one(CATALOG, &[(&profile.schema, Type::TEXT), (&profile.table, Type::TEXT)], DEADLINE)
            .await?;
        let database = quote_ident(&clean(row.field(0)?));
        let role = quote_ident(&clean(row.field(1)?));
        let (has_schema, has_table, may_read): (bool, bool, bool) =
            (row.field(2)?, row.field(3)?, row.field(4)?);
        let (may_write, may_delete): (bool, bool) = (row.field(5)?, row.field(6)?);
        let (names, types): (Vec<String>, Vec<String>) = (row.field(7)?, row.field(8)?);
        let schema = clean(&quote_ident(&profile.schema));
        let table = clean(&profile.relation());
        let todo = if profile.schema == "pgwake" {
            "create it with: pgwake migrate".to_owned()
        } else {
            "check schema and table in the profile".to_owned()
        };
        if !has_schema {
            return Err(fail(Problem::NoSchema { schema, database, todo }));
        }
        if !has_table {
            return Err(fail(Problem::NoTable { table, database, todo }));
        }
        let missing: Vec<String> = profile
            .column_names()
            .into_iter()
            .filter(|c| !names.iter().any(|n| n == c))
            .map(|c| clean(&quote_ident(c)))
            .collect();
        if !missing.is_empty() {
            let has = names.iter().map(|n| clean(n)).collect::<Vec<_>>().join(", ");
            return Err(fail(Problem::NoColumn { table, missing: missing.join(", "), has }));
        }
        if !may_read {
            return Err(fail(Problem::NoGrant { role, table, schema }));
        }
        let type_of = |column: &str| {
            names.iter().position(|n| n == column).and_then(|i| types.get(i)).cloned().unwrap_or_default()
        };
        let extras = session.one(EXTRAS, &[], DEADLINE).await?;
        let (audit, has_scratch, audit_actions): (bool, bool, bool) =
            (extras.field(0)?, extras.field(1)?, extras.field(2)?);
        let relation = profile.relation();
        let scratch = has_scratch
            && session
                .one(
                    "select exists (select 1 from pgwake.scratch where relation = $1)",
                    &[(&relation, Type::TEXT)],
                    DEADLINE,
                )
                .await?
                .get::<_, bool>(0);
        // The identity or serial sequence behind the id: its last value tells how many came in, without
        // counting. A profile whose id has none simply has no arrival rate.
        let sequence = session
            .one(
                "select pg_get_serial_sequence($1, $2)",
                &[(&relation, Type::TEXT), (&profile.columns.id, Type::TEXT)],
                DEADLINE,
            )
            .await
            .ok()
            .and_then(|row| row.get::<_, Option<String>>(0));
        let types = Types {
            id: type_of(&profile.columns.id),
            status: type_of(&profile.columns.status),
            audit,
            audit_actions,
        };
        let sql = Statements::build(&profile, &types);
        let inner = Inner { profile, sql, scratch, may_write, may_delete, sequence };
        Ok(Self { inner: std::sync::Arc::new(inner) })
    }
}

/// The ledgers of the given profiles, in their order; of no profiles, all that [`detect`] finds.
///
/// # Errors
/// A profile that does not fit.
pub async fn open_all(session: &Session, profiles: &[Profile]) -> Result<Vec<Ledger>, LedgerError> {
    if profiles.is_empty() {
        return detect(session).await;
    }
    let mut ledgers = Vec::with_capacity(profiles.len());
    for profile in profiles {
        ledgers.push(Ledger::open(session, profile.clone()).await?);
    }
    Ok(ledgers)
}

/// Every built-in profile whose table exists here, in order of the profiles.
///
/// # Errors
/// A catalog that cannot be read, or a table of the schema `pgwake` that is there but unusable. A table
/// elsewhere that merely has the name is somebody else's and is passed over.
pub async fn detect(session: &Session) -> Result<Vec<Ledger>, LedgerError> {
    let mut found = Vec::new();
    for (name, _) in BUILTIN {
        let Some(Ok(profile)) = builtin(name) else { continue };
        let ours = profile.schema == "pgwake";
        match Ledger::open(session, profile).await {
            Ok(ledger) => found.push(ledger),
            Err(LedgerError::Problem { problem, .. }) if problem.is_absent() || !ours => {}
            Err(e) => return Err(e),
        }
    }
    Ok(found)
}
