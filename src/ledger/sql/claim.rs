//! Taking jobs and looking at the head of the due order.

use super::Builder;
use crate::profile::AttemptsCount;
use crate::text::quote_ident;

impl Builder<'_> {
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
        set.extend(self.set(c.lease_token.as_ref(), "gen_random_uuid()"));
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
        format!(
            "with due as materialized (\n  \
               select {id} as id, {due} as due, ({running}) as expired, ({timed}) as timed,\n         \
                      ({running}) and ({exhausted}) as exhausted\n  \
               from {rel} t\n  where {live} and {due} <= now()\n  order by {due}, {id}\n  limit $1\n  \
               for update skip locked\n\
             ), taken as (\n  \
               update {rel} t set {set}\n  where {id} = any (array(select id from due where not exhausted))\n  \
               returning {id} as id, {token} as token, {job_type} as job_type, {payload} as payload, {key} as key,\n            \
                         {attempts} as attempts, {max} as max_attempts, {until} as until\n\
             ), gave_up as (\n  \
               update {rel} t set {give_up}\n  where {id} = any (array(select id from due where exhausted))\n  \
               returning 1\n\
             )\n\
             select k.id::text, k.token, k.job_type, k.payload, k.key, k.attempts, k.max_attempts, k.until, d.expired, d.timed,\n       \
                    extract(epoch from d.due)::float8, g.n\n\
             from (select count(*) as n from gave_up) g\n\
             left join (taken k join due d on d.id = k.id) on true",
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
            attempts = self.text_or_null(c.attempts.as_ref(), "int8"),
            max = self.text_or_null(c.max_attempts.as_ref(), "int8"),
            until = self.text_or_null(c.locked_until.as_ref(), "timestamptz"),
            give_up = give_up.join(", "),
        )
    }

    pub(super) fn earliest(&self) -> String {
        let p = self.p;
        format!(
            "select case when isfinite({due}) then extract(epoch from {due} - now())::float8 else 0 end\nfrom {rel} t\n\
             where {live} and {due} < 'infinity'\norder by {due}, {id}\nlimit 1",
            due = p.due(),
            rel = p.relation(),
            live = p.live(),
            id = p.id()
        )
    }
}
