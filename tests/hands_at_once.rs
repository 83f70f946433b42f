//! Every hand at once, on the jobs that workers claim, renew and finish at the same moment: nothing deadlocks,
//! and no job is lost.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pgwake::demo::{Options, Server};
use pgwake::ledger::{Failure, Ledger};
use pgwake::model::{JobAction, ShownJob};
use support::ledger::{LONG, OVER, PLAIN, audit, claim, fill, key, number, open, run, session};
use support::{Db, database_on};

/// What came of the hands.
#[derive(Default)]
struct Tally {
    released: AtomicU64,
    acted: AtomicU64,
    moved: AtomicU64,
}

async fn worker(db: &Db, ledger: Ledger, n: u32) {
    let (one, other) = (session(db).await, session(db).await);
    for round in 0..50_u32 {
        let lease = if round % 2 == 0 { OVER } else { LONG };
        let claims: Vec<_> =
            claim(&one, &ledger, &format!("w{n}"), 25, lease).await.iter().map(key).collect();
        let (done, fail) = claims.split_at(claims.len() / 4);
        let failure = |(id, token): &(String, String)| Failure {
            id: id.clone(),
            token: token.clone(),
            error: "e".into(),
            delay: if round % 3 == 0 { LONG } else { Duration::ZERO },
        };
        let failures: Vec<Failure> = fail.iter().map(failure).collect();
        let ends = async {
            ledger.done(&one, done).await?;
            ledger.failed(&one, &failures).await
        };
        // the same claims renewed on one session and ended on another, at the same moment
        let (renewed, ended) = tokio::join!(ledger.renew(&other, &claims, lease), ends);
        renewed.unwrap();
        ended.unwrap();
    }
}

/// Releases in bulk and one by one.
async fn releaser(db: &Db, ledger: Ledger, tally: Arc<Tally>) {
    let session = session(db).await;
    for _ in 0..80 {
        let freed = ledger.release_expired_batch(&session, None, &audit()).await.unwrap();
        tally.released.fetch_add(freed, Ordering::Relaxed);
        for lease in ledger.leases(&session, 3).await.unwrap() {
            if let Some(row) = ledger.lease_of(&session, &lease.id).await.unwrap().filter(|r| r.running) {
                ledger.release(&session, &support::ledger::seen(row), &audit()).await.unwrap();
            }
        }
    }
}

/// Retries, gives up and makes due whatever the lists show.
async fn hand(db: &Db, ledger: Ledger, tally: Arc<Tally>) {
    let session = session(db).await;
    for _ in 0..40 {
        for row in ledger.jobs(&session, None, 20, 5).await.unwrap() {
            let Some(facts) = ledger.job(&session, &row.id, false).await.unwrap() else { continue };
            // given up more rarely, or nothing would be left to do
            let fits =
                |a: &JobAction| a.takes(row.state) && (*a != JobAction::GiveUp || row.id.ends_with('7'));
            for action in JobAction::ALL.into_iter().filter(fits) {
                let seen = ShownJob::of(&facts);
                let moved = ledger.on_job(&session, action, &seen, &audit()).await.unwrap();
                let counter = if moved.is_none() { &tally.acted } else { &tally.moved };
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_hand_at_once_with_workers_on_the_same_jobs_never_deadlocks_and_loses_no_job() {
    // a deadlock would be found at once
    let settings = vec![("deadlock_timeout".to_owned(), "10ms".to_owned())];
    let server = Server::start(Options { settings, ..Options::default() }).unwrap();
    for profile in ["jobs", "outbox", "jobs-plain"] {
        let db = Arc::new(database_on(&server).await);
        let mut migrating = support::ledger::session_for(&db, pgwake::pg::Purpose::Command).await;
        pgwake::ledger::migrate(&mut migrating).await.unwrap();
        let client = db.connect().await;
        run(&client, PLAIN).await;
        let main = session(&db).await;
        let ledger = open(&main, profile).await;
        fill(&main, &ledger, 120).await;
        let tally = Arc::new(Tally::default());
        let mut tasks = Vec::new();
        for n in 0..3 {
            let (db, ledger) = (db.clone(), ledger.clone());
            tasks.push(tokio::spawn(async move { worker(&db, ledger, n).await }));
        }
        for _ in 0..2 {
            let (db2, ledger2, tally2) = (db.clone(), ledger.clone(), tally.clone());
            tasks.push(tokio::spawn(async move { releaser(&db2, ledger2, tally2).await }));
            let (db, ledger, tally) = (db.clone(), ledger.clone(), tally.clone());
            tasks.push(tokio::spawn(async move { hand(&db, ledger, tally).await }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        let relation = ledger.profile().relation();
        assert_eq!(number(&client, &format!("select count(*) from {relation}")).await, 120, "{profile}");
        let noted = number(&client, "select count(*) from pgwake.actions").await;
        let acted = tally.acted.load(Ordering::Relaxed);
        assert_eq!(noted.unsigned_abs(), acted, "each is noted once, and what was not done is not");
        assert!(acted > 0 && tally.released.load(Ordering::Relaxed) > 0, "{profile}: they met no job");
        println!("{profile}: acted {acted}, moved on {:?}, released {:?}", tally.moved, tally.released);
        let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
        assert_eq!(number(&client, deadlocks).await, 0);
    }
    let log = std::fs::read_to_string(server.log_path()).unwrap();
    assert!(log.contains("ready to accept connections"), "the log is the server's");
    assert!(!log.contains("deadlock detected") && !log.contains("40P01"), "{log}");
}
