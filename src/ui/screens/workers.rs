//! Who works: this program's worker, all others that report, and holders that report nothing.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::lists::{GONE_S, List, WorkerLine};
use crate::model::{BudgetState, Counters, ScanReason};
use crate::text::{ago, count, percent};
use crate::ui::paint::{self, Piece};
use crate::ui::widgets::grid::{self, Column, Grid, filter_title, fixed, growing};
use crate::ui::widgets::lease::seconds;
use crate::ui::widgets::reading::show;
use crate::ui::{Role, Ui};

const COLUMNS: [Column; 11] = [
    growing("worker", 16, 40, 0),
    fixed("state", 15, false, 0),
    fixed("held", 6, true, 0),
    fixed("jobs", 8, true, 1),
    fixed("success", 8, true, 0),
    fixed("wake p95", 9, true, 2),
    fixed("claim p95", 10, true, 4),
    fixed("found by", 18, false, 5),
    fixed("budget", 8, false, 6),
    fixed("reconnects", 11, true, 3),
    growing("host", 10, 24, 7),
];

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let list = ui.app.workers();
    let inner = paint::airy_panel(ui, buf, area, &title(ui, &list), Role::Focus);
    let empty = match ui.app.sample() {
        None => ("nothing is known yet".to_owned(), Role::Unknown),
        Some(s) => match (s.workers.value(), s.workers.trouble()) {
            (None, Some(why)) if s.holders.is_current() => {
                (format!("— {why}; nobody holds a job"), Role::Unknown)
            }
            (None, Some(why)) => (format!("— {why}"), Role::Unknown),
            _ => ("no worker reports, and nobody holds a job".to_owned(), Role::Warn),
        },
    };
    let selection = ui.app.worker_selection();
    let grid = Grid { list: List::Workers, columns: &COLUMNS, selection, len: list.len(), empty };
    grid.draw(ui, buf, inner, |i, w| list.get(i).map_or_else(Vec::new, |line| row(ui, line, w)));
}

fn title(ui: Ui<'_>, list: &[&WorkerLine]) -> Vec<Piece> {
    let dim = ui.style(Role::Dim);
    let mut pieces = vec![("Workers".to_owned(), ui.style(Role::Title))];
    pieces.extend(filter_title(ui, List::Workers));
    let Some(s) = ui.app.sample() else { return pieces };
    let now = ui.app.server_now(ui.now);
    if let Some(t) = ui.app.tally(now) {
        pieces.push((format!(" · {} alive", t.alive), dim));
        if t.silent > 0 {
            pieces.push((format!(" · {} silent", t.silent), ui.style(Role::Warn)));
        }
        if t.gone > 0 {
            pieces.push((format!(" · {} gone for over {}m, not listed", t.gone, GONE_S / 60), dim));
        }
    }
    let mute = list.iter().filter(|w| w.row.is_none()).count();
    if mute > 0 {
        pieces.push((format!(" · {mute} report nothing"), dim));
    }
    if let Some(note) = show(&s.workers, now, ui.app.is_stale(ui.now), |_| String::new()).note {
        pieces.push((format!(" · {note}"), ui.style(Role::Warn)));
    }
    pieces
}

/// Whether it is there: `● alive 2s ago`.
pub(in crate::ui) fn state(ui: Ui<'_>, line: &WorkerLine) -> Piece {
    let Some(row) = &line.row else {
        return ("○ no reports".to_owned(), ui.style(Role::Dim));
    };
    let now = ui.app.server_now(ui.now);
    let silent = ago(seconds(row.seen_at, now));
    if ui.app.is_stale(ui.now) {
        return (format!("? {silent}"), ui.style(Role::Dim));
    }
    if row.is_alive(now) {
        let here = if line.here { " here" } else { "" };
        return (format!("● alive{here}"), ui.style(Role::Ok));
    }
    let holds = line.holder.as_ref().is_some_and(|h| h.held > 0);
    (format!("✖ {silent}"), ui.style(if holds { Role::Critical } else { Role::Warn }))
}

