//! `fill N` adds N jobs; `drain [KEY=VALUE…]` runs one worker until SIGTERM and says how many it handled.
//! The database is named by the PG* environment variables.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, WorkerContext, WorkerOptions,
};
use serde::{Deserialize, Serialize};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[derive(Clone, Debug, Default)]
struct Handled(Arc<AtomicU64>);

#[derive(Deserialize, Serialize)]
struct Noop {}

impl TaskHandler for Noop {
    const IDENTIFIER: &'static str = "noop";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        if let Some(handled) = context.get_ext::<Handled>() {
            handled.0.fetch_add(1, Ordering::Relaxed);
        }
        Ok::<(), String>(())
    }
}

#[tokio::main]
async fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((mode, rest)) if mode == "fill" && rest.len() == 1 => fill(rest[0].parse()?).await,
        Some((mode, rest)) if mode == "drain" => drain(rest).await,
        _ => Err("usage: fill N | drain [KEY=VALUE…]".into()),
    }
}

/// An address without parts: the driver takes them from the environment.
fn options() -> WorkerOptions {
    WorkerOptions::default().database_url("postgres://").define_job::<Noop>()
}

async fn fill(jobs: usize) -> Outcome {
    let worker = options().init().await?;
    let utils = worker.create_utils();
    let spec = || RawJobSpec {
        identifier: "noop".into(),
        payload: serde_json::json!({}),
        spec: JobSpec::default(),
    };
    let mut left = jobs;
    while left > 0 {
        let part = left.min(10_000);
        let specs: Vec<RawJobSpec> = (0..part).map(|_| spec()).collect();
        utils.add_raw_jobs(&specs).await?;
        left -= part;
    }
    Ok(())
}

async fn drain(words: &[String]) -> Outcome {
    let mut set: HashMap<&str, usize> = HashMap::from([
        ("concurrency", 500),
        ("size", 1_250),
        ("queues", 4),
        ("delay", 5),
        ("pool", 20),
        ("poll", 500),
    ]);
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("{word}: KEY=VALUE expected"))?;
        *set.get_mut(key).ok_or_else(|| format!("{key}: no such setting"))? = value.parse()?;
    }
    let handled = Handled::default();
    let worker = options()
        .max_pg_conn(u32::try_from(set["pool"])?)
        .concurrency(set["concurrency"])
        .poll_interval(Duration::from_millis(set["poll"] as u64))
        .complete_job_batch_delay(Duration::from_millis(set["delay"] as u64))
        .fail_job_batch_delay(Duration::from_millis(set["delay"] as u64))
        .local_queue(LocalQueueConfig::default().with_size(set["size"]).with_queue_count(set["queues"]))
        .add_extension(handled.clone())
        .init()
        .await?;
    worker.run().await?;
    println!("handled {}", handled.0.load(Ordering::Relaxed));
    Ok(())
}
