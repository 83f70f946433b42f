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
