//! What a throwaway server is told to do: nothing here is for a database that somebody needs.

use std::time::Duration;

use tokio_postgres::types::{ToSql, Type};

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

/// Lets nobody into a database but its owner and superusers.
///
/// # Errors
/// As any statement.
pub async fn close_to_others(session: &Session, name: &str) -> Result<(), Error> {
    session.batch(&format!("revoke all on database {} from public", quote_ident(name)), DEADLINE).await
}

/// Lets nobody into a database any more, ends the sessions of this role there, and drops it, unless it is
/// gone already.
///
/// # Errors
/// As any statement; 55006 while sessions are still there.
pub async fn drop_database(session: &Session, name: &str) -> Result<(), Error> {
    let there = "select 1 from pg_database where datname = $1";
    if session.query(there, &[(&name, Type::TEXT)], DEADLINE).await?.is_empty() {
        return Ok(());
    }
    let quoted = quote_ident(name);
    session.batch("set statement_timeout = '60s'", DEADLINE).await?;
    session.batch(&format!("alter database {quoted} allow_connections false"), DEADLINE).await?;
    let end = "select pg_terminate_backend(pid) from pg_stat_activity
               where datname = $1 and usename = current_user and pid <> pg_backend_pid()";
    session.query(end, &[(&name, Type::TEXT)], DEADLINE).await?;
    // Waits for up to 5 s until they are gone.
    session.batch(&format!("drop database if exists {quoted}"), CREATE_WITHIN).await
}

/// What a server is asked before anything is created on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// `server_version_num`.
    pub version: i32,
    /// In recovery: nothing can be written.
    pub is_standby: bool,
    /// Whether this role may create databases.
    pub may_create: bool,
}

/// Looks at the server.
///
/// # Errors
/// As any statement.
pub async fn host(session: &Session) -> Result<Host, Error> {
    let sql = "select current_setting('server_version_num')::int, pg_is_in_recovery(),
                      coalesce((select rolsuper or rolcreatedb from pg_roles where rolname = current_user), false)";
    let row = session.one(sql, &[], DEADLINE).await?;
    Ok(Host { version: row.field(0)?, is_standby: row.field(1)?, may_create: row.field(2)? })
}

