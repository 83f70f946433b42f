//! The schema: creating it, what it makes impossible, and the functions of the producers.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use pgwake::ledger::{migrate, migrations};
use pgwake::pg::Purpose;
use support::database;
use support::ears::Ears;
use support::ledger::{ask, migrated, number, refusal, run, session_for};

const CHECK: &str = "23514";

/// The version that the newest migration brings.
const NEWEST: i64 = 6;

const TABLES: &str = "select string_agg(c.relname, ' ' order by c.relname) from pg_class c
    where c.relnamespace = 'pgwake'::regnamespace and c.relkind = 'r' and c.relname <> 'schema_history'";

#[tokio::test]
async fn migrating_creates_everything_and_doing_it_again_changes_nothing() {
    let db = database().await;
    let mut session = session_for(&db, Purpose::Command).await;
    let first = migrate(&mut session).await.unwrap();
    assert_eq!(first.applied.len(), migrations().len());
    assert_eq!(first.version, NEWEST);
    let client = db.connect().await;
    assert_eq!(ask(&client, TABLES).await.unwrap(), "actions jobs outbox releases scratch workers");
    run(&client, "select pgwake.enqueue('mail')").await;

    let second = migrate(&mut session).await.unwrap();
    assert_eq!(second.applied, Vec::<String>::new());
    assert_eq!(second.version, NEWEST);
    assert_eq!(number(&client, "select count(*) from pgwake.jobs").await, 1, "rows are left alone");
}

#[tokio::test]
async fn two_migrations_at_the_same_moment_both_succeed() {
    let db = database().await;
    let mut one = session_for(&db, Purpose::Command).await;
    let mut other = session_for(&db, Purpose::Command).await;
    let (one, other) = tokio::join!(migrate(&mut one), migrate(&mut other));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(
        one.applied.len() + other.applied.len(),
        migrations().len(),
        "each is applied once: {one:?} {other:?}"
    );
    assert_eq!((one.version, other.version), (NEWEST, NEWEST));
}

#[tokio::test]
async fn a_migration_that_fails_leaves_nothing_half_done() {
    let db = database().await;
    let client = db.connect().await;
    // the third migration stumbles over this
    run(&client, "create schema pgwake; create table pgwake.scratch ()").await;
    let mut session = session_for(&db, Purpose::Command).await;
    let refused = migrate(&mut session).await.unwrap_err();
    assert_eq!(refused.sqlstate(), Some("42P07"), "{refused}");
    assert!(!refused.to_string().contains('\n'));
    assert_eq!(ask(&client, TABLES).await.unwrap(), "scratch");
    run(&client, "drop table pgwake.scratch").await;
    assert_eq!(
        migrate(&mut session).await.unwrap().applied.len(),
        migrations().len(),
        "the lock was let go"
    );
}

#[tokio::test]
async fn the_migrations_can_be_run_by_hand_in_the_simple_protocol() {
    let db = database().await;
    let client = db.connect().await;
    for (name, sql) in migrations() {
        client.batch_execute(&sql).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
    }
    assert_eq!(ask(&client, TABLES).await.unwrap(), "actions jobs outbox releases scratch workers");
    run(&client, "select pgwake.enqueue('mail'); select pgwake.publish('orders', 'k')").await;
}

#[tokio::test]
async fn a_job_has_a_whole_lease_if_and_only_if_it_is_running() {
    let db = migrated().await;
    let client = db.connect().await;
    let tables = [
        (
            "jobs",
            "job_type",
            "finished_at",
            [("ready", false), ("running", false), ("done", true), ("failed", true)],
        ),
        (
            "outbox",
            "topic",
            "sent_at",
            [("PENDING", false), ("PROCESSING", false), ("SENT", true), ("FAILED", false)],
        ),
    ];
    for (table, kind, date, states) in tables {
        for (place, (state, dated)) in states.into_iter().enumerate() {
            for set in 0..8 {
                let part = |bit: i32, value: &'static str| if set & bit == 0 { "null" } else { value };
                let insert = format!(
                    "insert into pgwake.{table} ({kind}, status, locked_by, locked_until, lease_token, {date})
                     values ('x', '{state}', {}, {}, {}, {})",
                    part(1, "'w'"),
                    part(2, "now()"),
                    part(4, "gen_random_uuid()"),
                    if dated { "now()" } else { "null" },
                );
                let whole = if place == 1 { 7 } else { 0 };
                if set == whole {
                    run(&client, &insert).await;
                } else {
                    assert_eq!(refusal(&client, &insert).await, CHECK, "{insert}");
                }
            }
            // the date belongs to the state
            let lease = if place == 1 { "'w', now(), gen_random_uuid()" } else { "null, null, null" };
            let wrong = format!(
                "insert into pgwake.{table} ({kind}, status, locked_by, locked_until, lease_token, {date})
                 values ('x', '{state}', {lease}, {})",
                if dated { "null" } else { "now()" },
            );
            assert_eq!(refusal(&client, &wrong).await, CHECK, "{wrong}");
        }
        let unknown = format!("insert into pgwake.{table} ({kind}, status) values ('x', 'other')");
        assert_eq!(refusal(&client, &unknown).await, CHECK);
    }
    // half-clearing a lease by hand is refused as well
    for half in ["locked_by = null", "locked_until = null", "lease_token = null", "status = 'ready'"] {
        let update = format!("update pgwake.jobs set {half} where status = 'running'");
        assert_eq!(refusal(&client, &update).await, CHECK, "{half}");
    }
}

