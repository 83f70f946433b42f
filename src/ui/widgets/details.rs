//! What Enter opens on a worker and a job.

use super::dialog::{Rows, field, keys, wrapped};
use super::lease::{expiry, seconds, whole};
use super::on_job;
use crate::app::dialog::JobView;
use crate::app::lists::WorkerLine;
use crate::app::seen::What;
use crate::model::{JobFacts, JobState, Percentiles, ScanReason};
use crate::text::{age, ago, bytes_count, count, fit, percent, width};
use crate::ui::paint::Piece;
use crate::ui::screens::jobs;
use crate::ui::screens::workers::{millis, state};
use crate::ui::{Role, Ui};

pub(super) fn plain(ui: Ui<'_>, text: impl Into<String>) -> Vec<Piece> {
    vec![(text.into(), ui.style(Role::Text))]
}

pub(super) fn cut(text: &str, cells: usize) -> String {
    fit(text, width(text).min(cells.saturating_sub(12)))
}

/// A worker as it is now; as it was when it has left the list.
pub(super) fn worker(ui: Ui<'_>, kept: &WorkerLine, cells: usize) -> Rows {
    let current = ui.app.worker_named(&kept.name);
    let line = current.unwrap_or(kept);
    let dim = ui.style(Role::Dim);
    let now = ui.app.server_now(ui.now);
    let mut rows = Rows::new();
    rows.push(field(ui, "worker", plain(ui, cut(&line.name, cells))));
    if current.is_none() {
        rows.push(field(ui, "", vec![("it is no longer in the list".to_owned(), ui.style(Role::Warn))]));
    }
    rows.push(field(ui, "state", vec![state(ui, line)]));
    if let Some(h) = &line.holder {
        let mut held = plain(ui, format!("{} held", count(h.held)));
        if h.expired > 0 {
            held.push((format!(", {} expired", count(h.expired)), ui.style(Role::Critical)));
        }
        held.push(("   next expiry ".to_owned(), dim));
        held.extend(expiry(ui, h.next_expiry, now));
        rows.push(field(ui, "leases", held));
        if let Some(pid) = h.backend {
            rows.push(field(ui, "backend", plain(ui, format!("pid {pid}"))));
        }
    }
    let Some(r) = &line.row else {
        rows.push(Vec::new());
        let text = "It holds jobs but writes no row to pgwake.workers: another program, or one without that \
                    table. Only its leases are known.";
        wrapped(ui, &mut rows, text, Role::Dim, cells);
        rows.push(Vec::new());
        rows.push(keys(ui, &[("Enter", "its leases"), ("Esc", "back")]));
        return rows;
    };
    let c = &r.counters;
    let n = |n: i64| count(n.max(0).unsigned_abs());
    let up = age(seconds(r.started_at, now).max(0.0));
    let host = format!("{} pid {}, version {}, up {up}", r.host, r.pid, r.version);
    rows.push(field(ui, "process", plain(ui, cut(&host, cells))));
    let found: Vec<String> =
        ScanReason::ALL.iter().map(|s| format!("{} {}", s.word(), n(c.found_by(*s)))).collect();
    rows.push(field(ui, "found by", plain(ui, found.join("  "))));
    let mut done = format!("done {}  failed {}  lost {}", n(c.jobs_done), n(c.jobs_failed), n(c.jobs_lost));
    if c.jobs_deferred > 0 {
        done += &format!("  put off {}", n(c.jobs_deferred));
    }
    rows.push(field(ui, "jobs", plain(ui, done)));
    let success = c.claim_success().map_or("—".to_owned(), percent);
    let claims = format!(
        "got {}  empty {}  contended {}  error {}  success {success}",
        n(c.claims_got),
        n(c.claims_empty),
        n(c.claims_contended),
        n(c.claims_error)
    );
    rows.push(field(ui, "claims", plain(ui, claims)));
    let three =
        |p: &Percentiles| format!("p50 {}  p95 {}  p99 {}", millis(p.p50), millis(p.p95), millis(p.p99));
    rows.push(field(ui, "claim", plain(ui, three(&r.claim))));
    rows.push(field(ui, "wake-ups", plain(ui, format!("{}  {}", n(c.wakeups), three(&r.wake_latency)))));
    let again = format!("{}  {}", n(r.reconnects), three(&r.recovery));
    rows.push(field(ui, "reconnects", plain(ui, again)));
    rows.push(field(ui, "budget", plain(ui, r.budget.word())));
    rows.push(Vec::new());
    rows.push(keys(ui, &[("Enter", "its leases"), ("Esc", "back")]));
    rows
}

/// One job, as the server had it when it was asked. The last row is the keys.
pub(super) fn job(ui: Ui<'_>, view: &JobView, cells: usize, room: usize) -> Rows {
    let hint = if view.payload { "hide the payload" } else { "show the payload" };
    let last = on_job::keys_of(ui, view, hint);
    let mut rows = Rows::new();
    match &view.detail {
        None => rows.push(vec![("asking the server …".to_owned(), ui.style(Role::Dim))]),
        Some(d) => match (d.found.value(), d.found.trouble()) {
            (Some(Some(facts)), _) => {
                rows = facts_rows(ui, view, facts, cells);
                releases(ui, &mut rows, d, cells);
                seen(ui, &mut rows, view, cells);
            }
            (Some(None), _) => {
                rows.push(vec![(format!("There is no job {} any more.", view.id), ui.style(Role::Warn))])
            }
            (None, why) => {
                let why = why.map(ToString::to_string).unwrap_or_default();
                rows.push(vec![(format!("— {why}"), ui.style(Role::Unknown))]);
            }
        },
    }
    let room = room.saturating_sub(2).max(1);
    let top = view.top.min(rows.len().saturating_sub(room));
    let mut shown: Rows = rows.into_iter().skip(top).take(room).collect();
    shown.push(Vec::new());
    shown.push(last);
    shown
}