/// Whether two sessions of ours are not two sessions of the server: something in between hands the
/// server's sessions around between transactions, and `listen` is lost in it.
///
/// # Errors
/// As any statement.
pub async fn are_pooled(one: &Session, other: &Session) -> Result<bool, Error> {
    let pid = async |s: &Session| -> Result<i32, Error> {
        s.one("select pg_backend_pid()", &[], DEADLINE).await?.field(0)
    };
    // While the other one is in a transaction, what it holds cannot be handed on.
    let before = pid(one).await?;
    other.batch("begin", DEADLINE).await?;
    let theirs = pid(other).await?;
    let after = pid(one).await?;
    other.batch("rollback", DEADLINE).await?;
    Ok(theirs == before || before != after || before != one.pid())
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

/// Lets a session wait, or stand still, for as long as it takes.
const FOR_LONG: &str =
    "set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = 0";
/// Longer than anybody watches.
const ALL_NIGHT: Duration = Duration::from_secs(24 * 3600);

/// From now on commits that are to be synchronous wait for a standby that does not exist, or again for none. Those
/// of sessions with `synchronous_commit = local` never wait.
///
/// # Errors
/// As any statement.
pub async fn wait_for_a_standby(session: &Session, wait: bool) -> Result<(), Error> {
    let names = if wait { "= 'nobody'" } else { "to default" };
    // Not in one batch: this cannot be done inside a transaction.
    session.batch(&format!("alter system set synchronous_standby_names {names}"), DEADLINE).await?;
    session.batch("select pg_reload_conf()", DEADLINE).await
}

/// Adds a job with its wake-up in a commit that is to be synchronous: while it waits, it holds the lock on which all
/// commits that notified queue up.
///
/// # Errors
/// As any statement; the end of the session among them.
pub async fn commit_synchronously(session: &Session) -> Result<(), Error> {
    session.batch(&format!("{FOR_LONG}; set synchronous_commit = on"), DEADLINE).await?;
    session.batch("select pgwake.enqueue('mail')", ALL_NIGHT).await
}

/// Reads the table of jobs and leaves the transaction open.
///
/// # Errors
/// As any statement.
pub async fn read_and_stay(session: &Session) -> Result<(), Error> {
    session.batch(FOR_LONG, DEADLINE).await?;
    session.batch("begin; select from pgwake.jobs limit 1", DEADLINE).await
}

/// Alters the table of jobs, once nobody reads it, and takes that back.
///
/// # Errors
/// As any statement; the end of the session among them.
pub async fn alter(session: &Session) -> Result<(), Error> {
    session.batch(FOR_LONG, DEADLINE).await?;
    session.batch("begin; alter table pgwake.jobs add column passing int; rollback", ALL_NIGHT).await
}

/// Locks every ready job, as an update in a transaction that stays open does. Returns how many.
///
/// # Errors
/// As any statement.
pub async fn lock_ready(session: &Session) -> Result<usize, Error> {
    session.batch(FOR_LONG, DEADLINE).await?;
    session.batch("begin", DEADLINE).await?;
    let sql = "select from pgwake.jobs where status = 'ready' for update";
    Ok(session.query(sql, &[], DEADLINE).await?.len())
}

/// A session that listens and from then on never reads its socket, and its backend pid. It lasts as long as what
/// comes back is kept.
///
/// # Errors
/// No session, or as any statement.
pub async fn deaf_listener(
    conninfo: &str,
    name: &str,
) -> Result<(impl Send + 'static + use<>, i32), Error> {
    let full = format!("{conninfo} application_name={name}");
    let (client, mut connection) =
        tokio_postgres::connect(&full, tokio_postgres::NoTls).await.map_err(Error::from)?;
    let listen = async {
        client.batch_execute("listen drill_ballast").await?;
        client.query_one("select pg_backend_pid()", &[]).await?.try_get::<_, i32>(0)
    };
    let pid = tokio::select! {
        pid = listen => pid.map_err(Error::from)?,
        _ = &mut connection => return Err(Error::Deadline(DEADLINE)),
    };
    Ok(((client, connection), pid))
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

/// Adds jobs of one type to `pgwake.jobs` one by one, in one transaction: each sends its own wake-up, all
/// of them equal. Payloads are JSON text.
///
/// # Errors
/// As any statement; nothing is added then.
pub async fn enqueue_one_by_one(
    session: &Session,
    job_type: &str,
    payloads: &[String],
) -> Result<(), Error> {
    let sql = "select count(pgwake.enqueue($1, p::jsonb)) from unnest($2::text[]) p";
    let args: [(&(dyn ToSql + Sync), Type); 2] = [(&job_type, Type::TEXT), (&payloads, Type::TEXT_ARRAY)];
    session.query(sql, &args, DEADLINE).await.map(drop)
}

/// How many jobs and messages this holder has leased.
///
/// # Errors
/// As any statement.
pub async fn leased_by(session: &Session, holder: &str) -> Result<i64, Error> {
    let sql = "select (select count(*) from pgwake.jobs where locked_by = $1)
                    + (select count(*) from pgwake.outbox where locked_by = $1)";
    session.one(sql, &[(&holder, Type::TEXT)], DEADLINE).await?.field(0)
}

/// The advisory lock of the gate. An arbitrary constant; such locks are each database's own.
const GATE: i64 = 0x7067_6761_7465;

/// Puts a gate behind every look at `pgwake.jobs` that finds nothing, and shuts it: such a claim has seen
/// what it will see, and does not end before this session opens the gate, or ends.
///
/// # Errors
/// As any statement.
pub async fn shut_gate(session: &Session) -> Result<(), Error> {
    let sql = format!(
        "create function drill.gate() returns trigger language plpgsql as $$
         begin
             -- Without a row this statement is a claim that came back empty.
             if not exists (select from taken) then
                 perform pg_advisory_xact_lock_shared({GATE});
             end if;
             return null;
         end
         $$;
         create trigger gate after update on pgwake.jobs referencing new table as taken
             for each statement execute function drill.gate();
         select pg_advisory_lock({GATE})"
    );
    session.batch(&sql, DEADLINE).await
}

/// How many wait at the gate.
///
/// # Errors
/// As any statement.
pub async fn at_gate(session: &Session) -> Result<i64, Error> {
    let sql = "select count(*) from pg_locks
               where locktype = 'advisory' and not granted
                 and database = (select oid from pg_database where datname = current_database())";
    session.one(sql, &[], DEADLINE).await?.field(0)
}

/// Opens the gate, in the session that shut it.
///
/// # Errors
/// As any statement.
pub async fn open_gate(session: &Session) -> Result<(), Error> {
    session.batch(&format!("select pg_advisory_unlock({GATE})"), DEADLINE).await
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
