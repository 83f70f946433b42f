//! Ending a claim: done, failed, renewed, given back; and what a late holder can change: nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::time::Duration;

use pgwake::ledger::{Failure, Giveback, Job, Ledger, Release};
use pgwake::pg::Session;
use support::ledger::{
    LONG, OVER, ask, audit, claim, claim_one, every_builtin, fill, ids, key, lease_of, number, row, run,
    with_ledger,
};

const RETRY: Duration = Duration::from_secs(60);

fn failure(job: &Job) -> Failure {
    Failure { id: job.id.clone(), token: job.token.clone(), error: "smtp: refused".into(), delay: RETRY }
}

fn giveback(job: &Job, started: bool) -> Giveback {
    Giveback { id: job.id.clone(), token: job.token.clone(), started }
}

/// Tries everything that a holder can do, and returns what was recorded.
async fn try_everything(session: &Session, ledger: &Ledger, job: &Job) -> Vec<&'static str> {
    let mut recorded = Vec::new();
    let one = [key(job)];
    let mut lost = |what, lost: &[String], recorded_ids: &[String]| {
        if lost != [job.id.clone()] || !recorded_ids.is_empty() {
            recorded.push(what);
        }
    };
    let renewed = ledger.renew(session, &one, LONG).await.unwrap();
    let renewed_ids: Vec<String> = renewed.renewed.into_iter().map(|(id, _)| id).collect();
    lost("renew", &renewed.lost, &renewed_ids);
    let done = ledger.done(session, &one).await.unwrap();
    lost("done", &done.lost, &done.recorded);
    let failed = ledger.failed(session, &[failure(job)]).await.unwrap();
    lost("failed", &failed.lost, &failed.recorded);
    let deferred = ledger.defer(session, &[failure(job)]).await.unwrap();
    lost("defer", &deferred.lost, &deferred.recorded);
    assert_eq!(failed.gave_up, Vec::<String>::new());
    for started in [true, false] {
        let back = ledger.give_back(session, &[giveback(job, started)]).await.unwrap();
        lost("give_back", &back.lost, &back.recorded);
    }
    recorded
}

#[tokio::test]
async fn a_late_holder_changes_nothing_once_the_lease_has_moved() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        for moved in
            ["claimed again", "claimed again by the same name", "released", "finished", "failed", "deleted"]
        {
            fill(&session, &ledger, 1).await;
            let late = claim_one(&session, &ledger, "late", OVER).await;
            match moved {
                "claimed again" => drop(claim_one(&session, &ledger, "new", LONG).await),
                "claimed again by the same name" => drop(claim_one(&session, &ledger, "late", LONG).await),
                "released" => {
                    let seen = lease_of(&session, &ledger, &late.id).await;
                    assert_eq!(ledger.release(&session, &seen, &audit()).await.unwrap(), Release::Freed);
                }
                "failed" => {
                    let again = claim_one(&session, &ledger, "new", LONG).await;
                    ledger.failed(&session, &[failure(&again)]).await.unwrap();
                }
                "finished" => {
                    let again = claim_one(&session, &ledger, "new", LONG).await;
                    ledger.done(&session, &[key(&again)]).await.unwrap();
                }
                _ => run(&client, &format!("delete from {}", ledger.profile().relation())).await,
            }
            let what = format!("{moved} on {}", ledger.name());
            let relation = ledger.profile().relation();
            let all =
                format!("select coalesce(string_agg(t::text, ' ' order by id), '') from {relation} t");
            let before = ask(&client, &all).await.unwrap();
            let recorded = try_everything(&session, &ledger, &late).await;
            assert_eq!(recorded, Vec::<&str>::new(), "{what}");
            assert_eq!(ask(&client, &all).await.unwrap(), before, "{what}: the row is as it was");
            run(&client, &format!("delete from {relation}")).await;
        }
    }
}

#[tokio::test]
async fn in_one_batch_the_lost_are_told_from_the_recorded() {
    for (db, session, ledger) in every_builtin().await {
        let all = fill(&session, &ledger, 3).await;
        let jobs = claim(&session, &ledger, "w", 3, LONG).await;
        let mut claims: Vec<_> = jobs.iter().map(key).collect();
        claims[1].1 = "00000000-0000-0000-0000-000000000000".into();
        claims.push(("987654321".into(), claims[0].1.clone()));
        let mut done = ledger.done(&session, &claims).await.unwrap();
        done.recorded.sort();
        done.lost.sort();
        assert_eq!(done.recorded, [all[0].clone(), all[2].clone()]);
        assert_eq!(done.lost, [all[1].clone(), "987654321".into()]);
        let held = format!("select count(*) from {} where locked_by = 'w'", ledger.profile().relation());
        assert_eq!(number(&db.connect().await, &held).await, 1);
        assert!(ledger.done(&session, &[]).await.unwrap().recorded.is_empty(), "an empty batch is nothing");
    }
}

