//! What the slow lane reads: the backlog by type, lists of jobs, one job, and the table itself.
//!
//! Every statement looks at a bounded number of rows, whatever the table holds and however rare a type
//! is: types are picked from the first rows of a state, never searched for. Lists never name the payload;
//! one job's payload is read only when somebody asked, and only its beginning.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::Ledger;
use super::sql::Types;
use crate::model::{JobFacts, JobRow, JobState, Looked, PastRelease, Payload, TableFacts, TypeCount};
use crate::pg::{Error, Fields, Session};
use crate::profile::Profile;
use crate::text::{clean, clean_block, quote_ident, quote_literal};

/// Types listed at most.
const TYPES: i64 = 500;
/// Characters of a payload that are read at most.
const PAYLOAD: i32 = 4096;
/// Releases are searched for among the newest so many.
const RELEASES: i64 = 10_000;

const STATES: [JobState; 4] = [JobState::Running, JobState::Ready, JobState::Scheduled, JobState::Failed];

/// Statement texts of this file.
#[derive(Clone, Debug)]
pub(super) struct BacklogStatements {
    by_type: [String; 4],
    jobs: String,
    job: String,
    job_with_payload: String,
}

impl BacklogStatements {
    pub(super) fn build(p: &Profile, types: &Types) -> Self {
        let b = Builder { p, types };
        Self {
            by_type: STATES.map(|s| b.by_type(s)),
            jobs: b.jobs(),
            job: b.job(false),
            job_with_payload: b.job(true),
        }
    }

    pub(super) fn named(&self) -> Vec<(&'static str, &str)> {
        vec![
            ("running_by_type", &self.by_type[0]),
            ("ready_by_type", &self.by_type[1]),
            ("scheduled_by_type", &self.by_type[2]),
            ("failed_by_type", &self.by_type[3]),
            ("jobs", &self.jobs),
            ("job", &self.job),
            ("job_with_payload", &self.job_with_payload),
        ]
    }
}

struct Builder<'a> {
    p: &'a Profile,
    types: &'a Types,
}

