//! Who waits for whom: sessions worth showing, the NOTIFY commit lock, and locks on the ledgers' tables.
//!
//! `pg_locks` is read once a statement and only what waits, or is one of a few locks, is looked at further;
//! `pg_blocking_pids` stops the lock manager for a moment and is called for the longest waits alone.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::probes::first;
use crate::model::{LockWait, NotifyLock, Session as Listed, SessionMark, TableLock};
use crate::pg::{Error, Fields, Session};
use crate::text::{clean, without_literals};

/// Sessions listed at most.
const SESSIONS: i64 = 100;
/// Waiting sessions whose blockers are asked for, the longest waits first.
const WAITS: i64 = 50;
/// Waiters of the NOTIFY commit lock that are named.
const NOTIFIERS: i64 = 20;
/// Locks on a table that are named.
const TABLE_LOCKS: i64 = 20;
/// An idle transaction younger than this is a program between two statements.
const IDLE: Duration = Duration::from_secs(5);

/// What the server shows in the place of a statement that this role may not see.
pub(super) const HIDDEN: &str = "<insufficient privilege>";

/// The lock on which commits that notified queue up (manual: pg_locks; the object is database 0).
const NOTIFY: &str =
    "l.locktype = 'object' and l.classid = 'pg_database'::regclass and l.objid = 0 and l.database = 0";

/// Locks on one of the relations of $1 that conflict with a claim, of others than this session.
const AGAINST_CLAIMS: &str = "l.locktype = 'relation' \
     and l.mode in ('AccessExclusiveLock', 'ExclusiveLock', 'ShareRowExclusiveLock', 'ShareLock') \
     and l.relation = any (array(select to_regclass(r)::oid from unnest($1::text[]) r)) \
     and l.database = (select oid from pg_database where datname = current_database()) \
     and l.pid is distinct from pg_backend_pid()";

fn text(row: &Row, at: usize) -> Result<Option<String>, Error> {
    Ok(row.field::<Option<&str>>(at)?.map(clean))
}

/// A statement as it may be shown: what it carries stays between its session and the server.
fn statement(row: &Row, at: usize) -> Result<Option<String>, Error> {
    let shown = row.field::<Option<&str>>(at)?.filter(|q| *q != HIDDEN);
    Ok(shown.map(|q| clean(&without_literals(q))))
}

fn pids(row: &Row, at: usize) -> Result<Vec<i32>, Error> {
    let mut pids: Vec<i32> = row.field::<Option<Vec<i32>>>(at)?.unwrap_or_default();
    // 0 stands for a prepared transaction; a parallel query names its leader once for each worker
    pids.retain(|pid| *pid != 0);
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}

/// What one cheap look at `pg_locks` and the catalog tells: whether the dear statements are worth asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Quick {
    /// Whether somebody has the NOTIFY commit lock or waits for it.
    pub notify: bool,
    /// Whether anybody waits for any lock.
    pub waits: bool,
    /// Whether a ledger's table is locked against claims, or somebody wants it to be.
    pub tables: bool,
    /// For each relation, whether row security hides rows from this role.
    pub row_security: Vec<bool>,
}

/// See [`Quick`]. It reads the catalog and `pg_locks` only: those do not wait behind the locks they tell of.
pub(super) async fn quick(session: &Session, relations: &[String]) -> Result<Quick, Error> {
    let sql = format!(
        "select coalesce(bool_or({NOTIFY}), false), coalesce(bool_or(not l.granted), false),
                coalesce(bool_or({AGAINST_CLAIMS}), false),
                array(select coalesce(row_security_active(to_regclass(r)), false)
                      from unnest($1::text[]) with ordinality as r(r, n) order by n)
         from pg_locks l"
    );
    let row = first(session.rows(&sql, &[(&relations, Type::TEXT_ARRAY)]).await?)?;
    Ok(Quick {
        notify: row.field(0)?,
        waits: row.field(1)?,
        tables: row.field(2)?,
        row_security: row.field(3)?,
    })
}

