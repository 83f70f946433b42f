//! Vital signs, backlog, flow, holders, events.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::health::{Level, Vital};
use crate::app::series::{Figure, Fold};
use crate::model::{Holder, Reading};
use crate::text::{age, count, fit, fit_middle, pad_left, percent, rate};
use crate::ui::frame::symbol;
use crate::ui::paint::{self, Piece};
use crate::ui::widgets::chart::{self, Curve, Stroke};
use crate::ui::widgets::lease::{EXPIRY, expiry, heartbeat, seconds, whole};
use crate::ui::widgets::reading::{count_text, show};
use crate::ui::widgets::spark::spark;
use crate::ui::{Role, Ui};

/// What a sparkline looks back over.
const SPARK_SPAN: Duration = Duration::from_secs(60);

/// What the flow chart looks back over.
const FLOW_SPAN: Duration = Duration::from_secs(300);

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let mut y = area.y;
    let mut take = |height: u16| {
        let r = Rect::new(area.x, y, area.width, height.min(area.bottom().saturating_sub(y)));
        y += r.height;
        r
    };
    vitals(ui, buf, take(4));
    let middle = take(match area.height {
        0..=24 => 6,
        25..=40 => 8,
        _ => (area.height / 4).min(16),
    });
    let left = if area.width < 100 { 36 } else { 41 };
    let [left, right] = split(middle, left);
    backlog(ui, buf, left);
    flow(ui, buf, right);

    let rest = take(u16::MAX);
    if area.width >= 100 {
        let [left, right] = split(rest, (area.width * 4 / 7).max(68));
        holders(ui, buf, left);
        super::events::panel(ui, buf, right);
    } else if rest.height >= 9 {
        let top = rest.height - rest.height * 2 / 5;
        holders(ui, buf, Rect { height: top, ..rest });
        let events = Rect { y: rest.y + top, height: rest.height - top, ..rest };
        super::events::panel(ui, buf, events);
    } else {
        holders(ui, buf, rest);
    }
}

fn split(area: Rect, left: u16) -> [Rect; 2] {
    let left = left.min(area.width);
    [Rect { width: left, ..area }, Rect { x: area.x + left, width: area.width - left, ..area }]
}

fn vitals(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let title = [("Vital signs".to_owned(), ui.style(Role::Title))];
    let inner = paint::panel(ui, buf, area, &title, Role::Border);
    if inner.height < 2 {
        return;
    }
    let half = inner.width / 2;
    for (i, vital) in Vital::ALL.into_iter().enumerate() {
        // in reading order: down the left, then down the right
        let (column, row) = ([0, 1, 0, 1][i], [0, 0, 1, 1][i]);
        let at = Rect::new(inner.x + column * half, inner.y + row, half, 1);
        vital_sign(ui, buf, at, vital);
    }
}

