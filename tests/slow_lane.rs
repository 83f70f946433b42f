//! The slow lane against a real server: bounded, read only, and no payload where nobody asked for one.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use pgwake::config::{Sampling, Thresholds};
use pgwake::model::*;
use pgwake::monitor::{Feed, Setup, Slow};
use support::Db;
use support::ledger::*;
use tokio::sync::{mpsc, watch};

fn setup(db: &Db) -> Setup {
    Setup {
        conninfo: conninfo(db.conninfo()),
        profiles: Vec::new(),
        sampling: Sampling { by_type: 20, ..Sampling::default() },
        thresholds: Thresholds::default(),
        read_only: None,
    }
}

fn of<'a>(reading: &'a Reading<Looked>, job_type: &str) -> Option<&'a TypeCount> {
    reading.current().unwrap().types.iter().find(|t| t.job_type == job_type)
}

const SOME: &str = "\
insert into pgwake.jobs (job_type, run_at) select 'mail', now() - interval '90 s' from generate_series(1, 5);
insert into pgwake.jobs (job_type, run_at) select 'invoice', now() - interval '9 s' from generate_series(1, 2);
insert into pgwake.jobs (job_type, run_at) values ('mail', now() + interval '1 h'), ('mail', 'infinity');
insert into pgwake.jobs (job_type, status, locked_by, locked_until, lease_token)
values ('mail', 'running', 'w', now() + interval '1 min', gen_random_uuid());
insert into pgwake.jobs (job_type, status, attempts, last_error, finished_at)
values ('invoice', 'failed', 5, E'no such\\nfile', now());
insert into pgwake.jobs (job_type, status, finished_at) select 'mail', 'done', now() from generate_series(1, 50)";

#[tokio::test]
async fn the_backlog_is_counted_by_type_and_finished_jobs_are_not() {
    let db = migrated().await;
    run(&db.connect().await, SOME).await;
    let passes = Slow::new(setup(&db)).pass().await.unwrap();
    assert_eq!(passes.iter().map(|b| b.ledger.as_str()).collect::<Vec<_>>(), ["jobs", "outbox"]);
    let b = &passes[0];
    let mail = of(&b.ready, "mail").unwrap();
    assert_eq!(mail.jobs, 5);
    assert!((90.0..150.0).contains(&mail.edge.unwrap()), "{mail:?}");
    assert_eq!(of(&b.ready, "invoice").unwrap().jobs, 2);
    let later = of(&b.scheduled, "mail").unwrap();
    assert_eq!(later.jobs, 2);
    assert!((3_000.0..=3_600.0).contains(&later.edge.unwrap()), "infinity is no next job: {later:?}");
    assert_eq!(of(&b.running, "mail").unwrap().jobs, 1);
    assert_eq!(of(&b.failed, "invoice").unwrap().jobs, 1);
    assert!(!b.ready.current().unwrap().more);
    let table = b.table.current().unwrap();
    assert!(table.table_bytes > 0 && table.index_bytes > 0, "{table:?}");
}

#[tokio::test]
async fn a_count_stops_at_its_bound_and_says_so() {
    let db = migrated().await;
    let fill = "insert into pgwake.jobs (job_type, run_at)
                select 'old', now() - interval '1 h' from generate_series(1, 15);
                insert into pgwake.jobs (job_type) select 'new' from generate_series(1, 1000)";
    run(&db.connect().await, fill).await;
    let b = Slow::new(setup(&db)).pass().await.unwrap().remove(0);
    let looked = b.ready.current().unwrap();
    assert_eq!((looked.seen, looked.more), (20, true));
    assert_eq!(of(&b.ready, "old").unwrap().jobs, 15, "the oldest are looked at");
    assert!(of(&b.ready, "new").unwrap().jobs < 10);
}

#[tokio::test]
async fn a_locked_table_fails_its_own_probes_alone() {
    let db = migrated().await;
    run(&db.connect().await, SOME).await;
    let mut slow = Slow::new(setup(&db));
    slow.pass().await.unwrap();
    let other = db.connect().await;
    run(&other, "begin; lock table pgwake.jobs in access exclusive mode").await;
    let passes = slow.pass().await.unwrap();
    assert_eq!(passes[0].ready.trouble(), Some(&Trouble::Locked));
    assert!(passes[0].ready.value().is_some(), "what was known is kept, and called old");
    assert_eq!(passes[0].table.trouble(), Some(&Trouble::Locked));
    assert!(passes[1].ready.is_current(), "the other ledger goes on");
    run(&other, "rollback").await;
    assert!(slow.pass().await.unwrap()[0].ready.is_current());
}

async fn jobs(slow: &mut Slow, key: Option<String>) -> Vec<JobRow> {
    let ask = Intent::Jobs { ledger: "jobs".into(), key };
    let Some(Event::Jobs(list)) = slow.answer(&ask).await else { panic!("no list") };
    list.jobs.current().expect("jobs").clone()
}

async fn job(slow: &mut Slow, id: &str, payload: bool) -> JobDetail {
    let ask = Intent::Job { ledger: "jobs".into(), id: id.to_owned(), payload };
    let Some(Event::Job(detail)) = slow.answer(&ask).await else { panic!("no job") };
    *detail
}

