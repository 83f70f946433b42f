//! `pgwake enqueue -`: jobs in bulk from standard input, a wake-up for each batch, and bad input by its line.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/program.rs"]
mod program;
mod support;

use program::{Ran, run};
use support::ears::Ears;
use support::ledger::{ask, migrated, number, run as sql};

/// One line on standard error.
fn failed(ran: &Ran, line: &str) {
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    assert_eq!(ran.err.trim_end().lines().count(), 1, "{}", ran.err);
    assert!(ran.err.contains(line), "{:?} in {}", line, ran.err);
}

#[tokio::test]
async fn lines_come_in_order_with_one_wake_up_a_batch() {
    let db = migrated().await;
    let ears = Ears::on(db.conninfo(), &["pgwake_work"]).await;
    let lines: String = (1..=2500).map(|n| format!("{{\"n\": {n}}}\n")).collect();
    let ran = run(&["enqueue", "mail", "-", "-d", db.conninfo()], &[], &lines);
    assert_eq!((ran.code, ran.out.as_str()), (0, "2500 jobs added\n"), "{ran:?}");
    assert_eq!(ears.take().await.len(), 3, "1000, 1000 and 500");
    let client = db.connect().await;
    let order = "select bool_and(id = (payload ->> 'n')::int)::text || ' ' || count(*) from pgwake.jobs";
    assert_eq!(ask(&client, order).await.unwrap(), "true 2500");
}

#[tokio::test]
async fn nothing_and_empty_lines_add_nothing_and_send_nothing() {
    let db = migrated().await;
    let ears = Ears::on(db.conninfo(), &["pgwake_work"]).await;
    for input in ["", "\n\n  \n"] {
        let ran = run(&["enqueue", "mail", "-", "-d", db.conninfo()], &[], input);
        assert_eq!((ran.code, ran.out.as_str()), (0, "0 jobs added\n"), "{ran:?}");
    }
    assert_eq!(ears.take().await, []);
}

#[tokio::test]
async fn a_line_that_is_not_json_is_named_with_what_was_added_before() {
    let db = migrated().await;
    let mut lines: String = (0..1500).map(|_| "1\n").collect();
    lines += "{oops\n2\n";
    let ran = run(&["enqueue", "mail", "-", "-d", db.conninfo()], &[], &lines);
    failed(&ran, "standard input, line 1501: not JSON");
    failed(&ran, "1000 jobs of the lines before were added");
    assert_eq!(number(&db.connect().await, "select count(*) from pgwake.jobs").await, 1000);
}

#[tokio::test]
async fn what_the_server_refuses_names_the_lines_of_the_batch_and_adds_none_of_them() {
    let db = migrated().await;
    let client = db.connect().await;
    sql(&client, "alter table pgwake.jobs add constraint no_13 check (payload <> '1013')").await;
    let lines: String = (1..=2000).map(|n| format!("{n}\n")).collect();
    let ran = run(&["enqueue", "mail", "-", "-d", db.conninfo()], &[], &lines);
    failed(&ran, "lines 1001 to 2000 of standard input");
    failed(&ran, "no_13");
    failed(&ran, "none of them was added, 1000 jobs of the lines before were");
    assert_eq!(number(&client, "select count(*) from pgwake.jobs").await, 1000);
    let ran = run(&["enqueue", "mail", "1013", "-d", db.conninfo()], &[], "");
    failed(&ran, "nothing was added");
}
