//! Rows and columns of a list: heads with the mark of the order, the cursor, and only the rows that are
//! seen. Widths depend on the room alone, so columns never move.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::lists::List;
use crate::app::selection::Selection;
use crate::text::{count, fit, pad_left, width};
use crate::ui::paint::{self, Piece};
use crate::ui::{Role, Ui};

/// One column.
#[derive(Clone, Copy)]
pub(in crate::ui) struct Column {
    /// Its head; when the list can be sorted by it, the same word as there.
    pub head: &'static str,
    /// Cells it needs.
    pub cells: usize,
    /// Cells it takes at most when there is room; a column that does not grow has the same number twice.
    pub most: usize,
    /// Numbers stand on the right.
    pub right: bool,
    /// 0 is always there; the highest leave first when room is short.
    pub rank: u8,
}

/// A column of fixed width.
pub(in crate::ui) const fn fixed(head: &'static str, cells: usize, right: bool, rank: u8) -> Column {
    Column { head, cells, most: cells, right, rank }
}

/// A column of text that takes what is left.
pub(in crate::ui) const fn growing(head: &'static str, cells: usize, most: usize, rank: u8) -> Column {
    Column { head, cells, most, right: false, rank }
}

/// Cells of each column; 0 leaves it out.
pub(in crate::ui) fn widths(columns: &[Column], room: usize) -> Vec<usize> {
    let mut out = vec![0; columns.len()];
    let mut by_rank: Vec<usize> = (0..columns.len()).collect();
    by_rank.sort_by_key(|i| (columns[*i].rank, *i));
    // the cursor, and every column with a gap behind it but the last
    let room = (room + 1).saturating_sub(2);
    let mut used = 0;
    for i in by_rank {
        let need = columns[i].cells + 1;
        if columns[i].rank == 0 || used + need <= room {
            out[i] = columns[i].cells;
            used += need;
        }
    }
    let mut left = room.saturating_sub(used);
    while left > 0 {
        let mut grew = false;
        for (i, c) in columns.iter().enumerate() {
            if out[i] > 0 && out[i] < c.most && left > 0 {
                out[i] += 1;
                left -= 1;
                grew = true;
            }
        }
        if !grew {
            break;
        }
    }
    out
}

/// What a list is drawn from.
pub(in crate::ui) struct Grid<'a, K> {
    pub list: List,
    pub columns: &'a [Column],
    pub selection: &'a Selection<K>,
    /// Rows there are.
    pub len: usize,
    /// What is said when there is none.
    pub empty: (String, Role),
}

