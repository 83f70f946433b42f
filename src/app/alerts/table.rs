//! The table of alerts: one row each. A new one is a row here and a runbook beside it.

use super::{Judged, Look, Verdict};
use crate::app::health::Level;
use crate::model::{Quality, Reading, Session, SessionMark, Trouble};
use crate::text::{age, count, percent};

/// A figure is clearly good again at this share of the way to its limit.
const MARGIN: f64 = 0.9;

/// One row.
#[derive(Debug)]
pub struct Alert {
    /// Its name: in the log, in JSON, of its runbook.
    pub name: &'static str,
    /// What is wrong, in a few words.
    pub title: &'static str,
    /// How bad.
    pub level: Level,
    /// How a sample stands to its condition.
    pub(super) judge: fn(Look<'_>) -> Judged,
    /// How long the condition must last, seconds; 0 fires at once.
    pub(super) hold: fn(Look<'_>) -> f64,
    /// Its runbook, in Markdown.
    pub runbook: &'static str,
}

/// A row is its name.
impl PartialEq for Alert {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

macro_rules! alert {
    ($name:literal, $title:literal, $level:ident, $judge:expr, $hold:expr) => {
        Alert {
            name: $name,
            title: $title,
            level: Level::$level,
            judge: $judge,
            hold: $hold,
            runbook: include_str!(concat!("../runbooks/", $name, ".md")),
        }
    };
}

/// Every alert, in the order shown: what stops the queue before what slows it down. Limits, and the times where
/// one is named, are those of the contract's starting values; the others hold for `broken_for`. Shares of a
/// minute's jobs and claims are shares of few just after the start, so they have to last as well.
#[rustfmt::skip]
pub static ALERTS: &[Alert] = &[
    alert!("table-locked", "table locked", Critical, table_locked, broken),
    alert!("numbers-stale", "no numbers arrive", Warn, stale, at_once),
    alert!("no-worker", "no worker alive", Critical, no_worker, broken),
    alert!("queue-full", "notification queue fills", Critical, |l| usage(l, l.limits.queue_usage_critical), at_once),
    alert!("queue-usage", "notification queue grows", Warn, |l| usage(l, l.limits.queue_usage_warn), |l| l.limits.queue_usage_for_s),
    alert!("oldest-ready", "oldest ready job is late", Warn, |l| above(&l.sample.vitals.oldest_ready, l.limits.oldest_ready_s, age), at_once),
    alert!("leases-expired", "leases stay expired", Warn, expired, |l| l.fallback_s),
    alert!("claim-success", "claims find rows locked", Warn, claim_success, broken),
    alert!("claim-slow", "claims are slow", Warn, |l| above(&l.sample.vitals.claim_p99_ms, l.limits.claim_p99_ms, millis), at_once),
    alert!("notify-lock", "producers wait to commit", Warn, notify_lock, broken),
    alert!("wake-ups-missing", "wake-ups do not arrive", Warn, |l| above(&l.sample.vitals.fallback_share, l.limits.fallback_share, percent), |l| l.fallback_s),
    alert!("listener-transaction", "listener in a transaction", Warn, listener_transaction, at_once),
    alert!("listener-not-reading", "listener does not read", Warn, not_reading, broken),
    alert!("recovery", "recovery takes long", Warn, |l| above(&l.sample.vitals.recovery_p95, l.limits.recovery_p95_s, age), at_once),
];

/// The alert that fires when samples stay away.
pub(super) const STALE: &str = "numbers-stale";

fn stale(look: Look<'_>) -> Judged {
    bad_if(look.age_s > look.longest_pause_s(), format!("{} old", age(look.age_s)))
}

fn at_once(_: Look<'_>) -> f64 {
    0.0
}

fn broken(look: Look<'_>) -> f64 {
    look.limits.broken_for_s
}

/// `0.4ms`, `12ms`, from a second on as an age.
pub(super) fn millis(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.1}ms"),
        ms if ms < 1_000.0 => format!("{ms:.0}ms"),
        ms => age(ms / 1e3),
    }
}

fn said(verdict: Verdict, figure: impl Into<String>) -> Judged {
    Judged { verdict, figure: figure.into() }
}

fn bad_if(bad: bool, figure: impl Into<String>) -> Judged {
    said(if bad { Verdict::Bad } else { Verdict::Good }, figure)
}

/// Nothing can be said. A kept value says nothing about now.
fn unknown<T>(reading: &Reading<T>) -> Judged {
    let why = reading.trouble().map_or_else(|| "not read yet".to_owned(), ToString::to_string);
    said(Verdict::Unknown(why), "—")
}

/// More than `limit` is bad.
fn above(reading: &Reading<Option<f64>>, limit: f64, text: fn(f64) -> String) -> Judged {
    match reading.current() {
        None => unknown(reading),
        Some(None) => said(Verdict::Good, "none"),
        Some(Some(v)) if *v > limit => said(Verdict::Bad, text(*v)),
        Some(Some(v)) if *v > limit * MARGIN => said(Verdict::Near, text(*v)),
        Some(Some(v)) => said(Verdict::Good, text(*v)),
    }
}

/// The share of the notification queue: the limit itself is bad.
fn usage(look: Look<'_>, limit: f64) -> Judged {
    let reading = &look.sample.vitals.queue_usage;
    match reading.current() {
        None => unknown(reading),
        Some(v) if *v >= limit => said(Verdict::Bad, percent(*v)),
        Some(v) if *v >= limit * MARGIN => said(Verdict::Near, percent(*v)),
        Some(v) => said(Verdict::Good, percent(*v)),
    }
}

/// Less than the limit is bad; the margin is a tenth of what may fail.
fn claim_success(look: Look<'_>) -> Judged {
    let (reading, limit) = (&look.sample.vitals.claim_success, look.limits.claim_success);
    match reading.current() {
        None => unknown(reading),
        Some(None) => said(Verdict::Good, "none"),
        Some(Some(v)) if *v < limit => said(Verdict::Bad, percent(*v)),
        Some(Some(v)) if *v < 1.0 - (1.0 - limit) * MARGIN => said(Verdict::Near, percent(*v)),
        Some(Some(v)) => said(Verdict::Good, percent(*v)),
    }
}

/// A count with its quality.
pub(super) fn quantity(reading: &Reading<u64>) -> Option<String> {
    let n = count(*reading.current()?);
    Some(match reading.quality() {
        Quality::Exact => n,
        Quality::AtLeast => format!("≥{n}"),
        Quality::Estimate => format!("~{n}"),
    })
}

fn expired(look: Look<'_>) -> Judged {
    let reading = &look.sample.counts.expired;
    match reading.current() {
        None => unknown(reading),
        Some(n) => bad_if(*n > 0, quantity(reading).unwrap_or_default()),
    }
}

/// Another session holds the ledger against readers: the only trouble that is itself the finding.
fn table_locked(look: Look<'_>) -> Judged {
    let reading = &look.sample.counts.ready;
    match reading.trouble() {
        Some(Trouble::Locked) => said(Verdict::Bad, "locked"),
        Some(_) => unknown(reading),
        None => said(Verdict::Good, "free"),
    }
}

/// Work is due, and nobody reports, holds or finishes anything.
fn no_worker(look: Look<'_>) -> Judged {
    let s = look.sample;
    let c = &s.counts;
    let (Some(ready), Some(running), Some(expired)) =
        (c.ready.current(), c.running.current(), c.expired.current())
    else {
        let of = [&c.ready, &c.running, &c.expired];
        return unknown(of.into_iter().find(|r| !r.is_current()).unwrap_or(&c.ready));
    };
    let due = ready + expired;
    if due == 0 {
        return said(Verdict::Good, "nothing due");
    }
    let Some(rows) = s.workers.current() else { return unknown(&s.workers) };
    let alive = rows.iter().filter(|w| w.is_alive(s.taken_at)).count();
    if alive > 0 {
        return said(Verdict::Good, format!("{} alive", count(alive as u64)));
    }
    // one that does not report shows itself by what it holds or finishes
    if running > expired || s.flow.done.current().is_some_and(|d| *d > 0.0) {
        return said(Verdict::Good, "none reports, but jobs are worked on");
    }
    let mark = if c.ready.quality() == Quality::AtLeast { "≥" } else { "" };
    said(Verdict::Bad, format!("{mark}{} due", count(due)))
}

fn notify_lock(look: Look<'_>) -> Judged {
    let reading = &look.sample.notify_lock;
    match reading.current() {
        None => unknown(reading),
        Some(lock) => bad_if(lock.waiters > 0, format!("{} waiting", count(lock.waiters))),
    }
}

/// Sessions with that mark.
pub(super) fn marked<'a>(look: Look<'a>, mark: SessionMark) -> impl Iterator<Item = &'a Session> {
    look.sample.sessions.current().into_iter().flatten().filter(move |s| s.marks.contains(&mark))
}

