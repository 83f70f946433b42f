//! The live evidence of the runbooks: what each placeholder stands for in a sample.

use super::Look;
use super::table::{marked, millis, quantity};
use crate::model::{Holder, Reading, Session, SessionMark};
use crate::text::{age, ago, count, percent, rate};

/// What a placeholder stands for.
pub(super) struct Evidence {
    /// Its name in a runbook.
    pub(super) name: &'static str,
    /// What stands for it in the documents.
    pub(super) about: &'static str,
    /// Its text, or why there is none.
    pub(super) read: fn(Look<'_>) -> Result<String, String>,
}

macro_rules! evidence {
    ($name:literal, $about:literal, $read:expr) => {
        Evidence { name: $name, about: $about, read: $read }
    };
}

/// Every placeholder.
#[rustfmt::skip]
pub(super) const EVIDENCE: &[Evidence] = &[
    evidence!("sample_age", "time", |l| Ok(age(l.age_s))),
    evidence!("pass", "time", |l| Ok(millis(l.sample.cost.pass_ms))),
    evidence!("limit_stale", "`stale`", |l| Ok(age(l.longest_pause_s()))),
    evidence!("ready", "ready jobs", |l| number(&l.sample.counts.ready)),
    evidence!("running", "held jobs", |l| number(&l.sample.counts.running)),
    evidence!("expired", "expired leases", |l| number(&l.sample.counts.expired)),
    evidence!("oldest_ready", "its age", |l| maybe(&l.sample.vitals.oldest_ready, age, "none is ready")),
    evidence!("queue_usage", "share in use", |l| value(&l.sample.vitals.queue_usage, |u| percent(*u))),
    evidence!("claim_success", "share", |l| maybe(&l.sample.vitals.claim_success, percent, "no claims")),
    evidence!("claim_p99", "time", |l| maybe(&l.sample.vitals.claim_p99_ms, millis, "no claims")),
    evidence!("recovery_p95", "time", |l| maybe(&l.sample.vitals.recovery_p95, age, "no reconnect")),
    evidence!("fallback_share", "share", |l| maybe(&l.sample.vitals.fallback_share, percent, "no jobs")),
    evidence!("reconnects", "number", |l| value(&l.sample.vitals.reconnects, i64::to_string)),
    evidence!("arrived", "rate", |l| value(&l.sample.flow.arrived, |r| rate(*r))),
    evidence!("done", "rate", |l| value(&l.sample.flow.done, |r| rate(*r))),
    evidence!("connections", "used of allowed", |l| value(&l.sample.connections, |(used, most)| format!("{used} of {most}"))),
    evidence!("workers_alive", "number", workers_alive),
    evidence!("holder", "name", |l| holder(l, |h| Some(h.name.clone()))),
    evidence!("holder_pid", "pid", |l| holder(l, |h| h.backend.map(|pid| pid.to_string()))),
    evidence!("heartbeat", "time", heartbeat),
    evidence!("transaction_pid", "pid", |l| session(l, None, pid)),
    evidence!("transaction_age", "time", |l| session(l, None, open_for)),
    evidence!("transaction_query", "statement", |l| session(l, None, query)),
    evidence!("listener_pid", "pid", |l| session(l, Some(SessionMark::ProbableListener), pid)),
    evidence!("listener_age", "time", |l| session(l, Some(SessionMark::ProbableListener), open_for)),
    evidence!("listener_query", "statement", |l| session(l, Some(SessionMark::ProbableListener), query)),
    evidence!("not_reading_pid", "pid", |l| session(l, Some(SessionMark::NotReading), pid)),
    evidence!("not_reading_age", "time", |l| session(l, Some(SessionMark::NotReading), open_for)),
    evidence!("notify_holder", "pid", |l| value(&l.sample.notify_lock, |n| n.holder.map_or("—, not seen".into(), |p| p.to_string()))),
    evidence!("notify_waiters", "number", |l| value(&l.sample.notify_lock, |n| count(n.waiters))),
    evidence!("limit_oldest_ready", "`oldest_ready`", |l| Ok(age(l.limits.oldest_ready_s))),
    evidence!("limit_queue_warn", "`queue_usage_warn`", |l| Ok(percent(l.limits.queue_usage_warn))),
    evidence!("limit_queue_critical", "`queue_usage_critical`", |l| Ok(percent(l.limits.queue_usage_critical))),
    evidence!("limit_claim_success", "`claim_success`", |l| Ok(percent(l.limits.claim_success))),
    evidence!("limit_claim_p99", "`claim_p99`", |l| Ok(millis(l.limits.claim_p99_ms))),
    evidence!("limit_recovery", "`recovery_p95`", |l| Ok(age(l.limits.recovery_p95_s))),
    evidence!("limit_fallback", "`fallback_share`", |l| Ok(percent(l.limits.fallback_share))),
    evidence!("limit_listener", "`listener_transaction`", |l| Ok(age(l.limits.listener_transaction_s))),
];

/// A reading's value; why there is none. One kept from before says so.
fn value<T>(reading: &Reading<T>, text: impl Fn(&T) -> String) -> Result<String, String> {
    reading.current().map(text).ok_or_else(|| why(reading))
}

fn why<T>(reading: &Reading<T>) -> String {
    reading.trouble().map_or_else(|| "not read yet".to_owned(), ToString::to_string)
}

fn number(reading: &Reading<u64>) -> Result<String, String> {
    quantity(reading).ok_or_else(|| why(reading))
}

fn maybe(reading: &Reading<Option<f64>>, text: fn(f64) -> String, none: &str) -> Result<String, String> {
    value(reading, |v| v.map_or_else(|| none.to_owned(), text))
}

fn workers_alive(look: Look<'_>) -> Result<String, String> {
    let at = look.sample.taken_at;
    value(&look.sample.workers, |rows| count(rows.iter().filter(|w| w.is_alive(at)).count() as u64))
}

/// Of the holder with most expired leases.
fn holder(look: Look<'_>, of: impl Fn(&Holder) -> Option<String>) -> Result<String, String> {
    let reading = &look.sample.holders;
    let all = reading.current().ok_or_else(|| why(reading))?;
    let worst = all.iter().filter(|h| h.expired > 0).max_by_key(|h| h.expired);
    of(worst.ok_or("there is none")?).ok_or_else(|| "not known".to_owned())
}

fn heartbeat(look: Look<'_>) -> Result<String, String> {
    let at = look.sample.taken_at;
    holder(look, |h| {
        let seen = h.heartbeat.map(|seen| ago((at - seen).as_seconds_f64()));
        Some(seen.unwrap_or_else(|| "none, it reports nothing".to_owned()))
    })
}

/// Of the session with that mark, or of all, whose transaction is the oldest.
fn session(
    look: Look<'_>,
    mark: Option<SessionMark>,
    of: fn(&Session) -> Result<String, String>,
) -> Result<String, String> {
    let reading = &look.sample.sessions;
    let all = reading.current().ok_or_else(|| why(reading))?;
    let older = |a: &&Session, b: &&Session| {
        a.transaction_age.unwrap_or(0.0).total_cmp(&b.transaction_age.unwrap_or(0.0))
    };
    let oldest = match mark {
        Some(mark) => marked(look, mark).max_by(older),
        None => all.iter().filter(|s| s.transaction_age.is_some()).max_by(older),
    };
    of(oldest.ok_or("there is none in sight")?)
}

fn pid(session: &Session) -> Result<String, String> {
    Ok(session.pid.to_string())
}

fn open_for(session: &Session) -> Result<String, String> {
    session.transaction_age.map(age).ok_or_else(|| "none is open".to_owned())
}

fn query(session: &Session) -> Result<String, String> {
    session.query.clone().ok_or_else(|| "hidden from this role".to_owned())
}
