//! The dashboard as a person uses it: the real binary in a pseudo-terminal, on a real server that is
//! broken under it.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/program.rs"]
mod program;
mod support;

use std::time::Duration;

use pgwake::config::keys::{Action, KEYS, Key};
use pgwake::demo::{Halt, Options, Server};
use program::{Screen, run};
use support::{DEADLINE, Db, database, database_on, wait_until};

const WIDE: (u16, u16) = (120, 36);

/// A scratch database with `ready` jobs and one lease each of `gone` (expired) and `alive`.
async fn scene(db: &Db, ready: usize) {
    assert_eq!(run(&["migrate", db.conninfo(), "--scratch"], &[], "").code, 0);
    let lines = "{}\n".repeat(ready + 2);
    assert_eq!(run(&["enqueue", "mail", "-", "-d", db.conninfo()], &[], &lines).code, 0);
    db.connect()
        .await
        .batch_execute(
            "update pgwake.jobs set status = 'running', locked_by = 'gone', lease_token = gen_random_uuid(),
             locked_until = now() - interval '1 minute', attempts = 1 where id = 1;
             update pgwake.jobs set status = 'running', locked_by = 'alive', lease_token = gen_random_uuid(),
             locked_until = now() + interval '1 hour', attempts = 1 where id = 2",
        )
        .await
        .unwrap();
}

