//! A TOML file as values that know the line they stand on.

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::text::clean;

/// What is wrong with a configuration file, and where: `config.toml:12: …`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}{}: {text}", .line.map(|l| format!(":{l}")).unwrap_or_default())]
pub struct ConfigError {
    /// The file.
    pub origin: String,
    /// The line, where there is one.
    pub line: Option<usize>,
    /// What is wrong, and what would be right. Never a value that could hold a password.
    pub text: String,
}

/// A value of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
    Number(f64),
    Switch(bool),
    List(Vec<Value>),
    Other,
}

/// The value of a key and its line.
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: usize,
    pub(super) value: Value,
}

/// A table of the file: its own values, and the tables in it.
#[derive(Default)]
pub(super) struct Section {
    pub(super) entries: Vec<Entry>,
    pub(super) sections: Vec<(String, usize, Section)>,
}

impl Section {
    /// Reads a whole file.
    pub(super) fn read(text: &str, origin: &str) -> Result<Self, ConfigError> {
        let line = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
        let root = DeTable::parse(text).map_err(|e| ConfigError {
            origin: clean(origin),
            line: e.span().map(|s| line(s.start)),
            text: clean(e.message()),
        })?;
        Ok(section(root.get_ref(), &line))
    }
}

fn section(table: &DeTable<'_>, line: &impl Fn(usize) -> usize) -> Section {
    let mut out = Section::default();
    for (key, value) in table {
        let name = key.get_ref().to_string();
        let at = line(key.span().start);
        match value.get_ref() {
            DeValue::Table(inner) => out.sections.push((name, at, section(inner, line))),
            other => out.entries.push(Entry { key: name, line: at, value: plain(other) }),
        }
    }
    out
}

fn plain(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(s) => Value::Text(s.to_string()),
        DeValue::Integer(i) => {
            i64::from_str_radix(i.as_str(), i.radix()).map_or(Value::Other, Value::Whole)
        }
        DeValue::Float(f) => f.as_str().parse().map_or(Value::Other, Value::Number),
        DeValue::Boolean(b) => Value::Switch(*b),
        DeValue::Array(list) => Value::List(values(list)),
        DeValue::Datetime(_) | DeValue::Table(_) => Value::Other,
    }
}

fn values(list: &DeArray<'_>) -> Vec<Value> {
    list.iter().map(Spanned::get_ref).map(plain).collect()
}

/// `; did you mean interval?`, or nothing when no known word is near.
pub(super) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let word = word.replace('-', "_").to_lowercase();
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&word, &k.replace('-', "_")), k))
        .filter(|(distance, k)| *distance <= (k.len() / 3).clamp(1, 4))
        .min()
        .map(|(_, k)| format!("; did you mean {k}?"))
        .unwrap_or_default()
}
