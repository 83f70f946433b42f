//! What the worker's tests share: a migrated database, a worker with short settings, and handlers made
//! of closures.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgwake::config;
use pgwake::demo::Server;
use pgwake::ledger::{Job, migrate};
use pgwake::model::{Event, WorkerEvent};
use pgwake::pg::{Conninfo, Options, Purpose, Session};
use pgwake::profile::{Profile, builtin};
use pgwake::worker::{self, Handler, HandlerError, Setup, Stop, Summary, WorkerError};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::support::{DEADLINE, Db, database, database_on, wait_until};

/// Short, except for the fallback: a test that does not mean it never sees it.
pub fn settings() -> config::Worker {
    config::Worker {
        fallback: Duration::from_secs(120),
        debounce: Duration::from_millis(40),
        budget: None,
        grace: Duration::from_secs(5),
        heartbeat: Duration::from_millis(50),
        backoff: Duration::from_millis(20),
        backoff_max: Duration::from_millis(80),
        ..config::Worker::default()
    }
}

pub fn profile(name: &str) -> Profile {
    builtin(name).unwrap().unwrap()
}

/// A database with the ledgers in it.
pub struct Bench {
    pub db: Db,
    pub sql: Client,
    pub conninfo: Conninfo,
}

impl Bench {
    pub async fn new() -> Self {
        Self::over(database().await).await
    }

    pub async fn on(server: &Server) -> Self {
        Self::over(database_on(server).await).await
    }

    async fn over(db: Db) -> Self {
        let given = Options { conninfo: Some(db.conninfo().to_owned()), ..Options::default() };
        let conninfo = Conninfo::resolve(&given, &|_| None).unwrap();
        let mut session = Session::connect(&conninfo, Purpose::Command).await.unwrap();
        migrate(&mut session).await.unwrap();
        Self { sql: db.connect().await, db, conninfo }
    }

    pub async fn run(&self, sql: &str) {
        self.sql.batch_execute(sql).await.unwrap();
    }

    pub async fn number(&self, sql: &str) -> i64 {
        self.sql.query_one(&format!("select ({sql})::bigint"), &[]).await.unwrap().get(0)
    }

    pub async fn text(&self, sql: &str) -> String {
        self.sql.query_one(&format!("select ({sql})::text"), &[]).await.unwrap().get(0)
    }

    pub async fn until(&self, n: i64, what: &str, sql: &str) {
        wait_until(what, DEADLINE, async || (self.number(sql).await == n).then_some(())).await;
    }

    pub async fn until_done(&self, n: i64) {
        self.until(n, "jobs done", "select count(*) from pgwake.jobs where status = 'done'").await;
    }

    /// Jobs with their wake-up, in one commit.
    pub async fn enqueue(&self, n: usize) {
        self.run(&format!(
            "select count(*) from pgwake.enqueue_many(array_fill('t'::text, array[{n}]), array_fill('{{}}'::jsonb, array[{n}]))"
        ))
        .await;
    }

    /// Jobs without a wake-up.
    pub async fn insert(&self, n: usize) {
        self.run(&format!("insert into pgwake.jobs (job_type) select 't' from generate_series(1, {n})"))
            .await;
    }

    /// A figure of the worker on the ledger `jobs`, as it reports it.
    pub async fn counter(&self, name: &str) -> i64 {
        self.counter_of("jobs", name).await
    }

    pub async fn counter_of(&self, ledger: &str, name: &str) -> i64 {
        self.number(&format!(
            "select coalesce((select sum({name}) from pgwake.workers where ledger = '{ledger}'), 0)"
        ))
        .await
    }

    pub async fn until_counter(&self, name: &str, n: i64) {
        wait_until(name, DEADLINE, async || (self.counter(name).await == n).then_some(())).await;
    }

