//! `pgwake drill`.

use std::sync::{Arc, OnceLock};

use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::{Failure, Outcome, block_on, conninfo_to_change, print};
use crate::cli::{Connect, Drill};
use crate::config::Thresholds;
use crate::drill::{self, DrillError, Report, Trial};
use crate::text::{width, wrap};

/// What `--json` prints.
#[derive(Serialize)]
struct Whole<'a> {
    /// Everything that was run held, and something was run.
    held: bool,
    run: usize,
    not_run: usize,
    recovery_p95_s: Option<f64>,
    recovery_limit_s: f64,
    drills: &'a [Report],
}

pub(super) fn run(connect: &Connect, args: Drill) -> Outcome {
    let chosen = drill::choose(&args.names).map_err(Failure::usage)?;
    if args.list {
        return print(&chosen.iter().map(|d| listed(d)).collect::<String>());
    }
    let given =
        [&connect.host, &connect.port, &connect.user, &connect.dbname].into_iter().any(Option::is_some);
    if args.on.is_none() && given {
        return Err(Failure::usage(
            "drill starts a throwaway server; for another one name it with --on CONNINFO",
        ));
    }
    let on = args.on.map(|text| conninfo_to_change(connect, Some(text))).transpose()?;
    let json = args.json;
    let each = |r: &Report| {
        if !json {
            // A reader that went away does not stop the drills: the exit code is still to come.
            let _ = print(&text(r));
        }
    };
    block_on(async {
        let (stop, signalled) = stop_on_signals().map_err(Failure::failed)?;
        let trial = Trial { pg_bin: args.pg_bin.clone(), on, stop: Some(stop), ..Trial::default() };
        let reports = match drill::run(&chosen, &trial, each).await {
            Err(DrillError::Interrupted) => {
                let signal = signalled.get().copied().unwrap_or("a signal");
                return Err(Failure::failed(format!("ended by {signal}")));
            }
            reports => reports.map_err(Failure::failed)?,
        };
        judge(&reports, json)
    })
}

/// The last word, and the exit code that goes with it.
fn judge(reports: &[Report], json: bool) -> Outcome {
    let limit = Thresholds::default().recovery_p95_s;
    let p95 = drill::recovery_p95(reports);
    let mut broken: Vec<&str> = reports.iter().filter(|r| r.is_broken()).map(|r| r.name).collect();
    if p95.is_some_and(|p95| p95 > limit) {
        broken.push("the recovery time");
    }
    let not_run = reports.iter().filter(|r| r.not_run.is_some()).count();
    let run = reports.len() - not_run;
    if json {
        let held = broken.is_empty() && run > 0;
        let whole =
            Whole { held, run, not_run, recovery_p95_s: p95, recovery_limit_s: limit, drills: reports };
        let text = serde_json::to_string_pretty(&whole).map_err(Failure::failed)?;
        print(&format!("{text}\n"))?;
    } else {
        let held = reports.iter().filter(|r| r.held()).count();
        let others = if not_run > 0 { format!(", {not_run} not run here") } else { String::new() };
        let p95 = p95.map_or("nothing to recover from".to_owned(), |p| format!("p95 {p:.1} s"));
        print(&format!("{held} of {run} held{others}; recovery {p95} (limit {limit:.0} s)\n"))?;
    }
    if !broken.is_empty() {
        return Err(Failure::failed(format!("broken: {}", broken.join(", "))));
    }
    if run == 0 {
        return Err(Failure::failed("none of these drills can be run with --on; leave it away"));
    }
    Ok(())
}

/// Turns true at the first signal, whose name is kept; the second one ends the program at once.
fn stop_on_signals() -> std::io::Result<(watch::Receiver<bool>, Arc<OnceLock<&'static str>>)> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    let mut hup = signal(SignalKind::hangup())?;
    let (tell, stop) = watch::channel(false);
    let name = Arc::new(OnceLock::new());
    let kept = name.clone();
    tokio::spawn(async move {
        loop {
            let (code, which) = tokio::select! {
                _ = term.recv() => (143, "SIGTERM"),
                _ = int.recv() => (130, "SIGINT"),
                _ = hup.recv() => (129, "SIGHUP"),
            };
            if kept.set(which).is_err() {
                std::process::exit(code);
            }
            tell.send_replace(true);
        }
    });
    Ok((stop, name))
}

fn listed(d: &drill::Drill) -> String {
    let mut out = format!("{}\n", d.name);
    let mut line = |what: &str, text: &str| out.push_str(&labelled(what, text));
    line("breaks:", d.breaks);
    line("promise:", d.promise);
    if let Some(why) = d.needs_own_server {
        line("not --on:", why);
    }
    out
}

fn text(r: &Report) -> String {
    let verdict = match r.outcome {
        drill::Outcome::Held => "held",
        drill::Outcome::Broken => "BROKEN",
        drill::Outcome::NotRun => "not run",
    };
    let took = if r.not_run.is_some() { String::new() } else { format!("  {:.1} s", r.took_s) };
    let mut out = format!("{verdict:<7} {}{took}\n", r.name);
    let mut line = |what: &str, text: &str| out.push_str(&labelled(what, text));
    line("breaks:", r.breaks);
    line("promise:", r.promise);
    if let Some(why) = &r.not_run {
        line("not here:", why);
    }
    if !r.evidence.is_empty() {
        line("evidence:", &r.evidence.join("; "));
    }
    if !r.recoveries_s.is_empty() {
        let times: Vec<String> = r.recoveries_s.iter().map(|s| format!("{s:.2} s")).collect();
        line("recovery:", &times.join(", "));
    }
    for broken in &r.broken {
        line("broken:", broken);
    }
    out
}

/// Lines are no wider than this: a report is read in a terminal and in a log.
const CELLS: usize = 80;

/// What it is, and the text beside it, broken at spaces.
fn labelled(what: &str, text: &str) -> String {
    let head = format!("  {what:<10}");
    let rows = wrap(text, CELLS - width(&head));
    let mut out = String::new();
    for (i, row) in rows.iter().enumerate() {
        let head = if i == 0 { head.clone() } else { " ".repeat(width(&head)) };
        out.push_str(&format!("{head}{row}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcome: drill::Outcome, recovery_s: f64) -> Report {
        Report {
            name: "poison",
            breaks: "b",
            promise: "p",
            outcome,
            not_run: (outcome == drill::Outcome::NotRun).then(|| "why".to_owned()),
            broken: Vec::new(),
            evidence: Vec::new(),
            recoveries_s: vec![recovery_s],
            took_s: 1.0,
        }
    }

    #[test]
    fn a_broken_promise_a_late_recovery_and_nothing_run_at_all_are_failures() {
        use drill::Outcome::{Broken, Held, NotRun};
        for json in [false, true] {
            assert!(judge(&[report(Held, 1.0), report(NotRun, 1.0)], json).is_ok());
            for (reports, word) in [
                (vec![report(Held, 1.0), report(Broken, 1.0)], "broken: poison"),
                (vec![report(Held, 61.0)], "broken: the recovery time"),
                (vec![report(NotRun, 1.0)], "none of these drills"),
            ] {
                let failure = judge(&reports, json).unwrap_err();
                assert_eq!(failure.code, 1);
                assert!(failure.line.starts_with(word), "{}", failure.line);
            }
        }
    }

    #[test]
    fn every_line_of_the_list_fits_into_a_narrow_terminal() {
        for drill in drill::ALL {
            let text = listed(drill);
            assert!(text.lines().all(|l| width(l) <= CELLS), "{text}");
            assert!(text.lines().count() >= 3, "{text}");
        }
    }
}
