//! A selection that stays on its thing, whatever the order does.
//!
//! What is selected is named by its identity (a lease by id and token, a holder by name, an event by
//! its number), never by a row. When it leaves the list the selection says so, instead of sliding to
//! whatever stands in its place.

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection<K> {
    key: Option<K>,
    /// Nobody has moved yet: the first row is taken for lack of a choice.
    automatic: bool,
    /// The row it was last seen on.
    row: usize,
    /// The first row on the screen.
    top: usize,
    /// Whether it was in the list when that last changed.
    present: bool,
    /// Whether it was moved since.
    moved: bool,
}

impl<K> Default for Selection<K> {
    fn default() -> Self {
        Self { key: None, automatic: true, row: 0, top: 0, present: false, moved: false }
    }
}

impl<K: Clone + PartialEq> Selection<K> {
    /// What is selected and still there.
    pub fn key(&self) -> Option<&K> {
        if self.present { self.key.as_ref() } else { None }
    }

    /// Whether something was chosen that has left the list since.
    pub fn is_gone(&self) -> bool {
        self.key.is_some() && !self.present
    }

    /// The row it is on, or was on when it left.
    pub fn row(&self) -> usize {
        self.row
    }

    /// The first row to draw when `height` rows fit and the list has `len`.
    pub fn top(&self, len: usize, height: usize) -> usize {
        let most = len.saturating_sub(height);
        let lowest = (self.row + 1).saturating_sub(height);
        self.top.clamp(lowest.min(self.row), self.row.max(lowest)).min(most)
    }

    /// The list has changed, or the cursor was moved. `len` rows, `at` gives the key of a row, `find` the
    /// row of a key.
    pub fn follow(
        &mut self,
        len: usize,
        at: impl Fn(usize) -> Option<K>,
        find: impl Fn(&K) -> Option<usize>,
    ) {
        if std::mem::take(&mut self.moved) && len > 0 {
            self.row = self.row.min(len - 1);
            self.key = at(self.row);
            self.present = self.key.is_some();
        } else if self.automatic {
            *self = Self { key: at(0), present: len > 0, ..Self::default() };
        } else if let Some(row) = self.key.as_ref().and_then(find) {
            // the cursor keeps its place on the screen; the list moves under it
            self.top = (self.top + row).saturating_sub(self.row);
            self.row = row;
            self.present = true;
        } else {
            self.present = false;
            self.row = self.row.min(len.saturating_sub(1));
        }
    }

    /// Goes to `row` of a list of `len` that is shown from `top` on.
    pub fn choose(&mut self, row: usize, top: usize, len: usize) {
        if row < len {
            *self = Self { key: self.key.take(), row, top, moved: true, automatic: false, present: false };
        }
    }

    /// Moves by `by` rows, within a list of `len` of which `height` are shown. [`Selection::follow`] then
    /// tells what stands there.
    pub fn step(&mut self, by: isize, len: usize, height: usize) {
        if len == 0 {
            return;
        }
        self.row = self.row.saturating_add_signed(by).min(len - 1);
        self.moved = true;
        self.automatic = false;
        self.top = self.top(len, height.max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(s: &mut Selection<char>, list: &str) {
        let v: Vec<char> = list.chars().collect();
        s.follow(v.len(), |i| v.get(i).copied(), |k| v.iter().position(|c| c == k));
    }

    fn step(s: &mut Selection<char>, by: isize, list: &str) {
        s.step(by, list.chars().count(), 3);
        follow(s, list);
    }

    #[test]
    fn the_cursor_stays_on_its_thing_and_on_its_screen_row_when_the_order_changes() {
        let mut s = Selection::default();
        follow(&mut s, "abcdef");
        step(&mut s, 4, "abcdef");
        assert_eq!((s.key(), s.row(), s.top(6, 3)), (Some(&'e'), 4, 2));
        follow(&mut s, "xyabcdef");
        assert_eq!((s.key(), s.row(), s.top(8, 3)), (Some(&'e'), 6, 4));
        follow(&mut s, "efabcd");
        assert_eq!((s.key(), s.row(), s.top(6, 3)), (Some(&'e'), 0, 0));
    }

    #[test]
    fn what_was_chosen_and_left_does_not_slide_to_its_neighbour() {
        let mut s = Selection::default();
        follow(&mut s, "abc");
        step(&mut s, 1, "abc");
        follow(&mut s, "ac");
        assert_eq!(s.key(), None);
        assert!(s.is_gone());
        step(&mut s, 1, "ac");
        assert_eq!(s.key(), Some(&'c'));
    }

    #[test]
    fn before_anybody_moves_the_first_row_is_taken() {
        let mut s = Selection::default();
        follow(&mut s, "");
        assert_eq!(s.key(), None);
        follow(&mut s, "ab");
        assert_eq!(s.key(), Some(&'a'));
        follow(&mut s, "b");
        assert_eq!(s.key(), Some(&'b'));
    }

    #[test]
    fn the_cursor_is_always_within_the_rows_shown() {
        for len in 0..12usize {
            for height in 0..6usize {
                for row in 0..len.max(1) {
                    for top in 0..14 {
                        let s = Selection {
                            key: Some('a'),
                            automatic: false,
                            row,
                            top,
                            present: true,
                            moved: false,
                        };
                        let t = s.top(len, height);
                        if height > 0 && len > 0 {
                            assert!(t <= row && row < t + height, "{len} {height} {row} {top} -> {t}");
                        }
                    }
                }
            }
        }
    }
}
