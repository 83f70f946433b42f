//! What the monitor reads: capped counts, ages by due time, leases made safe to show.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use pgwake::ledger::{LeaseRow, detect, mark_scratch};
use pgwake::pg::Purpose;
use support::ledger::{
    LONG, OVER, PLAIN, claim, claim_one, fill, key, migrated, number, open, run, session_for, with_ledger,
};

#[tokio::test]
async fn a_count_is_exact_up_to_its_cap_and_says_when_there_are_more() {
    for name in ["jobs", "outbox"] {
        let (db, session, ledger) = with_ledger(name).await;
        assert_eq!(ledger.counts(&session, 5).await.unwrap().ready, (0, false));
        fill(&session, &ledger, 20).await;
        assert_eq!(ledger.counts(&session, 20).await.unwrap().ready, (20, false));
        assert_eq!(ledger.counts(&session, 21).await.unwrap().ready, (20, false));
        assert_eq!(ledger.counts(&session, 19).await.unwrap().ready, (19, true));

        claim(&session, &ledger, "w", 3, OVER).await;
        claim(&session, &ledger, "w", 4, LONG).await;
        let jobs = claim(&session, &ledger, "w", 1, LONG).await;
        ledger.done(&session, &jobs.iter().map(key).collect::<Vec<_>>()).await.unwrap();
        // the three expired ones are due last, so seven of the ready ones are gone by now
        let client = db.connect().await;
        let date = if name == "jobs" { ", finished_at = now()" } else { "" };
        let (failed, ready) = if name == "jobs" { ("failed", "ready") } else { ("FAILED", "PENDING") };
        let relation = ledger.profile().relation();
        run(
            &client,
            &format!(
                "update {relation} set status = '{failed}'{date} where id in
                 (select id from {relation} where status = '{ready}' order by id limit 2)"
            ),
        )
        .await;
        assert_eq!(ledger.counts(&session, 100).await.unwrap().ready, (10, false));
        assert_eq!(ledger.counts(&session, 100).await.unwrap().running, (7, false));
        assert_eq!(ledger.counts(&session, 6).await.unwrap().running, (6, true));
        assert_eq!(ledger.counts(&session, 100).await.unwrap().expired, (3, false));
        assert_eq!(ledger.counts(&session, 2).await.unwrap().expired, (2, true));
        assert_eq!(ledger.counts(&session, 100).await.unwrap().failed, (2, false));
        assert_eq!(ledger.counts(&session, 1).await.unwrap().failed, (1, true));
        assert_eq!(ledger.counts(&session, 100).await.unwrap().scheduled, (0, false));
    }
}

#[tokio::test]
async fn the_oldest_ready_job_is_measured_from_when_it_became_due() {
    for (name, due) in [("jobs", "run_at"), ("outbox", "next_attempt_at")] {
        let (db, session, ledger) = with_ledger(name).await;
        let client = db.connect().await;
        assert_eq!(ledger.oldest_ready(&session).await.unwrap(), None, "unknown is not zero");
        assert_eq!(ledger.next_scheduled(&session).await.unwrap(), None);
        let kind = if name == "jobs" { "job_type" } else { "topic" };
        run(
            &client,
            &format!(
                "insert into pgwake.{name} ({kind}, created_at, {due}) values
                 ('later', now() - interval '10 h', now() + interval '1 h'),
                 ('ready', now() - interval '10 h', now() - interval '5 s')"
            ),
        )
        .await;
        let age = ledger.oldest_ready(&session).await.unwrap().unwrap();
        assert!((5.0..65.0).contains(&age), "{age}");
        let next = ledger.next_scheduled(&session).await.unwrap().unwrap();
        assert!((3540.0..=3600.0).contains(&next), "{next}");
        assert_eq!(ledger.counts(&session, 9).await.unwrap().ready, (1, false));
        assert_eq!(ledger.counts(&session, 9).await.unwrap().scheduled, (1, false));
        // held jobs are not waiting, however old they are
        claim_one(&session, &ledger, "w", OVER).await;
        assert_eq!(ledger.oldest_ready(&session).await.unwrap(), None);
    }
    // without a time of its own, a message is due at its creation
    let (db, session, ledger) = with_ledger("outbox").await;
    let insert = "insert into pgwake.outbox (topic, created_at) values ('x', now() - interval '100 s')";
    run(&db.connect().await, insert).await;
    let age = ledger.oldest_ready(&session).await.unwrap().unwrap();
    assert!((100.0..160.0).contains(&age), "{age}");
}