/// The open transactions of listeners, p99 by nearest rank: with fewer than a hundred of them the oldest. That
/// a session listens is a guess from its last statement, as there is no view of other sessions' channels.
fn listener_transaction(look: Look<'_>) -> Judged {
    let reading = &look.sample.sessions;
    if reading.current().is_none() {
        return unknown(reading);
    }
    let open = |s: &Session| s.transaction_age.unwrap_or(0.0);
    let mut ages: Vec<f64> = marked(look, SessionMark::ProbableListener).map(open).collect();
    ages.sort_by(f64::total_cmp);
    let rank = (ages.len() * 99).div_ceil(100);
    let p99 = rank.checked_sub(1).and_then(|at| ages.get(at)).copied().filter(|a| *a > 0.0);
    above(&reading.map(|_| p99), look.limits.listener_transaction_s, age)
}

fn not_reading(look: Look<'_>) -> Judged {
    let reading = &look.sample.sessions;
    if reading.current().is_none() {
        return unknown(reading);
    }
    let n = marked(look, SessionMark::NotReading).count();
    bad_if(n > 0, count(n as u64))
}

#[cfg(test)]
mod tests {
    use super::super::ALERTS;
    use super::*;
    use crate::config::Thresholds;
    use crate::model::{NotifyLock, Sample};
    use chrono::DateTime;

