//! A command for each job: real processes, real signals, a real ledger.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;
#[path = "support/work.rs"]
mod work;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use pgwake::config;
use pgwake::model::WorkerEvent;
use pgwake::worker::{Exec, ExecError};
use support::{DEADLINE, wait_until};
use work::{Bench, Running, profile, settings};

/// A shell with this script.
fn sh(script: &str) -> Exec {
    Exec::new("sh", &["-c".into(), script.into()]).unwrap()
}

async fn last_error(bench: &Bench) -> String {
    bench.text("select coalesce(last_error, '') from pgwake.jobs order by id limit 1").await
}

/// One job with one attempt, run to its recorded end.
async fn error_of(exec: Exec) -> String {
    let bench = Bench::new().await;
    bench.run("insert into pgwake.jobs (job_type, max_attempts) values ('t', 1)").await;
    let worker = bench.start(settings(), exec).await;
    bench.until(1, "the failure", "select count(*) from pgwake.jobs where status = 'failed'").await;
    worker.stop().await;
    last_error(&bench).await
}

/// The state of a process, or none; `Z` is a zombie.
fn state_of(pid: &str) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// The pids that a script wrote, once there are `n`.
async fn pids(file: &Path, n: usize) -> Vec<String> {
    wait_until("pids", DEADLINE, async || {
        let text = fs::read_to_string(file).unwrap_or_default();
        (text.ends_with('\n') && text.lines().count() == n)
            .then(|| text.lines().map(str::to_owned).collect())
    })
    .await
}

async fn until_gone(pids: &[String]) {
    wait_until("the processes are gone", DEADLINE, async || {
        // One whose parent has gone belongs to init, which may take its time to wait for it.
        pids.iter().all(|p| state_of(p).is_none_or(|s| s == 'Z')).then_some(())
    })
    .await;
}

/// Children of this process that have ended and were not waited for, by their parent in /proc.
fn zombies_of_ours() -> usize {
    let us = std::process::id().to_string();
    let is_ours = |stat: &str| {
        let mut rest = stat.rsplit_once(") ").map(|(_, r)| r.split(' ')).into_iter().flatten();
        rest.next() == Some("Z") && rest.next() == Some(us.as_str())
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|e| fs::read_to_string(e.path().join("stat")).ok()).filter(|s| is_ours(s)).count()
}

#[tokio::test]
async fn a_command_gets_the_payload_and_what_is_known_of_the_job() {
    let bench = Bench::new().await;
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    bench.run("select pgwake.enqueue('mail', '{\"to\": 7}')").await;
    let script =
        format!("{{ cat; echo; env | grep ^PGWAKE_ | sort; }} > {0}.new && mv {0}.new {0}", out.display());
    let worker = bench.start(settings(), sh(&script)).await;
    bench.until_done(1).await;
    worker.stop().await;
    let id = bench.text("select id from pgwake.jobs").await;
    assert_eq!(
        fs::read_to_string(out).unwrap(),
        format!(
            "{{\"to\": 7}}\nPGWAKE_ATTEMPT=1\nPGWAKE_IDEMPOTENCY_KEY=jobs/{id}\nPGWAKE_JOB_ID={id}\n\
             PGWAKE_JOB_TYPE=mail\nPGWAKE_LEDGER=jobs\nPGWAKE_MAX_ATTEMPTS=5\nPGWAKE_SCAN_REASON=startup\n"
        )
    );
}

#[tokio::test]
async fn a_failure_keeps_the_end_of_standard_error_clean_and_short() {
    assert_eq!(
        error_of(sh("printf 'no \\033[31mroute\\n' >&2; exit 3")).await,
        "exit status 3: no ␛[31mroute"
    );
    let long = error_of(sh("head -c 50000000 /dev/zero | tr '\\0' x >&2; echo END >&2; exit 1")).await;
    assert!(long.starts_with("exit status 1: xxx") && long.ends_with("xEND"), "{long}");
    assert!((1500..=2000).contains(&long.len()), "{}", long.len());
    assert_eq!(error_of(sh("exit 4")).await, "exit status 4");
}

