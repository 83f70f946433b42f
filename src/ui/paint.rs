//! The few strokes that everything is drawn with. All of them clip; none of them panics.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{Role, Ui};
pub(super) use crate::text::wrap;
use crate::text::{fit, width};

/// A piece of a line.
pub(super) type Piece = (String, Style);

/// Writes `text` at (x, y), at most `cells` wide; gives back the column after it.
pub(super) fn text(buf: &mut Buffer, x: u16, y: u16, cells: u16, text: &str, style: Style) -> u16 {
    let area = buf.area;
    if y < area.y || y >= area.bottom() || x < area.x || x >= area.right() {
        return x;
    }
    let cells = cells.min(area.right() - x);
    if width(text) > usize::from(cells) {
        let cut = fit(text, usize::from(cells));
        return buf.set_stringn(x, y, cut, usize::from(cells), style).0;
    }
    buf.set_stringn(x, y, text, usize::from(cells), style).0
}

/// Writes pieces one after the other within `cells`.
pub(super) fn line(buf: &mut Buffer, x: u16, y: u16, cells: u16, pieces: &[Piece]) -> u16 {
    let end = x.saturating_add(cells);
    let mut at = x;
    for (piece, style) in pieces {
        if at >= end {
            break;
        }
        at = text(buf, at, y, end - at, piece, *style);
    }
    at
}

/// Lays `style` over a row: a selection.
pub(super) fn highlight(buf: &mut Buffer, area: Rect, style: Style) {
    buf.set_style(area.intersection(buf.area), style);
}

/// Cells of all pieces together.
pub(super) fn width_of(pieces: &[Piece]) -> usize {
    pieces.iter().map(|(t, _)| width(t)).sum()
}

/// A frame with a title; gives back what is inside it.
pub(super) fn panel(ui: Ui<'_>, buf: &mut Buffer, area: Rect, title: &[Piece], border: Role) -> Rect {
    let area = area.intersection(buf.area);
    if area.width < 2 || area.height < 2 {
        return Rect::new(area.x, area.y, 0, 0);
    }
    let style = ui.style(border);
    let bar = "─".repeat(usize::from(area.width - 2));
    let (left, right, bottom) = (area.x, area.right() - 1, area.bottom() - 1);
    text(buf, left, area.y, area.width, &format!("╭{bar}╮"), style);
    text(buf, left, bottom, area.width, &format!("╰{bar}╯"), style);
    for y in area.y + 1..bottom {
        text(buf, left, y, 1, "│", style);
        text(buf, right, y, 1, "│", style);
    }
    if !title.is_empty() && area.width > 6 {
        let mut pieces = vec![(" ".to_owned(), style)];
        pieces.extend_from_slice(title);
        let room = usize::from(area.width - 4);
        if width_of(&pieces) > room {
            let mut left = room;
            for (t, _) in &mut pieces {
                if width(t) > left {
                    *t = fit(t, left);
                }
                left -= width(t).min(left);
            }
        }
        pieces.push((" ".to_owned(), style));
        line(buf, left + 1, area.y, area.width - 2, &pieces);
    }
    Rect::new(area.x + 1, area.y + 1, area.width - 2, area.height - 2)
}

/// The same with a column of air on both sides.
pub(super) fn airy_panel(ui: Ui<'_>, buf: &mut Buffer, area: Rect, title: &[Piece], border: Role) -> Rect {
    let inner = panel(ui, buf, area, title, border);
    Rect { x: inner.x + inner.width.min(1), width: inner.width.saturating_sub(2), ..inner }
}

/// Empties an area, for what lies over the screen.
pub(super) fn clear(buf: &mut Buffer, area: Rect) {
    let area = area.intersection(buf.area);
    for y in area.y..area.bottom() {
        for x in area.x..area.right() {
            if let Some(cell) = buf.cell_mut((x, y)) {
                cell.reset();
            }
        }
        // a wide character that reaches in from the left would swallow the first column
        if area.x > buf.area.x
            && let Some(cell) = buf.cell_mut((area.x - 1, y))
            && width(cell.symbol()) > 1
        {
            cell.set_symbol(" ");
        }
    }
}

/// Replaces everything beyond ASCII, chrome by its likeness and text by `?`.
pub(super) fn to_ascii(buf: &mut Buffer) {
    let area = buf.area;
    for y in area.y..area.bottom() {
        let mut wide = 0;
        for x in area.x..area.right() {
            let Some(cell) = buf.cell_mut((x, y)) else { continue };
            if wide > 0 {
                wide -= 1;
                cell.set_symbol(" ");
                continue;
            }
            if cell.symbol().is_ascii() {
                continue;
            }
            wide = width(cell.symbol()).saturating_sub(1);
            let symbol = ascii_for(cell.symbol());
            cell.set_symbol(symbol);
        }
    }
}

fn ascii_for(symbol: &str) -> &'static str {
    match symbol {
        "─" | "—" | "┄" => "-",
        "│" | "┤" | "├" => "|",
        "╭" | "╮" | "╰" | "╯" | "└" => "+",
        "✔" => "v",
        "▲" => "!",
        "✖" => "x",
        "●" => "*",
        "○" => "o",
        "↻" => "@",
        "▶" | "≥" | "→" => ">",
        "≤" => "<",
        "◆" => "#",
        "·" | "…" | "░" => ".",
        "←" => "<",
        "×" => "x",
        "↑" => "^",
        "↓" => "v",
        "▁" => "_",
        "▂" => ".",
        "▃" => ":",
        "▄" => "-",
        "▅" => "=",
        "▆" => "+",
        "▇" => "*",
        "█" => "#",
        "▏" => "|",
        "▓" => "=",
        "▒" => "-",
        s if s.chars().all(|c| ('\u{2800}'..='\u{28ff}').contains(&c)) => {
            if s == "\u{2800}" {
                " "
            } else {
                "*"
            }
        }
        _ => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_ascii_nothing_else_is_left_and_columns_stay() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 12, 1));
        text(&mut buf, 0, 0, 12, "│✔ 担x ≥10k…", Style::new());
        to_ascii(&mut buf);
        let row: String = buf.content().iter().map(|c| c.symbol()).collect();
        assert_eq!(row, "|v ? x >10k.");
    }
}
