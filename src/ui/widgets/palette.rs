//! The palette: a field, and what it finds.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::dialog::{Rows, keys, popup};
use crate::app::palette::Palette;
use crate::text::{fit, width};
use crate::ui::{Role, Ui};

/// Cells of the column of names.
const NAME: usize = 24;

pub(super) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect, palette: &Palette) {
    let cells = usize::from(area.width.saturating_sub(6)).min(84);
    let typed = vec![
        (": ".to_owned(), ui.style(Role::Key)),
        (fit(palette.typed(), width(palette.typed()).min(cells - 4)), ui.style(Role::Text)),
        ("▏".to_owned(), ui.style(Role::Accent)),
    ];
    // a row as wide as the dialog may get keeps it from changing its width with every letter
    let mut rows: Rows = vec![typed, vec![(" ".repeat(cells), ui.style(Role::Text))]];
    let room = usize::from(area.height.saturating_sub(9)).clamp(1, 16);
    let found = palette.found().count();
    let top = palette.at().saturating_sub(room - 1).min(found.saturating_sub(room));
    let key_cells = palette.found().map(|e| width(&e.keys)).max().unwrap_or(0).clamp(4, 14);
    let help_cells = cells.saturating_sub(NAME + key_cells + 4);
    for (i, entry) in palette.found().enumerate().skip(top).take(room) {
        let chosen = i == palette.at();
        let ground = if chosen { ui.style(Role::Selection) } else { ui.style(Role::Text) };
        let (help, role) = match &entry.refusal {
            Some(why) => (format!("not now: {why}"), Role::Dim),
            None => (entry.help.clone(), Role::Dim),
        };
        rows.push(vec![
            (if chosen { "▶ ".to_owned() } else { "  ".to_owned() }, ui.style(Role::Accent)),
            (format!("{} ", fit(&entry.name, NAME)), ground.patch(ui.style(Role::Text))),
            (format!("{} ", fit(&help, help_cells)), ground.patch(ui.style(role))),
            (fit(&entry.keys, key_cells), ground.patch(ui.style(Role::Key))),
        ]);
    }
    if found == 0 {
        rows.push(vec![("nothing has that name".to_owned(), ui.style(Role::Dim))]);
    }
    // the list may get shorter, the frame stays
    while rows.len() < room + 2 {
        rows.push(Vec::new());
    }
    rows.push(keys(ui, &[("Enter", "do it"), ("↑ ↓", "choose"), ("Esc", "back")]));
    popup(ui, buf, area, "Find by name", &rows, Role::Focus);
}