#[tokio::test]
async fn done_clears_the_lease_and_dates_the_end() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        fill(&session, &ledger, 1).await;
        let job = claim_one(&session, &ledger, "w", LONG).await;
        let done = ledger.done(&session, &[key(&job)]).await.unwrap();
        assert_eq!((done.recorded, done.lost, done.gave_up), (vec![job.id.clone()], vec![], vec![]));
        let (date, state) =
            if ledger.name() == "outbox" { ("sent_at", "SENT") } else { ("finished_at", "done") };
        let now = format!(
            "select concat_ws('|', status, locked_by, locked_until, {date} > now() - interval '1 min', {date} <= now())
             from {} where id = {}",
            ledger.profile().relation(),
            job.id
        );
        assert_eq!(ask(&client, &now).await.unwrap(), format!("{state}|t|t"));
        assert_eq!(claim(&session, &ledger, "w", 5, LONG).await, []);
    }
}

#[tokio::test]
async fn an_expired_lease_can_be_finished_while_its_token_stands_but_not_renewed() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        fill(&session, &ledger, 1).await;
        let job = claim_one(&session, &ledger, "w", OVER).await;
        let before = row(&client, &ledger, &job.id).await;
        let renewed = ledger.renew(&session, &[key(&job)], LONG).await.unwrap();
        assert_eq!((renewed.renewed, renewed.lost), (vec![], vec![job.id.clone()]), "{}", ledger.name());
        assert_eq!(row(&client, &ledger, &job.id).await, before);
        assert_eq!(ledger.done(&session, &[key(&job)]).await.unwrap().recorded, [job.id]);
    }
}

#[tokio::test]
async fn renewing_moves_the_expiry_by_the_servers_clock_and_nothing_else() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        fill(&session, &ledger, 1).await;
        let job = claim_one(&session, &ledger, "w", Duration::from_secs(100)).await;
        let relation = ledger.profile().relation();
        let rest = format!("select to_jsonb(t) - 'locked_until' from {relation} t");
        let before = ask(&client, &rest).await;
        let renewed = ledger.renew(&session, &[key(&job)], LONG).await.unwrap();
        assert_eq!(renewed.lost, Vec::<String>::new());
        assert_eq!(renewed.renewed[0].0, job.id);
        assert!(renewed.renewed[0].1 >= job.expires.unwrap() + chrono::Duration::seconds(500));
        let close =
            format!("select abs(extract(epoch from locked_until - now()) - 600) < 30 from {relation}");
        assert_eq!(ask(&client, &close).await.unwrap(), "true");
        assert_eq!(ask(&client, &rest).await, before);
    }
}

#[tokio::test]
async fn a_failed_attempt_is_due_again_after_its_delay_and_not_before() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        fill(&session, &ledger, 1).await;
        let job = claim_one(&session, &ledger, "w", LONG).await;
        let failed = ledger.failed(&session, &[failure(&job)]).await.unwrap();
        assert_eq!((failed.recorded, failed.gave_up, failed.lost), (vec![job.id.clone()], vec![], vec![]));
        let (due, state, end) = match ledger.name() {
            "outbox" => ("next_attempt_at", "PENDING", "sent_at"),
            _ => ("run_at", "ready", "finished_at"),
        };
        let now = format!(
            "select concat_ws('|', status, attempts, last_error, locked_by, locked_until, {end},
                              abs(extract(epoch from {due} - now()) - 60) < 30) from {}",
            ledger.profile().relation()
        );
        assert_eq!(ask(&client, &now).await.unwrap(), format!("{state}|1|smtp: refused|t"));
        assert_eq!(claim(&session, &ledger, "w", 5, LONG).await, [], "not before its time");
    }
}

#[tokio::test]
async fn the_fifth_failure_gives_up() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        fill(&session, &ledger, 1).await;
        for attempt in 1..=5 {
            let job = claim_one(&session, &ledger, "w", LONG).await;
            assert_eq!((job.attempt, job.max_attempts), (Some(attempt), Some(5)), "{}", ledger.name());
            let at_once =
                Failure { delay: Duration::ZERO, error: format!("error {attempt}"), ..failure(&job) };
            let failed = ledger.failed(&session, &[at_once]).await.unwrap();
            assert_eq!(failed.recorded, std::slice::from_ref(&job.id));
            let expected = if attempt == 5 { vec![job.id] } else { vec![] };
            assert_eq!(failed.gave_up, expected, "attempt {attempt} on {}", ledger.name());
        }
        assert_eq!(claim(&session, &ledger, "w", 5, LONG).await, []);
        let relation = ledger.profile().relation();
        let (end, state) = match ledger.name() {
            "outbox" => ("sent_at is null", "FAILED"),
            _ => ("finished_at <= now()", "failed"),
        };
        let now = format!(
            "select concat_ws('|', status, attempts, last_error, locked_by, locked_until, {end}) from {relation}"
        );
        assert_eq!(ask(&client, &now).await.unwrap(), format!("{state}|5|error 5|t"));
    }
}

