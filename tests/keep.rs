//! Retention: what is deleted, what stays, and that nobody waits for it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;
#[path = "support/work.rs"]
mod work;

use std::time::Duration;

use pgwake::config;
use pgwake::ledger::Pruned;
use pgwake::model::WorkerEvent;
use pgwake::profile::Profile;
use pgwake::worker::{Setup, WorkerError};
use support::ledger::{ask, every_builtin, number, open, run, session, with_ledger};
use support::{DEADLINE, wait_until};
use work::{Bench, Effects, Running, profile, settings};

const HOUR: Duration = Duration::from_secs(3600);

/// How the columns and states of the built-in tables are called.
struct Names {
    table: &'static str,
    kind: &'static str,
    ready: &'static str,
    running: &'static str,
    done: &'static str,
    failed: &'static str,
    due: &'static str,
    done_at: &'static str,
    /// Set when a job gives up.
    failed_at: Option<&'static str>,
    token: bool,
}

fn names(profile: &str) -> Names {
    let jobs = Names {
        table: "pgwake.jobs",
        kind: "job_type",
        ready: "ready",
        running: "running",
        done: "done",
        failed: "failed",
        due: "run_at",
        done_at: "finished_at",
        failed_at: Some("finished_at"),
        token: true,
    };
    match profile {
        "jobs" => jobs,
        "jobs-plain" => Names { table: "public.jobs", token: false, ..jobs },
        _ => Names {
            table: "pgwake.outbox",
            kind: "topic",
            ready: "PENDING",
            running: "PROCESSING",
            done: "SENT",
            failed: "FAILED",
            due: "next_attempt_at",
            done_at: "sent_at",
            failed_at: None,
            token: true,
        },
    }
}

/// One row of every kind, created two hours ago unless it is young; ids 1 to 8.
fn one_of_each(n: &Names) -> String {
    let Names { table, kind, ready, running, done, failed, due, done_at, .. } = n;
    let (token, tokens) = if n.token { (", lease_token", ", gen_random_uuid()") } else { ("", "") };
    let failed_at = n.failed_at.map(|c| format!(", {c}")).unwrap_or_default();
    let failed_when = n.failed_at.map(|_| ", now() - interval '2 h'").unwrap_or_default();
    let old = "now() - interval '2 h'";
    format!(
        "insert into {table} ({kind}, status, created_at, {done_at}) values ('old done', '{done}', {old}, {old});
         insert into {table} ({kind}, status, created_at) values ('old ready', '{ready}', {old});
         insert into {table} ({kind}, status, created_at, {due}) values ('scheduled', '{ready}', {old}, now() + interval '1 d');
         insert into {table} ({kind}, status, created_at, locked_by, locked_until{token})
           values ('running', '{running}', {old}, 'x', now() + interval '1 h'{tokens});
         insert into {table} ({kind}, status, created_at{failed_at}) values ('failed', '{failed}', {old}{failed_when});
         insert into {table} ({kind}, status, created_at, {done_at})
           values ('done of late', '{done}', {old}, now() - interval '59 min');
         insert into {table} ({kind}, status, created_at, {done_at}) values ('old done', '{done}', {old}, {old});
         insert into {table} ({kind}, status, {done_at}) values ('young done', '{done}', now());"
    )
}

const STAY: &str = "done of late,failed,old ready,running,scheduled,young done";

#[tokio::test]
async fn only_jobs_that_were_done_long_enough_ago_are_deleted() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        let n = names(ledger.name());
        run(&client, &one_of_each(&n)).await;
        let pruned = ledger.prune(&session, HOUR, None, 1000).await.unwrap();
        let last = Some("8".to_owned());
        let wanted = Pruned { rows: 8, gone: 2, early: true, last, cleared: Some("1".to_owned()) };
        assert_eq!(pruned, wanted, "{}", ledger.name());
        let left = format!("select string_agg({0}, ',' order by {0}) from {1}", n.kind, n.table);
        assert_eq!(ask(&client, &left).await.as_deref(), Some(STAY), "{}", ledger.name());
        let again = ledger.prune(&session, HOUR, None, 1000).await.unwrap();
        assert_eq!((again.gone, again.cleared), (0, None), "{}", ledger.name());
    }
}

/// Old done jobs with ids from 1, and the same number of young ones after them.
fn old_and_young(n: usize) -> String {
    format!(
        "insert into pgwake.jobs (job_type, status, created_at, finished_at)
         select 't', 'done', t, t from (select now() - interval '2 h' as t from generate_series(1, {n})) x;
         insert into pgwake.jobs (job_type, status, finished_at) select 't', 'done', now() from generate_series(1, {n})"
    )
}

