//! Claiming: nobody shares a job, the limit holds, one order for ready and expired.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use pgwake::ledger::{Earliest, NewJob};
use support::ledger::{
    LONG, OVER, ask, claim, claim_one, every_builtin, fill, ids, number, run, session, with_ledger,
};
use support::{DEADLINE, wait_until};

#[tokio::test]
async fn claimers_at_the_same_moment_never_share_a_job() {
    let (db, main, ledger) = with_ledger("jobs").await;
    fill(&main, &ledger, 100).await;
    let gate = db.connect().await;
    let watch = db.connect().await;
    // every claimer stands at the table's door before it opens
    run(&gate, "begin; lock table pgwake.jobs in access exclusive mode").await;
    let mut claimers = Vec::new();
    for n in 0..8 {
        let (session, ledger) = (session(&db).await, ledger.clone());
        claimers
            .push(tokio::spawn(async move { claim(&session, &ledger, &format!("w{n}"), 10, LONG).await }));
    }
    let waiting = "select count(*) from pg_locks where relation = 'pgwake.jobs'::regclass and not granted";
    wait_until("all claimers wait", DEADLINE, async || (number(&watch, waiting).await == 8).then_some(()))
        .await;
    run(&gate, "commit").await;

    let mut seen = BTreeSet::new();
    let mut total = 0;
    for claimer in claimers {
        for job in claimer.await.unwrap() {
            total += 1;
            assert!(seen.insert(job.id.clone()), "job {} was given twice", job.id);
        }
    }
    // A claimer may come back short when the others hold what it looked at, but never with too many.
    assert!((10..=80).contains(&total), "{total}");
    let running = "select count(*) from pgwake.jobs where status = 'running'";
    assert_eq!(number(&watch, running).await, total);
    // each holder claimed once
    let holders = "select count(distinct locked_by) from pgwake.jobs where status = 'running'";
    let holders = number(&watch, holders).await;
    assert!(holders > 1, "{holders}");
    for what in ["lease_token", "(locked_by, lease_token)"] {
        let tokens = format!("select count(distinct {what}) from pgwake.jobs where status = 'running'");
        assert_eq!(number(&watch, &tokens).await, holders, "every claim has a token of its own: {what}");
    }
}

#[tokio::test]
async fn a_claimer_goes_past_rows_that_another_session_holds_locked() {
    for (db, main, ledger) in every_builtin().await {
        let all = fill(&main, &ledger, 3).await;
        let relation = ledger.profile().relation();
        let other = db.connect().await;
        run(&other, "begin").await;
        let held =
            ask(&other, &format!("select id from {relation} where id = {} for update", all[0])).await;
        assert_eq!(held.unwrap(), all[0], "the lock is held");

        let got = claim(&main, &ledger, "w", 2, LONG).await;
        assert_eq!(ids(&got), [&all[1], &all[2]], "{}", ledger.name());
        assert_eq!(claim(&main, &ledger, "w", 2, LONG).await, []);
        assert_eq!(ledger.earliest(&main).await.unwrap(), Earliest::DueNow, "due, but held by others");

        run(&other, "rollback").await;
        assert_eq!(ids(&claim(&main, &ledger, "w", 2, LONG).await), [&all[0]]);
    }
}

#[tokio::test]
async fn the_limit_holds_under_every_plan() {
    // Without hashing, sorting and materializing, a pick that stands in the WHERE clause would be run again
    // for every row of the table, and take five more each time.
    let switches =
        ["nestloop", "hashjoin", "mergejoin", "indexscan", "bitmapscan", "hashagg", "sort", "material"];
    for name in ["jobs", "outbox"] {
        let (db, main, ledger) = with_ledger(name).await;
        let client = db.connect().await;
        let relation = ledger.profile().relation();
        // statistics from when the table was empty, and they stay
        run(&client, &format!("alter table {relation} set (autovacuum_enabled = off); analyze {relation}"))
            .await;
        fill(&main, &ledger, 1400).await;
        let running = format!("select count(*) from {relation} where locked_by is not null");
        let mut taken = 0;
        for plan in 0..1 << switches.len() {
            let set: String = switches
                .iter()
                .enumerate()
                .map(|(bit, switch)| {
                    format!("set enable_{switch} = {};", if plan & (1 << bit) == 0 { "on" } else { "off" })
                })
                .collect();
            // compiling the absurd costs of a plan that is switched off would only take time
            main.batch(&format!("set jit = off; {set}"), DEADLINE).await.unwrap();
            let got = claim(&main, &ledger, "w", 5, LONG).await;
            taken += 5;
            assert_eq!(got.len(), 5, "{set}");
            assert_eq!(number(&client, &running).await, taken, "{set}");
        }
    }
}

