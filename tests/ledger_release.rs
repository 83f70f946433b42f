//! Releasing by hand: exactly what the person saw, audited, woken, and never in anybody's way.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::time::Duration;

use pgwake::ledger::{Audit, Failure, Ledger, Release};
use pgwake::model::Found;
use pgwake::pg::Session;
use support::ears::Ears;
use support::ledger::{
    LONG, OVER, ask, audit, claim, claim_one, every_builtin, fill, ids, key, lease_of, number, row, run,
    session, with_ledger,
};
use support::{DEADLINE, Db};

const AUDITED: &str = "select count(*) from pgwake.releases";

async fn ears(db: &Db, ledger: &Ledger) -> Ears {
    Ears::on(db.conninfo(), &[ledger.channel().unwrap()]).await
}

/// Releases batch after batch until there are none left.
async fn release_all(session: &Session, ledger: &Ledger, holders: Option<&[String]>) -> Vec<u64> {
    let mut batches = Vec::new();
    loop {
        let freed = ledger.release_expired_batch(session, holders, &audit()).await.unwrap();
        if freed == 0 {
            return batches;
        }
        batches.push(freed);
    }
}

#[tokio::test]
async fn a_lease_as_it_was_seen_is_released_live_or_expired() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        let ears = ears(&db, &ledger).await;
        for (round, lease) in [LONG, OVER].into_iter().enumerate() {
            fill(&session, &ledger, 1).await;
            let job = claim_one(&session, &ledger, "dead", lease).await;
            let seen = lease_of(&session, &ledger, &job.id).await;
            assert_eq!((seen.holder.as_str(), &seen.token), ("dead", &job.token));
            ears.take().await;
            assert_eq!(ledger.release(&session, &seen, &audit()).await.unwrap(), Release::Freed);
            assert_eq!(ears.take().await.len(), 1, "one wake-up");

            let due = if ledger.name() == "outbox" { "next_attempt_at" } else { "run_at" };
            let ready = if ledger.name() == "outbox" { "PENDING" } else { "ready" };
            let now = format!(
                "select concat_ws('|', status, locked_by, locked_until, {due} <= now()) from {} where id = {}",
                ledger.profile().relation(),
                job.id
            );
            assert_eq!(ask(&client, &now).await.unwrap(), format!("{ready}|t"));

            let attempts = if ledger.name() == "outbox" { 0 } else { 1 };
            let noted = "select concat_ws('|', released_by, client, operator, how, reason, ledger, job_id, holder, lease_token,
                                attempts, was_expired, locked_until = '{}', released_at <= now())
                         from pgwake.releases order by id desc limit 1"
                .replace("{}", &job.expires.unwrap().to_rfc3339());
            let expected = format!(
                "postgres|local socket|ann@desk|one|holder is dead|{}|{}|dead|{}|{attempts}|{}|t|t",
                ledger.name(),
                job.id,
                job.token,
                if round == 0 { 'f' } else { 't' }
            );
            assert_eq!(ask(&client, noted.as_str()).await.unwrap(), expected);
            let again = claim_one(&session, &ledger, "new", LONG).await;
            assert_eq!(again.id, job.id, "it can be taken again");
        }
        assert_eq!(number(&client, AUDITED).await, 2);
    }
}

#[tokio::test]
async fn a_lease_without_end_is_released_as_it_was_seen() {
    let (db, session, ledger) = with_ledger("jobs").await;
    let client = db.connect().await;
    fill(&session, &ledger, 1).await;
    let job = claim_one(&session, &ledger, "w", LONG).await;
    run(&client, "update pgwake.jobs set locked_until = 'infinity'").await;
    let seen = lease_of(&session, &ledger, &job.id).await;
    assert_eq!(seen.expires, None);
    assert_eq!(ledger.release(&session, &seen, &audit()).await.unwrap(), Release::Freed);
    let noted = "select concat_ws('|', locked_until, was_expired) from pgwake.releases";
    assert_eq!(ask(&client, noted).await.unwrap(), "infinity|f");
}

