//! The drain worker against the server's own speed: `cargo bench --bench drain [-- PART…]`.
//!
//! Parts: `rates`, `wake`, `snapshot`, `idle`, `memory`; without one, all. `quick` makes everything
//! smaller; a number with `rates` means only this batch. Compared runs take turns on one throwaway server, and medians are printed:
//!
//! * rates: jobs per second with no-op handlers, for batches and sessions, against pgbench running the
//!   very same claim and finish statements, prepared, with the same plans and as many clients;
//! * wake: from the return of the commit to the start of the handler, against a bare NOTIFY;
//! * snapshot: claims while an old snapshot is held and a million jobs pass;
//! * memory and idle: what the process takes.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use pgwake::config;
use pgwake::demo::{Options, Server};
use pgwake::ledger::{Job, Ledger, Mark};
use pgwake::model::{Event, WorkerEvent};
use pgwake::pg::{self, Conninfo, Purpose, Session};
use pgwake::profile::Profile;
use pgwake::worker::{self, Handler, HandlerError, Practice, Setup, Stop};
use tokio_postgres::{AsyncMessage, Client, NoTls};

const LEASE: Duration = Duration::from_secs(120);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let quick = words.iter().any(|w| w == "quick");
    let batch: Option<usize> = words.iter().find_map(|w| w.parse().ok());
    let is_part = |w: &&str| *w != "quick" && w.parse::<usize>().is_err();
    let parts: Vec<&str> = words.iter().map(String::as_str).filter(is_part).collect();
    let wanted = |part: &str| parts.is_empty() || parts.contains(&part);
    let settings = [
        ("shared_preload_libraries", "pg_stat_statements"),
        ("pg_stat_statements.track_utility", "on"),
        ("max_wal_size", "8GB"),
    ];
    let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let server = Server::start(Options { settings, ..Options::default() }).expect("a server");
    let runtime = runtime();
    runtime.block_on(async {
        connect(&server.conninfo("postgres")).await.batch_execute("create database bench").await.unwrap();
        let bench = Bench::new(&server, quick).await;
        println!(
            "PostgreSQL {}, {} cores, fsync {}, synchronous_commit {}",
            server.binaries().version(),
            std::thread::available_parallelism().map_or(0, usize::from),
            bench.text("select current_setting('fsync')").await,
            bench.text("select current_setting('synchronous_commit')").await
        );
        if wanted("rates") {
            bench.rates(server.binaries().program("pgbench"), batch).await;
        }
        if wanted("wake") {
            bench.wake().await;
        }
        if wanted("memory") {
            bench.memory().await;
        }
        if wanted("snapshot") {
            bench.snapshot().await;
        }
        if wanted("idle") {
            bench.idle().await;
        }
    });
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn connect(conninfo: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(conninfo, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get(((last as f64) * q).round() as usize).copied().unwrap_or(f64::NAN)
}

fn median(mut values: Vec<f64>) -> f64 {
    quantile(&mut values, 0.5)
}

fn three(mut values: Vec<f64>) -> String {
    let at = [0.5, 0.95, 0.99].map(|q| quantile(&mut values, q));
    format!("p50 {:.3} ms  p95 {:.3} ms  p99 {:.3} ms ({} times)", at[0], at[1], at[2], values.len())
}

struct Bench {
    text: String,
    conninfo: Conninfo,
    db: Client,
    ledger: Ledger,
    quick: bool,
}

/// A handler that says when it began.
struct Tell(mpsc::Sender<(String, Instant)>);

impl Handler for Tell {
    async fn handle(&self, job: Job) -> Result<(), HandlerError> {
        let _ = self.0.send((job.id, Instant::now()));
        Ok(())
    }
}

/// A worker on a thread of its own, as in a process of its own.
struct Running {
    stop: Stop,
    claims: Arc<Mutex<Vec<(Instant, f64, u64)>>>,
    thread: std::thread::JoinHandle<worker::Summary>,
}

impl Running {
    fn start<H: Handler>(setup: Setup, handler: H) -> Self {
        let (stop, ear) = Stop::new();
        let claims: Arc<Mutex<Vec<_>>> = Arc::default();
        let told = claims.clone();
        let sink = Arc::new(move |event: Event| {
            if let Event::Worker(WorkerEvent::Claim { ms, jobs, .. }) = event {
                told.lock().unwrap().push((Instant::now(), ms, jobs));
            }
        });
        let thread = std::thread::spawn(move || {
            runtime().block_on(worker::run(setup, handler, None, sink, ear)).unwrap()
        });
        Self { stop, claims, thread }
    }

    fn stop(self) {
        self.stop.stop();
        self.thread.join().unwrap();
    }
}

impl Bench {
    async fn new(server: &Server, quick: bool) -> Self {
        let text = server.conninfo("bench");
        let migrated = Command::new(env!("CARGO_BIN_EXE_pgwake"))
            .args(["migrate", &text, "--scratch"])
            .output()
            .unwrap();
        assert!(migrated.status.success(), "{migrated:?}");
        let options = pg::Options { conninfo: Some(text.clone()), ..pg::Options::default() };
        let conninfo = Conninfo::resolve(&options, &|_| None).unwrap();
        let session = Session::connect(&conninfo, Purpose::Work).await.unwrap();
        let ledger = Ledger::open(&session, Profile::find("jobs").unwrap()).await.unwrap();
        let db = connect(&text).await;
        db.batch_execute("create extension pg_stat_statements").await.unwrap();
        Self { text, conninfo, db, ledger, quick }
    }

    async fn text(&self, sql: &str) -> String {
        self.db.query_one(&format!("select ({sql})::text"), &[]).await.unwrap().get(0)
    }

    fn setup(&self, settings: config::Worker, until_empty: bool) -> Setup {
        Setup {
            name: "bench".to_owned(),
            conninfo: self.conninfo.clone(),
            profiles: vec![Profile::find("jobs").unwrap()],
            settings,
            until_empty,
        }
    }

    /// So many jobs that are due, three milliseconds apart, and nothing else.
    async fn fill(&self, jobs: usize) {
        self.db
            .batch_execute(&format!(
                "truncate pgwake.jobs;
                 insert into pgwake.jobs (job_type, run_at)
                 select 't', now() - ({jobs} - i) * interval '3 ms' from generate_series(1, {jobs}) i"
            ))
            .await
            .unwrap();
        for sql in ["vacuum analyze pgwake.jobs", "checkpoint"] {
            self.db.batch_execute(sql).await.unwrap();
        }
    }

    fn open_up(batch: usize, sessions: usize) -> config::Worker {
        let concurrency = (batch * 2).max(10);
        config::Worker { batch, concurrency, sessions, budget: None, ..config::Worker::default() }
    }

    /// Jobs per second from the first claim sent to the last end recorded.
    async fn drain(&self, jobs: usize, settings: config::Worker) -> f64 {
        self.fill(jobs).await;
        let running = Running::start(self.setup(settings, true), Practice::Noop);
        let claims = running.claims.clone();
        let done = tokio::task::spawn_blocking(move || (running.thread.join().unwrap(), Instant::now()));
        let (summary, end) = done.await.unwrap();
        assert_eq!(usize::try_from(summary.done).unwrap(), jobs);
        let (first, ms, _) = claims.lock().unwrap()[0];
        jobs as f64 / (end.duration_since(first).as_secs_f64() + ms / 1000.0)
    }

    /// pgbench with the ledger's own statements; `finish` is one of the two that the worker sends first.
    async fn floor(
        &self,
        pgbench: &std::path::Path,
        jobs: usize,
        batch: usize,
        sessions: usize,
        finish: &str,
    ) -> f64 {
        self.fill(jobs).await;
        let all = self.ledger.statements();
        let of = |name: &str| all.iter().find(|(n, _)| *n == name).unwrap().1.to_owned();
        let claim = of("claim")
            .replace("limit $1", &format!("limit {batch}"))
            .replace("$2", "'bench'")
            .replace("$3", "120")
            .replace("$4", "'-infinity'")
            .replace(
                "select k.*, g.n::text\n",
                "select array_agg(k.id)::text as ids, array_agg(k.token)::text as tokens, max(g.n) as n\n",
            );
        assert!(claim.contains("array_agg"), "{claim}");
        let finish = of(finish).replace("$1", ":ids").replace("$2", ":tokens");
        let script = std::env::temp_dir().join(format!("pgwake-drain-{}.sql", std::process::id()));
        std::fs::write(&script, format!("{claim} \\gset\n{finish};\n")).unwrap();
        let passes = jobs / batch / sessions;
        let out = Command::new(pgbench)
            .args(["-n", "-M", "prepared", "-j", &sessions.min(2).to_string()])
            .args(["-c", &sessions.to_string(), "-t", &passes.to_string(), "-f"])
            .arg(&script)
            .arg(&self.text)
            .env(
                "PGOPTIONS",
                "-c jit=off -c enable_seqscan=off -c enable_bitmapscan=off -c enable_sort=off \
                 -c enable_hashjoin=off -c enable_mergejoin=off",
            )
            .output()
            .unwrap();
        let _ = std::fs::remove_file(&script);
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stderr));
        let tps = said.lines().find_map(|l| l.strip_prefix("tps = ")).unwrap();
        let tps: f64 = tps.split(' ').next().unwrap().parse().unwrap();
        tps * batch as f64
    }

    async fn rates(&self, pgbench: std::path::PathBuf, only: Option<usize>) {
        println!("\njobs per second     |          history kept          |      gone when done (keep 0)");
        println!("batch sessions jobs | pgwake   pgbench   ratio       | pgwake   pgbench   ratio");
        for (batch, jobs) in [(1, 2_000), (10, 20_000), (100, 100_000)] {
            if only.is_some_and(|only| only != batch) {
                continue;
            }
            for sessions in [1, 2, 4] {
                let jobs =
                    if self.quick { jobs / 4 } else { jobs } / (batch * sessions) * (batch * sessions);
                let mut all = [const { Vec::new() }; 4];
                for _ in 0..if self.quick { 1 } else { 3 } {
                    let kept = Self::open_up(batch, sessions);
                    let gone = config::Worker { keep: Some(Duration::ZERO), ..kept };
                    all[0].push(self.drain(jobs, kept).await);
                    all[1].push(self.floor(&pgbench, jobs, batch, sessions, "done_at_once").await);
                    all[2].push(self.drain(jobs, gone).await);
                    all[3].push(self.floor(&pgbench, jobs, batch, sessions, "remove_at_once").await);
                }
                let m = all.map(median);
                println!(
                    "{batch:>5} {sessions:>8} {jobs:>6} | {:>6.0}    {:>6.0}   {:>5.2}        | {:>6.0}    {:>6.0}   {:>5.2}",
                    m[0],
                    m[1],
                    m[0] / m[1],
                    m[2],
                    m[3],
                    m[2] / m[3]
                );
            }
        }
        for (batch, sessions) in [(500, 2)] {
            if only.is_some_and(|only| only != batch) {
                continue;
            }
            let jobs = if self.quick { 50_000 } else { 200_000 };
            let kept = Self::open_up(batch, sessions);
            let gone = config::Worker { keep: Some(Duration::ZERO), ..kept };
            let (a, b) = (self.drain(jobs, kept).await, self.drain(jobs, gone).await);
            println!("{batch:>5} {sessions:>8} {jobs:>6} | {a:>6.0}                         | {b:>6.0}");
        }
    }

    async fn wake(&self) {
        self.fill(0).await;
        println!("\nwake-up, from the return of the commit");
        let n = if self.quick { 20 } else { 100 };
        println!("  bare NOTIFY to a listener      {}", three(self.bare(n).await));
        for (eager, what) in
            [(true, "eager, to the handler's start "), (false, "debounced, to the handler's start")]
        {
            let (tell, told) = mpsc::channel();
            let s = config::Worker { eager, ..config::Worker::default() };
            let running = Running::start(self.setup(s, false), Tell(tell));
            let claims = running.claims.clone();
            while claims.lock().unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let mut waits = Vec::new();
            let enqueue = self.db.prepare("select pgwake.enqueue('t')").await.unwrap();
            for _ in 0..if eager { n } else { n / 2 } {
                // A quiet spell longer than the debounce.
                tokio::time::sleep(Duration::from_millis(260)).await;
                self.db.query_one(&enqueue, &[]).await.unwrap();
                let committed = Instant::now();
                let (_, began) = told.recv_timeout(Duration::from_secs(10)).unwrap();
                waits.push(began.saturating_duration_since(committed).as_secs_f64() * 1000.0);
            }
            println!("  {what} {}", three(waits));
            running.stop();
        }
    }

    /// LISTEN in this program and NOTIFY from another session of it.
    async fn bare(&self, n: usize) -> Vec<f64> {
        let (tell, told) = mpsc::channel();
        let text = self.text.clone();
        std::thread::spawn(move || {
            runtime().block_on(async {
                let (client, mut connection) = tokio_postgres::connect(&text, NoTls).await.unwrap();
                let listen = client.batch_execute("listen bare");
                let read = async {
                    loop {
                        let message = std::future::poll_fn(|cx| connection.poll_message(cx)).await;
                        match message {
                            Some(Ok(AsyncMessage::Notification(_))) => {
                                if tell.send(Instant::now()).is_err() {
                                    return;
                                }
                            }
                            Some(Ok(_)) => {}
                            _ => return,
                        }
                    }
                };
                let _ = tokio::join!(listen, read);
            });
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut waits = Vec::new();
        for _ in 0..n {
            tokio::time::sleep(Duration::from_millis(50)).await;
            self.db.batch_execute("notify bare").await.unwrap();
            let committed = Instant::now();
            let heard = told.recv_timeout(Duration::from_secs(5)).unwrap();
            waits.push(heard.saturating_duration_since(committed).as_secs_f64() * 1000.0);
        }
        waits
    }

    /// Claims of ten from the head and from the mark in turn, each on fresh jobs.
    async fn claims(&self, session: &Session, mark: Mark, times: usize) -> (Vec<f64>, Vec<f64>, Mark) {
        let (mut head, mut marked, mut last) = (Vec::new(), Vec::new(), mark);
        for i in 0..times * 2 {
            let add = "insert into pgwake.jobs (job_type) select 't' from generate_series(1, 10)";
            self.db.batch_execute(add).await.unwrap();
            let from = if i % 2 == 0 { Mark::HEAD } else { last };
            let began = Instant::now();
            let claim = self.ledger.claim_from(session, "bench", 10, LEASE, from).await.unwrap();
            let ms = began.elapsed().as_secs_f64() * 1000.0;
            assert_eq!(claim.jobs.len(), 10);
            if i % 2 == 0 {
                head.push(ms)
            } else {
                marked.push(ms)
            }
            last = last.max(claim.last_due.less(Duration::from_secs(2)));
            let claims: Vec<_> = claim.jobs.iter().map(|j| (j.id.clone(), j.token.clone())).collect();
            self.ledger.done(session, &claims).await.unwrap();
        }
        (head, marked, last)
    }

    async fn snapshot(&self) {
        let jobs = if self.quick { 100_000 } else { 1_000_000 };
        let times = if self.quick { 20 } else { 100 };
        println!("\nclaims of 10 while {jobs} jobs pass under an old snapshot");
        let session = Session::connect(&self.conninfo, Purpose::Work).await.unwrap();
        let show = |when: &str, (head, marked): (Vec<f64>, Vec<f64>)| {
            println!("  {when:<7} from the head  {}", three(head));
            println!("  {when:<7} from the mark  {}", three(marked));
        };
        self.fill(0).await;
        let (head, marked, mark) = self.claims(&session, Mark::HEAD, times).await;
        show("before", (head, marked));
        self.fill(jobs).await;
        let old = connect(&self.text).await;
        old.batch_execute("begin isolation level repeatable read; select 1 from pgwake.jobs limit 1")
            .await
            .unwrap();
        let running = Running::start(self.setup(Self::open_up(100, 1), true), Practice::Noop);
        let claims = running.claims.clone();
        tokio::task::spawn_blocking(move || running.thread.join().unwrap()).await.unwrap();
        let of: Vec<f64> = claims.lock().unwrap().iter().filter(|c| c.2 == 100).map(|c| c.1).collect();
        let tenth = (of.len() / 10).max(1);
        println!(
            "  the worker's own claims of 100, first tenth of the way  {}",
            three(of[..tenth].to_vec())
        );
        println!(
            "  the worker's own claims of 100, last tenth of the way   {}",
            three(of[of.len() - tenth..].to_vec())
        );
        let (head, marked, mark) = self.claims(&session, mark, times).await;
        show("during", (head, marked));
        old.batch_execute("commit").await.unwrap();
        self.db.batch_execute("vacuum pgwake.jobs").await.unwrap();
        let (head, marked, _) = self.claims(&session, mark, times).await;
        show("after", (head, marked));
    }

    fn work(&self, more: &[&str]) -> std::process::Child {
        Command::new(env!("CARGO_BIN_EXE_pgwake"))
            .args(["work", &self.text, "--handler", "noop", "--profile", "jobs"])
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    async fn memory(&self) {
        let jobs = if self.quick { 50_000 } else { 200_000 };
        self.fill(jobs).await;
        let args = [
            "--batch",
            "100",
            "--concurrency",
            "100",
            "--sessions",
            "2",
            "--budget",
            "off",
            "--until-empty",
        ];
        let mut child = self.work(&args);
        let mut most: f64 = 0.0;
        while child.try_wait().unwrap().is_none() {
            most = most.max(status(child.id(), "VmHWM:"));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        println!("\nmemory: {most:.1} MiB at the most, 100 concurrent no-op jobs, {jobs} jobs");
    }

    async fn idle(&self) {
        self.fill(0).await;
        let fallback = 15;
        let mut child = self.work(&["--eager", "--fallback", "15s"]);
        tokio::time::sleep(Duration::from_secs(4)).await;
        self.db.batch_execute("select pg_stat_statements_reset()").await.unwrap();
        let (cpu, began) = (status_cpu(child.id()), Instant::now());
        tokio::time::sleep(Duration::from_secs(if self.quick { 16 } else { 45 })).await;
        let seconds = began.elapsed().as_secs_f64();
        let share = (status_cpu(child.id()) - cpu) / seconds * 100.0;
        let found = self
            .db
            .query(
                "select calls, left(regexp_replace(query, '\\s+', ' ', 'g'), 60) from pg_stat_statements
                 where query !~ '(pg_stat_statements|pgwake.workers|pg_listening_channels)' and query !~* '^set local'
                 order by 1 desc",
                &[],
            )
            .await
            .unwrap();
        let calls: i64 = found.iter().map(|r| r.get::<_, i64>(0)).sum();
        println!(
            "\nidle, eager, {seconds:.0} s: {share:.3} % of a core, {:.1} MiB, {:.1} statements per fallback interval of \
             {fallback} s beside heartbeats (SET LOCAL not counted)",
            status(child.id(), "VmRSS:"),
            calls as f64 / seconds * f64::from(fallback)
        );
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// A figure of `/proc/PID/status` in MiB.
fn status(pid: u32, name: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with(name)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// Processor time of all threads that live, in seconds: the first figure of each, in nanoseconds. Ticks of
/// 10 ms would show next to nothing as nothing. Manual: proc(5); kernel documentation, sched-stats.
fn status_cpu(pid: u32) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let spent = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0)
    };
    tasks.flatten().map(spent).sum::<f64>() / 1e9
}
