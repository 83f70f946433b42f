//! The log in full, newest first.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::events::{Line, Tone};
use crate::text::count;
use crate::ui::paint;
use crate::ui::{Role, Ui};

/// The symbol and the role of a line.
pub(in crate::ui) fn look(tone: Tone) -> (&'static str, Role) {
    match tone {
        Tone::Info => ("·", Role::Dim),
        Tone::Good => ("✔", Role::Ok),
        Tone::Back => ("↻", Role::Accent),
        Tone::Warn => ("▲", Role::Warn),
        Tone::Bad => ("✖", Role::Critical),
        Tone::Action => ("◆", Role::Accent),
    }
}

/// Cells before the text: the clock, the symbol, and the gaps.
const INDENT: usize = 11;

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let log = &ui.app.world().log;
    let sel = ui.app.event_selection();
    let mut title = vec![
        ("Events".to_owned(), ui.style(Role::Title)),
        (format!(" · {} · newest first", count(log.len() as u64)), ui.style(Role::Dim)),
    ];
    if sel.row() > 0 {
        title.push((" · g follows the newest".to_owned(), ui.style(Role::Accent)));
    }
    let inner = paint::airy_panel(ui, buf, area, &title, Role::Focus);
    if inner.is_empty() {
        return;
    }
    let rows = usize::from(inner.height);
    // one row stays for symmetry with the other lists, whose first row is their column heads
    paint::text(buf, inner.x, inner.y, inner.width, "  time       event", ui.style(Role::Dim));
    if log.is_empty() {
        paint::text(
            buf,
            inner.x + 2,
            inner.y + 1,
            inner.width,
            "nothing has happened yet",
            ui.style(Role::Dim),
        );
        return;
    }
    let top = sel.top(log.len(), rows - 1);
    for i in top..(top + rows - 1).min(log.len()) {
        let Some(line) = log.get(i) else { break };
        let y = inner.y + 1 + (i - top) as u16;
        let selected = sel.key() == Some(&line.seq);
        let mark = if selected { "▶ " } else { "  " };
        let x = paint::text(buf, inner.x, y, 2, mark, ui.style(Role::Accent));
        one(ui, buf, Rect::new(x, y, inner.right().saturating_sub(x), 1), line, &line.text);
        if selected {
            paint::highlight(buf, Rect::new(inner.x, y, inner.width, 1), ui.style(Role::Selection));
        }
    }
}

fn one(ui: Ui<'_>, buf: &mut Buffer, area: Rect, line: &Line, text: &str) {
    let (symbol, role) = look(line.tone);
    let loud = matches!(line.tone, Tone::Warn | Tone::Bad);
    let pieces = [
        (format!("{} ", ui.app.clock(line.wall)), ui.style(Role::Dim)),
        (format!("{symbol} "), ui.style(role)),
        (text.to_owned(), ui.style(if loud { role } else { Role::Text })),
    ];
    paint::line(buf, area.x, area.y, area.width, &pieces);
}

/// The newest lines in a small panel, wrapped.
pub(in crate::ui) fn panel(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let title = [("Events".to_owned(), ui.style(Role::Title))];
    let inner = paint::panel(ui, buf, area, &title, Role::Border);
    let cells = usize::from(inner.width).saturating_sub(INDENT + 2).max(8);
    let mut y = inner.y;
    for line in ui.app.world().log.newest() {
        // two rows say enough here; the screen Events has the rest
        let wrapped = paint::wrap(&line.text, cells);
        let long = wrapped.len() > 2;
        for (i, part) in wrapped.iter().take(2).enumerate() {
            if y >= inner.bottom() {
                return;
            }
            if i == 0 {
                let row = Rect::new(inner.x + 1, y, inner.width.saturating_sub(2), 1);
                one(ui, buf, row, line, part);
            } else {
                let part = if long { format!("{part}…") } else { part.clone() };
                let loud = matches!(line.tone, Tone::Warn | Tone::Bad);
                let style = ui.style(if loud { look(line.tone).1 } else { Role::Text });
                let x = inner.x + 1 + INDENT as u16;
                paint::text(buf, x, y, inner.right().saturating_sub(x + 1), &part, style);
            }
            y += 1;
        }
    }
}