#[tokio::test]
async fn an_end_by_a_signal_is_a_failed_attempt_that_names_it() {
    assert_eq!(error_of(sh("kill -SEGV $$")).await, "killed by signal 11 (SEGV)");
}

#[tokio::test]
async fn exit_75_puts_a_job_off_and_no_attempt_is_used_up() {
    for (ledger, insert, table) in [
        ("jobs", "insert into pgwake.jobs (job_type, max_attempts) values ('t', 2)", "pgwake.jobs"),
        ("outbox", "insert into pgwake.outbox (topic, max_attempts) values ('t', 2)", "pgwake.outbox"),
        (
            "jobs-plain",
            "insert into public.jobs (job_type, status, max_attempts) values ('t', 'ready', 2)",
            "public.jobs",
        ),
    ] {
        let bench = Bench::new().await;
        let dir = tempfile::tempdir().unwrap();
        let runs = dir.path().join("runs");
        bench.run(support::ledger::PLAIN).await;
        bench.run(insert).await;
        // More often than there are attempts.
        let script = format!(
            "echo x >> {0}; [ $(wc -l < {0}) -ge 6 ] || {{ echo busy >&2; exit 75; }}",
            runs.display()
        );
        let setup = pgwake::worker::Setup { profiles: vec![profile(ledger)], ..bench.setup(settings()) };
        let worker = Running::start(setup, sh(&script));
        let done = format!("select count(*) from {table} where status::text in ('done', 'SENT')");
        bench.until(1, "done after all", &done).await;
        let summary = worker.stop().await;
        assert_eq!(
            (summary.done, summary.failed, summary.lost, summary.deferred),
            (1, 0, 0, 5),
            "{ledger}"
        );
        assert_eq!(fs::read_to_string(&runs).unwrap().lines().count(), 6, "{ledger}");
        let used = bench.number(&format!("select max_attempts - attempts from {table}")).await;
        // The last run is an attempt where claims count, none where failures do.
        assert_eq!(used, if ledger == "outbox" { 2 } else { 1 }, "{ledger}");
        let error = bench.text(&format!("select last_error from {table}")).await;
        assert_eq!(error, "exit status 75, later: busy", "{ledger}");
    }
}

#[tokio::test]
async fn a_payload_of_a_megabyte_arrives_whole_or_is_left_unread() {
    let bench = Bench::new().await;
    bench.run("select pgwake.enqueue('t', to_jsonb(repeat('x', 1000000)))").await;
    let worker = bench.start(settings(), sh("[ $(wc -c) = 1000002 ]")).await;
    bench.until_done(1).await;
    worker.stop().await;
    bench.run("select pgwake.enqueue('t', to_jsonb(repeat('x', 1000000)))").await;
    let worker = bench.start(settings(), sh("exit 0")).await;
    bench.until_done(2).await;
    assert_eq!(worker.stop().await.failed, 0);
}

#[tokio::test]
async fn a_command_that_talks_before_it_reads_or_never_reads_holds_nothing_up() {
    let bench = Bench::new().await;
    bench.run("select pgwake.enqueue('t', to_jsonb(repeat('x', 1000000)))").await;
    // More than a pipe holds, both ways.
    let worker = bench.start(settings(), sh("head -c 1000000 /dev/zero >&2; [ $(wc -c) = 1000002 ]")).await;
    bench.until_done(1).await;
    worker.stop().await;
    bench
        .run("insert into pgwake.jobs (job_type, payload, max_attempts) values ('u', to_jsonb(repeat('x', 1000000)), 1)")
        .await;
    let worker = bench.start(settings(), sh("exec sleep 600").deadline(Some(Duration::from_secs(1)))).await;
    bench.until(1, "the failure", "select count(*) from pgwake.jobs where status = 'failed'").await;
    worker.stop().await;
}