/// `12 ✖2`: jobs held, and those of them whose lease has expired.
fn held(ui: Ui<'_>, line: &WorkerLine, cells: usize) -> Vec<Piece> {
    match &line.holder {
        None => grid::right(ui, "0", cells, Role::Dim),
        Some(h) if h.expired > 0 => {
            grid::right(ui, &format!("✖{} {}", h.expired, count(h.held)), cells, Role::Critical)
        }
        Some(h) => grid::right(ui, &count(h.held), cells, Role::Text),
    }
}

/// `4.2ms`, `1.2s`, or `—`.
pub(in crate::ui) fn millis(ms: Option<f64>) -> String {
    match ms {
        None => "—".to_owned(),
        Some(ms) if ms >= 1_000.0 => crate::text::age(ms / 1e3),
        Some(ms) if ms >= 99.95 => format!("{ms:.0}ms"),
        Some(ms) => format!("{ms:.1}ms"),
    }
}

/// The shares of the reasons as a bar of `cells`, each with a stroke of its own.
pub(in crate::ui) fn found_bar(ui: Ui<'_>, c: &Counters, cells: usize) -> Vec<Piece> {
    let total: i64 = ScanReason::ALL.iter().map(|r| c.found_by(*r)).sum();
    if total <= 0 {
        return vec![("none yet".to_owned(), ui.style(Role::Dim))];
    }
    let mut out = Vec::new();
    let mut used = 0;
    let mut sum = 0;
    for (reason, block, role) in FOUND {
        sum += c.found_by(reason);
        let end = ((sum as f64 / total as f64) * cells as f64).round() as usize;
        // what is there at all is seen
        let end = if c.found_by(reason) > 0 { end.max(used + 1) } else { end }.min(cells);
        out.push((block.repeat(end.saturating_sub(used)), ui.style(role)));
        used = end.max(used);
    }
    out
}

/// The strokes and colours of the reasons, announced work first.
pub(in crate::ui) const FOUND: [(ScanReason, &str, Role); 4] = [
    (ScanReason::Notify, "█", Role::Ok),
    (ScanReason::Fallback, "▓", Role::Warn),
    (ScanReason::Reconnect, "▒", Role::Accent),
    (ScanReason::Startup, "░", Role::Dim),
];

fn row(ui: Ui<'_>, line: &WorkerLine, w: &[usize]) -> Vec<Vec<Piece>> {
    let app = ui.app;
    let faded = app.is_stale(ui.now) || app.sample().is_some_and(|s| !s.workers.is_current());
    let role = if faded { Role::Dim } else { Role::Text };
    let Some(r) = &line.row else {
        let mut cells =
            vec![grid::text(ui, &line.name, w[0], role), vec![state(ui, line)], held(ui, line, w[2])];
        for (i, right) in [(3, true), (4, true), (5, true), (6, true), (7, false), (8, false), (9, true)] {
            let dash = if right { grid::right } else { grid::text };
            cells.push(if w[i] > 0 { dash(ui, "—", w[i], Role::Dim) } else { Vec::new() });
        }
        return cells;
    };
    let limits = &app.setup().thresholds;
    let success = r.counters.claim_success();
    let low = success.is_some_and(|s| s < limits.claim_success);
    let slow = r.claim.p99.is_some_and(|ms| ms > limits.claim_p99_ms);
    let loud = |is: bool| if is && !faded { Role::Warn } else { role };
    let budget = match r.budget {
        BudgetState::Waiting => (r.budget.word().to_owned(), ui.style(loud(true))),
        other => (other.word().to_owned(), ui.style(Role::Dim)),
    };
    let jobs = count(u64::try_from(r.counters.jobs_done).unwrap_or(0));
    let reconnects = count(u64::try_from(r.reconnects).unwrap_or(0));
    vec![
        grid::text(ui, &line.name, w[0], role),
        vec![state(ui, line)],
        held(ui, line, w[2]),
        grid::right(ui, &jobs, w[3], role),
        grid::right(ui, &success.map_or_else(|| "—".to_owned(), percent), w[4], loud(low)),
        grid::right(ui, &millis(r.wake_latency.p95), w[5], role),
        grid::right(ui, &millis(r.claim.p95), w[6], loud(slow)),
        found_bar(ui, &r.counters, w[7]),
        vec![budget],
        grid::right(ui, &reconnects, w[9], loud(r.reconnects > 0 && low)),
        grid::text(ui, &r.host, w[10], Role::Dim),
    ]
}