#[tokio::test]
async fn releases_are_append_only() {
    let db = migrated().await;
    let client = db.connect().await;
    run(
        &client,
        "insert into pgwake.releases (operator, how, reason, ledger, job_id, holder, lease_token, locked_until, was_expired)
         values ('o', 'one', 'r', 'jobs', '1', 'h', 't', now(), true)",
    )
    .await;
    for change in [
        "update pgwake.releases set reason = 'other'",
        "delete from pgwake.releases",
        "truncate pgwake.releases",
    ] {
        assert_eq!(refusal(&client, change).await, "42501", "{change}");
    }
    assert_eq!(ask(&client, "select reason from pgwake.releases").await.unwrap(), "r");
}

#[tokio::test]
async fn enqueue_takes_plain_literals_names_and_typed_values() {
    let db = migrated().await;
    let client = db.connect().await;
    for call in [
        "pgwake.enqueue('mail')",
        r#"pgwake.enqueue('mail', '{"a":1}')"#,
        r#"pgwake.enqueue('mail', '{"a":1}', '2030-01-01')"#,
        r#"pgwake.enqueue(job_type => 'mail', payload => '{"a":1}')"#,
        "pgwake.enqueue(job_type => 'mail', run_at => now() + interval '1 hour')",
        "pgwake.enqueue('mail'::text, jsonb_build_object('a', 1), now())",
        "pgwake.enqueue('mail', null, null)",
    ] {
        let id = ask(&client, &format!("select {call}")).await.unwrap_or_else(|| panic!("{call}"));
        let row =
            format!("select job_type || ' ' || status || ' ' || attempts from pgwake.jobs where id = {id}");
        assert_eq!(ask(&client, &row).await.unwrap(), "mail ready 0", "{call}");
    }
    assert_eq!(number(&client, r#"select count(*) from pgwake.jobs where payload = '{"a":1}'"#).await, 4);
    assert_eq!(number(&client, "select count(*) from pgwake.jobs where run_at > now()").await, 2);
    assert_eq!(
        number(&client, r#"select count(*) from pgwake.jobs where run_at is null or payload is null"#)
            .await,
        0
    );
}

#[tokio::test]
async fn publish_takes_plain_literals_names_and_typed_values() {
    let db = migrated().await;
    let client = db.connect().await;
    for call in [
        "pgwake.publish('orders', 'k')",
        "pgwake.publish('orders', null)",
        r#"pgwake.publish('orders', 'k', '{"a":1}')"#,
        r#"pgwake.publish(topic => 'orders', key => 'k', payload => '{"a":1}')"#,
        "pgwake.publish('orders'::text, 'k'::text, jsonb_build_object('a', 1))",
    ] {
        let id = ask(&client, &format!("select {call}")).await.unwrap_or_else(|| panic!("{call}"));
        let row =
            format!("select topic || ' ' || status || ' ' || attempts from pgwake.outbox where id = {id}");
        assert_eq!(ask(&client, &row).await.unwrap(), "orders PENDING 0", "{call}");
    }
    assert_eq!(number(&client, r#"select count(*) from pgwake.outbox where payload = '{"a":1}'"#).await, 3);
    assert_eq!(number(&client, "select count(*) from pgwake.outbox where key = 'k'").await, 4);
}

#[tokio::test]
async fn many_jobs_in_one_commit_are_one_notification_of_at_most_128_bytes() {
    let db = migrated().await;
    let client = db.connect().await;
    let ears = Ears::on(db.conninfo(), &["pgwake_work", "pgwake_outbox"]).await;
    run(&client, "begin; select pgwake.enqueue('mail') from generate_series(1, 1000); commit").await;
    let heard = ears.take().await;
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0].0, "pgwake_work");
    assert!(heard[0].1.len() <= 128, "{heard:?}");
    assert_eq!(number(&client, "select count(*) from pgwake.jobs").await, 1000);

    run(&client, "select pgwake.publish('orders', 'k', jsonb_build_object('secret', repeat('x', 9000)))")
        .await;
    let heard = ears.take().await;
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0].0, "pgwake_outbox");
    assert!(heard[0].1.len() <= 128 && !heard[0].1.contains('x'), "{heard:?}");
}

#[tokio::test]
async fn business_row_job_and_wake_up_commit_together_or_not_at_all() {
    let db = migrated().await;
    let client = db.connect().await;
    run(&client, "create table orders (id int primary key)").await;
    let ears = Ears::on(db.conninfo(), &["pgwake_work", "pgwake_outbox"]).await;
    let both = "insert into orders values (1); select pgwake.enqueue('mail'); select pgwake.publish('orders', '1')";
    let counts = "select concat_ws(' ', (select count(*) from orders), (select count(*) from pgwake.jobs),
                                   (select count(*) from pgwake.outbox))";

    run(&client, &format!("begin; {both}")).await;
    let outside = db.connect().await;
    assert_eq!(ask(&outside, counts).await.unwrap(), "0 0 0");
    assert_eq!(ears.take().await, [], "nothing is heard before the commit");
    run(&client, "rollback").await;
    assert_eq!(ask(&outside, counts).await.unwrap(), "0 0 0");
    assert_eq!(ears.take().await, [], "a rolled-back change wakes nobody");

    // an error later in the transaction takes it all back, too
    assert_eq!(refusal(&client, &format!("begin; {both}; insert into orders values (1)")).await, "23505");
    run(&client, "rollback").await;
    assert_eq!(ask(&outside, counts).await.unwrap(), "0 0 0");
    assert_eq!(ears.take().await, []);

    run(&client, &format!("begin; {both}; commit")).await;
    assert_eq!(ask(&outside, counts).await.unwrap(), "1 1 1");
    let mut heard: Vec<String> = ears.take().await.into_iter().map(|(channel, _)| channel).collect();
    heard.sort();
    assert_eq!(heard, ["pgwake_outbox", "pgwake_work"]);
}