#[tokio::test]
async fn ready_jobs_and_expired_leases_are_claimed_in_one_order() {
    let (db, main, ledger) = with_ledger("jobs").await;
    let client = db.connect().await;
    run(
        &client,
        "insert into pgwake.jobs (job_type, status, run_at, locked_by, locked_until, lease_token) values
         ('ready 10', 'ready',   now() - interval '10 s', null, null, null),
         ('lease 5',  'running', now() - interval '1 h', 'dead', now() - interval '5 s', gen_random_uuid()),
         ('ready 7',  'ready',   now() - interval '7 s', null, null, null),
         ('lease 20', 'running', now() - interval '9 s', 'dead', now() - interval '20 s', gen_random_uuid()),
         ('live',     'running', now() - interval '1 h', 'alive', now() + interval '1 h', gen_random_uuid()),
         ('later',    'ready',   now() + interval '1 h', null, null, null)",
    )
    .await;
    let mut order = Vec::new();
    for _ in 0..2 {
        order.extend(claim(&main, &ledger, "w", 2, LONG).await);
    }
    let seen: Vec<(&str, bool)> = order.iter().map(|j| (j.job_type.as_str(), j.was_expired)).collect();
    assert_eq!(seen, [("lease 20", true), ("ready 10", false), ("ready 7", false), ("lease 5", true)]);
    assert_eq!(claim(&main, &ledger, "w", 10, LONG).await, [], "neither the live nor the later one");
}

