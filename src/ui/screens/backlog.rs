//! What waits, by type, and the table that holds it: from the slow lane.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::lists::{COUNTED, List, TypeLine};
use crate::model::{Backlog, TableFacts};
use crate::text::{age, ago, bytes_count, count, percent, rate};
use crate::ui::paint::{self, Piece};
use crate::ui::widgets::grid::{self, Column, Grid, filter_title, fixed, growing};
use crate::ui::widgets::lease::{seconds, whole};
use crate::ui::widgets::reading::{count_text, show};
use crate::ui::{Role, Ui};

const COLUMNS: [Column; 9] = [
    growing("type", 16, 60, 0),
    fixed("ready", 8, true, 0),
    fixed("oldest", 8, true, 0),
    growing("share", 12, 30, 4),
    fixed("scheduled", 10, true, 0),
    fixed("next", 8, true, 3),
    fixed("running", 8, true, 1),
    fixed("failed", 8, true, 1),
    fixed("change", 9, true, 2),
];

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    // in one row where there is room for it
    let head = Rect { height: if area.height < 18 || area.width >= 100 { 4 } else { 5 }, ..area };
    table(ui, buf, head);
    let rest = Rect { y: head.bottom(), height: area.height.saturating_sub(head.height), ..area };
    let list = ui.app.types();
    let inner = paint::airy_panel(ui, buf, rest, &title(ui), Role::Focus);
    let empty = match ui.app.backlog() {
        None => ("not read yet: the slow lane comes every few seconds".to_owned(), Role::Unknown),
        Some(b) => match b.ready.trouble().filter(|_| b.ready.value().is_none()) {
            Some(why) => (format!("— {why}"), Role::Unknown),
            None => {
                let when = slow_age(ui).map_or_else(String::new, |a| format!(", {}", ago(a)));
                (format!("no job waited, ran or had failed when this was read{when}"), Role::Dim)
            }
        },
    };
    let most = list.iter().filter_map(|t| t.jobs[0]).max().unwrap_or(0);
    let selection = ui.app.type_selection();
    let grid = Grid { list: List::Types, columns: &COLUMNS, selection, len: list.len(), empty };
    grid.draw(ui, buf, inner, |i, w| match (list.get(i), ui.app.backlog()) {
        (Some(line), Some(backlog)) => row(ui, backlog, line, most, w),
        _ => Vec::new(),
    });
}

/// Monotonic seconds since the slow lane's pass arrived.
fn slow_age(ui: Ui<'_>) -> Option<f64> {
    let (_, at) = ui.app.ledger()?.backlog.as_ref()?;
    Some(ui.app.shown_now(ui.now).mono.saturating_sub(*at).as_secs_f64())
}

/// Whether the pass is older than it should be.
fn is_old(ui: Ui<'_>) -> bool {
    let interval = ui.app.backlog().map_or(0.0, |b| b.interval_ms as f64 / 1e3);
    slow_age(ui).is_some_and(|a| a > interval * 2.0 + 5.0)
}

fn title(ui: Ui<'_>) -> Vec<Piece> {
    let dim = ui.style(Role::Dim);
    let mut pieces = vec![("Backlog by type".to_owned(), ui.style(Role::Title))];
    pieces.extend(filter_title(ui, List::Types));
    let Some(b) = ui.app.backlog() else { return pieces };
    if let Some(looked) = b.ready.value().filter(|l| l.more) {
        let text = format!(" · of the oldest {} ready", thousands(looked.seen));
        pieces.push((text, ui.style(Role::Accent)));
    }
    if let Some(a) = slow_age(ui) {
        let role = if is_old(ui) { Role::Warn } else { Role::Dim };
        pieces.push((format!(" · {}", ago(a)), ui.style(role)));
    }
    for (state, r) in COUNTED.iter().filter_map(|s| b.of(*s).map(|r| (s, r))) {
        if let Some(why) = r.trouble() {
            pieces.push((format!(" · {}: {why}", state.word()), ui.style(Role::Warn)));
        }
    }
    pieces.extend(odd(b).into_iter().map(|text| (format!(" · {text}"), ui.style(Role::Warn))));
    pieces.push((format!(" · read in {:.0}ms", b.pass_ms.max(1.0)), dim));
    pieces
}

