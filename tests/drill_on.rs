//! `pgwake drill --on`: on somebody's server only what the drill has created there is touched, and nothing
//! of it is left.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/program.rs"]
mod program;
mod support;

use std::process::{Child, Command, Stdio};

use pgwake::demo::{Options, Server};
use pgwake::ledger::are_pooled;
use pgwake::pg;
use program::run;
use rustix::process::{Pid, Signal, kill_process};
use support::{DEADLINE, connect, database_on, wait_until};
use tokio_postgres::Client;

/// A server of the test's own, with a database of somebody's on it.
async fn somebodys() -> (Server, support::Db, Client) {
    let server = Server::start(Options::default()).unwrap();
    let db = database_on(&server).await;
    let client = db.connect().await;
    client.batch_execute("create table precious as select 1 as id").await.unwrap();
    (server, db, client)
}

/// Everything that a drill could leave behind on a server: databases, roles, sessions, settings, and what is
/// in the database that was named.
async fn inventory(client: &Client) -> Vec<String> {
    let sql = "select 'database ' || datname || coalesce(datacl::text, '') || datallowconn from pg_database
               union all select 'role ' || rolname from pg_roles
               union all select 'setting ' || s::text from pg_db_role_setting s
               union all select 'session ' || application_name from pg_stat_activity
                         where backend_type = 'client backend' and pid <> pg_backend_pid()
               union all select 'relation ' || oid::regclass::text from pg_class where relnamespace = 'public'::regnamespace
               union all select 'schema ' || nspname from pg_namespace
               order by 1";
    client.query(sql, &[]).await.unwrap().iter().map(|r| r.get(0)).collect()
}

async fn scratches(client: &Client) -> Vec<String> {
    let sql = "select datname::text from pg_database where datname like 'pgwake\\_drill\\_%'";
    client.query(sql, &[]).await.unwrap().iter().map(|r| r.get(0)).collect()
}