impl<K: Clone + PartialEq> Grid<'_, K> {
    /// Draws heads and rows; `row` gives the cells of a row for the widths it is told.
    pub(in crate::ui) fn draw(
        self,
        ui: Ui<'_>,
        buf: &mut Buffer,
        inner: Rect,
        row: impl Fn(usize, &[usize]) -> Vec<Vec<Piece>>,
    ) {
        if inner.height < 2 || inner.width < 4 {
            return;
        }
        let widths = widths(self.columns, usize::from(inner.width));
        self.heads(ui, buf, inner, &widths);
        if self.len == 0 {
            let (text, role) = match ui.app.lever(self.list).filter() {
                "" => self.empty,
                filter => (format!("nothing here matches /{filter} · Esc shows all"), Role::Dim),
            };
            let cells = inner.width.saturating_sub(2);
            paint::text(buf, inner.x + 2, inner.y + 1, cells, &text, ui.style(role));
            return;
        }
        let rows = usize::from(inner.height - 1);
        let top = self.selection.top(self.len, rows);
        if ui.app.list() == self.list {
            let area = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
            ui.zones.borrow_mut().list(area, top, self.len);
        }
        for i in top..(top + rows).min(self.len) {
            let y = inner.y + 1 + (i - top) as u16;
            let at_cursor = i == self.selection.row();
            let selected = at_cursor && self.selection.key().is_some();
            let mark = match (selected, at_cursor && self.selection.is_gone()) {
                (true, _) => "▶ ",
                (_, true) => "· ",
                _ => "  ",
            };
            let mut x = paint::text(buf, inner.x, y, 2, mark, ui.style(Role::Accent));
            for (cell, w) in row(i, &widths).into_iter().zip(&widths) {
                let Ok(w) = u16::try_from(*w) else { break };
                if w == 0 {
                    continue;
                }
                let room = w.min(inner.right().saturating_sub(x));
                paint::line(buf, x, y, room, &cell);
                x = x.saturating_add(w + 1).min(inner.right());
            }
            if selected {
                paint::highlight(buf, Rect::new(inner.x, y, inner.width, 1), ui.style(Role::Selection));
            }
        }
    }

    fn heads(&self, ui: Ui<'_>, buf: &mut Buffer, inner: Rect, widths: &[usize]) {
        let (sorted, reverse) = ui.app.lever(self.list).sorted();
        let by = sorted.and_then(|c| self.list.columns().get(c)).copied();
        let mut x = inner.x + 2;
        for (c, w) in self.columns.iter().zip(widths).filter(|(_, w)| **w > 0) {
            let (mark, role) = match (by == Some(c.head), reverse) {
                (false, _) => ("", Role::Dim),
                (true, false) => ("↑", Role::Accent),
                (true, true) => ("↓", Role::Accent),
            };
            let text = format!("{}{mark}", fit(c.head, width(c.head).min(w - width(mark))));
            let text = if c.right { pad_left(&text, *w) } else { text };
            let room = inner.right().saturating_sub(x);
            paint::text(buf, x, inner.y, (*w as u16).min(room), &text, ui.style(role));
            x = x.saturating_add(*w as u16 + 1).min(inner.right());
        }
        // an order by what is not shown at this width would look like none at all
        let is_shown = |head: &str| self.columns.iter().zip(widths).any(|(c, w)| c.head == head && *w > 0);
        if let (Some(head), Some(first)) = (by.filter(|head| !is_shown(head)), widths.first()) {
            let text = format!(" (by {head}{})", if reverse { "↓" } else { "↑" });
            let before = self.columns.first().map_or(0, |c| width(c.head)) as u16;
            let room = (*first as u16).saturating_sub(before);
            paint::text(buf, inner.x + 2 + before, inner.y, room, &text, ui.style(Role::Accent));
        }
    }
}

/// The filter of a list for its title: `/mail▏ 3 of 200`.
pub(in crate::ui) fn filter_title(ui: Ui<'_>, list: List) -> Vec<Piece> {
    let lever = ui.app.lever(list);
    let typing = ui.app.is_typing() && ui.app.list() == list;
    if lever.filter().is_empty() && !typing {
        return Vec::new();
    }
    let (shown, total) = lever.counts();
    let cursor = if typing { "▏" } else { "" };
    vec![
        (" · ".to_owned(), ui.style(Role::Dim)),
        (
            format!("/{}{cursor}", fit(lever.filter(), width(lever.filter()).min(24))),
            ui.style(Role::Accent),
        ),
        (format!(" {} of {}", count(shown as u64), count(total as u64)), ui.style(Role::Dim)),
    ]
}

/// A cell of text, cut in its middle.
pub(in crate::ui) fn text(ui: Ui<'_>, text: &str, cells: usize, role: Role) -> Vec<Piece> {
    vec![(crate::text::fit_middle(text, cells), ui.style(role))]
}

/// A cell on the right.
pub(in crate::ui) fn right(ui: Ui<'_>, text: &str, cells: usize, role: Role) -> Vec<Piece> {
    vec![(pad_left(&fit(text, width(text).min(cells)), cells), ui.style(role))]
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] =
        [growing("name", 8, 20, 0), fixed("held", 5, true, 1), fixed("age", 6, true, 2)];

    #[test]
    fn columns_leave_by_rank_and_text_takes_what_is_left() {
        assert_eq!(widths(&COLUMNS, 12), [10, 0, 0]);
        assert_eq!(widths(&COLUMNS, 18), [10, 5, 0]);
        assert_eq!(widths(&COLUMNS, 26), [11, 5, 6]);
        assert_eq!(widths(&COLUMNS, 99), [20, 5, 6]);
        assert_eq!(widths(&COLUMNS, 0), [8, 0, 0]);
    }
}
