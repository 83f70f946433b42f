//! The commands as a person or a cron job runs them: what they print, their exit codes, and bad input.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/program.rs"]
mod program;
mod support;

use pgwake::demo::{Options, Server};
use program::{Ran, run};
use support::{Db, database};

/// A database with the schema, its ledgers marked as scratch.
async fn scratch() -> Db {
    let db = database().await;
    let ran = run(&["migrate", db.conninfo(), "--scratch"], &[], "");
    assert_eq!(ran.code, 0, "{ran:?}");
    db
}

/// One line on standard error that says all of this; nothing on standard output; this exit code.
fn fails(ran: &Ran, code: i32, says: &[&str]) {
    assert_eq!(ran.code, code, "{ran:?}");
    assert_eq!(ran.err.trim_end().lines().count(), 1, "one line: {}", ran.err);
    for part in says {
        assert!(ran.err.contains(part), "{part:?} in {}", ran.err);
    }
    assert_eq!(ran.out, "");
}

#[tokio::test]
async fn a_hundred_jobs_committed_while_no_worker_runs_are_each_done_once() {
    let db = scratch().await;
    let lines: String = (0..100).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    let added = run(&["enqueue", "mail", "-", "-d", db.conninfo()], &[], &lines);
    assert_eq!((added.code, added.out.as_str()), (0, "100 jobs added\n"), "{added:?}");
    let worked = run(&["work", db.conninfo(), "--until-empty", "--handler", "noop"], &[], "");
    assert_eq!(worked.code, 0, "{worked:?}");
    assert_eq!(worked.out, "done 100  failed 0  lost 0  given back 0\n");
    let client = db.connect().await;
    let row = client
        .query_one(
            "select count(*), min(attempts), max(attempts), bool_and(finished_at is not null)
             from pgwake.jobs where status = 'done'",
            &[],
        )
        .await
        .unwrap();
    let got: (i64, i32, i32, bool) = (row.get(0), row.get(1), row.get(2), row.get(3));
    assert_eq!(got, (100, 1, 1, true));
}

#[tokio::test]
async fn migrate_prints_what_it_would_run_and_running_it_again_does_nothing() {
    let db = database().await;
    let printed = run(&["migrate", "--print"], &[], "");
    assert_eq!(printed.code, 0);
    assert!(printed.out.contains("create table pgwake.jobs") && printed.out.contains("pg_notify"));
    assert_eq!(run(&["migrate", db.conninfo()], &[], "").code, 0);
    let again = run(&["migrate", db.conninfo()], &[], "");
    assert!(again.out.contains("nothing to do"), "{again:?}");
}

#[tokio::test]
async fn a_ledger_with_rows_is_not_marked_as_scratch() {
    let db = database().await;
    run(&["migrate", db.conninfo()], &[], "");
    run(&["enqueue", "mail", "-d", db.conninfo()], &[], "");
    let ran = run(&["migrate", db.conninfo(), "--scratch"], &[], "");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("ledger jobs is not empty"), "{ran:?}");
    let refused = run(&["work", db.conninfo(), "--handler", "noop", "--until-empty"], &[], "");
    fails(&refused, 1, &["ledger jobs is not marked as scratch", "pgwake migrate --scratch"]);
    let keyed = run(&["enqueue", "mail", "--key", "k", "-d", db.conninfo()], &[], "");
    fails(&keyed, 2, &["ledger jobs has no message key"]);
}

#[tokio::test]
async fn a_command_is_run_for_each_job_on_a_ledger_that_is_not_scratch() {
    let db = database().await;
    run(&["migrate", db.conninfo()], &[], "");
    run(&["enqueue", "mail", "-", "-d", db.conninfo()], &[], "1\n2\n3\n");
    let args = [
        "work",
        db.conninfo(),
        "--profile",
        "jobs",
        "--until-empty",
        "--handler",
        "exec",
        "--job-timeout",
        "1m",
    ];
    let ran = run(&[&args[..], &["--", "sh", "-c", "[ $(cat) != 2 ]"]].concat(), &[], "");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.out, "done 2  failed 1  lost 0  given back 0\n");
}

