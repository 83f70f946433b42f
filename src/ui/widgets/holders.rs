//! Leases in short: a row per holder.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::grid::{self, Column, Grid, filter_title, fixed, growing};
use super::lease::{EXPIRY, expiry, heartbeat, seconds};
use super::reading::{count_text, show};
use crate::app::lists::List;
use crate::model::Holder;
use crate::text::{age, count};
use crate::ui::paint::{self, Piece};
use crate::ui::{Role, Ui};

const COLUMNS: [Column; 6] = [
    growing("holder", 12, 48, 0),
    fixed("held", 5, true, 0),
    fixed("oldest", 8, true, 1),
    fixed("next expiry", EXPIRY, false, 0),
    fixed("heartbeat", 10, false, 0),
    fixed("backend", 8, true, 2),
];

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let app = ui.app;
    let list = app.holders();
    let inner = paint::airy_panel(ui, buf, area, &holders_title(ui), Role::Focus);
    let empty = match app.sample().map(|s| &s.holders) {
        None => ("nothing is known yet".to_owned(), Role::Unknown),
        Some(r) => match (r.value(), r.trouble()) {
            (None, Some(why)) => (format!("— {why}"), Role::Unknown),
            _ => ("no job is held".to_owned(), Role::Dim),
        },
    };
    let selection = app.holder_selection();
    let grid = Grid { list: List::Holders, columns: &COLUMNS, selection, len: list.len(), empty };
    grid.draw(ui, buf, inner, |i, w| list.get(i).map_or_else(Vec::new, |h| row(ui, h, w)));
}

fn row(ui: Ui<'_>, h: &Holder, w: &[usize]) -> Vec<Vec<Piece>> {
    let now = ui.app.server_now(ui.now);
    let faded = ui.app.is_stale(ui.now) || ui.app.sample().is_some_and(|s| !s.holders.is_current());
    let role = if faded { Role::Dim } else { Role::Text };
    let since = h.oldest_since.map_or_else(|| "—".to_owned(), |s| age(seconds(s, now)));
    let pid = h.backend.map_or_else(|| "—".to_owned(), |p| p.to_string());
    vec![
        grid::text(ui, &h.name, w[0], role),
        grid::right(ui, &count(h.held), w[1], role),
        grid::right(ui, &since, w[2], role),
        expiry(ui, h.next_expiry, now),
        vec![heartbeat(ui, h.heartbeat, now)],
        grid::right(ui, &pid, w[5], Role::Dim),
    ]
}

fn holders_title(ui: Ui<'_>) -> Vec<Piece> {
    let dim = ui.style(Role::Dim);
    let mut pieces = vec![("Leases".to_owned(), ui.style(Role::Title))];
    pieces.extend(filter_title(ui, List::Holders));
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