#[tokio::test]
async fn an_infinite_time_never_breaks_a_figure() {
    let (db, session, ledger) = with_ledger("jobs").await;
    let client = db.connect().await;
    run(
        &client,
        "insert into pgwake.jobs (job_type, run_at) values
         ('never', 'infinity'), ('always', '-infinity'), ('ready', now() - interval '7 s'),
         ('later', now() + interval '60 s');
         insert into pgwake.jobs (job_type, status, locked_by, locked_until, lease_token) values
         ('a', 'running', 'w', 'infinity', gen_random_uuid()),
         ('b', 'running', 'w', '-infinity', gen_random_uuid())",
    )
    .await;
    let age = ledger.oldest_ready(&session).await.unwrap().unwrap();
    assert!((7.0..67.0).contains(&age), "{age}");
    let next = ledger.next_scheduled(&session).await.unwrap().unwrap();
    assert!((1.0..=60.0).contains(&next), "{next}");
    assert_eq!(ledger.counts(&session, 9).await.unwrap().ready, (2, false));
    assert_eq!(ledger.counts(&session, 9).await.unwrap().scheduled, (2, false));
    assert_eq!(ledger.counts(&session, 9).await.unwrap().running, (2, false));
    assert_eq!(ledger.counts(&session, 9).await.unwrap().expired, (1, false));
    let leases = ledger.leases(&session, 9).await.unwrap();
    assert_eq!(
        leases.iter().map(|l| (l.job_type.as_str(), l.expires)).collect::<Vec<_>>(),
        [("b", None), ("a", None)]
    );
    ledger.earliest(&session).await.unwrap();
    let mut got: Vec<String> =
        claim(&session, &ledger, "w", 9, LONG).await.into_iter().map(|j| j.job_type).collect();
    got.sort();
    assert_eq!(got, ["always", "b", "ready"]);
    let audit = support::ledger::audit();
    run(&client, "update pgwake.jobs set locked_until = '-infinity' where job_type = 'b'").await;
    assert_eq!(ledger.release_expired_batch(&session, None, &audit).await.unwrap(), 1);
}

#[tokio::test]
async fn leases_come_by_expiry_up_to_the_limit_and_bear_what_a_release_needs() {
    let (db, session, ledger) = with_ledger("jobs").await;
    fill(&session, &ledger, 3).await;
    let long = claim_one(&session, &ledger, "w1", 2 * LONG).await;
    let over = claim_one(&session, &ledger, "w2", OVER).await;
    let mid = claim_one(&session, &ledger, "w3", LONG).await;
    let leases = ledger.leases(&session, 10).await.unwrap();
    let seen: Vec<_> = leases.iter().map(|l| (l.id.as_str(), l.holder.as_str())).collect();
    assert_eq!(seen, [(over.id.as_str(), "w2"), (mid.id.as_str(), "w3"), (long.id.as_str(), "w1")]);
    assert_eq!(
        leases[1],
        LeaseRow {
            id: mid.id.clone(),
            token: mid.token.clone(),
            holder: "w3".into(),
            job_type: "mail".into(),
            expires: mid.expires,
            attempts: Some(1),
            max_attempts: Some(5),
            running: true,
            expired: false,
        }
    );
    assert_eq!(ledger.leases(&session, 2).await.unwrap(), leases[..2]);
    assert_eq!(ledger.lease_of(&session, &mid.id).await.unwrap().as_ref(), Some(&leases[1]));
    assert_eq!(ledger.lease_of(&session, "987654321").await.unwrap(), None);
    ledger.done(&session, &[key(&mid)]).await.unwrap();
    assert!(!ledger.lease_of(&session, &mid.id).await.unwrap().unwrap().running);
    assert_eq!(number(&db.connect().await, "select count(*) from pgwake.jobs").await, 3);
}

#[tokio::test]
async fn hostile_text_in_a_lease_comes_out_harmless() {
    let (db, session, ledger) = with_ledger("jobs").await;
    run(
        &db.connect().await,
        "insert into pgwake.jobs (job_type, status, locked_by, locked_until, lease_token) values
         (E'mail\\x1b]0;owned\\x07', 'running', E'w\\u009b31m\\n\\u202egnp', now(), gen_random_uuid())",
    )
    .await;
    let lease = ledger.leases(&session, 9).await.unwrap().remove(0);
    assert_eq!(lease.job_type, "mail␛]0;owned␇");
    assert_eq!(lease.holder, "w<U+009B>31m <U+202E>gnp");
    // and it can be released as it was seen
    let seen = support::ledger::lease_of(&session, &ledger, &lease.id).await;
    let release = ledger.release(&session, &seen, &support::ledger::audit()).await.unwrap();
    assert_eq!(release, pgwake::ledger::Release::Freed);
}