#[tokio::test]
async fn what_was_done_long_ago_is_deleted_and_counted_and_zero_keeps_nothing() {
    let db = scratch().await;
    let client = db.connect().await;
    let old = "insert into pgwake.jobs (job_type, status, created_at, finished_at)
               select 't', 'done', t, t from (select now() - interval '8 d' as t from generate_series(1, 5)) x";
    client.batch_execute(old).await.unwrap();
    run(&["enqueue", "mail", "-", "-d", db.conninfo()], &[], "{\"ms\": 5000}\n");
    let work = |keep: &str| {
        run(&["work", db.conninfo(), "--until-empty", "--handler", "simulate", "--keep", keep], &[], "")
    };
    let worked = work("7d");
    assert_eq!(worked.out, "done 1  failed 0  lost 0  given back 0  pruned 5\n", "{worked:?}");
    assert!(worked.err.contains("jobs: 5 jobs deleted that were done long enough ago"), "{}", worked.err);
    run(&["enqueue", "mail", "-d", db.conninfo()], &[], "");
    assert_eq!(work("0").out, "done 1  failed 0  lost 0  given back 0\n");
    let left: i64 = client.query_one("select count(*) from pgwake.jobs", &[]).await.unwrap().get(0);
    assert_eq!(left, 1, "that of the first run");
}

/// A configuration file of this test's own.
fn config(name: &str, text: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn the_command_of_the_configuration_file_is_run_and_flags_go_over_it() {
    let db = database().await;
    assert_eq!(run(&["migrate", db.conninfo()], &[], "").code, 0);
    let client = db.connect().await;
    let file = config(
        "command.toml",
        "[worker]\ncommand = [\"sh\", \"-c\", 'exit $(($PGWAKE_JOB_ID + $1))', \"sh\", \"2\"]\njob_timeout = \"1s\"\n",
    );
    let work = |more: &[&str]| {
        let args = ["work", db.conninfo(), "--config", &file, "--until-empty"];
        run(&[&args, more].concat(), &[], "")
    };
    let job = "truncate pgwake.jobs restart identity; insert into pgwake.jobs (job_type, max_attempts) values ('t', 1)";
    client.batch_execute(job).await.unwrap();
    let error = async || -> String {
        client.query_one("select last_error from pgwake.jobs", &[]).await.unwrap().get(0)
    };
    assert_eq!(work(&[]).out, "done 0  failed 1  lost 0  given back 0\n");
    assert_eq!(error().await, "exit status 3");
    client.batch_execute(job).await.unwrap();
    assert_eq!(work(&["--", "sh", "-c", "exit 4"]).code, 0);
    assert_eq!(error().await, "exit status 4");
    client.batch_execute(job).await.unwrap();
    assert_eq!(work(&["--", "sleep", "60"]).code, 0);
    assert_eq!(error().await, "stopped at its deadline of 1s");
    client.batch_execute(job).await.unwrap();
    fails(&work(&["--handler", "noop"]), 1, &["not marked as scratch"]);
    let missing = config("missing.toml", "[worker]\ncommand = [\"no-such-program-anywhere\"]\n");
    let args = ["work", db.conninfo(), "--config", &missing];
    fails(&run(&args, &[], ""), 2, &["no-such-program-anywhere", "no such program"]);
    let held: i64 =
        client.query_one("select count(*) from pgwake.jobs where attempts > 0", &[]).await.unwrap().get(0);
    assert_eq!(held, 0, "nothing was claimed");
}

#[tokio::test]
async fn status_is_one_json_object_with_an_entry_per_ledger_and_no_escape_byte() {
    let db = scratch().await;
    run(&["enqueue", "mail", "-d", db.conninfo()], &[], "");
    let ran = run(&["status", db.conninfo(), "--json"], &[], "");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ran.out.contains('\u{1b}'));
    let v: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let names: Vec<&str> =
        v["ledgers"].as_array().unwrap().iter().map(|l| l["ledger"].as_str().unwrap()).collect();
    assert_eq!(names, ["jobs", "outbox"]);
    let jobs = &v["ledgers"][0];
    assert_eq!((&jobs["ready"]["value"], &jobs["ready"]["quality"]), (&1.into(), &"exact".into()));
    assert_eq!(jobs["done_per_second"]["value"], serde_json::Value::Null, "one sample has no rate");
    // of one sample, what has to last can only be pending
    let alert = |name: &str| {
        let all = jobs["alerts"].as_array().unwrap();
        all.iter().find(|a| a["name"] == name).unwrap_or_else(|| panic!("{name}: {all:?}")).clone()
    };
    let no_worker = alert("no-worker");
    assert_eq!((&no_worker["state"], &no_worker["figure"]), (&"pending".into(), &"1 due".into()));
    assert_eq!(no_worker["must_last_seconds"], 5.0);
    assert_eq!(no_worker["since"], jobs["taken_at"]);
    assert_eq!(alert("queue-full")["state"], "ok");
    let text = run(&["status", db.conninfo()], &[], "");
    assert!(text.out.contains("oldest ready") && !text.out.contains('\u{1b}'), "{text:?}");
}