#[tokio::test]
async fn a_page_takes_no_more_than_it_may_and_the_next_one_goes_on_after_it() {
    let (db, session, ledger) = with_ledger("jobs").await;
    let client = db.connect().await;
    run(&client, &old_and_young(25)).await;
    let mut after = None;
    let mut pages = Vec::new();
    loop {
        let page = ledger.prune(&session, HOUR, after.as_deref(), 10).await.unwrap();
        assert!(page.rows <= 10 && page.gone <= 10);
        pages.push((page.gone, page.early, page.cleared));
        after = page.last;
        if !page.early {
            break;
        }
    }
    let id = |n: &str| Some(n.to_owned());
    let wanted = [(10, true, id("10")), (10, true, id("20")), (5, true, id("25")), (0, false, None)];
    assert_eq!(pages, wanted);
    assert_eq!(number(&client, "select count(*) from pgwake.jobs").await, 25);
    let end = ledger.prune(&session, HOUR, Some("999"), 10).await.unwrap();
    assert_eq!(end, Pruned::default(), "an empty page");
}

#[tokio::test]
async fn a_row_that_somebody_holds_locked_is_passed_over_and_no_other_row_is_locked() {
    let (db, session, ledger) = with_ledger("jobs").await;
    let (client, other) = (db.connect().await, db.connect().await);
    run(&client, &one_of_each(&names("jobs"))).await;
    other.batch_execute("begin; select from pgwake.jobs where id = 1 for update").await.unwrap();
    let pruned = ledger.prune(&session, HOUR, None, 1000).await.unwrap();
    assert_eq!((pruned.gone, pruned.cleared), (1, None));
    other.batch_execute("rollback").await.unwrap();
    // Within a transaction that stays open the deleted row alone is locked.
    let sql = ledger.statements().iter().find(|(n, _)| *n == "prune").unwrap().1.to_owned();
    let sql = sql.replace("$1", "1000").replace("$2", "3600");
    other.batch_execute(&format!("begin; {sql}")).await.unwrap();
    let free = "select count(*) from (select from pgwake.jobs for update skip locked) t";
    assert_eq!(number(&client, free).await, 6);
    other.batch_execute("rollback").await.unwrap();
    assert_eq!(number(&client, free).await, 7);
}

#[tokio::test]
async fn two_who_prune_the_same_page_delete_each_row_once() {
    let (db, one, ledger) = with_ledger("jobs").await;
    let client = db.connect().await;
    let two = session(&db).await;
    let same = open(&two, "jobs").await;
    for _ in 0..5 {
        run(&client, &format!("truncate pgwake.jobs; {}", old_and_young(1000))).await;
        let (a, b) = tokio::join!(ledger.prune(&one, HOUR, None, 1000), same.prune(&two, HOUR, None, 1000));
        assert_eq!(a.unwrap().gone + b.unwrap().gone, 1000);
        assert_eq!(number(&client, "select count(*) from pgwake.jobs").await, 1000);
    }
}

