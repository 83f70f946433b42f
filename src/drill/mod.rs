//! The fault drills: break something, wait, and judge by the ledger's final state and by what the
//! handlers did, never by the notifications that were received. On a throwaway server, or in scratch
//! databases on a server that was named.

mod bench;
mod drills;
mod leases;
mod place;
mod process;
mod queue;
mod server;
mod under;
mod wakeups;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::watch;

use crate::pg::Conninfo;
use bench::Bench;
pub use drills::{ALL, Drill};
use place::Place;
pub use under::{Ours, Post, Task, Worker, Working};

/// How one drill ended, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Its promise held.
    Held,
    /// Its promise was broken.
    Broken,
    /// It was not run: nothing is known.
    NotRun,
}

/// How one drill ended.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name on the command line.
    pub name: &'static str,
    /// What it breaks.
    pub breaks: &'static str,
    /// What must hold.
    pub promise: &'static str,
    /// Whether it held, where it was run.
    pub outcome: Outcome,
    /// Why it was not run.
    pub not_run: Option<String>,
    /// What did not hold; empty when all did.
    pub broken: Vec<String>,
    /// Final states, effects, and what else was measured.
    pub evidence: Vec<String>,
    /// From the fault, or from the moment somebody could mend it, until its jobs were done (with a server
    /// that was restarted: until work went on): one for each fault that was mended, seconds.
    pub recoveries_s: Vec<f64>,
    /// How long the drill took, the server's start not included, seconds.
    pub took_s: f64,
}

impl Report {
    /// Whether it was run and held.
    pub fn held(&self) -> bool {
        self.outcome == Outcome::Held
    }

    /// Whether it was run and its promise was broken.
    pub fn is_broken(&self) -> bool {
        self.outcome == Outcome::Broken
    }
}

/// The p95 of the recoveries of all reports, by nearest rank, in seconds; `None` without any.
pub fn recovery_p95(reports: &[Report]) -> Option<f64> {
    let mut all: Vec<f64> = reports.iter().flat_map(|r| r.recoveries_s.iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    let rank = (all.len() * 95).div_ceil(100);
    all.get(rank.checked_sub(1)?).copied()
}

/// What a drill found.
#[derive(Debug, Default)]
struct Verdict {
    broken: Vec<String>,
    evidence: Vec<String>,
    recoveries: Vec<Duration>,
}

impl Verdict {
    /// A part of the promise, and what to say when it is broken.
    fn expect(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(otherwise());
        }
    }

    /// A fault was mended within this time; only told of promises that held.
    fn recovered(&mut self, took: Duration) {
        if self.broken.is_empty() {
            self.recoveries.push(took);
        }
    }
}

/// How to run drills.
pub struct Trial<'a> {
    /// The folder of the server's binaries; searched for if none is given.
    pub pg_bin: Option<PathBuf>,
    /// The worker under test.
    pub worker: &'a dyn Worker,
    /// No drill waits longer for a state than this.
    pub patience: Duration,
    /// Runs on this server, in databases that are created there and dropped again, and not on a throwaway
    /// server. What breaks the server itself is not run then.
    pub on: Option<Conninfo>,
    /// Ends the drills when it turns true; what was created is removed before that.
    pub stop: Option<watch::Receiver<bool>>,
}

impl Default for Trial<'_> {
    fn default() -> Self {
        Self { pg_bin: None, worker: &Ours, patience: Duration::from_secs(60), on: None, stop: None }
    }
}

/// Why drills could not be run at all.
#[derive(Debug, thiserror::Error)]
pub enum DrillError {
    /// No drill of that name.
    #[error("there is no drill {0}; did you mean {near}? There are: {all}", near = nearest(.0), all = names())]
    Unknown(String),
    /// The throwaway server.
    #[error(transparent)]
    Server(#[from] crate::demo::ServerError),
    /// The server that was named.
    #[error("{0}")]
    Unreachable(String),
    /// The server that was named will not do.
    #[error("no drills on {address}: {why}")]
    Refused {
        /// Where.
        address: String,
        /// Why not, and what to do.
        why: String,
    },
    /// A statement of the drill itself.
    #[error("the drill could not be set up: {0}")]
    Setup(String),
    /// A scratch database could not be dropped.
    #[error("the scratch database {name} could not be dropped: {why}; drop it by hand")]
    Left {
        /// Its name.
        name: String,
        /// The server's reason.
        why: String,
    },
    /// Somebody asked for an end.
    #[error("interrupted")]
    Interrupted,
}

fn names() -> String {
    ALL.iter().map(|d| d.name).collect::<Vec<_>>().join(", ")
}

/// The drill whose name takes the fewest changes of a letter to reach from `wanted`.
fn nearest(wanted: &str) -> &'static str {
    let near = ALL.iter().map(|d| d.name).min_by_key(|name| changes(wanted, name));
    near.unwrap_or_default()
}

