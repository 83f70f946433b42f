//! The statements of one ledger, built once from its profile and the catalog's types.

use super::backlog::BacklogStatements;
use crate::profile::{AttemptsCount, Profile};
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
}

/// Statement texts. Parameters are documented at the functions that run them.
#[derive(Clone, Debug)]
pub(super) struct Statements {
    pub claim: String,
    pub earliest: String,
    pub done: String,
    pub failed: String,
    pub give_back: String,
    pub renew: String,
    pub release: String,
    pub release_expired: String,
    pub find: String,
    pub lease_of: String,
    pub counts: String,
    pub count_expired_of: String,
    pub oldest_ready: String,
    pub next_scheduled: String,
    pub leases: String,
    pub enqueue: String,
    pub enqueue_quiet: String,
    pub mark_scratch: String,
    pub tally: String,
    pub backlog: BacklogStatements,
}

impl Statements {
    pub(super) fn build(p: &Profile, types: &Types) -> Self {
        let b = Builder { p, types };
        Self {
            claim: b.claim(),
            earliest: b.earliest(),
            done: b.done(),
            failed: b.failed(),
            give_back: b.give_back(),
            renew: b.renew(),
            release: b.release(),
            release_expired: b.release_expired(),
            find: b.find(),
            lease_of: b.leases(&format!("{} = $2::text::{}", p.id(), types.id)),
            counts: b.counts(),
            count_expired_of: b.count(&format!("{} and {}", b.is_expired(), b.is_holder("$2"))),
            oldest_ready: b.edge("now() - ", "<=", ""),
            next_scheduled: b.edge("", ">", " - now()"),
            leases: b.leases(&p.is_running()),
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
            ("failed", &self.failed),
            ("give_back", &self.give_back),
            ("renew", &self.renew),
            ("release", &self.release),
            ("release_expired", &self.release_expired),
            ("find", &self.find),
            ("counts", &self.counts),
            ("oldest_ready", &self.oldest_ready),
            ("next_scheduled", &self.next_scheduled),
            ("leases", &self.leases),
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
                format!("({param}::text is null or {}::text = {param}::text)", self.p.t(holder))
            }
            None => "false".to_owned(),
        }
    }

    /// The MATERIALIZED pick makes the limit hold under every plan: inlined into a join it may be run
    /// again for every outer row, and has been seen to lock 61 rows with LIMIT 5.
    fn claim(&self) -> String {
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

    fn earliest(&self) -> String {
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

    fn done(&self) -> String {
        let c = &self.p.columns;
        let mut set = vec![format!("{} = {}", quote_ident(&c.status), self.state(&self.p.states.done))];
        set.extend(self.p.clear_lease());
        set.extend(self.set(c.finished_at.as_ref(), "now()"));
        set.extend(self.set(c.done_at.as_ref(), "now()"));
        self.fenced_update(&set, "", "$1::text[], $2::text[]) as f(id, token)", "false")
    }

    fn failed(&self) -> String {
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

    fn give_back(&self) -> String {
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

    fn renew(&self) -> String {
        let Some(until) = &self.p.columns.locked_until else { return String::new() };
        let set = vec![format!("{} = now() + make_interval(secs => $3)", quote_ident(until))];
        let alive = format!(" and {} > now()", self.p.t(until));
        let returning = format!("{}::timestamptz", self.p.t(until));
        self.fenced_update(&set, &alive, "$1::text[], $2::text[]) as f(id, token)", &returning)
    }

    /// Ready again, lease cleared whole, due now: the order is by when it became ready.
    fn freed(&self) -> String {
        let c = &self.p.columns;
        let mut set = vec![format!("{} = {}", quote_ident(&c.status), self.state(&self.p.states.ready))];
        set.extend(self.p.clear_lease());
        set.push(format!("{} = now()", quote_ident(&c.run_at)));
        set.join(", ")
    }

    fn woke(&self) -> String {
        match &self.p.channel {
            Some(channel) => format!(
                "), woke as (\n  select pg_notify({}, 'ready') from (select 1 from freed limit 1) f\n",
                quote_literal(channel)
            ),
            None => String::new(),
        }
    }

    fn woke_count(&self) -> &'static str {
        if self.p.channel.is_some() { "(select count(*) from woke)" } else { "0::bigint" }
    }

    /// $1 id, $2 token, $3 expiry as seen (null: infinite), $4 operator, $5 how, $6 reason, $7 ledger,
    /// $8 holder as seen, $9 attempts as seen. Repeats all that the person saw.
    fn release(&self) -> String {
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

    /// $1 batch, $2 holder or null, $3 operator, $4 how, $5 reason, $6 ledger.
    ///
    /// Picked by expiry, which has an index: picked by id, the planner walks the primary key from its
    /// start, through every job that was ever finished. SKIP LOCKED alone keeps it out of deadlocks.
    fn release_expired(&self) -> String {
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
    fn find(&self) -> String {
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

    /// Whether a time is one that a person can be shown: neither infinite nor beyond what the client's
    /// calendar holds. Any other expiry, an empty one too, is shown as no end.
    fn is_shown(&self, time: &str) -> String {
        format!("{time} > '-infinity' and {time} < '10000-01-01'")
    }

    fn finite(&self, column: Option<&String>) -> String {
        match column {
            Some(c) => {
                let c = self.p.t(c);
                format!("case when {} then {c}::timestamptz end", self.is_shown(&c))
            }
            None => "null::timestamptz".to_owned(),
        }
    }

    /// $1 the cap plus one: no count reads further, whatever the table holds.
    fn count(&self, condition: &str) -> String {
        format!(
            "select count(*) from (select 1 from {} t where {condition} limit $1) capped",
            self.p.relation()
        )
    }

    /// All states in one statement, so that they are of one snapshot and add up: a job on its way from one
    /// state to another is counted once.
    fn counts(&self) -> String {
        let p = self.p;
        let each = [
            format!("{} and {} <= now()", p.is_ready(), p.run_at()),
            format!("{} and {} > now()", p.is_ready(), p.run_at()),
            p.is_running(),
            self.is_expired(),
            p.is_failed(),
        ];
        let parts: Vec<String> = each.iter().map(|c| format!("({})", self.count(c))).collect();
        format!("select {}", parts.join(",\n       "))
    }

    /// The first waiting row on one side of now.
    fn edge(&self, before: &str, side: &str, after: &str) -> String {
        let p = self.p;
        let run_at = p.run_at();
        format!(
            "select extract(epoch from {before}{run_at}{after})::float8\nfrom {rel} t\n\
             where {ready} and {run_at} {side} now() and isfinite({run_at})\norder by {run_at}\nlimit 1",
            rel = p.relation(),
            ready = p.is_ready(),
        )
    }

    /// $1 limit. Payloads are never listed.
    fn leases(&self, condition: &str) -> String {
        let p = self.p;
        let c = &p.columns;
        let Some(until) = &c.locked_until else { return String::new() };
        format!(
            "select {id}::text, {token}, {holder}, {job_type}, {finite}, {attempts}, {max}, {running}, {running} and {until} <= now()\nfrom {rel} t\n\
             where {condition}\norder by {until}, {id}\nlimit $1",
            id = p.id(),
            token = p.token(),
            holder = self.text_or_null(c.locked_by.as_ref(), "text"),
            job_type = self.text_or_null(c.job_type.as_ref(), "text"),
            finite = self.finite(c.locked_until.as_ref()),
            attempts = self.text_or_null(c.attempts.as_ref(), "int8"),
            max = self.text_or_null(c.max_attempts.as_ref(), "int8"),
            running = p.is_running_by_key(),
            rel = p.relation(),
            until = p.t(until),
        )
    }

    /// $1 types, $2 payloads, $3 keys, $4 due times or null: insert, then one wake-up if there is a channel,
    /// one transaction.
    fn enqueue(&self, channel: Option<&str>) -> String {
        let p = self.p;
        let c = &p.columns;
        let mut columns = vec![quote_ident(&c.status)];
        let mut values = vec![self.state(&p.states.ready)];
        for (column, value) in [(&c.job_type, "n.job_type"), (&c.key, "n.key")] {
            if let Some(column) = column {
                columns.push(quote_ident(column));
                values.push(value.to_owned());
            }
        }
        if let Some(payload) = &c.payload {
            columns.push(quote_ident(payload));
            values.push("n.payload::jsonb".to_owned());
        }
        columns.push(quote_ident(&c.run_at));
        values.push(
            if c.run_at_unset.is_some() { "n.run_at" } else { "coalesce(n.run_at, now())" }.to_owned(),
        );
        if let Some(created) = &c.created_at {
            columns.push(quote_ident(created));
            values.push("now()".to_owned());
        }
        let woke = match channel {
            Some(channel) => format!(
                ", woke as (\n  select pg_notify({}, 'ready') from (select 1 from added limit 1) a\n)\n\
                 select id from added where (select count(*) from woke) >= 0",
                quote_literal(channel)
            ),
            None => "\nselect id from added".to_owned(),
        };
        format!(
            "with added as (\n  insert into {rel} ({columns})\n  select {values}\n  \
             from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) with ordinality as n(job_type, payload, key, run_at, place)\n  \
             order by n.place\n  returning {id}::text as id\n){woke}",
            rel = p.relation(),
            columns = columns.join(", "),
            values = values.join(", "),
            id = quote_ident(&c.id),
        )
    }
}