/// What no claim will ever take, and triggers that send rows.
fn odd(b: &Backlog) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(i) = b.inconsistent.value() {
        let (n, more) = (i.without_due + i.for_ever, if i.more { "≥" } else { "" });
        if n > 0 {
            out.push(format!("{more}{} that no claim takes", count(n)));
        }
        out.extend(i.unknown_states.iter().map(|(state, _)| format!("unknown status {state}")));
    }
    let triggers = b.triggers.value().into_iter().flatten().filter(|t| t.carries_row);
    out.extend(triggers.map(|t| format!("trigger {} sends rows", t.name)));
    out
}

fn thousands(n: u64) -> String {
    if n >= 1_000 && n.is_multiple_of(1_000) { format!("{}k", n / 1_000) } else { count(n) }
}

fn row(ui: Ui<'_>, b: &Backlog, line: &TypeLine, most: u64, w: &[usize]) -> Vec<Vec<Piece>> {
    let old = is_old(ui);
    let cell = |column: usize, cells: usize| {
        let reading = b.of(COUNTED[column]);
        let Some(looked) = reading.and_then(|r| r.value()) else {
            return grid::right(ui, "—", cells, Role::Unknown);
        };
        let mark = if looked.more { "≥" } else { "" };
        let n = line.jobs[column].unwrap_or(0);
        let role = match (n, old || !reading.is_some_and(|r| r.is_current())) {
            (0, _) | (_, true) => Role::Dim,
            _ if column == 3 => Role::Warn,
            _ => Role::Text,
        };
        grid::right(ui, &format!("{mark}{}", count(n)), cells, role)
    };
    let name = if line.job_type.is_empty() { "(no type)" } else { &line.job_type };
    let since = slow_age(ui).unwrap_or(0.0);
    let limits = &ui.app.setup().thresholds;
    let oldest = match line.oldest {
        None => grid::right(ui, if line.jobs[0].is_some() { "?" } else { "none" }, w[2], Role::Dim),
        Some(s) if s > limits.oldest_ready_s && !old => grid::right(ui, &age(s), w[2], Role::Warn),
        Some(s) => grid::right(ui, &age(s), w[2], if old { Role::Dim } else { Role::Text }),
    };
    let share = line.jobs[0].map_or(0.0, |n| n as f64 / most.max(1) as f64);
    let full = ((share * w[3] as f64).round() as usize).max(usize::from(share > 0.0)).min(w[3]);
    let next = line.next.map_or_else(|| "none".to_owned(), |s| whole(s - since));
    vec![
        grid::text(ui, name, w[0], if old { Role::Dim } else { Role::Text }),
        cell(0, w[1]),
        oldest,
        vec![("█".repeat(full), ui.style(if old { Role::Dim } else { Role::Spark }))],
        cell(1, w[4]),
        grid::right(ui, &next, w[5], Role::Dim),
        cell(2, w[6]),
        cell(3, w[7]),
        grid::right(ui, &change(line.change), w[8], if old { Role::Dim } else { Role::Text }),
    ]
}

/// `+4.2/s`, `-1.0/s`, `0/s`; `—` where a pass did not see all jobs of the type.
fn change(per_second: Option<f64>) -> String {
    match per_second {
        None => "—".to_owned(),
        Some(c) if c > 0.0 => format!("+{}", rate(c)),
        Some(c) if c < 0.0 => format!("-{}", rate(-c)),
        Some(_) => rate(0.0),
    }
}