    fn verdict(name: &str, sample: &Sample) -> Verdict {
        let limits = Thresholds::default();
        let look = Look::fresh(sample, &limits, 30.0);
        super::super::Alert::find(name).unwrap().1.judge(look).verdict
    }

    /// A sample in which everything was read and nothing is wrong.
    fn calm() -> Sample {
        let at = DateTime::UNIX_EPOCH;
        let mut s = Sample::empty("jobs", at);
        s.counts.ready = Reading::exact(0, at);
        s.counts.running = Reading::exact(0, at);
        s.counts.expired = Reading::exact(0, at);
        s.vitals.oldest_ready = Reading::exact(None, at);
        s.vitals.queue_usage = Reading::exact(0.0, at);
        s.vitals.claim_success = Reading::exact(Some(1.0), at);
        s.vitals.claim_p99_ms = Reading::exact(Some(3.0), at);
        s.vitals.recovery_p95 = Reading::exact(None, at);
        s.vitals.fallback_share = Reading::exact(Some(0.0), at);
        s.workers = Reading::exact(Vec::new(), at);
        s.sessions = Reading::exact(Vec::new(), at);
        s.notify_lock = Reading::exact(NotifyLock::default(), at);
        s
    }

    #[test]
    fn of_a_sample_without_readings_nothing_is_judged() {
        let empty = Sample::empty("jobs", DateTime::UNIX_EPOCH);
        for a in ALERTS.iter().filter(|a| a.name != STALE) {
            assert!(matches!(verdict(a.name, &empty), Verdict::Unknown(_)), "{}", a.name);
            assert_eq!(verdict(a.name, &calm()), Verdict::Good, "{}", a.name);
        }
    }

