//! Makes the recordings of `tests/recordings/` anew, from real servers and real workers:
//!
//! ```text
//! cargo test --test stories -- --ignored stage      # six minutes; raw recordings into target/stories
//! cargo test --test stories -- --ignored compose    # cuts them down, into tests/recordings
//! pgwake screenshot --all                           # and the pictures from those
//! ```
//!
//! A full notification queue takes gigabytes to stage, so `compose` makes that story out of the calm one
//! by raising its figure. Everything else is as it was seen, except for the names: the address and the host
//! of the workers are neutral, and the ledger that nothing happens on is left out.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use chrono::SubsecRound;
use pgwake::demo::{Options, Server};
use pgwake::model::*;
use pgwake::record;
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use tokio_postgres::{Client, NoTls};

/// How long a story is watched, seconds; the chart of the overview shows five minutes.
const LENGTH: u64 = 320;
/// What is kept of it, seconds.
const KEPT: u64 = 305;

/// How much is used of the calm story, seconds.
const CALM: u64 = 289;

/// For how long the single leases are kept, seconds: they are most of a recording.
const LEASES: u64 = 9;

fn raw() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("stories")
}

fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings")
}

/// A server with a ledger, and the workers on it.
struct Stage {
    server: Server,
    client: Client,
    workers: Vec<Child>,
}

impl Stage {
    async fn build() -> Self {
        let server = Server::start(Options::default()).unwrap();
        let admin = connect(&server.conninfo("postgres")).await;
        admin.batch_execute("create database orders").await.unwrap();
        let conninfo = server.conninfo("orders");
        let made = pgwake().args(["migrate", "--scratch", &conninfo]).status().unwrap();
        assert!(made.success());
        let client = connect(&conninfo).await;
        Self { server, client, workers: Vec::new() }
    }

    fn conninfo(&self) -> String {
        self.server.conninfo("orders")
    }

    fn worker(&mut self, name: &str, lease: &str) {
        let conninfo = self.conninfo();
        let args = ["work", "--handler", "simulate", "--budget", "off", "--name", name, "--lease", lease];
        let child = pgwake().args(args).arg(conninfo).stdout(Stdio::null()).spawn().unwrap();
        self.workers.push(child);
    }

    /// SIGSTOP: it holds what it holds and says nothing more.
    fn stop_worker(&self, n: usize) {
        let pid = self.workers[n].id().to_string();
        assert!(Command::new("kill").args(["-STOP", &pid]).status().unwrap().success());
    }

    /// Ends every listen session.
    async fn end_listeners(&self) {
        let sql = "select pg_terminate_backend(pid) from pg_stat_activity
                   where application_name like '%/listen' and datname = 'orders'";
        self.client.query(sql, &[]).await.unwrap();
    }

    /// A second of work: some at once, some later, some that fails; each takes about `ms`.
    async fn enqueue(&self, second: u64, ms: f64) {
        let wave = 22.0 + 14.0 * (second as f64 / 31.0).sin() + 5.0 * (second as f64 / 4.0).sin();
        let sql = "select count(pgwake.enqueue(
                       (array['mail.send', 'invoice.render', 'search.index'])[1 + i % 3],
                       jsonb_build_object('ms', $2::float8 * (0.2 + 1.6 * random()), 'fail', case when i = 3 then 0.2 else 0 end),
                       now() + case when i % 10 = 9 then '15s'::interval else '0' end))
                   from generate_series(1, $1::int) i";
        self.client.query_one(sql, &[&(wave as i32), &ms]).await.unwrap();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

fn pgwake() -> Command {
    Command::new(env!("CARGO_BIN_EXE_pgwake"))
}

