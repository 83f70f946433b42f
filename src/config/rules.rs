//! One small rule for each kind of value: what it must be, in one sentence.

use std::time::Duration;

use super::reader::Value;
use super::settings::{HandlerKind, Notify};
use crate::text::{clean, parse_keep, parse_time};

type Checked<T> = Result<T, String>;

pub(super) fn switch(value: &Value) -> Checked<bool> {
    match value {
        Value::Switch(on) => Ok(*on),
        _ => Err("is true or false".to_owned()),
    }
}

/// One line of plain text.
pub(super) fn word(value: &Value) -> Checked<String> {
    match value {
        Value::Text(text) if !text.is_empty() && clean(text) == *text => Ok(text.clone()),
        _ => Err("is one line of plain text in quotes".to_owned()),
    }
}

/// Any text; for what may hold a secret, so it is never quoted.
pub(super) fn text(value: &Value) -> Checked<String> {
    match value {
        Value::Text(text) if !text.contains('\0') => Ok(text.clone()),
        _ => Err("is a text in quotes".to_owned()),
    }
}

/// A text or a whole number, such as a port.
pub(super) fn text_or_number(value: &Value) -> Checked<String> {
    match value {
        Value::Whole(n) => Ok(n.to_string()),
        other => text(other),
    }
}

pub(super) fn words(value: &Value) -> Checked<Vec<String>> {
    match value {
        Value::List(list) => list.iter().map(word).collect(),
        other => Ok(vec![word(other)?]),
    }
}

pub(super) fn share(value: &Value) -> Checked<f64> {
    let number = match value {
        Value::Number(n) => *n,
        Value::Whole(n) => *n as f64,
        _ => f64::NAN,
    };
    if number > 0.0 && number <= 1.0 {
        Ok(number)
    } else {
        Err("is a share above 0 and up to 1".to_owned())
    }
}

pub(super) fn whole(value: &Value, least: i64, most: i64) -> Checked<i64> {
    match value {
        Value::Whole(n) if (least..=most).contains(n) => Ok(*n),
        _ => Err(format!("is a whole number from {least} to {most}")),
    }
}

/// A time within bounds, as a text with its unit.
pub(super) fn time(value: &Value, least: &str, most: &str) -> Checked<Duration> {
    let Value::Text(text) = value else {
        return Err("is a time in quotes, as in \"500ms\", \"30s\" or \"2m\"".to_owned());
    };
    let time = parse_time(text)?;
    match (parse_time(least), parse_time(most)) {
        (Ok(low), Ok(high)) if !(low..=high).contains(&time) => {
            Err(format!("lies between {least} and {most}"))
        }
        _ => Ok(time),
    }
}

/// A handler by name, or the choice by whether there is a command.
pub(super) fn handler(value: &Value) -> Checked<Option<HandlerKind>> {
    let Value::Text(text) = value else { return Err(HANDLERS.to_owned()) };
    match text.as_str() {
        "auto" => Ok(None),
        "exec" => Ok(Some(HandlerKind::Exec)),
        "noop" => Ok(Some(HandlerKind::Noop)),
        "simulate" => Ok(Some(HandlerKind::Simulate)),
        _ => Err(HANDLERS.to_owned()),
    }
}

const HANDLERS: &str = "is \"auto\", \"exec\", \"noop\" or \"simulate\"";

/// A desktop notification by name.
pub(super) fn notify(value: &Value) -> Checked<Notify> {
    let Value::Text(text) = value else { return Err(NOTIFICATIONS.to_owned()) };
    match text.as_str() {
        "off" => Ok(Notify::Off),
        "osc9" => Ok(Notify::Osc9),
        "osc777" => Ok(Notify::Osc777),
        _ => Err(NOTIFICATIONS.to_owned()),
    }
}

const NOTIFICATIONS: &str = "is \"off\", \"osc9\" or \"osc777\"";

/// A program and its arguments. One text would look as if a shell took it apart.
pub(super) fn command(value: &Value) -> Checked<Vec<String>> {
    let wrong = || "is a list: a program and its arguments, as in [\"./job\", \"--flag\"]".to_owned();
    let Value::List(list) = value else { return Err(wrong()) };
    let words: Vec<String> = list.iter().map(text).collect::<Result<_, _>>().map_err(|_| wrong())?;
    if words.first().is_some_and(String::is_empty) { Err(wrong()) } else { Ok(words) }
}

/// A time limit, or none.
pub(super) fn limit(value: &Value) -> Checked<Option<Duration>> {
    match value {
        Value::Text(text) if text == "off" => Ok(None),
        Value::Text(_) => time(value, "1s", "168h").map(Some),
        _ => Err("is a time in quotes, as in \"5m\", or \"off\"".to_owned()),
    }
}

/// How long something is kept.
pub(super) fn keep(value: &Value) -> Checked<Option<Duration>> {
    match value {
        Value::Text(text) => parse_keep(text),
        Value::Whole(0) => parse_keep("0"),
        _ => parse_keep(""),
    }
}

/// Jobs per window, or off.
pub(super) fn budget(value: &Value) -> Checked<Option<u64>> {
    match value {
        Value::Text(text) if text == "off" => Ok(None),
        Value::Whole(n) if *n > 0 => Ok(Some(n.unsigned_abs())),
        _ => Err("is a number of jobs from 1, or \"off\"".to_owned()),
    }
}

/// A colour: a name, `#rrggbb`, or an index of the fixed 256.
pub(super) fn colour(value: &Value) -> Checked<String> {
    const NAMES: [&str; 17] = [
        "black",
        "red",
        "green",
        "yellow",
        "blue",
        "magenta",
        "cyan",
        "gray",
        "darkgray",
        "lightred",
        "lightgreen",
        "lightyellow",
        "lightblue",
        "lightmagenta",
        "lightcyan",
        "white",
        "reset",
    ];
    let text = match value {
        Value::Whole(n) => n.to_string(),
        Value::Text(text) => text.to_lowercase(),
        _ => String::new(),
    };
    let is_rgb =
        text.strip_prefix('#').is_some_and(|h| h.len() == 6 && h.bytes().all(|b| b.is_ascii_hexdigit()));
    if is_rgb || text.parse::<u8>().is_ok() || NAMES.contains(&text.as_str()) {
        Ok(text)
    } else {
        Err("is a colour: a name as in \"red\", \"#rrggbb\", or an index up to 255".to_owned())
    }
}
