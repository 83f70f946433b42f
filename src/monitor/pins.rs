//! What keeps dead rows from being removed: old snapshots of sessions and standbys, prepared transactions
//! that nobody ends, and replication slots, which keep log as well.

use tokio_postgres::types::Type;

use crate::model::{Pin, PinKind};
use crate::pg::{Error, Fields, Session};
use crate::text::clean;

/// Holders listed at most.
const PINS: i64 = 30;

/// Sessions of other databases pin nothing here; prepared transactions and slots are listed all, as each
/// holds something that somebody has to end by hand. A slot is told only where it holds a transaction back
/// or keeps log while nobody reads it.
const SQL: &str = "\
with wal as (
  select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end as lsn
), pins as (
  select 'session' as kind, a.pid, coalesce(nullif(a.application_name, ''), a.backend_type, '') as name,
         concat_ws(', ', a.usename::text, a.state) as about,
         greatest(age(a.backend_xmin), age(a.backend_xid))::int8 as xids,
         extract(epoch from clock_timestamp() - a.xact_start)::float8 as seconds, null::int8 as retained
  from pg_stat_activity a
  where a.datname = current_database() and a.pid <> pg_backend_pid()
    and (a.backend_xmin is not null or a.backend_xid is not null)
    and coalesce(a.backend_type, '') <> 'walsender'
  union all
  select 'prepared', null, p.gid, p.owner::text || ' in ' || p.database::text, age(p.transaction)::int8,
         extract(epoch from clock_timestamp() - p.prepared)::float8, null
  from pg_prepared_xacts p
  union all
  select 'slot', s.active_pid, s.slot_name::text,
         s.slot_type || case when s.active then ', read' else ', nobody reads it' end
         || case when s.xmin is null and s.catalog_xmin is not null then ', catalogs only' else '' end,
         greatest(age(s.xmin), age(s.catalog_xmin))::int8, null,
         case when s.restart_lsn is not null then greatest(pg_wal_lsn_diff(wal.lsn, s.restart_lsn), 0)::int8 end
  from pg_replication_slots s, wal
  where s.xmin is not null or s.catalog_xmin is not null or not s.active
  union all
  select 'standby', r.pid, r.application_name, concat_ws(', ', r.state, r.sync_state), age(r.backend_xmin)::int8,
         extract(epoch from r.replay_lag)::float8, null
  from pg_stat_replication r
)
select * from pins order by xids desc nulls last, seconds desc nulls last, name limit $1";

/// The holders, those of the oldest transactions first.
pub(super) async fn pins(session: &Session) -> Result<Vec<Pin>, Error> {
    let rows = session.rows(SQL, &[(&PINS, Type::INT8)]).await?;
    rows.iter()
        .map(|r| {
            Ok(Pin {
                kind: match r.field::<&str>(0)? {
                    "prepared" => PinKind::Prepared,
                    "slot" => PinKind::Slot,
                    "standby" => PinKind::Standby,
                    _ => PinKind::Session,
                },
                pid: r.field(1)?,
                name: clean(r.field::<Option<&str>>(2)?.unwrap_or_default()),
                about: clean(r.field::<Option<&str>>(3)?.unwrap_or_default()),
                xids: r.field(4)?,
                seconds: r.field(5)?,
                retained: r.field::<Option<i64>>(6)?.and_then(|n| u64::try_from(n).ok()),
            })
        })
        .collect()
}
