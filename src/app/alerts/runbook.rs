//! Runbooks: Markdown as it lies in the source, with the live evidence and the keys filled in.
//!
//! The Markdown is ours, and small: headings, lists, paragraphs, `code` and **bold**. A parser of the whole
//! language would cost more than these lines, and evidence is filled in after parsing, so that what a
//! session is called can never become markup.

use std::fmt::Write;

use super::evidence::EVIDENCE;
use super::{Alert, Look};
use crate::config::Keymap;
use crate::config::keys::{Action, Binding, KEYS};

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// Plain text.
    Text(String),
    /// Text that matters.
    Bold(String),
    /// A statement or a name.
    Code(String),
    /// Live evidence; `—` and the reason where it is unknown.
    Evidence(String),
    /// A key, as it is bound.
    Key(String),
}

/// A block of a runbook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// The title.
    Title(Vec<Span>),
    /// The head of a section.
    Head(Vec<Span>),
    /// An entry of a list, with its mark.
    Item(String, Vec<Span>),
    /// A paragraph.
    Text(Vec<Span>),
}

/// The action of that name.
fn action(name: &str) -> Option<Action> {
    KEYS.iter().map(|b| b.action).find(|a| a.name() == name)
}

/// Where a runbook is read.
#[derive(Clone, Copy, Debug)]
pub enum Reader<'a> {
    /// On the screen, with this sample.
    Screen(Look<'a>),
    /// In the documents, where evidence is only named.
    Paper,
}

impl Alert {
    /// Its runbook, filled in.
    pub fn read(&self, reader: Reader<'_>, keys: &Keymap) -> Vec<Block> {
        blocks(self.runbook)
            .into_iter()
            .map(|(block, text)| block.with(spans(&text, reader, keys)))
            .collect()
    }

    /// The actions that its runbook names.
    pub fn actions(&self) -> impl Iterator<Item = Action> + '_ {
        placeholders(self.runbook).filter_map(|p| action(p.strip_prefix("key:")?))
    }

    /// Its runbook as Markdown for pipes and documents: headings `deeper` by so much, evidence named, keys as
    /// they are bound.
    pub fn markdown(&self, keys: &Keymap, deeper: usize) -> String {
        let mut out = String::new();
        for line in self.runbook.lines() {
            if line.starts_with('#') {
                out.push_str(&"#".repeat(deeper));
            }
            let mut rest = line;
            while let Some((before, name, after)) = placeholder(rest) {
                out.push_str(before);
                for span in spans(&format!("{{{name}}}"), Reader::Paper, keys) {
                    let _ = match span {
                        Span::Key(key) => write!(out, "`{key}`"),
                        Span::Evidence(text) => write!(out, "‹{text}›"),
                        Span::Text(text) | Span::Bold(text) | Span::Code(text) => write!(out, "{text}"),
                    };
                }
                rest = after;
            }
            out.push_str(rest);
            out.push('\n');
        }
        out
    }
}

/// A block, and how it is made once its text is filled in.
enum Kind {
    Title,
    Head,
    Item(String),
    Text,
}

impl Kind {
    fn with(self, spans: Vec<Span>) -> Block {
        match self {
            Self::Title => Block::Title(spans),
            Self::Head => Block::Head(spans),
            Self::Item(mark) => Block::Item(mark, spans),
            Self::Text => Block::Text(spans),
        }
    }
}