async fn connect(conninfo: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(conninfo, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Watches a story with the dashboard while `happens` is asked every second what should happen.
async fn watch(name: &str, mut stage: Stage, mut happens: impl AsyncFnMut(&mut Stage, u64)) {
    let out = raw().join(name).with_extension("jsonl");
    let _ = fs::remove_file(&out);
    let size = PtySize { rows: 36, cols: 120, pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_pgwake"));
    command.args(["--record", out.to_str().unwrap(), &stage.conninfo()]);
    command.env("TERM", "xterm-256color");
    command.env("TZ", "UTC");
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut screen = pair.master.try_clone_reader().unwrap();
    std::thread::spawn(move || {
        let mut chunk = [0u8; 4096];
        while screen.read(&mut chunk).is_ok_and(|n| n > 0) {}
    });
    let mut beat = tokio::time::interval(Duration::from_secs(1));
    for second in 0..LENGTH {
        beat.tick().await;
        happens(&mut stage, second).await;
    }
    std::io::Write::write_all(&mut pair.master.take_writer().unwrap(), b"q").unwrap();
    child.wait().unwrap();
}

#[test]
#[ignore = "takes six minutes and makes files; see the module"]
fn stage() {
    fs::create_dir_all(raw()).unwrap();
    let begun = Instant::now();
    let run = |story: fn() -> std::pin::Pin<Box<dyn Future<Output = ()>>>| {
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(story());
        })
    };
    let stories = [run(|| Box::pin(calm())), run(|| Box::pin(stuck())), run(|| Box::pin(deaf()))];
    for story in stories {
        story.join().unwrap();
    }
    println!("staged in {:?}", begun.elapsed());
}

/// Nothing is wrong; a reconnect in the middle is survived.
async fn calm() {
    let mut stage = Stage::build().await;
    for name in ["mail-worker-3", "mail-worker-4", "mail-worker-7"] {
        stage.worker(name, "2m");
    }
    watch("calm", stage, async |stage, second| {
        stage.enqueue(second, 600.0).await;
        if second == 200 {
            stage.end_listeners().await;
        }
    })
    .await;
}

/// The only worker stops in the middle of its jobs.
async fn stuck() {
    let mut stage = Stage::build().await;
    stage.worker("mail-worker-7", "1m");
    watch("stuck-holder", stage, async |stage, second| {
        stage.enqueue(second, 150.0).await;
        if second == 170 {
            let held = "select count(*) from pgwake.jobs where status = 'running'";
            loop {
                stage.stop_worker(0);
                if stage.client.query_one(held, &[]).await.unwrap().get::<_, i64>(0) >= 3 {
                    break;
                }
                let pid = stage.workers[0].id().to_string();
                Command::new("kill").args(["-CONT", &pid]).status().unwrap();
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        }
    })
    .await;
}

/// Every listen session is lost and no new one is let in, while the others go on.
async fn deaf() {
    let mut stage = Stage::build().await;
    for name in ["mail-worker-3", "mail-worker-4"] {
        stage.worker(name, "2m");
    }
    watch("dead-listener", stage, async |stage, second| {
        stage.enqueue(second, 300.0).await;
        if second == 230 {
            let admin = connect(&stage.server.conninfo("postgres")).await;
            let close = "alter database orders with allow_connections false";
            admin.batch_execute(close).await.unwrap();
            stage.end_listeners().await;
        }
    })
    .await;
}

#[test]
#[ignore = "writes tests/recordings; see the module"]
fn compose() {
    let names = ["calm", "stuck-holder", "dead-listener"];
    for name in names {
        write(name, &cut(read(name)));
    }
    let mut full = cut(read("calm"));
    fill_queue(&mut full);
    write("full-queue", &full);
}

fn read(name: &str) -> Vec<Stamped> {
    let file = File::open(raw().join(name).with_extension("jsonl")).unwrap();
    let recording = record::read(BufReader::new(file)).unwrap();
    assert_eq!(recording.broken, None);
    let mut events = recording.events;
    if name == "calm" {
        // its last half minute is the quietest: nothing would be held
        let end = events[0].mono_ms + CALM * 1000;
        events.retain(|e| e.mono_ms <= end);
    }
    events
}

fn write(name: &str, events: &[Stamped]) {
    let path = recordings().join(name).with_extension("jsonl");
    let mut setup = pgwake::app::Setup::new("shop@db-1:5432/orders");
    setup.label = Some("PROD".into());
    setup.bar = Some("red".into());
    let mut writer = record::Writer::new(BufWriter::new(File::create(&path).unwrap()), &setup).unwrap();
    for event in events {
        writer.write(event).unwrap();
    }
    println!(
        "{}: {} events, {} kB",
        path.display(),
        events.len(),
        fs::metadata(&path).unwrap().len() / 1024
    );
}

/// The last five minutes, every second sample, wake-ups folded, leases only towards the end, and nothing that names this machine.
fn cut(events: Vec<Stamped>) -> Vec<Stamped> {
    let end = events.last().unwrap().mono_ms;
    let mut out: Vec<Stamped> = Vec::new();
    let mut samples = 0;
    for mut event in events {
        event.wall = event.wall.trunc_subsecs(3);
        let late = event.mono_ms + KEPT * 1000 >= end;
        let keep = match &mut event.event {
            Event::Link(Link::Up(server)) => {
                server.address = "shop@db-1:5432/orders".into();
                server.ledgers.retain(|l| l.name == "jobs");
                server.ledgers.iter_mut().for_each(|l| l.scratch = false);
                true
            }
            Event::Listen(Listen::Up { channels, .. }) => {
                channels.retain(|c| c == "pgwake_work");
                true
            }
            // where the session stood is always needed
            Event::Link(_) | Event::Listen(_) => true,
            Event::Sample(sample) if late && sample.ledger == "jobs" => {
                samples += 1;
                neutral(sample);
                if event.mono_ms + LEASES * 1000 < end {
                    let left_out = Trouble::NotHere("left out of this recording".into());
                    sample.leases = Reading::unknown(left_out);
                }
                samples % 2 == 0
            }
            Event::Wake(wake) if late && wake.channel == "pgwake_work" => {
                let last = out.iter_mut().rev().take_while(|e| e.mono_ms + 2000 > event.mono_ms);
                let mut folded = false;
                for e in last {
                    if let Event::Wake(before) = &mut e.event {
                        before.count += wake.count;
                        folded = true;
                        break;
                    }
                }
                !folded
            }
            // it comes every few seconds and changes slowly
            Event::Backlog(backlog) => backlog.ledger == "jobs" && event.mono_ms + 45_000 >= end,
            Event::Sample(_) | Event::Wake(_) => false,
            Event::Note(_) => false,
            _ => true,
        };
        if keep {
            out.push(event);
        }
    }
    out
}

fn neutral(sample: &mut Sample) {
    let round = |r: &Reading<f64>| r.map(|v| (v * 1000.0).round() / 1000.0);
    sample.flow.arrived = round(&sample.flow.arrived);
    sample.flow.done = round(&sample.flow.done);
    sample.flow.failed = round(&sample.flow.failed);
    sample.workers = sample.workers.map(|rows| {
        let mut rows = rows.clone();
        rows.iter_mut().for_each(|w| w.host = "app-1".into());
        rows
    });
}

/// A listener that does not read keeps the queue from being emptied: it fills over the last minutes.
fn fill_queue(events: &mut [Stamped]) {
    let end = events.last().unwrap().mono_ms;
    for event in events {
        let left = (end - event.mono_ms) as f64 / 1000.0;
        let Event::Sample(sample) = &mut event.event else { continue };
        let at = sample.taken_at;
        let usage = 0.362 * ((KEPT as f64 - left) / KEPT as f64).clamp(0.0, 1.0).powf(1.4);
        sample.vitals.queue_usage = Reading::exact((usage * 1e5).round() / 1e5, at);
        let deaf = Session {
            pid: 3877,
            user: "reports".into(),
            application: "nightly-report".into(),
            state: Some("idle in transaction".into()),
            wait: Some("Client/ClientRead".into()),
            transaction_age: Some(1560.0 - left.floor()),
            query: Some("LISTEN pgwake_work".into()),
            marks: vec![SessionMark::LongTransaction, SessionMark::ProbableListener],
            ..Session::default()
        };
        let mut sessions = sample.sessions.value().cloned().unwrap_or_default();
        sessions.push(deaf);
        sample.sessions = Reading::exact(sessions, at);
    }
}
