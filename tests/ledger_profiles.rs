//! Profiles: another table, other names, other types, and one line for each thing that can be missing.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use pgwake::ledger::{Earliest, Failure, Giveback, Ledger, LedgerError, NewJob, Release};
use pgwake::model::Found;
use pgwake::pg::Session;
use pgwake::profile::{Profile, builtin};
use support::ears::Ears;
use support::ledger::{
    LONG, OVER, PLAIN, ask, audit, claim, claim_one, conninfo, fill, ids, key, lease_of, open_profile, run,
    seen,
};
use support::{Db, database};

/// A table of somebody who likes names with a dot, a space and double quotes in them, with an enum for
/// the states.
const ODD_TABLE: &str = r#"
create schema "Ma.in ""S""";
create type "Ma.in ""S"""."St ate" as enum ('To Do', 'It''s "on"', 'Done\ok', 'GivenUp');
create table "Ma.in ""S"""."Job ""Q"".list" (
  "The.Id" {id},
  "St ""a"" te" "Ma.in ""S"""."St ate" not null default 'To Do',
  "run At" timestamptz not null default now(),
  "Created" timestamptz not null default now(),
  "type" varchar(30),
  "select" json,
  "At.tempts" smallint not null default 0,
  "max" smallint not null default 3,
  "Locked ""By""" varchar(100), "Locked.Until" timestamptz, "to ken" {token}, "Error" varchar(2000), "End" timestamptz)
"#;

const ODD_PROFILE: &str = r#"
name = "odd"
schema = 'Ma.in "S"'
table = 'Job "Q".list'
channel = 'Wake "Q".it''s'
fencing = "token"
attempts_count = "claims"
[columns]
id = "The.Id"
status = 'St "a" te'
run_at = "run At"
created_at = "Created"
job_type = "type"
payload = "select"
attempts = "At.tempts"
max_attempts = "max"
locked_by = 'Locked "By"'
locked_until = "Locked.Until"
lease_token = "to ken"
last_error = "Error"
finished_at = "End"
[states]
ready = "To Do"
running = 'It''s "on"'
done = 'Done\ok'
failed = "GivenUp"
"#;

fn odd_profile() -> Profile {
    let file = tempfile::NamedTempFile::new().unwrap();
    // TOML has no escape in single quotes: those values stand in triple ones
    let text = ODD_PROFILE
        .replace("'Wake \"Q\".it''s'", "'''Wake \"Q\".it's'''")
        .replace("'It''s \"on\"'", "'''It's \"on\"'''");
    std::fs::write(file.path(), text).unwrap();
    Profile::find(file.path().to_str().unwrap()).unwrap_or_else(|e| panic!("{e}"))
}

