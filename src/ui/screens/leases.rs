//! Every lease: earliest expiry first, so expired ones lead.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::events::leases;
use crate::model::Lease;
use crate::text::{age, count, fit, fit_middle, pad_left};
use crate::ui::paint::{self, Piece};
use crate::ui::widgets::lease::{EXPIRY, expiry, heartbeat, seconds};
use crate::ui::widgets::reading::{count_text, show};
use crate::ui::{Role, Ui};

/// Widths of the columns; 0 leaves one out. They depend on the room alone, so they never move.
struct Columns {
    id: usize,
    job_type: usize,
    holder: usize,
    held: usize,
    attempts: usize,
    heartbeat: usize,
    backend: usize,
}

impl Columns {
    fn new(room: usize) -> Self {
        let mut c =
            Self { id: 10, job_type: 0, holder: 12, held: 0, attempts: 0, heartbeat: 0, backend: 0 };
        // cursor, gaps and the expiry are always there
        let mut left = room.saturating_sub(2 + c.id + 1 + c.holder + 1 + EXPIRY);
        for (column, cells) in [
            (&mut c.held, 8),
            (&mut c.heartbeat, 10),
            (&mut c.attempts, 8),
            (&mut c.job_type, 14),
            (&mut c.backend, 8),
        ] {
            if left > cells {
                *column = cells;
                left -= cells + 1;
            }
        }
        // what is left goes to the names
        let more = left / 3;
        c.id += more.min(26);
        c.holder += more.min(36);
        if c.job_type > 0 {
            c.job_type += more.min(26);
        } else {
            c.holder += more.min(10);
        }
        c
    }
}

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let app = ui.app;
    let list = app.leases();
    let inner = paint::airy_panel(ui, buf, area, &title(ui, list.len()), Role::Focus);
    if inner.is_empty() {
        return;
    }
    let c = Columns::new(usize::from(inner.width));
    let dim = ui.style(Role::Dim);
    let mut heads = format!("  {} ", fit("job", c.id));
    for (cells, name) in [(c.job_type, "type"), (c.holder, "holder"), (EXPIRY, "expiry")] {
        if cells > 0 {
            heads += &format!("{} ", fit(name, cells));
        }
    }
    for (cells, name) in
        [(c.held, "held"), (c.attempts, "attempts"), (c.heartbeat, "heartbeat"), (c.backend, "backend")]
    {
        if cells > 0 {
            let right = matches!(name, "held" | "attempts" | "backend");
            heads += &if right {
                format!("{} ", pad_left(name, cells))
            } else {
                format!("{} ", fit(name, cells))
            };
        }
    }
    paint::text(buf, inner.x, inner.y, inner.width, heads.trim_end(), dim);

    let rows = usize::from(inner.height - 1);
    if list.is_empty() {
        let (text, role) = empty_text(ui);
        paint::text(buf, inner.x + 2, inner.y + 1, inner.width.saturating_sub(2), &text, ui.style(role));
        return;
    }
    let sel = app.lease_selection();
    let top = sel.top(list.len(), rows);
    for (i, lease) in list.iter().enumerate().skip(top).take(rows) {
        let y = inner.y + 1 + (i - top) as u16;
        let selected = sel.key().is_some() && i == sel.row();
        let gone = sel.is_gone() && i == sel.row();
        let mark = if selected {
            "▶ "
        } else if gone {
            "· "
        } else {
            "  "
        };
        row(ui, buf, Rect::new(inner.x, y, inner.width, 1), &c, lease, mark);
        if selected {
            paint::highlight(buf, Rect::new(inner.x, y, inner.width, 1), ui.style(Role::Selection));
        }
    }
}

fn title(ui: Ui<'_>, shown: usize) -> Vec<Piece> {
    let head = ui.style(Role::Title);
    let dim = ui.style(Role::Dim);
    let mut pieces = vec![("Leases".to_owned(), head)];
    if let Some(holder) = ui.app.only_holder() {
        pieces.push((format!(" of {}", fit_middle(holder, crate::text::width(holder).min(32))), head));
        pieces.push((format!(" · {} here · Esc shows all", count(shown as u64)), dim));
    }
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

fn row(ui: Ui<'_>, buf: &mut Buffer, area: Rect, c: &Columns, lease: &Lease, mark: &str) {
    let now = ui.app.server_now(ui.now);
    let faded = ui.app.is_stale(ui.now) || ui.app.sample().is_some_and(|s| !s.leases.is_current());
    let text = ui.style(if faded { Role::Dim } else { Role::Text });
    let holder = ui.app.holder_named(&lease.holder);
    let mut x = paint::text(buf, area.x, area.y, 2, mark, ui.style(Role::Accent));
    let mut put = |cells: usize, pieces: &[Piece]| {
        if cells > 0 {
            paint::line(buf, x, area.y, cells as u16, pieces);
            x += cells as u16 + 1;
        }
    };
    put(c.id, &[(fit_middle(&lease.id, c.id), text)]);
    put(c.job_type, &[(fit_middle(&lease.job_type, c.job_type), text)]);
    put(c.holder, &[(fit_middle(&lease.holder, c.holder), text)]);
    put(EXPIRY, &expiry(ui, lease.expires, now));
    let since = age(seconds(lease.seen_since, now));
    let held = if lease.held_exact { since } else { format!("≥{since}") };
    put(c.held, &[(pad_left(&held, c.held), text)]);
    let attempts = attempts(lease);
    put(c.attempts, &[(pad_left(&attempts, c.attempts), text)]);
    put(c.heartbeat, &[heartbeat(ui, holder.and_then(|h| h.heartbeat), now)]);
    let backend = holder.and_then(|h| h.backend).map_or_else(|| "—".to_owned(), |p| p.to_string());
    put(c.backend, &[(pad_left(&backend, c.backend), ui.style(Role::Dim))]);
}

/// `2 of 5`, `2`, or `—` where the table does not count them.
pub(in crate::ui) fn attempts(lease: &Lease) -> String {
    match (lease.attempts, lease.max_attempts) {
        (Some(n), Some(max)) => format!("{n} of {max}"),
        (Some(n), None) => n.to_string(),
        _ => "—".to_owned(),
    }
}
