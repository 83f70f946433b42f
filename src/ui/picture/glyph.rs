//! Characters that are drawn as shapes.

use std::fmt::Write;

use super::CELL;

/// A shape, as the data of an SVG path.
#[derive(Debug, PartialEq)]
pub(super) enum Glyph {
    /// A filled area.
    Fill(String),
    /// Lines.
    Stroke(String),
    /// Dots, as lines of no length with round ends.
    Dots(String),
    /// A cell filled by a quarter, a half, or three quarters.
    Shade(usize, String),
}

/// Arms of a box-drawing character from the middle of the cell: left, right, up, down.
fn arms(c: char) -> Option<(bool, bool, bool, bool)> {
    Some(match c {
        '│' | '┃' => (false, false, true, true),
        '┌' | '┏' => (false, true, false, true),
        '┐' | '┓' => (true, false, false, true),
        '└' | '┗' => (false, true, true, false),
        '┘' | '┛' => (true, false, true, false),
        '├' | '┣' => (false, true, true, true),
        '┤' | '┫' => (true, false, true, true),
        '┬' | '┳' => (true, true, false, true),
        '┴' | '┻' => (true, true, true, false),
        '┼' | '╋' => (true, true, true, true),
        '╴' => (true, false, false, false),
        '╶' => (false, true, false, false),
        '╵' => (false, false, true, false),
        '╷' => (false, false, false, true),
        _ => return None,
    })
}

/// The shape of `c` in the cell whose upper left corner is (x, y); `None` when the font draws it.
pub(super) fn shape(c: char, x: u32, y: u32) -> Option<Glyph> {
    let (w, h) = CELL;
    // the middle of a cell lies between two units, so that thin lines are sharp
    let mid = num(f64::from(x) + f64::from(w) / 2.0);
    let my = num(f64::from(y) + f64::from(h) / 2.0);
    let area = |left: f64, top: f64, wide: f64, high: f64| {
        format!(
            "M{} {}h{}v{}h-{}z",
            num(f64::from(x) + left),
            num(f64::from(y) + top),
            num(wide),
            num(high),
            num(wide)
        )
    };
    let (wide, high) = (f64::from(w), f64::from(h));
    Some(match c {
        '─' | '━' => Glyph::Stroke(format!("M{x} {my}h{w}")),
        '┄' | '┈' => Glyph::Stroke(format!("M{} {my}h2m2.5 0h2", x + 1)),
        '╭' => Glyph::Stroke(format!("M{} {my}h-.5q-4 0-4 4V{}", x + w, y + h)),
        '╮' => Glyph::Stroke(format!("M{x} {my}h.5q4 0 4 4V{}", y + h)),
        '╰' => Glyph::Stroke(format!("M{} {my}h-.5q-4 0-4-4V{y}", x + w)),
        '╯' => Glyph::Stroke(format!("M{x} {my}h.5q4 0 4-4V{y}")),
        '█' => Glyph::Fill(area(0.0, 0.0, wide, high)),
        '▀' => Glyph::Fill(area(0.0, 0.0, wide, high / 2.0)),
        '▐' => Glyph::Fill(area(wide / 2.0, 0.0, wide / 2.0, high)),
        '▁'..='▇' => {
            let part = high * f64::from(c as u32 - '▁' as u32 + 1) / 8.0;
            Glyph::Fill(area(0.0, high - part, wide, part))
        }
        '▉'..='▏' => {
            Glyph::Fill(area(0.0, 0.0, wide * f64::from('▏' as u32 - c as u32 + 1) / 8.0, high))
        }
        '░' | '▒' | '▓' => Glyph::Shade((c as u32 - '░' as u32) as usize, area(0.0, 0.0, wide, high)),
        '⠀'..='⣿' => braille(c, x, y),
        _ => {
            return symbol(c, x, y).or_else(|| {
                let (left, right, up, down) = arms(c)?;
                let mut d = String::new();
                for (on, arm) in [
                    (left, format!("M{mid} {my}H{x}")),
                    (right, format!("M{mid} {my}H{}", x + w)),
                    (up, format!("M{mid} {my}V{y}")),
                    (down, format!("M{mid} {my}V{}", y + h)),
                ] {
                    if on {
                        d.push_str(&arm);
                    }
                }
                Some(Glyph::Stroke(d))
            });
        }
    })
}