#[tokio::test]
async fn the_jobs_of_a_type_come_in_every_state_but_done_whatever_its_text_is() {
    let db = migrated().await;
    let client = db.connect().await;
    run(&client, SOME).await;
    run(&client, "insert into pgwake.jobs (job_type) values (E'\\x1b]0;x\\x07'), (E'\\x1b]0;x\\x08')")
        .await;
    let mut slow = Slow::new(setup(&db));
    let b = slow.pass().await.unwrap().remove(0);
    let key = of(&b.ready, "mail").unwrap().key.clone();
    let mail = jobs(&mut slow, Some(key)).await;
    let states: Vec<_> = mail.iter().filter_map(|j| j.state).collect();
    assert_eq!(states.len(), 8);
    assert!(!states.contains(&JobState::Done));
    assert_eq!(mail[0].holder.as_deref(), Some("w"));
    // two types that look alike are told apart by their keys
    let odd: Vec<_> =
        b.ready.current().unwrap().types.iter().filter(|t| t.job_type.contains('␛')).collect();
    assert_eq!(odd.len(), 2);
    assert_eq!(jobs(&mut slow, Some(odd[0].key.clone())).await.len(), 1);
    let failed = jobs(&mut slow, Some(of(&b.failed, "invoice").unwrap().key.clone())).await;
    let failed = failed.iter().find(|j| j.state == Some(JobState::Failed)).unwrap();
    assert_eq!(failed.error.as_deref(), Some("no such file"));
}

#[tokio::test]
async fn no_list_and_no_detail_names_the_payload_until_somebody_asks() {
    for (_db, _session, ledger) in every_builtin().await {
        for (name, sql) in ledger.statements() {
            let reads = name.ends_with("_by_type") || matches!(name, "jobs" | "leases" | "counts" | "find");
            if reads {
                assert!(!sql.contains("payload"), "{name} of {} reads the payload:\n{sql}", ledger.name());
            }
            if name == "job" {
                // its stored size is known without reading it
                let left = sql.replace("pg_column_size(t.\"payload\")", "");
                assert!(!left.contains("payload"), "{sql}");
            }
        }
    }
}

#[tokio::test]
async fn a_payload_is_read_up_to_four_thousand_characters_and_only_on_demand() {
    let db = migrated().await;
    let client = db.connect().await;
    let big = "insert into pgwake.jobs (job_type, payload)
               select 'big', jsonb_build_object('x', string_agg(md5(i::text), '')) from generate_series(1, 100000) i";
    run(&client, big).await;
    let id = ask(&client, "select id::text from pgwake.jobs").await.unwrap();
    let mut slow = Slow::new(setup(&db));
    let hidden = job(&mut slow, &id, false).await;
    let facts = hidden.found.current().unwrap().as_ref().unwrap();
    assert_eq!((&facts.payload.text, facts.payload.length), (&None, None));
    assert!(facts.payload.stored.unwrap() > 1_000_000);
    let shown = job(&mut slow, &id, true).await;
    let payload = &shown.found.current().unwrap().as_ref().unwrap().payload;
    assert_eq!(payload.text.as_ref().unwrap().chars().count(), 4096);
    assert!(payload.length.unwrap() > 3_000_000);
    // and a recording never holds it
    let json = serde_json::to_string(&Event::Job(Box::new(shown.clone()))).unwrap();
    assert!(json.len() < 2_000, "{} bytes", json.len());
}

#[tokio::test]
async fn a_job_that_is_gone_an_odd_id_and_an_unknown_ledger_are_told() {
    let db = migrated().await;
    let mut slow = Slow::new(setup(&db));
    assert_eq!(job(&mut slow, "4711", false).await.found.current(), Some(&None));
    assert!(job(&mut slow, "no number", false).await.found.trouble().is_some());
    let odd = Intent::Jobs { ledger: "nowhere".into(), key: None };
    let Some(Event::Jobs(list)) = slow.answer(&odd).await else { panic!("no answer") };
    assert_eq!(list.jobs.trouble(), Some(&Trouble::Missing));
    assert!(slow.answer(&Intent::Quit).await.is_none());
}

#[tokio::test]
async fn it_answers_while_it_runs_comes_back_after_a_loss_and_ends_when_told() {
    let db = migrated().await;
    run(&db.connect().await, SOME).await;
    let feed = Arc::new(Feed::new());
    let (asks, ear) = mpsc::channel(4);
    let (stop, stopped) = watch::channel(false);
    let mut setup = setup(&db);
    setup.sampling.slow = Duration::from_millis(300);
    let lane = tokio::spawn(Slow::new(setup).run(feed.clone(), ear, stopped));
    let next = || async {
        tokio::time::timeout(Duration::from_secs(20), feed.next()).await.expect("an event in time")
    };
    assert!(matches!(next().await, Event::Backlog(_)));
    let kill = "select pg_terminate_backend(pid) from pg_stat_activity
                where datname = current_database() and pid <> pg_backend_pid()";
    run(&db.connect().await, kill).await;
    asks.send(Intent::Job { ledger: "jobs".into(), id: "1".into(), payload: false }).await.unwrap();
    let found = loop {
        if let Event::Job(detail) = next().await {
            break detail;
        }
    };
    assert_eq!(found.id, "1");
    // the list comes as well once the session is there again
    loop {
        if let Event::Backlog(b) = next().await
            && b.ready.is_current()
        {
            break;
        }
    }
    stop.send(true).unwrap();
    tokio::time::timeout(Duration::from_secs(5), lane).await.expect("it ends").unwrap();
}