#[tokio::test]
async fn at_its_deadline_a_command_is_stopped_with_its_children() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pids");
    // Neither heeds TERM.
    let script = format!(
        "trap '' TERM; sh -c 'trap \"\" TERM; sleep 600' & echo $$ >> {0}; echo $! >> {0}; echo late >&2; wait; sleep 600",
        file.display()
    );
    let began = Instant::now();
    let error = error_of(sh(&script).deadline(Some(Duration::from_secs(1)))).await;
    assert_eq!(error, "stopped at its deadline of 1s: late");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    until_gone(&pids(&file, 2).await).await;
}

#[tokio::test]
async fn a_lost_lease_stops_the_command_and_its_children() {
    let bench = Bench::new().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pids");
    bench.insert(1).await;
    let script = format!("sleep 600 & echo $$ >> {0}; echo $! >> {0}; wait", file.display());
    let lease = Duration::from_secs(1);
    let worker = bench.start(config::Worker { lease, ..settings() }, sh(&script)).await;
    let running = pids(&file, 2).await;
    assert!(running.iter().all(|p| state_of(p).is_some()));
    bench.run("update pgwake.jobs set lease_token = gen_random_uuid(), locked_until = now() + '1 h'").await;
    worker.until("the loss", |e| matches!(e, WorkerEvent::Lost { .. })).await;
    until_gone(&running).await;
    worker.stop().await;
}

#[tokio::test]
async fn at_shutdown_commands_are_gone_before_their_jobs_are_given_back() {
    let bench = Bench::new().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pids");
    bench.insert(1).await;
    let script = format!(
        "trap '' TERM; sleep 600 & echo $$ >> {0}; echo $! >> {0}; wait; sleep 600",
        file.display()
    );
    let grace = Duration::from_millis(100);
    let worker = bench.start(config::Worker { grace, ..settings() }, sh(&script)).await;
    let running = pids(&file, 2).await;
    let summary = worker.stop().await;
    assert_eq!(summary.given_back, 1);
    let alive: Vec<_> = running.iter().filter(|p| state_of(p).is_some_and(|s| s != 'Z')).collect();
    assert!(alive.is_empty(), "{alive:?}");
    assert_eq!(bench.number("select count(*) from pgwake.jobs where status = 'ready'").await, 1);
}

#[tokio::test]
async fn what_a_command_leaves_running_is_killed_at_its_end_and_delays_nothing() {
    let bench = Bench::new().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pids");
    bench.insert(1).await;
    // It holds standard error open.
    let worker = bench.start(settings(), sh(&format!("sleep 600 & echo $! >> {}", file.display()))).await;
    bench.until_done(1).await;
    until_gone(&pids(&file, 1).await).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_hundred_commands_run_at_once_and_leave_no_zombie() {
    let bench = Bench::new().await;
    let dir = tempfile::tempdir().unwrap();
    bench.insert(100).await;
    // Each waits until all are there.
    let script = format!(
        "touch {0}/$PGWAKE_JOB_ID; until [ $(ls {0} | wc -l) = 100 ]; do sleep 0.2; done",
        dir.path().display()
    );
    let worker = Running::start(
        bench.setup(config::Worker { batch: 100, concurrency: 100, ..settings() }),
        sh(&script),
    );
    bench.until_done(100).await;
    assert_eq!(worker.stop().await.done, 100);
    // Other tests of this process have children of their own: theirs are waited for as well.
    wait_until("no zombie is left", DEADLINE, async || (zombies_of_ours() == 0).then_some(())).await;
}

#[test]
fn a_program_that_cannot_be_run_is_told_apart_from_one_that_is_missing() {
    let none: &[OsString] = &[];
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("job");
    fs::write(&file, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(Exec::new(&file, none), Err(ExecError::NotExecutable(_))));
    assert!(matches!(Exec::new(dir.path(), none), Err(ExecError::NotExecutable(_))));
    assert!(matches!(Exec::new(dir.path().join("nothing"), none), Err(ExecError::Missing(_))));
    assert!(matches!(Exec::new("no-such-program-anywhere", none), Err(ExecError::Missing(_))));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(Exec::new(&file, none).is_ok());
}