/// Takes a text apart into its blocks; lines of one block are joined.
fn blocks(markdown: &str) -> Vec<(Kind, String)> {
    let mut out: Vec<(Kind, String)> = Vec::new();
    let mut open = false;
    for line in markdown.lines() {
        let text = line.trim();
        let numbered = text.split_once(". ").filter(|(n, _)| n.parse::<u8>().is_ok());
        let (kind, text) = if let Some(text) = text.strip_prefix("## ") {
            (Some(Kind::Head), text)
        } else if let Some(text) = text.strip_prefix("# ") {
            (Some(Kind::Title), text)
        } else if let Some(text) = text.strip_prefix("- ") {
            (Some(Kind::Item("·".to_owned())), text)
        } else if let Some((n, text)) = numbered {
            (Some(Kind::Item(format!("{n}."))), text)
        } else if !open && !text.is_empty() {
            (Some(Kind::Text), text)
        } else {
            (None, text)
        };
        match (kind, out.last_mut()) {
            (Some(kind), _) => {
                open = !matches!(kind, Kind::Title | Kind::Head);
                out.push((kind, text.to_owned()));
            }
            (None, _) if text.is_empty() => open = false,
            (None, Some((_, before))) => {
                before.push(' ');
                before.push_str(text);
            }
            (None, None) => {}
        }
    }
    out
}

/// The first placeholder of a text: what is before it, its name, what comes after it.
fn placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, name, after) = placeholder(rest)?;
        rest = after;
        Some(name)
    })
}

/// Takes a line apart; what is filled in is never looked at again.
fn spans(line: &str, reader: Reader<'_>, keys: &Keymap) -> Vec<Span> {
    let mut out = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let at = rest.find(['`', '{', '*']).unwrap_or(rest.len());
        let (plain, from) = rest.split_at(at);
        if !plain.is_empty() {
            out.push(Span::Text(plain.to_owned()));
        }
        let part = |open: &str, close: &str| from.strip_prefix(open).and_then(|r| r.split_once(close));
        if let Some((code, after)) = part("`", "`") {
            out.push(Span::Code(code.to_owned()));
            rest = after;
        } else if let Some((bold, after)) = part("**", "**") {
            out.push(Span::Bold(bold.to_owned()));
            rest = after;
        } else if let Some((name, after)) = part("{", "}") {
            fill(&mut out, name, reader, keys);
            rest = after;
        } else if let Some(first) = from.chars().next() {
            out.push(Span::Text(first.to_string()));
            rest = &from[first.len_utf8()..];
        } else {
            rest = "";
        }
    }
    out
}

fn fill(out: &mut Vec<Span>, name: &str, reader: Reader<'_>, keys: &Keymap) {
    if let Some(name) = name.strip_prefix("key:") {
        let key = action(name).map(|a| keys.key_text(a)).unwrap_or_default();
        if key.is_empty() {
            // without a key there is still the palette
            return out.push(Span::Key(format!(":{name}")));
        }
        out.push(Span::Key(key));
        return out.push(Span::Text(format!(" ({})", name.replace('-', " "))));
    }
    let Some(evidence) = EVIDENCE.iter().find(|e| e.name == name) else {
        return out.push(Span::Text(format!("{{{name}}}")));
    };
    out.push(Span::Evidence(match reader {
        Reader::Paper => evidence.about.to_owned(),
        Reader::Screen(look) => (evidence.read)(look).unwrap_or_else(|why| format!("— ({why})")),
    }));
}