/// The NOTIFY commit lock: its holder, what that waits for, and who waits behind it.
pub(super) async fn notify_lock(session: &Session) -> Result<NotifyLock, Error> {
    let sql = format!(
        "with l as materialized (
           select l.pid, l.granted, (to_jsonb(l) ->> 'waitstart')::timestamptz as since
           from pg_locks l where {NOTIFY}
         )
         select h.pid, (select count(*) from l where not granted),
                (select extract(epoch from clock_timestamp() - min(since))::float8 from l where not granted),
                (select array_agg(w.pid) from (select pid from l where not granted
                                               order by since nulls last, pid limit $1) w),
                a.application_name, case when a.wait_event is not null then a.wait_event_type || '/' || a.wait_event end,
                extract(epoch from clock_timestamp() - a.xact_start)::float8, coalesce(a.query = $2, false)
         from (select 1) one
         left join (select pid from l where granted limit 1) h on true
         left join pg_stat_activity a on a.pid = h.pid"
    );
    let row = first(session.rows(&sql, &[(&NOTIFIERS, Type::INT8), (&HIDDEN, Type::TEXT)]).await?)?;
    Ok(NotifyLock {
        holder: row.field(0)?,
        waiters: u64::try_from(row.field::<i64>(1)?).unwrap_or(0),
        longest: row.field(2)?,
        waiting: row.field::<Option<Vec<i32>>>(3)?.unwrap_or_default(),
        application: text(&row, 4)?.unwrap_or_default(),
        wait: text(&row, 5)?,
        transaction_age: row.field(6)?,
        hidden: row.field(7)?,
    })
}

/// Who waits for which lock and behind whom, and who has the NOTIFY commit lock.
fn waits() -> String {
    format!(
        ", l as materialized (
           select l.*, {NOTIFY} as notify, (to_jsonb(l) ->> 'waitstart')::timestamptz as since
           from pg_locks l where not l.granted or ({NOTIFY})
         ), w as materialized (
           select l.*, pg_blocking_pids(l.pid) as by
           from (select * from l where not granted and pid is not null order by since nulls last limit $3) l
         ), b as materialized (
           select distinct unnest(by) as pid from w
         ), n as materialized (
           select pid, bool_or(granted) as has from l where notify group by pid
         )"
    )
}

/// The columns about waits.
const WAITING: &str = "\
    n.has, w.pid is not null, s.backend_start,
    case when w.notify then 'NOTIFY commit lock'
         when w.locktype in ('transactionid', 'tuple') then 'a row'
         when w.locktype = 'relation' then 'table ' || coalesce(
            (select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
             where c.oid = w.relation and w.database = (select oid from here)), w.relation::text)
            || ' (' || w.mode || ')'
         else w.locktype || ' (' || w.mode || ')' end,
    extract(epoch from clock_timestamp() - w.since)::float8, w.by,
    case when 0 = any (w.by) then
      (select p.gid from pg_locks g
       join pg_locks t on t.locktype = 'transactionid' and t.pid is null
                      and t.virtualtransaction = g.virtualtransaction
       join pg_prepared_xacts p on p.transaction = t.transactionid
       where g.pid is null and g.granted
         and (g.transactionid = w.transactionid or (g.relation = w.relation and g.database = w.database))
       limit 1) end";

/// Sessions with a long or idle transaction, that probably listen, or that do not read; with `waits` also
/// those that wait for a lock, and those that others wait for. Of other databases only those that hold up
/// the whole server: its notification queue, its commit lock, or somebody here. A listener that proves
/// itself with a heartbeat has another last statement; those of this program bear it in their name.
pub(super) async fn sessions(session: &Session, long: Duration, with: bool) -> Result<Vec<Listed>, Error> {
    let ctes = if with { waits() } else { String::new() };
    let (blocks, columns, joins, more) = if with {
        (
            "exists (select from b where b.pid = a.pid)",
            WAITING,
            "left join w on w.pid = s.pid left join n on n.pid = s.pid",
            "or s.blocks or n.pid is not null or (w.pid is not null and s.is_here)",
        )
    } else {
        (
            "false",
            "null::bool, false, s.backend_start, null::text, null::float8, null::int4[], null::text",
            "",
            "",
        )
    };
    let sql = format!(
        "with here as materialized (
           select oid from pg_database where datname = current_database()
         ){ctes}, s as (
           select a.*, coalesce(query ilike 'listen%' or application_name like '%/listen%', false) as listens,
                  coalesce(wait_event = 'ClientWrite' and (xact_start is not null or backend_xmin is not null), false) as deaf,
                  coalesce(state like 'idle in transaction%' and state_change < now() - make_interval(secs => $4), false) as idle,
                  coalesce(xact_start < now() - make_interval(secs => $1), false) as long,
                  datid = (select oid from here) as is_here, {blocks} as blocks
           from pg_stat_activity a where a.pid <> pg_backend_pid()
         )
         select s.pid, s.usename::text, coalesce(nullif(s.application_name, ''), s.backend_type, ''), s.state,
                case when s.wait_event is not null then s.wait_event_type || '/' || s.wait_event end,
                extract(epoch from now() - s.xact_start)::float8, left(s.query, 200),
                case when not s.is_here then s.datname::text end, coalesce(s.query = $5, false),
                s.long, s.listens, s.deaf, s.idle, s.blocks, {columns}
         from s {joins}
         where (s.is_here and s.backend_type = 'client backend' and (s.long or s.listens or s.deaf or s.idle))
            or (s.listens and s.long) or s.deaf {more}
         order by s.xact_start nulls last, s.pid
         limit $2"
    );
    let rows = session
        .rows(
            &sql,
            &[
                (&long.as_secs_f64(), Type::FLOAT8),
                (&SESSIONS, Type::INT8),
                (&WAITS, Type::INT8),
                (&IDLE.as_secs_f64(), Type::FLOAT8),
                (&HIDDEN, Type::TEXT),
            ],
        )
        .await?;
    rows.iter().map(listed).collect()
}

