//! Draws the state on a frame: themes, layout, screens, widgets. Reads [`App`], changes nothing.

mod frame;
mod paint;
pub mod picture;
mod screens;
mod theme;
mod widgets;
mod zones;

pub use zones::Zones;

pub use theme::{Role, Theme, ThemeError, Themes};

use std::cell::RefCell;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::{App, Screen};
use crate::model::Now;

/// The smallest terminal in which the screens say what they should, in cells.
pub const SMALLEST: (u16, u16) = (60, 18);

/// What every part of the screen is drawn from.
#[derive(Clone, Copy)]
struct Ui<'a> {
    app: &'a App,
    now: Now,
    theme: &'a Theme,
    zones: &'a RefCell<Zones>,
}

impl Ui<'_> {
    fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }
}

/// Draws one frame. Total at any size; builds only the rows that are seen.
pub fn draw(frame: &mut Frame<'_>, app: &App, now: Now, theme: &Theme) {
    draw_zones(frame, app, now, theme);
}

/// The same, and tells what can be clicked on it.
pub fn draw_zones(frame: &mut Frame<'_>, app: &App, now: Now, theme: &Theme) -> Zones {
    let zones = RefCell::default();
    draw_all(frame, Ui { app, now, theme, zones: &zones });
    // what lies over the screen has its own keys, and none of them is clicked by accident
    if app.dialog().is_some() { Zones::default() } else { zones.into_inner() }
}

fn draw_all(frame: &mut Frame<'_>, ui: Ui<'_>) {
    let Ui { app, theme, .. } = ui;
    let area = frame.area();
    let buf = frame.buffer_mut();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let (w, h) = SMALLEST;
        let text = format!("terminal too small ({}x{}, needs {w}x{h})", area.width, area.height);
        paint::text(buf, area.x, area.y, area.width, &text, ui.style(Role::Warn));
        return;
    }
    screen(ui, buf, area);
    if let Some(dialog) = app.dialog() {
        widgets::dialog::draw(ui, buf, area, dialog);
    }
    theme.lay_under(buf);
    if theme.is_ascii() {
        paint::to_ascii(buf);
    }
}

fn screen(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let row = |y: u16| Rect::new(area.x, area.y + y, area.width, 1);
    frame::head(ui, buf, row(0));
    frame::diagnosis(ui, buf, row(1));
    frame::footer(ui, buf, row(area.height - 1));
    let body = Rect::new(area.x, area.y + 2, area.width, area.height - 3);
    match ui.app.screen() {
        Screen::Overview => screens::overview::draw(ui, buf, body),
        Screen::Backlog if ui.app.jobs_view().is_some() => screens::jobs::draw(ui, buf, body),
        Screen::Backlog => screens::backlog::draw(ui, buf, body),
        Screen::Workers => screens::workers::draw(ui, buf, body),
        Screen::Sessions => screens::sessions::draw(ui, buf, body),
        Screen::WakeUps => screens::wakeups::draw(ui, buf, body),
        Screen::Leases => screens::leases::draw(ui, buf, body),
        Screen::Events => screens::events::draw(ui, buf, body),
    }
}
