//! JSON whose every figure carries its quality.

use serde::Serialize;
use serde_json::{Value, json};

use crate::app::alerts::{Alert, Boards, Look, Phase, State, Verdict};
use crate::model::{Backlog, Lease, Quality, Reading, Role, Sample, ScanReason, Server, WorkerRow};

/// One object: the server, and one entry per ledger. What the slow lane reads is null where `backlogs` has no
/// pass of a ledger. `boards` has taken in what was sampled so far; of one sample alone an alert that must last
/// is pending at most.
pub fn status(server: &Server, samples: &[Sample], backlogs: &[Backlog], boards: &Boards) -> Value {
    json!({
        "server": {
            "address": server.address,
            "version": server.version,
            "role": match server.role { Role::Primary => "primary", Role::Standby => "standby" },
            "read_only": server.read_only,
        },
        "ledgers": samples
            .iter()
            .map(|s| ledger(server, s, backlogs.iter().find(|b| b.ledger == s.ledger), boards))
            .collect::<Vec<_>>(),
    })
}

fn ledger(server: &Server, s: &Sample, b: Option<&Backlog>, boards: &Boards) -> Value {
    let full_in = s.vitals.queue_usage.current().and_then(|u| s.evidence.full_in(*u));
    let facts = server.ledgers.iter().find(|l| l.name == s.ledger);
    let workers = s.workers.map(|rows| rows.iter().filter(|w| w.is_alive(s.taken_at)).count());
    let mut out = json!({
        "ledger": s.ledger,
        "relation": facts.map(|f| &f.relation),
        "channel": facts.and_then(|f| f.channel.as_ref()),
        "taken_at": s.taken_at,
        "ready": reading(&s.counts.ready),
        "scheduled": reading(&s.counts.scheduled),
        "running": reading(&s.counts.running),
        "expired": reading(&s.counts.expired),
        "failed": reading(&s.counts.failed),
        "oldest_ready_job_age_seconds": reading(&s.vitals.oldest_ready),
        "next_scheduled_seconds": reading(&s.next_scheduled),
        "queue_usage": reading(&s.vitals.queue_usage),
        "queue_growth_per_second": reading(&s.evidence.queue_growth),
        "queue_full_in_seconds": full_in,
        "claim_success_rate": reading(&s.vitals.claim_success),
        "claim_p99_ms": reading(&s.vitals.claim_p99_ms),
        "reconnect_recovery_p95_seconds": reading(&s.vitals.recovery_p95),
        "reconnects": reading(&s.vitals.reconnects),
        "fallback_share": reading(&s.vitals.fallback_share),
        "arrived_per_second": reading(&s.flow.arrived),
        "done_per_second": reading(&s.flow.done),
        "failed_per_second": reading(&s.flow.failed),
        "workers_alive": reading(&workers),
        "workers": s.workers.value().map(|rows| rows.iter().map(|w| worker(w, s)).collect::<Vec<_>>()),
        "holders": s.holders.value(),
        "alerts": boards.of(s).map(|(alert, state, look)| alarm(alert, state, look)).collect::<Vec<_>>(),
        "cost": { "pass_ms": s.cost.pass_ms, "interval_ms": s.cost.interval_ms, "effective_ms": s.cost.effective_ms },
    });
    if let (Value::Object(out), Value::Object(more)) = (&mut out, evidence(s, b)) {
        out.extend(more);
    }
    out
}

/// What holds the queue up, and what of it cannot be seen.
fn evidence(s: &Sample, b: Option<&Backlog>) -> Value {
    let e = &s.evidence;
    json!({
        "notify_commit_lock": reading(&s.notify_lock),
        "connections": reading(&s.connections.map(|(used, max)| json!({ "used": used, "max": max }))),
        "sessions": reading(&s.sessions),
        "hidden_sessions": reading(&e.hidden),
        "ask_for": e.hidden.value().filter(|h| h.sessions > 0).map(|h| h.grant()),
        "row_security": reading(&e.row_security),
        "table_locks": reading(&e.table_locks),
        "locked_rows": reading(&e.locked_rows),
        "oldest_snapshots": b.map(|b| reading(&b.pins)),
        "inconsistent_rows": b.map(|b| reading(&b.inconsistent)),
        "notify_triggers": b.map(|b| reading(&b.triggers)),
        "table": b.map(|b| reading(&b.table)),
    })
}

/// A reading as `{value, quality, at}`; `reason` where the newest attempt gave nothing. An unknown value
/// is null, never zero.
fn reading<T: Serialize>(r: &Reading<T>) -> Value {
    let quality = match (r.value(), r.quality()) {
        (None, _) => "unknown",
        (_, Quality::Exact) => "exact",
        (_, Quality::AtLeast) => "at_least",
        (_, Quality::Estimate) => "estimate",
    };
    let mut out = json!({ "value": r.value(), "quality": quality });
    if let Some(at) = r.at() {
        out["at"] = json!(at);
    }
    if let Some(trouble) = r.trouble() {
        out["reason"] = json!(trouble.to_string());
    }
    out
}

