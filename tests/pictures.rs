//! The project's pictures show what the program shows today.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pgwake::command::screenshot;

/// What a recording in the repository may weigh.
const HEAVIEST: u64 = 200 * 1024;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn names(folder: &Path, extension: &str) -> BTreeSet<String> {
    let files = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    files
        .filter(|p| p.extension().is_some_and(|e| e == extension))
        .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn the_pictures_are_up_to_date() {
    let made = screenshot::set(&folder("tests/recordings"), None).unwrap();
    let mut old: Vec<String> = Vec::new();
    for (name, svg) in &made {
        if fs::read_to_string(folder("screenshots").join(name)).ok().as_ref() != Some(svg) {
            old.push(name.clone());
        }
    }
    let listed: BTreeSet<String> = made.into_iter().map(|(name, _)| name).collect();
    let mut there = names(&folder("screenshots"), "svg");
    there.extend(names(&folder("screenshots/themes"), "svg").into_iter().map(|n| format!("themes/{n}")));
    old.extend(there.difference(&listed).map(|n| format!("{n} (not in the list)")));
    assert!(
        old.is_empty(),
        "out of date in screenshots/: {}\nlook at what changed, then: cargo run -- screenshot --all",
        old.join(", ")
    );
}

#[test]
fn the_recordings_are_small_whole_and_name_no_machine() {
    let all = names(&folder("tests/recordings"), "jsonl");
    assert!(all.len() >= 4, "calm, a stuck holder, a dead listener, a full queue: {all:?}");
    for name in all {
        let path = folder("tests/recordings").join(&name);
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.len() as u64 <= HEAVIEST, "{name}: {} kB", bytes.len() / 1024);
        let read = pgwake::record::read(bytes.as_slice()).unwrap();
        assert_eq!(read.broken, None, "{name}");
        let text = String::from_utf8(bytes).unwrap();
        for word in ["/tmp", "/home", "/root", "localhost", "127.0.0.1", "\"vm\""] {
            assert!(!text.contains(word), "{name} names {word}");
        }
    }
}