fn keeping(keep: Option<Duration>) -> config::Worker {
    config::Worker { keep, ..settings() }
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_worker_deletes_what_is_old_while_it_works_and_says_how_much() {
    let bench = Bench::new().await;
    bench.run(&old_and_young(2500)).await;
    bench.run("update pgwake.jobs set finished_at = 'infinity' where id > 2500").await;
    let worker = bench.start(keeping(Some(SECOND)), Effects::default().handler()).await;
    bench.enqueue(3).await;
    bench.until(2500, "all old jobs gone", "select count(*) from pgwake.jobs").await;
    let told = || {
        let events = worker.worker_events().into_iter();
        events.map(|e| if let WorkerEvent::Pruned { jobs, .. } = e { jobs } else { 0 }).sum::<u64>()
    };
    wait_until("it is told", DEADLINE, async || (told() == 2503).then_some(())).await;
    let summary = worker.stop().await;
    assert_eq!((summary.done, summary.pruned), (3, 2503), "those that it has done itself, too");
    let sessions = "select count(*) from pg_stat_activity where application_name like '%/prune%' and datname = current_database()";
    bench.until(0, "its session is closed", sessions).await;
}

#[tokio::test]
async fn without_a_limit_nothing_is_deleted_and_zero_deletes_at_completion_only() {
    for (ledger, insert, table) in [
        ("jobs", "insert into pgwake.jobs (job_type) values ('t')", "pgwake.jobs"),
        ("outbox", "insert into pgwake.outbox (topic) values ('t')", "pgwake.outbox"),
        ("jobs-plain", "insert into public.jobs (job_type, status) values ('t', 'ready')", "public.jobs"),
    ] {
        let bench = Bench::new().await;
        bench.run(support::ledger::PLAIN).await;
        bench.run(&one_of_each(&names(ledger))).await;
        bench.run(&format!("delete from {table} where {} = 'old ready'", names(ledger).kind)).await;
        let count = format!("select count(*) from {table}");
        for (keep, left) in [(None, 8), (Some(Duration::ZERO), 8)] {
            bench.run(insert).await;
            let profiles = vec![profile(ledger)];
            let setup = Setup { profiles, until_empty: true, ..bench.setup(keeping(keep)) };
            let summary = Running::start(setup, Effects::default().handler()).task.await.unwrap().unwrap();
            assert_eq!((summary.done, summary.pruned), (1, 0), "{ledger} {keep:?}");
            assert_eq!(bench.number(&count).await, left, "{ledger} {keep:?}");
        }
    }
}

#[tokio::test]
async fn claims_go_on_while_the_table_is_pruned_and_a_person_holds_rows() {
    let bench = Bench::new().await;
    bench.run(&old_and_young(3000)).await;
    bench.run("update pgwake.jobs set finished_at = 'infinity' where id > 3000").await;
    let other = bench.db.connect().await;
    other.batch_execute("begin; select from pgwake.jobs where id in (7, 1500) for update").await.unwrap();
    let effects = Effects::default();
    let worker = bench.start(keeping(Some(SECOND)), effects.handler()).await;
    let left = "select count(*) from pgwake.jobs where id <= 3000";
    for n in 1..=20 {
        bench.enqueue(5).await;
        wait_until("claims go on", DEADLINE, async || (effects.len() == n * 5).then_some(())).await;
    }
    bench.until(2, "all but what is held", left).await;
    assert_eq!(worker.count(|e| matches!(e, WorkerEvent::PruneFailed { .. })), 0);
    assert_eq!(bench.counter("claims_error").await + bench.counter("claims_contended").await, 0);
    other.batch_execute("commit").await.unwrap();
    bench.until(0, "the rest, as soon as it is free", left).await;
    assert_eq!(worker.stop().await.lost, 0);
}

/// A role that may do everything but delete.
async fn without_delete(bench: &Bench) -> Setup {
    let role = format!("no_delete_{}", bench.db.name);
    bench
        .run(&format!(
            "create role {role} login; grant usage on schema pgwake to {role};
             grant select, insert, update on all tables in schema pgwake to {role}"
        ))
        .await;
    let mut setup = bench.setup(keeping(Some(SECOND)));
    setup.conninfo.user = role;
    setup
}

#[tokio::test]
async fn a_worker_that_may_not_delete_says_so_once_and_works_on() {
    let bench = Bench::new().await;
    bench.run(&old_and_young(3)).await;
    let worker = Running::start(without_delete(&bench).await, Effects::default().handler());
    let refused = worker.until("a warning", |e| matches!(e, WorkerEvent::PruneFailed { .. })).await;
    let WorkerEvent::PruneFailed { loss, .. } = &refused else { unreachable!() };
    assert_eq!(loss.sqlstate.as_deref(), Some("42501"), "{loss}");
    bench.enqueue(4).await;
    bench.until_done(10).await;
    // Walks come every second: another one has been refused meanwhile.
    let role = &without_delete_name(&bench);
    let walks = format!(
        "select count(*) from pg_stat_activity where usename = '{role}' and application_name like '%/prune%'"
    );
    wait_until("another walk", DEADLINE, async || (bench.number(&walks).await == 0).then_some(())).await;
    wait_until("another walk", DEADLINE, async || (bench.number(&walks).await == 1).then_some(())).await;
    wait_until("its end", DEADLINE, async || (bench.number(&walks).await == 0).then_some(())).await;
    assert_eq!(worker.count(|e| matches!(e, WorkerEvent::PruneFailed { .. })), 1);
    assert_eq!(worker.stop().await.done, 4);
}

fn without_delete_name(bench: &Bench) -> String {
    format!("no_delete_{}", bench.db.name)
}

async fn refusal(setup: Setup) -> WorkerError {
    let worker = Running::start(setup, Effects::default().handler());
    let ended = tokio::time::timeout(DEADLINE, worker.task).await.expect("it does not begin to work");
    ended.unwrap().unwrap_err()
}

#[tokio::test]
async fn what_could_not_be_deleted_at_completion_is_refused_at_the_start() {
    let bench = Bench::new().await;
    let mut setup = without_delete(&bench).await;
    setup.settings.keep = Some(Duration::ZERO);
    let error = refusal(setup).await.to_string();
    assert!(error.contains("jobs") && error.contains("grant delete on \"pgwake\".\"jobs\""), "{error}");
}

#[tokio::test]
async fn a_profile_that_does_not_say_when_jobs_were_done_is_refused_at_the_start() {
    let bench = Bench::new().await;
    let text = include_str!("../src/profile/builtin/jobs.toml");
    for (from, to, says) in [
        ("finished_at = \"finished_at\"\n", "", "no finished_at and no done_at"),
        ("created_at = \"created_at\"\n", "", "no created_at"),
        ("done = \"done\"", "done = \"failed\"", "the state done"),
        ("done = \"done\"", "done = \"\"", "the state done"),
    ] {
        assert!(text.contains(from));
        let profiles = vec![Profile::parse(&text.replace(from, to), "mine").unwrap()];
        let error = refusal(Setup { profiles, ..bench.setup(keeping(Some(HOUR))) }).await.to_string();
        assert!(error.starts_with("ledger jobs: ") && error.contains(says), "{error}");
        assert!(error.contains("forever") && !error.contains('\n'), "{error}");
    }
}

#[tokio::test]
async fn a_job_that_cannot_be_deleted_at_completion_is_done_and_kept_instead_of_run_again() {
    let bench = Bench::new().await;
    bench.run("create table mine (job bigint references pgwake.jobs)").await;
    bench.insert(2).await;
    bench.run("insert into mine values (1)").await;
    let effects = Effects::default();
    let worker = bench.start(keeping(Some(Duration::ZERO)), effects.handler()).await;
    let refused = worker.until("a warning", |e| matches!(e, WorkerEvent::PruneFailed { .. })).await;
    assert!(
        matches!(refused, WorkerEvent::PruneFailed { loss, .. } if loss.sqlstate.as_deref() == Some("23503"))
    );
    bench.until_done(2).await;
    assert_eq!(worker.stop().await.done, 2);
    effects.assert_each_once(2);
}

#[tokio::test]
async fn ids_that_do_not_grow_are_all_looked_at() {
    let bench = Bench::new().await;
    bench
        .run(
            "create table things (like pgwake.jobs including all);
             alter table things alter id drop identity;
             alter table things alter id type uuid using gen_random_uuid();
             insert into things (id, job_type, status, created_at, finished_at)
             select gen_random_uuid(), 't', 'done', 'infinity', 'infinity' from generate_series(1, 3000);
             insert into things (id, job_type, status, created_at, finished_at)
             values ('ffffffff-ffff-ffff-ffff-ffffffffffff', 'old', 'done', '-infinity', now() - interval '2 h')",
        )
        .await;
    let text = include_str!("../src/profile/builtin/jobs.toml")
        .replace("schema = \"pgwake\"", "schema = \"public\"")
        .replace("table = \"jobs\"", "table = \"things\"");
    let profiles = vec![Profile::parse(&text, "things").unwrap()];
    let worker = Running::start(
        Setup { profiles, ..bench.setup(keeping(Some(SECOND))) },
        Effects::default().handler(),
    );
    bench.until(3000, "the last one is gone", "select count(*) from things").await;
    assert_eq!(worker.stop().await.pruned, 1);
}

#[tokio::test]
async fn two_workers_that_prune_do_each_other_no_harm() {
    let bench = Bench::new().await;
    bench.run(&old_and_young(4000)).await;
    bench.run("update pgwake.jobs set finished_at = 'infinity' where id > 4000").await;
    let start = |name: &str| {
        let setup = Setup { name: name.to_owned(), ..bench.setup(keeping(Some(SECOND))) };
        Running::start(setup, Effects::default().handler())
    };
    let (one, other) = (start("one"), start("other"));
    bench.until(4000, "all old jobs gone", "select count(*) from pgwake.jobs").await;
    let failed = |w: &Running| w.count(|e| matches!(e, WorkerEvent::PruneFailed { .. }));
    assert_eq!((failed(&one), failed(&other)), (0, 0));
    assert_eq!(one.stop().await.pruned + other.stop().await.pruned, 4000);
}
