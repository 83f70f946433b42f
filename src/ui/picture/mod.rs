//! A buffer as an SVG picture: the same cells on an exact grid, the same to the byte every time.
//!
//! Converters from ANSI text to SVG leave the columns to the font. A viewer that lacks a glyph takes it
//! from another font, of another width, and the frame falls apart. Here every run of text is pinned to
//! its column and its width, and whatever must join its neighbours without a gap (frames, bars, braille,
//! symbols) is drawn as a shape and needs no font at all.

mod colour;
mod glyph;

use std::collections::BTreeMap;
use std::fmt::Write;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use super::Theme;
use crate::app::{App, Msg, update};
use crate::model::Now;
use crate::text::width;
use colour::{Rgb, hex};
use glyph::Glyph;

/// A cell, in user units; the font is 0.6 as wide as it is high, as most fixed ones are.
const CELL: (u32, u32) = (9, 19);
/// Size of the font.
const FONT: u32 = 15;
/// From the top of a cell to the line the letters stand on.
const BASE: u32 = 14;
/// Room around the cells.
const MARGIN: u32 = 14;

/// How a cell's ink looks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ink {
    colour: Rgb,
    bold: bool,
    italic: bool,
}

/// What lies in one ink: text runs and shapes.
#[derive(Default)]
struct Layer {
    text: String,
    fills: String,
    strokes: String,
    dots: String,
    shades: [String; 3],
    underlines: String,
}

/// What a terminal of `size` would show of `app` at `now`.
pub fn screen(app: &mut App, size: (u16, u16), now: Now, theme: &Theme) -> Buffer {
    update(app, Msg::Resize(size.0, size.1), now);
    let Ok(mut terminal) = Terminal::new(TestBackend::new(size.0, size.1));
    let Ok(drawn) = terminal.draw(|frame| super::draw(frame, app, now, theme));
    drawn.buffer.clone()
}

/// `buf` in the colours of `theme`, which also gives the ground that a terminal would have.
pub fn svg(buf: &Buffer, theme: &Theme, title: &str) -> String {
    let ground = colour::rgb(theme.ground()).unwrap_or((0, 0, 0));
    let plain = colour::plain_on(ground);
    let (w, h) = (u32::from(buf.area.width) * CELL.0, u32::from(buf.area.height) * CELL.1);
    let mut grounds = String::new();
    let mut layers: BTreeMap<Ink, Layer> = BTreeMap::new();
    for y in 0..buf.area.height {
        row(buf, y, (plain, ground), &mut grounds, &mut layers);
    }
    let mut out = String::new();
    let (full_w, full_h) = (w + 2 * MARGIN, h + 2 * MARGIN);
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{full_w}\" height=\"{full_h}\" \
         viewBox=\"0 0 {full_w} {full_h}\" role=\"img\">\n<title>{}</title>\n\
         <style>svg{{font:{FONT}px 'DejaVu Sans Mono','JetBrains Mono',Menlo,'SF Mono',Consolas,\
         'Liberation Mono','Noto Sans Mono CJK KR',monospace;font-variant-emoji:text}}\
         .b{{font-weight:bold}}.i{{font-style:italic}}.l{{fill:none;stroke-width:1.2}}\
         .d{{fill:none;stroke-width:2.5;stroke-linecap:round}}</style>\n\
         <rect x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"{}\" stroke=\"{}\"/>\n\
         <g transform=\"translate({MARGIN} {MARGIN})\">\n",
        escape(title),
        full_w - 1,
        full_h - 1,
        hex(ground),
        hex(colour::mix(ground, plain, 0.2)),
    );
    out.push_str(&grounds);
    for (ink, layer) in &layers {
        write_layer(&mut out, *ink, layer);
    }
    out.push_str("</g>\n</svg>\n");
    out
}

