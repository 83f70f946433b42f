//! Vital signs, backlog, flow, holders, events.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::ui::Ui;
use crate::ui::widgets::{backlog, flow, holders, vitals};

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let mut y = area.y;
    let mut take = |height: u16| {
        let r = Rect::new(area.x, y, area.width, height.min(area.bottom().saturating_sub(y)));
        y += r.height;
        r
    };
    vitals::draw(ui, buf, take(4));
    let middle = take(match area.height {
        0..=24 => 6,
        25..=40 => 8,
        _ => (area.height / 4).min(16),
    });
    let left = if area.width < 100 { 38 } else { 41 };
    let [left, right] = split(middle, left);
    backlog::draw(ui, buf, left);
    flow::draw(ui, buf, right);

    let rest = take(u16::MAX);
    if area.width >= 100 {
        let [left, right] = split(rest, (area.width * 4 / 7).max(68));
        holders::draw(ui, buf, left);
        super::events::panel(ui, buf, right);
    } else if rest.height >= 9 {
        let top = rest.height - rest.height * 2 / 5;
        holders::draw(ui, buf, Rect { height: top, ..rest });
        let events = Rect { y: rest.y + top, height: rest.height - top, ..rest };
        super::events::panel(ui, buf, events);
    } else {
        holders::draw(ui, buf, rest);
    }
}

fn split(area: Rect, left: u16) -> [Rect; 2] {
    let left = left.min(area.width);
    [Rect { width: left, ..area }, Rect { x: area.x + left, width: area.width - left, ..area }]
}
