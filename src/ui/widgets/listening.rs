//! When wake-ups could arrive, and every gap in which they could not.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::lease::whole;
use crate::app::gaps::{Gap, Hearing};
use crate::text::{age, count, fit, width};
use crate::ui::paint::{self, Piece};
use crate::ui::{Role, Ui};

/// What the strip looks back over: the first that the program has been running for, or the last.
const SPANS: [(u64, &str); 3] = [(300, "5m ago "), (1_200, "20m ago "), (3_600, "1h ago ")];

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let gaps = &ui.app.world().gaps;
    let mut title = vec![("Listener".to_owned(), ui.style(Role::Title))];
    let many = match gaps.total() {
        0 => " · no gap since the start".to_owned(),
        1 => " · 1 gap since the start".to_owned(),
        n => format!(" · {} gaps since the start", count(n)),
    };
    title.push((many, ui.style(Role::Dim)));
    let inner = paint::airy_panel(ui, buf, area, &title, Role::Border);
    if inner.height == 0 {
        return;
    }
    paint::line(buf, inner.x, inner.y, inner.width, &strip(ui, usize::from(inner.width)));
    let now = ui.app.shown_now(ui.now).mono;
    for (i, gap) in gaps.newest().enumerate().take(usize::from(inner.height - 1)) {
        let y = inner.y + 1 + i as u16;
        paint::line(buf, inner.x, y, inner.width, &row(ui, gap, now, usize::from(inner.width)));
    }
}

/// The last minutes, a cell for a stretch of it: a line where wake-ups could arrive, a cross where not.
fn strip(ui: Ui<'_>, cells: usize) -> Vec<Piece> {
    let now = ui.app.shown_now(ui.now).mono;
    let (span, from) =
        SPANS.into_iter().find(|(s, _)| now.as_secs() <= *s).unwrap_or(SPANS[SPANS.len() - 1]);
    let to = if ui.app.frozen_for(ui.now).is_some() { " then" } else { " now" };
    let bar = cells.saturating_sub(width(from) + width(to)).max(1);
    let step = Duration::from_secs(span) / u32::try_from(bar).unwrap_or(1);
    let mut out: Vec<Piece> = vec![(from.to_owned(), ui.style(Role::Dim))];
    for i in 0..bar {
        let back = step * u32::try_from(bar - i).unwrap_or(0);
        let end = (now + step).saturating_sub(back);
        let (symbol, role) = match ui.app.world().gaps.hearing(now.saturating_sub(back), end) {
            Hearing::Unknown => ("·", Role::Dim),
            Hearing::Yes => ("─", Role::Ok),
            Hearing::No => ("✖", Role::Critical),
        };
        match out.last_mut() {
            Some((text, style)) if *style == ui.style(role) && i > 0 => text.push_str(symbol),
            _ => out.push((symbol.to_owned(), ui.style(role))),
        }
    }
    out.push((to.to_owned(), ui.style(Role::Dim)));
    out
}

/// `21:30:59  0.8s  57P01 terminating …  connected 0.6s, listening 0.7s, scanned 0.8s, 3 jobs`.
fn row(ui: Ui<'_>, gap: &Gap, now: Duration, cells: usize) -> Vec<Piece> {
    let dim = ui.style(Role::Dim);
    let lasted = gap.lasted(now).as_secs_f64();
    let (mark, role) = if gap.back.is_some() { ("↻", Role::Accent) } else { ("✖", Role::Critical) };
    let lasted = if gap.back.is_some() { age(lasted) } else { format!("{} so far", whole(lasted)) };
    let mut out = vec![
        (format!("{} ", ui.app.clock(gap.wall)), dim),
        (format!("{mark} "), ui.style(role)),
        (format!("{lasted}  "), ui.style(Role::Text)),
    ];
    let ms = |ms: u64| if ms < 100 { format!("{ms}ms") } else { age(ms as f64 / 1e3) };
    let mut end = Vec::new();
    if let Some((_, phases)) = gap.back {
        end.push(format!("connected {}, listening {}", ms(phases.connected_ms), ms(phases.listening_ms)));
    }
    if let Some((scanned, jobs)) = gap.scanned {
        end.push(format!("scanned {}, {}", ms(scanned), crate::app::events::jobs(jobs)));
    }
    if gap.failed > 0 {
        end.push(format!("{} failed", count(u64::from(gap.failed))));
    }
    let end = end.join(", ");
    let used = paint::width_of(&out);
    let loss = gap.loss.to_string();
    // the code comes first in the text, so it stays when the rest is cut
    let room = cells.saturating_sub(used);
    let for_loss = if room > width(&end) + 14 { room - width(&end) - 2 } else { room };
    out.push((fit(&loss, width(&loss).min(for_loss)), ui.style(Role::Text)));
    if room > width(&end) + 14 {
        out.push((format!("  {end}"), dim));
    }
    out
}
