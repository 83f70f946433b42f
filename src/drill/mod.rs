//! The fault drills: break something on a throwaway server, wait, and judge by the ledger's final state
//! and by what the handlers did, never by the notifications that were received.

mod bench;
mod drills;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

pub use drills::{ALL, Drill};

/// How one drill ended.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name on the command line.
    pub name: &'static str,
    /// What it breaks.
    pub breaks: &'static str,
    /// What must hold.
    pub promise: &'static str,
    /// Whether it held.
    pub held: bool,
    /// The evidence: final states and effects.
    pub evidence: String,
    /// How long it took, the server's start not included.
    pub took: Duration,
}

/// Why drills could not be run at all.
#[derive(Debug, thiserror::Error)]
pub enum DrillError {
    /// No drill of that name.
    #[error("there is no drill {0}; there are: {all}", all = names())]
    Unknown(String),
    /// The throwaway server.
    #[error(transparent)]
    Server(#[from] crate::demo::ServerError),
    /// A statement of the drill itself.
    #[error("the drill could not be set up: {0}")]
    Setup(String),
}

fn names() -> String {
    ALL.iter().map(|d| d.name).collect::<Vec<_>>().join(", ")
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

/// Runs drills one after the other, each on a database of its own on one throwaway server.
///
/// # Errors
/// The server or a drill's own preparation; a broken promise is a report, not an error.
pub async fn run(
    drills: &[&'static Drill],
    pg_bin: Option<PathBuf>,
    mut each: impl FnMut(&Report),
) -> Result<Vec<Report>, DrillError> {
    let start = move || {
        crate::demo::Server::start(crate::demo::Options { pg_bin, ..crate::demo::Options::default() })
    };
    let server =
        tokio::task::spawn_blocking(start).await.map_err(|e| DrillError::Setup(e.to_string()))??;
    let mut reports = Vec::new();
    for drill in drills {
        let bench = bench::Bench::new(&server, drill.name).await?;
        let began = std::time::Instant::now();
        let verdict = drill.run(bench).await?;
        let report = Report {
            name: drill.name,
            breaks: drill.breaks,
            promise: drill.promise,
            held: verdict.held,
            evidence: verdict.evidence,
            took: began.elapsed(),
        };
        each(&report);
        reports.push(report);
    }
    Ok(reports)
}
