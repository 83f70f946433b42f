//! What a person does to a job that nobody holds: retry, give up, run now.

use super::Builder;
use crate::model::JobAction;
use crate::text::{quote_ident, quote_literal};

/// The end of an error that a table keeps from before, characters.
const BEFORE: u32 = 2000;

impl Builder<'_> {
    /// The state of the table that an action starts from.
    fn from(&self, action: JobAction) -> &str {
        let s = &self.p.states;
        match action {
            JobAction::Retry => &s.failed,
            JobAction::GiveUp | JobAction::RunNow => &s.ready,
        }
    }

    /// What an action sets. $6 operator, $7 reason.
    fn set_on_job(&self, action: JobAction) -> String {
        let p = self.p;
        let c = &p.columns;
        let status = |state: &str| format!("{} = {}", quote_ident(&c.status), self.state(state));
        let due_now = format!("{} = now()", quote_ident(&c.run_at));
        let set = match action {
            JobAction::Retry => {
                let mut set = vec![status(&p.states.ready)];
                set.extend(p.clear_lease());
                set.push(due_now);
                // Room for one more attempt, and no attempt counted again: where holder and attempts are the
                // fence, a number that comes twice would let a late holder through.
                if let (Some(attempts), Some(max)) = (&c.attempts, &c.max_attempts) {
                    let room = format!("greatest({}, {} + 1)", p.t(max), p.t(attempts));
                    set.extend(self.set(Some(max), &room));
                }
                set.extend(self.set(c.finished_at.as_ref(), "null"));
                set
            }
            JobAction::GiveUp => {
                let mut set = vec![status(&p.states.failed)];
                set.extend(p.clear_lease());
                if let Some(error) = &c.last_error {
                    let error = p.t(error);
                    let why = format!(
                        "'given up by ' || $6::text || ': ' || $7::text || coalesce(E'\\nbefore: ' || left({error}::text, {BEFORE}), '')"
                    );
                    set.extend(self.set(c.last_error.as_ref(), &why));
                }
                set.extend(self.set(c.finished_at.as_ref(), "now()"));
                set
            }
            JobAction::RunNow => vec![due_now],
        };
        set.join(", ")
    }

    /// A moment as it was shown; `param` is null for one without end.
    fn is_moment(&self, expression: &str, param: &str) -> String {
        format!(
            "({expression} = {param} or ({param}::timestamptz is null and ({}) is not true))",
            self.is_shown(expression)
        )
    }

    /// $1 id, $2 due as seen, $3 attempts as seen, $4 attempts allowed as seen, $5 end as seen, $6 operator,
    /// $7 reason, $8 ledger, $9 type as seen. Repeats all that the person saw.
    pub(super) fn on_job(&self, action: JobAction) -> String {
        let p = self.p;
        let c = &p.columns;
        let from = quote_literal(self.from(action));
        let finished = c.finished_at.as_ref().or(c.done_at.as_ref());
        let mut seen = vec![
            // through the primary key, whatever the statistics say of an index of this state
            format!("coalesce({}::text, '') = {from}", p.status()),
            self.is_moment(&p.run_at(), "$2"),
            format!("{} is not distinct from $3", self.text_or_null(c.attempts.as_ref(), "int8")),
            format!("{} is not distinct from $4", self.text_or_null(c.max_attempts.as_ref(), "int8")),
        ];
        seen.push(match finished {
            Some(column) => self.is_moment(&p.t(column), "$5"),
            None => "$5::timestamptz is null".to_owned(),
        });
        if action == JobAction::RunNow {
            seen.push(format!("{} > now()", p.run_at()));
        }
        let noted = if self.types.audit_actions {
            format!(
                "), noted as (\n  insert into pgwake.actions (operator, action, how, reason, ledger, job_id, job_type, state_was, run_at_was, attempts_was)\n  \
                 select $6, {}, 'one', $7, $8, id, $9, {from}, $2, $3 from freed\n",
                quote_literal(action.word())
            )
        } else {
            String::new()
        };
        let woke = if action.wakes() { self.woke() } else { String::new() };
        let woke_count = if woke.is_empty() { "0::bigint" } else { self.woke_count() };
        format!(
            "with freed as (\n  update {rel} t set {set}\n  where {id} = $1::text::{id_type} and {seen}\n  \
               returning {id}::text as id\n{noted}{woke})\nselect (select count(*) from freed), {woke_count}",
            rel = p.relation(),
            set = self.set_on_job(action),
            id = p.id(),
            id_type = self.types.id,
            seen = seen.join("\n    and "),
        )
    }
}
