//! The demo: jobs flow, faults do what they say, and nothing of it is left.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgwake::demo::{Demo, DemoOptions, Server};
use pgwake::model::{Event, Fault, Listen, Sink};
use pgwake::pg::{ListenConfig, Listener};
use rustix::process::{Pid, test_kill_process};
use support::{DEADLINE, connect, wait_until};
use tokio_postgres::Client;

fn options() -> DemoOptions {
    DemoOptions {
        fallback: Duration::from_secs(1),
        doomed_lease: Duration::from_secs(2),
        // Only when asked to.
        doomed_life: Duration::from_secs(3600),
        ..DemoOptions::default()
    }
}

async fn start() -> (Demo, Client) {
    let demo = Demo::start(options()).await.expect("a demo");
    let client = connect(&demo.server(|s| s.conninfo("demo")).unwrap()).await;
    (demo, client)
}

async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(&format!("select ({sql})::bigint"), &[]).await.unwrap().get(0)
}

async fn until_at_least(client: &Client, n: i64, what: &str, sql: &str) {
    wait_until(what, DEADLINE, async || (number(client, sql).await >= n).then_some(())).await;
}

async fn listen_pids(client: &Client) -> BTreeSet<i32> {
    let rows = client
        .query("select pid from pg_stat_activity where application_name like '%/listen'", &[])
        .await
        .unwrap();
    rows.iter().map(|r| r.get(0)).collect()
}

#[tokio::test]
async fn jobs_and_messages_flow_and_every_worker_of_the_crew_takes_part() {
    let (demo, client) = start().await;
    until_at_least(&client, 50, "jobs get done", "select count(*) from pgwake.jobs where status = 'done'")
        .await;
    until_at_least(
        &client,
        5,
        "messages are sent",
        "select count(*) from pgwake.outbox where status = 'SENT'",
    )
    .await;
    let names = "select count(*) from pgwake.workers where ledger = 'jobs' and claims_got > 0 \
                 and name in ('steady-1', 'steady-2', 'slow-1', 'doomed-1')";
    until_at_least(&client, 4, "all four workers have taken jobs", names).await;
    let kinds = number(&client, "select count(distinct job_type) from pgwake.jobs").await;
    assert!(kinds >= 4, "{kinds} kinds of jobs");
    let hint = demo.psql_hint();
    assert!(hint.starts_with("psql -h /") && hint.ends_with(" -U postgres -d demo"), "{hint}");
}

#[tokio::test]
async fn the_rate_can_be_set_while_it_runs() {
    let (demo, client) = start().await;
    demo.set_rate(0.0);
    assert_eq!(demo.rate(), 0.0);
    let open = "select count(*) from pgwake.jobs where status in ('ready', 'running') and run_at <= now()";
    wait_until("the queue drains", DEADLINE, async || (number(&client, open).await == 0).then_some(()))
        .await;
    let before = number(&client, "select count(*) from pgwake.jobs").await;
    demo.set_rate(400.0);
    until_at_least(&client, before + 200, "a flood comes", "select count(*) from pgwake.jobs").await;
}

#[tokio::test]
async fn killed_listeners_come_back_as_new_sessions_and_say_what_happened() {
    let notes: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = notes.clone();
    let sink: Arc<dyn Sink> = Arc::new(move |event: Event| {
        if let Event::Note(note) = event {
            told.lock().unwrap().push(note.text);
        }
    });
    let demo = Demo::start(DemoOptions { sink: Some(sink), ..options() }).await.unwrap();
    let client = connect(&demo.server(|s| s.conninfo("demo")).unwrap()).await;
    let four = async || {
        let pids = listen_pids(&client).await;
        (pids.len() == 4).then_some(pids)
    };
    let before = wait_until("four workers listen", DEADLINE, four).await;
    let said = demo.inject(Fault::KillListener).await.unwrap();
    assert_eq!(said, "4 listen sessions were terminated");
    wait_until("four other sessions listen", DEADLINE, async || {
        let now = listen_pids(&client).await;
        (now.len() == 4 && now.is_disjoint(&before)).then_some(())
    })
    .await;
    until_at_least(
        &client,
        4,
        "the workers count it",
        "select count(*) from pgwake.workers where ledger = 'jobs' and reconnects = 1",
    )
    .await;
    let notes = notes.lock().unwrap();
    assert!(notes.iter().any(|n| n.starts_with("steady-1 stopped hearing: 57P01")), "{notes:?}");
}

#[tokio::test]
async fn the_leases_of_a_crashed_worker_expire_and_its_jobs_are_done_by_others() {
    let (demo, client) = start().await;
    until_at_least(&client, 5, "jobs flow", "select count(*) from pgwake.jobs where status = 'done'").await;
    let said = demo.inject(Fault::CrashWorker).await.unwrap();
    assert!(said.starts_with("doomed-1 died holding "), "{said}");
    let orphans: Vec<i64> = client
        .query("select id from pgwake.jobs where locked_by = 'doomed-1'", &[])
        .await
        .unwrap()
        .iter()
        .map(|r| r.get(0))
        .collect();
    assert!(!orphans.is_empty(), "it died holding leases");
    let dead = "select count(*) from pg_stat_activity where application_name like '%doomed-1'";
    wait_until("its session closes", DEADLINE, async || (number(&client, dead).await == 0).then_some(()))
        .await;
    wait_until("others did its jobs", DEADLINE, async || {
        let n: i64 = client
            .query_one(
                "select count(*) from pgwake.jobs where id = any ($1) and status = 'done' and attempts >= 2",
                &[&orphans],
            )
            .await
            .unwrap()
            .get(0);
        (n == orphans.len() as i64).then_some(())
    })
    .await;
    let next = "select count(*) from pgwake.workers where name = 'doomed-2'";
    until_at_least(&client, 1, "another doomed worker comes", next).await;
}