#[test]
fn a_runbook_is_printed_for_a_pipe_with_ones_own_keys() {
    let bare = &[("PGWAKE_CONFIG", ""), ("XDG_CONFIG_HOME", "/nonexistent")];
    let one = run(&["runbook", "no-worker"], bare, "");
    assert!(one.code == 0 && one.out.starts_with("# No worker is alive\n"), "{one:?}");
    assert!(one.out.contains("Press `4` (workers)") && !one.out.contains(['{', '\u{1b}']), "{one:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.toml");
    std::fs::write(&file, "[keys]\nworkers = \"F4\"\n").unwrap();
    let own = run(&["runbook", "no-worker", "--config", file.to_str().unwrap()], &[], "");
    assert!(own.out.contains("Press `F4` (workers)"), "{own:?}");
    let all = run(&["runbook"], bare, "");
    assert!(all.out.starts_with("# Runbooks\n") && all.out.contains("## Recovery takes long"), "{all:?}");
    fails(&run(&["runbook", "no-wroker"], bare, ""), 2, &["no-wroker", "no-worker"]);
}

#[tokio::test]
async fn release_has_the_guards_of_the_screen() {
    let db = scratch().await;
    let client = db.connect().await;
    let lines = "{}\n".repeat(4);
    run(&["enqueue", "mail", "-", "-d", db.conninfo()], &[], &lines);
    client
        .batch_execute(
            "update pgwake.jobs set status = 'running', locked_by = 'gone', lease_token = gen_random_uuid(),
             locked_until = now() - interval '1 minute' where id <= 2;
             update pgwake.jobs set status = 'running', locked_by = 'alive', lease_token = gen_random_uuid(),
             locked_until = now() + interval '1 hour' where id = 3",
        )
        .await
        .unwrap();
    let d = ["-d", db.conninfo()];
    let with = |args: &[&str]| run(&[args, &d].concat(), &[], "");

    let listed = with(&["leases", "--json"]);
    let leases: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(leases.as_array().unwrap().len(), 3, "{listed:?}");

    fails(&with(&["release"]), 2, &["--expired", "--holder"]);
    fails(&with(&["release", "--expired"]), 2, &["no terminal", "--yes"]);
    fails(&with(&["release", "--expired", "--dry-run"]), 2, &["jobs and outbox", "--profile"]);
    let dry = with(&["release", "--expired", "--dry-run", "--profile", "jobs"]);
    assert_eq!((dry.code, dry.out.contains("would release 2 expired leases")), (0, true), "{dry:?}");
    fails(&with(&["release", "4", "--yes"]), 1, &["job 4 is not held"]);
    fails(&with(&["release", "99", "--yes"]), 1, &["there is no job 99"]);
    fails(&with(&["release", "x", "--yes"]), 1, &["job x"]);

    let bulk = with(&["release", "--expired", "--yes", "--reason", "incident 7", "--profile", "jobs"]);
    assert_eq!((bulk.code, bulk.out.as_str()), (0, "released 2\n"), "{bulk:?}");
    let one = with(&["release", "3", "--yes"]);
    assert!(one.code == 0 && one.out.contains("jobs: job 3 held by alive"), "{one:?}");

    let rows = client
        .query("select job_id, holder, how, reason, was_expired from pgwake.releases order by id", &[])
        .await
        .unwrap();
    let got: Vec<(String, String, String, String, bool)> =
        rows.iter().map(|r| (r.get(0), r.get(1), r.get(2), r.get(3), r.get(4))).collect();
    let row = |id: &str, holder: &str, how: &str, why: &str, expired| {
        (id.to_owned(), holder.to_owned(), how.to_owned(), why.to_owned(), expired)
    };
    assert_eq!(
        got,
        [
            row("1", "gone", "all expired", "incident 7", true),
            row("2", "gone", "all expired", "incident 7", true),
            row("3", "alive", "one", "from the command line", false),
        ]
    );
    let ready: i64 = client
        .query_one("select count(*) from pgwake.jobs where status = 'ready'", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(ready, 4);
    let audit = std::fs::read_to_string(program::state_dir().join("releases.log")).unwrap();
    assert!(audit.lines().any(|l| l.contains("job 3 held by alive") && l.contains("released")), "{audit}");
}

#[tokio::test]
async fn retry_give_up_and_run_now_have_the_guards_of_the_screen() {
    let db = scratch().await;
    let client = db.connect().await;
    run(&["enqueue", "mail", "-", "-d", db.conninfo()], &[], &"{}\n".repeat(5));
    client
        .batch_execute(
            "update pgwake.jobs set status = 'failed', attempts = 5, finished_at = now(), last_error = 'e' where id = 1;
             update pgwake.jobs set run_at = now() + interval '1 hour' where id in (2, 3);
             update pgwake.jobs set status = 'running', locked_by = 'alive', lease_token = gen_random_uuid(),
             locked_until = now() + interval '1 hour' where id = 5",
        )
        .await
        .unwrap();
    let with = |args: &[&str]| run(&[args, &["-d", db.conninfo()]].concat(), &[], "");
    for command in ["retry", "give-up", "run-now"] {
        fails(&with(&[command]), 2, &["<ID>"]);
        fails(&with(&[command, "1"]), 2, &[command, "no terminal", "--yes"]);
        fails(&with(&[command, "99", "--yes"]), 1, &["there is no job 99", "jobs and outbox"]);
        fails(&with(&[command, "x", "--yes"]), 1, &["job x"]);
        fails(
            &with(&[command, "99", "--yes", "--profile", "jobs"]),
            1,
            &["job 99: there is none in ledger jobs"],
        );
    }
    fails(&with(&["retry", "4", "--yes"]), 1, &["job 4: only a failed job can be retried", "ready"]);
    fails(&with(&["run-now", "4", "--dry-run"]), 1, &["job 4: only a scheduled job", "ready"]);
    fails(&with(&["give-up", "5", "--yes"]), 1, &["job 5:", "running", "release its lease first"]);
    fails(&with(&["give-up", "1", "--yes"]), 1, &["job 1:", "this one is failed"]);
    let all = "select string_agg(id || status || attempts || max_attempts || run_at::text, ' ' order by id) from pgwake.jobs";
    let state = async || client.query_one(all, &[]).await.unwrap().get::<_, String>(0);
    let before = state().await;
    for (command, id) in [("retry", "1"), ("give-up", "4"), ("run-now", "2")] {
        let dry = with(&[command, id, "--dry-run"]);
        let says = format!("would {} jobs: job {id} of type mail, ", command.replace('-', " "));
        assert!(dry.code == 0 && dry.out.starts_with(&says), "{dry:?}");
    }
    assert_eq!(state().await, before, "so far nothing was done");
    let read_only = std::env::temp_dir().join(format!("read-only-{}.toml", std::process::id()));
    std::fs::write(
        &read_only,
        format!("[targets.prod]\nconninfo = \"{}\"\nread_only = true\n", db.conninfo()),
    )
    .unwrap();
    let target = ["retry", "1", "--yes", "-d", "@prod", "--config", read_only.to_str().unwrap()];
    fails(&run(&target, &[], ""), 1, &["@prod is read_only"]);
    assert_eq!(state().await, before);

    let retried = with(&["retry", "1", "--yes", "--reason", "smtp is back"]);
    assert_eq!(
        retried.out, "jobs: job 1 of type mail, failed, attempts 5 of 5: ready again\n",
        "{retried:?}"
    );
    let due = with(&["run-now", "2", "3", "--yes"]);
    assert_eq!((due.code, due.out.lines().count()), (0, 2), "{due:?}");
    let some = with(&["give-up", "4", "5", "--yes"]);
    assert!(some.code == 1 && some.out.contains("job 4 ") && some.err.contains("job 5:"), "{some:?}");
    let now = "select string_agg(concat(id, status, max_attempts, run_at <= now()), ' ' order by id) from pgwake.jobs";
    let now: String = client.query_one(now, &[]).await.unwrap().get(0);
    assert_eq!(now, "1ready6t 2ready5t 3ready5t 4failed5t 5running5t");
    let noted =
        "select string_agg(concat_ws(' ', action, job_id, reason), '; ' order by id) from pgwake.actions";
    let noted: String = client.query_one(noted, &[]).await.unwrap().get(0);
    let (line, why) = ("retry 1 smtp is back", "from the command line");
    assert_eq!(noted, format!("{line}; run now 2 {why}; run now 3 {why}; give up 4 {why}"));
    let audit = std::fs::read_to_string(program::state_dir().join("releases.log")).unwrap();
    assert!(
        audit.lines().any(|l| l.contains("job 4 of type mail") && l.contains("marked failed")),
        "{audit}"
    );
}

#[tokio::test]
async fn an_id_that_two_ledgers_have_is_released_in_none_of_them() {
    let db = scratch().await;
    let client = db.connect().await;
    run(&["enqueue", "mail", "-", "-d", db.conninfo()], &[], "{}\n{}\n");
    client
        .batch_execute(
            "select pgwake.publish('orders', 'k', '{}');
             update pgwake.jobs set status = 'running', locked_by = 'gone', lease_token = gen_random_uuid(),
             locked_until = now() - interval '1 minute'",
        )
        .await
        .unwrap();
    let with = |args: &[&str]| run(&[args, &["-d", db.conninfo()]].concat(), &[], "");
    fails(&with(&["release", "1", "--yes"]), 2, &["job 1", "jobs and outbox", "--profile"]);
    fails(&with(&["release", "2", "1", "--yes"]), 2, &["job 1", "--profile"]);
    let held = "select count(*) from pgwake.jobs where status = 'running'";
    assert_eq!(client.query_one(held, &[]).await.unwrap().get::<_, i64>(0), 2);

    let two = with(&["release", "2", "--yes"]);
    assert!(two.code == 0 && two.out.contains("jobs: job 2 held by gone"), "{two:?}");
    let one = with(&["release", "1", "--yes", "--profile", "jobs"]);
    assert!(one.code == 0 && one.out.contains("jobs: job 1 held by gone"), "{one:?}");
    assert_eq!(client.query_one(held, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test]
async fn bad_input_is_one_line_with_the_right_exit_code() {
    let db = database().await;
    let d = db.conninfo();
    let no_schema = run(&["status", d, "--profile", "jobs"], &[], "");
    fails(&no_schema, 1, &["schema \"pgwake\" does not exist", "pgwake migrate"]);
    fails(
        &run(&["status", d], &[], ""),
        1,
        &["no ledger of a known profile", "pgwake migrate", "--profile"],
    );
    let no_table = run(&["status", d, "--profile", "jobs-plain"], &[], "");
    fails(&no_table, 1, &["table \"public\".\"jobs\" does not exist"]);
    let unreachable = run(&["status", "-h", "127.0.0.1", "-p", "1"], &[], "");
    fails(&unreachable, 1, &["127.0.0.1:1", "onnection refused", "-h", "-p"]);
    fails(&run(&["status", &format!("{d} dbname=nowhere")], &[], ""), 1, &["3D000", "nowhere", "-d"]);
    fails(&run(&["status", "--profile", "jbos", d], &[], ""), 1, &["jbos", "jobs, outbox, jobs-plain"]);
    fails(&run(&["enqueue", "mail", "{oops", "-d", d], &[], ""), 2, &["PAYLOAD", "not JSON"]);
    fails(&run(&["work", d], &[], ""), 2, &["--handler", "-- ./job", "command in [worker]"]);
    fails(&run(&["work", "--job-timeout", "5s", d], &[], ""), 2, &["--job-timeout"]);
    fails(&run(&["--bogus"], &[], ""), 2, &["--bogus", "--help"]);
    fails(&run(&["work", "--handler", "noop", "--debounce", "5s", d], &[], ""), 2, &["100ms and 300ms"]);
    fails(&run(&["work", "--handler", "noop", "--lease", "1ms", d], &[], ""), 2, &["1s and 24h"]);
    fails(&run(&["work", "--handler", "noop", "--fallback", "2h", d], &[], ""), 2, &["1s and 1h"]);
    for keep in ["off", "7", "4000d"] {
        fails(
            &run(&["work", "--handler", "noop", "--keep", keep, d], &[], ""),
            2,
            &["--keep", "forever", "7d"],
        );
    }
    let exec = |more: &[&str]| run(&[&["work", "--handler", "exec", d], more].concat(), &[], "");
    fails(&exec(&[]), 2, &["name the command after --"]);
    fails(&exec(&["--", "no-such-program"]), 2, &["no-such-program", "no such program", "PATH"]);
    fails(&exec(&["--", "/dev/null"]), 2, &["/dev/null", "chmod +x"]);
    fails(&run(&["work", "--handler", "noop", d, "--", "true"], &[], ""), 2, &["--handler exec"]);
    fails(&run(&[d], &[], ""), 2, &["not a terminal", "pgwake status"]);
    fails(&run(&["demo", "--pg-bin", "/nonexistent"], &[], ""), 2, &["not a terminal"]);
    let no_server = run(&["demo", "--headless", "--pg-bin", "/nonexistent"], &[], "");
    fails(&no_server, 1, &["/nonexistent"]);
}

#[tokio::test]
async fn a_profile_that_does_not_fit_is_named_with_what_to_do() {
    let db = database().await;
    run(&["migrate", db.conninfo()], &[], "");
    let folder = tempfile::tempdir().unwrap();
    let jobs = include_str!("../src/profile/builtin/jobs.toml");
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let column = file("column.toml", jobs.replace("\"job_type\"", "\"kind\""));
    fails(
        &run(&["status", db.conninfo(), "--profile", &column], &[], ""),
        1,
        &["no column \"kind\"", "job_type"],
    );
    let channel = file("channel.toml", jobs.replace("pgwake_work", &"x".repeat(64)));
    fails(
        &run(&["status", db.conninfo(), "--profile", &channel], &[], ""),
        1,
        &["64 bytes", "channel.toml"],
    );
    let key = file("key.toml", jobs.replace("schema =", "shcema ="));
    fails(&run(&["status", db.conninfo(), "--profile", &key], &[], ""), 1, &["did you mean `schema`?"]);
}

#[tokio::test]
async fn a_missing_grant_is_said_with_the_grant_to_ask_for() {
    let db = scratch().await;
    let client = db.connect().await;
    let role = format!("watcher_{}", db.name);
    client.batch_execute(&format!("create role {role} login")).await.unwrap();
    let as_role = format!("{} user={role}", db.conninfo());
    let nothing = run(&["status", &as_role, "--profile", "jobs"], &[], "");
    fails(&nothing, 1, &["may not read", "grant select on", "grant usage on schema"]);
    client
        .batch_execute(&format!(
            "grant usage on schema pgwake to {role}; grant select on pgwake.jobs to {role}"
        ))
        .await
        .unwrap();
    let watching = run(&["status", &as_role, "--profile", "jobs", "--json"], &[], "");
    assert_eq!(watching.code, 0, "{watching:?}");
    let v: serde_json::Value = serde_json::from_str(&watching.out).unwrap();
    assert_eq!(v["ledgers"][0]["ready"]["value"], 0);
    assert_eq!(v["ledgers"][0]["workers"], serde_json::Value::Null);
    assert_eq!(v["ledgers"][0]["workers_alive"]["reason"], "no privilege");
    let work = run(&["work", &as_role, "--profile", "jobs", "--handler", "noop"], &[], "");
    fails(&work, 1, &["may not update", "grant update"]);
    let release = run(&["release", "--expired", "--yes", "-d", &as_role, "--profile", "jobs"], &[], "");
    fails(&release, 1, &["actions are off"]);
}

#[tokio::test]
async fn a_password_appears_in_no_output() {
    let server = Server::start(Options {
        tcp: true,
        password: Some("hunter2-very-secret".to_owned()),
        ..Options::default()
    })
    .unwrap();
    let tcp = server.tcp_conninfo("postgres").unwrap();
    assert!(tcp.contains("hunter2-very-secret"));
    let right = run(&["migrate", &tcp], &[("PGWAKE_LOG", "trace")], "");
    assert_eq!(right.code, 0, "{right:?}");
    let mut shown = format!("{right:?}");
    let port = server.port().to_string();
    for wrong in [
        format!("postgres://postgres:wrong-pass-word@127.0.0.1:{port}/postgres"),
        format!("postgres://postgres:wrong-pass@word@127.0.0.1:{port}/postgres"),
        format!("host=127.0.0.1 port={port} user=postgres password=wrong-pass-word sslmode=nonsense"),
    ] {
        let ran = run(&["status", &wrong], &[("PGWAKE_LOG", "trace")], "");
        assert_ne!(ran.code, 0);
        shown.push_str(&format!("{ran:?}"));
    }
    let by_env = run(
        &["status", "-h", "127.0.0.1", "-p", &port, "-U", "postgres"],
        &[("PGPASSWORD", "wrong-pass-word")],
        "",
    );
    fails(&by_env, 1, &["28P01", "PGPASSWORD"]);
    shown.push_str(&by_env.err);
    let log = std::fs::read_to_string(program::state_dir().join("pgwake.log")).unwrap_or_default();
    for secret in ["hunter2", "wrong-pass"] {
        assert!(!shown.contains(secret), "{shown}");
        assert!(!log.contains(secret));
    }
}

#[test]
fn help_and_version_are_no_errors_and_h_is_the_host() {
    for args in [&["--help"][..], &["-?"], &["work", "--help"], &["--version"]] {
        let ran = run(args, &[], "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
        assert!(!ran.out.contains('\u{1b}'));
    }
    assert!(run(&["--help"], &[], "").out.contains("-h, --host"));
}
