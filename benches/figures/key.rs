//! From a key to the frame that shows what it did, while the server answers and while every query hangs.

use std::process::Command;
use std::time::Duration;

use crate::server::backends;
use crate::terminal::Running;
use crate::{ms, quantile};

/// Rounds through all the keys.
const ROUNDS: usize = 8;

type Wanted = fn(&str) -> bool;

/// A key, and what only the frame after it shows.
const KEYS: [(&str, &str, Wanted); 15] = [
    ("3", "the leases", |t| t.contains("attempts")),
    ("G", "the last lease", |t| selected(t) > 1),
    ("g", "the first lease", |t| selected(t) == 0),
    ("j", "the next lease", |t| selected(t) == 1),
    ("/", "a filter", |t| t.contains("Enter keep")),
    ("w", "a letter of the filter", |t| t.contains("/w")),
    ("\x1b", "no filter", |t| !t.contains("Enter keep")),
    ("7", "the events", |t| t.contains("newest first")),
    ("6", "the wake-ups", |t| t.contains("Found by")),
    ("5", "the sessions", |t| t.contains("╭ Sessions")),
    ("4", "the workers", |t| t.contains("╭ Workers")),
    ("?", "the help", |t| t.contains("Keys on the screen")),
    ("\x1b", "no help", |t| !t.contains("Keys on the screen")),
    ("2", "the backlog", |t| t.contains("Backlog by type")),
    ("1", "the overview", |t| t.contains("Vital signs")),
];

/// The row of the list that is selected.
fn selected(text: &str) -> usize {
    let rows = text.lines().skip_while(|l| !l.contains("attempts")).skip(1);
    rows.take_while(|l| l.contains("worker-")).position(|l| l.contains('▶')).unwrap_or(0)
}

fn press_all(run: &mut Running) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        for (key, what, wanted) in KEYS {
            assert!(!wanted(&run.text()), "{what} is there before its key:\n{}", run.text());
            times.push(run.press(key, what, wanted));
            // not on the heels of the frame before, and not in step with the clock either
            std::thread::sleep(Duration::from_millis(60 + fastrand::u64(0..60)));
        }
    }
    times
}

fn signal(name: &str, pids: &[String]) {
    assert!(Command::new("kill").arg(name).args(pids).status().unwrap().success());
}

fn say(what: &str, times: Vec<Duration>) {
    let times = ms(times);
    println!(
        "key to frame {what}: median {:.1} ms, p99 {:.1} ms, longest {:.1} ms of {} keys",
        quantile(&times, 0.5),
        quantile(&times, 0.99),
        quantile(&times, 1.0),
        times.len()
    );
}

pub async fn all(conninfo: &str, db: &tokio_postgres::Client) {
    db.batch_execute(
        "insert into pgwake.jobs (job_type, status, attempts, locked_by, locked_until, lease_token)
         select 'type_' || i % 12, 'running', 1, 'worker-' || i % 7, now() + interval '1 hour', gen_random_uuid()
         from generate_series(1, 100) i",
    )
    .await
    .unwrap();
    let mut run = Running::start(&[conninfo]);
    run.wait("a live screen", |t| t.contains("worker-6") && t.contains("LISTEN pgwake_work"));
    say("while the server answers", press_all(&mut run));
    let pids = backends(db).await;
    // every query that is under way or comes now hangs, on every session
    signal("-STOP", &pids);
    run.wait("old numbers", |t| t.contains("stale") || t.contains("old"));
    say("while every query hangs", press_all(&mut run));
    signal("-CONT", &pids);
    db.batch_execute("truncate pgwake.jobs").await.unwrap();
}
