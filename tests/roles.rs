//! The two roles: each can do its part, all of it, and nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/program.rs"]
mod program;
mod support;

use pgwake::config::{Sampling, Thresholds};
use pgwake::ledger::ROLES;
use pgwake::monitor::{Sampler, Setup, Slow};
use pgwake::profile::builtin;
use program::run as pgwake;
use support::connect;
use support::ledger::{ask, conninfo, migrated, number, refusal, run};

const DENIED: &str = "42501";

/// What neither may do.
const NEVER: [&str; 8] = [
    "insert into pgwake.jobs (job_type) values ('t')",
    "update pgwake.jobs set payload = '{}'",
    "update pgwake.jobs set job_type = 'other'",
    "delete from pgwake.jobs",
    "truncate pgwake.jobs",
    "delete from pgwake.releases",
    "insert into pgwake.scratch (relation) values ('pgwake.jobs')",
    "create table pgwake.mine ()",
];

#[tokio::test]
async fn the_watcher_sees_everything_of_the_ledgers_and_the_operator_mends_them_and_no_more() {
    let db = migrated().await;
    let admin = db.connect().await;
    for _ in 0..2 {
        admin.batch_execute(ROLES).await.expect("it may be run again");
    }
    run(
        &admin,
        "create role alice login; grant pgwake_watcher to alice; create role bob login; grant pgwake_operator to bob;
         insert into pgwake.jobs (job_type, status, attempts, locked_by, locked_until, lease_token)
         values ('t', 'running', 1, 'gone', now() - interval '1 min', gen_random_uuid());
         insert into pgwake.jobs (job_type, status, attempts, finished_at, last_error) values ('t', 'failed', 5, now(), 'no');
         insert into pgwake.jobs (job_type, run_at) values ('t', now() + interval '1 h'), ('t', now() + interval '2 h');
         insert into pgwake.outbox (topic, status, locked_by, locked_until, lease_token)
         values ('t', 'PROCESSING', 'gone', now() - interval '1 min', gen_random_uuid())",
    )
    .await;
    let as_role = |role: &str| format!("{} user={role}", db.conninfo());

    // the watcher: every figure of the ledgers is read
    let setup = Setup {
        conninfo: conninfo(&as_role("alice")),
        profiles: ["jobs", "outbox"].map(|name| builtin(name).unwrap().unwrap()).to_vec(),
        sampling: Sampling::default(),
        thresholds: Thresholds::default(),
        read_only: None,
    };
    let mut sampler = Sampler::connect(setup.clone()).await.unwrap();
    for s in sampler.sample().await.unwrap() {
        let c = &s.counts;
        for figure in [&c.ready, &c.scheduled, &c.running, &c.expired, &c.failed] {
            assert!(figure.current().is_some(), "{}: {:?}", s.ledger, figure.trouble());
        }
        assert_eq!(s.leases.current().unwrap().len(), 1, "{}", s.ledger);
        for trouble in [s.workers.trouble(), s.vitals.oldest_ready.trouble(), s.next_scheduled.trouble()] {
            assert_eq!(trouble, None, "{}", s.ledger);
        }
    }
    for b in Slow::new(setup).pass().await.unwrap() {
        for trouble in [b.ready.trouble(), b.running.trouble(), b.failed.trouble(), b.table.trouble()] {
            assert_eq!(trouble, None, "{}", b.ledger);
        }
    }
    // and it changes nothing
    let alice = connect(&as_role("alice")).await;
    for statement in NEVER.into_iter().chain([
        "update pgwake.jobs set status = 'ready'",
        "insert into pgwake.releases (operator, how, reason, ledger, job_id, holder, lease_token, locked_until, was_expired)
         values ('a', 'one', '', 'jobs', '1', 'w', '', now(), true)",
    ]) {
        assert_eq!(refusal(&alice, statement).await, DENIED, "{statement}");
    }
    let expired = ["release", "--expired", "--yes", "--reason", "night", "--profile", "jobs"];
    let ran = pgwake(&[&expired[..], &["-d", &as_role("alice")]].concat(), &[], "");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("may not update"), "{ran:?}");

    // the operator mends, and what it did is written down
    for profile in ["jobs", "outbox"] {
        let ran = pgwake(
            &[
                "release",
                "--expired",
                "--yes",
                "--reason",
                "night",
                "--profile",
                profile,
                "-d",
                &as_role("bob"),
            ],
            &[],
            "",
        );
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let released =
        "select string_agg(ledger || ' ' || released_by, ', ' order by ledger) from pgwake.releases";
    assert_eq!(ask(&admin, released).await.unwrap(), "jobs bob, outbox bob");
    for (action, id) in [("retry", "2"), ("run-now", "3"), ("give-up", "4")] {
        let ran = pgwake(
            &[action, id, "--yes", "--reason", "night", "--profile", "jobs", "-d", &as_role("bob")],
            &[],
            "",
        );
        assert_eq!(ran.code, 0, "{action}: {ran:?}");
    }
    let acted = "select string_agg(action || ' ' || job_id || ' ' || acted_by, ', ' order by id) from pgwake.actions";
    assert_eq!(ask(&admin, acted).await.unwrap(), "retry 2 bob, run now 3 bob, give up 4 bob");
    let now = "select string_agg(status || case when run_at <= now() then ' due' else '' end, ', ' order by id) from pgwake.jobs";
    assert_eq!(ask(&admin, now).await.unwrap(), "ready due, ready due, ready due, failed");
    let bob = connect(&as_role("bob")).await;
    for statement in NEVER {
        assert_eq!(refusal(&bob, statement).await, DENIED, "{statement}");
    }
    assert_eq!(number(&admin, "select count(*) from pgwake.jobs").await, 4);
}

#[test]
fn the_roles_are_printed_without_a_server() {
    let ran = pgwake(&["migrate", "--print-roles"], &[], "");
    assert_eq!((ran.code, ran.out.as_str()), (0, ROLES));
}