fn listed(row: &Row) -> Result<Listed, Error> {
    let notify: Option<bool> = row.field(14)?;
    let waits: bool = row.field(15)?;
    let marks = [
        (row.field(9)?, SessionMark::LongTransaction),
        (row.field(10)?, SessionMark::ProbableListener),
        (row.field(11)?, SessionMark::NotReading),
        (row.field(12)?, SessionMark::IdleInTransaction),
        (notify == Some(true), SessionMark::NotifyHolder),
        (notify == Some(false), SessionMark::NotifyWaiter),
        (row.field(13)?, SessionMark::Blocking),
        (waits, SessionMark::Blocked),
    ];
    let lock = LockWait {
        what: text(row, 17)?.unwrap_or_default(),
        seconds: row.field(18)?,
        by: pids(row, 19)?,
        prepared: text(row, 20)?,
    };
    Ok(Listed {
        pid: row.field(0)?,
        user: text(row, 1)?.unwrap_or_default(),
        application: text(row, 2)?.unwrap_or_default(),
        state: text(row, 3)?,
        wait: text(row, 4)?,
        transaction_age: row.field(5)?,
        query: statement(row, 6)?,
        started: row.field(16)?,
        database: text(row, 7)?,
        hidden: row.field(8)?,
        marks: marks.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark).collect(),
        lock: waits.then_some(lock),
    })
}

/// Locks on the tables of `relations` that conflict with claims; one entry for each, in their order.
pub(super) async fn tables(session: &Session, relations: &[String]) -> Result<Vec<Vec<TableLock>>, Error> {
    let sql = format!(
        "with l as materialized (
           select l.*, (to_jsonb(l) ->> 'waitstart')::timestamptz as since
           from pg_locks l where {AGAINST_CLAIMS}
           order by since nulls first limit $2
         )
         select r.n, l.pid,
                (select p.gid from pg_locks t join pg_prepared_xacts p on p.transaction = t.transactionid
                 where l.pid is null and t.pid is null and t.locktype = 'transactionid'
                   and t.virtualtransaction = l.virtualtransaction limit 1),
                coalesce(nullif(a.application_name, ''), a.backend_type, ''), l.granted, l.mode,
                extract(epoch from clock_timestamp() - case when l.granted then a.xact_start else l.since end)::float8,
                case when not l.granted then pg_blocking_pids(l.pid) end, left(a.query, 200)
         from unnest($1::text[]) with ordinality as r(name, n)
         join l on l.relation = to_regclass(r.name) left join pg_stat_activity a on a.pid = l.pid
         order by r.n, l.granted desc, l.since nulls last"
    );
    let rows = session.rows(&sql, &[(&relations, Type::TEXT_ARRAY), (&TABLE_LOCKS, Type::INT8)]).await?;
    let mut out = vec![Vec::new(); relations.len()];
    for row in &rows {
        let n = usize::try_from(row.field::<i64>(0)?).unwrap_or(0);
        let Some(table) = n.checked_sub(1).and_then(|i| out.get_mut(i)) else { continue };
        table.push(TableLock {
            pid: row.field(1)?,
            prepared: text(row, 2)?,
            application: text(row, 3)?.unwrap_or_default(),
            granted: row.field(4)?,
            mode: text(row, 5)?.unwrap_or_default(),
            seconds: row.field(6)?,
            by: pids(row, 7)?,
            query: statement(row, 8)?,
        });
    }
    Ok(out)
}
