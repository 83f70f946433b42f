//! The configuration file, its example, and the documents that are made from the same tables.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

use pgwake::config::keys::{Action, KEYS, Key};
use pgwake::config::{Alerts, Notify, Settings};

fn top(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn corpus(kind: &str) -> Vec<(String, String)> {
    let mut files: Vec<_> = fs::read_dir(top("tests/config").join(kind))
        .unwrap()
        .map(|e| e.unwrap().path())
        .map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(p).unwrap()))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Holds a file equal to what the tables say, or writes it anew when asked to.
fn held(name: &str, wanted: &str) {
    let path = top(name);
    if std::env::var_os("PGWAKE_WRITE_DOCS").is_some() {
        fs::write(&path, wanted).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let same = found == wanted;
    assert!(same, "{name} is out of date; write it anew: PGWAKE_WRITE_DOCS=1 cargo test --test config");
}

#[test]
fn the_example_holds_every_setting_at_its_default() {
    let example = Settings::default().to_toml();
    assert_eq!(Settings::parse(&example, "example").unwrap(), Settings::default());
    held("config.example.toml", &example);
    // written by hand all the same: wide enough for a terminal, and no key is missing
    assert!(example.lines().all(|l| l.chars().count() <= 120), "a line is too long");
    for b in KEYS {
        assert!(example.contains(&format!("\n{} = [", b.action.name())), "{:?}", b.action);
    }
}

#[test]
fn the_targets_of_the_example_can_be_used() {
    let example = Settings::default().to_toml();
    let from = example.find("# [targets.production]").unwrap();
    let text: String = example[from..].lines().map(|l| l.strip_prefix("# ").unwrap_or("")).fold(
        String::new(),
        |mut all, line| {
            all.push_str(line);
            all.push('\n');
            all
        },
    );
    let targets = Settings::parse(&text, "example").unwrap().targets;
    assert_eq!(targets.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["production", "staging"]);
    assert!(targets[0].read_only && targets.iter().all(|t| !t.has_password));
}

#[test]
fn the_readme_has_the_key_table() {
    let readme = fs::read_to_string(top("README.md")).unwrap();
    let (begin, end) = ("<!-- keys:begin -->\n", "<!-- keys:end -->");
    let from = readme.find(begin).expect("the mark of the key table") + begin.len();
    let to = readme.find(end).expect("the mark after the key table");
    let table = Settings::default().keys.markdown();
    held("README.md", &format!("{}{table}{}", &readme[..from], &readme[to..]));
}

#[test]
fn the_runbooks_are_printed_into_their_document() {
    let text = pgwake::app::alerts::runbook::document(&Settings::default().keys);
    assert!(!text.contains(['{', '}']), "a placeholder was left");
    held("RUNBOOKS.md", &text);
}

#[test]
fn valid_files_are_read() {
    for (name, text) in corpus("valid") {
        Settings::parse(&text, &name).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn invalid_files_are_refused_with_the_place_and_what_would_be_right() {
    for (name, text) in corpus("invalid") {
        let wanted =
            text.lines().next().unwrap().strip_prefix("# expect: ").unwrap_or_else(|| panic!("{name}"));
        let e = match Settings::parse(&text, &name) {
            Ok(_) => panic!("{name} was read"),
            Err(e) => e.to_string(),
        };
        assert!(e.starts_with(&name), "{e}");
        for part in wanted.split(" | ") {
            assert!(e.contains(part), "{name}: {part:?} is not in: {e}");
        }
        assert!(!e.contains('\n') && !e.contains('\u{1b}'), "{name}: one line of plain text: {e:?}");
        assert!(!e.contains("sesame"), "{name}: a password in: {e}");
    }
}

#[test]
fn what_is_written_back_is_read_as_the_same() {
    for (_, text) in corpus("valid") {
        let mut settings = Settings::parse(&text, "x").unwrap();
        settings.targets.clear();
        assert_eq!(Settings::parse(&settings.to_toml(), "x").unwrap(), settings);
    }
}

#[test]
fn everything_that_is_given_is_taken() {
    let (_, text) = corpus("valid").into_iter().find(|(n, _)| n.starts_with("everything")).unwrap();
    let s = Settings::parse(&text, "x").unwrap();
    assert_eq!((s.theme.as_str(), s.sampling.interval.as_millis(), s.sampling.cap), ("nord", 250, 10_000));
    assert_eq!((s.thresholds.oldest_ready_s, s.worker.budget), (120.0, None));
    assert_eq!(s.alerts, Alerts { bell: true, notify: Notify::Osc777 });
    assert_eq!(s.thresholds.queue_usage_for_s, 300.0);
    assert_eq!(s.handling.command, ["./job", "", "it's\ttwo\n"]);
    assert_eq!(s.handling.job_timeout, Some(std::time::Duration::from_secs(300)));
    assert_eq!(s.worker.keep, Some(std::time::Duration::from_secs(604_800)));
    assert_eq!(s.keys.lookup(Key::Char('W'), |_| true), Some(Action::Worker));
    assert_eq!(s.keys.lookup(Key::Char('w'), |_| true), None);
    assert_eq!(s.keys.lookup(Key::F(12), |_| true), Some(Action::Suspend));
    let target = |name: &str| s.targets.iter().find(|t| t.name == name).unwrap();
    assert_eq!(target("eu-west.1").conninfo(), r"dbname='o\'brien\\s'");
    assert_eq!(target("eu-west.1").bar.as_deref(), Some("208"));
    assert!(target("production").conninfo().contains("port='5433'"));
    assert_eq!(target("production").profiles, ["jobs", "outbox"]);
}

#[test]
fn a_password_is_shown_nowhere() {
    let text = "[targets.a]\nhost = \"h\"\npassword = \"sesame\"\n[targets.b]\nconninfo = \"postgres://u:sesame@h/d\"";
    let s = Settings::parse(text, "x").unwrap();
    assert!(s.targets.iter().all(|t| t.has_password));
    assert!(!format!("{s:?}").contains("sesame"));
    assert!(!s.to_toml().contains("sesame"));
}