/// Tables without this program's checks hold leases that nobody picks up: the very ones to release.
#[tokio::test]
async fn half_a_lease_or_one_beyond_every_calendar_is_shown_and_released() {
    let (db, session, ledger) = every_builtin().await.remove(2);
    let client = db.connect().await;
    run(
        &client,
        "alter table public.jobs alter status drop not null;
         insert into public.jobs (job_type, status, locked_by, locked_until, attempts) values
         ('no expiry', 'running', 'w', null, 1), ('no holder', 'running', null, now() - interval '1 s', 1),
         ('beyond', 'running', 'w', '294000-01-01', 1), ('no state', null, 'w', now(), 1)",
    )
    .await;
    let mut leases = ledger.leases(&session, 9).await.unwrap();
    leases.sort_by(|a, b| a.job_type.cmp(&b.job_type));
    let shown: Vec<_> = leases.iter().map(|l| (l.job_type.as_str(), l.expires.is_some())).collect();
    assert_eq!(shown, [("beyond", false), ("no expiry", false), ("no holder", true)]);
    assert!(!ledger.lease_of(&session, "4").await.unwrap().unwrap().running);
    let odd = Found::State { state: "without a state".into() };
    assert_eq!(ledger.find(&session, "4", "").await.unwrap(), odd);
    assert_eq!(release_all(&session, &ledger, None).await, [1], "the one without a holder");
    for lease in leases.into_iter().filter(|l| l.expires.is_none()) {
        let seen = support::ledger::seen(lease);
        assert_eq!(ledger.release(&session, &seen, &audit()).await.unwrap(), Release::Freed);
    }
    assert_eq!(number(&client, "select count(*) from public.jobs where status = 'ready'").await, 3);
    assert_eq!(number(&client, AUDITED).await, 3);
}

#[tokio::test]
async fn what_moved_on_meanwhile_is_left_alone_and_told() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        let ears = ears(&db, &ledger).await;
        let relation = ledger.profile().relation();
        let (ready, done) = if ledger.name() == "outbox" { ("PENDING", "SENT") } else { ("ready", "done") };
        for moved in ["finished", "failed", "renewed", "claimed again", "vanished"] {
            fill(&session, &ledger, 1).await;
            let lease = if moved == "renewed" { LONG } else { OVER };
            let job = claim_one(&session, &ledger, "old", lease).await;
            let seen = lease_of(&session, &ledger, &job.id).await;
            let expected = match moved {
                "finished" => {
                    ledger.done(&session, &[key(&job)]).await.unwrap();
                    Found::State { state: done.into() }
                }
                "failed" => {
                    let (id, token) = key(&job);
                    let failure = Failure { id, token, error: "e".into(), delay: LONG };
                    ledger.failed(&session, &[failure]).await.unwrap();
                    Found::State { state: ready.into() }
                }
                "renewed" => {
                    let renewed = ledger.renew(&session, &[key(&job)], 2 * LONG).await.unwrap();
                    Found::Held { holder: "old".into(), expires: Some(renewed.renewed[0].1), renewed: true }
                }
                "claimed again" => {
                    let again = claim_one(&session, &ledger, "new", LONG).await;
                    Found::Held { holder: "new".into(), expires: again.expires, renewed: false }
                }
                _ => {
                    run(&client, &format!("delete from {relation}")).await;
                    Found::Gone
                }
            };
            let all = format!("select coalesce(string_agg(t::text, ' '), '') from {relation} t");
            let before = ask(&client, &all).await;
            ears.take().await;
            let release = ledger.release(&session, &seen, &audit()).await.unwrap();
            assert_eq!(release, Release::MovedOn(expected), "{moved} on {}", ledger.name());
            assert_eq!(ask(&client, &all).await, before, "nothing was done");
            assert_eq!(number(&client, AUDITED).await, 0, "and nothing noted");
            assert_eq!(ears.take().await, [], "and nobody woken");
            run(&client, &format!("delete from {relation}")).await;
        }
    }
}

#[tokio::test]
async fn a_lease_that_another_session_holds_locked_is_not_waited_for_without_end() {
    let (db, session, ledger) = with_ledger("jobs").await;
    fill(&session, &ledger, 1).await;
    let job = claim_one(&session, &ledger, "w", OVER).await;
    let seen = lease_of(&session, &ledger, &job.id).await;
    let client = db.connect().await;
    run(&client, "begin; select from pgwake.jobs for update").await;
    session.batch("set lock_timeout = '50ms'", DEADLINE).await.unwrap();
    let release = ledger.release(&session, &seen, &audit()).await.unwrap();
    assert_eq!(release, Release::MovedOn(Found::Locked));
    run(&client, "rollback").await;
    assert_eq!(number(&client, AUDITED).await, 0);
    assert_eq!(row(&client, &ledger, &job.id).await.matches("running").count(), 1);
    assert_eq!(ledger.release(&session, &seen, &audit()).await.unwrap(), Release::Freed);
}

