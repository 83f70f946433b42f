//! Every drill passes with the worker of this program, and fails with one that is wrong on purpose: a
//! drill that cannot fail proves nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/twin.rs"]
mod twin;

use std::ffi::OsString;
use std::time::Duration;

use pgwake::drill::{self, Ours, Post, Report, Trial, Worker, Working};
use twin::{Flaw, Twin};

/// Our worker; as a process it is the binary, and not this test.
struct Tested;

impl Worker for Tested {
    fn start(&self, post: Post) -> Working {
        Ours.start(post)
    }

    fn program(&self) -> Vec<OsString> {
        vec![env!("CARGO_BIN_EXE_pgwake").into()]
    }
}

/// Runs one drill with a worker.
async fn run(name: &str, worker: &dyn Worker, patience: Duration) -> Report {
    let drills = drill::choose(&[name.to_owned()]).unwrap();
    let trial = Trial { worker, patience, ..Trial::default() };
    drill::run(&drills, &trial, |_| ()).await.unwrap().remove(0)
}

/// It holds with our worker, and with a small one that is right, and breaks this promise with the wrong
/// one. What is broken on purpose never comes, so that its patience is short.
async fn tells_apart(name: &str, flaw: Flaw, promise: &str) {
    // Each on a server of its own, so that all three can run at the same time.
    let wrong = Twin::with(flaw);
    tokio::join!(holds(name), breaks(name, &wrong, promise));
}

async fn holds(name: &str) {
    let (patience, right) = (Duration::from_secs(60), Twin::with(Flaw::None));
    let (ours, right) = tokio::join!(run(name, &Tested, patience), run(name, &right, patience));
    assert!(ours.held(), "ours: {ours:?}");
    assert!(right.held(), "right: {right:?}");
}

async fn breaks(name: &str, worker: &Twin, promise: &str) {
    let report = run(name, worker, Duration::from_secs(6)).await;
    assert!(report.broken.iter().any(|b| b.contains(promise)), "{:?}: {report:?}", worker.flaw);
    assert!(report.is_broken());
}

#[tokio::test]
async fn listener_down_finds_the_worker_that_does_not_look_at_its_start() {
    tells_apart("listener-down", Flaw::NoStartupScan, "the ledger should end with done 100").await;
}

#[tokio::test]
async fn late_commit_finds_the_worker_that_listens_after_it_has_scanned() {
    tells_apart("late-commit", Flaw::ListensAfterScan, "the ledger should end with done 1").await;
}

#[tokio::test]
async fn one_commit_finds_the_worker_that_takes_one_job_for_each_wakeup() {
    tells_apart("one-commit", Flaw::OneJobPerWakeup, "the ledger should end with done 1001").await;
}

#[tokio::test]
async fn wakeups_lost_finds_the_worker_that_never_looks_without_one() {
    tells_apart("wakeups-lost", Flaw::NoFallback, "the oldest ready job should stay under").await;
}

#[tokio::test]
async fn worker_killed_finds_the_worker_that_leaves_the_jobs_of_the_dead_alone() {
    tells_apart("worker-killed", Flaw::NoTakeover, "the ledger should end with done 20").await;
}

#[tokio::test]
async fn late_completion_finds_the_worker_that_completes_by_id_only() {
    tells_apart("late-completion", Flaw::NoToken, "the late end should change nothing").await;
}

#[tokio::test]
async fn poison_finds_the_worker_that_tries_for_ever() {
    tells_apart("poison", Flaw::EndlessRetries, "the ledger should end with done 50").await;
}

#[tokio::test]
async fn outbox_crash_finds_the_worker_that_says_sent_before_it_publishes() {
    tells_apart("outbox-crash", Flaw::DoneFirst, "10 effects should be applied, not 5").await;
}

#[tokio::test]
async fn listener_cut_finds_the_worker_that_does_not_look_when_its_listener_is_back() {
    tells_apart(
        "listener-cut",
        Flaw::NoScanOnReconnect,
        "session Terminated, jobs should be found: 5 of 15",
    )
    .await;
}

#[tokio::test]
async fn listener_frozen_finds_the_worker_without_a_heartbeat() {
    // Longer than a heartbeat and its deadline take: the right ones need them.
    let (patience, wrong) = (Duration::from_secs(25), Twin::with(Flaw::NoHeartbeat));
    let ((), report) = tokio::join!(holds("listener-frozen"), run("listener-frozen", &wrong, patience));
    assert!(
        report.broken.iter().any(|b| b.contains("session Frozen, jobs should be found: 5 of 15")),
        "{report:?}"
    );
}

#[tokio::test]
async fn server_restarted_finds_the_worker_that_ends_with_its_session() {
    tells_apart("server-restarted", Flaw::NoReconnect, "work should go on after the Fast restart").await;
}

#[tokio::test]
async fn listener_holds_queue_finds_the_worker_that_listens_in_a_transaction() {
    let promise = "the end of that session should clear the queue";
    tells_apart("listener-holds-queue", Flaw::ListensInTransaction, promise).await;
}

#[tokio::test]
async fn worker_stopped_finds_the_program_that_leaves_without_giving_back() {
    let report = run("worker-stopped", &Tested, Duration::from_secs(60)).await;
    assert!(report.held(), "{report:?}");
    let script = r#"trap 'kill -KILL $p; exit 0' TERM; "$@" & p=$!; wait $p"#;
    let wrong = ["sh", "-c", script, "sh", env!("CARGO_BIN_EXE_pgwake")];
    breaks("worker-stopped", &Twin::process(&wrong), "10 jobs were left leased").await;
}
