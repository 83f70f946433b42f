//! Retry, give up and run now: exactly what the person saw, audited, woken, and never a job that a worker has.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use chrono::{DateTime, Utc};
use pgwake::ledger::{Audit, Failure, Ledger, NewJob};
use pgwake::model::{Found, JobAction, JobState, ShownJob};
use pgwake::pg::Session;
use pgwake::profile::builtin;
use support::ears::Ears;
use support::ledger::{
    LONG, OVER, PLAIN, ask, audit, claim_one, every_builtin, fill, key, migrated, number, open,
    open_profile, row, run, session, with_ledger,
};
use support::{DEADLINE, Db};
use tokio_postgres::Client;

const AUDITED: &str = "select count(*) from pgwake.actions";

/// The job as a person sees it now.
async fn shown(session: &Session, ledger: &Ledger, id: &str) -> (ShownJob, JobState) {
    let facts = ledger.job(session, id, false).await.unwrap().expect("the job");
    (ShownJob::of(&facts), facts.row.state.expect("a state"))
}

/// A job that has failed for good, at its last attempt.
async fn failed(session: &Session, ledger: &Ledger, client: &Client) -> String {
    let id = fill(session, ledger, 1).await.remove(0);
    let p = ledger.profile();
    let used = if ledger.name() == "outbox" { 4 } else { 0 };
    let allowed = if ledger.name() == "outbox" { 5 } else { 1 };
    let at_the_end = format!(
        "update {} t set attempts = {used}, max_attempts = {allowed} where {}::text = '{id}'",
        p.relation(),
        p.id()
    );
    run(client, &at_the_end).await;
    let job = claim_one(session, ledger, "w", LONG).await;
    assert_eq!(job.id, id);
    let (id, token) = key(&job);
    let failure = Failure { id: id.clone(), token, error: "smtp is down".into(), delay: LONG };
    assert_eq!(ledger.failed(session, &[failure]).await.unwrap().gave_up, [id.clone()]);
    id
}

/// A job that is due in an hour.
async fn scheduled(session: &Session, ledger: &Ledger) -> String {
    let at = Some(Utc::now() + chrono::Duration::hours(1));
    let job = NewJob { job_type: "mail".into(), payload: "{}".into(), run_at: at, ..NewJob::default() };
    ledger.enqueue(session, &[job]).await.unwrap().remove(0)
}

/// A job that the action takes.
async fn a_job_for(action: JobAction, session: &Session, ledger: &Ledger, client: &Client) -> String {
    match action {
        JobAction::Retry => failed(session, ledger, client).await,
        JobAction::GiveUp => fill(session, ledger, 1).await.remove(0),
        JobAction::RunNow => scheduled(session, ledger).await,
    }
}

async fn empty(client: &Client, ledger: &Ledger) {
    run(client, &format!("delete from {}", ledger.profile().relation())).await;
}

async fn ears(db: &Db, ledger: &Ledger) -> Ears {
    Ears::on(db.conninfo(), &[ledger.channel().unwrap()]).await
}