#[tokio::test]
async fn a_job_that_finishes_while_the_release_waits_for_its_row_stays_finished() {
    let (db, session, ledger) = with_ledger("jobs").await;
    fill(&session, &ledger, 1).await;
    let job = claim_one(&session, &ledger, "w", OVER).await;
    let seen = lease_of(&session, &ledger, &job.id).await;
    let (holder, watch) = (db.connect().await, db.connect().await);
    run(
        &holder,
        "begin; update pgwake.jobs set status = 'done', finished_at = now(),
                locked_by = null, locked_until = null, lease_token = null",
    )
    .await;
    let waiting = format!("select count(*) from pg_locks where not granted and pid = {}", session.pid());
    let released = tokio::spawn(async move { ledger.release(&session, &seen, &audit()).await.unwrap() });
    support::wait_until("the release waits", DEADLINE, async || {
        (number(&watch, &waiting).await == 1).then_some(())
    })
    .await;
    run(&holder, "commit").await;
    assert_eq!(released.await.unwrap(), Release::MovedOn(Found::State { state: "done".into() }));
    assert_eq!(ask(&watch, "select status from pgwake.jobs").await.unwrap(), "done");
}

#[tokio::test]
async fn expired_leases_are_released_in_batches_of_100_with_one_wake_up_each() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        fill(&session, &ledger, 260).await;
        assert_eq!(claim(&session, &ledger, "dead", 250, OVER).await.len(), 250);
        let live = claim(&session, &ledger, "alive", 5, LONG).await;
        assert_eq!(live.len(), 5);
        assert!(live.iter().all(|j| !j.was_expired), "the dead one's leases ended after these became due");
        assert_eq!(ledger.count_expired_of(&session, None, 1000).await.unwrap(), (250, false));
        let ears = ears(&db, &ledger).await;
        assert_eq!(release_all(&session, &ledger, None).await, [100, 100, 50], "{}", ledger.name());
        assert_eq!(ears.take().await.len(), 3, "one wake-up per batch");
        assert_eq!(
            ledger.counts(&session, 1000).await.unwrap().running,
            (5, false),
            "the live ones are left"
        );

        let noted = "select concat_ws('|', count(*), count(distinct job_id), min(how), max(how), min(holder), max(holder),
                            bool_and(was_expired), min(operator), min(reason), min(ledger), count(lease_token), count(attempts))
                     from pgwake.releases";
        let expected = format!(
            "250|250|all expired|all expired|dead|dead|t|ann@desk|holder is dead|{}|250|250",
            ledger.name()
        );
        assert_eq!(ask(&client, noted).await.unwrap(), expected);
        assert_eq!(claim(&session, &ledger, "w", 300, LONG).await.len(), 255);
    }
}

#[tokio::test]
async fn a_bulk_release_can_be_limited_to_one_holder() {
    let (_db, session, ledger) = with_ledger("jobs").await;
    fill(&session, &ledger, 7).await;
    claim(&session, &ledger, "o'ne", 7, OVER).await;
    claim(&session, &ledger, "two", 3, OVER).await;
    assert_eq!(
        ledger.count_expired_of(&session, Some(&["o'ne".to_owned()]), 100).await.unwrap(),
        (4, false)
    );
    assert_eq!(ledger.count_expired_of(&session, Some(&["o'ne".to_owned()]), 3).await.unwrap(), (3, true));
    assert_eq!(release_all(&session, &ledger, Some(&["o'ne".into(), "three".into()])).await, [4]);
    assert_eq!(release_all(&session, &ledger, Some(&["nobody".into()])).await, [0; 0]);
    assert_eq!(ledger.counts(&session, 100).await.unwrap().expired, (3, false));
}

