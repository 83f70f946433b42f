//! Cell widths: cutting and padding by what a terminal shows, never by bytes or characters.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Cells that `text` takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// `text` in exactly `cells` cells: padded on the right, or cut at the end with an ellipsis.
pub fn fit(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return pad(text, cells);
    }
    if cells == 0 {
        return String::new();
    }
    let head = take(text.graphemes(true), cells - 1);
    pad(&format!("{head}…"), cells)
}

/// `text` in exactly `cells` cells, cut in the middle: both the family name at the front and the
/// distinguishing end of a holder or host name stay.
pub fn fit_middle(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return pad(text, cells);
    }
    if cells < 5 {
        return fit(text, cells);
    }
    let tail_cells = (cells - 1) / 2;
    let head = take(text.graphemes(true), cells - 1 - tail_cells);
    let tail: String = {
        let back = take(text.graphemes(true).rev(), tail_cells);
        back.graphemes(true).rev().collect()
    };
    pad(&format!("{head}…{tail}"), cells)
}

/// `text` padded on the left to at least `cells` cells: numbers line up on the right.
pub fn pad_left(text: &str, cells: usize) -> String {
    format!("{}{text}", " ".repeat(cells.saturating_sub(width(text))))
}

fn pad(text: &str, cells: usize) -> String {
    format!("{text}{}", " ".repeat(cells.saturating_sub(width(text))))
}

/// The longest run of whole graphemes from the front that fits into `cells`.
fn take<'a>(graphemes: impl Iterator<Item = &'a str>, cells: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for g in graphemes {
        let w = width(g);
        if used + w > cells {
            break;
        }
        used += w;
        out.push_str(g);
    }
    out
}

/// `text` broken at spaces into lines of at most `cells`; a word that is too long is broken itself.
pub fn wrap(text: &str, cells: usize) -> Vec<String> {
    let cells = cells.max(1);
    let mut out = Vec::new();
    for raw in text.lines() {
        let mut row = String::new();
        let indent: String = raw.chars().take_while(|c| *c == ' ').collect();
        let indent = if width(&indent) < cells / 2 { indent } else { String::new() };
        for word in raw.split(' ').filter(|w| !w.is_empty()) {
            let gap = usize::from(!row.is_empty());
            if width(&row) + gap + width(word) <= cells && !row.is_empty() {
                row.push(' ');
                row.push_str(word);
                continue;
            }
            if !row.is_empty() {
                out.push(std::mem::take(&mut row));
            }
            row.push_str(&indent);
            for g in word.graphemes(true) {
                if width(&row) + width(g) > cells && !row.is_empty() {
                    out.push(std::mem::take(&mut row));
                }
                row.push_str(g);
            }
        }
        out.push(row);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wide_characters_are_never_split() {
        assert_eq!(fit("担当者", 5), "担当…");
        assert_eq!(fit("担当者", 4), "担… ");
        assert_eq!(fit("担当者", 6), "担当者");
    }

    #[test]
    fn names_that_differ_at_the_end_stay_apart() {
        let a = fit_middle("mail-worker-eu-central-1-pod-aaaa", 16);
        let b = fit_middle("mail-worker-eu-central-1-pod-bbbb", 16);
        assert_ne!(a, b);
        assert!(a.ends_with("aaaa"));
    }

    #[test]
    fn text_wraps_at_spaces_and_breaks_only_what_is_too_long() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("担当者です", 4), ["担当", "者で", "す"]);
        assert_eq!(wrap("", 4), Vec::<String>::new());
        assert_eq!(wrap("a\n  b c", 9), ["a", "  b c"]);
    }

    proptest! {
        #[test]
        fn fitted_text_has_exactly_the_cells_asked_for(raw in "\\PC*", cells in 0usize..40) {
            let text = crate::text::clean(&raw);
            // a lone combining mark can make a sum of widths differ from the width of the whole
            prop_assert!(width(&fit(&text, cells)) <= cells.max(1));
            prop_assert!(width(&fit_middle(&text, cells)) <= cells.max(1));
        }
    }
}
