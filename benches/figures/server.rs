//! The figures that need a server: start, idle, large, pass; `key` has a file of its own.

use std::time::{Duration, Instant};

use pgwake::config::{Sampling, Thresholds};
use pgwake::demo::{Options, Server};
use pgwake::monitor::{Sampler, Setup};
use pgwake::pg::{self, Conninfo};
use tokio_postgres::NoTls;

use crate::terminal::Running;
use crate::{cpu, key, memory, ms, quantile};

/// Starts whose median is given.
const STARTS: usize = 11;
/// How long a dashboard is watched.
const IDLE: Duration = Duration::from_secs(30);
/// Passes whose mean is given.
const PASSES: u64 = 20;

/// Which figures are asked for.
pub struct Wanted {
    pub start: bool,
    pub idle: bool,
    pub large: bool,
    pub key: bool,
    pub pass: bool,
}

pub fn all(wanted: Wanted, rows: &[u64]) {
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
        if wanted.start {
            first_frame(&conninfo);
        }
        if wanted.idle {
            watched("idle dashboard", &conninfo, &db).await;
        }
        if wanted.large {
            large(&conninfo, &db).await;
        }
        if wanted.key {
            key::all(&conninfo, &db).await;
        }
        if wanted.pass {
            for n in rows {
                fast_pass(&conninfo, &db, *n).await;
            }
        }
    });
}

async fn connect(conninfo: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(conninfo, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// From exec to the first frame with figures of the server in it: the diagnosis of an empty ledger.
fn first_frame(conninfo: &str) {
    let times = (0..STARTS)
        .map(|_| {
            let began = Instant::now();
            let running = Running::start(&[conninfo]);
            running.wait("a live frame", |t| t.contains("nothing due"));
            began.elapsed()
        })
        .collect();
    let times = ms(times);
    println!(
        "start to first live frame: median {:.0} ms, longest {:.0} ms of {STARTS} starts",
        quantile(&times, 0.5),
        quantile(&times, 1.0)
    );
}

/// The backends of the running dashboard.
pub async fn backends(db: &tokio_postgres::Client) -> Vec<String> {
    let sql = "select pid::text from pg_stat_activity where application_name like 'pgwake/%'";
    db.query(sql, &[]).await.unwrap().iter().map(|r| r.get(0)).collect()
}

/// The dashboard on what the ledger holds, left alone.
async fn watched(what: &str, conninfo: &str, db: &tokio_postgres::Client) {
    let running = Running::start(&[conninfo]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let pid = running.pid();
    let backends = backends(db).await;
    let total = |pids: &[String]| pids.iter().map(|p| cpu(p)).sum::<f64>();
    let (own, theirs, began) = (cpu(&pid), total(&backends), Instant::now());
    let bytes = running.bytes();
    tokio::time::sleep(IDLE).await;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{what}, 120x36, 1 s, {seconds:.0} s: {:.2} % of a core, {:.1} MiB resident (highest {:.1}), {:.2} % of a \
         core in the server ({} sessions), {:.2} kB/s to the terminal",
        (cpu(&pid) - own) / seconds * 100.0,
        memory(&pid, "VmRSS"),
        memory(&pid, "VmHWM"),
        (total(&backends) - theirs) / seconds * 100.0,
        backends.len(),
        (running.bytes() - bytes) as f64 / seconds / 1000.0
    );
}

/// The same with 10,000 leases that are held and 500 workers that have reported.
async fn large(conninfo: &str, db: &tokio_postgres::Client) {
    db.batch_execute(
        "insert into pgwake.jobs (job_type, status, attempts, locked_by, locked_until, lease_token)
         select 'type_' || i % 12, 'running', 1, 'worker-' || i % 500, now() + interval '1 hour', gen_random_uuid()
         from generate_series(1, 10000) i;
         insert into pgwake.workers (name, ledger, host, pid, version, started_at, seen_at)
         select 'worker-' || i, 'jobs', 'app-' || i % 20, i, '0.1.0', now(), now() + interval '1 hour'
         from generate_series(1, 500) i;
         analyze pgwake.jobs",
    )
    .await
    .unwrap();
    watched("10,000 leases and 500 workers", conninfo, db).await;
    db.batch_execute("truncate pgwake.jobs; truncate pgwake.workers").await.unwrap();
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
        wall.push(began.elapsed());
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
        quantile(&ms(wall), 0.5)
    );
    for row in found.iter().take(4) {
        println!("    {:6.2} ms  {}", row.get::<_, f64>(0) / PASSES as f64, row.get::<_, String>(2));
    }
}
