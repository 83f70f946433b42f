//! Where on a frame a click means something. The picture knows what stands where; the state does not.

use ratatui::layout::{Position, Rect};

use crate::app::Msg;
use crate::config::keys::Key;

/// What can be clicked on the frame that was drawn.
#[derive(Clone, Debug, Default)]
pub struct Zones {
    /// Rows of the list that has the keys, and which of its rows is the first.
    list: Option<(Rect, usize, usize)>,
    /// Words of the footer and the keys they stand for.
    keys: Vec<(Rect, Key)>,
}

impl Zones {
    /// The rows of the list that has the keys: `len` altogether, from `top` on in `area`.
    pub(super) fn list(&mut self, area: Rect, top: usize, len: usize) {
        self.list = Some((area, top, len));
    }

    /// A word that stands for a key.
    pub(super) fn key(&mut self, area: Rect, key: Key) {
        self.keys.push((area, key));
    }

    /// What a click on this cell says.
    pub fn click(&self, column: u16, row: u16) -> Option<Msg> {
        let at = Position::new(column, row);
        if let Some((_, key)) = self.keys.iter().find(|(area, _)| area.contains(at)) {
            return Some(Msg::Key(*key));
        }
        let (area, top, len) = self.list.filter(|(area, _, _)| area.contains(at))?;
        let chosen = top + usize::from(row - area.y);
        (chosen < len).then_some(Msg::Row { row: chosen, top })
    }
}
