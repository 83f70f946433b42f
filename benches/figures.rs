//! The figures of the dashboard on this machine: `cargo bench --bench figures [-- ROWS…]`.
//!
//! Prints, with medians: start to first live frame; memory and CPU of the idle dashboard at 120×36 with
//! 1 s sampling, and what it costs the server; database time of one fast pass on ledgers of ROWS rows
//! (default 100,000 and 1,000,000), as `pg_stat_statements` counts it.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pgwake::config::{Sampling, Thresholds};
use pgwake::demo::{Options, Server};
use pgwake::monitor::{Sampler, Setup};
use pgwake::pg::{self, Conninfo};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use tokio_postgres::NoTls;

/// Starts whose median is given.
const STARTS: usize = 11;
/// How long the idle dashboard is watched.
const IDLE: Duration = Duration::from_secs(30);
/// Passes whose mean is given.
const PASSES: u64 = 20;

fn main() {
    let mut rows: Vec<u64> =
        std::env::args().skip(1).filter_map(|a| a.replace('_', "").parse().ok()).collect();
    if rows.is_empty() {
        rows = vec![100_000, 1_000_000];
    }
    let settings = vec![
        ("shared_preload_libraries".to_owned(), "pg_stat_statements".to_owned()),
        ("pg_stat_statements.track_planning".to_owned(), "on".to_owned()),
    ];
    let server = Server::start(Options { settings, ..Options::default() }).expect("a server");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("PostgreSQL {}", server.binaries().version());
    runtime.block_on(async {
        let admin = connect(&server.conninfo("postgres")).await;
        admin.batch_execute("create database bench").await.unwrap();
        let conninfo = server.conninfo("bench");
        let db = connect(&conninfo).await;
        db.batch_execute("create extension pg_stat_statements").await.unwrap();
        let migrated = std::process::Command::new(env!("CARGO_BIN_EXE_pgwake"))
            .args(["migrate", &conninfo, "--scratch"])
            .output()
            .unwrap();
        assert!(migrated.status.success(), "{migrated:?}");
        first_frame(&conninfo);
        idle(&conninfo, &db).await;
        for n in rows {
            fast_pass(&conninfo, &db, n).await;
        }
    });
}