#[tokio::test]
async fn a_failed_job_is_retried_with_room_for_one_more_attempt_and_keeps_its_error() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        let id = failed(&session, &ledger, &client).await;
        let (seen, state) = shown(&session, &ledger, &id).await;
        assert_eq!(state, JobState::Failed);
        assert_eq!(seen.attempts, seen.max_attempts, "used up");
        let ears = ears(&db, &ledger).await;
        assert_eq!(ledger.on_job(&session, JobAction::Retry, &seen, &audit()).await.unwrap(), None);
        assert_eq!(ears.take().await.len(), 1, "one wake-up");

        let facts = ledger.job(&session, &id, false).await.unwrap().unwrap();
        assert_eq!(facts.row.state, Some(JobState::Ready));
        assert_eq!((facts.finished, &facts.row.holder, facts.expires), (None, &None, None));
        assert_eq!(facts.error.as_deref(), Some("smtp is down"));
        assert_eq!(facts.row.attempts, seen.attempts, "no attempt is counted again");
        assert_eq!(facts.row.max_attempts, seen.attempts.map(|n| n + 1));
        let due = "select bool_and(now() - coalesce({}, created_at) between '0' and '1 minute') from {}";
        let (column, relation) = (&ledger.profile().columns.run_at, ledger.profile().relation());
        let due = due.replacen("{}", column, 1).replacen("{}", &relation, 1);
        assert_eq!(ask(&client, &due).await.unwrap(), "true");

        let noted = "select concat_ws('|', acted_by, client, operator, action, how, reason, ledger, job_id, job_type,
                            state_was, attempts_was, run_at_was is not null, acted_at <= now()) from pgwake.actions";
        let was = &ledger.profile().states.failed;
        let attempts = seen.attempts.unwrap();
        let expected = format!(
            "postgres|local socket|ann@desk|retry|one|holder is dead|{}|{id}|mail|{was}|{attempts}|t|t",
            ledger.name()
        );
        assert_eq!(ask(&client, noted).await.unwrap(), expected);

        // it runs once more, and a failure is the last again
        let job = claim_one(&session, &ledger, "w", LONG).await;
        assert_eq!(job.id, id);
        let (id, token) = key(&job);
        let failure = Failure { id: id.clone(), token, error: "still down".into(), delay: LONG };
        assert_eq!(ledger.failed(&session, &[failure]).await.unwrap().gave_up, [id]);
    }
}

#[tokio::test]
async fn a_waiting_job_is_given_up_with_a_reason_that_names_the_operator_and_nobody_is_woken() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        let ready = fill(&session, &ledger, 1).await.remove(0);
        let later = scheduled(&session, &ledger).await;
        // one that has failed before keeps the end of that story
        let job = claim_one(&session, &ledger, "w", LONG).await;
        let (id, token) = key(&job);
        let failure = Failure { id, token, error: "smtp is down".into(), delay: LONG };
        ledger.failed(&session, &[failure]).await.unwrap();
        let ears = ears(&db, &ledger).await;
        for (id, before, was) in
            [(&ready, "\nbefore: smtp is down", JobState::Scheduled), (&later, "", JobState::Scheduled)]
        {
            let (seen, state) = shown(&session, &ledger, id).await;
            assert_eq!(state, was);
            assert_eq!(ledger.on_job(&session, JobAction::GiveUp, &seen, &audit()).await.unwrap(), None);
            let facts = ledger.job(&session, id, false).await.unwrap().unwrap();
            assert_eq!(facts.row.state, Some(JobState::Failed));
            assert_eq!(facts.error, Some(format!("given up by ann@desk: holder is dead{before}")));
            assert_eq!(facts.row.attempts, seen.attempts);
            assert_eq!(facts.finished.is_some(), ledger.profile().columns.finished_at.is_some());
        }
        assert_eq!(ears.take().await, []);
        assert_eq!(
            number(&client, "select count(*) from pgwake.actions where action = 'give up'").await,
            2
        );
        let claim = ledger.claim(&session, "w", 9, LONG).await.unwrap();
        assert_eq!((claim.jobs.len(), claim.gave_up), (0, 0), "nobody runs them");
    }
}

#[tokio::test]
async fn a_scheduled_job_is_due_now_and_a_worker_is_woken_for_it() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        let id = scheduled(&session, &ledger).await;
        assert_eq!(ledger.claim(&session, "w", 1, LONG).await.unwrap().jobs.len(), 0);
        let (seen, _) = shown(&session, &ledger, &id).await;
        let ears = ears(&db, &ledger).await;
        assert_eq!(ledger.on_job(&session, JobAction::RunNow, &seen, &audit()).await.unwrap(), None);
        assert_eq!(ears.take().await.len(), 1);
        assert_eq!(claim_one(&session, &ledger, "w", LONG).await.id, id);
        let noted = "select concat_ws('|', action, run_at_was > now()) from pgwake.actions";
        assert_eq!(ask(&client, noted).await.unwrap(), "run now|t");
    }
}