#[tokio::test]
async fn the_array_forms_add_many_in_order_with_one_wake_up() {
    let db = migrated().await;
    let client = db.connect().await;
    let ears = Ears::on(db.conninfo(), &["pgwake_work", "pgwake_outbox"]).await;
    let ids = "select array_agg(id) = array_agg(id order by id) from";
    for call in [
        r#"pgwake.enqueue_many('{mail,fax}', array['{"n":1}', '{"n":2}']::jsonb[])"#,
        r#"pgwake.enqueue_many(array['mail','fax'], array['{"n":1}','{"n":2}']::jsonb[], array[now(), null])"#,
        r#"pgwake.enqueue_many(job_types => '{mail,fax}', payloads => '{"{\"n\":1}","{\"n\":2}"}')"#,
    ] {
        assert_eq!(ask(&client, &format!("{ids} {call} as id")).await.unwrap(), "true", "{call}");
        assert_eq!(ears.take().await.len(), 1, "{call}");
    }
    let rows = "select string_agg(job_type || (payload ->> 'n'), ' ' order by id) from pgwake.jobs";
    assert_eq!(ask(&client, rows).await.unwrap(), "mail1 fax2 mail1 fax2 mail1 fax2");

    let call = r#"pgwake.publish_many('{a,b}', array['k', null], array['{"n":1}', '{"n":2}']::jsonb[])"#;
    assert_eq!(ask(&client, &format!("{ids} {call} as id")).await.unwrap(), "true");
    assert_eq!(ears.take().await.len(), 1);
    let rows = "select string_agg(concat(topic, key, payload ->> 'n'), ' ' order by id) from pgwake.outbox";
    assert_eq!(ask(&client, rows).await.unwrap(), "ak1 b2");

    run(&client, "select pgwake.enqueue_many('{}', '{}'); select pgwake.publish_many('{}', '{}', '{}')")
        .await;
    assert_eq!(ears.take().await, [], "nothing came in, nobody is woken");
}

#[tokio::test]
async fn arrays_that_differ_in_length_are_refused_and_nothing_is_added() {
    let db = migrated().await;
    let client = db.connect().await;
    for call in [
        "pgwake.enqueue_many('{a,b}', '{null}')",
        "pgwake.enqueue_many('{a}', '{null,null}')",
        "pgwake.enqueue_many('{a}', '{null}', '{now,now}')",
        "pgwake.enqueue_many('{a}', null)",
        "pgwake.enqueue_many(null, '{null}')",
        "pgwake.publish_many('{a,b}', '{k}', '{null,null}')",
        "pgwake.publish_many('{a}', '{k,k}', '{null}')",
        "pgwake.publish_many('{a}', '{k}', '{null,null}')",
        "pgwake.publish_many('{a}', null, '{null}')",
    ] {
        assert_eq!(refusal(&client, &format!("select {call}")).await, "2202E", "{call}");
    }
    let rows = "select (select count(*) from pgwake.jobs) + (select count(*) from pgwake.outbox)";
    assert_eq!(number(&client, rows).await, 0);
}
