//! Plans on a table of 100,000 rows: no statement of the ledger reads it from end to end, and the due
//! order comes from the index, not from a sort.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use pgwake::ledger::Ledger;
use pgwake::pg::{Arg, Session};
use support::DEADLINE;
use support::ledger::{number, run, with_ledger};
use tokio_postgres::types::{ToSql, Type};

/// The plan of one of the ledger's statements, with its parameters bound.
async fn plan(
    session: &Session,
    ledger: &Ledger,
    name: &str,
    params: &[(&(dyn ToSql + Sync), Type)],
) -> String {
    let sql = statement(ledger, name);
    let rows = session.query(&format!("explain {sql}"), params, DEADLINE).await;
    let rows = rows.unwrap_or_else(|e| panic!("{name}: {e}\n{sql}"));
    rows.iter().map(|r| r.get::<_, String>(0)).collect::<Vec<_>>().join("\n")
}

fn statement(ledger: &Ledger, name: &str) -> String {
    let all = ledger.statements();
    all.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no statement {name}")).1.to_owned()
}

/// The same for a statement whose plan the session keeps.
async fn kept(session: &Session, ledger: &Ledger, name: &str, args: &[Arg<'_>]) -> String {
    let sql = statement(ledger, name);
    session.plan_of_kept(&sql, args).await.unwrap_or_else(|e| panic!("{name}: {e}\n{sql}"))
}

/// 100,000 jobs in every state. With `stale`, the statistics are those of the empty table.
async fn fill(client: &tokio_postgres::Client, table: &str, stale: bool) {
    let (kind, states, ready, running, done_at) = match table {
        "jobs" => ("job_type", "'done', 'failed'", "'ready'", "'running'", "finished_at"),
        _ => ("topic", "'SENT', 'FAILED'", "'PENDING'", "'PROCESSING'", "sent_at"),
    };
    let done = states.split(',').next().unwrap();
    let failed = states.split(", ").last().unwrap();
    let date =
        if table == "jobs" { "n % 10 < 5 or n % 10 = 9".to_string() } else { "n % 10 < 5".to_owned() };
    let due = if table == "jobs" { "run_at" } else { "next_attempt_at" };
    run(
        client,
        &format!(
            "alter table pgwake.{table} set (autovacuum_enabled = off); analyze pgwake.{table};
             insert into pgwake.{table} ({kind}, status, {due}, locked_by, locked_until, lease_token, {done_at})
             select 'x', case when n % 10 < 5 then {done} when n % 10 < 7 then {ready} when n % 10 < 9 then {running} else {failed} end,
                    now() + (n % 2000 - 1000) * interval '1 s',
                    case when n % 10 in (7, 8) then 'w' || n % 7 end,
                    case when n % 10 in (7, 8) then now() + (n % 2001 - 1000) * interval '1 s' end,
                    case when n % 10 in (7, 8) then gen_random_uuid() end,
                    case when {date} then now() end
             from generate_series(1, 100000) n"
        ),
    )
    .await;
    if !stale {
        run(client, &format!("vacuum analyze pgwake.{table}")).await;
    }
    assert_eq!(number(client, &format!("select count(*) from pgwake.{table}")).await, 100_000);
}

/// Reads the table by an index, and sorts none of it.
fn assert_by_index(what: &str, plan: &str, table: &str) {
    assert!(plan.contains(&format!("using {table}_")), "{what}: by an index\n{plan}");
    assert!(!plan.contains(&format!("Seq Scan on {table}")), "{what}: no Seq Scan\n{plan}");
    assert!(!plan.contains("Sort"), "{what}: no Sort\n{plan}");
}

async fn check(table: &str, stale: bool) {
    let (db, session, ledger) = with_ledger(table).await;
    let client = db.connect().await;
    fill(&client, table, stale).await;
    let what = |name: &str| format!("{name} on {table}, stale: {stale}");

    let recent = 1e9;
    for mark in [f64::NEG_INFINITY, recent] {
        let claim = [Arg::Int(10), Arg::Text("w"), Arg::Float(120.0), Arg::Float(mark)];
        for (name, args) in [("claim", &claim[..]), ("earliest", &[Arg::Float(mark)])] {
            let text = kept(&session, &ledger, name, args).await;
            assert_by_index(&what(name), &text, table);
            assert!(text.contains(&format!("using {table}_due")), "{text}");
        }
    }
    for name in ["oldest_ready", "next_scheduled"] {
        let text = plan(&session, &ledger, name, &[]).await;
        assert_by_index(&what(name), &text, table);
        assert!(text.contains(&format!("using {table}_ready")), "{name}\n{text}");
    }
    let text = plan(&session, &ledger, "leases", &[(&1000_i64, Type::INT8)]).await;
    // With statistics of the empty table the planner may sort the held rows; it never reads the others.
    assert!(text.contains(&format!(" {table}_leased")), "{text}");
    assert!(!text.contains("Seq Scan") && (stale || !text.contains("Sort")), "{}\n{text}", what("leases"));
    for name in ["counts"] {
        let text = plan(&session, &ledger, name, &[(&10_001_i64, Type::INT8)]).await;
        let by_index = text.contains(&format!("using {table}_")) || text.contains(&format!("on {table}_"));
        assert!(by_index && !text.contains(&format!("Seq Scan on {table}")), "{}\n{text}", what(name));
    }
    let audit: &[(&(dyn ToSql + Sync), Type)] = &[
        (&100_i64, Type::INT8),
        (&None::<&[String]>, Type::TEXT_ARRAY),
        (&"o", Type::TEXT),
        (&"all expired", Type::TEXT),
        (&"r", Type::TEXT),
        (&table, Type::TEXT),
    ];
    let text = plan(&session, &ledger, "release_expired", audit).await;
    assert!(text.contains(&format!("{table}_leased")), "{}\n{text}", what("release_expired"));
    assert!(!text.contains(&format!("Seq Scan on {table}")), "{}\n{text}", what("release_expired"));

    // what is fenced by id and token comes by the primary key, for one job and for a whole batch
    for n in [1, 10, 100] {
        let ids: Vec<String> = (1..=n).map(|i| (i * 10 - 2).to_string()).collect();
        let tokens: Vec<String> =
            ids.iter().map(|_| "00000000-0000-0000-0000-000000000000".to_owned()).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let (delays, refunds) = (vec![1.0; n], vec![0; n]);
        for (name, more) in [
            ("done", vec![]),
            ("done_at_once", vec![]),
            ("remove", vec![]),
            ("remove_at_once", vec![]),
            ("still", vec![]),
            ("still_alive", vec![]),
            ("renew", vec![Arg::Float(120.0)]),
            ("failed", vec![Arg::Texts(&tokens), Arg::Floats(&delays)]),
            ("defer", vec![Arg::Texts(&tokens), Arg::Floats(&delays)]),
            ("give_back", vec![Arg::Ints(&refunds)]),
        ] {
            let args: Vec<_> = [Arg::Texts(&ids), Arg::Texts(&tokens)].into_iter().chain(more).collect();
            let text = kept(&session, &ledger, name, &args).await;
            assert!(text.contains(&format!("using {table}_pkey")), "{name} of {n}\n{text}");
            assert!(!text.contains(&format!("Seq Scan on {table}")), "{name} of {n}\n{text}");
            let others = [format!("{table}_due"), format!("{table}_leased"), format!("{table}_failed")];
            assert!(!others.iter().any(|index| text.contains(index)), "{name} of {n}\n{text}");
        }
    }
    // a page of the table by its primary key, and of the page what is to be deleted by its place
    for (name, after) in [("prune", None), ("prune_after", Some(Arg::Text("5000")))] {
        let args: Vec<_> = [Arg::Int(1000), Arg::Float(60.0)].into_iter().chain(after).collect();
        let text = kept(&session, &ledger, name, &args).await;
        assert!(text.contains(&format!("using {table}_pkey on {table} t")), "{}\n{text}", what(name));
        assert!(text.contains("Limit ") && text.contains("Tid Scan"), "{}\n{text}", what(name));
        assert_eq!(text.contains("Index Cond: (id >"), after.is_some(), "{}\n{text}", what(name));
        let others = [format!("Seq Scan on {table}"), format!("{table}_due"), format!("{table}_failed")];
        assert!(!others.iter().any(|other| text.contains(other)), "{}\n{text}", what(name));
    }
    let text = plan(&session, &ledger, "find", &[(&"17", Type::TEXT)]).await;
    assert!(text.contains(&format!("using {table}_pkey")), "{text}");
}

#[tokio::test]
async fn jobs_are_read_by_their_indexes() {
    check("jobs", false).await;
}

#[tokio::test]
async fn jobs_are_read_by_their_indexes_on_stale_statistics() {
    check("jobs", true).await;
}

#[tokio::test]
async fn the_outbox_is_read_by_its_indexes() {
    check("outbox", false).await;
}

#[tokio::test]
async fn the_outbox_is_read_by_its_indexes_on_stale_statistics() {
    check("outbox", true).await;
}

#[tokio::test]
async fn a_statement_that_fails_leaves_nothing_prepared_and_one_that_works_is_prepared_once() {
    let (_db, session, _ledger) = with_ledger("jobs").await;
    let prepared = async || {
        let rows = session.rows("select count(*) from pg_prepared_statements", &[]).await.unwrap();
        rows[0].get::<_, i64>(0)
    };
    let before = prepared().await;
    let deadline = std::time::Duration::from_secs(5);
    for _ in 0..3 {
        let error =
            session.kept("select (1 / $1)::text", &[pgwake::pg::Arg::Int(0)], deadline).await.unwrap_err();
        assert_eq!(error.sqlstate(), Some("22012"), "{error}");
    }
    assert_eq!(prepared().await, before);
    for _ in 0..3 {
        let lines =
            session.kept("select (1 / $1)::text", &[pgwake::pg::Arg::Int(1)], deadline).await.unwrap();
        assert_eq!(lines[0].cell(0), Some("1"));
    }
    assert_eq!(prepared().await, before + 1);
}