/// Letters to add, drop or replace (Levenshtein's distance).
fn changes(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = i;
        let mut last = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.chars()) {
            let new = (before + usize::from(x != y)).min(last + 1).min(*cell + 1);
            before = std::mem::replace(cell, new);
            last = new;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// The drills of these names; `all` is all of them.
///
/// # Errors
/// A name that is none of them.
pub fn choose(wanted: &[String]) -> Result<Vec<&'static Drill>, DrillError> {
    let mut chosen: Vec<&'static Drill> = Vec::new();
    for name in wanted {
        if name == "all" {
            return Ok(ALL.iter().collect());
        }
        let drill = ALL.iter().find(|d| d.name == name);
        chosen.push(drill.ok_or_else(|| DrillError::Unknown(crate::text::clean(name)))?);
    }
    Ok(chosen)
}

/// Runs drills one after the other, each in a database of its own.
///
/// # Errors
/// The server or a drill's own preparation; a broken promise is a report, not an error. Whatever ends it,
/// scratch databases on a server that was named are dropped.
pub async fn run(
    drills: &[&'static Drill],
    trial: &Trial<'_>,
    mut each: impl FnMut(&Report),
) -> Result<Vec<Report>, DrillError> {
    let place = unless_stopped(trial, Place::open(trial)).await??;
    let mut reports = Vec::new();
    for drill in drills {
        let report = match drill.needs_own_server.filter(|_| !place.is_own()) {
            Some(why) => Report {
                not_run: Some(format!("needs a server of its own: {why}")),
                ..drill.report(Outcome::NotRun)
            },
            None => {
                let scratch = place.create(drill.name).await?;
                let ran = unless_stopped(trial, run_in(drill, place.clone(), &scratch, trial)).await;
                place.remove(&scratch).await?;
                ran??
            }
        };
        each(&report);
        reports.push(report);
    }
    Ok(reports)
}

async fn run_in(
    drill: &'static Drill,
    place: Place,
    scratch: &Conninfo,
    trial: &Trial<'_>,
) -> Result<Report, DrillError> {
    let under = (trial.worker, trial.patience);
    let mut bench = Bench::new(place, scratch.clone(), drill.ledger, under).await?;
    let began = Instant::now();
    let verdict = drill.run(&mut bench).await?;
    let held = if verdict.broken.is_empty() { Outcome::Held } else { Outcome::Broken };
    Ok(Report {
        broken: verdict.broken,
        evidence: verdict.evidence,
        recoveries_s: verdict.recoveries.iter().map(Duration::as_secs_f64).collect(),
        took_s: began.elapsed().as_secs_f64(),
        ..drill.report(held)
    })
}

/// Does something, and drops it half done when somebody asks for an end.
async fn unless_stopped<T>(trial: &Trial<'_>, what: impl Future<Output = T>) -> Result<T, DrillError> {
    let Some(mut stop) = trial.stop.clone() else { return Ok(what.await) };
    tokio::select! {
        biased;
        // An asker that went away will not ask any more.
        Ok(_) = stop.wait_for(|stop| *stop) => Err(DrillError::Interrupted),
        done = what => Ok(done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_none_is_answered_with_the_nearest() {
        assert_eq!(nearest("poisson"), "poison");
        assert_eq!(nearest("worker-kiled"), "worker-killed");
        assert_eq!((changes("kitten", "sitting"), changes("", "abc"), changes("abc", "")), (3, 3, 3));
    }

    #[test]
    fn the_recovery_p95_is_the_nearest_rank_over_all_drills() {
        let report =
            |times: &[f64]| Report { recoveries_s: times.to_vec(), ..ALL[0].report(Outcome::Held) };
        assert_eq!(recovery_p95(&[report(&[])]), None);
        assert_eq!(recovery_p95(&[report(&[3.0])]), Some(3.0));
        let twenty: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(recovery_p95(&[report(&twenty[10..]), report(&twenty[..10])]), Some(19.0));
    }
}
