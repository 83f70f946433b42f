//! Rates from differences. Pure; finished rows are never counted.
//!
//! What came in is the difference of the id sequence. What was finished follows from it and the change
//! of what is left, while all counts are below their cap; else from the counters that workers report.
//! Both are estimates: a rolled-back insert takes a sequence value, too.

use std::collections::{BTreeMap, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};

use crate::model::{Counters, Flow, Reading, Trouble, WorkerRow};

/// Over how long claim success and the fallback share are taken.
const WINDOW: TimeDelta = TimeDelta::seconds(60);

/// What rates need from one pass.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counted {
    /// Server time of the pass.
    pub at: DateTime<Utc>,
    /// Last value of the id sequence.
    pub arrived: Result<Option<i64>, Trouble>,
    /// Ready + scheduled + running + failed, while all are exact.
    pub left: Option<i64>,
}

/// Jobs per second between two passes, and failed attempts as the workers report them.
pub(super) fn flow(last: Option<&Counted>, now: &Counted, reported: &Reported) -> Flow {
    let unknown = |t: Trouble| Reading::unknown(t);
    let first = || Trouble::NotHere("needs a second sample".to_owned());
    let arrived = match (&now.arrived, last.map(|l| &l.arrived)) {
        (Err(t), _) => Err(t.clone()),
        (Ok(_), None | Some(Err(_))) => Err(first()),
        (Ok(now), Some(Ok(last))) => Ok(now.unwrap_or(0) - last.unwrap_or(0)),
    };
    let seconds = last.map(|l| (now.at - l.at).as_seconds_f64()).filter(|s| *s > 0.0);
    let per_second = |n: i64| match seconds {
        // A counter that went backwards was reset: no rate for this interval.
        Some(s) if n >= 0 => Reading::estimate(n as f64 / s, now.at),
        Some(_) => unknown(Trouble::NotHere("counter reset".to_owned())),
        None => unknown(first()),
    };
    let balance = match (&arrived, last.and_then(|l| l.left), now.left, seconds) {
        // The counts are taken by separate statements; a job on its way between two of them can make the
        // balance a little negative.
        (Ok(came), Some(before), Some(after), Some(s)) => {
            Some(((came + before - after).max(0) as f64 / s, came))
        }
        _ => None,
    };
    let done = match (balance, reported.done) {
        (Some((rate, came)), _) if *came >= 0 => Reading::estimate(rate, now.at),
        (_, Some(rate)) => Reading::estimate(rate, now.at),
        _ if last.is_none() => unknown(first()),
        _ => unknown(Trouble::NotHere("too many jobs to count, and no worker reports".to_owned())),
    };
    Flow {
        arrived: match arrived {
            Ok(n) => per_second(n),
            Err(t) => unknown(t),
        },
        done,
        failed: match reported.failed {
            Some(rate) => Reading::estimate(rate, now.at),
            None => unknown(Trouble::NotHere("no worker reports".to_owned())),
        },
    }
}

/// What the workers' counters say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Reported {
    /// Finished per second.
    pub done: Option<f64>,
    /// Failed attempts per second.
    pub failed: Option<f64>,
    /// Sum of the counters' differences over the window.
    pub window: Counters,
}

/// The last minute of every worker's counters.
#[derive(Debug, Default)]
pub(super) struct Workers {
    seen: BTreeMap<String, VecDeque<(DateTime<Utc>, Counters)>>,
}