#[tokio::test]
async fn a_bulk_release_passes_over_rows_that_others_hold_locked() {
    let (db, session, ledger) = with_ledger("jobs").await;
    let all = fill(&session, &ledger, 3).await;
    claim(&session, &ledger, "dead", 3, OVER).await;
    let client = db.connect().await;
    let lock = format!("select id from pgwake.jobs where id = {} for update", all[1]);
    run(&client, "begin").await;
    assert_eq!(ask(&client, &lock).await.unwrap(), all[1]);
    session.batch("set lock_timeout = '50ms'", DEADLINE).await.unwrap();
    assert_eq!(release_all(&session, &ledger, None).await, [2]);
    run(&client, "rollback").await;
    let left = claim(&session, &ledger, "w", 5, LONG).await;
    let expired: Vec<&str> = left.iter().filter(|j| j.was_expired).map(|j| j.id.as_str()).collect();
    assert_eq!((expired, left.len()), (vec![all[1].as_str()], 3));
}

#[tokio::test]
async fn without_the_audit_table_a_release_still_works() {
    let (db, session, ledger) = every_builtin().await.remove(2);
    let client = db.connect().await;
    drop(ledger);
    run(&client, "drop table pgwake.releases").await;
    let ledger = support::ledger::open(&session, "jobs-plain").await;
    fill(&session, &ledger, 3).await;
    let job = claim_one(&session, &ledger, "w", OVER).await;
    let seen = lease_of(&session, &ledger, &job.id).await;
    let odd = Audit { operator: "o".into(), reason: "it's \"odd\"; $9".into() };
    assert_eq!(ledger.release(&session, &seen, &odd).await.unwrap(), Release::Freed);
    claim(&session, &ledger, "w", 3, OVER).await;
    assert_eq!(ledger.release_expired_batch(&session, None, &odd).await.unwrap(), 3);
}

#[tokio::test]
async fn releasing_finishing_renewing_and_claiming_at_once_never_deadlock() {
    let (db, main, ledger) = with_ledger("jobs").await;
    let client = db.connect().await;
    // a deadlock would be found at once, and it would be an error below
    run(&client, &format!("alter database {} set deadlock_timeout = '10ms'", db.name)).await;
    run(&client, "alter table pgwake.jobs alter max_attempts set default 1000000").await;
    fill(&main, &ledger, 60).await;
    let mut tasks = Vec::new();
    for n in 0..3 {
        let (one, other, ledger) = (session(&db).await, session(&db).await, ledger.clone());
        tasks.push(tokio::spawn(async move {
            for round in 0..60_u32 {
                let lease = if round % 2 == 0 { OVER } else { LONG };
                let jobs = claim(&one, &ledger, &format!("w{n}"), 25, lease).await;
                let claims: Vec<_> = jobs.iter().map(key).collect();
                let failures: Vec<Failure> = claims
                    .iter()
                    .map(|(id, token)| Failure {
                        id: id.clone(),
                        token: token.clone(),
                        error: "e".into(),
                        delay: Duration::ZERO,
                    })
                    .collect();
                // the same claims renewed on one session and ended on another, at the same moment
                let renewing = ledger.renew(&other, &claims, lease);
                let (renewed, ended) = if round % 20 == 0 {
                    let (few, _) = claims.split_at(claims.len().min(1));
                    let (renewed, done) = tokio::join!(renewing, ledger.done(&one, few));
                    (renewed, done)
                } else {
                    tokio::join!(renewing, ledger.failed(&one, &failures))
                };
                renewed.unwrap();
                ended.unwrap();
            }
        }));
    }
    for _ in 0..2 {
        let (session, ledger) = (session(&db).await, ledger.clone());
        tasks.push(tokio::spawn(async move {
            for _ in 0..100 {
                ledger.release_expired_batch(&session, None, &audit()).await.unwrap();
                for lease in ledger.leases(&session, 3).await.unwrap() {
                    if let Some(row) =
                        ledger.lease_of(&session, &lease.id).await.unwrap().filter(|r| r.running)
                    {
                        let seen = support::ledger::seen(row);
                        ledger.release(&session, &seen, &audit()).await.unwrap();
                    }
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    assert_eq!(number(&client, deadlocks).await, 0);
    let states = "select string_agg(distinct status, ' ' order by status) from pgwake.jobs";
    assert!(!ask(&client, states).await.unwrap().contains("failed"));
    assert_eq!(number(&client, "select count(*) from pgwake.jobs").await, 60);
    assert_eq!(ids(&claim(&main, &ledger, "w", 100, LONG).await).len() as i64, {
        number(&client, "select count(*) from pgwake.jobs where status = 'running'").await
    });
}
