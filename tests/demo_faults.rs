//! The faults of the demo that break the listen session, a worker, a job or the server: each does what it
//! says, the demo goes on, and heals.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgwake::demo::{Demo, DemoOptions};
use pgwake::model::{Event, Fault, Sink};
use support::{DEADLINE, connect, wait_until};
use tokio_postgres::Client;

/// A heartbeat and its deadline take 12 s.
const FROZEN_FOR: Duration = Duration::from_secs(15);

struct Broken {
    demo: Demo,
    text: String,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Broken {
    /// A demo in which jobs flow.
    async fn start() -> Self {
        let notes: Arc<Mutex<Vec<String>>> = Arc::default();
        let told = notes.clone();
        let sink: Arc<dyn Sink> = Arc::new(move |event: Event| {
            if let Event::Note(note) = event {
                told.lock().unwrap().push(note.text);
            }
        });
        let options = DemoOptions {
            fallback: Duration::from_secs(1),
            doomed_lease: Duration::from_secs(2),
            // Only when asked to.
            doomed_life: Duration::from_secs(3600),
            frozen_for: FROZEN_FOR,
            sink: Some(sink),
            ..DemoOptions::default()
        };
        let demo = Demo::start(options).await.expect("a demo");
        let text = demo.server(|s| s.conninfo("demo")).unwrap();
        let this = Self { demo, text, notes };
        this.flows().await;
        this
    }

    /// Twenty jobs more are done, and messages are sent.
    async fn flows(&self) {
        let client = self.client().await;
        let done = async || number(&client, "select count(*) from pgwake.jobs where status = 'done'").await;
        let sent =
            async || number(&client, "select count(*) from pgwake.outbox where status = 'SENT'").await;
        let before = (done().await, sent().await);
        wait_until("jobs and messages flow", DEADLINE, async || {
            (done().await >= before.0 + 20 && sent().await >= before.1 + 2).then_some(())
        })
        .await;
    }

    async fn client(&self) -> Client {
        connect(&self.text).await
    }

    async fn inject(&self, fault: Fault) -> String {
        self.demo.inject(fault).await.unwrap()
    }

    async fn until(&self, what: &str, sql: &str) {
        let client = self.client().await;
        wait_until(what, DEADLINE * 2, async || (number(&client, sql).await > 0).then_some(())).await;
    }
}

async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(&format!("select ({sql})::bigint"), &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_frozen_listener_is_found_by_its_heartbeat_and_goes_on_after_a_while() {
    let demo = Broken::start().await;
    let said = demo.inject(Fault::FreezeListener).await;
    let pid: String =
        said.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    assert_eq!(said, format!("the listen session of pid {pid} is frozen for 15 s; its socket stays open"));
    // A signal takes its moment.
    wait_until("it is stopped", DEADLINE, async || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(')').next()?.trim_start().starts_with('T').then_some(())
    })
    .await;
    demo.until(
        "its worker has come back",
        "select count(*) from pgwake.workers where ledger = 'jobs' and reconnects = 1",
    )
    .await;
    {
        let notes = demo.notes.lock().unwrap();
        assert!(
            notes.iter().any(|n| n.ends_with("stopped hearing: heartbeat unanswered for 5 s")),
            "{notes:?}"
        );
    }
    demo.until(
        "nothing of it is left",
        &format!("select (not exists (select from pg_stat_activity where pid = {pid}))::int"),
    )
    .await;
    demo.flows().await;
}

#[tokio::test]
async fn jobs_that_were_committed_while_no_worker_was_there_are_found_at_their_start() {
    let demo = Broken::start().await;
    demo.demo.set_rate(0.0);
    let said = demo.inject(Fault::ListenerDown).await;
    assert_eq!(said, "the workers left, 100 jobs were committed, the workers are back");
    let missed = "from pgwake.jobs where created_at = \
        (select created_at from pgwake.jobs group by created_at having count(*) = 100)";
    demo.until("all are done", &format!("select (count(*) = 100)::int {missed} and status = 'done'")).await;
    let found = "select (sum(found_startup) >= 100)::int from pgwake.workers where ledger = 'jobs'";
    demo.until("by the startup scans", found).await;
    demo.demo.set_rate(40.0);
    demo.flows().await;
}

#[tokio::test]
async fn a_listener_in_a_transaction_holds_the_queue_until_it_is_asked_again() {
    let demo = Broken::start().await;
    let said = demo.inject(Fault::HoldQueue).await;
    let client = demo.client().await;
    let holders = "select count(*) from pg_stat_activity
                   where state = 'idle in transaction' and application_name like '%/listen'";
    assert_eq!(number(&client, holders).await, 1, "{said}");
    let millionths = "select pg_notification_queue_usage() * 1e6";
    assert!(number(&client, millionths).await > 3000, "it is held");
    demo.flows().await;
    assert!(number(&client, millionths).await > 3000, "it does not shrink by itself");
    assert!(demo.inject(Fault::HoldQueue).await.contains("the queue can shrink"));
    demo.until("it shrinks", "select (pg_notification_queue_usage() < 0.001)::int").await;
    // When somebody else has ended it, the next time is the first one again.
    demo.inject(Fault::HoldQueue).await;
    let end = "select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction'
               and application_name like '%/listen'";
    client.batch_execute(end).await.unwrap();
    demo.until("it is gone", &format!("select (({holders}) = 0)::int")).await;
    wait_until("it is known to be gone", DEADLINE, async || {
        demo.inject(Fault::HoldQueue).await.contains("pile up").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_is_asked_to_stop_leaves_nothing_leased_and_comes_back() {
    let demo = Broken::start().await;
    let client = demo.client().await;
    let started = "select extract(epoch from started_at) * 1000 from pgwake.workers where name = 'steady-1' and ledger = 'jobs'";
    let before = number(&client, started).await;
    let said = demo.inject(Fault::StopWorker).await;
    assert!(said.starts_with("steady-1 left within "), "{said}");
    assert!(said.ends_with(" given back, 0 left leased; it comes back soon"), "{said}");
    let gone = "select count(*) from pg_stat_activity where application_name like '%/work steady-1'";
    assert_eq!(number(&client, gone).await, 0, "it has left");
    let again = format!(
        "select count(*) from pgwake.workers where name = 'steady-1' and ledger = 'jobs' \
        and extract(epoch from started_at) * 1000 > {before} + 500"
    );
    demo.until("it comes back", &again).await;
    demo.flows().await;
}

#[tokio::test]
async fn what_a_publisher_had_in_hand_when_it_died_goes_out_again() {
    let demo = Broken::start().await;
    let said = demo.inject(Fault::CrashPublisher).await;
    assert!(
        said.starts_with("publisher-1 died with ") && said.contains(" messages published, not SENT"),
        "{said}"
    );
    let client = demo.client().await;
    let rows =
        client.query("select id from pgwake.outbox where locked_by = 'publisher-1'", &[]).await.unwrap();
    let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    assert!(!ids.is_empty(), "its leases are there: {said}");
    wait_until("all are SENT, without a failed attempt", DEADLINE, async || {
        let sql =
            "select count(*) from pgwake.outbox where id = any ($1) and status = 'SENT' and attempts = 0";
        let n: i64 = client.query_one(sql, &[&ids]).await.unwrap().get(0);
        (n == ids.len() as i64).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_poison_job_ends_failed_after_five_attempts_and_the_others_go_on() {
    let demo = Broken::start().await;
    let said = demo.inject(Fault::Poison).await;
    let id: String = said.chars().filter(char::is_ascii_digit).collect();
    assert_eq!(said, format!("job {id} fails at every attempt, and ends failed after the fifth"));
    let failed =
        format!("select count(*) from pgwake.jobs where id = {id} and status = 'failed' and attempts = 5");
    demo.until("it has failed for good", &failed).await;
    demo.flows().await;
}

#[tokio::test]
async fn after_a_restart_and_after_a_crash_of_the_server_everybody_goes_on() {
    let demo = Broken::start().await;
    for (fault, word) in [
        (Fault::RestartFast, "the server was restarted within "),
        (Fault::RestartImmediate, "the server crashed and recovered within "),
    ] {
        let before = demo.demo.server(pgwake::demo::Server::pid).unwrap();
        let said = demo.inject(fault).await;
        assert!(said.starts_with(word), "{said}");
        assert_ne!(demo.demo.server(pgwake::demo::Server::pid).unwrap(), before, "another postmaster");
        demo.flows().await;
        demo.until(
            "all three have come back",
            "select (count(*) = 3)::int from pgwake.workers where ledger = 'jobs'
             and name in ('steady-1', 'steady-2', 'slow-1') and reconnects > 0 and seen_at > now() - interval '10 s'",
        )
        .await;
    }
    demo.demo.shutdown().await.unwrap();
}

/// What holds the queue up until it is chosen again: what it says, that it holds, and that it ends.
async fn jam(fault: Fault, says: &str, holds: &str) {
    let broken = Broken::start().await;
    let said = broken.demo.inject(fault).await.unwrap();
    assert!(said.contains(says), "{said}");
    let client = broken.client().await;
    wait_until("it holds", DEADLINE, async || (number(&client, holds).await > 0).then_some(())).await;
    let again = broken.demo.inject(fault).await.unwrap();
    assert_ne!(again, said);
    wait_until("it is over", DEADLINE, async || (number(&client, holds).await == 0).then_some(())).await;
    broken.flows().await;
}

#[tokio::test]
async fn a_listener_that_does_not_read_is_there_until_it_is_ended() {
    let holds = "select count(*) from pg_stat_activity where application_name = 'deaf-listener' and wait_event = 'ClientWrite'";
    jam(Fault::DeafListener, "does not read", holds).await;
}

#[tokio::test]
async fn a_commit_that_waits_for_a_standby_holds_up_the_producers_until_it_is_let_go() {
    let holds =
        "select count(*) from pg_locks where locktype = 'object' and classid = 'pg_database'::regclass
                 and objid = 0 and database = 0 and not granted";
    jam(Fault::HoldCommit, "waits for a standby that does not exist", holds).await;
}

#[tokio::test]
async fn due_jobs_that_are_locked_elsewhere_stay_until_they_are_let_go() {
    let holds = "select case when count(*) >= 200 then 1 else 0 end from pgwake.jobs where status = 'ready' and run_at <= now()";
    jam(Fault::LockRows, "ready jobs locked", holds).await;
}

#[tokio::test]
async fn an_alter_that_waits_holds_everybody_up_until_it_is_ended() {
    let holds = "select count(*) from pg_locks where mode = 'AccessExclusiveLock' and not granted";
    jam(Fault::PendingAlter, "alters the table, and waits for the reader", holds).await;
}
