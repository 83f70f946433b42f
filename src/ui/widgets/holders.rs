//! Leases in short: a row per holder.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::lease::{EXPIRY, expiry, heartbeat, seconds};
use super::reading::{count_text, show};
use crate::model::Holder;
use crate::text::{age, count, fit, fit_middle, pad_left};
use crate::ui::paint::{self, Piece};
use crate::ui::{Role, Ui};

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let app = ui.app;
    let list = app.holders();
    let inner = paint::airy_panel(ui, buf, area, &holders_title(ui), Role::Focus);
    if inner.height < 2 {
        return;
    }
    let room = usize::from(inner.width);
    // cursor, held, oldest, expiry, heartbeat and the gaps between
    let fixed = 2 + 5 + 1 + 8 + 2 + EXPIRY + 1 + 9 + 1;
    let backend = if room >= fixed + 16 + 9 { 9 } else { 0 };
    let oldest = room >= fixed + 12;
    let name = room.saturating_sub(fixed + backend).clamp(8, 48);
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
