//! Ending a claim and keeping it: fenced updates by the primary key.

use super::Builder;
use crate::profile::AttemptsCount;
use crate::text::{quote_ident, quote_literal};

impl Builder<'_> {
    /// `update … from unnest(ids, tokens …)`, fenced by id, token and state, under a write lock.
    ///
    /// Comes back with every claim that still is the caller's, whether it was changed, and `returning`: a
    /// row that somebody else holds locked is passed over and told apart from a lost one. Waited for, one
    /// row that a person looks at in an open transaction would cost the whole batch its leases; and rows
    /// that are never waited for cannot deadlock.
    fn fenced_update(&self, set: &[String], extra: &str, input: &str, returning: &str) -> String {
        let p = self.p;
        format!(
            "with mine as materialized (\n  \
               select {id} as held_id, f.*\n  \
               from {rel} t join unnest({input} on {id} = f.id::{id_type}\n  \
               where {token} = f.token and {running}{extra}\n\
             ), held as materialized (\n  \
               select f.*\n  \
               from mine f join {rel} t on {id} = f.held_id\n  \
               where {token} = f.token and {running}{extra}\n  \
               for update of t skip locked\n\
             ), ended as (\n  \
               update {rel} t set {set}\n  from held f\n  where {id} = f.held_id\n  \
               returning {id} as held_id, {returning} as outcome\n\
             )\n\
             select m.held_id::text, e.held_id is not null, e.outcome\n\
             from mine m left join ended e on e.held_id = m.held_id",
            rel = p.relation(),
            set = set.join(", "),
            id = p.id(),
            id_type = self.types.id,
            token = p.token(),
            running = p.is_running_by_key(),
        )
    }

    pub(super) fn done(&self) -> String {
        let c = &self.p.columns;
        let mut set = vec![format!("{} = {}", quote_ident(&c.status), self.state(&self.p.states.done))];
        set.extend(self.p.clear_lease());
        set.extend(self.set(c.finished_at.as_ref(), "now()"));
        set.extend(self.set(c.done_at.as_ref(), "now()"));
        self.fenced_update(&set, "", "$1::text[], $2::text[]) as f(id, token)", "false")
    }

    pub(super) fn failed(&self) -> String {
        let p = self.p;
        let c = &p.columns;
        let last = p.is_last_failure();
        let mut set = vec![format!(
            "{} = case when {last} then {} else {} end",
            quote_ident(&c.status),
            self.state(&p.states.failed),
            self.state(&p.states.ready)
        )];
        set.extend(p.clear_lease());
        if p.attempts_count == AttemptsCount::Failures
            && let Some(attempts) = &c.attempts
        {
            set.push(format!("{} = {} + 1", quote_ident(attempts), p.t(attempts)));
        }
        set.push(format!(
            "{} = case when {last} then {} else now() + make_interval(secs => f.delay) end",
            quote_ident(&c.run_at),
            p.t(&c.run_at)
        ));
        set.extend(self.set(c.last_error.as_ref(), "f.error"));
        set.extend(self.set(c.finished_at.as_ref(), &format!("case when {last} then now() end")));
        let gave_up = format!("{} = {}", p.status(), quote_literal(&p.states.failed));
        self.fenced_update(
            &set,
            "",
            "$1::text[], $2::text[], $3::text[], $4::float8[]) as f(id, token, error, delay)",
            &gave_up,
        )
    }

    pub(super) fn give_back(&self) -> String {
        let p = self.p;
        let c = &p.columns;
        let mut set = vec![format!("{} = {}", quote_ident(&c.status), self.state(&p.states.ready))];
        set.extend(p.clear_lease());
        // Where holder and attempts are the fence, an attempt must not come twice, so none is refunded.
        if p.attempts_count == AttemptsCount::Claims
            && c.lease_token.is_some()
            && let Some(attempts) = &c.attempts
        {
            set.push(format!("{} = greatest({} - f.refund, 0)", quote_ident(attempts), p.t(attempts)));
        }
        self.fenced_update(&set, "", "$1::text[], $2::text[], $3::int[]) as f(id, token, refund)", "false")
    }

    pub(super) fn renew(&self) -> String {
        let Some(until) = &self.p.columns.locked_until else { return String::new() };
        let set = vec![format!("{} = now() + make_interval(secs => $3)", quote_ident(until))];
        let alive = format!(" and {} > now()", self.p.t(until));
        let returning = format!("{}::timestamptz", self.p.t(until));
        self.fenced_update(&set, &alive, "$1::text[], $2::text[]) as f(id, token)", &returning)
    }
}
