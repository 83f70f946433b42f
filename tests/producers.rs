//! The cheap producer: when it sends a wake-up, when it does not, and that nothing is lost either way.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;
#[path = "support/work.rs"]
mod work;

use std::time::Duration;

use pgwake::config;
use support::ears::Ears;
use support::ledger::{migrated, number, run};
use support::{DEADLINE, Db, wait_until};
use tokio_postgres::Client;
use work::{Bench, Effects, settings};

/// The two ledgers: sequence, table, channel, call.
const LEDGERS: [[&str; 4]; 2] = [
    ["pgwake.jobs_woken", "pgwake.jobs", "pgwake_work", "select pgwake.enqueue_debounced('t')"],
    ["pgwake.outbox_woken", "pgwake.outbox", "pgwake_outbox", "select pgwake.publish_debounced('t', 'k')"],
];

const NOW_MS: &str = "floor(extract(epoch from clock_timestamp()) * 1000)::bigint";

async fn heard(ears: &Ears) -> usize {
    let heard = ears.take().await;
    assert!(heard.iter().all(|(_, payload)| payload == "ready"), "{heard:?}");
    heard.len()
}

/// Runs `sql` right after a wake-up was sent, and again if that took so long that it is an old one by then.
async fn within_the_debounce(client: &Client, ears: &Ears, sequence: &str, sql: &str) -> usize {
    wait_until("within the debounce", DEADLINE, async || {
        run(client, &format!("select setval('{sequence}', {NOW_MS})")).await;
        let set = number(client, &format!("select last_value from {sequence}")).await;
        run(client, sql).await;
        let took = number(client, &format!("select {NOW_MS}")).await - set;
        let heard = heard(ears).await;
        (took < 100).then_some(heard)
    })
    .await
}

async fn long_ago(client: &Client, sequence: &str) {
    run(client, &format!("select setval('{sequence}', {NOW_MS} - 100)")).await;
}

async fn ears(db: &Db) -> Ears {
    Ears::on(db.conninfo(), &["pgwake_work", "pgwake_outbox"]).await
}

#[tokio::test]
async fn an_empty_queue_is_woken_however_young_the_last_wake_up_is() {
    let db = migrated().await;
    let (client, ears) = (db.connect().await, ears(&db).await);
    for [sequence, table, _, call] in LEDGERS {
        for _ in 0..3 {
            run(&client, &format!("truncate {table}")).await;
            assert_eq!(within_the_debounce(&client, &ears, sequence, call).await, 1, "{call}");
            let woken = number(&client, &format!("select {NOW_MS} - last_value from {sequence}")).await;
            assert!((0..30_000).contains(&woken), "the time of the wake-up is kept: {woken} ms ago");
            // what is being worked on is nobody's reason to look again
            let held = "locked_by = 'w', locked_until = now() + '1 h', lease_token = gen_random_uuid()";
            let running = if table == "pgwake.jobs" { "running" } else { "PROCESSING" };
            run(&client, &format!("update {table} set status = '{running}', {held}")).await;
            assert_eq!(within_the_debounce(&client, &ears, sequence, call).await, 1, "{call}");
        }
    }
}

#[tokio::test]
async fn while_work_is_waiting_one_wake_up_within_the_debounce_is_enough() {
    let db = migrated().await;
    let (client, ears) = (db.connect().await, ears(&db).await);
    for [sequence, table, channel, call] in LEDGERS {
        run(&client, call).await;
        assert_eq!(ears.take().await, [(channel.to_owned(), "ready".to_owned())]);
        assert_eq!(within_the_debounce(&client, &ears, sequence, call).await, 0, "{call}");
        long_ago(&client, sequence).await;
        run(&client, call).await;
        assert_eq!(heard(&ears).await, 1, "after the debounce: {call}");
        // a clock that was set back
        run(&client, &format!("select setval('{sequence}', {NOW_MS} + 3600000)")).await;
        run(&client, call).await;
        assert_eq!(heard(&ears).await, 1, "the last one lies in the future: {call}");
        assert!(number(&client, &format!("select count(*) from {table}")).await >= 4);
    }
}