    /// Pids of sessions of one purpose in this database; listen sessions only when they are proven.
    pub async fn pids(&self, purpose: &str) -> Vec<i32> {
        let proven = if purpose == "listen" {
            "and state = 'idle' and query like '%pg_listening_channels%'"
        } else {
            ""
        };
        let rows = self
            .sql
            .query(
                &format!(
                    "select pid from pg_stat_activity where datname = current_database() \
                     and application_name ~ '/{purpose}( |$)' {proven}"
                ),
                &[],
            )
            .await
            .unwrap();
        rows.iter().map(|r| r.get(0)).collect()
    }

    pub async fn terminate(&self, pid: i32) {
        self.run(&format!("select pg_terminate_backend({pid})")).await;
    }

    pub fn setup(&self, settings: config::Worker) -> Setup {
        Setup {
            name: "w".to_owned(),
            conninfo: self.conninfo.clone(),
            profiles: vec![profile("jobs")],
            settings,
            until_empty: false,
        }
    }

    /// Starts a worker on the ledger `jobs`; returns when it is listening and has scanned.
    pub async fn start<H: Handler>(&self, settings: config::Worker, handler: H) -> Running {
        let running = Running::start(self.setup(settings), handler);
        running.until("the first drain", |e| matches!(e, WorkerEvent::Drained { .. })).await;
        running
    }
}

/// A worker at work.
pub struct Running {
    pub stop: Stop,
    pub events: Arc<Mutex<Vec<Event>>>,
    pub task: JoinHandle<Result<Summary, WorkerError>>,
}

impl Running {
    pub fn start<H: Handler>(setup: Setup, handler: H) -> Self {
        let (stop, ear) = Stop::new();
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let told = events.clone();
        let sink = Arc::new(move |event: Event| told.lock().unwrap().push(event));
        let task = tokio::spawn(worker::run(setup, handler, None, sink, ear));
        Self { stop, events, task }
    }

    pub fn worker_events(&self) -> Vec<WorkerEvent> {
        let events = self.events.lock().unwrap();
        events
            .iter()
            .filter_map(|e| if let Event::Worker(w) = e { Some(w.clone()) } else { None })
            .collect()
    }

    pub fn count(&self, what: impl Fn(&WorkerEvent) -> bool) -> usize {
        self.worker_events().iter().filter(|e| what(e)).count()
    }

    pub async fn until(&self, what: &str, which: impl Fn(&WorkerEvent) -> bool) -> WorkerEvent {
        wait_until(what, DEADLINE, async || {
            assert!(!self.task.is_finished(), "the worker has ended, waiting for {what}");
            self.worker_events().into_iter().find(|e| which(e))
        })
        .await
    }

    pub async fn stop(self) -> Summary {
        self.stop.stop();
        self.task.await.unwrap().unwrap()
    }
}

/// A handler made of a closure.
pub struct Do<F>(pub F);

impl<F, R> Handler for Do<F>
where
    F: Fn(Job) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), HandlerError>> + Send,
{
    async fn handle(&self, job: Job) -> Result<(), HandlerError> {
        (self.0)(job).await
    }
}

/// What handlers did: one entry for each run.
#[derive(Clone, Default)]
pub struct Effects(Arc<Mutex<Vec<String>>>);

impl Effects {
    pub fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub fn all(&self) -> Vec<String> {
        let mut all = self.0.lock().unwrap().clone();
        all.sort();
        all
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Notes the job's id and is done.
    pub fn handler(&self) -> impl Handler {
        let effects = self.clone();
        Do(move |job: Job| {
            effects.add(job.id);
            std::future::ready(Ok(()))
        })
    }

    /// Every id from 1 to `n`, each once.
    pub fn assert_each_once(&self, n: usize) {
        let mut ids: Vec<usize> = self.0.lock().unwrap().iter().map(|id| id.parse().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, (1..=n).collect::<Vec<_>>());
    }
}

/// Processor time of this thread so far. A test's runtime has one thread, so this is the worker's, too.
pub fn busy() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}