async fn state(db: &Db, id: i64) -> String {
    let client = db.connect().await;
    client.query_one("select status from pgwake.jobs where id = $1", &[&id]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_lease_is_released_by_r_and_enter_and_the_audit_says_who() {
    let db = database().await;
    scene(&db, 3).await;
    let mut screen = Screen::start(&[db.conninfo()], &[], WIDE);
    screen.wait("the overview", |t| t.contains("LISTEN pgwake_work") && t.contains("gone"));
    screen.press("3");
    screen.wait("the leases, expired first", |t| {
        t.contains("expired") && t.find("gone").zip(t.find("alive")).is_some_and(|(a, b)| a < b)
    });
    screen.press("r");
    screen.wait("the dialog with its verdict", |t| {
        t.contains("Release job 1")
            && t.contains("a late completion is ignored")
            && t.contains("Enter release")
    });
    screen.press("\r");
    wait_until("job 1 is ready again", DEADLINE, async || (state(&db, 1).await == "ready").then_some(()))
        .await;
    let client = db.connect().await;
    let row = client.query_one("select holder, how, was_expired from pgwake.releases", &[]).await.unwrap();
    let got: (String, String, bool) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(got, ("gone".to_owned(), "one".to_owned(), true));
    screen.wait_for("released; a wake-up was sent with it");
    screen.press("\u{1b}");
    screen.wait("the dialog is closed", |t| !t.contains("Release job 1"));
    screen.press("q");
    let (code, took) = screen.end();
    assert_eq!(code, 0);
    assert!(took < Duration::from_secs(3), "{took:?}");
    screen.wait_given_back();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_lease_needs_its_id_typed_and_a_paste_does_not_confirm() {
    let db = database().await;
    scene(&db, 0).await;
    let mut screen = Screen::start(&[db.conninfo()], &[], WIDE);
    screen.wait_for("alive");
    screen.press("3");
    screen.wait("the leases", |t| t.contains("Leases") && t.contains("attempts"));
    screen.press("G");
    screen.press("r");
    screen.wait_for("Release job 2");
    screen.press("\r");
    screen.press("\u{1b}[200~2\r\u{1b}[201~");
    screen.press("3\r");
    screen.wait_for("Release job 2");
    assert_eq!(state(&db, 2).await, "running");
    screen.press("\u{7f}2\r");
    wait_until("job 2 is ready again", DEADLINE, async || (state(&db, 2).await == "ready").then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn upper_r_counts_first_and_frees_expired_leases_only() {
    let db = database().await;
    scene(&db, 300).await;
    db.connect()
        .await
        .batch_execute(
            "update pgwake.jobs set status = 'running', locked_by = 'dead', lease_token = gen_random_uuid(),
             locked_until = now() - interval '5 minutes' where id between 10 and 259",
        )
        .await
        .unwrap();
    let mut screen = Screen::start(&[db.conninfo()], &[], WIDE);
    screen.wait("both holders", |t| t.contains("dead") && t.contains("alive"));
    screen.press("3");
    screen.wait("the leases", |t| t.contains("Leases") && t.contains("attempts"));
    screen.press("R");
    screen.wait_for("251 expired leases would be released");
    screen.press("\r");
    let client = db.connect().await;
    wait_until("all expired leases are free", DEADLINE, async || {
        let n: i64 = client
            .query_one("select count(*) from pgwake.jobs where status = 'running'", &[])
            .await
            .unwrap()
            .get(0);
        (n == 1).then_some(())
    })
    .await;
    assert_eq!(state(&db, 2).await, "running", "the live one is kept");
    let audited: i64 = client
        .query_one("select count(*) from pgwake.releases where how = 'all expired'", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(audited, 251);
}

#[tokio::test(flavor = "multi_thread")]
async fn w_starts_a_worker_that_drains_and_q_leaves_nothing_held() {
    let db = database().await;
    assert_eq!(run(&["migrate", db.conninfo(), "--scratch"], &[], "").code, 0);
    let lines = "{\"ms\": 20}\n".repeat(60);
    run(&["enqueue", "mail", "-", "-d", db.conninfo()], &[], &lines);
    let mut screen = Screen::start(&[db.conninfo(), "--handler", "simulate"], &[], WIDE);
    screen.wait_for("no worker alive");
    screen.press("w");
    screen.wait_for("Start a worker");
    screen.press("\r");
    let client = db.connect().await;
    wait_until("all are done", DEADLINE, async || {
        let n: i64 = client
            .query_one("select count(*) from pgwake.jobs where status = 'done'", &[])
            .await
            .unwrap()
            .get(0);
        (n == 60).then_some(())
    })
    .await;
    // A job that is in hand when the person leaves.
    run(&["enqueue", "mail", "{\"ms\": 60000}", "-d", db.conninfo()], &[], "");
    wait_until("it is held", DEADLINE, async || {
        let rows = client.query("select 1 from pgwake.jobs where status = 'running'", &[]).await.unwrap();
        (!rows.is_empty()).then_some(())
    })
    .await;
    screen.press("q");
    let (code, took) = screen.end();
    assert_eq!(code, 0);
    assert!(took < Duration::from_secs(4), "{took:?}");
    let held: i64 = client
        .query_one("select count(*) from pgwake.jobs where status = 'running'", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(held, 0, "given back");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_handler_w_says_how_to_configure_one() {
    let db = database().await;
    scene(&db, 1).await;
    let mut screen = Screen::start(&[db.conninfo()], &[], WIDE);
    screen.wait_for("alive");
    screen.press("w");
    screen.wait_for("--handler");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_listener_is_shown_with_its_sqlstate_and_comes_back() {
    let db = database().await;
    scene(&db, 0).await;
    let screen = Screen::start(&[db.conninfo()], &[], WIDE);
    screen.wait_for("LISTEN pgwake_work");
    db.connect()
        .await
        .execute(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and application_name like '%/listen'",
            &[],
        )
        .await
        .unwrap();
    screen.wait("the loss and the return", |t| t.contains("57P01") && t.contains("again"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_goes_away_is_said_and_survived_and_q_still_leaves_at_once() {
    let mut server = Server::start(Options::default()).unwrap();
    let db = database_on(&server).await;
    scene(&db, 5).await;
    let mut screen = Screen::start(&[db.conninfo()], &[], WIDE);
    screen.wait_for("LISTEN pgwake_work");
    server.stop_only(Halt::Fast).unwrap();
    screen.wait("the loss", |t| t.contains("disconnected") || t.contains("lost") || t.contains("57P01"));
    let text = screen.wait("old numbers are dated", |t| t.contains("old") || t.contains("ago"));
    assert!(!text.contains("● LISTEN"), "no false light:\n{text}");
    server.start_again().unwrap();
    screen.wait_for("● LISTEN pgwake_work");
    screen.wait("live again", |t| t.contains("oldest ready") && !t.contains("disconnected"));
    server.stop_only(Halt::Immediate).unwrap();
    screen.wait("the second loss", |t| !t.contains("● LISTEN"));
    screen.press("q");
    let (code, took) = screen.end();
    assert_eq!(code, 0);
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_dropped_or_locked_is_said_and_survived() {
    let db = database().await;
    scene(&db, 5).await;
    let screen = Screen::start(&[db.conninfo(), "--profile", "jobs"], &[], WIDE);
    screen.wait_for("LISTEN pgwake_work");
    let client = db.connect().await;
    client.batch_execute("begin; lock table pgwake.jobs in access exclusive mode").await.unwrap();
    screen.wait_for("locked");
    client.batch_execute("rollback").await.unwrap();
    screen.wait("live again", |t| t.contains("oldest ready") && !t.contains("locked"));
    client.batch_execute("alter table pgwake.jobs rename to jobs_gone").await.unwrap();
    screen.wait_for("missing");
    client.batch_execute("alter table pgwake.jobs_gone rename to jobs").await.unwrap();
    screen.wait("live again", |t| t.contains("oldest ready") && !t.contains("missing"));
}

/// What a terminal sends for a key.
fn sent(key: Key) -> String {
    match key {
        Key::Char(c) => c.to_string(),
        Key::Ctrl(c) => char::from(c as u8 & 0x1f).to_string(),
        Key::Enter => "\r".into(),
        // spelt out, so that the byte after it cannot make it another key
        Key::Esc => "\u{1b}[27u".into(),
        Key::Tab => "\t".into(),
        Key::Backspace => "\u{7f}".into(),
        Key::BackTab => "\u{1b}[Z".into(),
        Key::Up => "\u{1b}[A".into(),
        Key::Down => "\u{1b}[B".into(),
        Key::Right => "\u{1b}[C".into(),
        Key::Left => "\u{1b}[D".into(),
        Key::Home => "\u{1b}[H".into(),
        Key::End => "\u{1b}[F".into(),
        Key::PageUp => "\u{1b}[5~".into(),
        Key::PageDown => "\u{1b}[6~".into(),
        Key::F(n) => format!("\u{1b}O{}", char::from(b'O' + n)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_key_of_the_table_can_be_pressed_on_every_screen_and_it_goes_on() {
    let db = database().await;
    scene(&db, 5).await;
    let mut screen = Screen::start(&[db.conninfo()], &[], WIDE);
    screen.wait("the overview", |t| t.contains("LISTEN pgwake_work") && t.contains("gone"));
    let ends = [Action::Quit, Action::Suspend];
    let mut keys: Vec<Key> =
        KEYS.iter().filter(|b| !ends.contains(&b.action)).flat_map(|b| b.keys.iter().copied()).collect();
    keys.extend(('a'..='z').chain('A'..='Z').chain('!'..='@').filter(|c| *c != 'q').map(Key::Char));
    for here in '1'..='7' {
        for key in &keys {
            screen.press(&here.to_string());
            screen.press(&sent(*key));
            screen.press(&sent(Key::Esc).repeat(3));
        }
        screen.press("1");
        screen
            .wait(&format!("the overview after every key on screen {here}"), |t| t.contains("Vital signs"));
        screen.press("7");
        screen.wait("another screen, so that the next wait sees its own", |t| !t.contains("Vital signs"));
    }
    assert_eq!(state(&db, 2).await, "running", "no key alone released a lease that is alive");
    screen.press("q");
    assert_eq!(screen.end().0, 0);
    screen.wait_given_back();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_of_10_by_3_says_one_line_and_grows_into_the_screen() {
    let db = database().await;
    scene(&db, 1).await;
    let mut screen = Screen::start(&[db.conninfo()], &[], (10, 3));
    screen.wait("too small", |t| t.contains("too small") || t.contains("terminal") || t.contains("60x18"));
    screen.resize(80, 24);
    screen.wait("the overview at 80x24", |t| t.contains("Vital signs"));
    screen.press("q");
    assert_eq!(screen.end().0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_end_it_in_order_and_give_the_terminal_back() {
    let db = database().await;
    scene(&db, 1).await;
    for signal in ["TERM", "HUP", "INT"] {
        let mut screen = Screen::start(&[db.conninfo()], &[], WIDE);
        screen.wait_for("LISTEN pgwake_work");
        assert!(screen.is_alternate());
        let pid = screen.pid().to_string();
        assert!(std::process::Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        let (_, took) = screen.end();
        assert!(took < Duration::from_secs(3), "{signal}: {took:?}");
        screen.wait_given_back();
        let client = db.connect().await;
        wait_until("its sessions are gone", DEADLINE, async || {
            let n: i64 = client
                .query_one(
                    "select count(*) from pg_stat_activity
                     where datname = current_database() and application_name like 'pgwake/%'",
                    &[],
                )
                .await
                .unwrap()
                .get(0);
            (n == 0).then_some(())
        })
        .await;
    }
}