fn vital_sign(ui: Ui<'_>, buf: &mut Buffer, area: Rect, vital: Vital) {
    let app = ui.app;
    let limits = &app.setup().thresholds;
    let now = app.server_now(ui.now);
    let stale = app.is_stale(ui.now);
    let (reading, level) = match app.sample() {
        Some(s) => (vital.reading(&s.vitals), vital.level(&s.vitals, limits)),
        None => (Reading::default(), Level::Unknown),
    };
    let level = if stale { Level::Unknown } else { level };
    let shown = show(&reading, now, stale, |v| match v {
        None => "none".to_owned(),
        Some(v) => match vital {
            Vital::OldestReady | Vital::Recovery => age(*v),
            Vital::QueueUsage | Vital::ClaimSuccess => percent(*v),
        },
    });
    let limit = match vital {
        Vital::OldestReady => format!("≤ {}", whole(limits.oldest_ready_s)),
        Vital::QueueUsage => format!("≤ {:.0}%", limits.queue_usage_warn * 100.0),
        Vital::ClaimSuccess => format!("≥ {:.0}%", limits.claim_success * 100.0),
        Vital::Recovery => format!("≤ {}", whole(limits.recovery_p95_s)),
    };
    let room = usize::from(area.width);
    let has_limit = room >= 46;
    // name 14, value 8, gaps, symbol; what is left between is for the curve or the reason
    let middle = room.saturating_sub(1 + 13 + 1 + 8 + 2 + 2 + if has_limit { 9 } else { 0 }).min(24);
    let middle = if middle < 6 { 0 } else { middle };
    let role = match level {
        Level::Ok | Level::Unknown => shown.role,
        other => Role::of(other),
    };
    let mut pieces: Vec<Piece> = vec![
        (format!(" {} ", fit(vital.title(), 13)), ui.style(Role::Dim)),
        (pad_left(&fit(&shown.value, crate::text::width(&shown.value).min(8)), 8), ui.style(role)),
        ("  ".to_owned(), ui.style(Role::Text)),
    ];
    if middle > 0 {
        let (text, role) = match shown.note {
            Some(note) => (note, Role::Unknown),
            None => curve(ui, vital, middle),
        };
        pieces.push((format!("{} ", fit(&text, middle)), ui.style(role)));
    }
    if has_limit {
        pieces.push((format!(" {} ", fit(&limit, 7)), ui.style(Role::Dim)));
    }
    pieces.push((symbol(level).to_owned(), ui.style(Role::of(level))));
    paint::line(buf, area.x, area.y, area.width, &pieces);
}

fn curve(ui: Ui<'_>, vital: Vital, columns: usize) -> (String, Role) {
    let limits = &ui.app.setup().thresholds;
    let (figure, fold, full) = match vital {
        Vital::OldestReady => (Figure::OldestReady, Fold::Max, limits.oldest_ready_s),
        Vital::QueueUsage => (Figure::QueueUsage, Fold::Max, limits.queue_usage_warn),
        Vital::ClaimSuccess => (Figure::ClaimSuccess, Fold::Min, 1.0),
        Vital::Recovery => {
            let n = ui.app.sample().and_then(|s| s.vitals.reconnects.value().copied());
            let text = match n {
                None => String::new(),
                Some(1) => "1 reconnect".to_owned(),
                Some(n) => format!("{} reconnects", count(n.max(0) as u64)),
            };
            return (text, Role::Dim);
        }
    };
    let Some(series) = ui.app.series() else { return (String::new(), Role::Dim) };
    let now = ui.app.shown_now(ui.now).mono;
    let columns = series.columns(figure, fold, columns, SPARK_SPAN / columns.max(1) as u32, now);
    (spark(&columns, full), Role::Spark)
}