impl Builder<'_> {
    fn column(&self, name: Option<&String>, cast: &str) -> String {
        name.map_or_else(|| format!("null::{cast}"), |c| format!("{}::{cast}", self.p.t(c)))
    }

    fn kind(&self) -> String {
        format!("coalesce({}, '')", self.column(self.p.columns.job_type.as_ref(), "text"))
    }

    fn finite(&self, expression: &str) -> String {
        format!("case when isfinite({expression}) then {expression}::timestamptz end")
    }

    /// The rows of a state and the order in which an index gives them.
    fn rows_of(&self, state: JobState) -> (String, String) {
        let p = self.p;
        // by when it became ready, as the counts read it: an index of ready jobs alone serves that
        let (run_at, id) = (p.run_at(), p.id());
        match state {
            JobState::Ready => (format!("{} and {run_at} <= now()", p.is_ready()), run_at),
            JobState::Scheduled => (format!("{} and {run_at} > now()", p.is_ready()), run_at),
            JobState::Running => {
                let by = p
                    .columns
                    .locked_until
                    .as_ref()
                    .map_or_else(|| id.clone(), |u| format!("{}, {id}", p.t(u)));
                (p.is_running(), by)
            }
            JobState::Failed | JobState::Done => (p.is_failed(), format!("{id} desc")),
        }
    }

    /// $1 rows to look at, $2 types to list.
    fn by_type(&self, state: JobState) -> String {
        let (condition, order) = self.rows_of(state);
        let due = self.p.run_at();
        let edge = |expression: String| format!("case when isfinite({due}) then {expression}::float8 end");
        let (edge, fold) = match state {
            JobState::Ready => (edge(format!("extract(epoch from now() - {due})")), "max"),
            JobState::Scheduled => (edge(format!("extract(epoch from {due} - now())")), "min"),
            _ => ("null::float8".to_owned(), "max"),
        };
        format!(
            "select md5(s.kind), left(s.kind, 512), count(*), {fold}(s.edge), (sum(count(*)) over ())::int8\n\
             from (select {kind} as kind, {edge} as edge\n      from {rel} t\n      where {condition}\n      \
             order by {order}\n      limit $1) s\ngroup by s.kind\norder by 3 desc, 2\nlimit $2",
            kind = self.kind(),
            rel = self.p.relation(),
        )
    }

    fn listed(&self) -> String {
        let p = self.p;
        let c = &p.columns;
        format!(
            "{id}::text as id, {kind} as kind, {due} as due, {attempts} as attempts, {max} as most, \
             {holder} as holder, {error} as error",
            id = p.id(),
            kind = self.kind(),
            due = self.finite(&p.due()),
            attempts = self.column(c.attempts.as_ref(), "int8"),
            max = self.column(c.max_attempts.as_ref(), "int8"),
            holder = self.column(c.locked_by.as_ref(), "text"),
            error = self.column(c.last_error.as_ref(), "text"),
        )
    }

    /// $1 rows to look at in each state, $2 key of the type or null, $3 jobs to list of each state.
    fn jobs(&self) -> String {
        let limbs: Vec<String> = STATES
            .into_iter()
            .map(|state| {
                let (condition, order) = self.rows_of(state);
                format!(
                    "(select '{word}', b.id, left(b.kind, 512), b.due, b.attempts, b.most, left(b.holder, 512), left(b.error, 512)\n \
                     from (select {listed}\n       from {rel} t\n       where {condition}\n       order by {order}\n       limit $1) b\n \
                     where $2::text is null or md5(b.kind) = $2::text\n limit $3)",
                    word = state.word(),
                    listed = self.listed(),
                    rel = self.p.relation(),
                )
            })
            .collect();
        limbs.join("\nunion all\n")
    }

    /// $1 id.
    fn job(&self, payload: bool) -> String {
        let p = self.p;
        let c = &p.columns;
        let due = p.due();
        let is = |value: &str| format!("{}::text = {}", p.status(), quote_literal(value));
        let state = format!(
            "case when {ready} and {due} <= now() then 'ready' when {ready} then 'scheduled' \
             when {running} then 'running' when {failed} then 'failed' when {done} then 'done' end",
            ready = is(&p.states.ready),
            running = is(&p.states.running),
            failed = is(&p.states.failed),
            done = is(&p.states.done),
        );
        let time = |name: Option<&String>| {
            name.map_or_else(|| "null::timestamptz".to_owned(), |c| self.finite(&p.t(c)))
        };
        // what an action compares with: no calendar holds more
        let at = p.run_at();
        let run_at =
            format!("case when {at} > '-infinity' and {at} < '10000-01-01' then {at}::timestamptz end");
        let payload = match &c.payload {
            Some(column) if payload => {
                let text = format!("t.{}::text", quote_ident(column));
                format!(
                    "pg_column_size({})::int8, octet_length({text})::int8, left({text}, {PAYLOAD})",
                    p.t(column)
                )
            }
            Some(column) => format!("pg_column_size({})::int8, null::int8, null::text", p.t(column)),
            None => "null::int8, null::int8, null::text".to_owned(),
        };
        format!(
            "select {state}, {listed}, {status}::text, {key}, {created}, {finished}, {until}, {payload}, {run_at}\n\
             from {rel} t\nwhere {id} = $1::text::{id_type}",
            listed = self.listed(),
            status = p.status(),
            key = self.column(c.key.as_ref(), "text"),
            created = time(c.created_at.as_ref()),
            finished = time(c.finished_at.as_ref().or(c.done_at.as_ref())),
            until = time(c.locked_until.as_ref()),
            rel = p.relation(),
            id = p.id(),
            id_type = self.types.id,
        )
    }
}

/// A partitioned table is the sum of its parts; its own statistics say nothing.
const TABLE: &str = "\
select c.relkind in ('r', 'p', 'm'),
       (case when c.relkind = 'p' then (select sum(pg_table_size(relid)) from pg_partition_tree(c.oid))
             else pg_table_size(c.oid) end)::int8,
       (case when c.relkind = 'p' then (select sum(pg_indexes_size(relid)) from pg_partition_tree(c.oid))
             else pg_indexes_size(c.oid) end)::int8,
       case when c.relkind <> 'p' then s.n_live_tup end, case when c.relkind <> 'p' then s.n_dead_tup end,
       greatest(s.last_vacuum, s.last_autovacuum), s.last_autovacuum, s.autovacuum_count,
       exists (select 1 from pg_stat_progress_vacuum v where v.relid = c.oid)
from pg_class c left join pg_stat_all_tables s on s.relid = c.oid
where c.oid = $1::text::regclass";

const PAST: &str = "\
select r.released_at, r.operator, r.holder, r.was_expired
from (select * from pgwake.releases order by id desc limit $3) r
where r.ledger = $1 and r.job_id = $2
limit 10";

impl Ledger {
    /// The first `limit` jobs of one state by type.
    ///
    /// # Errors
    /// As any statement; the session's own statement_timeout bounds it.
    pub async fn by_type(&self, session: &Session, state: JobState, limit: i64) -> Result<Looked, Error> {
        let Some(at) = STATES.iter().position(|s| *s == state) else { return Ok(Looked::default()) };
        let sql = &self.inner.sql.backlog.by_type[at];
        let rows = session.rows(sql, &[(&(limit + 1), Type::INT8), (&TYPES, Type::INT8)]).await?;
        let seen: i64 = rows.first().map_or(Ok(0), |r| r.field(4))?;
        Ok(Looked {
            types: rows
                .iter()
                .map(|r| {
                    Ok(TypeCount {
                        key: r.field(0)?,
                        job_type: clean(r.field(1)?),
                        jobs: u64::try_from(r.field::<i64>(2)?).unwrap_or(0),
                        edge: r.field(3)?,
                    })
                })
                .collect::<Result<_, Error>>()?,
            seen: u64::try_from(seen.min(limit)).unwrap_or(0),
            more: seen > limit,
        })
    }

