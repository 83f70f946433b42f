//! Giving a lease back by hand.

use super::Builder;
use crate::text::{quote_ident, quote_literal};

impl Builder<'_> {
    /// Ready again, lease cleared whole, due now: the order is by when it became ready.
    fn freed(&self) -> String {
        let c = &self.p.columns;
        let mut set = vec![format!("{} = {}", quote_ident(&c.status), self.state(&self.p.states.ready))];
        set.extend(self.p.clear_lease());
        set.push(format!("{} = now()", quote_ident(&c.run_at)));
        set.join(", ")
    }

    pub(super) fn woke(&self) -> String {
        match &self.p.channel {
            Some(channel) => format!(
                "), woke as (\n  select pg_notify({}, 'ready') from (select 1 from freed limit 1) f\n",
                quote_literal(channel)
            ),
            None => String::new(),
        }
    }

    pub(super) fn woke_count(&self) -> &'static str {
        if self.p.channel.is_some() { "(select count(*) from woke)" } else { "0::bigint" }
    }

    /// $1 id, $2 token, $3 expiry as seen (null: infinite), $4 operator, $5 how, $6 reason, $7 ledger,
    /// $8 holder as seen, $9 attempts as seen. Repeats all that the person saw.
    pub(super) fn release(&self) -> String {
        let p = self.p;
        let Some(until) = &p.columns.locked_until else { return String::new() };
        let until = p.t(until);
        let noted = if self.types.audit {
            "), noted as (\n  insert into pgwake.releases (operator, how, reason, ledger, job_id, holder, lease_token, locked_until, attempts, was_expired)\n  \
             select $4, $5, $6, $7, id, $8, $2, coalesce($3, 'infinity'), $9, coalesce($3 <= now(), false) from freed\n"
        } else {
            ""
        };
        format!(
            "with freed as (\n  update {rel} t set {set}\n  \
               where {id} = $1::text::{id_type} and coalesce({token}, '') = $2 and {running}\n    \
                 and ({until} = $3 or ($3::timestamptz is null and ({shown}) is not true))\n  \
               returning {id}::text as id\n{noted}{woke})\n\
             select (select count(*) from freed), {woke_count}",
            rel = p.relation(),
            set = self.freed(),
            id = p.id(),
            id_type = self.types.id,
            token = p.token(),
            running = p.is_running_by_key(),
            shown = self.is_shown(&until),
            woke = self.woke(),
            woke_count = self.woke_count(),
        )
    }

    /// $1 batch, $2 holders or null, $3 operator, $4 how, $5 reason, $6 ledger.
    ///
    /// Picked by expiry, which has an index: picked by id, the planner walks the primary key from its
    /// start, through every job that was ever finished. SKIP LOCKED alone keeps it out of deadlocks.
    pub(super) fn release_expired(&self) -> String {
        let p = self.p;
        let c = &p.columns;
        let (Some(until), Some(holder)) = (&c.locked_until, &c.locked_by) else { return String::new() };
        let noted = if self.types.audit {
            "), noted as (\n  insert into pgwake.releases (operator, how, reason, ledger, job_id, holder, lease_token, locked_until, attempts, was_expired)\n  \
             select $3, $4, $5, $6, k.id::text, coalesce(k.holder, ''), coalesce(k.token, ''), k.until, k.attempts, true\n  \
             from pick k join freed f on f.id = k.id\n  order by k.id\n"
        } else {
            ""
        };
        format!(
            "with pick as materialized (\n  \
               select {id} as id, {holder}::text as holder, {token} as token, {until} as until, {attempts} as attempts\n  \
               from {rel} t\n  where {expired} and {of_holder}\n  order by {until}, {id}\n  limit $1\n  for update skip locked\n\
             ), freed as (\n  update {rel} t set {set}\n  where {id} = any (array(select id from pick))\n  returning {id} as id\n\
             {noted}{woke})\n\
             select (select count(*) from freed), {woke_count}",
            id = p.id(),
            holder = p.t(holder),
            token = p.token(),
            until = p.t(until),
            attempts = self.text_or_null(c.attempts.as_ref(), "int"),
            rel = p.relation(),
            expired = self.is_expired(),
            of_holder = self.is_holder("$2"),
            set = self.freed(),
            woke = self.woke(),
            woke_count = self.woke_count(),
        )
    }

    /// $1 id: what is there now.
    pub(super) fn find(&self) -> String {
        let p = self.p;
        let c = &p.columns;
        format!(
            "select {status}::text, {running}, {holder}, {until}, {token}\nfrom {rel} t\nwhere {id} = $1::text::{id_type}",
            status = p.status(),
            running = p.is_running_by_key(),
            holder = self.text_or_null(c.locked_by.as_ref(), "text"),
            until = self.finite(c.locked_until.as_ref()),
            token = p.token(),
            rel = p.relation(),
            id = p.id(),
            id_type = self.types.id,
        )
    }
}