#[tokio::test]
async fn only_work_that_is_due_and_fresh_counts_as_waiting() {
    let db = migrated().await;
    let (client, ears) = (db.connect().await, ears(&db).await);
    let [sequence, _, _, call] = LEDGERS[0];
    for due in ["now() + interval '1 h'", "now() - interval '1 min'", "'infinity'", "'-infinity'"] {
        run(
            &client,
            &format!(
                "truncate pgwake.jobs; insert into pgwake.jobs (job_type, run_at) values ('t', {due})"
            ),
        )
        .await;
        assert_eq!(within_the_debounce(&client, &ears, sequence, call).await, 1, "{due}");
    }
}

#[tokio::test]
async fn a_transaction_sends_at_most_one_and_decides_at_its_end() {
    let db = migrated().await;
    let (client, other, ears) = (db.connect().await, db.connect().await, ears(&db).await);
    for [sequence, table, _, call] in LEDGERS {
        run(&client, &format!("truncate {table}")).await;
        long_ago(&client, sequence).await;
        run(&client, &format!("begin; {call}; {call}; savepoint s; {call}; rollback to s; {call}")).await;
        assert_eq!(heard(&ears).await, 0, "nothing before the commit");
        run(&client, "commit").await;
        assert_eq!(heard(&ears).await, 1, "{call}");
        assert_eq!(number(&client, &format!("select count(*) from {table}")).await, 3);

        // When its job was added others had just been announced; at its end that is long ago.
        run(&client, &format!("begin; select setval('{sequence}', {NOW_MS}); {call}")).await;
        long_ago(&other, sequence).await;
        run(&client, "commit").await;
        assert_eq!(heard(&ears).await, 1, "{call}");
        // Then others were waiting; at its end they are done, and the queue is empty but for its own.
        run(&client, &format!("begin; {call}; {call}")).await;
        run(&other, &format!("delete from {table}")).await;
        let woken = within_the_debounce(&client, &ears, sequence, "commit").await;
        assert_eq!(woken, 1, "its own jobs are no work that waits: {call}");
    }
}

#[tokio::test]
async fn what_is_rolled_back_asks_for_nothing_and_spoils_nothing() {
    let db = migrated().await;
    let (client, ears) = (db.connect().await, ears(&db).await);
    for [sequence, _, _, call] in LEDGERS {
        long_ago(&client, sequence).await;
        run(
            &client,
            &format!("begin; {call}; rollback; begin; savepoint s; {call}; rollback to s; commit"),
        )
        .await;
        assert_eq!(heard(&ears).await, 0);
        // the event and the mark that one was queued went together
        long_ago(&client, sequence).await;
        run(&client, &format!("begin; savepoint s; {call}; rollback to s; {call}; commit")).await;
        assert_eq!(heard(&ears).await, 1, "{call}");
        // decided early, by request, and rolled back: the time stands, and the next one decides by the work
        long_ago(&client, sequence).await;
        run(&client, &format!("begin; {call}; set constraints all immediate; rollback")).await;
        assert_eq!(heard(&ears).await, 0);
        long_ago(&client, sequence).await;
        run(
            &client,
            &format!(
                "begin; {call}; set constraints all immediate; set constraints all deferred; {call}; commit"
            ),
        )
        .await;
        assert_eq!(heard(&ears).await, 1, "one for the transaction, whenever it was decided");
    }
}

#[tokio::test]
async fn under_an_older_snapshot_it_never_relies_on_what_it_sees() {
    let db = migrated().await;
    let (client, other, ears) = (db.connect().await, db.connect().await, ears(&db).await);
    let [sequence, _, _, call] = LEDGERS[0];
    run(&client, call).await;
    run(&client, &format!("begin isolation level repeatable read; {call}")).await;
    run(&other, "delete from pgwake.jobs").await;
    heard(&ears).await;
    assert_eq!(within_the_debounce(&client, &ears, sequence, "commit").await, 1);
}

