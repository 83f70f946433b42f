//! Control characters, C1, bidi controls and zero-width characters become visible marks.
//!
//! A terminal obeys ESC, C0 and C1 controls wherever they appear, and bidi overrides let a value look
//! like another one. They are shown, not deleted: an operator should see that something was there.

/// Longest text that is kept, in characters; more is cut with an ellipsis. No list cell needs more.
const MAX_LINE: usize = 512;

/// Longest block that is kept, in characters (an error text or a payload in a detail view).
const MAX_BLOCK: usize = 8192;

/// The characters of `raw`, each with whether it may stand as it is: a joiner only between two emoji, where it
/// makes one of two; anywhere else it would hide.
fn judged(raw: &str) -> impl Iterator<Item = (char, bool)> {
    let mut before = '\0';
    let mut rest = raw.chars().peekable();
    std::iter::from_fn(move || {
        let c = rest.next()?;
        let stands = match c {
            JOINER => is_emoji(before) && rest.peek().is_some_and(|next| is_emoji(*next)),
            PRESENTATION => is_emoji(before) || matches!(before, '#' | '*' | '0'..='9' | '©' | '®'),
            c => !is_hidden(c),
        };
        before = c;
        Some((c, stands))
    })
}

/// Zero width joiner, and the selector that asks for the coloured form.
const JOINER: char = '\u{200d}';
const PRESENTATION: char = '\u{fe0f}';

/// Roughly the symbols that joiner and selector are made for: arrows and up, without letters.
fn is_emoji(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
        || c == PRESENTATION
}

/// One safe line: whitespace of any kind folds to single spaces, the length is bounded.
pub fn clean(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len().min(MAX_LINE * 4));
    let mut kept = 0;
    let mut space = false;
    for (c, stands) in judged(raw.trim()) {
        if kept >= MAX_LINE {
            out.push('…');
            break;
        }
        if c.is_whitespace() {
            space = true;
            continue;
        }
        if space {
            out.push(' ');
            space = false;
            kept += 1;
        }
        push_visible(&mut out, c, stands);
        kept += 1;
    }
    out
}

/// Safe text that keeps its line breaks, for detail views that wrap.
pub fn clean_block(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len().min(MAX_BLOCK * 4));
    for (kept, (c, stands)) in judged(raw).enumerate() {
        if kept >= MAX_BLOCK {
            out.push('…');
            break;
        }
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push(' '),
            c => push_visible(&mut out, c, stands),
        }
    }
    out
}

/// Appends `c`, or a visible stand-in when a terminal would act on it or hide it.
fn push_visible(out: &mut String, c: char, stands: bool) {
    match c {
        // C0 controls have pictures of their own: U+2400 and up.
        '\u{00}'..='\u{1f}' => out.push(char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}')),
        '\u{7f}' => out.push('\u{2421}'),
        c if !stands => {
            out.push_str("<U+");
            out.push_str(&format!("{:04X}", c as u32));
            out.push('>');
        }
        c => out.push(c),
    }
}

/// Characters without a shape of their own that change what is seen: C1, bidi controls, zero-width
/// marks, line separators, tags, interlinear and object marks, variation of direction.
/// U+200D (joiner) and U+FE0F (emoji presentation) are judged by their neighbours: emoji need them, and widths
/// count graphemes.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}' | '\u{200c}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0e}'
        | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_escape_sequence_becomes_visible_and_harmless() {
        assert_eq!(clean("\u{1b}[31mred\u{7}"), "␛[31mred␇");
        assert_eq!(clean("a\u{9b}31m"), "a<U+009B>31m");
    }

    #[test]
    fn bidi_and_zero_width_become_visible_marks() {
        assert_eq!(clean("safe\u{202e}gnp.exe"), "safe<U+202E>gnp.exe");
        assert_eq!(clean("a\u{200b}b"), "a<U+200B>b");
    }

    #[test]
    fn whitespace_of_every_kind_folds_to_one_space() {
        assert_eq!(clean("  select\r\n\t1\u{a0} ;\n"), "select 1 ;");
    }

    #[test]
    fn a_block_keeps_its_lines() {
        assert_eq!(clean_block("a\r\nb\tc"), "a␍\nb c");
    }

    #[test]
    fn emoji_and_wide_text_pass() {
        assert_eq!(clean("担当者 👩\u{200d}🔧 e\u{301}"), "担当者 👩\u{200d}🔧 e\u{301}");
    }

    #[test]
    fn a_joiner_stands_between_emoji_and_nowhere_else() {
        assert_eq!(clean("ad\u{200d}min"), "ad<U+200D>min");
        assert_eq!(clean("👩\u{200d}"), "👩<U+200D>");
        assert_eq!(
            clean("❤\u{fe0f}\u{200d}🔥 ☎\u{fe0f} 1\u{fe0f}\u{20e3}"),
            "❤\u{fe0f}\u{200d}🔥 ☎\u{fe0f} 1\u{fe0f}\u{20e3}"
        );
        assert_eq!(clean("a\u{fe0f}b"), "a<U+FE0F>b");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(clean(&"x".repeat(10_000)).chars().count(), MAX_LINE + 1);
    }

    proptest! {
        #[test]
        fn nothing_that_a_terminal_obeys_is_left(raw in any::<String>()) {
            let line = clean(&raw);
            prop_assert!(!line.chars().any(|c| c.is_control() || is_hidden(c)));
            prop_assert!(!line.contains("  "));
        }

        #[test]
        fn cleaning_twice_changes_nothing(raw in any::<String>()) {
            let once = clean(&raw);
            prop_assert_eq!(clean(&once), once);
        }
    }
}
