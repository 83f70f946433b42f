//! Every lease: earliest expiry first, so expired ones lead.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::events::leases;
use crate::app::lists::List;
use crate::model::Lease;
use crate::text::{age, count, fit_middle};
use crate::ui::paint::{self, Piece};
use crate::ui::widgets::grid::{self, Column, Grid, filter_title, fixed, growing};
use crate::ui::widgets::lease::{EXPIRY, expiry, heartbeat, seconds};
use crate::ui::widgets::reading::{count_text, show};
use crate::ui::{Role, Ui};

const COLUMNS: [Column; 8] = [
    growing("job", 10, 36, 0),
    growing("type", 14, 40, 4),
    growing("holder", 12, 48, 0),
    fixed("expiry", EXPIRY, false, 0),
    fixed("held", 8, true, 1),
    fixed("attempts", 9, true, 3),
    fixed("heartbeat", 10, false, 2),
    fixed("backend", 8, true, 5),
];

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let app = ui.app;
    let list = app.leases();
    let inner = paint::airy_panel(ui, buf, area, &title(ui, list.len()), Role::Focus);
    let grid = Grid {
        list: List::Leases,
        columns: &COLUMNS,
        selection: app.lease_selection(),
        len: list.len(),
        empty: empty_text(ui),
    };
    grid.draw(ui, buf, inner, |i, w| list.get(i).map_or_else(Vec::new, |lease| row(ui, lease, w)));
}

fn title(ui: Ui<'_>, shown: usize) -> Vec<Piece> {
    let head = ui.style(Role::Title);
    let dim = ui.style(Role::Dim);
    let mut pieces = vec![("Leases".to_owned(), head)];
    if let Some(holder) = ui.app.only_holder() {
        pieces.push((format!(" of {}", fit_middle(holder, crate::text::width(holder).min(32))), head));
        pieces.push((format!(" · {} here · Esc shows all", count(shown as u64)), dim));
    }
    pieces.extend(filter_title(ui, List::Leases));
    if let Some(s) = ui.app.sample() {
        let stale = ui.app.is_stale(ui.now);
        let now = ui.app.server_now(ui.now);
        let held = show(&s.counts.running, now, stale, count_text(&s.counts.running));
        let expired = show(&s.counts.expired, now, stale, count_text(&s.counts.expired));
        pieces.push((format!(" · {} held", held.value), dim));
        let none = s.counts.expired.current() == Some(&0);
        let style = if none { dim } else { ui.style(Role::Critical) };
        pieces.push((format!(" · {} expired", expired.value), style));
        if let Some(note) = show(&s.leases, now, stale, |_| String::new()).note {
            pieces.push((format!(" · {note}"), ui.style(Role::Warn)));
        }
        let listed = s.leases.value().map_or(0, Vec::len) as u64;
        if s.counts.running.current().is_some_and(|n| *n > listed)
            && listed > 0
            && ui.app.only_holder().is_none()
        {
            pieces.push((format!(" · the first {} {} listed", count(listed), leases(listed)), dim));
        }
    }
    pieces
}

fn empty_text(ui: Ui<'_>) -> (String, Role) {
    let Some(s) = ui.app.sample() else { return ("nothing is known yet".to_owned(), Role::Unknown) };
    match (s.leases.value(), s.leases.trouble()) {
        (None, Some(why)) => (format!("— {why}"), Role::Unknown),
        _ if ui.app.only_holder().is_some() => ("this holder holds nothing now".to_owned(), Role::Dim),
        _ => ("no job is held".to_owned(), Role::Dim),
    }
}

fn row(ui: Ui<'_>, lease: &Lease, w: &[usize]) -> Vec<Vec<Piece>> {
    let now = ui.app.server_now(ui.now);
    let faded = ui.app.is_stale(ui.now) || ui.app.sample().is_some_and(|s| !s.leases.is_current());
    let role = if faded { Role::Dim } else { Role::Text };
    let holder = ui.app.holder_named(&lease.holder);
    let since = age(seconds(lease.seen_since, now));
    let held = if lease.held_exact { since } else { format!("≥{since}") };
    let backend = holder.and_then(|h| h.backend).map_or_else(|| "—".to_owned(), |p| p.to_string());
    vec![
        grid::text(ui, &lease.id, w[0], role),
        grid::text(ui, &lease.job_type, w[1], role),
        grid::text(ui, &lease.holder, w[2], role),
        expiry(ui, lease.expires, now),
        grid::right(ui, &held, w[4], role),
        grid::right(ui, &attempts(lease), w[5], role),
        vec![heartbeat(ui, holder.and_then(|h| h.heartbeat), now)],
        grid::right(ui, &backend, w[7], Role::Dim),
    ]
}

/// `2 of 5`, `2`, or `—` where the table does not count them.
pub(in crate::ui) fn attempts(lease: &Lease) -> String {
    match (lease.attempts, lease.max_attempts) {
        (Some(n), Some(max)) => format!("{n} of {max}"),
        (Some(n), None) => n.to_string(),
        _ => "—".to_owned(),
    }
}