pub(super) fn moment(
    ui: Ui<'_>,
    at: chrono::DateTime<chrono::Utc>,
    now: chrono::DateTime<chrono::Utc>,
) -> Vec<Piece> {
    let s = seconds(at, now);
    let far = if s >= 0.0 { ago(s) } else { format!("in {}", whole(-s)) };
    vec![(ui.app.clock(at), ui.style(Role::Text)), (format!("  {far}"), ui.style(Role::Dim))]
}

fn facts_rows(ui: Ui<'_>, view: &JobView, f: &JobFacts, cells: usize) -> Rows {
    let dim = ui.style(Role::Dim);
    let now = ui.app.live_server_now(ui.now);
    let expired = f.expires.is_some_and(|e| e <= now) && f.row.state == Some(JobState::Running);
    let mut rows = vec![
        field(ui, "job", plain(ui, cut(&format!("{}  {}", f.row.id, f.row.job_type), cells))),
        field(
            ui,
            "state",
            vec![jobs::state(ui, &f.row, expired), (format!("   in the table: {}", f.status), dim)],
        ),
        field(ui, "attempts", plain(ui, jobs::attempts(&f.row))),
    ];
    if let Some(key) = &f.key {
        rows.push(field(ui, "key", plain(ui, cut(key, cells))));
    }
    let moment = |at| moment(ui, at, now);
    if let Some(at) = f.created {
        rows.push(field(ui, "created", moment(at)));
    }
    match (f.row.state, f.row.due) {
        (Some(JobState::Ready | JobState::Scheduled), Some(at)) => rows.push(field(ui, "due", moment(at))),
        (Some(JobState::Ready | JobState::Scheduled), None) => {
            rows.push(field(ui, "due", plain(ui, "never, or always: the time is infinite")));
        }
        _ => {}
    }
    if let Some(at) = f.finished {
        rows.push(field(ui, "ended", moment(at)));
    }
    if let Some(holder) = &f.row.holder {
        rows.push(field(ui, "holder", plain(ui, cut(holder, cells))));
        rows.push(field(ui, "expiry", expiry(ui, f.expires, now)));
    }
    if let Some(error) = &f.error {
        rows.push(Vec::new());
        rows.push(vec![("error of the last failed attempt".to_owned(), dim)]);
        wrapped(ui, &mut rows, error, Role::Warn, cells);
    }
    rows.push(Vec::new());
    let p = &f.payload;
    let stored = p.stored.map_or_else(|| "size not known".to_owned(), bytes_count);
    match (&p.text, view.payload) {
        (Some(text), true) => {
            let whole = p.length.map_or_else(String::new, bytes_count);
            let more = p.length.is_some_and(|n| n > 4096);
            let head = if more { "the first 4 kB of " } else { "" };
            rows.push(vec![(format!("payload · {head}{whole}, stored in {stored}"), dim)]);
            wrapped(ui, &mut rows, text, Role::Text, cells);
        }
        (None, true) if p.length.is_none() && p.stored.is_some() => {
            rows.push(vec![("payload · asking the server …".to_owned(), dim)]);
        }
        (None, true) => rows.push(vec![("payload · there is none".to_owned(), dim)]),
        (_, false) => rows.push(vec![(format!("payload hidden · stored in {stored}"), dim)]),
    }
    rows
}

/// What this program saw itself, and since when it has looked.
fn seen(ui: Ui<'_>, rows: &mut Rows, view: &JobView, cells: usize) {
    let Some(seen) = &view.seen else { return };
    rows.push(Vec::new());
    let head = format!("its leases, as samples here showed them since {}", ui.app.clock(seen.since));
    wrapped(ui, rows, &head, Role::Dim, cells);
    if seen.lines.is_empty() {
        wrapped(ui, rows, "never seen held; a lease shorter than a sample is not seen", Role::Text, cells);
    }
    for line in &seen.lines {
        let at = ui.app.clock(line.at);
        let (text, role) = match line.what {
            What::Held => (format!("{at} already held by {}", line.holder), Role::Text),
            What::Claimed => (format!("{at} claimed by {}", line.holder), Role::Text),
            What::Expired => (format!("{at} ✖ lease of {} expired", line.holder), Role::Critical),
            What::Ended => (format!("{at} no longer held by {}", line.holder), Role::Text),
        };
        wrapped(ui, rows, &text, role, cells);
    }
}

fn releases(ui: Ui<'_>, rows: &mut Rows, d: &crate::model::JobDetail, cells: usize) {
    let Some(past) = d.releases.value().filter(|p| !p.is_empty()) else { return };
    rows.push(Vec::new());
    rows.push(vec![("released by hand before".to_owned(), ui.style(Role::Dim))]);
    for r in past {
        let was = if r.was_expired { "expired" } else { "NOT expired" };
        let text = format!("{} by {}, held by {}, {was}", ui.app.clock(r.at), r.operator, r.holder);
        wrapped(ui, rows, &text, Role::Text, cells);
    }
}
