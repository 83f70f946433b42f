//! `pgwake.workers`: one row per live worker and ledger, refreshed by the worker.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::DEADLINE;
use crate::model::{BudgetState, Counters, Percentiles, WorkerRow};
use crate::pg::{Error, Fields, Session};
use crate::text::clean;

/// A row older than this is of a worker that died long ago; a starting worker sweeps it away.
const SWEEP: &str = "delete from pgwake.workers where seen_at < now() - interval '1 day'";

const UPSERT: &str = "\
insert into pgwake.workers as w (name, ledger, host, pid, version,
  found_startup, found_notify, found_fallback, found_reconnect, found_timed,
  claims_got, claims_empty, claims_contended, claims_error, jobs_done, jobs_failed, jobs_lost, wakeups, reconnects, jobs_deferred,
  recovery_p50_ms, recovery_p95_ms, recovery_p99_ms, wake_p50_ms, wake_p95_ms, wake_p99_ms,
  claim_p50_ms, claim_p95_ms, claim_p99_ms, budget)
values ($1, $2, $3, $4, $5, $6[1], $6[2], $6[3], $6[4], $6[5], $6[6], $6[7], $6[8], $6[9], $6[10], $6[11], $6[12], $6[13], $6[14], $6[15],
  $7[1], $7[2], $7[3], $7[4], $7[5], $7[6], $7[7], $7[8], $7[9], $8)
on conflict (name, ledger) do update set
  seen_at = now(), host = excluded.host, pid = excluded.pid, version = excluded.version,
  found_startup = excluded.found_startup, found_notify = excluded.found_notify,
  found_fallback = excluded.found_fallback, found_reconnect = excluded.found_reconnect,
  found_timed = excluded.found_timed, claims_got = excluded.claims_got, claims_empty = excluded.claims_empty,
  claims_contended = excluded.claims_contended, claims_error = excluded.claims_error,
  jobs_done = excluded.jobs_done, jobs_failed = excluded.jobs_failed, jobs_lost = excluded.jobs_lost, jobs_deferred = excluded.jobs_deferred,
  wakeups = excluded.wakeups, reconnects = excluded.reconnects,
  recovery_p50_ms = excluded.recovery_p50_ms, recovery_p95_ms = excluded.recovery_p95_ms,
  recovery_p99_ms = excluded.recovery_p99_ms, wake_p50_ms = excluded.wake_p50_ms,
  wake_p95_ms = excluded.wake_p95_ms, wake_p99_ms = excluded.wake_p99_ms,
  claim_p50_ms = excluded.claim_p50_ms, claim_p95_ms = excluded.claim_p95_ms,
  claim_p99_ms = excluded.claim_p99_ms, budget = excluded.budget";

const LIST: &str = "\
select name, ledger, host, pid, version, started_at, seen_at,
  array[found_startup, found_notify, found_fallback, found_reconnect, found_timed,
        claims_got, claims_empty, claims_contended, claims_error, jobs_done, jobs_failed, jobs_lost, wakeups, reconnects,
        jobs_deferred],
  array[recovery_p50_ms, recovery_p95_ms, recovery_p99_ms, wake_p50_ms, wake_p95_ms, wake_p99_ms,
        claim_p50_ms, claim_p95_ms, claim_p99_ms],
  budget
from pgwake.workers
where ledger = $1 and seen_at > now() - interval '1 hour' and isfinite(seen_at) and isfinite(started_at)
order by name
limit 1000";

/// Whether the schema has the table and this role may write it.
///
/// # Errors
/// As any statement.
pub async fn has_workers(session: &Session) -> Result<bool, Error> {
    let row = session
        .one(
            "select coalesce((select has_table_privilege(c.oid, 'insert') and has_table_privilege(c.oid, 'update')
               from pg_class c join pg_namespace n on n.oid = c.relnamespace
               where n.nspname = 'pgwake' and c.relname = 'workers' and has_schema_privilege(n.oid, 'usage')), false)",
            &[],
            DEADLINE,
        )
        .await?;
    if row.field(0)? {
        // A role that may not delete works all the same.
        let _ = session.query(SWEEP, &[], DEADLINE).await;
        return Ok(true);
    }
    Ok(false)
}