/// The marks that go with a level or a state: fonts disagree about them more than about anything else,
/// and some show them as coloured pictures.
fn symbol(c: char, x: u32, y: u32) -> Option<Glyph> {
    let (fx, fy) = (f64::from(x), f64::from(y));
    let at = |dx: f64, dy: f64| format!("{} {}", num(fx + dx), num(fy + dy));
    Some(match c {
        '✔' => Glyph::Fill(format!("M{}l-1.4 1.6 2.6 3.2h1.3l4.6-9-1.5-.8-3.9 7z", at(1.2 + 0.9, 9.2))),
        '✖' => Glyph::Fill(format!(
            "M{}l3 3 3-3 1.4 1.4-3 3 3 3-1.4 1.4-3-3-3 3-1.4-1.4 3-3-3-3z",
            at(1.5, 5.6)
        )),
        '▲' => Glyph::Fill(format!("M{}l4 8h-8z", at(4.5, 5.5))),
        '▼' => Glyph::Fill(format!("M{}l4-8h-8z", at(4.5, 14.0))),
        '▶' => Glyph::Fill(format!("M{}l7 4.5-7 4.5z", at(1.2, 5.5))),
        '◀' => Glyph::Fill(format!("M{}l-7 4.5 7 4.5z", at(8.0, 5.5))),
        '◆' => Glyph::Fill(format!("M{}l4 4.5-4 4.5-4-4.5z", at(4.5, 5.5))),
        '●' => Glyph::Fill(format!("M{}a3.4 3.4 0 1 0 6.8 0 3.4 3.4 0 1 0-6.8 0z", at(1.1, 9.8))),
        '○' => Glyph::Stroke(format!("M{}a3 3 0 1 0 6 0 3 3 0 1 0-6 0z", at(1.5, 9.8))),
        '↻' => Glyph::Stroke(format!("M{}a3.3 3.3 0 1 0 .9 2.6m-.5-5v2.6h-2.6", at(7.1, 7.6))),
        '·' => Glyph::Dots(format!("M{}h.01", at(4.5, 10.0))),
        _ => return None,
    })
}

/// Two columns and four rows of dots.
fn braille(c: char, x: u32, y: u32) -> Glyph {
    /// Where the bits lie: column and row.
    const BITS: [(f64, f64); 8] =
        [(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 0.0), (1.0, 1.0), (1.0, 2.0), (0.0, 3.0), (1.0, 3.0)];
    let bits = c as u32 - '⠀' as u32;
    let (dx, dy) = (f64::from(CELL.0) / 2.0, f64::from(CELL.1) / 4.0);
    let mut d = String::new();
    for (i, (column, row)) in BITS.into_iter().enumerate() {
        if bits & (1 << i) != 0 {
            let (px, py) = (f64::from(x) + dx * (column + 0.5), f64::from(y) + dy * (row + 0.5));
            let _ = write!(d, "M{} {}h.01", num(px), num(py));
        }
    }
    Glyph::Dots(d)
}

/// At most two digits after the point, and none that say nothing.
fn num(v: f64) -> String {
    let text = format!("{v:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_meet_at_the_edges_of_their_cells() {
        assert_eq!(shape('─', 9, 0), Some(Glyph::Stroke("M9 9.5h9".into())));
        assert_eq!(shape('│', 0, 19), Some(Glyph::Stroke("M4.5 28.5V19M4.5 28.5V38".into())));
        assert_eq!(shape('╮', 0, 0), Some(Glyph::Stroke("M0 9.5h.5q4 0 4 4V19".into())));
        assert_eq!(shape('╯', 0, 0), Some(Glyph::Stroke("M0 9.5h.5q4 0 4-4V0".into())));
    }

    #[test]
    fn bars_stand_on_the_bottom_of_the_cell() {
        assert_eq!(shape('▄', 0, 0), Some(Glyph::Fill("M0 9.5h9v9.5h-9z".into())));
        assert_eq!(shape('█', 9, 0), Some(Glyph::Fill("M9 0h9v19h-9z".into())));
    }

    #[test]
    fn letters_are_left_to_the_font() {
        assert_eq!(shape('a', 0, 0), None);
        assert_eq!(shape('担', 0, 0), None);
    }
}