/// One alert. `unknown` is an alert of which nothing was ever found, and of which nothing can be said now.
fn alarm(alert: &Alert, state: State, look: Look<'_>) -> Value {
    let judged = alert.judge(look);
    let unknown = match judged.verdict {
        Verdict::Unknown(why) => Some(why),
        _ => None,
    };
    let since = match state.phase() {
        Phase::Ok => None,
        Phase::Pending { since } | Phase::Firing { since } | Phase::Resolved { at: since } => Some(since),
    };
    let word =
        if state.phase() == Phase::Ok && unknown.is_some() { "unknown" } else { state.phase().word() };
    let mut out = json!({
        "name": alert.name,
        "level": if alert.is_critical() { "critical" } else { "warning" },
        "state": word,
        "figure": judged.figure,
        "must_last_seconds": alert.hold_s(look),
    });
    if let Some(since) = since {
        out["since"] = json!(since);
    }
    if let Some(why) = unknown {
        out["reason"] = json!(why);
    }
    out
}

fn worker(w: &WorkerRow, s: &Sample) -> Value {
    let found: serde_json::Map<String, Value> =
        ScanReason::ALL.iter().map(|r| (r.word().to_owned(), json!(w.counters.found_by(*r)))).collect();
    json!({
        "name": w.name,
        "host": w.host,
        "pid": w.pid,
        "alive": w.is_alive(s.taken_at),
        "seen_at": w.seen_at,
        "found_by": found,
        "claims": {
            "got": w.counters.claims_got, "empty": w.counters.claims_empty,
            "contended": w.counters.claims_contended, "error": w.counters.claims_error,
        },
        "done": w.counters.jobs_done,
        "failed": w.counters.jobs_failed,
        "lost": w.counters.jobs_lost,
        "deferred": w.counters.jobs_deferred,
        "wakeups": w.counters.wakeups,
        "reconnects": w.reconnects,
        "recovery_ms": w.recovery,
        "wake_latency_ms": w.wake_latency,
        "claim_ms": w.claim,
        "budget": w.budget.word(),
    })
}

/// One lease.
pub fn lease(ledger: &str, l: &Lease, s: &Sample) -> Value {
    json!({
        "ledger": ledger,
        "id": l.id,
        "type": l.job_type,
        "holder": l.holder,
        "token": l.token,
        "expires": l.expires,
        "expired": l.is_expired(s.taken_at),
        "attempts": l.attempts,
        "max_attempts": l.max_attempts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Trouble;
    use chrono::DateTime;

    #[test]
    fn an_unknown_figure_is_null_with_its_reason_and_never_zero() {
        let v = reading(&Reading::<u64>::unknown(Trouble::NoPrivilege));
        assert_eq!(v["value"], Value::Null);
        assert_eq!(v["quality"], "unknown");
        assert_eq!(v["reason"], "no privilege");
    }

    #[test]
    fn of_one_sample_what_has_to_last_is_pending_what_has_not_fires_and_what_was_not_read_is_unknown() {
        let at = DateTime::UNIX_EPOCH;
        let mut s = Sample::empty("jobs", at);
        s.vitals.queue_usage = Reading::exact(0.2, at);
        s.vitals.oldest_ready = Reading::exact(Some(75.0), at);
        let mut boards = Boards::new(crate::config::Thresholds::default(), 30.0);
        boards.observe(&s);
        let all: Vec<Value> = boards.of(&s).map(|(a, state, look)| alarm(a, state, look)).collect();
        let of = |name: &str| all.iter().find(|a| a["name"] == name).unwrap();
        for (name, state) in [
            ("queue-usage", "pending"),
            ("queue-full", "ok"),
            ("oldest-ready", "firing"),
            ("claim-slow", "unknown"),
        ] {
            assert_eq!(of(name)["state"], state, "{name}");
        }
        assert_eq!(of("queue-usage")["must_last_seconds"], 600.0);
        assert_eq!(of("oldest-ready")["figure"], "75.0s");
        assert_eq!(of("claim-slow")["reason"], "not read yet");
        assert_eq!(of("claim-slow")["figure"], "—");
    }

    #[test]
    fn a_kept_value_says_why_it_is_old() {
        let last = Reading::at_least(10_000u64, DateTime::UNIX_EPOCH);
        let v = reading(&Reading::unknown(Trouble::TimedOut).or_last(&last));
        assert_eq!(v["value"], 10_000);
        assert_eq!(v["quality"], "at_least");
        assert_eq!(v["reason"], "timed out");
    }
}
