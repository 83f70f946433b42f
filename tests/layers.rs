//! The floors of the house: a room imports only from floors below it.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms by floor. `command` is the roof; `main.rs`, `lib.rs` and `cli.rs` are no rooms.
const FLOORS: &[(u8, &[&str])] = &[
    (7, &["command"]),
    (6, &["cli", "demo", "drill"]),
    (5, &["ui", "term", "report"]),
    (4, &["app", "monitor", "worker"]),
    (3, &["ledger"]),
    (2, &["pg"]),
    (1, &["profile", "config", "record"]),
    (0, &["model", "text"]),
];

/// Allowed although on the same floor.
const NEIGHBOURS: &[(&str, &str)] = &[("drill", "demo")];

/// Forbidden although below: (room, room or crate, reason).
const BANS: &[(&str, &str, &str)] = &[
    ("demo", "ui", "the demo does not draw"),
    ("demo", "term", "the demo does not draw"),
    ("demo", "app", "the demo does not draw"),
    ("drill", "ui", "drills do not draw"),
    ("drill", "term", "drills do not draw"),
    ("drill", "app", "drills do not draw"),
    ("ui", "pg", "the screen never sees a connection"),
    ("ui", "ledger", "the screen never sees a connection"),
    ("ui", "monitor", "the screen never sees a connection"),
    ("ui", "worker", "the screen never sees a connection"),
    ("term", "pg", "the screen never sees a connection"),
    ("term", "ledger", "the screen never sees a connection"),
    ("term", "monitor", "the screen never sees a connection"),
    ("term", "worker", "the screen never sees a connection"),
    ("report", "pg", "a report is made from a sample"),
    ("report", "ledger", "a report is made from a sample"),
    ("report", "monitor", "a report is made from a sample"),
    ("report", "worker", "a report is made from a sample"),
    ("app", "pg", "app is pure"),
    ("app", "ledger", "app is pure"),
];

/// Crates that a room must not name.
const CRATE_BANS: &[(&str, &[&str])] = &[
    (
        "app",
        &[
            "ratatui",
            "crossterm",
            "tokio",
            "tokio_postgres",
            "std::fs",
            "std::net",
            "std::io",
            "SystemTime",
            "Instant",
        ],
    ),
    ("ui", &["tokio_postgres", "tokio"]),
    ("term", &["tokio_postgres"]),
    ("report", &["tokio_postgres", "tokio"]),
    ("model", &["tokio", "tokio_postgres", "ratatui", "crossterm", "rustls", "clap", "toml"]),
    ("text", &["tokio", "tokio_postgres", "ratatui", "crossterm", "rustls", "clap", "toml"]),
];

fn floor(room: &str) -> Option<u8> {
    FLOORS.iter().find(|(_, rooms)| rooms.contains(&room)).map(|(f, _)| *f)
}

/// Why `room` may not import `other`, if so.
fn objection(room: &str, other: &str) -> Option<String> {
    let (Some(mine), Some(theirs)) = (floor(room), floor(other)) else { return None };
    if room == other || NEIGHBOURS.contains(&(room, other)) {
        return None;
    }
    if theirs >= mine {
        return Some(format!("{room} (floor {mine}) climbs to {other} (floor {theirs})"));
    }
    BANS.iter()
        .find(|(r, o, _)| *r == room && *o == other)
        .map(|(r, o, why)| format!("{r} may not use {o}: {why}"))
}

/// Rooms named by `crate::room` in one source text, comments left out.
fn imports(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let code: String =
        source.lines().map(|l| l.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let mut rest = code.as_str();
    while let Some(at) = rest.find("crate::") {
        rest = &rest[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            // `use crate::{a::B, c}`: names at depth one
            let mut depth = 1;
            let mut word = String::new();
            let mut start = true;
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 1 => start = true,
                    _ => {}
                }
                if depth == 1 && start {
                    if c.is_alphanumeric() || c == '_' {
                        word.push(c);
                    } else if !word.is_empty() {
                        found.push(std::mem::take(&mut word));
                        start = false;
                    }
                }
                if depth == 0 {
                    if !word.is_empty() {
                        found.push(std::mem::take(&mut word));
                    }
                    break;
                }
            }
        } else {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            found.push(name);
        }
    }
    found
}

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn no_import_climbs() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for file in &files {
        let inner = file.strip_prefix(&src).unwrap();
        let Some(room) = inner.components().next().and_then(|c| c.as_os_str().to_str()) else { continue };
        if inner.components().count() < 2 {
            continue;
        }
        assert!(floor(room).is_some(), "src/{room} has no floor: add it to FLOORS");
        *seen.entry(room.to_owned()).or_default() += 1;
        let text = fs::read_to_string(file).unwrap();
        for other in imports(&text) {
            if let Some(why) = objection(room, &other) {
                wrong.push(format!("{}: {why}", inner.display()));
            }
        }
        for (r, crates) in CRATE_BANS {
            if *r != room {
                continue;
            }
            for name in *crates {
                let uses = text
                    .lines()
                    .map(|l| l.split("//").next().unwrap_or_default())
                    .any(|l| l.contains(&format!("{name}::")));
                if uses {
                    wrong.push(format!("{}: {room} may not use {name}", inner.display()));
                }
            }
        }
    }
    let rooms: usize = FLOORS.iter().map(|(_, r)| r.len()).sum();
    assert_eq!(seen.len(), rooms, "every room is there: {seen:?}");
    assert!(wrong.is_empty(), "imports that climb:\n{}", wrong.join("\n"));
}

#[test]
fn a_climbing_import_is_found() {
    assert!(objection("ledger", "monitor").is_some());
    assert!(objection("monitor", "worker").is_some());
    assert!(objection("ui", "pg").is_some());
    assert!(objection("drill", "demo").is_none());
    assert!(objection("worker", "ledger").is_none());
    assert_eq!(imports("use crate::{app::App, model::{Event, Now}, ui};"), ["app", "model", "ui"]);
    assert_eq!(imports("let x = crate::pg::connect(); // crate::ui"), ["pg"]);
}