fn write_layer(out: &mut String, ink: Ink, layer: &Layer) {
    let colour = hex(ink.colour);
    for (part, share) in layer.shades.iter().zip([".25", ".5", ".75"]) {
        if !part.is_empty() {
            let _ = writeln!(out, "<path fill=\"{colour}\" fill-opacity=\"{share}\" d=\"{part}\"/>");
        }
    }
    if !layer.fills.is_empty() {
        let _ = writeln!(out, "<path fill=\"{colour}\" d=\"{}\"/>", layer.fills);
    }
    for (class, part) in [("l", &layer.strokes), ("d", &layer.dots), ("l", &layer.underlines)] {
        if !part.is_empty() {
            let _ = writeln!(out, "<path class=\"{class}\" stroke=\"{colour}\" d=\"{part}\"/>");
        }
    }
    if !layer.text.is_empty() {
        let mut class = String::new();
        match (ink.bold, ink.italic) {
            (true, true) => class.push_str(" class=\"b i\""),
            (true, false) => class.push_str(" class=\"b\""),
            (false, true) => class.push_str(" class=\"i\""),
            (false, false) => {}
        }
        let _ = writeln!(out, "<g{class} fill=\"{colour}\">\n{}</g>", layer.text);
    }
}

/// Text that is collected until its run ends.
#[derive(Default)]
struct Run {
    from: u16,
    text: String,
}

fn row(buf: &Buffer, y: u16, plain: (Rgb, Rgb), grounds: &mut String, layers: &mut BTreeMap<Ink, Layer>) {
    // (first column, colour) of the coloured ground that is being collected
    let mut ground: Option<(u16, Rgb)> = None;
    let mut run: Option<(Ink, Run)> = None;
    let mut x = 0;
    while x < buf.area.width {
        let cell = &buf[(buf.area.x + x, buf.area.y + y)];
        let cells = (width(cell.symbol()).max(1) as u16).min(buf.area.width - x);
        let (ink, behind, underlined) = looks(cell, plain);
        if ground.is_some_and(|(_, colour)| Some(colour) != behind) {
            end_ground(grounds, ground.take(), x, y);
        }
        if let (None, Some(colour)) = (ground, behind) {
            ground = Some((x, colour));
        }
        if run.as_ref().is_some_and(|(other, _)| *other != ink) {
            end_run(layers, run.take(), y);
        }
        let (left, top) = (u32::from(x) * CELL.0, u32::from(y) * CELL.1);
        if underlined {
            let layer = layers.entry(ink).or_default();
            let _ = write!(layer.underlines, "M{left} {}h{}", top + BASE + 3, u32::from(cells) * CELL.0);
        }
        place(cell.symbol(), (x, y, cells), ink, &mut run, layers);
        x += cells;
    }
    end_ground(grounds, ground, x, y);
    end_run(layers, run, y);
}

/// Puts one symbol where it belongs: among the shapes, at the end of the run, or alone on its cells.
fn place(
    symbol: &str,
    (x, y, cells): (u16, u16, u16),
    ink: Ink,
    run: &mut Option<(Ink, Run)>,
    layers: &mut BTreeMap<Ink, Layer>,
) {
    let (left, top) = (u32::from(x) * CELL.0, u32::from(y) * CELL.1);
    let mut chars = symbol.chars();
    let only = chars.next().filter(|_| chars.next().is_none());
    if symbol.trim().is_empty() {
        // one blank may stand within a run; two end it, so that nothing can drift
        match run {
            Some((_, r)) if !r.text.ends_with(' ') => r.text.push(' '),
            _ => end_run(layers, run.take(), y),
        }
    } else if let Some(glyph) = only.and_then(|c| glyph::shape(c, left, top)) {
        end_run(layers, run.take(), y);
        let layer = layers.entry(ink).or_default();
        match glyph {
            Glyph::Fill(d) => layer.fills.push_str(&d),
            Glyph::Stroke(d) => join(&mut layer.strokes, &d),
            Glyph::Dots(d) => layer.dots.push_str(&d),
            Glyph::Shade(level, d) => layer.shades[level].push_str(&d),
        }
    } else if symbol.is_ascii() {
        let (_, r) = run.get_or_insert_with(|| (ink, Run { from: x, text: String::new() }));
        r.text.push_str(symbol);
    } else {
        // it may come from any font: it is centred on its own cells and moves nothing else
        end_run(layers, run.take(), y);
        let middle = left * 2 + u32::from(cells) * CELL.0;
        let half = if middle % 2 == 1 { ".5" } else { "" };
        let layer = layers.entry(ink).or_default();
        let _ = writeln!(
            layer.text,
            "<text x=\"{}{half}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            middle / 2,
            top + BASE,
            escape(symbol)
        );
    }
}

