//! A list with a cursor, a filter and an order, all of which stay as the person left them.

use std::cmp::Ordering;

use super::fuzzy::Pattern;
use super::selection::Selection;

/// What a column of a row is sorted by. What is not known comes last, whatever the direction.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// By number.
    Number(f64),
    /// By text.
    Text(String),
    /// Not known.
    Nothing,
}

impl Value {
    /// A number, if there is one.
    pub fn number(n: Option<f64>) -> Self {
        n.map_or(Self::Nothing, Self::Number)
    }

    /// A moment, if there is one.
    pub fn time(at: Option<chrono::DateTime<chrono::Utc>>) -> Self {
        Self::number(at.map(|t| t.timestamp_millis() as f64))
    }

    fn compare(&self, other: &Self, reverse: bool) -> Ordering {
        let turned = |o: Ordering| if reverse { o.reverse() } else { o };
        match (self, other) {
            (Self::Nothing, Self::Nothing) => Ordering::Equal,
            (Self::Nothing, _) => Ordering::Greater,
            (_, Self::Nothing) => Ordering::Less,
            (Self::Number(a), Self::Number(b)) => turned(a.total_cmp(b)),
            (Self::Text(a), Self::Text(b)) => turned(natural(a, b)),
            (Self::Number(_), _) => turned(Ordering::Less),
            (_, Self::Number(_)) => turned(Ordering::Greater),
        }
    }
}

/// Texts that are whole numbers compare as numbers: `9` before `10`.
fn natural(a: &str, b: &str) -> Ordering {
    match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        _ => a.cmp(b),
    }
}

/// A row of some list.
pub trait Row {
    /// Its identity.
    type Key: Clone + PartialEq;
    /// Its identity.
    fn key(&self) -> Self::Key;
    /// Whether it is that one.
    fn is(&self, key: &Self::Key) -> bool;
    /// What the filter looks at.
    fn cells(&self) -> Vec<&str>;
    /// What column `column` is sorted by.
    fn value(&self, column: usize) -> Value;
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Table<K> {
    selection: Selection<K>,
    filter: String,
    /// 0: the natural order; else the column before it.
    sort: usize,
    reverse: bool,
    /// Rows of the source that are shown, in the order shown.
    order: Vec<usize>,
    /// Rows of the source.
    total: usize,
}

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            filter: String::new(),
            sort: 0,
            reverse: false,
            order: Vec::new(),
            total: 0,
        }
    }
}

/// What can be done to a table whatever its rows are.
pub trait Lever {
    /// Moves the cursor.
    fn step(&mut self, by: isize, height: usize);
    /// Puts the cursor on a row of those that are shown from `top` on.
    fn choose(&mut self, row: usize, top: usize);
    /// Sorts by the next of `columns`, then in the natural order again.
    fn next_sort(&mut self, columns: usize);
    /// Turns the order round.
    fn reverse(&mut self);
    /// What the filter is.
    fn filter(&self) -> &str;
    /// Sets it.
    fn set_filter(&mut self, text: String);
    /// The column it is sorted by, and whether that is turned round.
    fn sorted(&self) -> (Option<usize>, bool);
    /// Rows shown, and rows there are.
    fn counts(&self) -> (usize, usize);
    /// The row of the cursor, and the first row on a screen of this height.
    fn cursor(&self, height: usize) -> (usize, usize);
}

impl<K: Clone + PartialEq> Lever for Table<K> {
    fn step(&mut self, by: isize, height: usize) {
        self.selection.step(by, self.order.len(), height);
    }

    fn choose(&mut self, row: usize, top: usize) {
        self.selection.choose(row, top, self.order.len());
    }

    fn next_sort(&mut self, columns: usize) {
        self.sort = if self.sort >= columns { 0 } else { self.sort + 1 };
        self.reverse = false;
    }

    fn reverse(&mut self) {
        self.reverse = !self.reverse;
    }

    fn filter(&self) -> &str {
        &self.filter
    }

    fn set_filter(&mut self, text: String) {
        self.filter = text;
    }

    fn sorted(&self) -> (Option<usize>, bool) {
        (self.sort.checked_sub(1), self.reverse)
    }

    fn counts(&self) -> (usize, usize) {
        (self.order.len(), self.total)
    }

    fn cursor(&self, height: usize) -> (usize, usize) {
        (self.selection.row(), self.selection.top(self.order.len(), height))
    }
}

