//! Colours with fixed values: a picture has no terminal to ask.

use ratatui::style::Color;

pub(super) type Rgb = (u8, u8, u8);

/// The first sixteen, as many terminals have them.
const NAMED: [Rgb; 16] = [
    (0x1c, 0x1c, 0x1c),
    (0xcc, 0x55, 0x55),
    (0x5f, 0xaf, 0x5f),
    (0xd7, 0xaf, 0x5f),
    (0x5f, 0x87, 0xd7),
    (0xaf, 0x87, 0xd7),
    (0x5f, 0xaf, 0xaf),
    (0xbc, 0xbc, 0xbc),
    (0x6c, 0x6c, 0x6c),
    (0xff, 0x87, 0x87),
    (0x87, 0xd7, 0x87),
    (0xff, 0xd7, 0x87),
    (0x87, 0xaf, 0xff),
    (0xd7, 0xaf, 0xff),
    (0x87, 0xd7, 0xd7),
    (0xee, 0xee, 0xee),
];

/// The value of a colour; `None` for the terminal's own.
pub(super) fn rgb(colour: Color) -> Option<Rgb> {
    let named = |i: usize| Some(NAMED[i]);
    match colour {
        Color::Reset => None,
        Color::Black => named(0),
        Color::Red => named(1),
        Color::Green => named(2),
        Color::Yellow => named(3),
        Color::Blue => named(4),
        Color::Magenta => named(5),
        Color::Cyan => named(6),
        Color::Gray => named(7),
        Color::DarkGray => named(8),
        Color::LightRed => named(9),
        Color::LightGreen => named(10),
        Color::LightYellow => named(11),
        Color::LightBlue => named(12),
        Color::LightMagenta => named(13),
        Color::LightCyan => named(14),
        Color::White => named(15),
        Color::Rgb(r, g, b) => Some((r, g, b)),
        Color::Indexed(i @ 0..=15) => named(usize::from(i)),
        Color::Indexed(i @ 16..=231) => {
            let i = i - 16;
            let part = |n: u8| if n == 0 { 0 } else { 55 + n * 40 };
            Some((part(i / 36), part(i / 6 % 6), part(i % 6)))
        }
        Color::Indexed(i @ 232..) => {
            let v = 8 + (i - 232) * 10;
            Some((v, v, v))
        }
    }
}

/// What ordinary text would be on `ground`.
pub(super) fn plain_on((r, g, b): Rgb) -> Rgb {
    let light = 299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b) > 128_000;
    if light { (0x24, 0x24, 0x24) } else { (0xd8, 0xd8, 0xd8) }
}

/// `share` of `b` over `a`.
pub(super) fn mix(a: Rgb, b: Rgb, share: f64) -> Rgb {
    let part = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * share).round() as u8;
    (part(a.0, b.0), part(a.1, b.1), part(a.2, b.2))
}

/// `#rrggbb`.
pub(super) fn hex((r, g, b): Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}