    /// Jobs of one type (by its key) or of all: at most `limit` of each state, found among the first
    /// `among` of each.
    ///
    /// # Errors
    /// As any statement.
    pub async fn jobs(
        &self,
        session: &Session,
        key: Option<&str>,
        among: i64,
        limit: i64,
    ) -> Result<Vec<JobRow>, Error> {
        let params: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
            [(&among, Type::INT8), (&key, Type::TEXT), (&limit, Type::INT8)];
        session.rows(&self.inner.sql.backlog.jobs, &params).await?.iter().map(job_row).collect()
    }

    /// One job in full; its payload only when asked for, and only the beginning of it.
    ///
    /// # Errors
    /// As any statement; also an id that the column's type does not take.
    pub async fn job(&self, session: &Session, id: &str, payload: bool) -> Result<Option<JobFacts>, Error> {
        let b = &self.inner.sql.backlog;
        let sql = if payload { &b.job_with_payload } else { &b.job };
        let rows = session.rows(sql, &[(&id, Type::TEXT)]).await?;
        let Some(r) = rows.first() else { return Ok(None) };
        let error: Option<&str> = r.field(7)?;
        Ok(Some(JobFacts {
            row: job_row(r)?,
            status: clean(r.field(8)?),
            key: r.field::<Option<&str>>(9)?.map(clean),
            created: r.field(10)?,
            run_at: r.field(16)?,
            finished: r.field(11)?,
            expires: r.field(12)?,
            error: error.map(clean_block),
            payload: Payload {
                stored: number(r, 13)?,
                length: number(r, 14)?,
                text: r.field::<Option<&str>>(15)?.map(clean_block),
            },
        }))
    }

    /// Releases of one job by hand, newest first, as far as the schema keeps them.
    ///
    /// # Errors
    /// As any statement; 42P01 where the schema is not there.
    pub async fn releases_of(&self, session: &Session, id: &str) -> Result<Vec<PastRelease>, Error> {
        let params: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
            [(&self.name(), Type::TEXT), (&id, Type::TEXT), (&RELEASES, Type::INT8)];
        let rows = session.rows(PAST, &params).await?;
        rows.iter()
            .map(|r| {
                Ok(PastRelease {
                    at: r.field(0)?,
                    operator: clean(r.field(1)?),
                    holder: clean(r.field(2)?),
                    was_expired: r.field(3)?,
                })
            })
            .collect()
    }

    /// Size, dead rows and vacuums of the table; `None` for what is no plain table.
    ///
    /// # Errors
    /// As any statement; 55P03 while somebody holds the table against readers.
    pub async fn table_facts(&self, session: &Session) -> Result<Option<TableFacts>, Error> {
        let relation = self.profile().relation();
        let rows = session.rows(TABLE, &[(&relation, Type::TEXT)]).await?;
        let Some(r) = rows.first() else { return Ok(None) };
        if !r.field::<bool>(0)? {
            return Ok(None);
        }
        Ok(Some(TableFacts {
            table_bytes: number(r, 1)?.unwrap_or(0),
            index_bytes: number(r, 2)?.unwrap_or(0),
            live: number(r, 3)?,
            dead: number(r, 4)?,
            vacuumed: r.field(5)?,
            autovacuumed: r.field(6)?,
            autovacuums: number(r, 7)?,
            vacuuming: r.field(8)?,
        }))
    }
}

/// Columns 0–7 of a list and of one job are the same.
fn job_row(r: &Row) -> Result<JobRow, Error> {
    let text = |i: usize| Ok::<_, Error>(r.field::<Option<&str>>(i)?.map(clean));
    Ok(JobRow {
        id: text(1)?.unwrap_or_default(),
        job_type: text(2)?.unwrap_or_default(),
        state: r.field::<Option<&str>>(0)?.and_then(JobState::from_word),
        due: r.field(3)?,
        attempts: r.field(4)?,
        max_attempts: r.field(5)?,
        holder: text(6)?,
        error: text(7)?,
    })
}

/// A count; a negative one, which no statement here means, is unknown.
fn number(r: &Row, at: usize) -> Result<Option<u64>, Error> {
    Ok(r.field::<Option<i64>>(at)?.and_then(|n| u64::try_from(n).ok()))
}
