//! The rules about locks: each names who holds, since when, and what that waits for itself.

use super::rules::say;
use super::{Answer, Evidence, Rule};
use crate::app::health::Level;
use crate::app::sessions::name_of;
use crate::model::{TableLock, Trouble};
use crate::text::{age, count};

/// A lock on the table, or on due rows, that lasts this long is no claim.
const LOCK_LASTS: f64 = 2.0;

/// `pid 4711 (report)`, or the prepared transaction's name.
fn holder(pid: Option<i32>, prepared: Option<&String>, application: &str) -> String {
    match (pid, prepared) {
        (Some(pid), _) if application.is_empty() => format!("pid {pid}"),
        (Some(pid), _) => format!("pid {pid} ({application})"),
        (None, Some(gid)) => format!("prepared transaction {gid}"),
        (None, None) => "a prepared transaction".to_owned(),
    }
}

pub(super) fn table_locked(e: &Evidence<'_>) -> Answer {
    let s = e.sample?;
    let hit = s.counts.ready.trouble() == Some(&Trouble::Locked);
    let locks = s.evidence.table_locks.current().map_or(&[][..], Vec::as_slice);
    // a lock for a moment is normal
    let lasts = |l: &&TableLock| hit || l.seconds.is_some_and(|s| s >= LOCK_LASTS);
    let Some(lock) = locks.iter().find(lasts) else {
        let detail = "another session holds the ledger against readers · workers wait too";
        return if hit { say(Rule::TableLocked, Level::Critical, "table locked", detail) } else { None };
    };
    let headline = if lock.is_against_readers() { "table locked" } else { "table locked against claims" };
    let who = holder(lock.pid, lock.prepared.as_ref(), &lock.application);
    let lasted = lock.seconds.map_or_else(String::new, |s| format!(" for {}", age(s)));
    let behind: Vec<String> =
        lock.by.iter().map(|pid| name_of(s.sessions.value().map_or(&[], Vec::as_slice), *pid)).collect();
    let detail = match (lock.granted, behind.is_empty()) {
        (true, _) => format!("by {who}{lasted} · {}", lock.mode),
        (false, true) => format!("{who} waits{lasted} for {} · all others wait behind it", lock.mode),
        (false, false) => {
            format!("{who} waits{lasted} behind {} · all others wait behind it", behind.join(", "))
        }
    };
    say(Rule::TableLocked, Level::Critical, headline, detail)
}

/// Most of the first due rows are locked by somebody who does not let go: that is known by name.
pub(super) fn locked_rows(e: &Evidence<'_>, ready: &str) -> Answer {
    let rows = e.sample?.evidence.locked_rows.current()?;
    (rows.locked() * 2 >= rows.seen && rows.seen > 0).then_some(())?;
    let first = rows.by.iter().find(|l| l.seconds.is_none_or(|s| s >= LOCK_LASTS))?;
    let who = holder(first.pid, first.prepared.as_ref(), &first.application);
    let state = first.state.as_ref().map_or_else(String::new, |s| format!(", {s}"));
    let lasted = first.seconds.map_or_else(String::new, |s| format!(" for {}", age(s)));
    say(
        Rule::Contended,
        Level::Critical,
        "ready rows locked elsewhere",
        format!("{ready} ready · {} of the first {} locked by {who}{state}{lasted}", first.rows, rows.seen),
    )
}

pub(super) fn notify_lock(e: &Evidence<'_>) -> Answer {
    let lock = e.sample?.notify_lock.current()?;
    (lock.waiters > 0).then_some(())?;
    let who = match lock.holder {
        Some(pid) => holder(Some(pid), None, &lock.application),
        None => "somebody".to_owned(),
    };
    let reason = lock.wait.as_ref().map_or_else(String::new, |w| format!(", waiting for {w}"));
    let longest = lock.longest.map_or_else(String::new, |s| format!(" for up to {}", age(s)));
    let wait =
        if lock.waiters == 1 { "1 waits".to_owned() } else { format!("{} wait", count(lock.waiters)) };
    say(
        Rule::NotifyLock,
        Level::Warn,
        "producers blocked",
        format!("{who} holds the NOTIFY commit lock{reason} · {wait}{longest}"),
    )
}
