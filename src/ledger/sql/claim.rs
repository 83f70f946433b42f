//! Taking jobs and looking at the head of the due order.

use super::Builder;
use crate::profile::AttemptsCount;
use crate::text::quote_ident;

impl Builder<'_> {
    /// $1 limit, $2 holder, $3 lease in seconds, $4 not due before this epoch.
    ///
    /// The MATERIALIZED pick makes the limit hold under every plan: inlined into a join it may be run
    /// again for every outer row, and has been seen to lock 61 rows with LIMIT 5.
    pub(super) fn claim(&self) -> String {
        let p = self.p;
        let c = &p.columns;
        let timed = match &c.created_at {
            Some(created) => format!("{} > {} + interval '1 second'", p.run_at(), p.t(created)),
            None => "false".to_owned(),
        };
        let mut set = vec![format!("{} = {}", quote_ident(&c.status), self.state(&p.states.running))];
        set.extend(self.set(c.locked_by.as_ref(), "$2"));
        set.extend(self.set(c.locked_until.as_ref(), "now() + make_interval(secs => $3)"));
        // One new token for all that this claim takes: a fence is the id and the token. One for each row would be
        // a system call for each, a fifteenth of what the server does for a job from claim to finish.
        set.extend(self.set(c.lease_token.as_ref(), "(select gen_random_uuid())"));
        if p.attempts_count == AttemptsCount::Claims
            && let Some(attempts) = &c.attempts
        {
            set.push(format!("{} = {} + 1", quote_ident(attempts), p.t(attempts)));
        }
        let mut give_up = vec![format!("{} = {}", quote_ident(&c.status), self.state(&p.states.failed))];
        give_up.extend(p.clear_lease());
        if let Some(holder) = &c.locked_by {
            let reason = format!(
                "'lease expired on the last attempt; held by ' || {} || ' until ' || {}::text",
                p.t(holder),
                c.locked_until.as_ref().map_or("''".to_owned(), |u| p.t(u))
            );
            give_up.extend(self.set(c.last_error.as_ref(), &reason));
        }
        give_up.extend(self.set(c.finished_at.as_ref(), "now()"));
        // By ctid the update needs no second way through the primary key. The rows are locked by this very
        // statement, so it is theirs still; id stands beside it because a ctid is one partition's own. A row
        // that another transaction changed just before is not seen by this snapshot, and waits for the next
        // claim.
        format!(
            "with due as materialized (\n  \
               select t.ctid as at, {id} as id, {due} as due, ({running}) as expired, ({timed}) as timed,\n         \
                      ({running}) and ({exhausted}) as exhausted\n  \
               from {rel} t\n  where {live} and {due} <= now() and {due} >= to_timestamp($4::float8)\n  \
               order by {due}, {id}\n  limit $1\n  for update skip locked\n\
             ), taken as (\n  \
               update {rel} t set {set}\n  from due d\n  where t.ctid = d.at and {id} = d.id and not d.exhausted\n  \
               returning {id}::text as id, {token} as token, {job_type} as job_type, {payload} as payload, {key} as key,\n            \
                         {attempts} as attempts, {max} as max_attempts, extract(epoch from {until})::text as until,\n            \
                         d.expired::text, d.timed::text, extract(epoch from d.due::timestamptz)::text as due\n\
             ), gave_up as (\n  \
               update {rel} t set {give_up}\n  from due d\n  where t.ctid = d.at and {id} = d.id and d.exhausted\n  \
               returning 1\n\
             )\n\
             select k.*, g.n::text\nfrom (select count(*) as n from gave_up) g left join taken k on true",
            id = p.id(),
            due = p.due(),
            running = p.is_running(),
            exhausted = p.is_exhausted_when_expired(),
            rel = p.relation(),
            live = p.live(),
            set = set.join(", "),
            token = p.token(),
            job_type = self.text_or_null(c.job_type.as_ref(), "text"),
            payload = self.text_or_null(c.payload.as_ref(), "text"),
            key = self.text_or_null(c.key.as_ref(), "text"),
            attempts = self.text_or_null(c.attempts.as_ref(), "text"),
            max = self.text_or_null(c.max_attempts.as_ref(), "text"),
            until = self.text_or_null(c.locked_until.as_ref(), "timestamptz"),
            give_up = give_up.join(", "),
        )
    }

    /// $1 limit. The rows that a claim would choose, unlocked: only to be planned.
    pub(super) fn pick(&self) -> String {
        let p = self.p;
        format!(
            "select {id} from {rel} t where {live} and {due} <= now() order by {due}, {id} limit $1",
            id = p.id(),
            rel = p.relation(),
            live = p.live(),
            due = p.due(),
        )
    }

    /// $1 not due before this epoch.
    pub(super) fn earliest(&self) -> String {
        let p = self.p;
        format!(
            "select (case when isfinite({due}) then extract(epoch from {due} - now()) else 0 end)::text\nfrom {rel} t\n\
             where {live} and {due} < 'infinity' and {due} >= to_timestamp($1::float8)\norder by {due}, {id}\nlimit 1",
            due = p.due(),
            rel = p.relation(),
            live = p.live(),
            id = p.id()
        )
    }
}