/// Adds a stroke; a horizontal line that goes on where the last one ended becomes one with it.
fn join(strokes: &mut String, stroke: &str) {
    let straight = |s: &str| -> Option<(u32, String, u32)> {
        let (at, len) = s.strip_prefix('M')?.split_once('h')?;
        let (x, y) = at.split_once(' ')?;
        Some((x.parse().ok()?, y.to_owned(), len.parse().ok()?))
    };
    let start = strokes.rfind('M').unwrap_or(0);
    if let (Some((x1, y1, len)), Some((x2, y2, more))) = (straight(&strokes[start..]), straight(stroke))
        && y1 == y2
        && x1 + len == x2
    {
        strokes.truncate(start);
        let _ = write!(strokes, "M{x1} {y1}h{}", len + more);
    } else {
        strokes.push_str(stroke);
    }
}

fn end_ground(out: &mut String, ground: Option<(u16, Rgb)>, to: u16, y: u16) {
    let Some((from, colour)) = ground else { return };
    let _ = writeln!(
        out,
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
        u32::from(from) * CELL.0,
        u32::from(y) * CELL.1,
        u32::from(to - from) * CELL.0,
        CELL.1,
        hex(colour)
    );
}

fn end_run(layers: &mut BTreeMap<Ink, Layer>, run: Option<(Ink, Run)>, y: u16) {
    let Some((ink, run)) = run else { return };
    let text = run.text.trim_end();
    let _ = writeln!(
        layers.entry(ink).or_default().text,
        "<text x=\"{}\" y=\"{}\" textLength=\"{}\">{}</text>",
        u32::from(run.from) * CELL.0,
        u32::from(y) * CELL.1 + BASE,
        text.len() as u32 * CELL.0,
        escape(text)
    );
}

/// The ink of a cell, the colour behind it when it is not the terminal's own, and whether it is underlined.
fn looks(cell: &Cell, (plain, ground): (Rgb, Rgb)) -> (Ink, Option<Rgb>, bool) {
    let has = |m| cell.modifier.contains(m);
    let mut colour = colour::rgb(cell.fg).unwrap_or(plain);
    let mut behind = if cell.bg == Color::Reset { None } else { colour::rgb(cell.bg) };
    if has(Modifier::REVERSED) {
        let ink = behind.unwrap_or(ground);
        behind = Some(colour);
        colour = ink;
    }
    if has(Modifier::DIM) {
        colour = colour::mix(behind.unwrap_or(ground), colour, 0.6);
    }
    // a blank has no weight: it must not break a run apart
    let blank = cell.symbol().trim().is_empty();
    let ink = Ink { colour, bold: has(Modifier::BOLD) && !blank, italic: has(Modifier::ITALIC) && !blank };
    (ink, behind, has(Modifier::UNDERLINED))
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // not allowed in XML, and nothing that can be seen
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    fn picture(text: &str, style: Style) -> String {
        let mut buf = Buffer::empty(Rect::new(0, 0, 20, 1));
        buf.set_string(0, 0, text, style);
        svg(&buf, &Theme::load("dark").unwrap(), "a <title>")
    }

    #[test]
    fn text_is_pinned_to_its_column_and_its_width() {
        let out = picture("ab c   <d>", Style::new());
        assert!(out.contains("<text x=\"0\" y=\"14\" textLength=\"36\">ab c</text>"), "{out}");
        assert!(out.contains("<text x=\"63\" y=\"14\" textLength=\"27\">&lt;d&gt;</text>"), "{out}");
        assert!(out.contains("<title>a &lt;title&gt;</title>"));
    }

    #[test]
    fn what_comes_after_a_wide_character_stands_in_its_own_column() {
        let out = picture("한a", Style::new());
        assert!(out.contains("<text x=\"9\" y=\"14\" text-anchor=\"middle\">한</text>"), "{out}");
        assert!(out.contains("<text x=\"18\" y=\"14\" textLength=\"9\">a</text>"), "{out}");
    }

    #[test]
    fn frames_are_lines_without_a_gap() {
        let out = picture("──────", Style::new());
        assert!(out.contains("d=\"M0 9.5h54\""), "{out}");
        assert!(!out.contains('─'));
    }

    #[test]
    fn reversed_text_changes_places_with_its_ground() {
        let out = picture("x", Style::new().fg(Color::Rgb(1, 2, 3)).add_modifier(Modifier::REVERSED));
        assert!(out.contains("width=\"9\" height=\"19\" fill=\"#010203\""), "{out}");
    }
}