#[tokio::test]
async fn a_claim_stamps_a_whole_lease_by_the_servers_clock() {
    let (db, main, ledger) = with_ledger("jobs").await;
    let client = db.connect().await;
    let payload = r#"{"to": "a@b", "n": [1, 2]}"#.to_owned();
    let job = NewJob { job_type: "mail".into(), payload, ..NewJob::default() };
    let id = ledger.enqueue(&main, &[job]).await.unwrap().remove(0);
    let before: chrono::DateTime<chrono::Utc> =
        client.query_one("select clock_timestamp()", &[]).await.unwrap().get(0);
    let got = claim_one(&main, &ledger, "w1", Duration::from_secs(120)).await;
    let after: chrono::DateTime<chrono::Utc> =
        client.query_one("select clock_timestamp()", &[]).await.unwrap().get(0);

    assert_eq!((got.id.as_str(), got.job_type.as_str()), (id.as_str(), "mail"));
    assert_eq!(got.payload, r#"{"n": [1, 2], "to": "a@b"}"#, "jsonb text as stored");
    assert_eq!((got.attempt, got.max_attempts), (Some(1), Some(5)));
    assert!(!got.was_expired && !got.timed);
    let lease = chrono::Duration::seconds(120);
    assert!(got.expires.unwrap() >= before + lease && got.expires.unwrap() <= after + lease);
    let columns = "select concat_ws('|', status, locked_by, lease_token, attempts, locked_until = '{}') from pgwake.jobs";
    let columns = columns.replace("{}", &got.expires.unwrap().to_rfc3339());
    assert_eq!(ask(&client, &columns).await.unwrap(), format!("running|w1|{}|1|t", got.token));
}

#[tokio::test]
async fn every_claim_has_a_new_token_also_for_the_same_holder() {
    for (_db, main, ledger) in every_builtin().await {
        fill(&main, &ledger, 1).await;
        let first = claim_one(&main, &ledger, "w", OVER).await;
        let again = claim_one(&main, &ledger, "w", LONG).await;
        assert_eq!(first.id, again.id);
        assert!(again.was_expired && !first.was_expired);
        if ledger.name() != "outbox" {
            assert_eq!((first.attempt, again.attempt), (Some(1), Some(2)));
        }
        assert_ne!(first.token, again.token, "{}", ledger.name());
    }
}

#[tokio::test]
async fn a_job_that_died_with_its_holder_on_its_last_attempt_fails_with_the_reason() {
    for (db, main, ledger) in every_builtin().await {
        if ledger.name() == "outbox" {
            continue; // its attempts count recorded failures only
        }
        let client = db.connect().await;
        let relation = ledger.profile().relation();
        fill(&main, &ledger, 1).await;
        run(&client, &format!("update {relation} set max_attempts = 2")).await;
        claim_one(&main, &ledger, "w1", OVER).await;
        assert_eq!(claim_one(&main, &ledger, "w2", OVER).await.attempt, Some(2));
        fill(&main, &ledger, 1).await;

        let claim = ledger.claim(&main, "w3", 10, LONG).await.unwrap();
        assert_eq!((claim.gave_up, claim.jobs.len()), (1, 1), "{}", ledger.name());
        assert_eq!(claim.jobs[0].attempt, Some(1), "the other job is not held up");
        let dead = format!(
            "select concat_ws('|', status, attempts, locked_by, locked_until, finished_at <= now()) from {relation} where max_attempts = 2"
        );
        assert_eq!(ask(&client, &dead).await.unwrap(), "failed|2|t");
        let reason = ask(&client, &format!("select last_error from {relation} where max_attempts = 2"))
            .await
            .unwrap();
        assert!(reason.contains("lease expired") && reason.contains("w2"), "{reason}");
        assert_eq!(ledger.claim(&main, "w3", 10, LONG).await.unwrap().gave_up, 0, "it is told once");
    }
}

#[tokio::test]
async fn a_claim_of_nothing_but_dead_jobs_says_so_and_returns_none() {
    let (db, main, ledger) = with_ledger("jobs").await;
    fill(&main, &ledger, 3).await;
    run(&db.connect().await, "update pgwake.jobs set max_attempts = 1").await;
    claim(&main, &ledger, "w", 3, OVER).await;
    let claim = ledger.claim(&main, "w", 10, LONG).await.unwrap();
    assert_eq!((claim.gave_up, claim.jobs.len()), (3, 0));
}

#[tokio::test]
async fn what_became_due_by_time_is_told_from_what_was_enqueued_due() {
    let (db, main, ledger) = with_ledger("jobs").await;
    run(
        &db.connect().await,
        "insert into pgwake.jobs (job_type, created_at, run_at) values
         ('timed', now() - interval '1 h', now() - interval '1 min'),
         ('at once', now() - interval '1 min', now() - interval '1 min')",
    )
    .await;
    let got = claim(&main, &ledger, "w", 5, LONG).await;
    let seen: Vec<(&str, bool)> = got.iter().map(|j| (j.job_type.as_str(), j.timed)).collect();
    assert_eq!(seen, [("timed", true), ("at once", false)]);
}

#[tokio::test]
async fn the_head_of_the_order_says_when_to_look_again() {
    let (db, main, ledger) = with_ledger("jobs").await;
    let client = db.connect().await;
    assert_eq!(ledger.earliest(&main).await.unwrap(), Earliest::Nothing);
    let add = "insert into pgwake.jobs (job_type, run_at) values ('x', {})";
    run(&client, &add.replace("{}", "'infinity'")).await;
    assert_eq!(ledger.earliest(&main).await.unwrap(), Earliest::Nothing, "parked for ever");
    run(&client, &add.replace("{}", "now() + interval '100 s'")).await;
    let Earliest::In(pause) = ledger.earliest(&main).await.unwrap() else { panic!("due later") };
    assert!(pause > Duration::from_secs(60) && pause <= Duration::from_secs(100), "{pause:?}");
    run(&client, &add.replace("{}", "'-infinity'")).await;
    assert_eq!(ledger.earliest(&main).await.unwrap(), Earliest::DueNow);
    assert_eq!(claim(&main, &ledger, "w", 5, LONG).await.len(), 1);
    let Earliest::In(pause) = ledger.earliest(&main).await.unwrap() else { panic!("due later") };
    assert!(pause > Duration::from_secs(60) && pause <= Duration::from_secs(100), "{pause:?}");
}

#[tokio::test]
async fn a_claim_from_a_mark_passes_over_what_was_due_before_it_and_the_head_does_not() {
    for (_db, session, ledger) in every_builtin().await {
        fill(&session, &ledger, 2).await;
        let last = ledger.claim(&session, "w", 1, LONG).await.unwrap().last_due;
        let after = last.less(Duration::from_secs(2)).max(last.less(Duration::from_secs(0)));
        assert_eq!(
            ledger.claim_from(&session, "w", 5, LONG, after).await.unwrap().jobs.len(),
            1,
            "{}",
            ledger.name()
        );
        fill(&session, &ledger, 1).await;
        let beyond =
            last.less(Duration::ZERO).max(ledger.claim(&session, "w", 5, LONG).await.unwrap().last_due);
        assert_eq!(ledger.claim_from(&session, "w", 5, OVER, beyond).await.unwrap().jobs.len(), 0);
    }
}
