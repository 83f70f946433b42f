//! How work is announced and found: the tape, the split, the latency, and every gap.

use chrono::{DateTime, Utc};
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::workers::{FOUND, found_bar, millis};
use crate::app::lists::List;
use crate::app::series::Figure;
use crate::app::tape::{CLASSES_MS, Line, Mark};
use crate::model::Counters;
use crate::text::{count, fit, fit_middle, pad_left, percent, rate, width};
use crate::ui::paint::{self, Piece};
use crate::ui::widgets::grid::{Column, Grid, filter_title, fixed, growing};
use crate::ui::widgets::listening;
use crate::ui::widgets::reading::show;
use crate::ui::widgets::spark::spark;
use crate::ui::{Role, Ui};

/// What the folding ratio looks back over.
const SPAN: Duration = Duration::from_secs(300);

const COLUMNS: [Column; 3] =
    [fixed("time", 8, false, 0), growing("event", 24, 60, 0), growing("of", 12, 40, 1)];

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let top = Rect { height: area.height.min(if area.height < 20 { 6 } else { 7 }), ..area };
    let wide = area.width >= 76;
    let left = if wide { (area.width * 9 / 20).max(38) } else { area.width };
    found(ui, buf, Rect { width: left, ..top });
    if wide {
        latency(ui, buf, Rect { x: top.x + left, width: area.width - left, ..top });
    }
    let height = match area.height {
        0..=17 => 3,
        18..=24 => 5,
        25..=40 => 8,
        _ => 14,
    };
    let middle = Rect { y: top.bottom(), height: height.min(area.height - top.height), ..area };
    listening::draw(ui, buf, middle);
    let rest = Rect { y: middle.bottom(), height: area.height - top.height - middle.height, ..area };
    tape(ui, buf, rest);
}

/// When the workers are asked whether they are alive. Of an old sample: when it was taken. Whether they are
/// now, nobody knows.
fn workers_at(ui: Ui<'_>) -> DateTime<Utc> {
    match ui.app.sample() {
        Some(old) if ui.app.is_stale(ui.now) => old.taken_at,
        _ => ui.app.server_now(ui.now),
    }
}

/// The counters of the workers that are alive, added up.
fn together(ui: Ui<'_>) -> Option<(usize, Counters)> {
    let rows = ui.app.sample()?.workers.value()?;
    let now = workers_at(ui);
    let alive: Vec<_> = rows.iter().filter(|r| r.is_alive(now)).collect();
    Some((alive.len(), alive.iter().fold(Counters::default(), |sum, r| sum.plus(&r.counters))))
}

fn found(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let dim = ui.style(Role::Dim);
    let mut title = vec![("Found by".to_owned(), ui.style(Role::Title))];
    match ui.app.sample_age(ui.now).filter(|_| ui.app.is_stale(ui.now)) {
        Some(age) => title.push((
            format!(" · {} old", crate::text::age(age.as_secs_f64().floor()).replace(".0s", "s")),
            ui.style(Role::Warn),
        )),
        None => title.push((" · since their start".to_owned(), dim)),
    }
    let inner = paint::airy_panel(ui, buf, area, &title, Role::Border);
    let mut lines: Vec<Vec<Piece>> = Vec::new();
    let cells = usize::from(inner.width);
    match together(ui) {
        None => lines.push(vec![("— the workers report nothing".to_owned(), ui.style(Role::Unknown))]),
        Some((0, _)) => lines.push(vec![("no worker is alive".to_owned(), ui.style(Role::Warn))]),
        Some((_, c)) => {
            lines.push(found_bar(ui, &c, cells));
            let total: i64 = FOUND.iter().map(|(r, _, _)| c.found_by(*r)).sum();
            let share = |n: i64| percent(n as f64 / total.max(1) as f64);
            let mut legend = Vec::new();
            for (reason, block, role) in FOUND {
                let n = c.found_by(reason);
                if n > 0 {
                    legend.push((format!("{block} "), ui.style(role)));
                    legend.push((format!("{} {}  ", reason.word(), share(n)), ui.style(Role::Text)));
                }
            }
            lines.push(legend);
        }
    }
    lines.push(folding(ui, cells));
    lines.push(queue(ui, cells));
    if let Some((alive, c)) = together(ui).filter(|(n, _)| *n > 0) {
        let missed = c.found_fallback - c.found_timed;
        let role = if missed * 2 > c.found_notify.max(1) { Role::Warn } else { Role::Dim };
        let word = if alive == 1 { "worker" } else { "workers" };
        let n = |n: i64| count(n.max(0).unsigned_abs());
        let text = match c.found_fallback {
            ..=0 => format!("{alive} {word} · none by fallback"),
            found => format!("{alive} {word} · fallback {}, {} by time", n(found), n(c.found_timed)),
        };
        lines.push(vec![(text, ui.style(role))]);
    }
    for (i, pieces) in lines.iter().enumerate().take(usize::from(inner.height)) {
        paint::line(buf, inner.x, inner.y + i as u16, inner.width, pieces);
    }
}