#[tokio::test]
async fn arrays_come_in_order_with_one_wake_up_and_refuse_what_does_not_fit() {
    let db = migrated().await;
    let (client, ears) = (db.connect().await, ears(&db).await);
    let ids = "select pgwake.enqueue_many_debounced(array['a', 'b', 'c'], array['{}', null, '{\"n\": 3}']::jsonb[],
                                                    array[null, null, 'infinity']::timestamptz[])";
    let rows = client.query(ids, &[]).await.unwrap();
    let ids: Vec<i64> = rows.iter().map(|r| r.get(0)).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(heard(&ears).await, 1);
    let now = "select string_agg(concat_ws(' ', job_type, payload, isfinite(run_at)), ', ' order by id) from pgwake.jobs";
    assert_eq!(support::ledger::ask(&client, now).await.unwrap(), "a {} t, b {} t, c {\"n\": 3} f");

    let rows = client
        .query("select pgwake.publish_many_debounced(array['a', 'b'], array['k', null], array['1', null]::jsonb[])", &[])
        .await
        .unwrap();
    assert_eq!(rows.iter().map(|r| r.get::<_, i64>(0)).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(heard(&ears).await, 1);

    run(
        &client,
        "select pgwake.enqueue_many_debounced('{}', '{}'), pgwake.publish_many_debounced('{}', '{}', '{}')",
    )
    .await;
    assert_eq!(heard(&ears).await, 0, "nothing was added");
    for wrong in [
        "select pgwake.enqueue_many_debounced(array['a', 'b'], array['{}']::jsonb[])",
        "select pgwake.enqueue_many_debounced(array['a'], array['{}']::jsonb[], array[now(), now()])",
        "select pgwake.publish_many_debounced(array['a', 'b'], array['k'], array['{}', '{}']::jsonb[])",
    ] {
        assert_eq!(support::ledger::refusal(&client, wrong).await, "2202E", "{wrong}");
    }
    assert_eq!(number(&client, "select count(*) from pgwake.jobs").await, 3);
}

#[tokio::test]
async fn other_producers_are_not_touched_by_it() {
    let db = migrated().await;
    let (client, ears) = (db.connect().await, ears(&db).await);
    let [sequence, _, _, call] = LEDGERS[0];
    run(&client, call).await;
    heard(&ears).await;
    let woken = within_the_debounce(&client, &ears, sequence, "select pgwake.enqueue('t')").await;
    assert_eq!(woken, 1, "pgwake.enqueue always sends one");
    let woken =
        within_the_debounce(&client, &ears, sequence, "insert into pgwake.jobs (job_type) values ('t')")
            .await;
    assert_eq!(woken, 0, "a plain insert sends none");
    long_ago(&client, sequence).await;
    run(&client, "insert into pgwake.jobs (job_type) values ('t')").await;
    assert_eq!(heard(&ears).await, 0, "a plain insert sends none");
}

#[tokio::test]
async fn a_producer_needs_no_more_rights_than_to_add_a_job() {
    let db = migrated().await;
    let admin = db.connect().await;
    let role = format!("producer_{}", db.name);
    run(
        &admin,
        &format!(
            "create role {role}; grant usage on schema pgwake to {role};
             grant insert on pgwake.jobs, pgwake.outbox to {role};
             grant select (id) on pgwake.jobs, pgwake.outbox to {role}"
        ),
    )
    .await;
    let (client, ears) = (db.connect().await, ears(&db).await);
    run(&client, &format!("set role {role}")).await;
    for [_, _, _, call] in LEDGERS {
        run(&client, call).await;
        assert_eq!(heard(&ears).await, 1, "{call}");
    }
    for closed in ["select pgwake.wake_jobs_debounced()", "select setval('pgwake.jobs_woken', 0)"] {
        assert_eq!(support::ledger::refusal(&client, closed).await, "42501", "{closed}");
    }
    run(&client, "reset role").await;
    run(&admin, &format!("drop owned by {role}; drop role {role}")).await;
}

