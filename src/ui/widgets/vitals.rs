//! The four figures that say how a queue is.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::lease::whole;
use super::reading::show;
use super::spark::spark;
use crate::app::health::{Level, Vital};
use crate::app::series::{Figure, Fold};
use crate::model::Reading;
use crate::text::{age, count, fit, pad_left, percent};
use crate::ui::frame::symbol;
use crate::ui::paint::{self, Piece};
use crate::ui::{Role, Ui};

/// What a sparkline looks back over.
const SPARK_SPAN: Duration = Duration::from_secs(60);

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let title = [("Vital signs".to_owned(), ui.style(Role::Title))];
    let inner = paint::panel(ui, buf, area, &title, Role::Border);
    if inner.height < 2 {
        return;
    }
    let half = inner.width.saturating_sub(1) / 2;
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
    let middle = room.saturating_sub(1 + 13 + 1 + 8 + 1 + 2 + if has_limit { 10 } else { 0 }).min(24);
    let middle = if middle < 6 { 0 } else { middle };
    let role = match level {
        Level::Ok | Level::Unknown => shown.role,
        other => Role::of(other),
    };
    let mut pieces: Vec<Piece> = vec![
        (format!(" {} ", fit(vital.title(), 13)), ui.style(Role::Dim)),
        (pad_left(&fit(&shown.value, crate::text::width(&shown.value).min(8)), 8), ui.style(role)),
        ((if has_limit { "  " } else { " " }).to_owned(), ui.style(Role::Text)),
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
                Some(n) if columns < 14 => format!("{} times", count(n.max(0) as u64)),
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