#[tokio::test]
async fn arrivals_are_read_from_the_sequence_without_counting() {
    let (_db, session, ledger) = with_ledger("jobs").await;
    assert!(ledger.has_sequence());
    assert_eq!(ledger.arrived(&session).await.unwrap(), None);
    fill(&session, &ledger, 3).await;
    let first = ledger.arrived(&session).await.unwrap().unwrap();
    fill(&session, &ledger, 40).await;
    assert_eq!(ledger.arrived(&session).await.unwrap().unwrap() - first, 40);
}

#[tokio::test]
async fn every_figure_can_be_read_on_a_read_only_session() {
    let (db, session, ledger) = with_ledger("jobs").await;
    fill(&session, &ledger, 2).await;
    claim_one(&session, &ledger, "w", LONG).await;
    let stats = session_for(&db, Purpose::Stats).await;
    assert_eq!(ledger.counts(&stats, 9).await.unwrap().ready, (1, false));
    assert_eq!(ledger.counts(&stats, 9).await.unwrap().scheduled, (0, false));
    assert_eq!(ledger.counts(&stats, 9).await.unwrap().running, (1, false));
    assert_eq!(ledger.counts(&stats, 9).await.unwrap().expired, (0, false));
    assert_eq!(ledger.counts(&stats, 9).await.unwrap().failed, (0, false));
    assert!(ledger.oldest_ready(&stats).await.unwrap().is_some());
    assert_eq!(ledger.next_scheduled(&stats).await.unwrap(), None);
    assert_eq!(ledger.leases(&stats, 9).await.unwrap().len(), 1);
    assert!(ledger.arrived(&stats).await.unwrap().is_some());
    let refused = ledger.claim(&stats, "w", 1, LONG).await.unwrap_err();
    assert_eq!(refused.sqlstate(), Some("25006"), "{refused}");
}

#[tokio::test]
async fn ledgers_that_are_there_are_found_and_others_passed_over() {
    let db = support::database().await;
    let session = support::ledger::session(&db).await;
    assert!(detect(&session).await.unwrap().is_empty());
    // somebody else's table of that name
    run(&db.connect().await, "create table public.jobs (id int)").await;
    assert!(detect(&session).await.unwrap().is_empty());
    let db = migrated().await;
    run(&db.connect().await, PLAIN).await;
    let session = support::ledger::session(&db).await;
    let found = detect(&session).await.unwrap();
    assert_eq!(found.iter().map(|l| l.name()).collect::<Vec<_>>(), ["jobs", "outbox", "jobs-plain"]);
}

#[tokio::test]
async fn a_scratch_mark_is_given_to_an_empty_ledger_only_and_stays() {
    let (db, session, ledger) = with_ledger("jobs").await;
    fill(&session, &ledger, 1).await;
    let refused = mark_scratch(&session, &ledger).await.unwrap_err().to_string();
    assert!(refused.contains("not empty") && !refused.contains('\n'), "{refused}");
    assert!(!open(&session, "jobs").await.is_scratch());
    run(&db.connect().await, "delete from pgwake.jobs").await;
    mark_scratch(&session, &ledger).await.unwrap();
    let marked = open(&session, "jobs").await;
    assert!(marked.is_scratch());
    assert!(!open(&session, "outbox").await.is_scratch(), "one mark, one ledger");
    fill(&session, &marked, 1).await;
    mark_scratch(&session, &marked).await.unwrap();
}

#[tokio::test]
async fn a_worker_that_leaves_removes_its_own_rows_and_not_those_of_a_namesake() {
    let db = migrated().await;
    let session = session_for(&db, Purpose::Work).await;
    let client = db.connect().await;
    let row =
        "insert into pgwake.workers (name, ledger, host, pid, version) values ('w', 'jobs', 'h', 7, '0')";
    run(&client, row).await;
    for (host, pid, left) in [("h", 8, 1), ("other", 7, 1), ("h", 7, 0)] {
        pgwake::ledger::delete_worker(&session, "w", host, pid).await.unwrap();
        assert_eq!(number(&client, "select count(*) from pgwake.workers").await, left);
    }
}

#[tokio::test]
async fn an_odd_value_fails_the_statement_that_met_it_and_not_the_program() {
    let (db, session, _ledger) = with_ledger("jobs").await;
    let client = db.connect().await;
    run(
        &client,
        "alter table pgwake.workers alter column host drop not null;
         insert into pgwake.workers (name, ledger, host, pid, version, started_at, seen_at)
         values ('w', 'jobs', null, 1, '0', now(), now())",
    )
    .await;
    let error = pgwake::ledger::workers(&session, "jobs").await.unwrap_err();
    assert!(matches!(error, pgwake::pg::Error::Value(_)), "{error:?}");
    assert!(error.to_string().starts_with("the value of column host cannot be read: "), "{error}");
    assert!(!error.is_session_lost(), "the session is sound");
    assert_eq!(session.rows("select 1", &[]).await.unwrap().len(), 1);
}
