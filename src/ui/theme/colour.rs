//! Colours as numbers: what can be read on what, and the nearest of the fixed 256.

use ratatui::style::Color;

/// Black or white, whichever can be read on `bg`.
pub(super) fn readable_on(bg: Color) -> Color {
    match rgb(bg) {
        Some(c) if luminance(c) > 0.18 => Color::Indexed(16),
        _ => Color::Indexed(231),
    }
}

/// Red, green and blue of a colour that has fixed ones.
pub(super) fn rgb(colour: Color) -> Option<(u8, u8, u8)> {
    match colour {
        Color::Rgb(r, g, b) => Some((r, g, b)),
        Color::Indexed(i @ 16..=231) => {
            let i = i - 16;
            let part = |n: u8| if n == 0 { 0 } else { 55 + n * 40 };
            Some((part(i / 36), part(i / 6 % 6), part(i % 6)))
        }
        Color::Indexed(i @ 232..) => {
            let v = 8 + (i - 232) * 10;
            Some((v, v, v))
        }
        // the first sixteen and the names are the terminal's own choice; these are the usual ones
        Color::Red | Color::Indexed(1) => Some((205, 0, 0)),
        Color::Green | Color::Indexed(2) => Some((0, 205, 0)),
        Color::Yellow | Color::Indexed(3) => Some((205, 205, 0)),
        Color::LightRed => Some((255, 0, 0)),
        Color::LightGreen => Some((0, 255, 0)),
        Color::LightYellow => Some((255, 255, 0)),
        Color::White | Color::Gray => Some((229, 229, 229)),
        _ => None,
    }
}

/// Relative luminance, 0–1.
pub(super) fn luminance((r, g, b): (u8, u8, u8)) -> f64 {
    let part = |c: u8| {
        let c = f64::from(c) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b)
}

/// The contrast of two colours, 1–21, where both have fixed values.
#[cfg(test)]
pub(super) fn contrast(a: Color, b: Color) -> Option<f64> {
    let (a, b) = (luminance(rgb(a)?), luminance(rgb(b)?));
    Some((a.max(b) + 0.05) / (a.min(b) + 0.05))
}

/// The nearest of the fixed 256, for terminals that know no others.
pub(super) fn nearest(colour: Color) -> Color {
    let Color::Rgb(r, g, b) = colour else { return colour };
    let far = |i: u8| {
        let Some((x, y, z)) = rgb(Color::Indexed(i)) else { return i32::MAX };
        let d = |a: u8, b: u8| (i32::from(a) - i32::from(b)).pow(2);
        d(r, x) + d(g, y) + d(b, z)
    };
    (16..=255).min_by_key(|i| far(*i)).map_or(colour, Color::Indexed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_of_the_fixed_colours_is_found() {
        assert_eq!(nearest(Color::Rgb(255, 0, 0)), Color::Indexed(196));
        assert_eq!(nearest(Color::Rgb(8, 8, 8)), Color::Indexed(232));
        assert_eq!(nearest(Color::Red), Color::Red);
    }

    #[test]
    fn contrast_lies_between_one_and_twenty_one() {
        let (black, white) = (Color::Rgb(0, 0, 0), Color::Rgb(255, 255, 255));
        assert_eq!(contrast(black, white), Some(21.0));
        assert_eq!(contrast(white, white), Some(1.0));
        assert_eq!(contrast(Color::Reset, white), None);
    }
}
