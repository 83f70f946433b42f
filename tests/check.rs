//! `pgwake check` as a monitoring system runs it: one line, its exit code, whatever happens.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/program.rs"]
mod program;
mod support;

use program::{Ran, run};
use support::database;
use support::ledger::{migrated, run as sql};

/// One line on standard output and nothing else; the state and the exit code say the same.
fn says(ran: &Ran, code: i32, part: &str) {
    let word = ["OK", "WARNING", "CRITICAL", "UNKNOWN"][usize::try_from(code).unwrap()];
    assert_eq!(ran.code, code, "{ran:?}");
    assert!(ran.out.starts_with(&format!("PGWAKE {word} - ")), "{}", ran.out);
    assert_eq!(ran.out.trim_end().lines().count(), 1, "{}", ran.out);
    assert!(ran.out.contains(part), "{part:?} in {}", ran.out);
    assert!(!ran.out.contains('\u{1b}'), "{}", ran.out);
    assert_eq!(ran.err, "");
}

#[tokio::test]
async fn a_queue_is_ok_then_late_then_unattended() {
    let db = migrated().await;
    let check =
        |more: &[&str]| run(&[&["check", "--profile", "jobs", db.conninfo()], more].concat(), &[], "");
    says(&check(&[]), 0, "jobs: 0 ready | 'jobs ready'=0;;;0; 'jobs oldest_ready'=U;60;600;0;");

    let client = db.connect().await;
    sql(
        &client,
        "insert into pgwake.jobs (job_type, run_at) values ('t', now() - interval '70 s');
         insert into pgwake.workers (name, ledger, host, pid, version) values ('w', 'jobs', 'h', 1, '0')",
    )
    .await;
    says(&check(&[]), 1, "jobs oldest_ready 7");
    says(&check(&["--critical", "oldest_ready=65"]), 2, "jobs oldest_ready 7");
    says(&check(&["--warning", "oldest_ready=600"]), 0, "jobs: 1 ready, oldest 7");
    says(&check(&["--warning", "oldest_ready=@60:600"]), 1, "(@60:600)");
    sql(&client, "update pgwake.workers set seen_at = now() - interval '1 min'").await;
    says(&check(&[]), 2, "jobs unattended 1 (0)");
}

#[tokio::test]
async fn what_cannot_be_known_is_unknown_and_never_ok() {
    let db = migrated().await;
    says(&run(&["check", &format!("{} port=1", db.conninfo())], &[], ""), 3, "cannot connect");
    says(&run(&["check", database().await.conninfo()], &[], ""), 3, "no ledger");
    let client = db.connect().await;
    sql(&client, "begin; lock table pgwake.jobs in access exclusive mode").await;
    says(&run(&["check", "--profile", "jobs", db.conninfo()], &[], ""), 3, "jobs oldest_ready locked");
    sql(&client, "rollback").await;
    says(
        &run(&["check", "--profile", "jobs", db.conninfo(), "-t", "1ms"], &[], ""),
        3,
        "no answer within 0.001 s",
    );
}

#[tokio::test]
async fn what_is_typed_wrong_is_unknown_in_one_line() {
    for (args, part) in [
        (["check", "--warning", "oldest=3"], "no figure is called"),
        (["check", "--critical", "ready=20:10"], "begins above its end"),
        (["check", "--warning", "ready"], "is not NAME=RANGE"),
        (["check", "--nonsense", "x"], "--nonsense"),
    ] {
        says(&run(&args, &[], ""), 3, part);
    }
}
