//! What may hold the queue, in lines: only what is wrong, and what could not be seen.

use crate::model::{Backlog, PinKind, Reading, Sample, Session, SessionMark};
use crate::text::{age, count, percent};

/// Sessions that are named in the text; all are in the JSON.
const NAMED: usize = 3;

fn old(seconds: Option<f64>) -> String {
    seconds.map_or_else(String::new, |s| format!(" for {}", age(s)))
}

fn who(pid: Option<i32>, prepared: Option<&String>, application: &str) -> String {
    match (pid, prepared) {
        (Some(pid), _) => format!("pid {pid} ({application})"),
        (None, Some(gid)) => format!("prepared transaction {gid}"),
        (None, None) => "a prepared transaction".to_owned(),
    }
}

fn session(s: &Session) -> Option<String> {
    let has = |m| s.marks.contains(&m);
    let who = who(Some(s.pid), None, &s.application);
    let open = old(s.transaction_age);
    Some(if has(SessionMark::NotReading) {
        format!("{who} does not read what the server sends")
    } else if has(SessionMark::ProbableListener) && has(SessionMark::LongTransaction) {
        format!("{who} listens, likely, and is in a transaction{open}")
    } else if let Some(lock) = &s.lock {
        let pids: Vec<String> = lock.by.iter().map(i32::to_string).collect();
        let by = match &lock.prepared {
            Some(gid) => format!("prepared transaction {gid}"),
            None => format!("pid {}", pids.join(", ")),
        };
        format!("{who} waits{} for {}, held by {by}", old(lock.seconds), lock.what)
    } else if has(SessionMark::IdleInTransaction) {
        format!("{who} is idle in a transaction{open}")
    } else if has(SessionMark::LongTransaction) {
        format!("{who} is in a transaction{open}")
    } else {
        return None;
    })
}

fn named(lines: Vec<String>, out: &mut Vec<String>) {
    let more = lines.len().saturating_sub(NAMED);
    out.extend(lines.into_iter().take(NAMED));
    if more > 0 {
        out.push(format!("and {more} more: --json tells all"));
    }
}

/// The lines of one ledger.
pub(super) fn lines(s: &Sample, b: Option<&Backlog>) -> Vec<String> {
    let mut out = Vec::new();
    let e = &s.evidence;
    if let Some(lock) = s.notify_lock.current().filter(|l| l.waiters > 0) {
        let holder = lock.holder.map_or_else(
            || "somebody".to_owned(),
            |pid| {
                let wait = lock.wait.as_ref().map_or_else(String::new, |w| format!(", waits for {w}"));
                format!("{}{wait}", who(Some(pid), None, &lock.application))
            },
        );
        out.push(format!(
            "NOTIFY commit lock: {holder}; {} wait{}",
            count(lock.waiters),
            old(lock.longest)
        ));
    }
    for l in e.table_locks.current().into_iter().flatten() {
        let does = if l.granted { "has" } else { "waits for" };
        let who = who(l.pid, l.prepared.as_ref(), &l.application);
        out.push(format!("table: {who} {does} {}{}", l.mode, old(l.seconds)));
    }
    for l in e.locked_rows.current().map_or(&[][..], |l| &l.by) {
        let who = who(l.pid, l.prepared.as_ref(), &l.application);
        out.push(format!("due rows: {} locked by {who}{}", count(l.rows), old(l.seconds)));
    }
    let sessions = s.sessions.current().into_iter().flatten().filter_map(session).collect();
    named(sessions, &mut out);
    if let Some(left) = s.vitals.queue_usage.current().and_then(|u| e.full_in(*u)) {
        out.push(format!("notification queue: full in {} at its present growth", age(left)));
    }
    if let Some(b) = b {
        slow(b, &mut out);
    }
    if e.row_security.current() == Some(&true) {
        out.push("row security is active for this role: counts may be partial".to_owned());
    }
    if let Some(h) = e.hidden.value().filter(|h| h.sessions > 0) {
        out.push(format!(
            "{} sessions are hidden from this role; ask for: {}",
            count(h.sessions),
            h.grant()
        ));
    }
    for (name, trouble) in [
        ("sessions", s.sessions.trouble()),
        ("NOTIFY commit lock", s.notify_lock.trouble()),
        ("table locks", e.table_locks.trouble()),
    ] {
        if let Some(why) = trouble {
            out.push(format!("{name}: - ({why})"));
        }
    }
    out
}

fn slow(b: &Backlog, out: &mut Vec<String>) {
    let pins = |r: &Reading<Vec<crate::model::Pin>>| r.value().cloned().unwrap_or_default();
    let all = pins(&b.pins);
    for p in all.iter().filter(|p| p.kind == PinKind::Prepared) {
        out.push(format!(
            "prepared transaction {} of {}{}: nobody has ended it",
            p.name,
            p.about,
            old(p.seconds)
        ));
    }
    if let Some((p, xids)) = all.first().and_then(|p| Some((p, p.xids?)))
        && xids > 10_000
        && p.kind != PinKind::Prepared
    {
        let who = p.pid.map_or_else(|| p.name.clone(), |pid| who(Some(pid), None, &p.name));
        let n = count(xids.unsigned_abs());
        out.push(format!("dead rows are kept by {who}, {n} transactions old{}", old(p.seconds)));
    }
    if let Some(i) = b.inconsistent.current().filter(|i| !i.is_none()) {
        let more = if i.more { ">=" } else { "" };
        out.push(format!(
            "rows that nobody will take: {more}{} without a due time, {} held for ever",
            count(i.without_due),
            count(i.for_ever)
        ));
        for (state, share) in &i.unknown_states {
            out.push(format!("status {state} is not in the profile: ~{} of the table", percent(*share)));
        }
    }
    for t in b.triggers.current().into_iter().flatten().filter(|t| t.carries_row || t.per_row) {
        let what = if t.carries_row { "sends the row in the payload" } else { "notifies once a row" };
        out.push(format!("trigger {} ({}) {what}", t.name, t.function));
    }
}
