//! `pgwake drill` on the command line.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/program.rs"]
mod program;

use program::run;

#[test]
fn a_drill_that_does_not_exist_is_answered_with_the_nearest_and_usage() {
    let ran = run(&["drill", "wakups-lost"], &[], "");
    assert_eq!(ran.code, 2, "{ran:?}");
    assert_eq!(ran.out, "");
    assert!(ran.err.contains("no drill wakups-lost; did you mean wakeups-lost?"), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
}

#[test]
fn the_list_names_every_drill_and_runs_none() {
    let ran = run(&["drill", "--list"], &[("PATH", "")], "");
    assert_eq!(ran.code, 0, "{ran:?}");
    // Lines are broken at spaces.
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for drill in pgwake::drill::ALL {
        assert!(words.contains(drill.name) && words.contains(drill.promise), "{}", ran.out);
    }
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
}

#[test]
fn a_drill_is_reported_as_json_with_its_recovery_against_the_limit() {
    let ran = run(&["drill", "listener-down", "--json"], &[], "");
    assert_eq!(ran.code, 0, "{ran:?}");
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["held"], true);
    assert_eq!(report["recovery_limit_s"], 60.0);
    assert!(report["recovery_p95_s"].as_f64().unwrap() > 0.0);
    assert_eq!(report["drills"][0]["name"], "listener-down");
    assert_eq!(report["drills"][0]["outcome"], "held");
    assert_eq!(report["drills"][0]["broken"], serde_json::json!([]));
    assert_eq!((&report["run"], &report["not_run"]), (&1.into(), &0.into()));
}