fn backlog(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let title = [("Backlog".to_owned(), ui.style(Role::Title))];
    let inner = paint::panel(ui, buf, area, &title, Role::Border);
    let Some(s) = ui.app.sample() else {
        paint::text(
            buf,
            inner.x + 1,
            inner.y,
            inner.width,
            "— nothing is known yet",
            ui.style(Role::Unknown),
        );
        return;
    };
    let now = ui.app.server_now(ui.now);
    let stale = ui.app.is_stale(ui.now);
    let seconds_or_none =
        |r: &Reading<Option<f64>>| show(r, now, stale, |v| v.map_or_else(|| "none".to_owned(), age));
    let number = |r: &Reading<u64>| show(r, now, stale, count_text(r));
    let loud = |r: &Reading<u64>| r.current().is_some_and(|n| *n > 0) && !stale;
    let rows = [
        ("ready", &s.counts.ready, Some(("oldest", seconds_or_none(&s.vitals.oldest_ready), Role::Text))),
        ("scheduled", &s.counts.scheduled, Some(("next", seconds_or_none(&s.next_scheduled), Role::Text))),
        (
            "running",
            &s.counts.running,
            Some((
                "expired",
                number(&s.counts.expired),
                if loud(&s.counts.expired) { Role::Critical } else { Role::Text },
            )),
        ),
        ("failed", &s.counts.failed, None),
    ];
    let wide = inner.width >= 38;
    let mut y = inner.y;
    for (name, reading, beside) in rows {
        if y >= inner.bottom() {
            return;
        }
        let shown = number(reading);
        let role = if name == "failed" && loud(reading) { Role::Warn } else { shown.role };
        let mut pieces = vec![
            (format!(" {} ", fit(name, 9)), ui.style(Role::Dim)),
            (pad_left(&shown.value, if wide { 9 } else { 8 }), ui.style(role)),
            ("  ".to_owned(), ui.style(Role::Text)),
        ];
        match (shown.note, beside) {
            // the reason of a missing count matters more than its neighbour
            (Some(note), _) if !stale => pieces.push((note, ui.style(Role::Unknown))),
            (_, Some((name, shown, role))) => {
                let role = if shown.role == Role::Text { role } else { shown.role };
                pieces.push((format!(" {} ", fit(name, 7)), ui.style(Role::Dim)));
                pieces.push((pad_left(&shown.value, if wide { 7 } else { 6 }), ui.style(role)));
            }
            _ => {}
        }
        paint::line(buf, inner.x, y, inner.width, &pieces);
        y += 1;
    }
    for (name, text, role) in company(ui) {
        if y >= inner.bottom() {
            return;
        }
        let cells = usize::from(inner.width).saturating_sub(12);
        let pieces = [
            (format!(" {} ", fit(name, 9)), ui.style(Role::Dim)),
            (" ".to_owned(), ui.style(Role::Dim)),
            (fit(&text, cells), ui.style(role)),
        ];
        paint::line(buf, inner.x, y, inner.width, &pieces);
        y += 1;
    }
}

/// What else is worth a row where there is room.
fn company(ui: Ui<'_>) -> Vec<(&'static str, String, Role)> {
    let mut out = Vec::new();
    let Some(s) = ui.app.sample() else { return out };
    let now = ui.app.server_now(ui.now);
    match (s.workers.value(), s.workers.trouble()) {
        (Some(rows), _) => {
            let alive = rows.iter().filter(|w| w.is_alive(now)).count();
            let silent = rows.len() - alive;
            let role = if alive == 0 { Role::Warn } else { Role::Text };
            let silent = if silent > 0 { format!(", {silent} silent") } else { String::new() };
            out.push(("workers", format!("{alive} alive{silent}"), role));
        }
        (None, Some(why)) => out.push(("workers", format!("— {why}"), Role::Unknown)),
        (None, None) => {}
    }
    let world = ui.app.world();
    let last = match world.last_wakeup {
        Some(at) => {
            let s = ui.app.shown_now(ui.now).mono.saturating_sub(at).as_secs_f64();
            format!("{} here, last {}", count(world.wakeups), crate::text::ago(s))
        }
        None => "none here yet".to_owned(),
    };
    out.push(("wake-ups", last, Role::Text));
    let share = show(&s.vitals.fallback_share, now, false, |v| v.map_or("none".to_owned(), percent));
    out.push(("fallback", format!("{} of the jobs found", share.value), share.role));
    let p99 = show(&s.vitals.claim_p99_ms, now, false, |v| {
        v.map_or("none".to_owned(), |ms| format!("{ms:.1}ms"))
    });
    out.push(("claim p99", p99.value, p99.role));
    let used = show(&s.connections, now, false, |(used, most)| format!("{used} of {most} used"));
    out.push(("sessions", used.value, used.role));
    out
}