#[tokio::test]
async fn an_error_text_is_cleaned_and_cut_before_it_is_stored() {
    let (db, session, ledger) = with_ledger("jobs").await;
    fill(&session, &ledger, 1).await;
    let job = claim_one(&session, &ledger, "w", LONG).await;
    let error = format!("\u{1b}[31mred\0\nsecond line {}", "x".repeat(5000));
    ledger.failed(&session, &[Failure { error, ..failure(&job) }]).await.unwrap();
    let stored = ask(&db.connect().await, "select last_error from pgwake.jobs").await.unwrap();
    assert!(stored.starts_with("␛[31mred␀\nsecond line xxx"), "{stored}");
    assert!(stored.chars().count() <= 2001, "{}", stored.chars().count());
}

#[tokio::test]
async fn giving_back_refunds_an_attempt_that_never_began_and_only_that() {
    let (db, session, ledger) = with_ledger("jobs").await;
    let client = db.connect().await;
    let all = fill(&session, &ledger, 2).await;
    let due = ask(&client, "select string_agg(run_at::text, ' ' order by id) from pgwake.jobs").await;
    let jobs = claim(&session, &ledger, "w", 2, LONG).await;
    let back = [giveback(&jobs[0], true), giveback(&jobs[1], false)];
    let given = ledger.give_back(&session, &back).await.unwrap();
    assert_eq!((given.recorded.len(), given.lost.len()), (2, 0));
    let now = "select string_agg(concat_ws('|', id, status, attempts, locked_by, locked_until, lease_token), ' ' order by id)
               from pgwake.jobs";
    assert_eq!(ask(&client, now).await.unwrap(), format!("{}|ready|1 {}|ready|0", all[0], all[1]));
    let after = ask(&client, "select string_agg(run_at::text, ' ' order by id) from pgwake.jobs").await;
    assert_eq!(after, due, "due as before");
    assert_eq!(claim(&session, &ledger, "w", 5, LONG).await.len(), 2);
}

#[tokio::test]
async fn where_the_attempt_is_the_fence_it_is_never_refunded() {
    let (_db, session, ledger) = every_builtin().await.remove(2);
    fill(&session, &ledger, 1).await;
    let first = claim_one(&session, &ledger, "w", LONG).await;
    ledger.give_back(&session, &[giveback(&first, false)]).await.unwrap();
    let again = claim_one(&session, &ledger, "w", LONG).await;
    assert_ne!(first.token, again.token);
    assert_eq!(ledger.done(&session, &[key(&first)]).await.unwrap().lost, [first.id], "still fenced");
}

#[tokio::test]
async fn outbox_attempts_count_recorded_failures_only() {
    let (db, session, ledger) = with_ledger("outbox").await;
    let client = db.connect().await;
    fill(&session, &ledger, 1).await;
    let attempts = "select attempts from pgwake.outbox";
    // more crashes than it has attempts
    for _ in 0..7 {
        let job = claim_one(&session, &ledger, "crashes", OVER).await;
        assert_eq!(job.attempt, Some(1));
        assert_eq!(number(&client, attempts).await, 0);
    }
    let job = claim_one(&session, &ledger, "fails", LONG).await;
    ledger.failed(&session, &[Failure { delay: Duration::ZERO, ..failure(&job) }]).await.unwrap();
    assert_eq!(number(&client, attempts).await, 1);
    let job = claim_one(&session, &ledger, "gives back", LONG).await;
    assert_eq!(job.attempt, Some(2));
    ledger.give_back(&session, &[giveback(&job, false)]).await.unwrap();
    assert_eq!(number(&client, attempts).await, 1);
}

