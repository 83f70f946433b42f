//! `pgwake drill`.

use serde::Serialize;

use super::{Failure, Outcome, block_on, print};
use crate::cli::Drill;
use crate::config::Thresholds;
use crate::drill::{self, Report, Trial};

/// What `--json` prints.
#[derive(Serialize)]
struct Whole<'a> {
    held: bool,
    recovery_p95_s: Option<f64>,
    recovery_limit_s: f64,
    drills: &'a [Report],
}

pub(super) fn run(args: &Drill) -> Outcome {
    let chosen = drill::choose(&args.names).map_err(Failure::usage)?;
    if args.list {
        let line = |d: &&drill::Drill| format!("{:<20}  {}\n{:22}{}\n", d.name, d.breaks, "", d.promise);
        return print(&chosen.iter().map(line).collect::<String>());
    }
    let each = |r: &Report| {
        if !args.json {
            // A reader that went away does not stop the drills: the exit code is still to come.
            let _ = print(&text(r));
        }
    };
    block_on(async {
        let trial = Trial { pg_bin: args.pg_bin.clone(), ..Trial::default() };
        let reports = drill::run(&chosen, &trial, each).await.map_err(Failure::failed)?;
        let limit = Thresholds::default().recovery_p95_s;
        let p95 = drill::recovery_p95(&reports);
        let mut broken: Vec<&str> = reports.iter().filter(|r| !r.held).map(|r| r.name).collect();
        if p95.is_some_and(|p95| p95 > limit) {
            broken.push("the recovery time");
        }
        if args.json {
            let whole = Whole {
                held: broken.is_empty(),
                recovery_p95_s: p95,
                recovery_limit_s: limit,
                drills: &reports,
            };
            let text = serde_json::to_string_pretty(&whole).map_err(Failure::failed)?;
            print(&format!("{text}\n"))?;
        } else {
            let held = reports.iter().filter(|r| r.held).count();
            let p95 = p95.map_or("nothing to recover from".to_owned(), |p| format!("p95 {p:.1} s"));
            print(&format!("{held} of {} held; recovery {p95} (limit {limit:.0} s)\n", reports.len()))?;
        }
        if broken.is_empty() {
            Ok(())
        } else {
            Err(Failure::failed(format!("broken: {}", broken.join(", "))))
        }
    })
}

fn text(r: &Report) -> String {
    let verdict = if r.held { "held  " } else { "BROKEN" };
    let mut out = format!("{verdict}  {}  {:.1} s\n", r.name, r.took_s);
    let mut line = |what: &str, text: &str| out.push_str(&format!("        {what:<10}{text}\n"));
    line("breaks:", r.breaks);
    line("promise:", r.promise);
    line("evidence:", &r.evidence.join("; "));
    if let Some(slowest) = r.recoveries_s.iter().copied().reduce(f64::max) {
        line("recovery:", &format!("{} measured, slowest {slowest:.1} s", r.recoveries_s.len()));
    }
    for broken in &r.broken {
        line("broken:", broken);
    }
    out
}
