//! Ending a claim and keeping it: fenced updates by the primary key.

use super::Builder;
use crate::profile::AttemptsCount;
use crate::text::{quote_ident, quote_literal};

/// The end of `unnest(`: ids and tokens.
const PAIRS: &str = "$1::text[], $2::text[]) with ordinality as f(job, token, place)";

impl Builder<'_> {
    /// Changes, or removes, the rows that still are the caller's, fenced by id, token and state, under a
    /// write lock; returns the places in the arrays of those that it did, with `returning` as text.
    ///
    /// A row that somebody else holds locked is passed over: waited for, one row that a person looks at in
    /// an open transaction would cost the whole batch its leases; and rows that are never waited for cannot
    /// deadlock. Which of those that did not come back are locked and which are lost is asked by
    /// [`Builder::still`], when there are any at all.
    fn fenced(&self, what: &str, extra: &str, input: &str, returning: &str) -> String {
        let p = self.p;
        format!(
            "with held as materialized (\n  \
               select t.ctid as at, {id} as id, f.*\n  \
               from unnest({input} join {rel} t on {id} = f.job::{id_type}\n  \
               where {token} = f.token and {running}{extra}\n  \
               for update of t skip locked\n\
             )\n\
             {what} held f\nwhere t.ctid = f.at and {id} = f.id\nreturning f.place::text, ({returning})::text",
            rel = p.relation(),
            id = p.id(),
            id_type = self.types.id,
            token = p.token(),
            running = p.is_running_by_key(),
        )
    }

    /// As [`Builder::fenced`], but it waits where a row is locked: it locks each row once instead of twice,
    /// which saves a fourth of the work, and is for those who wait for next to nothing and then come with
    /// the other. A row that changes meanwhile is judged anew when its lock is had. Manual: "Read Committed
    /// Isolation Level".
    fn fenced_at_once(&self, what: &str) -> String {
        let p = self.p;
        format!(
            "{what} unnest({PAIRS}\nwhere {id} = f.job::{id_type} and {token} = f.token and {running}\n\
             returning f.place::text, (false)::text",
            id = p.id(),
            id_type = self.types.id,
            token = p.token(),
            running = p.is_running_by_key(),
        )
    }

    pub(super) fn fenced_update(
        &self,
        set: &[String],
        extra: &str,
        input: &str,
        returning: &str,
    ) -> String {
        self.fenced(&self.update(set), extra, input, returning)
    }

    /// $1 ids, $2 tokens: the places of those that are held with that token, and whose lease is not over
    /// if that matters.
    pub(super) fn still(&self, alive: bool) -> String {
        let p = self.p;
        let alive = if alive { self.is_alive() } else { String::new() };
        format!(
            "select f.place::text\n\
             from unnest($1::text[], $2::text[]) with ordinality as f(job, token, place) join {rel} t on {id} = f.job::{id_type}\n\
             where {token} = f.token and {running}{alive}",
            rel = p.relation(),
            id = p.id(),
            id_type = self.types.id,
            token = p.token(),
            running = p.is_running_by_key(),
        )
    }

    /// Done and gone: no history is kept.
    pub(super) fn remove(&self) -> String {
        self.fenced(&self.delete(), "", PAIRS, "false")
    }

    pub(super) fn remove_at_once(&self) -> String {
        self.fenced_at_once(&self.delete())
    }

    fn delete(&self) -> String {
        format!("delete from {} t using", self.p.relation())
    }

    pub(super) fn done(&self) -> String {
        self.fenced_update(&self.set_done(), "", PAIRS, "false")
    }

    pub(super) fn done_at_once(&self) -> String {
        self.fenced_at_once(&self.update(&self.set_done()))
    }

    fn set_done(&self) -> Vec<String> {
        let c = &self.p.columns;
        let mut set = vec![format!("{} = {}", quote_ident(&c.status), self.state(&self.p.states.done))];
        set.extend(self.p.clear_lease());
        set.extend(self.set(c.finished_at.as_ref(), "now()"));
        set.extend(self.set(c.done_at.as_ref(), "now()"));
        set
    }

    fn update(&self, set: &[String]) -> String {
        format!("update {} t set {}\nfrom", self.p.relation(), set.join(", "))
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
            "$1::text[], $2::text[], $3::text[], $4::float8[]) with ordinality as f(job, token, error, delay, place)",
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
        self.fenced_update(
            &set,
            "",
            "$1::text[], $2::text[], $3::int[]) with ordinality as f(job, token, refund, place)",
            "false",
        )
    }

    fn is_alive(&self) -> String {
        self.p
            .columns
            .locked_until
            .as_ref()
            .map_or_else(String::new, |u| format!(" and {} > now()", self.p.t(u)))
    }

    pub(super) fn renew(&self) -> String {
        let Some(until) = &self.p.columns.locked_until else { return String::new() };
        let set = vec![format!("{} = now() + make_interval(secs => $3)", quote_ident(until))];
        let alive = self.is_alive();
        let returning = format!("extract(epoch from {}::timestamptz)", self.p.t(until));
        self.fenced_update(&set, &alive, PAIRS, &returning)
    }
}