/// Wake-ups that arrived here for each job that came in: one commit is one wake-up, however many jobs.
fn folding(ui: Ui<'_>, cells: usize) -> Vec<Piece> {
    let dim = ui.style(Role::Dim);
    let name = ("folding ".to_owned(), dim);
    let now = ui.app.shown_now(ui.now).mono;
    let mean = |figure| ui.app.series().and_then(|s| s.mean(figure, SPAN, now));
    let (Some(wakes), Some(jobs)) = (mean(Figure::WakeUps), mean(Figure::Arrived)) else {
        return vec![name, ("— not known".to_owned(), ui.style(Role::Unknown))];
    };
    if jobs <= 0.0 {
        return vec![name, (format!("no job in 5 min · {} wake-ups", rate(wakes)), ui.style(Role::Text))];
    }
    let each = wakes / jobs;
    let text = if each >= 1.0 { format!("{each:.1}") } else { format!("{each:.3}") };
    let mut out = vec![name, (format!("{text} wake-ups/job"), ui.style(Role::Text))];
    let flow = format!(" · {} for {}", rate(wakes), rate(jobs));
    if paint::width_of(&out) + width(&flow) <= cells {
        out.push((flow, dim));
    }
    out
}

/// Queue usage, with enough digits to see that it is not nothing, and whether it grows.
fn queue(ui: Ui<'_>, cells: usize) -> Vec<Piece> {
    let mut out = vec![("queue ".to_owned(), ui.style(Role::Dim))];
    let Some(s) = ui.app.sample() else {
        out.push(("— not known".to_owned(), ui.style(Role::Unknown)));
        return out;
    };
    let now = ui.app.server_now(ui.now);
    let shown = show(&s.vitals.queue_usage, now, ui.app.is_stale(ui.now), |u| percent(*u));
    let limits = &ui.app.setup().thresholds;
    let level = s.vitals.queue_usage.current().map_or(shown.role, |u| match u {
        u if *u >= limits.queue_usage_critical => Role::Critical,
        u if *u >= limits.queue_usage_warn => Role::Warn,
        _ => shown.role,
    });
    out.push((format!("{} ", shown.value), ui.style(level)));
    if let Some(note) = shown.note {
        out.push((note, ui.style(Role::Unknown)));
        return out;
    }
    let mono = ui.app.shown_now(ui.now).mono;
    let span = Duration::from_secs(60);
    let growth = ui.app.series().and_then(|s| s.change(Figure::QueueUsage, span, mono));
    let grows = match growth {
        None => String::new(),
        Some(g) if g.abs() < 1e-9 => "steady ".to_owned(),
        Some(g) if g > 0.0 => format!("+{} a minute ", percent(g)),
        Some(g) => format!("-{} a minute ", percent(-g)),
    };
    let growing = growth.is_some_and(|g| g > 1e-4);
    out.push((grows, ui.style(if growing { Role::Warn } else { Role::Dim })));
    let used = paint::width_of(&out);
    if let Some(series) = ui.app.series().filter(|_| cells > used + 8) {
        let columns = (cells - used).min(24);
        let fold = crate::app::series::Fold::Max;
        let width = span / columns.max(1) as u32;
        let values = series.columns(Figure::QueueUsage, fold, columns, width, mono);
        out.push((spark(&values, limits.queue_usage_warn), ui.style(Role::Spark)));
    }
    out
}