impl<K: Clone + PartialEq> Table<K> {
    /// The cursor.
    pub fn selection(&self) -> &Selection<K> {
        &self.selection
    }

    /// Rows of the source that are shown, in the order shown.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The source has changed, or the filter, or the order, or the cursor was moved. `rows` are in their
    /// natural order; those that `keep` refuses are not of this list.
    pub fn arrange<'a, R>(&mut self, rows: impl Iterator<Item = &'a R>, keep: impl Fn(&R) -> bool)
    where
        R: Row<Key = K> + 'a,
    {
        let pattern = Pattern::new(&self.filter);
        self.total = 0;
        let mut shown: Vec<(usize, &R)> = Vec::with_capacity(rows.size_hint().0);
        for (i, row) in rows.enumerate() {
            if !keep(row) {
                continue;
            }
            self.total += 1;
            if pattern.is_empty() || pattern.matches(row.cells().into_iter()) {
                shown.push((i, row));
            }
        }
        if let Some(column) = self.sort.checked_sub(1) {
            let mut valued: Vec<(Value, (usize, &R))> =
                shown.into_iter().map(|r| (r.1.value(column), r)).collect();
            // stable: rows that are alike keep their natural order
            valued.sort_by(|a, b| a.0.compare(&b.0, self.reverse));
            shown = valued.into_iter().map(|(_, r)| r).collect();
        } else if self.reverse {
            shown.reverse();
        }
        self.selection.follow(
            shown.len(),
            |i| shown.get(i).map(|r| r.1.key()),
            |key| shown.iter().position(|r| r.1.is(key)),
        );
        self.order = shown.into_iter().map(|r| r.0).collect();
    }

    /// Forgets what was chosen: another list begins.
    pub fn restart(&mut self) {
        self.selection = Selection::default();
    }

    /// Forgets filter and order as well.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pair(&'static str, Option<f64>);

    impl Row for Pair {
        type Key = &'static str;
        fn key(&self) -> &'static str {
            self.0
        }
        fn is(&self, key: &&'static str) -> bool {
            self.0 == *key
        }
        fn cells(&self) -> Vec<&str> {
            vec![self.0]
        }
        fn value(&self, column: usize) -> Value {
            if column == 0 { Value::Text(self.0.to_owned()) } else { Value::number(self.1) }
        }
    }

    const ROWS: [Pair; 4] =
        [Pair("b", Some(2.0)), Pair("a", None), Pair("10", Some(7.0)), Pair("9", Some(2.0))];

    fn shown(t: &mut Table<&'static str>) -> Vec<&'static str> {
        t.arrange(ROWS.iter(), |_| true);
        t.order().iter().map(|i| ROWS[*i].0).collect()
    }

    #[test]
    fn s_goes_through_the_columns_and_back_to_the_natural_order() {
        let mut t = Table::default();
        assert_eq!(shown(&mut t), ["b", "a", "10", "9"]);
        t.next_sort(2);
        assert_eq!(shown(&mut t), ["9", "10", "a", "b"]);
        t.next_sort(2);
        assert_eq!(shown(&mut t), ["b", "9", "10", "a"]);
        t.next_sort(2);
        assert_eq!(shown(&mut t), ["b", "a", "10", "9"]);
    }

    #[test]
    fn what_is_unknown_stays_last_in_both_directions() {
        let mut t = Table::default();
        t.next_sort(2);
        t.next_sort(2);
        t.reverse();
        assert_eq!(shown(&mut t), ["10", "b", "9", "a"]);
    }

    #[test]
    fn the_cursor_stays_on_its_row_through_filter_and_order() {
        let mut t = Table::default();
        shown(&mut t);
        t.step(3, 10);
        shown(&mut t);
        assert_eq!(t.selection().key(), Some(&"9"));
        t.next_sort(2);
        shown(&mut t);
        assert_eq!((t.selection().key(), t.selection().row()), (Some(&"9"), 0));
        t.set_filter("a".to_owned());
        assert_eq!(shown(&mut t), ["a"]);
        assert!(t.selection().is_gone(), "a row that is filtered out is not replaced by another");
        t.set_filter(String::new());
        shown(&mut t);
        assert_eq!(t.selection().key(), Some(&"9"));
        assert_eq!(t.counts(), (4, 4));
    }
}
