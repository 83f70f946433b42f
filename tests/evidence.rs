//! What holds the queue, on a real server: each situation is made, and read from `status --json` and from
//! the screen.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgwake::app::alerts::Boards;
use pgwake::app::{App, Msg, Setup as Screen, update};
use pgwake::config::keys::Key;
use pgwake::config::{Sampling, Thresholds};
use pgwake::demo::{Options, Server};
use pgwake::model::*;
use pgwake::monitor::{Operator, Sampler, Setup, Slow};
use pgwake::report;
use pgwake::ui::{Theme, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::Value;
use support::ledger::*;
use support::{DEADLINE, Db, backend_pid, database_on, wait_until};
use tokio_postgres::Client;

/// What one look at a database shows.
struct Look {
    server: pgwake::model::Server,
    samples: Vec<Sample>,
    backlogs: Vec<Backlog>,
}

impl Look {
    fn json(&self) -> Value {
        report::status(&self.server, &self.samples, &self.backlogs, &self.boards())["ledgers"][0].clone()
    }

    fn boards(&self) -> Boards {
        let mut boards = Boards::new(Thresholds::default(), 30.0);
        self.samples.iter().for_each(|sample| drop(boards.observe(sample)));
        boards
    }

    fn text(&self) -> String {
        report::status_text(&self.server, &self.samples, &self.backlogs)
    }

    /// The screen after these keys.
    fn screen(&self, keys: &str) -> String {
        let now = Now { mono: Duration::from_secs(1), wall: chrono::Utc::now() };
        let mut app = App::new(Screen::new("here"));
        let mut send = |event| drop(update(&mut app, Msg::Event(Box::new(event)), now));
        send(Event::Link(Link::Up(Box::new(self.server.clone()))));
        send(Event::Sample(Box::new(self.samples[0].clone())));
        for b in &self.backlogs {
            send(Event::Backlog(Box::new(b.clone())));
        }
        update(&mut app, Msg::Resize(180, 40), now);
        for c in keys.chars() {
            let key = if c == '\n' { Key::Enter } else { Key::Char(c) };
            update(&mut app, Msg::Key(key), now);
        }
        let mut terminal = Terminal::new(TestBackend::new(180, 40)).unwrap();
        terminal.draw(|frame| draw(frame, &app, now, &Theme::load("dark").unwrap())).unwrap();
        let buf = terminal.backend().buffer();
        let rows = buf.content().chunks(180);
        rows.map(|r| r.iter().map(|c| c.symbol()).collect::<String>() + "\n").collect()
    }
}

fn setup(text: &str) -> Setup {
    Setup {
        conninfo: conninfo(text),
        profiles: Vec::new(),
        sampling: Sampling::default(),
        thresholds: Thresholds { long_transaction_s: 0.05, ..Thresholds::default() },
        read_only: None,
    }
}

async fn look_as(text: &str) -> Look {
    let mut sampler = Sampler::connect(setup(text)).await.unwrap();
    let samples = sampler.sample().await.unwrap();
    let backlogs = Slow::new(setup(text)).pass().await.unwrap();
    Look { server: sampler.server().clone(), samples, backlogs }
}

async fn look(db: &Db) -> Look {
    look_as(db.conninfo()).await
}

/// Looks again and again until the JSON shows it.
async fn until(db: &Db, what: &str, shows: impl Fn(&Value) -> bool) -> (Look, Value) {
    wait_until(what, DEADLINE, async || {
        let look = look(db).await;
        let json = look.json();
        shows(&json).then_some((look, json))
    })
    .await
}

async fn migrate(db: &Db) {
    let mut session = session_for(db, pgwake::pg::Purpose::Command).await;
    pgwake::ledger::migrate(&mut session).await.unwrap();
}

/// A server of the test's own: what holds up one database here holds up all of the server.
async fn alone(settings: &[(&str, &str)]) -> (Server, Db) {
    let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let server = Server::start(Options { settings, ..Options::default() }).unwrap();
    let db = database_on(&server).await;
    migrate(&db).await;
    (server, db)
}

/// Sends a statement whose end nobody waits for.
fn begin(client: Client, sql: &'static str) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move { drop(client.batch_execute(sql).await) })
}

async fn named(db: &Db, name: &str) -> Client {
    let client = db.connect().await;
    run(&client, &format!("set application_name = '{name}'")).await;
    client
}

#[tokio::test]
async fn a_commit_that_a_missing_standby_holds_is_named_with_what_it_waits_for_and_its_waiters() {
    let (_server, db) = alone(&[]).await;
    let admin = db.connect().await;
    let (first, second, third) =
        (named(&db, "first").await, named(&db, "second").await, named(&db, "third").await);
    let pid = i64::from(backend_pid(&first).await);
    run(&admin, "alter system set synchronous_standby_names = 'nobody'").await;
    run(&admin, "select pg_reload_conf()").await;
    wait_until("the setting", DEADLINE, async || {
        (ask(&first, "select current_setting('synchronous_standby_names')").await? == "nobody")
            .then_some(())
    })
    .await;
    let enqueue = "select pgwake.enqueue('mail')";
    let held = begin(first, enqueue);
    until(&db, "the first holds the lock", |j| j["notify_commit_lock"]["value"]["holder"] == pid).await;
    let waits = [begin(second, enqueue), begin(third, enqueue)];
    let (look, json) = until(&db, "two wait", |j| j["notify_commit_lock"]["value"]["waiters"] == 2).await;
    let lock = &json["notify_commit_lock"]["value"];
    assert_eq!(lock["application"], "first");
    assert_eq!(lock["wait"], "IPC/SyncRep");
    assert!(lock["longest"].as_f64().unwrap() >= 0.0, "{lock}");
    assert_eq!(lock["waiting"].as_array().unwrap().len(), 2);
    let sessions = json["sessions"]["value"].as_array().unwrap();
    let waiter = sessions.iter().find(|s| s["application"] == "second").expect("a waiter is listed");
    assert_eq!(waiter["lock"]["what"], "NOTIFY commit lock");
    assert_eq!(waiter["lock"]["by"][0], pid);
    let screen = look.screen("5");
    assert!(screen.contains(&format!("pid {pid}")) && screen.contains("IPC/SyncRep"), "{screen}");
    assert!(look.text().contains("IPC/SyncRep; 2 wait"), "{}", look.text());
    // what does not notify is not held by this lock: the ledger is read as ever
    assert_eq!(json["ready"]["quality"], "exact");
    run(&admin, "alter system reset synchronous_standby_names").await;
    run(&admin, "select pg_reload_conf()").await;
    for task in [held].into_iter().chain(waits) {
        tokio::time::timeout(DEADLINE, task).await.expect("it commits").unwrap();
    }
}

#[tokio::test]
async fn a_listener_in_a_transaction_while_the_queue_fills_is_named_with_growth_and_time_to_full() {
    let (_server, db) = alone(&[]).await;
    let listener = named(&db, "legacy").await;
    run(&listener, "listen anything").await;
    run(&listener, "begin; select 1; /* listen */").await;
    // its last statement is what makes it a probable listener
    run(&listener, "listen other").await;
    let mut sampler = Sampler::connect(setup(db.conninfo())).await.unwrap();
    sampler.sample().await.unwrap();
    let noisy = db.connect().await;
    // the queue has 8 GB: a tenth of it is reached by 110,000 notifications of 7.9 kB
    let fill = "do $$ begin for i in 1..11000 loop
                perform pg_notify('anything', repeat('x', 7900) || i); end loop; end $$";
    let mut samples = Vec::new();
    for _ in 0..10 {
        run(&noisy, fill).await;
        samples = sampler.sample().await.unwrap();
    }
    let look = Look { server: sampler.server().clone(), samples, backlogs: Vec::new() };
    let json = look.json();
    let usage = json["queue_usage"]["value"].as_f64().unwrap();
    assert!(usage > 0.10, "{usage}");
    assert!(json["queue_growth_per_second"]["value"].as_f64().unwrap() > 0.0);
    let full = json["queue_full_in_seconds"].as_f64().unwrap();
    let growth = json["queue_growth_per_second"]["value"].as_f64().unwrap();
    assert!((full - (1.0 - usage) / growth).abs() < 1.0, "{full}");
    let pid = i64::from(backend_pid_of(&look, "legacy"));
    let suspect =
        json["sessions"]["value"].as_array().unwrap().iter().find(|s| s["pid"] == pid).unwrap().clone();
    let marks = suspect["marks"].to_string();
    assert!(marks.contains("probable_listener") && marks.contains("long_transaction"), "{marks}");
    let screen = look.screen("5");
    assert!(screen.contains("full in") && screen.contains("LISTEN, long tx"), "{screen}");
}

fn backend_pid_of(look: &Look, application: &str) -> i32 {
    let sessions = look.samples[0].sessions.current().unwrap();
    sessions.iter().find(|s| s.application == application).expect("a session").pid
}

#[tokio::test]
async fn an_orphan_prepared_transaction_is_named_as_holder_of_the_snapshot_and_of_due_rows() {
    let (_server, db) = alone(&[("max_prepared_transactions", "5")]).await;
    let client = db.connect().await;
    run(&client, "insert into pgwake.jobs (job_type) select 'mail' from generate_series(1, 3)").await;
    run(&client, "begin; select id from pgwake.jobs for update; prepare transaction 'orphan'").await;
    let look = look(&db).await;
    let json = look.json();
    let pin = json["oldest_snapshots"]["value"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["kind"] == "prepared")
        .expect("a prepared transaction")
        .clone();
    assert_eq!(pin["name"], "orphan");
    assert!(pin["seconds"].as_f64().unwrap() >= 0.0 && pin["xids"].as_i64().unwrap() >= 1, "{pin}");
    let locked = &json["locked_rows"]["value"];
    assert_eq!(locked["seen"], 3);
    assert_eq!(locked["by"][0]["prepared"], "orphan", "{locked}");
    assert_eq!(locked["by"][0]["rows"], 3);
    assert_eq!(locked["by"][0]["pid"], Value::Null);
    let screen = look.screen("5");
    assert!(screen.contains("orphan"), "{screen}");
    // who waits for such a row waits for no backend
    let waiter = named(&db, "waiter").await;
    let waits = begin(waiter, "update pgwake.jobs set job_type = 'x'");
    let (_, json) = until(&db, "one waits", |j| {
        j["sessions"]["value"].as_array().is_some_and(|s| s.iter().any(|s| s["application"] == "waiter"))
    })
    .await;
    let sessions = json["sessions"]["value"].as_array().unwrap();
    let lock = &sessions.iter().find(|s| s["application"] == "waiter").unwrap()["lock"];
    assert_eq!((&lock["prepared"], &lock["what"]), (&Value::from("orphan"), &Value::from("a row")));
    run(&client, "rollback prepared 'orphan'").await;
    tokio::time::timeout(DEADLINE, waits).await.expect("it goes on").unwrap();
}

#[tokio::test]
async fn due_rows_that_a_session_has_locked_are_counted_and_the_session_is_named() {
    let db = migrated().await;
    let client = db.connect().await;
    run(&client, "insert into pgwake.jobs (job_type) select 'mail' from generate_series(1, 5)").await;
    let locker = named(&db, "report").await;
    // a subtransaction has a number of its own
    run(&locker, "begin; savepoint a; select id from pgwake.jobs limit 2 for update").await;
    let look = look(&db).await;
    let locked = look.json()["locked_rows"]["value"].clone();
    assert_eq!((locked["seen"].as_u64(), locked["by"][0]["rows"].as_u64()), (Some(5), Some(2)));
    assert_eq!(locked["by"][0]["pid"], i64::from(backend_pid(&locker).await));
    assert_eq!(locked["by"][0]["application"], "report");
    run(&locker, "rollback").await;
    assert_eq!(self::look(&db).await.json()["locked_rows"]["value"]["by"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn an_alter_that_waits_is_named_with_whom_it_waits_for_and_no_probe_waits_behind_it_for_long() {
    let db = migrated().await;
    let client = db.connect().await;
    run(&client, "insert into pgwake.jobs (job_type) values ('mail')").await;
    let reader = named(&db, "reader").await;
    run(&reader, "begin; select count(*) from pgwake.jobs").await;
    let alter = named(&db, "migration").await;
    let (pid, by) = (i64::from(backend_pid(&alter).await), i64::from(backend_pid(&reader).await));
    let altering = begin(alter, "alter table pgwake.jobs add column extra int");
    let (look, json) = until(&db, "the ALTER waits", |j| {
        j["table_locks"]["value"].as_array().is_some_and(|l| !l.is_empty())
    })
    .await;
    let lock = &json["table_locks"]["value"][0];
    assert_eq!(lock["pid"], pid);
    assert_eq!(lock["granted"], false);
    assert_eq!(lock["mode"], "AccessExclusiveLock");
    assert_eq!(lock["by"][0], by);
    assert_eq!(lock["application"], "migration");
    assert_eq!(json["ready"]["reason"], "locked");
    assert_eq!(json["ready"]["value"], Value::Null, "and not zero");
    let took = look.samples[0].cost.pass_ms;
    // four statements of this ledger wait, each no longer than its lock_timeout of 100 ms
    assert!(took < 2_000.0, "{took} ms");
    let screen = look.screen("1");
    assert!(screen.contains("table locked") && screen.contains(&format!("pid {pid}")), "{screen}");
    run(&reader, "rollback").await;
    tokio::time::timeout(DEADLINE, altering).await.expect("it goes on").unwrap();
}

#[tokio::test]
async fn a_role_with_table_grants_only_is_told_what_is_hidden_and_what_to_ask_for() {
    let (_server, db) = alone(&[]).await;
    let client = db.connect().await;
    run(
        &client,
        "create role watcher login; grant usage on schema pgwake to watcher;
         grant select on all tables in schema pgwake to watcher;
         insert into pgwake.jobs (job_type) select 'mail' from generate_series(1, 2)",
    )
    .await;
    let locker = named(&db, "report").await;
    run(&locker, "begin; select id from pgwake.jobs for update").await;
    let waiter = named(&db, "waiter").await;
    let pid = backend_pid(&waiter).await;
    let waits = begin(waiter, "update pgwake.jobs set job_type = 'x'");
    let seen_by_all = look(&db).await.json()["connections"]["value"]["used"].as_i64().unwrap();
    let as_watcher = db.conninfo().replace("user=postgres", "user=watcher");
    assert_ne!(as_watcher, db.conninfo());
    let (look, json) = wait_until("one waits", DEADLINE, async || {
        let look = look_as(&as_watcher).await;
        let json = look.json();
        let sessions = json["sessions"]["value"].as_array()?;
        sessions.iter().any(|s| s["pid"] == i64::from(pid)).then_some((look, json))
    })
    .await;
    assert!(
        json["hidden_sessions"]["value"]["sessions"].as_u64().unwrap() >= 3,
        "{}",
        json["hidden_sessions"]
    );
    assert_eq!(json["ask_for"], "grant pg_read_all_stats to \"watcher\"");
    let used = json["connections"]["value"]["used"].as_i64().unwrap();
    assert!(used >= seen_by_all - 2, "hidden sessions count: {used} of {seen_by_all}");
    let sessions = json["sessions"]["value"].as_array().unwrap();
    let hidden = sessions.iter().find(|s| s["pid"] == i64::from(pid)).unwrap();
    assert_eq!(hidden["hidden"], true);
    assert_eq!((&hidden["state"], &hidden["query"]), (&Value::Null, &Value::Null));
    // pg_locks is seen by all: the rows' locker has its pid, its age is not known
    let by = &json["locked_rows"]["value"]["by"][0];
    assert_eq!(by["pid"], i64::from(backend_pid(&locker).await));
    assert_eq!(by["seconds"], Value::Null);
    let screen = look.screen("5");
    assert!(screen.contains("grant pg_read_all_stats to \"watcher\""), "{screen}");
    run(&locker, "rollback").await;
    tokio::time::timeout(DEADLINE, waits).await.expect("it goes on").unwrap();
}

#[tokio::test]
async fn under_row_security_counts_are_at_least_and_nothing_reads_as_all() {
    let (_server, db) = alone(&[]).await;
    let client = db.connect().await;
    run(
        &client,
        "create role tenant login; grant usage on schema pgwake to tenant;
         grant select on all tables in schema pgwake to tenant;
         insert into pgwake.jobs (job_type) select 'mail' from generate_series(1, 4);
         alter table pgwake.jobs enable row level security;
         create policy none on pgwake.jobs for select to tenant using (id < 2)",
    )
    .await;
    let look = look_as(&db.conninfo().replace("user=postgres", "user=tenant")).await;
    let json = look.json();
    assert_eq!(json["row_security"]["value"], true);
    assert_eq!((&json["ready"]["value"], &json["ready"]["quality"]), (&1.into(), &"at_least".into()));
    assert_eq!(self::look(&db).await.json()["row_security"]["value"], false, "the owner sees all");
    run(&client, "drop policy none on pgwake.jobs").await;
    let look = look_as(&db.conninfo().replace("user=postgres", "user=tenant")).await;
    assert_eq!(look.json()["ready"]["value"], 0);
    let screen = look.screen("1");
    assert!(screen.contains("row security") && !screen.contains("✔ nothing due"), "{screen}");
}

#[tokio::test]
async fn a_chain_of_waits_names_for_each_whom_it_waits_for() {
    let db = migrated().await;
    let client = db.connect().await;
    run(&client, "insert into pgwake.jobs (job_type) select 'mail' from generate_series(1, 2)").await;
    let (root, middle, leaf) =
        (named(&db, "root").await, named(&db, "middle").await, named(&db, "leaf").await);
    let (root_pid, middle_pid) = (backend_pid(&root).await, backend_pid(&middle).await);
    run(&root, "begin; update pgwake.jobs set job_type = 'x' where id = 1").await;
    run(&middle, "begin; update pgwake.jobs set job_type = 'x' where id = 2").await;
    let one = begin(middle, "update pgwake.jobs set job_type = 'y' where id = 1; commit");
    let two = begin(leaf, "update pgwake.jobs set job_type = 'z' where id = 2");
    let of = |j: &Value, app: &str| {
        let all = j["sessions"]["value"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|s| s["application"] == app && s["lock"]["by"][0].is_number())
    };
    let (look, json) =
        until(&db, "both wait", |j| of(j, "middle").is_some() && of(j, "leaf").is_some()).await;
    assert_eq!(of(&json, "middle").unwrap()["lock"]["by"][0], i64::from(root_pid));
    assert_eq!(of(&json, "leaf").unwrap()["lock"]["by"][0], i64::from(middle_pid));
    // the tree stands in order: root, middle below it, leaf below that
    let screen = look.screen("5");
    let row = |app: &str| screen.lines().position(|l| l.contains(app)).expect("a row");
    assert!(row("root") < row("middle") && row("middle") < row("leaf"), "{screen}");
    assert!(screen.contains("└"), "{screen}");
    run(&root, "rollback").await;
    for task in [one, two] {
        tokio::time::timeout(DEADLINE, task).await.expect("it goes on").unwrap();
    }
}

#[tokio::test]
async fn rows_that_nobody_takes_and_triggers_that_send_the_row_are_told() {
    let db = migrated().await;
    let client = db.connect().await;
    run(
        &client,
        "alter table pgwake.jobs drop constraint jobs_lease_whole, drop constraint jobs_status_known,
             drop constraint jobs_finished_dated;
         insert into pgwake.jobs (job_type, status) select 'x', 'running' from generate_series(1, 3);
         insert into pgwake.jobs (job_type, status, locked_by, locked_until) values ('x', 'running', 'w', 'infinity');
         insert into pgwake.jobs (job_type, status) select 'x', 'paused' from generate_series(1, 40);
         create function pgwake.tell() returns trigger language plpgsql as $$
         begin perform pg_notify('jobs', row_to_json(new)::text); return null; end $$;
         create function pgwake.hint() returns trigger language plpgsql as $$
         begin perform pg_notify('jobs', ''); return null; end $$;
         create trigger tells after insert on pgwake.jobs for each row execute function pgwake.tell();
         create trigger hints after insert on pgwake.jobs for each statement execute function pgwake.hint();
         analyze pgwake.jobs",
    )
    .await;
    let look = look(&db).await;
    let json = look.json();
    let odd = &json["inconsistent_rows"]["value"];
    assert_eq!((&odd["without_due"], &odd["for_ever"]), (&3.into(), &1.into()));
    assert_eq!(odd["unknown_states"][0][0], "paused");
    let triggers = json["notify_triggers"]["value"].as_array().unwrap();
    assert_eq!(triggers.len(), 2, "{triggers:?}");
    assert_eq!(
        (&triggers[0]["name"], &triggers[0]["carries_row"], &triggers[0]["per_row"]),
        (&"hints".into(), &false.into(), &false.into())
    );
    assert_eq!(
        (&triggers[1]["name"], &triggers[1]["carries_row"], &triggers[1]["per_row"]),
        (&"tells".into(), &true.into(), &true.into())
    );
    assert!(look.text().contains("trigger tells (tell) sends the row in the payload"), "{}", look.text());
}

#[tokio::test]
async fn cancel_and_terminate_hit_the_session_that_was_seen_and_tell_what_the_server_said() {
    let db = migrated().await;
    let victim = named(&db, "victim").await;
    run(&victim, "begin").await;
    let pid = i32::try_from(backend_pid(&victim).await).unwrap();
    let sleeping = tokio::spawn(async move {
        let cancelled = victim.batch_execute("select pg_sleep(600)").await.unwrap_err();
        (victim, cancelled.code().unwrap().code().to_owned())
    });
    let seen = wait_until("the victim is listed", DEADLINE, async || {
        let look = look(&db).await;
        let all = look.samples[0].sessions.current()?.clone();
        all.into_iter().find(|s| s.pid == pid && s.state.as_deref() == Some("active"))
    })
    .await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let ear = told.clone();
    let sink: Arc<dyn Sink> = Arc::new(move |event: Event| {
        if let Event::Action(ActionEvent::Ended { sent, answer, .. }) = event {
            ear.lock().unwrap().push((sent, answer));
        }
    });
    let mut operator =
        Operator::new(conninfo(db.conninfo()), Vec::new(), None, "a test".into(), None, sink);
    let last = || told.lock().unwrap().last().cloned().unwrap();
    // the same pid with another start is another session
    let mut other = seen.clone();
    other.started = Some(chrono::DateTime::UNIX_EPOCH);
    operator.end(Ending::Terminate, &other).await.unwrap();
    assert_eq!(last(), (false, "nothing was done: that session is no longer there".to_owned()));
    operator.end(Ending::Cancel, &seen).await.unwrap();
    assert!(last().0, "{:?}", last());
    let (victim, code) = tokio::time::timeout(DEADLINE, sleeping).await.expect("cancelled").unwrap();
    assert_eq!(code, "57014");
    operator.end(Ending::Terminate, &seen).await.unwrap();
    assert!(last().0, "{:?}", last());
    wait_until("it is gone", DEADLINE, async || victim.is_closed().then_some(())).await;
    operator.end(Ending::Terminate, &seen).await.unwrap();
    assert!(!last().0);
}

#[tokio::test]
async fn a_role_that_may_not_end_a_session_is_told_so_in_the_server_s_words() {
    let (_server, db) = alone(&[]).await;
    let client = db.connect().await;
    run(
        &client,
        "create role clerk login; grant usage on schema pgwake to clerk;
         grant select, update on all tables in schema pgwake to clerk",
    )
    .await;
    let victim = named(&db, "victim").await;
    let seen = Session { pid: i32::try_from(backend_pid(&victim).await).unwrap(), ..Session::default() };
    let told = Arc::new(Mutex::new(None));
    let ear = told.clone();
    let sink: Arc<dyn Sink> = Arc::new(move |event: Event| {
        if let Event::Action(ActionEvent::Ended { sent, answer, .. }) = event {
            *ear.lock().unwrap() = Some((sent, answer));
        }
    });
    let as_clerk = conninfo(&db.conninfo().replace("user=postgres", "user=clerk"));
    let mut operator = Operator::new(as_clerk, Vec::new(), None, "a test".into(), None, sink);
    operator.end(Ending::Terminate, &seen).await.unwrap();
    let (sent, answer) = told.lock().unwrap().clone().unwrap();
    assert!(!sent && answer.starts_with("42501"), "{answer}");
    assert!(!victim.is_closed());
}

async fn plan_as(text: &str) -> ClaimPlan {
    let ask = Intent::Plan { ledger: "jobs-plain".into() };
    let Some(Event::Plan(check)) = Slow::new(setup(text)).answer(&ask).await else { panic!("no plan") };
    check.plan.current().unwrap_or_else(|| panic!("{:?}", check.plan)).clone()
}

#[tokio::test]
async fn a_claim_without_its_index_is_flagged_and_the_index_that_is_named_mends_it() {
    let (_server, db) = alone(&[]).await;
    let client = db.connect().await;
    run(
        &client,
        &format!(
            "{}
             insert into public.jobs (job_type, status) select 'mail', 'ready' from generate_series(1, 20000);
             create role clerk login; grant select on public.jobs to clerk; grant usage on schema pgwake to clerk;
             grant select on all tables in schema pgwake to clerk",
            PLAIN.split("create index").next().unwrap()
        ),
    )
    .await;
    run(&client, "analyze public.jobs").await;
    let plan = plan_as(db.conninfo()).await;
    assert!(plan.flaws.iter().any(|f| f.starts_with("Seq Scan")), "{plan:?}");
    assert!(plan.flaws.iter().any(|f| f.starts_with("Sort")), "{plan:?}");
    assert!(plan.lines.iter().any(|l| l.contains("Seq Scan on jobs")), "{plan:?}");
    assert_eq!((plan.rows, plan.only_the_pick), (Some(20_000), false));
    // nothing was run
    assert_eq!(number(&client, "select count(*) from public.jobs where status = 'ready'").await, 20_000);
    // who may only read is shown the choice of rows
    let readers = plan_as(&db.conninfo().replace("user=postgres", "user=clerk")).await;
    assert!(readers.only_the_pick && !readers.flaws.is_empty(), "{readers:?}");
    run(&client, &plan.index.expect("an index is named")).await;
    run(&client, "analyze public.jobs").await;
    let mended = plan_as(db.conninfo()).await;
    assert_eq!(mended.flaws, Vec::<String>::new(), "{mended:?}");
    assert_eq!(mended.index, None);
}

#[tokio::test]
async fn a_listener_that_stops_reading_is_named() {
    let (_server, db) = alone(&[]).await;
    let (client, connection) =
        tokio_postgres::connect(db.conninfo(), tokio_postgres::NoTls).await.expect("a connection");
    tokio::pin!(connection);
    tokio::select! {
        _ = &mut connection => panic!("the connection ended"),
        listening = client.batch_execute("set application_name = 'deaf'; listen anything") => listening.unwrap(),
    }
    // from here on nobody reads that socket
    let noisy = db.connect().await;
    let fill = "do $$ begin for i in 1..1000 loop
                perform pg_notify('anything', repeat('x', 7900) || i); end loop; end $$";
    run(&noisy, fill).await;
    let deaf = |j: &Value| {
        let all = j["sessions"]["value"].as_array().cloned().unwrap_or_default();
        all.into_iter()
            .find(|s| s["application"] == "deaf" && s["marks"].to_string().contains("not_reading"))
    };
    let (look, json) = until(&db, "it is marked", |j| deaf(j).is_some()).await;
    assert_eq!(deaf(&json).unwrap()["wait"], "Client/ClientWrite");
    let screen = look.screen("5");
    assert!(screen.contains("does not read") && screen.contains("deaf"), "{screen}");
}