fn latency(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let dim = ui.style(Role::Dim);
    let title =
        [("Wake-up to claim".to_owned(), ui.style(Role::Title)), (" · p50, p95, p99".to_owned(), dim)];
    let inner = paint::airy_panel(ui, buf, area, &title, Role::Border);
    let rows = usize::from(inner.height);
    let histogram = ui.app.world().tape.largest().is_some();
    // the slowest first: that is the one somebody waits for
    let mut workers: Vec<_> = ui
        .app
        .sample()
        .and_then(|s| s.workers.value())
        .into_iter()
        .flatten()
        .filter(|r| r.is_alive(workers_at(ui)) && r.wake_latency.p50.is_some())
        .collect();
    workers.sort_by(|a, b| b.wake_latency.p95.unwrap_or(0.0).total_cmp(&a.wake_latency.p95.unwrap_or(0.0)));
    let mut lines: Vec<Vec<Piece>> = Vec::new();
    let room = rows.saturating_sub(if histogram { 2 } else { 1 });
    let name = usize::from(inner.width).saturating_sub(3 * 9).clamp(6, 24);
    for r in workers.iter().take(room) {
        let p = r.wake_latency;
        let mut line = vec![(fit_middle(&r.name, name), ui.style(Role::Text))];
        for ms in [p.p50, p.p95, p.p99] {
            line.push((format!(" {}", pad_left(&millis(ms), 8)), ui.style(Role::Text)));
        }
        lines.push(line);
    }
    if workers.is_empty() {
        lines.push(vec![("no worker has measured one yet".to_owned(), dim)]);
    } else if workers.len() > room {
        let text = format!(" · {} more on screen 4", workers.len() - room);
        if let Some(last) = lines.last_mut() {
            last.push((text, dim));
        }
    }
    if histogram {
        lines.extend(classes(ui));
    } else {
        let text = match ui.app.world().worker.is_on() {
            true => "this program's worker has not been woken yet",
            false => "a worker here (w) shows each wake-up",
        };
        lines.push(vec![(text.to_owned(), dim)]);
    }
    for (i, pieces) in lines.iter().enumerate().take(rows) {
        paint::line(buf, inner.x, inner.y + i as u16, inner.width, pieces);
    }
}

/// What the worker of this program measured, wake-up by wake-up.
fn classes(ui: Ui<'_>) -> Vec<Vec<Piece>> {
    let tape = &ui.app.world().tape;
    let most = tape.classes().iter().copied().max().unwrap_or(0).max(1);
    let mut bars = vec![("here ".to_owned(), ui.style(Role::Dim))];
    let mut names = vec![("≤ ms ".to_owned(), ui.style(Role::Dim))];
    // only the classes between the shortest and the longest: a narrow panel shows them all
    let all = tape.classes();
    let first = all.iter().position(|n| *n > 0).unwrap_or(0);
    let last = all.iter().rposition(|n| *n > 0).unwrap_or(0);
    for (i, n) in all.iter().enumerate().take(last + 1).skip(first) {
        let name = CLASSES_MS.get(i).map_or("more".to_owned(), |ms| {
            if *ms >= 1_000.0 { format!("{:.0}s", ms / 1e3) } else { format!("{ms:.0}") }
        });
        let cells = width(&name).max(3);
        let bar = if *n == 0 {
            "·".to_owned()
        } else {
            // never the full block: that stands for "above its limit" elsewhere
            spark(&[Some(*n as f64)], most as f64).repeat(cells)
        };
        bars.push((
            format!("{} ", fit(&bar, cells)),
            ui.style(if *n == 0 { Role::Dim } else { Role::Spark }),
        ));
        names.push((format!("{} ", fit(&name, cells)), ui.style(Role::Dim)));
    }
    vec![bars, names]
}

fn tape(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let list = ui.app.tape();
    let sel = ui.app.tape_selection();
    let mut title = vec![("Tape".to_owned(), ui.style(Role::Title))];
    title.extend(filter_title(ui, List::Tape));
    let heard = format!(" · {} wake-ups here", count(ui.app.world().wakeups));
    title.push((heard, ui.style(Role::Dim)));
    if sel.row() > 0 {
        title.push((" · g follows the newest".to_owned(), ui.style(Role::Accent)));
    } else {
        title.push((" · newest first".to_owned(), ui.style(Role::Dim)));
    }
    let inner = paint::airy_panel(ui, buf, area, &title, Role::Focus);
    let empty = ("no wake-up has arrived here, and no claim was made here".to_owned(), Role::Dim);
    let grid = Grid { list: List::Tape, columns: &COLUMNS, selection: sel, len: list.len(), empty };
    grid.draw(ui, buf, inner, |i, w| list.get(i).map_or_else(Vec::new, |line| row(ui, line, w)));
}

fn row(ui: Ui<'_>, line: &Line, w: &[usize]) -> Vec<Vec<Piece>> {
    let (symbol, role) = match line.mark {
        Mark::Wake => ("↻", Role::Accent),
        Mark::Got => ("●", Role::Ok),
        Mark::Empty => ("○", Role::Dim),
        Mark::Contended => ("▲", Role::Warn),
        Mark::Failed | Mark::Lost => ("✖", Role::Critical),
        Mark::Drain(_) | Mark::Back => ("✔", Role::Ok),
    };
    let loud = matches!(line.mark, Mark::Contended | Mark::Failed | Mark::Lost);
    vec![
        vec![(ui.app.clock(line.wall), ui.style(Role::Dim))],
        vec![
            (format!("{symbol} "), ui.style(role)),
            (line.text.clone(), ui.style(if loud { role } else { Role::Text })),
        ],
        vec![(fit_middle(&line.of, w[2]), ui.style(Role::Dim))],
    ]
}