/// The fast lane's totals over all types, and the table's size and dead rows.
fn table(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let relation = ui.app.facts().map_or_else(String::new, |f| f.relation.clone());
    let title = [
        ("Table".to_owned(), ui.style(Role::Title)),
        (
            format!(" · {}", crate::text::fit(&relation, crate::text::width(&relation).min(48))),
            ui.style(Role::Dim),
        ),
    ];
    let inner = paint::airy_panel(ui, buf, area, &title, Role::Border);
    let dim = ui.style(Role::Dim);
    let mut lines: Vec<Vec<Piece>> = Vec::new();
    if let Some(s) = ui.app.sample() {
        let now = ui.app.server_now(ui.now);
        let stale = ui.app.is_stale(ui.now);
        // a count that is cut is another count: where room is short the words go first
        let roomy = inner.width >= 64;
        let mut all = if roomy { vec![("all types  ".to_owned(), dim)] } else { Vec::new() };
        for (i, (name, r)) in [
            ("ready", &s.counts.ready),
            ("scheduled", &s.counts.scheduled),
            ("running", &s.counts.running),
            ("failed", &s.counts.failed),
        ]
        .into_iter()
        .enumerate()
        {
            let shown = show(r, now, stale, count_text(r));
            let gap = if i == 0 { "" } else { "  " };
            all.push((format!("{gap}{}{name} ", if roomy && i > 0 { " " } else { "" }), dim));
            all.push((shown.value, ui.style(shown.role)));
        }
        lines.push(all);
    }
    match ui.app.backlog().map(|b| &b.table) {
        None => lines.push(vec![("— not read yet".to_owned(), ui.style(Role::Unknown))]),
        Some(r) => match (r.value(), r.trouble()) {
            (Some(t), trouble) => {
                lines.extend(facts(ui, t, usize::from(inner.width)));
                if let (Some(why), Some(last)) = (trouble, lines.last_mut()) {
                    last.push((format!("   {why}"), ui.style(Role::Warn)));
                }
            }
            (None, why) => {
                let why = why.map(ToString::to_string).unwrap_or_default();
                lines.push(vec![(format!("size and vacuum — {why}"), ui.style(Role::Unknown))]);
            }
        },
    }
    for (i, pieces) in lines.iter().enumerate().take(usize::from(inner.height)) {
        paint::line(buf, inner.x, inner.y + i as u16, inner.width, pieces);
    }
}

fn facts(ui: Ui<'_>, t: &TableFacts, room: usize) -> Vec<Vec<Piece>> {
    let dim = ui.style(Role::Dim);
    let text = ui.style(Role::Text);
    let now = ui.app.server_now(ui.now);
    let dead = match (t.dead, t.live) {
        (Some(dead), Some(live)) if dead + live > 0 => {
            let share = dead as f64 / (dead + live) as f64;
            // an index full of dead entries is what makes claims slow
            let role = if share > 0.5 && dead > 10_000 { Role::Warn } else { Role::Text };
            (format!("~{} ({})", count(dead), percent(share)), ui.style(role))
        }
        (Some(dead), _) => (format!("~{}", count(dead)), text),
        (None, _) => ("—".to_owned(), ui.style(Role::Unknown)),
    };
    let vacuum = match (t.vacuuming, t.autovacuumed) {
        (true, _) => "running now".to_owned(),
        (false, Some(at)) => ago(seconds(at, now)),
        (false, None) => "never".to_owned(),
    };
    let times = t.autovacuums.filter(|n| *n > 0).map(|n| format!(" ×{}", count(n))).unwrap_or_default();
    let size = vec![
        ("size  table ".to_owned(), dim),
        (bytes_count(t.table_bytes), text),
        ("  indexes ".to_owned(), dim),
        (bytes_count(t.index_bytes), text),
    ];
    let vacuum = vec![
        ("dead rows ".to_owned(), dim),
        dead,
        ("  autovacuum ".to_owned(), dim),
        (format!("{vacuum}{times}"), text),
    ];
    if room >= 96 {
        let mut one = size;
        one.push(("   ".to_owned(), dim));
        one.extend(vacuum);
        return vec![one];
    }
    vec![size, vacuum]
}