/// Each of what was seen, changed by somebody else meanwhile: nothing is done, nothing noted, nobody woken.
#[tokio::test]
async fn what_moved_on_meanwhile_is_left_alone_and_told() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        let ears = ears(&db, &ledger).await;
        let p = ledger.profile();
        let relation = p.relation();
        let run_at = &p.columns.run_at;
        for action in JobAction::ALL {
            let mut changes = vec![
                format!("update {relation} set {run_at} = {run_at} + interval '1 microsecond'"),
                format!("update {relation} set attempts = attempts + 1"),
                format!("update {relation} set max_attempts = max_attempts + 1"),
                format!("update {relation} set {run_at} = 'infinity'"),
                format!("delete from {relation}"),
            ];
            if ledger.name() == "outbox" {
                // where it is empty the order is by creation: that is what was seen
                changes[0] = format!(
                    "update {relation} set {run_at} = coalesce({run_at}, created_at) + interval '1 microsecond'"
                );
            }
            if action == JobAction::Retry {
                let again =
                    format!("update {relation} set finished_at = finished_at + interval '1 microsecond'");
                changes.extend((ledger.name() != "outbox").then_some(again));
            }
            for change in changes {
                let id = a_job_for(action, &session, &ledger, &client).await;
                let (seen, state) = shown(&session, &ledger, &id).await;
                assert!(action.takes(Some(state)), "{action:?} {state:?}");
                run(&client, &change).await;
                let all = format!("select coalesce(string_agg(t::text, ' '), '') from {relation} t");
                let before = ask(&client, &all).await;
                ears.take().await;
                let found = ledger.on_job(&session, action, &seen, &audit()).await.unwrap();
                let expected = change.starts_with("delete");
                assert!(found.is_some(), "{action:?} after {change} on {}", ledger.name());
                assert_eq!(found == Some(Found::Gone), expected, "{found:?}");
                assert_eq!(ask(&client, &all).await, before, "nothing was done");
                assert_eq!(number(&client, AUDITED).await, 0, "and nothing noted");
                assert_eq!(ears.take().await, [], "and nobody woken");
                empty(&client, &ledger).await;
            }
        }
    }
}

#[tokio::test]
async fn a_job_that_a_worker_claims_between_look_and_action_is_its_own() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        for action in JobAction::ALL {
            let id = a_job_for(action, &session, &ledger, &client).await;
            let (seen, _) = shown(&session, &ledger, &id).await;
            if action != JobAction::GiveUp {
                // somebody else did the same a moment earlier
                let (mut same, _) = shown(&session, &ledger, &id).await;
                assert_eq!(ledger.on_job(&session, action, &same, &audit()).await.unwrap(), None);
                same.run_at = seen.run_at;
            }
            let job = claim_one(&session, &ledger, "w", LONG).await;
            assert_eq!(job.id, id);
            let found = ledger.on_job(&session, action, &seen, &audit()).await.unwrap().expect("moved on");
            let attempts = ledger.job(&session, &id, false).await.unwrap().unwrap().row.attempts;
            let held = Found::Job {
                state: Some(JobState::Running),
                holder: Some("w".into()),
                due: job.expires,
                attempts,
            };
            assert_eq!(found, held, "{action:?} on {}", ledger.name());
            assert!(found.to_string().starts_with("running, held by w until "), "{found}");
            assert_eq!(ledger.done(&session, &[key(&job)]).await.unwrap().recorded, [id]);
            empty(&client, &ledger).await;
        }
    }
}

/// No id that was given is enough: each action begins in its own state only.
#[tokio::test]
async fn an_action_does_nothing_to_a_job_in_another_state() {
    for (db, session, ledger) in every_builtin().await {
        let client = db.connect().await;
        for action in JobAction::ALL {
            for other in ["done", "running", "expired", "failed", "ready", "scheduled"] {
                let id = match other {
                    "failed" => failed(&session, &ledger, &client).await,
                    "scheduled" => scheduled(&session, &ledger).await,
                    _ => fill(&session, &ledger, 1).await.remove(0),
                };
                match other {
                    "done" => {
                        let job = claim_one(&session, &ledger, "w", LONG).await;
                        ledger.done(&session, &[key(&job)]).await.unwrap();
                    }
                    "running" => drop(claim_one(&session, &ledger, "w", LONG).await),
                    "expired" => drop(claim_one(&session, &ledger, "w", OVER).await),
                    _ => {}
                }
                let (seen, state) = shown(&session, &ledger, &id).await;
                let before = row(&client, &ledger, &id).await;
                let moved = ledger.on_job(&session, action, &seen, &audit()).await.unwrap();
                assert_eq!(
                    moved.is_none(),
                    action.takes(Some(state)),
                    "{action:?} of a job that is {other}"
                );
                assert_eq!(row(&client, &ledger, &id).await == before, moved.is_some());
                empty(&client, &ledger).await;
            }
        }
    }
}