/// The whole life of jobs on one ledger.
async fn live(db: &Db, session: &Session, ledger: &Ledger) {
    let p = ledger.profile();
    let state = format!("select {} from {} t where {}::text = ", p.status(), p.relation(), p.id());
    let client = db.connect().await;
    let state_of = async |id: &str| ask(&client, &format!("{state} '{id}'")).await.unwrap();
    let channel = ledger.channel().unwrap().to_owned();
    let ears = Ears::on(db.conninfo(), &[&channel]).await;

    // enqueue
    let new = NewJob { job_type: "it's".into(), payload: r#"{"a": "b'\"\\"}"#.into(), ..NewJob::default() };
    let first = ledger.enqueue(session, &[new]).await.unwrap().remove(0);
    assert_eq!(ears.take().await, [(channel.clone(), "ready".to_owned())]);
    let rest = fill(session, ledger, 5).await;
    assert_eq!(ears.take().await.len(), 1);
    assert!(ledger.wake(session).await.unwrap());
    assert_eq!(ears.take().await.len(), 1);
    assert_eq!(state_of(&first).await, p.states.ready);
    assert_eq!(ledger.counts(session, 5).await.unwrap().ready, (5, true));
    assert_eq!(ledger.earliest(session).await.unwrap(), Earliest::DueNow);
    assert!(ledger.oldest_ready(session).await.unwrap().unwrap() >= 0.0);

    // claim and done, fenced
    let late = claim_one(session, ledger, "w", OVER).await;
    assert_eq!((late.id.as_str(), late.job_type.as_str(), late.attempt), (first.as_str(), "it's", Some(1)));
    assert_eq!(late.payload, r#"{"a": "b'\"\\"}"#);
    assert_eq!(claim(session, ledger, "w", 5, LONG).await.len(), 5);
    assert_eq!(ledger.counts(session, 9).await.unwrap().expired, (1, false));
    let again = claim_one(session, ledger, "w", LONG).await;
    assert_eq!((again.id.as_str(), again.attempt, again.was_expired), (first.as_str(), Some(2), true));
    assert_eq!(state_of(&first).await, p.states.running);
    assert_eq!(ledger.done(session, &[key(&late)]).await.unwrap().lost, std::slice::from_ref(&first));
    assert_eq!(
        ledger.renew(session, &[key(&late)], LONG).await.unwrap().lost,
        std::slice::from_ref(&first)
    );
    assert_eq!(ledger.renew(session, &[key(&again)], LONG).await.unwrap().renewed[0].0, first);
    assert_eq!(ledger.done(session, &[key(&again)]).await.unwrap().recorded, std::slice::from_ref(&first));
    assert_eq!(state_of(&first).await, p.states.done);

    // leases and release
    let leases = ledger.leases(session, 9).await.unwrap();
    assert_eq!(leases.len(), 5);
    assert_eq!(ledger.counts(session, 9).await.unwrap().running, (5, false));
    let moved = seen(leases[0].clone());
    assert_eq!(ledger.release(session, &moved, &audit()).await.unwrap(), Release::Freed);
    let found = Release::MovedOn(Found::State { state: p.states.ready.clone() });
    assert_eq!(ledger.release(session, &moved, &audit()).await.unwrap(), found);
    assert_eq!(ears.take().await.len(), 1);

    // fail until given up
    for attempt in 2.. {
        let job = claim_one(session, ledger, "w", LONG).await;
        assert_eq!((job.id.as_str(), job.attempt), (moved.id.as_str(), Some(attempt)));
        let (id, token) = key(&job);
        let failure = Failure { id, token, error: "bad".into(), delay: std::time::Duration::ZERO };
        let failed = ledger.failed(session, &[failure]).await.unwrap();
        assert_eq!(failed.recorded, std::slice::from_ref(&moved.id));
        if job.attempt == job.max_attempts {
            assert_eq!(failed.gave_up, std::slice::from_ref(&moved.id));
            break;
        }
        assert_eq!(failed.gave_up, Vec::<String>::new());
    }
    assert_eq!(state_of(&moved.id).await, p.states.failed);
    assert_eq!(ledger.counts(session, 9).await.unwrap().failed, (1, false));

    // give back, die on the last attempt, release in bulk
    let next = lease_of(session, ledger, rest.iter().find(|id| **id != moved.id).unwrap()).await;
    let back = Giveback { id: next.id.clone(), token: next.token.clone(), started: true };
    assert_eq!(ledger.give_back(session, &[back]).await.unwrap().recorded, std::slice::from_ref(&next.id));
    let job = claim_one(session, ledger, "dead", OVER).await;
    assert_eq!(ids(std::slice::from_ref(&job)), [&next.id]);
    assert_eq!(
        ledger.release_expired_batch(session, Some(&["dead".to_owned()]), &audit()).await.unwrap(),
        1
    );
    assert_eq!(ears.take().await.len(), 1);
    for _ in 3..job.max_attempts.unwrap() {
        assert_eq!(claim_one(session, ledger, "dead", OVER).await.id, next.id);
    }
    assert_eq!(ledger.claim(session, "w", 9, LONG).await.unwrap().jobs.len(), 1, "its last attempt");
    let over = format!("update {} t set {} = now() where {}", p.relation(), until(p), p.is_running());
    run(&client, &over).await;
    let claim = ledger.claim(session, "w", 9, LONG).await.unwrap();
    assert_eq!((claim.gave_up, claim.jobs.len()), (1, 3), "the dead one is not run again");
    assert_eq!(state_of(&next.id).await, p.states.failed);

    // later
    let at = Some(chrono::Utc::now() + chrono::Duration::hours(1));
    let later = NewJob { job_type: "x".into(), payload: "{}".into(), run_at: at, ..NewJob::default() };
    ledger.enqueue(session, &[later]).await.unwrap();
    assert_eq!(ledger.counts(session, 9).await.unwrap().scheduled, (1, false));
    assert!(ledger.next_scheduled(session).await.unwrap().unwrap() > 3000.0);
}

fn until(p: &Profile) -> String {
    pgwake::text::quote_ident(p.columns.locked_until.as_ref().unwrap())
}

/// The same states, held in another type of column.
async fn odd(id: &str, token: &str, change: &str) {
    let db = database().await;
    let client = db.connect().await;
    run(&client, &ODD_TABLE.replace("{id}", id).replace("{token}", token)).await;
    run(&client, change).await;
    let session = support::ledger::session(&db).await;
    let ledger = open_profile(&session, odd_profile()).await;
    live(&db, &session, &ledger).await;
}

#[tokio::test]
async fn names_with_dots_spaces_and_quotes_an_enum_and_uuid_ids_work() {
    odd("uuid primary key default gen_random_uuid()", "uuid", "").await;
}

#[tokio::test]
async fn text_ids_text_tokens_and_a_text_status_work() {
    let id = "text primary key default 'job ' || gen_random_uuid()";
    let change = r#"alter table "Ma.in ""S"""."Job ""Q"".list" alter "St ""a"" te" drop default,
                    alter "St ""a"" te" type text, alter "St ""a"" te" set default 'To Do'"#;
    odd(id, "text", change).await;
}

#[tokio::test]
async fn fixed_width_ids_and_states_work() {
    let id = "char(40) primary key default gen_random_uuid()::text";
    let change = r#"alter table "Ma.in ""S"""."Job ""Q"".list" alter "St ""a"" te" drop default,
                    alter "St ""a"" te" type char(12)"#;
    odd(id, "uuid", change).await;
}

#[tokio::test]
async fn a_domain_and_a_varchar_status_work() {
    let change = r#"create domain "Ma.in ""S"""."D om" as varchar(20);
                    alter table "Ma.in ""S"""."Job ""Q"".list" alter "St ""a"" te" drop default,
                    alter "St ""a"" te" type "Ma.in ""S"""."D om""#;
    odd("serial primary key", "uuid", change).await;
}

#[tokio::test]
async fn a_jobs_table_without_a_token_column_lives_the_same_life() {
    let db = support::ledger::migrated().await;
    run(&db.connect().await, PLAIN).await;
    let session = support::ledger::session(&db).await;
    let ledger = support::ledger::open(&session, "jobs-plain").await;
    live(&db, &session, &ledger).await;
}

#[tokio::test]
async fn the_built_in_jobs_live_the_same_life() {
    let (db, session, ledger) = support::ledger::with_ledger("jobs").await;
    live(&db, &session, &ledger).await;
}

/// The one line of a ledger that cannot be opened.
async fn refused(session: &Session, profile: Profile) -> String {
    let refused = Ledger::open(session, profile).await.unwrap_err();
    assert!(matches!(refused, LedgerError::Problem { .. }), "{refused}");
    let line = refused.to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

#[tokio::test]
async fn what_is_missing_is_named_in_one_line_that_says_what_to_do() {
    let db = database().await;
    let session = support::ledger::session(&db).await;
    let line = refused(&session, builtin("jobs").unwrap().unwrap()).await;
    assert!(line.contains("schema \"pgwake\"") && line.contains(&db.name), "{line}");
    assert!(line.contains("pgwake migrate"), "{line}");
    run(&db.connect().await, "create schema pgwake").await;
    let line = refused(&session, builtin("jobs").unwrap().unwrap()).await;
    assert!(line.contains("table \"pgwake\".\"jobs\"") && line.contains("pgwake migrate"), "{line}");
    let line = refused(&session, odd_profile()).await;
    assert!(line.contains(r#""Ma.in ""S""""#) && line.contains("profile"), "{line}");

    run(&db.connect().await, PLAIN).await;
    let mut profile = builtin("jobs-plain").unwrap().unwrap();
    profile.columns.last_error = Some("Last Error".into());
    profile.columns.key = Some("ke\"y".into());
    let line = refused(&session, profile).await;
    assert!(line.contains(r#""Last Error""#) && line.contains(r#""ke""y""#), "{line}");
    assert!(
        line.contains("last_error") && line.contains("\"public\".\"jobs\""),
        "it says what there is: {line}"
    );
}

#[tokio::test]
async fn a_role_without_grants_is_told_which_to_ask_for_and_they_suffice() {
    let db = support::ledger::migrated().await;
    let admin = db.connect().await;
    let role = format!("Odd Role {}", db.name);
    run(&admin, &format!("create role \"{role}\" login")).await;
    let text = db.conninfo().replace("user=postgres", &format!("user='{role}'"));
    let session = Session::connect(&conninfo(&text), pgwake::pg::Purpose::Stats).await.unwrap();
    let profile = || builtin("jobs").unwrap().unwrap();
    let line = refused(&session, profile()).await;
    assert!(line.contains(&format!("\"{role}\" may not read \"pgwake\".\"jobs\"")), "{line}");

    // exactly what it says
    let grants = line.split("ask for: ").nth(1).unwrap();
    run(&admin, grants).await;
    let ledger = Ledger::open(&session, profile()).await.unwrap();
    assert!(!ledger.may_write());
    assert_eq!(ledger.counts(&session, 9).await.unwrap().ready, (0, false));
    assert_eq!(ledger.leases(&session, 9).await.unwrap(), []);
    run(&admin, &format!("grant update on pgwake.jobs to \"{role}\"")).await;
    assert!(Ledger::open(&session, profile()).await.unwrap().may_write());
}