async fn until_as_before(client: &Client, before: &[String]) {
    let mut now = Vec::new();
    let same = async || {
        now = inventory(client).await;
        (now == before).then_some(())
    };
    let end = tokio::time::timeout(DEADLINE, wait_until("as before", DEADLINE * 2, same)).await;
    assert!(end.is_ok(), "before {before:#?}\nafter {now:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_drill_that_can_run_elsewhere_holds_there_and_the_server_is_as_it_was() {
    let (_server, db, client) = somebodys().await;
    let role = "create role tester login createdb";
    client.batch_execute(role).await.unwrap();
    let before = inventory(&client).await;
    let on = format!("{} user=tester", db.conninfo());
    let ran = tokio::task::spawn_blocking(move || run(&["drill", "all", "--json", "--on", &on], &[], ""));
    let ran = ran.await.unwrap();
    assert_eq!(ran.code, 0, "{ran:?}");
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["held"], true);
    let of = |outcome: &str| -> Vec<&str> {
        let all = report["drills"].as_array().unwrap().iter();
        all.filter(|d| d["outcome"] == outcome).map(|d| d["name"].as_str().unwrap()).collect()
    };
    assert_eq!(of("not_run"), ["listener-frozen", "server-restarted", "listener-holds-queue"]);
    assert_eq!(of("held").len(), pgwake::drill::ALL.len() - 3);
    assert_eq!((report["run"].as_u64(), report["not_run"].as_u64()), (Some(10), Some(3)));
    until_as_before(&client, &before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drill_that_needs_a_server_of_its_own_is_not_counted_as_passed() {
    let (_server, db, client) = somebodys().await;
    let before = inventory(&client).await;
    let on = db.conninfo().to_owned();
    let ran =
        tokio::task::spawn_blocking(move || run(&["drill", "server-restarted", "--on", &on], &[], ""));
    let ran = ran.await.unwrap();
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.starts_with("not run server-restarted\n"), "{}", ran.out);
    assert!(ran.out.contains("needs a server of its own: it restarts the server"), "{}", ran.out);
    assert!(ran.out.contains("0 of 0 held, 1 not run here"), "{}", ran.out);
    until_as_before(&client, &before).await;
}

/// It fails with one line, and leaves nothing.
async fn is_refused(on: String, client: &Client, word: &str) {
    let before = inventory(client).await;
    let ran = tokio::task::spawn_blocking(move || run(&["drill", "--on", &on], &[], "")).await.unwrap();
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(ran.out, "", "no drill was begun");
    assert!(ran.err.contains(word) && ran.err.lines().count() == 1, "{}", ran.err);
    until_as_before(client, &before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_may_not_create_databases_is_refused() {
    let (_server, db, client) = somebodys().await;
    client.batch_execute("create role modest login").await.unwrap();
    let on = format!("{} user=modest", db.conninfo());
    is_refused(on, &client, "role modest may not create databases").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_refused() {
    let files = vec![("standby.signal".to_owned(), Vec::new())];
    let server = Server::start(Options { files, ..Options::default() }).unwrap();
    let client = connect(&server.conninfo("postgres")).await;
    is_refused(server.conninfo("postgres"), &client, "it is a standby; name its primary").await;
}

#[tokio::test]
async fn sessions_that_are_one_session_of_the_server_are_found_out() {
    let (_server, db, _client) = somebodys().await;
    let options = pg::Options { conninfo: Some(db.conninfo().to_owned()), ..pg::Options::default() };
    let conninfo = pg::Conninfo::resolve(&options, &|_| None).unwrap();
    let connect = async || pg::Session::connect(&conninfo, pg::Purpose::Command).await.unwrap();
    let (one, other) = (connect().await, connect().await);
    assert!(!are_pooled(&one, &other).await.unwrap());
    // What a pooler makes of two clients.
    assert!(are_pooled(&one, &one).await.unwrap());
}

#[test]
fn a_server_that_is_not_there_is_one_line() {
    let ran = run(&["drill", "--on", "host=/nowhere dbname=x user=u"], &[], "");
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    assert!(ran.err.contains("u@[/nowhere]:5432/x") && ran.err.lines().count() == 1, "{}", ran.err);
}

#[test]
fn what_cannot_be_meant_is_usage() {
    for args in [
        &["drill", "--on", "hots=h"][..],
        &["drill", "--on", "x", "--pg-bin", "/usr/bin"],
        &["drill", "-d", "production"],
    ] {
        let ran = run(args, &[], "");
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    }
}

fn spawn(on: &str, drill: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_pgwake"))
        .args(["drill", drill, "--on", on])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Processes that this one has started.
fn children(of: u32) -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in brackets may hold anything; state and parent follow the last bracket.
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
    };
    let names = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok());
    pids.filter(|pid| parent(*pid) == Some(of)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_in_the_middle_of_a_drill_leaves_no_database_no_session_and_no_process() {
    let (_server, db, client) = somebodys().await;
    let before = inventory(&client).await;
    for (signal, word) in [(Signal::TERM, "SIGTERM"), (Signal::INT, "SIGINT"), (Signal::HUP, "SIGHUP")] {
        let child = spawn(db.conninfo(), "worker-stopped");
        // Until the process of the drill is in the middle of its batch.
        let work = "select count(*) from pg_stat_activity
                    where datname like 'pgwake\\_drill\\_%' and application_name like '%/work %'";
        wait_until("its worker is at work", DEADLINE, async || {
            let n: i64 = client.query_one(work, &[]).await.unwrap().get(0);
            (n > 0).then_some(())
        })
        .await;
        assert_eq!(scratches(&client).await.len(), 1);
        let workers = children(child.id());
        assert_eq!(workers.len(), 1, "the worker is a process");
        kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
        let out = tokio::task::spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
        let err = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{err}");
        assert_eq!(err, format!("pgwake: ended by {word}\n"));
        assert_eq!(scratches(&client).await, [""; 0], "gone when the program is");
        assert!(!std::path::Path::new(&format!("/proc/{}", workers[0])).exists(), "and the worker with it");
        until_as_before(&client, &before).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drill_that_fails_in_the_middle_leaves_nothing() {
    let (_server, db, client) = somebodys().await;
    let before = inventory(&client).await;
    let child = spawn(db.conninfo(), "worker-stopped");
    // The drill's own sessions are ended under its hands.
    wait_until("the drill was cut off", DEADLINE, async || {
        let sql = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                   where datname like 'pgwake\\_drill\\_%' and application_name like '%/command'
                     and query like '%pgwake%'";
        let n: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
        (n > 0).then_some(())
    })
    .await;
    let out = tokio::task::spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
    let err = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert!(err.contains("the drill could not be set up: 57P01") && err.lines().count() == 1, "{err}");
    assert_eq!(scratches(&client).await, [""; 0]);
    until_as_before(&client, &before).await;
}
