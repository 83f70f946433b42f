//! What a wake-up costs the producer: `cargo bench --bench producers [-- quick]`.
//!
//! Commits a second of 1, 8 and 32 producers that each commit one job a transaction, driven by pgbench on a
//! throwaway server that is durable (fsync on): a plain INSERT, `pgwake.enqueue` (one NOTIFY a commit), and
//! `pgwake.enqueue_debounced`; without and with a worker that drains them. All commits that notified stand in one
//! queue (a lock of the whole server, held until the commit record is flushed), so that their flushes cannot be
//! grouped. Then jobs a second of one producer that adds them in batches. The ways take turns, and medians are printed.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pgwake::demo::{Options, Server};
use pgwake::ledger::{Ledger, NewJob};
use pgwake::pg::{self, Conninfo, Purpose, Session};
use pgwake::profile::Profile;
use tokio_postgres::{Client, NoTls};

/// Name, and what one transaction does.
const WAYS: [(&str, &str); 3] = [
    ("insert", "insert into pgwake.jobs (job_type, payload) values ('t', '{}');"),
    ("enqueue", "select pgwake.enqueue('t', '{}');"),
    ("debounced", "select pgwake.enqueue_debounced('t', '{}');"),
];

fn main() {
    let quick = std::env::args().any(|a| a == "quick");
    let settings = [("fsync", "on"), ("max_wal_size", "4GB"), ("max_connections", "100")];
    let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let server = Server::start(Options { settings, ..Options::default() }).expect("a server");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        connect(&server.conninfo("postgres")).await.batch_execute("create database bench").await.unwrap();
        let text = server.conninfo("bench");
        let migrated = pgwake(&["migrate", &text, "--scratch"]).stdout(Stdio::null()).status().unwrap();
        assert!(migrated.success());
        let bench =
            Bench { db: connect(&text).await, text, pgbench: server.binaries().program("pgbench"), quick };
        println!(
            "PostgreSQL {}, {} cores, fsync {}, synchronous_commit {}",
            server.binaries().version(),
            std::thread::available_parallelism().map_or(0, usize::from),
            bench.text("select current_setting('fsync')").await,
            bench.text("select current_setting('synchronous_commit')").await
        );
        for worker in [false, true] {
            bench.commits(worker).await;
        }
        bench.batches().await;
    });
}

fn pgwake(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgwake"));
    command.args(args);
    command
}