#[tokio::test]
async fn a_time_without_end_is_compared_as_well() {
    let (db, session, ledger) = with_ledger("jobs").await;
    let client = db.connect().await;
    let id = fill(&session, &ledger, 1).await.remove(0);
    run(&client, "update pgwake.jobs set run_at = 'infinity'").await;
    let (seen, state) = shown(&session, &ledger, &id).await;
    assert_eq!((seen.run_at, state), (None, JobState::Scheduled));
    run(&client, "update pgwake.jobs set run_at = now() + interval '1 hour'").await;
    assert!(ledger.on_job(&session, JobAction::RunNow, &seen, &audit()).await.unwrap().is_some());
    run(&client, "update pgwake.jobs set run_at = 'infinity'").await;
    assert_eq!(ledger.on_job(&session, JobAction::RunNow, &seen, &audit()).await.unwrap(), None);
}

#[tokio::test]
async fn a_row_that_another_session_holds_locked_is_not_waited_for_without_end() {
    let (db, session, ledger) = with_ledger("jobs").await;
    let client = db.connect().await;
    session.batch("set lock_timeout = '50ms'", DEADLINE).await.unwrap();
    for action in JobAction::ALL {
        let id = a_job_for(action, &session, &ledger, &client).await;
        let (seen, _) = shown(&session, &ledger, &id).await;
        run(&client, "begin; select from pgwake.jobs for update").await;
        let before = number(&client, AUDITED).await;
        let found = ledger.on_job(&session, action, &seen, &audit()).await.unwrap();
        assert_eq!(found, Some(Found::Locked));
        run(&client, "rollback").await;
        assert_eq!(number(&client, AUDITED).await, before);
        assert_eq!(ledger.on_job(&session, action, &seen, &audit()).await.unwrap(), None);
        empty(&client, &ledger).await;
    }
}

#[tokio::test]
async fn a_job_that_changes_while_the_action_waits_for_its_row_is_judged_anew() {
    let (db, session, ledger) = with_ledger("jobs").await;
    let (holder, watch) = (db.connect().await, db.connect().await);
    let id = failed(&session, &ledger, &watch).await;
    let (seen, _) = shown(&session, &ledger, &id).await;
    run(&holder, "begin; update pgwake.jobs set max_attempts = 7").await;
    let waiting = format!("select count(*) from pg_locks where not granted and pid = {}", session.pid());
    let acted =
        tokio::spawn(
            async move { ledger.on_job(&session, JobAction::Retry, &seen, &audit()).await.unwrap() },
        );
    support::wait_until("the action waits", DEADLINE, async || {
        (number(&watch, &waiting).await == 1).then_some(())
    })
    .await;
    run(&holder, "commit").await;
    assert!(matches!(acted.await.unwrap(), Some(Found::Job { state: Some(JobState::Failed), .. })));
    assert_eq!(ask(&watch, "select status from pgwake.jobs").await.unwrap(), "failed");
}

