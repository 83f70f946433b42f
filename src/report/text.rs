//! One sample in a few lines for people, without an escape byte.

use std::fmt::Write;

use super::evidence;
use crate::model::{Backlog, Quality, Reading, Role, Sample, Server};
use crate::text::{age, ago, count, fit, fit_middle, pad_left, percent, rate};

/// A figure with its quality: `1,204`, `≥10k` as `>=10,000`, `~412/s`, `- (no privilege)`.
fn figure<T>(r: &Reading<T>, show: impl Fn(&T) -> String) -> String {
    let Some(value) = r.value() else {
        return match r.trouble() {
            Some(why) => format!("- ({why})"),
            None => "-".to_owned(),
        };
    };
    let mark = match r.quality() {
        Quality::Exact => "",
        Quality::AtLeast => ">=",
        Quality::Estimate => "~",
    };
    match r.trouble() {
        None => format!("{mark}{}", show(value)),
        Some(why) => format!("{mark}{} (old: {why})", show(value)),
    }
}

/// The text of `pgwake status`.
pub fn status(server: &Server, samples: &[Sample], backlogs: &[Backlog]) -> String {
    let mut out = String::new();
    let role = match server.role {
        Role::Primary => "primary",
        Role::Standby => "standby",
    };
    let _ = writeln!(out, "{}  PG {} {role}", server.address, server.version);
    for s in samples {
        let n = |r: &Reading<u64>| figure(r, |n| count(*n));
        let seconds = |r: &Reading<Option<f64>>| figure(r, |v| v.map_or_else(|| "none".to_owned(), age));
        let share =
            |r: &Reading<Option<f64>>| figure(r, |v| v.map_or_else(|| "no attempts".to_owned(), percent));
        let _ = writeln!(out, "\n{}  at {}", s.ledger, s.taken_at.format("%Y-%m-%d %H:%M:%S UTC"));
        let alive = s.workers.map(|w| w.iter().filter(|w| w.is_alive(s.taken_at)).count());
        let rows = [
            ("ready", n(&s.counts.ready), "oldest ready", seconds(&s.vitals.oldest_ready)),
            ("scheduled", n(&s.counts.scheduled), "next due in", seconds(&s.next_scheduled)),
            ("running", n(&s.counts.running), "expired", n(&s.counts.expired)),
            ("failed", n(&s.counts.failed), "workers alive", figure(&alive, |n| count(*n as u64))),
            (
                "queue usage",
                figure(&s.vitals.queue_usage, |u| percent(*u)),
                "claim success",
                share(&s.vitals.claim_success),
            ),
            (
                "recovery p95",
                figure(&s.vitals.recovery_p95, |v| v.map_or_else(|| "no reconnect".to_owned(), age)),
                "reconnects",
                figure(&s.vitals.reconnects, |n| count(u64::try_from(*n).unwrap_or(0))),
            ),
            ("arrived", figure(&s.flow.arrived, |r| rate(*r)), "done", figure(&s.flow.done, |r| rate(*r))),
        ];
        for (a, av, b, bv) in rows {
            let _ = writeln!(out, "  {} {}  {} {bv}", fit(a, 13), fit(&av, 22), fit(b, 13));
        }
        for line in evidence::lines(s, backlogs.iter().find(|b| b.ledger == s.ledger)) {
            let _ = writeln!(out, "  ! {line}");
        }
    }
    out
}

/// The text of `pgwake leases`: a table, expired first.
pub fn leases(samples: &[Sample]) -> String {
    let mut out = String::new();
    for s in samples {
        let Some(leases) = s.leases.value() else {
            let _ = writeln!(out, "{}: {}", s.ledger, figure(&s.leases, |_| String::new()));
            continue;
        };
        if leases.is_empty() {
            let _ = writeln!(out, "{}: no leases", s.ledger);
            continue;
        }
        let _ = writeln!(
            out,
            "{}  {} {} {} {} expiry",
            fit("ledger", 10),
            pad_left("id", 12),
            fit("type", 16),
            fit("holder", 28),
            fit("attempt", 7)
        );
        for l in leases {
            let expiry = match l.expires {
                None => "never".to_owned(),
                Some(e) => {
                    let left = (e - s.taken_at).as_seconds_f64();
                    if left <= 0.0 {
                        format!("EXPIRED {}", ago(-left))
                    } else {
                        format!("in {}", age(left))
                    }
                }
            };
            let attempt = match (l.attempts, l.max_attempts) {
                (Some(a), Some(m)) => format!("{a}/{m}"),
                (Some(a), None) => a.to_string(),
                _ => "-".to_owned(),
            };
            let _ = writeln!(
                out,
                "{}  {} {} {} {} {expiry}",
                fit(&s.ledger, 10),
                pad_left(&l.id, 12),
                fit(&l.job_type, 16),
                fit_middle(&l.holder, 28),
                fit(&attempt, 7)
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Trouble;
    use chrono::DateTime;

    #[test]
    fn figures_show_their_quality() {
        let at = DateTime::UNIX_EPOCH;
        let show = |r: &Reading<u64>| figure(r, |n| count(*n));
        assert_eq!(show(&Reading::exact(1204, at)), "1,204");
        assert_eq!(show(&Reading::at_least(10_000, at)), ">=10,000");
        assert_eq!(show(&Reading::unknown(Trouble::NoPrivilege)), "- (no privilege)");
        let old = Reading::unknown(Trouble::TimedOut).or_last(&Reading::exact(7, at));
        assert_eq!(show(&old), "7 (old: timed out)");
    }
}