async fn connect(conninfo: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(conninfo, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

struct Running {
    child: Box<dyn Child + Send + Sync>,
    seen: Arc<Mutex<Vec<u8>>>,
    _master: Box<dyn MasterPty + Send>,
}

fn dashboard(conninfo: &str) -> Running {
    let size = PtySize { rows: 36, cols: 120, pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_pgwake"));
    command.arg(conninfo);
    command.env("TERM", "xterm-256color");
    command.env("LC_ALL", "C.UTF-8");
    let child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (mut reader, bytes) = (pair.master.try_clone_reader().unwrap(), seen.clone());
    std::thread::spawn(move || {
        let mut buf = [0; 65536];
        while let Ok(n) = reader.read(&mut buf) {
            if n == 0 {
                break;
            }
            bytes.lock().unwrap().extend_from_slice(&buf[..n]);
        }
    });
    Running { child, seen, _master: pair.master }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// From exec to the first frame with figures of the server in it: the diagnosis of an empty ledger.
fn first_frame(conninfo: &str) {
    let times: Vec<f64> = (0..STARTS)
        .map(|_| {
            let began = Instant::now();
            let running = dashboard(conninfo);
            loop {
                let live = String::from_utf8_lossy(&running.seen.lock().unwrap()).contains("nothing due");
                if live {
                    return began.elapsed().as_secs_f64() * 1000.0;
                }
                assert!(began.elapsed() < Duration::from_secs(10), "no live frame");
                std::thread::sleep(Duration::from_micros(200));
            }
        })
        .collect();
    println!("start to first live frame: median {:.0} ms of {STARTS} starts", median(times));
}

/// utime + stime in seconds. Manual: proc(5), fields 14 and 15 of /proc/PID/stat, in clock ticks (100/s).
fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = after.split(' ').collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn rss_mib(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

async fn idle(conninfo: &str, db: &tokio_postgres::Client) {
    let running = dashboard(conninfo);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let pid = running.child.process_id().unwrap();
    let backends: Vec<u32> = db
        .query("select pid from pg_stat_activity where application_name like 'pgwake/%'", &[])
        .await
        .unwrap()
        .iter()
        .map(|r| u32::try_from(r.get::<_, i32>(0)).unwrap())
        .collect();
    let total = |pids: &[u32]| pids.iter().map(|p| cpu(*p)).sum::<f64>();
    let (own, theirs, began) = (cpu(pid), total(&backends), Instant::now());
    let bytes = running.seen.lock().unwrap().len();
    tokio::time::sleep(IDLE).await;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "idle dashboard, 120x36, 1 s, {:.0} s: {:.2} % of a core, {:.1} MiB resident, {:.2} % of a core in the \
         server ({} sessions), {:.2} kB/s to the terminal",
        seconds,
        (cpu(pid) - own) / seconds * 100.0,
        rss_mib(pid),
        (total(&backends) - theirs) / seconds * 100.0,
        backends.len(),
        (running.seen.lock().unwrap().len() - bytes) as f64 / seconds / 1000.0
    );
}

/// A tenth of the rows ready, half of those due; one in 20,000 held; the rest done.
async fn fast_pass(conninfo: &str, db: &tokio_postgres::Client, rows: u64) {
    db.batch_execute(&format!(
        "truncate pgwake.jobs;
         insert into pgwake.jobs (job_type, status, run_at, created_at, locked_by, locked_until, lease_token, finished_at)
         select 'type_' || (i % 12),
           case when i % 10 = 0 then 'ready' when i % 20000 = 1 then 'running' else 'done' end,
           case when i % 20 = 0 then now() - random() * interval '1 hour'
                when i % 10 = 0 then now() + interval '10 minutes' + random() * interval '1 hour'
                else now() - interval '1 day' end,
           now() - interval '2 days',
           case when i % 20000 = 1 then 'w' || (i % 7) end,
           case when i % 20000 = 1 then now() + interval '10 minutes' end,
           case when i % 20000 = 1 then gen_random_uuid() end,
           case when i % 10 <> 0 and i % 20000 <> 1 then now() end
         from generate_series(1, {rows}) i"
    ))
    .await
    .unwrap();
    db.batch_execute("vacuum analyze pgwake.jobs").await.unwrap();
    let options = pg::Options { conninfo: Some(conninfo.to_owned()), ..pg::Options::default() };
    let setup = Setup {
        conninfo: Conninfo::resolve(&options, &|_| None).unwrap(),
        profiles: vec![pgwake::profile::Profile::find("jobs").unwrap()],
        sampling: Sampling::default(),
        thresholds: Thresholds::default(),
        read_only: None,
    };
    let mut sampler = Sampler::connect(setup).await.unwrap();
    for _ in 0..5 {
        sampler.sample().await.unwrap();
    }
    db.batch_execute("select pg_stat_statements_reset()").await.unwrap();
    let mut wall = Vec::new();
    for _ in 0..PASSES {
        let began = Instant::now();
        sampler.sample().await.unwrap();
        wall.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    let found = db
        .query(
            "select total_exec_time + total_plan_time, calls, left(regexp_replace(query, '\\s+', ' ', 'g'), 70)
             from pg_stat_statements where query not like '%pg_stat_statements%' and calls >= $1 order by 1 desc",
            &[&i64::try_from(PASSES).unwrap()],
        )
        .await
        .unwrap();
    let total: f64 = found.iter().map(|r| r.get::<_, f64>(0)).sum::<f64>() / PASSES as f64;
    println!(
        "one fast pass, {rows} rows: {total:.2} ms of database time ({} statements), {:.2} ms wall (median of {PASSES})",
        found.len(),
        median(wall)
    );
    for row in found.iter().take(4) {
        println!("    {:6.2} ms  {}", row.get::<_, f64>(0) / PASSES as f64, row.get::<_, String>(2));
    }
}
