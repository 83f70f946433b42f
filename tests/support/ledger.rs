//! Databases with the schema `pgwake`, sessions of the program itself, and words for its ledgers.

use std::time::Duration;

use pgwake::ledger::{self, Audit, Job, LeaseRow, Ledger, NewJob};
use pgwake::model::Lease;
use pgwake::pg::{Conninfo, Options, Purpose, Session};
use pgwake::profile::{Profile, builtin};
use tokio_postgres::Client;

use super::{Db, database};

/// A lease that outlasts every test.
pub const LONG: Duration = Duration::from_secs(600);
/// A lease that is over as soon as it is given.
pub const OVER: Duration = Duration::ZERO;

/// As the program would resolve it, with an empty environment.
pub fn conninfo(text: &str) -> Conninfo {
    let options = Options { conninfo: Some(text.to_owned()), ..Options::default() };
    Conninfo::resolve(&options, &|_| None).expect("a connection string")
}

/// A session of the program.
pub async fn session(db: &Db) -> Session {
    session_for(db, Purpose::Work).await
}

/// A session of the program for one purpose.
pub async fn session_for(db: &Db, purpose: Purpose) -> Session {
    Session::connect(&conninfo(db.conninfo()), purpose).await.expect("a session")
}

/// A fresh database with the schema.
pub async fn migrated() -> Db {
    let db = database().await;
    let mut session = session_for(&db, Purpose::Command).await;
    ledger::migrate(&mut session).await.expect("a migration");
    db
}

/// A fresh database with the schema, a session in it, and one of the built-in ledgers.
pub async fn with_ledger(profile: &str) -> (Db, Session, Ledger) {
    let db = migrated().await;
    let session = session(&db).await;
    let ledger = open(&session, profile).await;
    (db, session, ledger)
}

/// One of the built-in ledgers.
pub async fn open(session: &Session, profile: &str) -> Ledger {
    open_profile(session, builtin(profile).expect("a built-in profile").expect("a valid profile")).await
}

/// The ledger of a profile.
pub async fn open_profile(session: &Session, profile: Profile) -> Ledger {
    Ledger::open(session, profile).await.unwrap_or_else(|e| panic!("{e}"))
}

/// One value as text; `None` for null and for no row.
pub async fn ask(client: &Client, sql: &str) -> Option<String> {
    let sql = format!("select (x.v)::text from ({sql}) as x(v)");
    client.query_opt(&sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e:?}")).and_then(|row| row.get(0))
}

/// A number.
pub async fn number(client: &Client, sql: &str) -> i64 {
    ask(client, sql).await.expect("a number").parse().expect("a number")
}

/// Runs statements.
pub async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
}

/// The SQLSTATE of a refusal; panics when the statement was accepted.
pub async fn refusal(client: &Client, sql: &str) -> String {
    match client.batch_execute(sql).await {
        Ok(()) => panic!("accepted: {sql}"),
        Err(e) => e.code().unwrap_or_else(|| panic!("{sql}: {e}")).code().to_owned(),
    }
}

/// Adds `n` jobs that are due now; their ids in order.
pub async fn fill(session: &Session, ledger: &Ledger, n: usize) -> Vec<String> {
    let job = NewJob { job_type: "mail".into(), payload: "{}".into(), ..NewJob::default() };
    ledger.enqueue(session, &vec![job; n]).await.expect("jobs")
}

/// Claims for `holder` with a lease.
pub async fn claim(
    session: &Session,
    ledger: &Ledger,
    holder: &str,
    n: usize,
    lease: Duration,
) -> Vec<Job> {
    ledger.claim(session, holder, n, lease).await.expect("a claim").jobs
}

/// Claims exactly one job.
pub async fn claim_one(session: &Session, ledger: &Ledger, holder: &str, lease: Duration) -> Job {
    let mut jobs = claim(session, ledger, holder, 1, lease).await;
    assert_eq!(jobs.len(), 1, "one job for {holder}");
    jobs.remove(0)
}

/// The whole row as it stands, as text.
pub async fn row(client: &Client, ledger: &Ledger, id: &str) -> String {
    let p = ledger.profile();
    ask(client, &format!("select t from {} t where {}::text = '{id}'", p.relation(), p.id()))
        .await
        .unwrap_or_else(|| panic!("no row {id}"))
}

/// What identifies a claim.
pub fn key(job: &Job) -> (String, String) {
    (job.id.clone(), job.token.clone())
}

/// The ids of jobs, in their order.
pub fn ids(jobs: &[Job]) -> Vec<&str> {
    jobs.iter().map(|j| j.id.as_str()).collect()
}

/// The table that the profile `jobs-plain` expects: no token column.
pub const PLAIN: &str = "create table public.jobs (
    id bigserial primary key, job_type varchar(40) not null, payload json, status varchar(10) not null,
    run_at timestamptz not null default now(), created_at timestamptz not null default now(),
    attempts int not null default 0, max_attempts int not null default 5,
    locked_by text, locked_until timestamptz, last_error text, finished_at timestamptz);
    create index on public.jobs
    ((case status when 'ready' then run_at when 'running' then locked_until end), id)
    where status in ('ready', 'running');";

/// Every built-in profile, each with its table in a database of its own.
pub async fn every_builtin() -> Vec<(Db, Session, Ledger)> {
    let mut all = vec![with_ledger("jobs").await, with_ledger("outbox").await];
    let db = migrated().await;
    run(&db.connect().await, PLAIN).await;
    let session = session(&db).await;
    let ledger = open(&session, "jobs-plain").await;
    all.push((db, session, ledger));
    all
}

/// Who releases, in tests.
pub fn audit() -> Audit {
    Audit { operator: "ann@desk".into(), reason: "holder is dead".into() }
}

/// A lease as a person sees it now.
pub async fn lease_of(session: &Session, ledger: &Ledger, id: &str) -> Lease {
    let row = ledger.lease_of(session, id).await.expect("a lease").expect("a row");
    assert!(row.running, "{id} is held");
    seen(row)
}

/// A row of the lease list as a lease that a person saw.
pub fn seen(row: LeaseRow) -> Lease {
    Lease {
        id: row.id,
        token: row.token,
        holder: row.holder,
        job_type: row.job_type,
        expires: row.expires,
        attempts: row.attempts,
        max_attempts: row.max_attempts,
        seen_since: chrono::Utc::now(),
        held_exact: false,
    }
}
