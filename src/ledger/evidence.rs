//! What holds a ledger's rows: lockers of due rows, rows that nobody will take, triggers that notify.

use tokio_postgres::types::Type;

use super::Ledger;
use crate::model::{Inconsistent, LockedRows, NotifyTrigger, RowLocker};
use crate::pg::{Error, Fields, Session};
use crate::text::clean;

/// Triggers looked at, at most.
const TRIGGERS: i64 = 50;

/// The statistics know the common values of the status column without reading the table.
const STATES: &str = "\
select v.value, v.share::float8
from pg_stats s, unnest(s.most_common_vals::text::text[], s.most_common_freqs) as v(value, share)
where s.schemaname = $1 and s.tablename = $2 and s.attname = $3 and not s.inherited and v.value <> all ($4::text[])
limit 10";

/// $2 the payload column, or the empty text. A row goes along when the function turns NEW or OLD into text or
/// JSON, or reads the payload of it. The triggers of our own debounced producers are left out: they are queued
/// for one row of a transaction and send one hint (migration V4).
const NOTIFIERS: &str = "\
select t.tgname::text, p.proname::text, (t.tgtype & 1) = 1,
       p.prosrc ~* '(row_to_json|to_jsonb?|hstore)\\s*\\(\\s*(new|old)\\M'
       or p.prosrc ~* '\\m(new|old)\\s*::\\s*(text|jsonb?)'
       or ($2 <> '' and p.prosrc ~* ('\\m(new|old)\\.\"?' || regexp_replace($2, '([^[:alnum:]_])', '\\\\\\1', 'g') || '\\M'))
from pg_trigger t join pg_proc p on p.oid = t.tgfoid
where t.tgrelid = to_regclass($1) and not t.tgisinternal and t.tgenabled <> 'D'
  and p.oid is distinct from to_regprocedure('pgwake.wake_jobs_debounced()')
  and p.oid is distinct from to_regprocedure('pgwake.wake_outbox_debounced()')
  and p.prosrc ~* '\\m(pg_notify|notify)\\M'
order by 1
limit $3";

impl Ledger {
    /// The first `limit` due rows, and who has them locked.
    ///
    /// # Errors
    /// As any statement; the session's own statement_timeout bounds it.
    pub async fn locked_rows(&self, session: &Session, limit: i64) -> Result<LockedRows, Error> {
        let rows = session.rows(&self.inner.sql.locked_rows, &[(&limit, Type::INT8)]).await?;
        let number = |n: i64| u64::try_from(n).unwrap_or(0);
        let seen = rows.first().map_or(Ok(0), |r| r.field::<i64>(0))?;
        let mut by = Vec::new();
        for r in &rows {
            let Some(n) = r.field::<Option<i64>>(1)? else { continue };
            let text = |i: usize| Ok::<_, Error>(r.field::<Option<&str>>(i)?.map(clean));
            by.push(RowLocker {
                rows: number(n),
                pid: r.field(2)?,
                prepared: text(3)?,
                application: text(4)?.unwrap_or_default(),
                state: text(5)?,
                seconds: r.field(6)?,
            });
        }
        Ok(LockedRows { seen: number(seen), by })
    }

    /// Rows that no claim will ever take, each kind up to `cap`.
    ///
    /// # Errors
    /// As any statement; without an index on the due time it may time out.
    pub async fn inconsistent(&self, session: &Session, cap: i64) -> Result<Inconsistent, Error> {
        let rows = session.rows(&self.inner.sql.inconsistent, &[(&(cap + 1), Type::INT8)]).await?;
        let at = |i: usize| rows.first().map_or(Ok(0), |r| r.field::<i64>(i));
        let (without, ever) = (at(0)?, at(1)?);
        let p = self.profile();
        let s = &p.states;
        let known = [&s.ready, &s.running, &s.done, &s.failed];
        let states = session
            .rows(
                STATES,
                &[
                    (&p.schema, Type::TEXT),
                    (&p.table, Type::TEXT),
                    (&p.columns.status, Type::TEXT),
                    (&&known[..], Type::TEXT_ARRAY),
                ],
            )
            .await?;
        let number = |n: i64| u64::try_from(n.min(cap)).unwrap_or(0);
        Ok(Inconsistent {
            without_due: number(without),
            for_ever: number(ever),
            more: without > cap || ever > cap,
            unknown_states: states
                .iter()
                .map(|r| Ok((clean(r.field(0)?), r.field(1)?)))
                .collect::<Result<_, Error>>()?,
        })
    }

    /// Triggers of the table that notify, by the text of their functions.
    ///
    /// # Errors
    /// As any statement.
    pub async fn notify_triggers(&self, session: &Session) -> Result<Vec<NotifyTrigger>, Error> {
        let p = self.profile();
        let payload = p.columns.payload.as_deref().unwrap_or("");
        let rows = session
            .rows(
                NOTIFIERS,
                &[(&p.relation(), Type::TEXT), (&payload, Type::TEXT), (&TRIGGERS, Type::INT8)],
            )
            .await?;
        rows.iter()
            .map(|r| {
                Ok(NotifyTrigger {
                    name: clean(r.field(0)?),
                    function: clean(r.field(1)?),
                    per_row: r.field(2)?,
                    carries_row: r.field(3)?,
                })
            })
            .collect()
    }
}
