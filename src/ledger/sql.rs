//! The statements of one ledger, built once from its profile and the catalog's types.

mod claim;
mod defer;
mod enqueue;
mod finish;
mod on_job;
mod prune;
mod read;
mod release;

use super::backlog::BacklogStatements;
use crate::model::JobAction;
use crate::profile::Profile;
use crate::text::{quote_ident, quote_literal};

/// Types of the catalog that statements cast to.
#[derive(Clone, Debug)]
pub(super) struct Types {
    /// Of the id column.
    pub id: String,
    /// Of the status column.
    pub status: String,
    /// Whether `pgwake.releases` is there to be written.
    pub audit: bool,
    /// The same for `pgwake.actions`.
    pub audit_actions: bool,
}

/// Statement texts. Parameters are documented at the functions that run them.
#[derive(Clone, Debug)]
pub(super) struct Statements {
    pub claim: String,
    pub pick: String,
    pub earliest: String,
    pub done: String,
    pub done_at_once: String,
    pub failed: String,
    pub defer: String,
    pub give_back: String,
    pub renew: String,
    pub still: String,
    pub still_alive: String,
    pub remove: String,
    pub remove_at_once: String,
    pub prune: String,
    pub prune_after: String,
    pub release: String,
    pub release_expired: String,
    pub retry: String,
    pub give_up: String,
    pub run_now: String,
    pub find: String,
    pub lease_of: String,
    pub counts: String,
    pub count_expired_of: String,
    pub oldest_ready: String,
    pub next_scheduled: String,
    pub leases: String,
    pub locked_rows: String,
    pub inconsistent: String,
    pub enqueue: String,
    pub enqueue_quiet: String,
    pub mark_scratch: String,
    pub tally: String,
    pub backlog: BacklogStatements,
}

impl Statements {
    pub(super) fn on_job(&self, action: JobAction) -> &str {
        match action {
            JobAction::Retry => &self.retry,
            JobAction::GiveUp => &self.give_up,
            JobAction::RunNow => &self.run_now,
        }
    }

    pub(super) fn build(p: &Profile, types: &Types) -> Self {
        let b = Builder { p, types };
        Self {
            claim: b.claim(),
            pick: b.pick(),
            earliest: b.earliest(),
            done: b.done(),
            done_at_once: b.done_at_once(),
            failed: b.failed(),
            defer: b.defer(),
            give_back: b.give_back(),
            renew: b.renew(),
            still: b.still(false),
            still_alive: b.still(true),
            remove: b.remove(),
            remove_at_once: b.remove_at_once(),
            prune: b.prune(false),
            prune_after: b.prune(true),
            release: b.release(),
            release_expired: b.release_expired(),
            retry: b.on_job(JobAction::Retry),
            give_up: b.on_job(JobAction::GiveUp),
            run_now: b.on_job(JobAction::RunNow),
            find: b.find(),
            lease_of: b.leases(&format!("{} = $2::text::{}", p.id(), types.id)),
            counts: b.counts(),
            count_expired_of: b.count(&format!("{} and {}", b.is_expired(), b.is_holder("$2"))),
            oldest_ready: b.edge("now() - ", "<=", ""),
            next_scheduled: b.edge("", ">", " - now()"),
            leases: b.leases(&p.is_running()),
            locked_rows: b.locked_rows(),
            inconsistent: b.inconsistent(),
            enqueue: b.enqueue(p.channel.as_deref()),
            enqueue_quiet: b.enqueue(None),
            tally: format!("select {}::text, count(*) from {} t group by 1", p.status(), p.relation()),
            backlog: BacklogStatements::build(p, types),
            mark_scratch: format!(
                "insert into pgwake.scratch (relation)\nselect $1 where not exists (select from {})\n\
                 on conflict (relation) do update set relation = excluded.relation\nreturning 1",
                p.relation()
            ),
        }
    }

    pub(super) fn named(&self) -> Vec<(&'static str, &str)> {
        vec![
            ("claim", &self.claim),
            ("earliest", &self.earliest),
            ("done", &self.done),
            ("done_at_once", &self.done_at_once),
            ("failed", &self.failed),
            ("defer", &self.defer),
            ("give_back", &self.give_back),
            ("renew", &self.renew),
            ("still", &self.still),
            ("still_alive", &self.still_alive),
            ("remove", &self.remove),
            ("remove_at_once", &self.remove_at_once),
            ("prune", &self.prune),
            ("prune_after", &self.prune_after),
            ("release", &self.release),
            ("release_expired", &self.release_expired),
            ("retry", &self.retry),
            ("give_up", &self.give_up),
            ("run_now", &self.run_now),
            ("find", &self.find),
            ("counts", &self.counts),
            ("oldest_ready", &self.oldest_ready),
            ("next_scheduled", &self.next_scheduled),
            ("leases", &self.leases),
            ("locked_rows", &self.locked_rows),
            ("inconsistent", &self.inconsistent),
            ("enqueue", &self.enqueue),
            ("enqueue_quiet", &self.enqueue_quiet),
        ]
    }
}

struct Builder<'a> {
    p: &'a Profile,
    types: &'a Types,
}

impl Builder<'_> {
    fn state(&self, value: &str) -> String {
        // With the column's own type: an enum takes a literal, but no text that a CASE has decided on.
        format!("{}::{}", quote_literal(value), self.types.status)
    }

    fn set(&self, column: Option<&String>, value: &str) -> Option<String> {
        column.map(|c| format!("{} = {value}", quote_ident(c)))
    }

    fn text_or_null(&self, column: Option<&String>, cast: &str) -> String {
        column.map_or_else(|| format!("null::{cast}"), |c| format!("{}::{cast}", self.p.t(c)))
    }

    fn is_expired(&self) -> String {
        match &self.p.columns.locked_until {
            Some(until) => format!("{} and {} <= now()", self.p.is_running(), self.p.t(until)),
            None => "false".to_owned(),
        }
    }

    fn is_holder(&self, param: &str) -> String {
        match &self.p.columns.locked_by {
            Some(holder) => {
                format!("({param}::text[] is null or {}::text = any({param}::text[]))", self.p.t(holder))
            }
            None => "false".to_owned(),
        }
    }
}
