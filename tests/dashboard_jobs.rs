//! Jobs of the Backlog acted on by keys: the real binary in a pseudo-terminal, on a real server.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/program.rs"]
mod program;
mod support;

use program::{Screen, run};
use support::{DEADLINE, Db, database, wait_until};

const WIDE: (u16, u16) = (120, 36);

/// A scratch database: job 1 has failed for good, 2 is ready, 3 is due in an hour.
async fn scene() -> Db {
    let db = database().await;
    assert_eq!(run(&["migrate", db.conninfo(), "--scratch"], &[], "").code, 0);
    assert_eq!(run(&["enqueue", "mail", "-", "-d", db.conninfo()], &[], &"{}\n".repeat(3)).code, 0);
    change(
        &db,
        "update pgwake.jobs set status = 'failed', attempts = 5, finished_at = now(), last_error = 'smtp is down' where id = 1;
         update pgwake.jobs set run_at = now() + interval '1 hour' where id = 3",
    )
    .await;
    db
}

async fn change(db: &Db, sql: &str) {
    db.connect().await.batch_execute(sql).await.unwrap();
}

async fn job(db: &Db, id: i64) -> String {
    let sql = "select concat_ws('|', status, attempts, max_attempts, run_at <= now(), last_error) from pgwake.jobs where id = $1";
    db.connect().await.query_one(sql, &[&id]).await.unwrap().get(0)
}

async fn audited(db: &Db) -> Vec<String> {
    let sql = "select concat_ws('|', action, how, job_id, job_type, state_was, reason) from pgwake.actions order by id";
    db.connect().await.query(sql, &[]).await.unwrap().iter().map(|r| r.get(0)).collect()
}

/// The list of jobs, the cursor on the job in this state.
fn to_job(screen: &mut Screen, state: &str) {
    screen.wait_for("LISTEN pgwake_work");
    screen.press("2");
    screen.wait("the types", |t| t.contains("mail") && t.contains("scheduled"));
    screen.press("\r");
    screen.wait("the jobs", |t| t.contains("Jobs of mail") && t.contains("failed"));
    for _ in 0..3 {
        let text = screen.text();
        if text.lines().any(|l| l.contains('▶') && l.contains(state)) {
            return;
        }
        screen.press("j");
        screen.wait("the cursor moves", |t| t != text);
    }
    panic!("no job is {state}:\n{}", screen.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_job_is_retried_by_a_and_enter_and_the_audit_says_who() {
    let db = scene().await;
    let mut screen = Screen::start(&[db.conninfo()], &[], WIDE);
    to_job(&mut screen, "failed");
    screen.press("a");
    screen.wait("the dialog with the job and its effect", |t| {
        t.contains("Retry job 1")
            && t.contains("5 of 5")
            && t.contains("smtp is down")
            && t.contains("one more is allowed")
            && t.contains("update \"pgwake\".\"jobs\"")
            && t.contains("Enter retry it")
    });
    // a paste confirms nothing: what follows it on the terminal is still the question
    screen.press("\u{1b}[200~y\r\u{1b}[201~");
    screen.press("?");
    screen.wait_for("Enter retry it");
    assert_eq!(job(&db, 1).await, "failed|5|5|t|smtp is down");
    screen.press("\r");
    screen.wait_for("ready again; a wake-up was sent with it");
    assert_eq!(job(&db, 1).await, "ready|5|6|t|smtp is down");
    assert_eq!(audited(&db).await, ["retry|one|1|mail|failed|from the dashboard"]);
    let file = std::fs::read_to_string(program::state_dir().join("releases.log")).unwrap();
    let line = file.lines().find(|l| l.contains(&db.name)).expect("a line about this database");
    for part in [r#""how":"retry""#, "job 1 of type mail, attempts 5", "ready again"] {
        assert!(line.contains(part), "{line}");
    }
    screen.press("\u{1b}");
    screen.wait("the list shows what was done", |t| !t.contains("Retry job") && t.contains("5 of 6"));
    screen.press("q");
    assert_eq!(screen.end().0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_job_is_made_due_by_u_and_a_ready_one_given_up_by_x() {
    let db = scene().await;
    let mut screen = Screen::start(&[db.conninfo()], &[], WIDE);
    to_job(&mut screen, "scheduled");
    screen.press("u");
    screen.wait_for("Enter run it now");
    screen.press("y");
    screen.wait_for("due now; a wake-up was sent with it");
    assert_eq!(job(&db, 3).await, "ready|0|5|t");
    screen.press("\u{1b}");
    screen.wait("both are ready", |t| !t.contains("Run job now") && !t.contains("○ scheduled"));
    screen.press("g");
    screen.press("x");
    screen.wait_for("Enter give it up");
    screen.press("\r");
    screen.wait_for("✔ marked failed");
    let given_up = job(&db, 2).await;
    assert!(
        given_up.starts_with("failed|0|5|t|given up by ") && given_up.ends_with(": from the dashboard")
    );
    let expected =
        ["run now|one|3|mail|ready|from the dashboard", "give up|one|2|mail|ready|from the dashboard"];
    assert_eq!(audited(&db).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_claimed_while_the_person_reads_is_left_alone() {
    let db = scene().await;
    let mut screen = Screen::start(&[db.conninfo()], &[], WIDE);
    to_job(&mut screen, "ready");
    screen.press("x");
    screen.wait_for("Enter give it up");
    change(
        &db,
        "update pgwake.jobs set status = 'running', locked_by = 'w', lease_token = gen_random_uuid(),
         locked_until = now() + interval '1 hour', attempts = 1 where id = 2",
    )
    .await;
    screen.press("\r");
    screen.wait_for("nothing was changed, it moved on: now running, held by w until");
    assert_eq!(job(&db, 2).await, "running|1|5|t");
    assert_eq!(audited(&db).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_somebody_else_has_locked_is_said_and_not_waited_for() {
    let db = scene().await;
    let mut screen = Screen::start(&[db.conninfo()], &[], WIDE);
    to_job(&mut screen, "failed");
    screen.press("a");
    screen.wait_for("Enter retry it");
    let other = db.connect().await;
    other.batch_execute("begin; select from pgwake.jobs where id = 1 for update").await.unwrap();
    screen.press("\r");
    screen.wait_for("locked by another session at this moment");
    other.batch_execute("rollback").await.unwrap();
    assert_eq!(job(&db, 1).await, "failed|5|5|t|smtp is down");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_read_only_the_keys_are_gone_and_say_why() {
    let db = scene().await;
    let mut screen = Screen::start(&["--read-only", db.conninfo()], &[], WIDE);
    to_job(&mut screen, "failed");
    let text = screen.text();
    assert!(!text.contains("a retry"), "{text}");
    screen.press("a");
    screen.wait_for("retry refused: --read-only");
    screen.press("\r");
    screen.wait_for("Job 1");
    screen.press("a");
    screen.wait_for("retry refused");
    wait_until("nothing was opened for it", DEADLINE, async || {
        let sql = "select count(*) from pg_stat_activity where datname = $1 and application_name like '%/operator%'";
        let n: i64 = db.connect().await.query_one(sql, &[&db.name]).await.unwrap().get(0);
        (n == 0).then_some(())
    })
    .await;
    assert_eq!(job(&db, 1).await, "failed|5|5|t|smtp is down");
}