    #[test]
    fn the_limits_are_those_of_the_contract() {
        let at = DateTime::UNIX_EPOCH;
        let figure = |set: &dyn Fn(&mut Sample)| {
            let mut s = calm();
            set(&mut s);
            s
        };
        for (name, value, want) in [
            ("oldest-ready", 60.0, Verdict::Near),
            ("oldest-ready", 60.1, Verdict::Bad),
            ("oldest-ready", 54.0, Verdict::Good),
            ("recovery", 60.1, Verdict::Bad),
            ("claim-slow", 100.0, Verdict::Near),
            ("claim-slow", 101.0, Verdict::Bad),
            ("claim-success", 0.9, Verdict::Near),
            ("claim-success", 0.899, Verdict::Bad),
            ("claim-success", 0.92, Verdict::Good),
            ("wake-ups-missing", 0.5, Verdict::Near),
            ("wake-ups-missing", 0.51, Verdict::Bad),
            ("queue-usage", 0.10, Verdict::Bad),
            ("queue-usage", 0.095, Verdict::Near),
            ("queue-full", 0.10, Verdict::Good),
            ("queue-full", 0.30, Verdict::Bad),
        ] {
            let s = figure(&|s: &mut Sample| match name {
                "oldest-ready" => s.vitals.oldest_ready = Reading::exact(Some(value), at),
                "recovery" => s.vitals.recovery_p95 = Reading::exact(Some(value), at),
                "claim-slow" => s.vitals.claim_p99_ms = Reading::exact(Some(value), at),
                "claim-success" => s.vitals.claim_success = Reading::exact(Some(value), at),
                "wake-ups-missing" => s.vitals.fallback_share = Reading::exact(Some(value), at),
                _ => s.vitals.queue_usage = Reading::exact(value, at),
            });
            assert_eq!(verdict(name, &s), want, "{name} {value}");
        }
    }

    #[test]
    fn what_is_critical_by_a_figure_fires_at_once_and_a_share_of_few_does_not() {
        let (limits, s) = (Thresholds::default(), calm());
        let hold = |name| super::super::Alert::find(name).unwrap().1.hold_s(Look::fresh(&s, &limits, 30.0));
        let all = [
            "queue-full",
            "oldest-ready",
            "queue-usage",
            "leases-expired",
            "wake-ups-missing",
            "no-worker",
        ];
        assert_eq!(all.map(hold), [0.0, 0.0, 600.0, 30.0, 30.0, 5.0]);
    }

    #[test]
    fn without_a_worker_that_reports_there_are_signs_of_others() {
        let at = DateTime::UNIX_EPOCH;
        let mut s = calm();
        s.counts.ready = Reading::exact(5, at);
        assert_eq!(verdict("no-worker", &s), Verdict::Bad);
        s.counts.running = Reading::exact(1, at);
        assert_eq!(verdict("no-worker", &s), Verdict::Good);
        s.counts.expired = Reading::exact(1, at);
        assert_eq!(verdict("no-worker", &s), Verdict::Bad, "what it held has expired");
        s.workers = Reading::unknown(Trouble::Missing);
        assert_eq!(verdict("no-worker", &s), Verdict::Unknown("missing".into()));
    }

    #[test]
    fn a_locked_table_is_a_finding_and_any_other_failure_is_not() {
        let mut s = calm();
        s.counts.ready = Reading::unknown(Trouble::Locked);
        assert_eq!(verdict("table-locked", &s), Verdict::Bad);
        s.counts.ready = Reading::unknown(Trouble::TimedOut);
        assert_eq!(verdict("table-locked", &s), Verdict::Unknown("timed out".into()));
    }

    #[test]
    fn one_listener_among_a_hundred_that_is_late_is_within_p99() {
        let at = DateTime::UNIX_EPOCH;
        let listener = |pid, age| Session {
            pid,
            transaction_age: Some(age),
            marks: vec![SessionMark::ProbableListener],
            ..Session::default()
        };
        let mut s = calm();
        s.sessions = Reading::exact(vec![listener(1, 6.0)], at);
        assert_eq!(verdict("listener-transaction", &s), Verdict::Bad);
        let mut many: Vec<_> = (0..99).map(|i| listener(i, 0.1)).collect();
        many.push(listener(100, 6.0));
        s.sessions = Reading::exact(many, at);
        assert_eq!(verdict("listener-transaction", &s), Verdict::Good);
    }
}