#[tokio::test]
async fn a_crash_between_publishing_and_sent_publishes_again_and_the_consumer_applies_it_once() {
    let (db, session, ledger) = with_ledger("outbox").await;
    let client = db.connect().await;
    run(
        &client,
        "create table orders (id int primary key);
         create table delivered (n serial, message_id text);
         create table applied (message_id text primary key)",
    )
    .await;
    run(&client, "begin; insert into orders values (1); select pgwake.publish('orders', '1'); commit")
        .await;
    let publish = async |job: &Job| {
        let id = &job.id;
        run(
            &client,
            &format!(
                "insert into delivered (message_id) values ('{id}');
                 insert into applied values ('{id}') on conflict do nothing"
            ),
        )
        .await;
    };

    let first = claim_one(&session, &ledger, "crashes", OVER).await;
    publish(&first).await; // and it dies here, before SENT
    let second = claim_one(&session, &ledger, "lives", LONG).await;
    assert_eq!((ids(std::slice::from_ref(&second)), second.was_expired), (vec![first.id.as_str()], true));
    publish(&second).await;
    assert_eq!(ledger.done(&session, &[key(&second)]).await.unwrap().recorded, [second.id]);

    assert_eq!(number(&client, "select count(*) from delivered").await, 2, "at least once");
    assert_eq!(number(&client, "select count(*) from applied").await, 1, "applied once");
    assert_eq!(ask(&client, "select status || attempts from pgwake.outbox").await.unwrap(), "SENT0");
    // the first one was only slow: it comes back, and changes nothing
    assert_eq!(ledger.done(&session, &[key(&first)]).await.unwrap().lost, [first.id]);
}

/// The write lock is taken and never waited for: a locked row is neither changed nor called lost.
#[tokio::test]
async fn a_row_that_another_session_holds_locked_is_busy_and_the_rest_is_recorded() {
    for (db, session, ledger) in every_builtin().await {
        let all = fill(&session, &ledger, 2).await;
        let jobs = claim(&session, &ledger, "w", 2, LONG).await;
        let claims: Vec<_> = jobs.iter().map(key).collect();
        let other = db.connect().await;
        let relation = ledger.profile().relation();
        run(&other, &format!("begin; select from {relation} where id = {} for update", all[0])).await;
        let renewed = ledger.renew(&session, &claims, LONG).await.unwrap();
        assert_eq!((renewed.busy, renewed.lost), (vec![all[0].clone()], vec![]));
        assert_eq!(renewed.renewed.len(), 1);
        let done = ledger.done(&session, &claims).await.unwrap();
        assert_eq!((done.recorded, done.busy), (vec![all[1].clone()], vec![all[0].clone()]));
        assert_eq!(done.lost, Vec::<String>::new());
        run(&other, "rollback").await;
        let done = ledger.done(&session, &claims).await.unwrap();
        assert_eq!((done.recorded, done.lost), (vec![all[0].clone()], vec![all[1].clone()]));
    }
}

#[tokio::test]
async fn the_same_job_twice_in_a_batch_is_recorded_once_and_only_by_its_own_token() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        fill(&session, &ledger, 2).await;
        let late = claim_one(&session, &ledger, "late", OVER).await;
        let jobs = claim(&session, &ledger, "new", 2, LONG).await;
        let again = jobs.iter().find(|j| j.id == late.id).unwrap();
        let batch = [key(&late), key(again), key(again)];
        let done = ledger.done(&session, &batch).await.unwrap();
        assert_eq!(
            (done.recorded, done.lost, done.busy),
            (vec![late.id.clone()], vec![late.id.clone()], vec![])
        );
        let held =
            format!("select count(*) from {} where locked_by is not null", ledger.profile().relation());
        assert_eq!(number(&client, &held).await, 1, "the other one is still held");
    }
}

#[tokio::test]
async fn without_history_a_done_job_is_gone_and_a_lost_one_stays() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        fill(&session, &ledger, 2).await;
        let mut claims: Vec<_> = claim(&session, &ledger, "w", 2, LONG).await.iter().map(key).collect();
        claims[1].1 = "00000000-0000-0000-0000-000000000000".into();
        let done = ledger.remove_done(&session, &claims).await.unwrap();
        assert_eq!((done.recorded, done.lost), (vec![claims[0].0.clone()], vec![claims[1].0.clone()]));
        let rows = format!("select id from {}", ledger.profile().relation());
        assert_eq!(ask(&client, &rows).await.unwrap(), claims[1].0);
    }
}

#[tokio::test]
async fn where_prepared_statements_do_not_stay_as_behind_a_pooler_everything_works_all_the_same() {
    let (_db, session, ledger) = with_ledger("jobs").await;
    fill(&session, &ledger, 4).await;
    for n in 0..4 {
        let job = claim_one(&session, &ledger, "w", LONG).await;
        // What a transaction pooler does by giving another server session.
        session.batch("deallocate all", LONG).await.unwrap();
        let done = ledger.done(&session, &[key(&job)]).await.unwrap();
        assert_eq!(done.recorded, [job.id], "{n}");
    }
}