fn flow(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let title =
        [("Flow".to_owned(), ui.style(Role::Title)), (" · last 5 min".to_owned(), ui.style(Role::Dim))];
    let inner = paint::panel(ui, buf, area, &title, Role::Border);
    if inner.width < 20 || inner.height < 3 {
        return;
    }
    let now = ui.app.shown_now(ui.now);
    let legend = 15;
    let axis = 6;
    let plot = Rect::new(inner.x + axis, inner.y, inner.width - axis - legend, inner.height - 1);
    let dots = usize::from(plot.width) * 2;
    let width = FLOW_SPAN / dots.max(1) as u32;
    let columns = |figure| {
        ui.app.series().map_or_else(Vec::new, |s| s.columns(figure, Fold::Mean, dots, width, now.mono))
    };
    let (arrived, done, failed) =
        (columns(Figure::Arrived), columns(Figure::Done), columns(Figure::Failed));
    let most = arrived.iter().chain(&done).chain(&failed).flatten().copied().fold(0.0, f64::max);
    let top = chart::round_up(most);
    let curves = [
        Curve { values: &failed, style: ui.style(Role::Failed), stroke: Stroke::Dotted },
        Curve { values: &done, style: ui.style(Role::Done), stroke: Stroke::Dotted },
        Curve { values: &arrived, style: ui.style(Role::Arrived), stroke: Stroke::Solid },
    ];
    chart::draw(buf, plot, top, &curves);

    let dim = ui.style(Role::Dim);
    let short = |v: f64| if v >= 1000.0 { format!("{:.0}k", v / 1e3) } else { format!("{v:.0}") };
    for y in 0..plot.height {
        let label = match y {
            0 => short(top),
            y if y == plot.height - 1 => "0".to_owned(),
            y if plot.height >= 5 && y == plot.height / 2 => short(top / 2.0),
            _ => String::new(),
        };
        let tick = if label.is_empty() { "│" } else { "┤" };
        paint::text(buf, inner.x, plot.y + y, axis, &format!("{}{tick}", pad_left(&label, 5)), dim);
    }
    let from = ui.app.clock(now.wall - FLOW_SPAN);
    let to = ui.app.clock(now.wall);
    let bottom = plot.bottom();
    paint::text(buf, plot.x.saturating_sub(1), bottom, 1, "└", dim);
    let cells = usize::from(plot.width);
    if cells >= 16 {
        let gap = " ".repeat(cells.saturating_sub(12));
        paint::text(buf, plot.x, bottom, plot.width, &format!(" {}{gap}{}", &from[..5], &to[..5]), dim);
    }
    let rates = ui.app.sample().map(|s| [&s.flow.arrived, &s.flow.done, &s.flow.failed]);
    let server_now = ui.app.server_now(ui.now);
    let stale = ui.app.is_stale(ui.now);
    for (i, (mark, name, role)) in
        [("─", "in", Role::Arrived), ("┄", "done", Role::Done), ("┄", "fail", Role::Failed)]
            .into_iter()
            .enumerate()
    {
        let y = inner.y + i as u16;
        if y >= inner.bottom() {
            break;
        }
        let shown = rates.map(|r| show(r[i], server_now, stale, |v| rate(*v)));
        let (value, style) = shown
            .map_or_else(|| ("—".to_owned(), ui.style(Role::Unknown)), |s| (s.value, ui.style(s.role)));
        let pieces = [
            (format!(" {mark} {} ", fit(name, 4)), ui.style(role)),
            (pad_left(&fit(&value, crate::text::width(&value).min(7)), 7), style),
        ];
        paint::line(buf, plot.right(), y, legend, &pieces);
    }
}