async fn connect(conninfo: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(conninfo, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A worker in a process of its own, with its usual debounce; asked to leave when dropped.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

struct Bench {
    text: String,
    db: Client,
    pgbench: PathBuf,
    quick: bool,
}

impl Bench {
    async fn text(&self, sql: &str) -> String {
        self.db.query_one(&format!("select ({sql})::text"), &[]).await.unwrap().get(0)
    }

    async fn worker(&self) -> Worker {
        let options = ["--handler", "noop", "--batch", "100", "--concurrency", "200", "--budget", "off"];
        let child = pgwake(&["work", &self.text, "--profile", "jobs", "--keep", "0"])
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while self.text("select count(*) > 0 from pgwake.workers").await == "false" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Worker(child)
    }

    async fn commits(&self, worker: bool) {
        let beside =
            if worker { "one session listens and a worker drains them" } else { "one session listens" };
        println!("\ncommits a second, one job each; {beside}");
        println!(
            "producers | insert  enqueue  of insert | debounced  of insert  of enqueue | wake-ups a second: enqueue, debounced"
        );
        for producers in [1, 8, 32] {
            let mut rates = [const { Vec::new() }; 3];
            let mut sent = [const { Vec::new() }; 3];
            for _ in 0..if self.quick { 1 } else { 3 } {
                for (at, (name, sql)) in WAYS.iter().enumerate() {
                    self.db.batch_execute("truncate pgwake.jobs").await.unwrap();
                    let working = if worker { Some(self.worker().await) } else { None };
                    let seconds = if self.quick { 2 } else { 4 };
                    let ears = Ears::start(&self.text);
                    let rate = self.pgbench(name, sql, producers, seconds);
                    sent[at].push(ears.heard() as f64 / f64::from(seconds));
                    rates[at].push(rate);
                    drop(working);
                }
            }
            let [insert, enqueue, debounced] = rates.map(median);
            let [_, by_enqueue, by_debounced] = sent.map(median);
            println!(
                "{producers:>9} | {insert:>6.0}  {enqueue:>7.0}  {:>9.2} | {debounced:>9.0}  {:>9.2}  {:>10.2} | {by_enqueue:.0}, {by_debounced:.0}",
                enqueue / insert,
                debounced / insert,
                debounced / enqueue
            );
        }
    }

    fn pgbench(&self, name: &str, sql: &str, producers: usize, seconds: u32) -> f64 {
        let script = std::env::temp_dir().join(format!("pgwake-{name}-{}.sql", std::process::id()));
        std::fs::write(&script, sql).unwrap();
        let rate = run_pgbench(&self.pgbench, &script, &self.text, producers, seconds);
        let _ = std::fs::remove_file(&script);
        rate
    }

    /// Jobs a second of one session that adds so many a transaction.
    async fn batches(&self) {
        println!("\njobs a second, one producer, one wake-up a batch");
        println!(" batch | enqueue_many  Ledger::enqueue (as pgwake enqueue -)");
        let options = pg::Options { conninfo: Some(self.text.clone()), ..pg::Options::default() };
        let conninfo = Conninfo::resolve(&options, &|_| None).unwrap();
        let session = Session::connect(&conninfo, Purpose::Command).await.unwrap();
        let ledger = Ledger::open(&session, Profile::find("jobs").unwrap()).await.unwrap();
        let many = "select count(*) from pgwake.enqueue_many(array_fill('t'::text, array[$1::int]), array_fill('{}'::jsonb, array[$1]))";
        let many = self.db.prepare(many).await.unwrap();
        for batch in [1, 100, 1000] {
            let job = NewJob { job_type: "t".to_owned(), payload: "{}".to_owned(), ..NewJob::default() };
            let jobs = vec![job; batch];
            let n = i32::try_from(batch).unwrap();
            let mut rates = [const { Vec::new() }; 2];
            for _ in 0..if self.quick { 1 } else { 3 } {
                self.db.batch_execute("truncate pgwake.jobs").await.unwrap();
                let time = Duration::from_secs(if self.quick { 1 } else { 2 });
                let (began, mut times) = (Instant::now(), 0_usize);
                while began.elapsed() < time {
                    self.db.query_one(&many, &[&n]).await.unwrap();
                    times += 1;
                }
                rates[0].push((times * batch) as f64 / began.elapsed().as_secs_f64());
                let (began, mut times) = (Instant::now(), 0_usize);
                while began.elapsed() < time {
                    ledger.enqueue(&session, &jobs).await.unwrap();
                    times += 1;
                }
                rates[1].push((times * batch) as f64 / began.elapsed().as_secs_f64());
            }
            let [many, ledger] = rates.map(median);
            println!("{batch:>6} | {many:>12.0}  {ledger:>15.0}");
        }
    }
}

fn run_pgbench(pgbench: &Path, script: &Path, text: &str, producers: usize, seconds: u32) -> f64 {
    let out = Command::new(pgbench)
        .args(["-n", "-M", "prepared", "-j", &producers.min(2).to_string(), "-c", &producers.to_string()])
        .args(["-T", &seconds.to_string(), "-f"])
        .arg(script)
        .arg(text)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stderr));
    let tps = said.lines().find_map(|l| l.strip_prefix("tps = ")).unwrap();
    tps.split(' ').next().unwrap().parse().unwrap()
}

/// A listener on the work channel, on a thread of its own, that counts what it hears.
struct Ears {
    heard: std::sync::Arc<std::sync::atomic::AtomicU64>,
    leave: tokio::sync::oneshot::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Ears {
    fn start(text: &str) -> Self {
        let (heard, text) = (std::sync::Arc::<std::sync::atomic::AtomicU64>::default(), text.to_owned());
        let (leave, left) = tokio::sync::oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let counter = heard.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let (client, mut connection) = tokio_postgres::connect(&text, NoTls).await.unwrap();
                let hear = async move {
                    while let Some(Ok(message)) =
                        std::future::poll_fn(|cx| connection.poll_message(cx)).await
                    {
                        if matches!(message, tokio_postgres::AsyncMessage::Notification(_)) {
                            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        }
                    }
                };
                let listen = async {
                    client.batch_execute("listen pgwake_work").await.unwrap();
                    ready.send(()).unwrap();
                    let _ = left.await;
                };
                tokio::select! { () = hear => {}, () = listen => {} }
            });
        });
        is_ready.recv().unwrap();
        Self { heard, leave, thread }
    }

    fn heard(self) -> u64 {
        let n = self.heard.load(std::sync::atomic::Ordering::Relaxed);
        let _ = self.leave.send(());
        let _ = self.thread.join();
        n
    }
}