/// All runbooks as one document.
pub fn document(keys: &Keymap) -> String {
    let list = keys.of(Action::Alerts).map(Binding::keys_text).unwrap_or_default();
    let mut out = format!(
        "# Runbooks\n\nOne for each alert, as the dashboard shows them with the live evidence filled in: `{list}` lists the \
         alerts,\nEnter opens a runbook. `pgwake runbook NAME` prints one. Written by the program: \
         `pgwake runbook`.\n",
    );
    for alert in super::ALERTS {
        let level = if alert.is_critical() { "critical" } else { "warning" };
        let _ = write!(out, "\n<a id=\"{}\"></a>\n\n", alert.name);
        let text = alert.markdown(keys, 1);
        let (title, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let _ = write!(out, "{title}\n\n`{}`, {level}\n{rest}", alert.name);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::ALERTS;
    use super::*;
    use crate::config::Thresholds;
    use crate::config::keys::Key;
    use crate::model::{Holder, Reading, Sample};
    use chrono::DateTime;

    fn read(markdown: &'static str, sample: &Sample, keys: &Keymap) -> Vec<Block> {
        let limits = Thresholds::default();
        let reader = Reader::Screen(Look::fresh(sample, &limits, 30.0));
        blocks(markdown).into_iter().map(|(k, text)| k.with(spans(&text, reader, keys))).collect()
    }

    #[test]
    fn every_alert_has_a_runbook_with_known_placeholders_and_actions() {
        for alert in ALERTS {
            for name in placeholders(alert.runbook) {
                match name.strip_prefix("key:") {
                    Some(key) => assert!(action(key).is_some(), "{}: no action {key}", alert.name),
                    None => assert!(EVIDENCE.iter().any(|e| e.name == name), "{}: {{{name}}}", alert.name),
                }
            }
            let heads: Vec<_> = alert.runbook.lines().filter(|l| l.starts_with('#')).collect();
            assert!(heads[0].starts_with("# "), "{}", alert.name);
            assert_eq!(heads[1..], ["## What it means", "## Evidence", "## Steps"], "{}", alert.name);
            assert!(alert.actions().count() >= 1, "{} names no key", alert.name);
        }
    }

    #[test]
    fn every_evidence_is_named_by_a_runbook() {
        for e in EVIDENCE {
            let used = ALERTS.iter().any(|a| placeholders(a.runbook).any(|p| p == e.name));
            assert!(used, "{} is filled in nowhere", e.name);
        }
    }

    #[test]
    fn names_are_unique_and_fit_a_file() {
        let mut names: Vec<_> = ALERTS.iter().map(|a| a.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALERTS.len());
        assert!(names.iter().all(|n| n.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
    }

    #[test]
    fn markdown_becomes_blocks_and_spans() {
        let sample = Sample::empty("jobs", DateTime::UNIX_EPOCH);
        let keys = Keymap::default();
        let found = read("# A\n\nb **c**\nd `e`\n\n- f\n  g\n2. h * i", &sample, &keys);
        let text = |t: &str| Span::Text(t.to_owned());
        let rest = vec![text("h "), text("*"), text(" i")];
        let paragraph = vec![text("b "), Span::Bold("c".into()), text(" d "), Span::Code("e".into())];
        assert_eq!(
            found,
            [
                Block::Title(vec![text("A")]),
                Block::Text(paragraph),
                Block::Item("·".into(), vec![text("f g")]),
                Block::Item("2.".into(), rest),
            ]
        );
    }

    #[test]
    fn evidence_is_filled_in_with_the_reason_where_it_is_unknown_and_is_never_markup() {
        let at = DateTime::UNIX_EPOCH;
        let mut s = Sample::empty("jobs", at);
        s.counts.ready = Reading::at_least(10_000, at);
        let worst = Holder {
            name: "**bold** `code` {ready}".into(),
            held: 1,
            expired: 1,
            oldest_since: None,
            next_expiry: None,
            heartbeat: None,
            backend: None,
        };
        s.holders = Reading::exact(vec![worst], at);
        let found = read("{ready} {expired} {holder}", &s, &Keymap::default());
        let wanted = vec![
            Span::Evidence("≥10,000".into()),
            Span::Text(" ".into()),
            Span::Evidence("— (not read yet)".into()),
            Span::Text(" ".into()),
            Span::Evidence("**bold** `code` {ready}".into()),
        ];
        assert_eq!(found, [Block::Text(wanted)]);
    }

    #[test]
    fn a_key_is_the_one_that_is_bound() {
        let s = Sample::empty("jobs", DateTime::UNIX_EPOCH);
        let bound = Keymap::with(vec![(Action::Sessions, vec![Key::F(9)])]).unwrap();
        let wanted = vec![Span::Key("F9".into()), Span::Text(" (sessions)".into())];
        assert_eq!(read("{key:sessions}", &s, &bound), [Block::Text(wanted)]);
        let unbound = Keymap::with(vec![(Action::Sessions, Vec::new())]).unwrap();
        assert_eq!(
            read("{key:sessions}", &s, &unbound),
            [Block::Text(vec![Span::Key(":sessions".into())])]
        );
    }
}