impl Workers {
    /// Takes the rows of a pass and gives the rates over the workers that are alive.
    pub(super) fn update(&mut self, rows: &[WorkerRow], now: DateTime<Utc>) -> Reported {
        self.seen.retain(|name, _| rows.iter().any(|r| r.name == *name));
        let mut out = Reported::default();
        for row in rows.iter().filter(|r| r.is_alive(now)) {
            let seen = self.seen.entry(row.name.clone()).or_default();
            if seen.is_empty() && now - row.started_at < WINDOW {
                // Young enough for its zero to lie within the window.
                seen.push_back((row.started_at, Counters::default()));
            }
            match seen.back() {
                Some((at, _)) if *at == row.seen_at => {}
                Some((_, last)) if row.counters.since(last).is_none() => {
                    // Went backwards: another process under the same name. Begin anew.
                    seen.clear();
                    seen.push_back((row.seen_at, row.counters));
                }
                _ => seen.push_back((row.seen_at, row.counters)),
            }
            while seen.len() > 2 && now - seen[0].0 > WINDOW {
                seen.pop_front();
            }
            let (Some(first), Some(last)) = (seen.front(), seen.back()) else { continue };
            if let Some(d) = last.1.since(&first.1) {
                out.window = out.window.plus(&d);
            }
            let Some(before) = seen.len().checked_sub(2).and_then(|i| seen.get(i)) else { continue };
            let seconds = (last.0 - before.0).as_seconds_f64();
            if let Some(d) = last.1.since(&before.1).filter(|_| seconds > 0.0) {
                out.done = Some(out.done.unwrap_or(0.0) + d.jobs_done as f64 / seconds);
                out.failed = Some(out.failed.unwrap_or(0.0) + d.jobs_failed as f64 / seconds);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BudgetState, Percentiles};

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_000_000 + second, 0).unwrap()
    }

    fn counted(second: i64, arrived: i64, left: Option<i64>) -> Counted {
        Counted { at: at(second), arrived: Ok(Some(arrived)), left }
    }

    fn worker(name: &str, started: i64, seen: i64, done: i64) -> WorkerRow {
        WorkerRow {
            name: name.into(),
            ledger: "jobs".into(),
            host: "h".into(),
            pid: 1,
            version: "0".into(),
            started_at: at(started),
            seen_at: at(seen),
            counters: Counters { jobs_done: done, claims_got: done, ..Counters::default() },
            reconnects: 0,
            recovery: Percentiles::default(),
            wake_latency: Percentiles::default(),
            claim: Percentiles::default(),
            budget: BudgetState::Open,
        }
    }

    #[test]
    fn what_came_and_did_not_stay_was_finished() {
        let f = flow(Some(&counted(0, 100, Some(50))), &counted(2, 140, Some(30)), &Reported::default());
        assert_eq!(f.arrived.current(), Some(&20.0));
        assert_eq!(f.done.current(), Some(&30.0));
    }

    #[test]
    fn the_first_pass_has_no_rate_and_does_not_say_zero() {
        let f = flow(None, &counted(0, 100, Some(50)), &Reported::default());
        assert_eq!((f.arrived.value(), f.done.value()), (None, None));
        assert!(f.arrived.trouble().unwrap().to_string().contains("second sample"));
    }

    #[test]
    fn a_sequence_that_went_backwards_gives_no_rate() {
        let f = flow(Some(&counted(0, 100, Some(5))), &counted(1, 3, Some(5)), &Reported::default());
        assert_eq!(f.arrived.value(), None);
        assert_eq!(f.done.value(), None);
    }

    #[test]
    fn above_the_cap_the_workers_counters_stand_in() {
        let reported = Reported { done: Some(7.0), ..Reported::default() };
        let f = flow(Some(&counted(0, 1, None)), &counted(1, 1, None), &reported);
        assert_eq!(f.done.current(), Some(&7.0));
        let f = flow(Some(&counted(0, 1, None)), &counted(1, 1, None), &Reported::default());
        assert_eq!(f.done.value(), None);
    }

    #[test]
    fn a_workers_rate_holds_between_its_heartbeats() {
        let mut w = Workers::default();
        w.update(&[worker("a", -100, 0, 100)], at(0));
        let r = w.update(&[worker("a", -100, 5, 150)], at(5));
        assert_eq!(r.done, Some(10.0));
        let r = w.update(&[worker("a", -100, 5, 150)], at(7));
        assert_eq!(r.done, Some(10.0));
        assert_eq!(r.window.jobs_done, 50);
    }

    #[test]
    fn a_dead_worker_and_a_restarted_one_add_no_false_rate() {
        let mut w = Workers::default();
        w.update(&[worker("a", -100, 0, 100)], at(0));
        assert_eq!(w.update(&[worker("a", -100, 0, 100)], at(30)).done, None, "dead");
        assert_eq!(w.update(&[worker("a", 28, 30, 5)], at(30)).done, None, "restarted");
    }

    #[test]
    fn a_young_worker_counts_from_its_start() {
        let mut w = Workers::default();
        let r = w.update(&[worker("a", 0, 5, 20)], at(5));
        assert_eq!(r.done, Some(4.0));
        assert_eq!(r.window.jobs_done, 20);
    }
}
