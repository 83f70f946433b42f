//! Lines over time, in braille: two columns and four rows of dots per cell. A gap stays empty.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// How a line is drawn: the stroke tells the lines apart where there is no colour.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::ui) enum Stroke {
    /// Without a break.
    Solid,
    /// Every other dot.
    Dotted,
    /// One dot of four.
    Sparse,
}

impl Stroke {
    /// How the legend names it, in braille and in ASCII.
    pub(in crate::ui) fn mark(self, ascii: bool) -> &'static str {
        match (self, ascii) {
            (Self::Solid, false) => "─",
            (Self::Dotted, false) => "┄",
            (Self::Sparse, false) => "·",
            (Self::Solid, true) => "*",
            (Self::Dotted, true) => "o",
            (Self::Sparse, true) => ".",
        }
    }
}

/// One line of the chart: two values per cell.
pub(in crate::ui) struct Curve<'a> {
    pub values: &'a [Option<f64>],
    pub style: Style,
    pub stroke: Stroke,
}

/// The dot of column `x` (0–1) and row `y` (0–3, from the top) in a braille character.
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// Draws `curves` into `area`, `top` being the value at its upper edge. Where two curves run
/// together, the later one stands a dot beside the earlier, and the cells they share take their looks in
/// turn: no curve hides another.
pub(in crate::ui) fn draw(buf: &mut Buffer, area: Rect, top: f64, curves: &[Curve<'_>], ascii: bool) {
    let area = area.intersection(buf.area);
    let (w, h) = (usize::from(area.width), usize::from(area.height));
    if w == 0 || h == 0 || top <= 0.0 {
        return;
    }
    let mut dots = vec![0u32; w * h];
    // curves in each cell, a bit for each
    let mut owners = vec![0u32; w * h];
    let rows = h * 4;
    let level = |v: f64| {
        let share = (v / top).clamp(0.0, 1.0);
        rows - 1 - ((share * (rows - 1) as f64).round() as usize).min(rows - 1)
    };
    for (nth, curve) in curves.iter().enumerate() {
        // the dots of the curves before
        let taken = dots.clone();
        let mut last: Option<usize> = None;
        for (x, value) in curve.values.iter().take(w * 2).enumerate() {
            let Some(value) = value else {
                last = None;
                continue;
            };
            let y = level(*value);
            // a solid line joins its points; the others leave columns out
            let (from, to) = match (curve.stroke, last) {
                (Stroke::Solid, Some(l)) if l < y => (l + 1, y),
                (Stroke::Solid, Some(l)) if l > y => (y, l - 1),
                _ => (y, y),
            };
            last = Some(y);
            let every = match curve.stroke {
                Stroke::Solid => 1,
                Stroke::Dotted => 2,
                Stroke::Sparse => 4,
            };
            if x % every != 0 {
                continue;
            }
            let is_taken = |y: usize| taken[(y / 4) * w + x / 2] & DOTS[x % 2][y % 4] != 0;
            for y in from..=to {
                // the line at nothing is shared: a dot above it would be a number
                let y = match y {
                    y if from != to || y + 1 == rows || !is_taken(y) => y,
                    y if y + 2 < rows => y + 1,
                    y => y - 1,
                };
                let cell = (y / 4) * w + x / 2;
                dots[cell] |= DOTS[x % 2][y % 4];
                owners[cell] |= 1 << (nth % 32);
            }
        }
    }
    for (i, bits) in dots.iter().enumerate().filter(|(_, b)| **b != 0) {
        let (x, y) = (area.x + (i % w) as u16, area.y + (i / w) as u16);
        let here: Vec<&Curve<'_>> = curves
            .iter()
            .enumerate()
            .filter(|(n, _)| owners[i] & (1 << (n % 32)) != 0)
            .map(|c| c.1)
            .collect();
        let Some(curve) = here.get(i % w % here.len().max(1)) else { continue };
        let (style, stroke) = (curve.style, curve.stroke);
        if let (Some(cell), Some(c)) = (buf.cell_mut((x, y)), char::from_u32(0x2800 + bits)) {
            if ascii {
                cell.set_symbol(stroke.mark(true)).set_style(style);
            } else {
                cell.set_char(c).set_style(style);
            }
        }
    }
}

/// The next round number at or above `v`: 1, 2, 3, 4, 6 or 8 times a power of ten, at least 1.
pub(in crate::ui) fn round_up(v: f64) -> f64 {
    if !v.is_finite() || v <= 1.0 {
        return 1.0;
    }
    let power = 10f64.powf(v.log10().floor());
    [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0].into_iter().map(|m| m * power).find(|n| *n >= v).unwrap_or(v)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[Option<f64>], stroke: Stroke) -> String {
        let area = Rect::new(0, 0, values.len().div_ceil(2) as u16, 1);
        let mut buf = Buffer::empty(area);
        draw(&mut buf, area, 3.0, &[Curve { values, style: Style::new(), stroke }], false);
        buf.content().iter().map(|c| c.symbol()).collect()
    }

    #[test]
    fn a_gap_is_left_empty() {
        let v = [Some(0.0), Some(0.0), None, None, Some(3.0), Some(3.0)];
        assert_eq!(row(&v, Stroke::Solid), "⣀ ⠉");
    }

    #[test]
    fn the_strokes_differ_without_colour() {
        let v = [Some(0.0); 4];
        assert_eq!(row(&v, Stroke::Solid), "⣀⣀");
        assert_eq!(row(&v, Stroke::Dotted), "⡀⡀");
        assert_eq!(row(&v, Stroke::Sparse), "⡀ ");
    }

    #[test]
    fn curves_that_run_together_are_both_seen() {
        let area = Rect::new(0, 0, 2, 1);
        let values = [Some(3.0); 4];
        let (first, second) = (Style::new().bold(), Style::new().italic());
        let curve = |style, stroke| Curve { values: &values, style, stroke };
        let curves = [curve(first, Stroke::Solid), curve(second, Stroke::Dotted)];
        let mut buf = Buffer::empty(area);
        draw(&mut buf, area, 3.0, &curves, false);
        let text: String = buf.content().iter().map(|c| c.symbol()).collect();
        assert_eq!(text, "⠋⠋", "the dotted one stands under the solid one");
        assert_ne!(
            buf.content()[0].modifier,
            buf.content()[1].modifier,
            "and they take turns in their looks"
        );
    }

    #[test]
    fn the_axis_ends_at_a_round_number() {
        for (v, want) in [(0.0, 1.0), (1.0, 1.0), (37.0, 40.0), (412.0, 600.0), (1001.0, 2000.0)] {
            assert_eq!(round_up(v), want);
        }
    }
}