/// A table of the bare minimum: no attempts, no error, no end, no lease, no channel, no type.
#[tokio::test]
async fn a_table_without_most_columns_is_acted_on_as_far_as_it_has_them() {
    let db = migrated().await;
    let client = db.connect().await;
    run(
        &client,
        "create table public.bare (id uuid primary key default gen_random_uuid(), state varchar(8) not null, at timestamp)",
    )
    .await;
    let mut profile = builtin("jobs-plain").unwrap().unwrap();
    profile.name = "bare".into();
    profile.table = "bare".into();
    profile.channel = None;
    profile.fencing = pgwake::model::Fencing::None;
    let c = &mut profile.columns;
    (c.status, c.run_at) = ("state".into(), "at".into());
    for column in [
        &mut c.created_at,
        &mut c.job_type,
        &mut c.payload,
        &mut c.attempts,
        &mut c.max_attempts,
        &mut c.locked_by,
        &mut c.locked_until,
        &mut c.last_error,
        &mut c.finished_at,
    ] {
        *column = None;
    }
    let session = session(&db).await;
    let ledger = open_profile(&session, profile).await;
    for (action, state, at) in [
        (JobAction::Retry, "failed", "null"),
        (JobAction::GiveUp, "ready", "now() - interval '1 day'"),
        (JobAction::RunNow, "ready", "'infinity'"),
        (JobAction::RunNow, "ready", "now() + interval '1 day'"),
    ] {
        run(&client, &format!("insert into public.bare (state, at) values ('{state}', {at})")).await;
        let id = ask(&client, "select id from public.bare").await.unwrap();
        let (seen, _) = shown(&session, &ledger, &id).await;
        assert_eq!(ledger.on_job(&session, action, &seen, &audit()).await.unwrap(), None, "{action:?}");
        let now = "select concat_ws('|', state, at <= now()) from public.bare";
        let expected = if action == JobAction::GiveUp { "failed|t" } else { "ready|t" };
        assert_eq!(ask(&client, now).await.unwrap(), expected);
        empty(&client, &ledger).await;
    }
    assert_eq!(number(&client, AUDITED).await, 4);
    let effect = &ledger.offers()[1].effect;
    assert!(effect.contains("no column for an error"), "{effect}");
}

#[tokio::test]
async fn what_a_profile_or_a_role_cannot_do_safely_is_not_offered_and_says_why() {
    let db = migrated().await;
    let client = db.connect().await;
    run(&client, PLAIN).await;
    let session = session(&db).await;
    let mut profile = builtin("jobs-plain").unwrap().unwrap();
    profile.states.failed = "done".into();
    let ledger = open_profile(&session, profile).await;
    for offer in ledger.offers() {
        let why = offer.refusal.expect("not offered");
        assert!(why.contains("failed and done jobs the same state"), "{why}");
    }
    let ledger = open(&session, "jobs").await;
    assert!(ledger.offers().iter().all(|o| o.refusal.is_none()));
    let role = format!("reader_{}", db.name);
    run(
        &client,
        &format!("create role {role} login; grant usage on schema pgwake to {role}; grant select on pgwake.jobs to {role}"),
    )
    .await;
    let text = db.conninfo().replace("user=postgres", &format!("user={role}"));
    let reader =
        Session::connect(&support::ledger::conninfo(&text), pgwake::pg::Purpose::Operator).await.unwrap();
    let ledger = open(&reader, "jobs").await;
    for offer in ledger.offers() {
        assert!(offer.refusal.expect("not offered").contains("may not update"));
    }
}

#[tokio::test]
async fn without_the_audit_table_an_action_still_works() {
    let (db, session, ledger) = with_ledger("jobs").await;
    let client = db.connect().await;
    run(&client, "drop table pgwake.actions").await;
    drop(ledger);
    let ledger = open(&session, "jobs").await;
    let odd = Audit { operator: "o".into(), reason: "it's \"odd\"; $9".into() };
    for action in JobAction::ALL {
        let id = a_job_for(action, &session, &ledger, &client).await;
        let (seen, _) = shown(&session, &ledger, &id).await;
        assert_eq!(ledger.on_job(&session, action, &seen, &odd).await.unwrap(), None);
        empty(&client, &ledger).await;
    }
}

#[tokio::test]
async fn what_was_done_by_hand_is_append_only() {
    let db = migrated().await;
    let client = db.connect().await;
    run(
        &client,
        "insert into pgwake.actions (operator, action, how, reason, ledger, job_id, job_type, state_was)
         values ('o', 'retry', 'one', 'r', 'jobs', '1', 't', 'failed')",
    )
    .await;
    for change in
        ["update pgwake.actions set reason = 'x'", "delete from pgwake.actions", "truncate pgwake.actions"]
    {
        assert_eq!(support::ledger::refusal(&client, change).await, "42501", "{change}");
    }
    let at: DateTime<Utc> =
        client.query_one("select acted_at from pgwake.actions", &[]).await.unwrap().get(0);
    assert!(at <= Utc::now() + chrono::Duration::minutes(1));
}