#[tokio::test]
async fn every_job_of_many_producers_at_once_is_drained_with_far_fewer_wake_ups() {
    const JOBS: usize = 400;
    let bench = Bench::new().await;
    let worker = config::Worker {
        debounce: Duration::from_millis(200),
        fallback: Duration::from_secs(2),
        ..settings()
    };
    let effects = Effects::default();
    let running = bench.start(worker, effects.handler()).await;
    let ears = ears(&bench.db).await;
    let mut producers = Vec::new();
    for _ in 0..8 {
        let client = bench.db.connect().await;
        producers.push(tokio::spawn(async move {
            for _ in 0..JOBS / 8 {
                run(&client, "select pgwake.enqueue_debounced('t')").await;
            }
        }));
    }
    for producer in producers {
        producer.await.unwrap();
    }
    bench.until_done(JOBS as i64).await;
    let wakeups = heard(&ears).await;
    assert!((1..JOBS).contains(&wakeups), "{wakeups} wake-ups for {JOBS} jobs");
    running.stop().await;
    effects.assert_each_once(JOBS);
}

#[tokio::test]
async fn a_job_whose_wake_up_was_skipped_is_found_by_the_fallback() {
    let bench = Bench::new().await;
    let worker = config::Worker { fallback: Duration::from_secs(2), ..settings() };
    let effects = Effects::default();
    let running = bench.start(worker, effects.handler()).await;
    let ears = ears(&bench.db).await;
    // what is waiting was never announced, and whoever relies on its wake-up waits with it
    let [sequence, _, _, call] = LEDGERS[0];
    let left = "select count(*) from pgwake.jobs where status <> 'done'";
    let found = "select coalesce(sum(found_fallback), 0) from pgwake.workers";
    let before = wait_until("a wake-up that is skipped", DEADLINE, async || {
        bench.until(0, "nothing is left", left).await;
        wait_until("all is reported", DEADLINE, async || {
            let jobs = bench.number("select count(*) from pgwake.jobs").await;
            let told = "select coalesce(sum(found_fallback + found_notify), 0) from pgwake.workers";
            (bench.number(told).await == jobs).then_some(())
        })
        .await;
        let before = bench.number(found).await;
        bench.insert(1).await;
        (within_the_debounce(&bench.sql, &ears, sequence, call).await == 0).then_some(before)
    })
    .await;
    let jobs = bench.number("select count(*) from pgwake.jobs").await;
    bench.until_done(jobs).await;
    bench.until(before + 2, "found by the fallback", found).await;
    running.stop().await;
    effects.assert_each_once(usize::try_from(jobs).unwrap());
}

#[tokio::test]
async fn the_look_for_other_work_reads_one_row_whatever_the_statistics_say() {
    let db = migrated().await;
    let client = db.connect().await;
    for [sequence, table, _, call] in LEDGERS {
        // the planner believes it empty
        run(&client, &format!("analyze {table}")).await;
        let column = if table == "pgwake.jobs" { "job_type" } else { "topic" };
        run(&client, &format!("insert into {table} ({column}) select 't' from generate_series(1, 3000)"))
            .await;
        let name = table.trim_start_matches("pgwake.");
        let read = format!(
            "select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables where relname = '{name}'"
        );
        run(&client, &format!("begin; select setval('{sequence}', {NOW_MS}); {call}")).await;
        let before = number(&client, &read).await;
        run(&client, "set constraints all immediate").await;
        let read = number(&client, &read).await - before;
        assert!(read <= 2, "{read} rows of {table}");
        run(&client, "commit").await;
    }
}