/// Writes or refreshes one worker's row; `started_at` and `seen_at` come from the server.
///
/// # Errors
/// As any statement.
pub async fn upsert_worker(session: &Session, w: &WorkerRow) -> Result<(), Error> {
    let c = &w.counters;
    let counters = vec![
        c.found_startup,
        c.found_notify,
        c.found_fallback,
        c.found_reconnect,
        c.found_timed,
        c.claims_got,
        c.claims_empty,
        c.claims_contended,
        c.claims_error,
        c.jobs_done,
        c.jobs_failed,
        c.jobs_lost,
        c.wakeups,
        w.reconnects,
        c.jobs_deferred,
    ];
    let times: Vec<Option<f64>> =
        [w.recovery, w.wake_latency, w.claim].iter().flat_map(|p| [p.p50, p.p95, p.p99]).collect();
    session
        .query(
            UPSERT,
            &[
                (&w.name, Type::TEXT),
                (&w.ledger, Type::TEXT),
                (&w.host, Type::TEXT),
                (&w.pid, Type::INT4),
                (&w.version, Type::TEXT),
                (&counters, Type::INT8_ARRAY),
                (&times, Type::FLOAT8_ARRAY),
                (&w.budget.word(), Type::TEXT),
            ],
            DEADLINE,
        )
        .await?;
    Ok(())
}

/// Removes a worker's rows on its orderly end; not those of another process that bears the same name.
///
/// # Errors
/// As any statement.
pub async fn delete_worker(session: &Session, name: &str, host: &str, pid: i32) -> Result<(), Error> {
    session
        .query(
            "delete from pgwake.workers where name = $1 and host = $2 and pid = $3",
            &[(&name, Type::TEXT), (&host, Type::TEXT), (&pid, Type::INT4)],
            DEADLINE,
        )
        .await?;
    Ok(())
}

/// Workers of one ledger that were seen within the last hour.
///
/// # Errors
/// As any statement; 42P01 where the schema is not there.
pub async fn workers(session: &Session, ledger: &str) -> Result<Vec<WorkerRow>, Error> {
    let rows = session.query(LIST, &[(&ledger, Type::TEXT)], DEADLINE).await?;
    rows.iter().map(worker).collect()
}

fn worker(row: &Row) -> Result<WorkerRow, Error> {
    let n: Vec<i64> = row.field(7)?;
    let at = |i: usize| n.get(i).copied().unwrap_or(0);
    let t: Vec<Option<f64>> = row.field(8)?;
    let times = |i: usize| {
        let at = |i: usize| t.get(i).copied().flatten();
        Percentiles { p50: at(i), p95: at(i + 1), p99: at(i + 2) }
    };
    Ok(WorkerRow {
        name: clean(row.field(0)?),
        ledger: clean(row.field(1)?),
        host: clean(row.field(2)?),
        pid: row.field(3)?,
        version: clean(row.field(4)?),
        started_at: row.field(5)?,
        seen_at: row.field(6)?,
        counters: Counters {
            found_startup: at(0),
            found_notify: at(1),
            found_fallback: at(2),
            found_reconnect: at(3),
            found_timed: at(4),
            claims_got: at(5),
            claims_empty: at(6),
            claims_contended: at(7),
            claims_error: at(8),
            jobs_done: at(9),
            jobs_failed: at(10),
            jobs_lost: at(11),
            wakeups: at(12),
            jobs_deferred: at(14),
        },
        reconnects: at(13),
        recovery: times(0),
        wake_latency: times(3),
        claim: times(6),
        budget: BudgetState::from_word(row.field(9)?),
    })
}
