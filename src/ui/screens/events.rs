//! The log in full, newest first.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::events::{Line, Tone};
use crate::app::lists::List;
use crate::text::count;
use crate::ui::paint::{self, Piece};
use crate::ui::widgets::grid::{Column, Grid, filter_title, fixed, growing};
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

const COLUMNS: [Column; 2] = [fixed("time", 8, false, 0), growing("event", 20, 400, 0)];

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let list = ui.app.events();
    let sel = ui.app.event_selection();
    let mut title = vec![
        ("Events".to_owned(), ui.style(Role::Title)),
        (format!(" · {} · newest first", count(ui.app.world().log.len() as u64)), ui.style(Role::Dim)),
    ];
    title.extend(filter_title(ui, List::Events));
    if sel.row() > 0 {
        title.push((" · g follows the newest".to_owned(), ui.style(Role::Accent)));
    }
    let inner = paint::airy_panel(ui, buf, area, &title, Role::Focus);
    let empty = ("nothing has happened yet".to_owned(), Role::Dim);
    let grid = Grid { list: List::Events, columns: &COLUMNS, selection: sel, len: list.len(), empty };
    grid.draw(ui, buf, inner, |i, _| {
        let Some(line) = list.get(i) else { return Vec::new() };
        let mut pieces = pieces(ui, line, &line.text);
        // the gap behind the time is the grid's
        pieces[0].0 = ui.app.clock(line.wall);
        let event = pieces.split_off(1);
        vec![pieces, event]
    });
}

fn one(ui: Ui<'_>, buf: &mut Buffer, area: Rect, line: &Line, text: &str) {
    paint::line(buf, area.x, area.y, area.width, &pieces(ui, line, text));
}

fn pieces(ui: Ui<'_>, line: &Line, text: &str) -> Vec<Piece> {
    let (symbol, role) = look(line.tone);
    let loud = matches!(line.tone, Tone::Warn | Tone::Bad);
    vec![
        (format!("{} ", ui.app.clock(line.wall)), ui.style(Role::Dim)),
        (format!("{symbol} "), ui.style(role)),
        (text.to_owned(), ui.style(if loud { role } else { Role::Text })),
    ]
}

/// The newest lines in a small panel, wrapped.
pub(in crate::ui) fn panel(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let title = [("Events".to_owned(), ui.style(Role::Title))];
    let inner = paint::panel(ui, buf, area, &title, Role::Border);
    let cells = usize::from(inner.width).saturating_sub(INDENT + 2).max(8);
    let mut y = inner.y;
    let newest = ui.app.world().log.newest().take(usize::from(inner.height));
    let lines: Vec<(&Line, Vec<String>)> = newest.map(|l| (l, paint::wrap(&l.text, cells))).collect();
    // in full where all of them fit; else two rows say enough here, and the screen Events has the rest
    let rows: usize = lines.iter().map(|(_, wrapped)| wrapped.len()).sum();
    let most = if rows <= usize::from(inner.height) { usize::MAX } else { 2 };
    for (line, wrapped) in &lines {
        let long = wrapped.len() > most;
        for (i, part) in wrapped.iter().take(most).enumerate() {
            if y >= inner.bottom() {
                return;
            }
            if i == 0 {
                let row = Rect::new(inner.x + 1, y, inner.width.saturating_sub(2), 1);
                // what the panel's end cuts off is told as well
                let cut = y + 1 == inner.bottom() && wrapped.len() > 1;
                let part = if cut { format!("{part}…") } else { part.clone() };
                one(ui, buf, row, line, &part);
            } else {
                let part = if long && i + 1 == most { format!("{part}…") } else { part.clone() };
                let loud = matches!(line.tone, Tone::Warn | Tone::Bad);
                let style = ui.style(if loud { look(line.tone).1 } else { Role::Text });
                let x = inner.x + 1 + INDENT as u16;
                paint::text(buf, x, y, inner.right().saturating_sub(x + 1), &part, style);
            }
            y += 1;
        }
    }
}
