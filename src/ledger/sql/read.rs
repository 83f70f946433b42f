//! What the monitor reads: capped counts, edges of the due order, leases.

use super::Builder;

impl Builder<'_> {
    /// Whether a time is one that a person can be shown: neither infinite nor beyond what the client's
    /// calendar holds. Any other expiry, an empty one too, is shown as no end.
    pub(super) fn is_shown(&self, time: &str) -> String {
        format!("{time} > '-infinity' and {time} < '10000-01-01'")
    }

    pub(super) fn finite(&self, column: Option<&String>) -> String {
        match column {
            Some(c) => {
                let c = self.p.t(c);
                format!("case when {} then {c}::timestamptz end", self.is_shown(&c))
            }
            None => "null::timestamptz".to_owned(),
        }
    }

    /// $1 the cap plus one: no count reads further, whatever the table holds.
    pub(super) fn count(&self, condition: &str) -> String {
        format!(
            "select count(*) from (select 1 from {} t where {condition} limit $1) capped",
            self.p.relation()
        )
    }

    /// All states in one statement, so that they are of one snapshot and add up: a job on its way from one
    /// state to another is counted once.
    pub(super) fn counts(&self) -> String {
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
    pub(super) fn edge(&self, before: &str, side: &str, after: &str) -> String {
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
    pub(super) fn leases(&self, condition: &str) -> String {
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

    /// $1 rows to look at: the first due ones, and which transactions have them locked. A lock on a row is
    /// its xmax and nothing in `pg_locks`, but every transaction and subtransaction that has a number holds
    /// a lock on that, a prepared one without a backend.
    pub(super) fn locked_rows(&self) -> String {
        let p = self.p;
        format!(
            "with due as materialized (\n  \
               select t.xmax as x from {rel} t where {live} and {due} <= now() order by {due}, {id} limit $1\n\
             ), held as (\n  \
               select l.pid, min(l.virtualtransaction) as vxid, count(*) as n\n  \
               from due join pg_locks l on l.locktype = 'transactionid' and l.granted and l.transactionid = due.x\n  \
               where exists (select from due where x <> '0') and l.pid is distinct from pg_backend_pid()\n  \
               group by l.pid, case when l.pid is null then l.virtualtransaction end\n\
             )\n\
             select (select count(*) from due), h.n, h.pid, p.gid,\n       \
                    coalesce(a.application_name, p.owner::text), a.state,\n       \
                    extract(epoch from clock_timestamp() - coalesce(a.xact_start, p.prepared))::float8\n\
             from (select 1) one\nleft join held h on true\n\
             left join pg_stat_activity a on a.pid = h.pid\n\
             left join pg_prepared_xacts p on h.pid is null and p.transaction = any (array(\n  \
               select t.transactionid from pg_locks t\n  \
               where t.pid is null and t.locktype = 'transactionid' and t.virtualtransaction = h.vxid))\n\
             order by h.n desc nulls last, h.pid\nlimit $1",
            rel = p.relation(),
            live = p.live(),
            due = p.due(),
            id = p.id(),
        )
    }

    /// $1 the cap plus one. Rows of the live states that no scan will ever take: without a due time, or held
    /// until infinity. Both stand at one end of the due index.
    pub(super) fn inconsistent(&self) -> String {
        let p = self.p;
        let rel = p.relation();
        let (live, due) = (p.live(), p.due());
        format!(
            "select (select count(*) from (select 1 from {rel} t where {live} and {due} is null limit $1) a),\n       \
             (select count(*) from (select 1 from {rel} t where {live} and {due} = 'infinity' and {running} limit $1) b)",
            running = p.is_running(),
        )
    }
}