fn holders(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let app = ui.app;
    let list = app.holders();
    let inner = paint::panel(ui, buf, area, &holders_title(ui), Role::Focus);
    if inner.height < 2 {
        return;
    }
    let room = usize::from(inner.width);
    // cursor, held, oldest, expiry, heartbeat and the gaps between
    let fixed = 2 + 5 + 1 + 8 + 2 + EXPIRY + 1 + 9 + 1;
    let backend = if room >= fixed + 16 + 9 { 9 } else { 0 };
    let oldest = room >= fixed + 12;
    let name = room.saturating_sub(fixed + backend + usize::from(!oldest) * 0).max(8).min(48);
    let name = if oldest { name } else { room.saturating_sub(fixed - 9).max(8) };
    let mut heads = format!("  {} {}", fit("holder", name), pad_left("held", 5));
    if oldest {
        heads += &format!(" {}", pad_left("oldest", 8));
    }
    heads += &format!("  {} {}", fit("next expiry", EXPIRY), fit("heartbeat", 9));
    if backend > 0 {
        heads += &pad_left("backend", backend);
    }
    paint::text(buf, inner.x, inner.y, inner.width, &heads, ui.style(Role::Dim));
    if list.is_empty() {
        let (text, role) = match app.sample().map(|s| &s.holders) {
            None => ("nothing is known yet".to_owned(), Role::Unknown),
            Some(r) => match (r.value(), r.trouble()) {
                (None, Some(why)) => (format!("— {why}"), Role::Unknown),
                _ => ("no job is held".to_owned(), Role::Dim),
            },
        };
        paint::text(buf, inner.x + 2, inner.y + 1, inner.width.saturating_sub(2), &text, ui.style(role));
        return;
    }
    let now = app.server_now(ui.now);
    let faded = app.is_stale(ui.now) || app.sample().is_some_and(|s| !s.holders.is_current());
    let text = ui.style(if faded { Role::Dim } else { Role::Text });
    let sel = app.holder_selection();
    let rows = usize::from(inner.height - 1);
    let top = sel.top(list.len(), rows);
    for (i, h) in list.iter().enumerate().skip(top).take(rows) {
        let h: &Holder = h;
        let y = inner.y + 1 + (i - top) as u16;
        let selected = sel.key().is_some() && i == sel.row();
        let end = inner.right();
        let mark = if selected { "▶ " } else { "  " };
        let mut x = paint::text(buf, inner.x, y, 2, mark, ui.style(Role::Accent));
        let mut put = |cells: usize, gap: u16, pieces: &[Piece]| {
            paint::line(buf, x, y, (cells as u16).min(end.saturating_sub(x)), pieces);
            x = (x + cells as u16 + gap).min(end);
        };
        put(name, 1, &[(fit_middle(&h.name, name), text)]);
        put(5, 0, &[(pad_left(&count(h.held), 5), text)]);
        if oldest {
            let since = h.oldest_since.map_or_else(|| "—".to_owned(), |s| age(seconds(s, now)));
            put(9, 0, &[(pad_left(&since, 9), text)]);
        }
        put(2, 0, &[]);
        put(EXPIRY, 1, &expiry(ui, h.next_expiry, now));
        put(9, 0, &[heartbeat(ui, h.heartbeat, now)]);
        if backend > 0 {
            let pid = h.backend.map_or_else(|| "—".to_owned(), |p| p.to_string());
            put(backend, 0, &[(pad_left(&pid, backend), ui.style(Role::Dim))]);
        }
        if selected {
            paint::highlight(buf, Rect::new(inner.x, y, inner.width, 1), ui.style(Role::Selection));
        }
    }
}

fn holders_title(ui: Ui<'_>) -> Vec<Piece> {
    let dim = ui.style(Role::Dim);
    let mut pieces = vec![("Leases".to_owned(), ui.style(Role::Title))];
    let Some(s) = ui.app.sample() else { return pieces };
    let now = ui.app.server_now(ui.now);
    let stale = ui.app.is_stale(ui.now);
    if let Some(h) = s.holders.value() {
        let word = if h.len() == 1 { "holder" } else { "holders" };
        pieces.push((format!(" · {} {word}", count(h.len() as u64)), dim));
    }
    let held = show(&s.counts.running, now, stale, count_text(&s.counts.running));
    pieces.push((format!(" · {} held", held.value), dim));
    let expired = show(&s.counts.expired, now, stale, count_text(&s.counts.expired));
    let quiet = s.counts.expired.current() == Some(&0);
    let style = if quiet { dim } else { ui.style(Role::Critical) };
    pieces.push((format!(" · {} expired", expired.value), style));
    if let Some(note) = show(&s.holders, now, stale, |_| String::new()).note {
        pieces.push((format!(" · {note}"), ui.style(Role::Warn)));
    }
    pieces
}