#[tokio::test]
async fn with_every_worker_dead_leases_stay_and_nothing_is_done_until_they_are_started_again() {
    let (demo, client) = start().await;
    until_at_least(&client, 20, "jobs flow", "select count(*) from pgwake.jobs where status = 'done'")
        .await;
    assert!(demo.inject(Fault::KillWorkers).await.unwrap().starts_with("every worker died"));
    let sessions = "select count(*) from pg_stat_activity where application_name ~ '/(listen|work)'";
    let gone = async || (number(&client, sessions).await == 0).then_some(());
    wait_until("their sessions close", DEADLINE, gone).await;
    let state = "select count(*) filter (where status = 'done') * 1000 + count(*) filter (where status = 'running') \
                 from pgwake.jobs";
    let before = number(&client, state).await;
    let arrived = number(&client, "select count(*) from pgwake.jobs").await;
    until_at_least(&client, arrived + 20, "producers go on", "select count(*) from pgwake.jobs").await;
    assert_eq!(number(&client, state).await, before, "no end, no new lease, nothing given back");
    assert!(demo.inject(Fault::CrashWorker).await.is_err(), "nobody is left to crash");
    assert!(demo.inject(Fault::KillWorkers).await.unwrap().contains("started again"));
    let done = "select count(*) from pgwake.jobs where status = 'done'";
    until_at_least(&client, before / 1000 + 20, "jobs flow again", done).await;
    demo.shutdown().await.unwrap();
}

#[tokio::test]
async fn while_wakeups_are_muted_jobs_are_found_by_the_fallback_scan() {
    let (demo, client) = start().await;
    assert!(demo.inject(Fault::MuteWakeups).await.unwrap().contains("muted"));
    assert!(demo.is_muted());
    let last = number(&client, "select coalesce(max(id), 0) from pgwake.jobs").await;
    let muted = format!("select count(*) from pgwake.jobs where id > {last} + 20 and status = 'done'");
    until_at_least(&client, 20, "muted jobs are done", &muted).await;
    let found = "select sum(found_fallback - found_timed) from pgwake.workers where ledger = 'jobs'";
    until_at_least(&client, 1, "the workers know why", found).await;
    assert!(demo.inject(Fault::MuteWakeups).await.unwrap().contains("sent again"));
    assert!(!demo.is_muted());
}

#[tokio::test]
async fn a_burst_is_one_commit_and_one_wakeup_and_all_of_it_is_done() {
    let (demo, client) = start().await;
    demo.set_rate(0.0);
    let open = "select count(*) from pgwake.jobs where status in ('ready', 'running')";
    wait_until("the queue drains", DEADLINE, async || (number(&client, open).await == 0).then_some(()))
        .await;
    let heard: Arc<Mutex<Vec<Event>>> = Arc::default();
    let ear = heard.clone();
    let sink = Arc::new(move |event: Event| ear.lock().unwrap().push(event));
    let config = ListenConfig::new(demo.conninfo().clone(), vec!["pgwake_work".into()]).unwrap();
    let _listener = Listener::start(config, sink);
    wait_until("we listen", DEADLINE, async || {
        heard.lock().unwrap().iter().any(|e| matches!(e, Event::Listen(Listen::Up { .. }))).then_some(())
    })
    .await;
    let said = demo.inject(Fault::Burst).await.unwrap();
    assert_eq!(said, "1000 jobs in one commit, a wake-up each");
    let of_the_burst = "from pgwake.jobs where created_at = \
        (select created_at from pgwake.jobs group by created_at having count(*) = 1000)";
    let done = format!("select count(*) {of_the_burst} and status = 'done' and attempts = 1");
    until_at_least(&client, 1000, "the burst is done", &done).await;
    let wakes: u64 =
        heard.lock().unwrap().iter().map(|e| if let Event::Wake(wake) = e { wake.count } else { 0 }).sum();
    assert_eq!(wakes, 1, "one notification for a thousand jobs");
}

fn lives(pid: u32) -> bool {
    // A zombie has a number, but no life in it.
    let zombie = fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'));
    !zombie && test_kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()).is_ok()
}

#[tokio::test]
async fn nothing_is_left_after_a_shutdown_nor_after_a_drop() {
    for in_order in [true, false] {
        let (demo, client) = start().await;
        until_at_least(&client, 1, "jobs flow", "select count(*) from pgwake.jobs where status = 'done'")
            .await;
        let of = |s: &Server| (s.folder().to_owned(), [s.pid().unwrap(), s.reaper_pid().unwrap()]);
        let (folder, pids) = demo.server(of).unwrap();
        assert!(folder.exists() && pids.iter().all(|pid| lives(*pid)));
        if in_order {
            demo.shutdown().await.unwrap();
        } else {
            drop(demo);
        }
        assert!(!folder.exists(), "the folder is gone");
        wait_until("no process is left", DEADLINE, async || {
            (!pids.iter().any(|pid| lives(*pid))).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn without_server_binaries_it_is_one_line() {
    let missing = DemoOptions { pg_bin: Some("/nowhere".into()), ..options() };
    let line = Demo::start(missing).await.err().unwrap().to_string();
    assert!(!line.contains('\n') && line.contains("/nowhere"), "{line}");
}
