//! Jobs a second, over the last minutes.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::chart::{self, Curve, Stroke};
use super::reading::show;
use crate::app::series::{Figure, Fold};
use crate::model::Reading;
use crate::text::{fit, pad_left, rate};
use crate::ui::paint;
use crate::ui::{Role, Ui};

/// What the chart looks back over.
const FLOW_SPAN: Duration = Duration::from_secs(300);

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let mut title =
        vec![("Flow".to_owned(), ui.style(Role::Title)), (" · last 5 min".to_owned(), ui.style(Role::Dim))];
    if let Some(why) = missing(ui) {
        title.push((format!(" · {why}"), ui.style(Role::Unknown)));
    }
    let inner = paint::panel(ui, buf, area, &title, Role::Border);
    if inner.width < 16 || inner.height < 3 {
        return;
    }
    let now = ui.app.shown_now(ui.now);
    let legend = 16;
    let axis = 6;
    // too narrow for a picture: the figures alone
    if inner.width < legend + axis + 10 {
        return legend_rows(ui, buf, Rect { x: inner.x, width: inner.width, ..inner });
    }
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
        Curve { values: &arrived, style: ui.style(Role::Arrived), stroke: Stroke::Solid },
        Curve { values: &done, style: ui.style(Role::Done), stroke: Stroke::Dotted },
        Curve { values: &failed, style: ui.style(Role::Failed), stroke: Stroke::Sparse },
    ];
    chart::draw(buf, plot, top, &curves, ui.theme.is_ascii());

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
    let beside = Rect { x: plot.right(), width: legend, ..inner };
    legend_rows(ui, buf, beside);
}

/// The newest rates, with the stroke and the colour of their curves.
fn legend_rows(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let rates = ui.app.sample().map(|s| [&s.flow.arrived, &s.flow.done, &s.flow.failed]);
    let server_now = ui.app.server_now(ui.now);
    let stale = ui.app.is_stale(ui.now);
    for (i, (stroke, name, role)) in [
        (Stroke::Solid, "in", Role::Arrived),
        (Stroke::Dotted, "done", Role::Done),
        (Stroke::Sparse, "fail", Role::Failed),
    ]
    .into_iter()
    .enumerate()
    {
        let y = area.y + i as u16;
        if y >= area.bottom() {
            break;
        }
        let shown = rates.map(|r| show(r[i], server_now, stale, |v| rate(*v)));
        let (value, style) = shown
            .map_or_else(|| ("—".to_owned(), ui.style(Role::Unknown)), |s| (s.value, ui.style(s.role)));
        let pieces = [
            (format!(" {} {} ", stroke.mark(ui.theme.is_ascii()), fit(name, 4)), ui.style(role)),
            (pad_left(&fit(&value, crate::text::width(&value).min(7)), 7), style),
        ];
        paint::line(buf, area.x, y, area.width, &pieces);
    }
}

/// Why a rate has no number: `done: no privilege`.
fn missing(ui: Ui<'_>) -> Option<String> {
    let flow = &ui.app.sample()?.flow;
    let why = |name: &str, r: &Reading<f64>| match r.value() {
        Some(_) => None,
        None => r.trouble().map(|why| format!("{name}: {why}")),
    };
    why("in", &flow.arrived).or_else(|| why("done", &flow.done)).or_else(|| why("fail", &flow.failed))
}
