//! The configuration file: read by the table of settings, printed by it as well.

use std::fmt::Write;

use super::keys::{Action, KEYS, Key};
use super::reader::{ConfigError, Entry, Section, Value, did_you_mean};
use super::rules::words;
use super::settings::{HandlerKind, Settings};
use super::table::{SECTIONS, SETTINGS};
use super::target::Target;
use super::{Keymap, keys};
use crate::text::clean;

impl Settings {
    /// Reads a file over the defaults; `origin` names it in errors.
    ///
    /// # Errors
    /// The first thing that is wrong: its line, what it is, and the nearest known word.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ConfigError> {
        let root = Section::read(text, origin)?;
        let fail = |line: usize, text: String| ConfigError {
            origin: clean(origin),
            line: Some(line),
            text: clean(&text),
        };
        let mut settings = Self::default();
        for entry in &root.entries {
            set(&mut settings, "", entry, &fail)?;
        }
        for (name, line, section) in &root.sections {
            match name.as_str() {
                "keys" => settings.keys = keymap(section, *line, &fail)?,
                "targets" => settings.targets = targets(section, &fail)?,
                _ if SECTIONS.iter().any(|(s, _)| s == name) => {
                    if let Some((inner, line, _)) = section.sections.first() {
                        return Err(fail(*line, format!("{name}.{inner}: there is no such table")));
                    }
                    for entry in &section.entries {
                        set(&mut settings, name, entry, &fail)?;
                    }
                }
                _ => {
                    let known = SECTIONS.iter().map(|(s, _)| *s).chain(["keys", "targets"]);
                    let near = did_you_mean(name, known.filter(|s| !s.is_empty()));
                    return Err(fail(*line, format!("[{name}]: there is no such table{near}")));
                }
            }
        }
        agrees(&settings).map_err(|text| ConfigError { origin: clean(origin), line: None, text })?;
        Ok(settings)
    }

    /// The file with which these settings are got: every key, with a word on what it is.
    pub fn to_toml(&self) -> String {
        let mut out = String::from(
            "# pgwake: every setting with its default. What is left out keeps it.\n\
             # Read from $XDG_CONFIG_HOME/pgwake/config.toml (usually ~/.config/pgwake/config.toml), or from --config.\n\
             # A flag goes over the environment, the environment over this file.\n",
        );
        for (section, about) in SECTIONS {
            out.push('\n');
            if !section.is_empty() {
                let _ = write!(out, "# {about}\n[{section}]\n");
            }
            for setting in SETTINGS.iter().filter(|s| s.section == *section) {
                let _ = write!(out, "# {}\n{} = {}\n", setting.help, setting.key, (setting.get)(self));
            }
        }
        out += "\n# Keys of each action; what is given here takes the place of all of them. Written as in r, R,\n\
                # Ctrl-L, space, Enter, PgUp, F5. Two actions cannot have the same; Ctrl-C always leaves.\n[keys]\n";
        for b in self.keys.iter() {
            let keys: Vec<String> =
                b.keys.iter().map(|k| toml::Value::String(k.to_string()).to_string()).collect();
            let _ = writeln!(out, "{} = [{}] # {}", b.action.name(), keys.join(", "), b.help);
        }
        out += TARGETS;
        out
    }
}

/// There are no targets by default, so the example shows one as a comment.
const TARGETS: &str = r##"
# Targets by name: `pgwake @production`. A connection string, or its parts: host, port, user, dbname,
# password, sslmode, sslrootcert, connect_timeout, application_name. A file that holds a password must
# be readable by its owner only.
# [targets.production]
# host = "db-1.example"
# dbname = "orders"
# user = "oncall"
# label = "PROD"           # always on the screen
# bar = "red"              # colour of the head line: a name, "#rrggbb", or an index up to 255
# read_only = true         # take every action away
# profiles = ["jobs"]      # which ledgers; without it, every known one that exists
#
# [targets.staging]
# conninfo = "postgres://me@staging.example/orders?sslmode=require"
# bar = "#ffaf00"
"##;

fn set(
    settings: &mut Settings,
    section: &str,
    entry: &Entry,
    fail: &impl Fn(usize, String) -> ConfigError,
) -> Result<(), ConfigError> {
    let path = if section.is_empty() { entry.key.clone() } else { format!("{section}.{}", entry.key) };
    let Some(setting) = SETTINGS.iter().find(|s| s.section == section && s.key == entry.key) else {
        let here = SETTINGS.iter().filter(|s| s.section == section).map(|s| s.key);
        let near = did_you_mean(&entry.key, here);
        let near = if near.is_empty() { elsewhere(&entry.key) } else { near };
        return Err(fail(entry.line, format!("{path}: there is no such key{near}")));
    };
    (setting.set)(settings, &entry.value).map_err(|why| fail(entry.line, format!("{path} {why}")))
}

/// The same key in another table, if there is one.
fn elsewhere(key: &str) -> String {
    let found = SETTINGS.iter().find(|s| s.key == key && !s.section.is_empty());
    found.map(|s| format!("; it belongs into [{}]", s.section)).unwrap_or_default()
}

fn keymap(
    section: &Section,
    line: usize,
    fail: &impl Fn(usize, String) -> ConfigError,
) -> Result<Keymap, ConfigError> {
    let mut changes: Vec<(Action, Vec<Key>)> = Vec::new();
    for entry in &section.entries {
        let Some(binding) = KEYS.iter().find(|b| b.action.name() == entry.key) else {
            let names: Vec<String> = KEYS.iter().map(|b| b.action.name()).collect();
            let near = did_you_mean(&entry.key, names.iter().map(String::as_str));
            return Err(fail(entry.line, format!("keys.{}: there is no such action{near}", entry.key)));
        };
        let wrong = |why: String| fail(entry.line, format!("keys.{}: {why}", entry.key));
        let keys = match &entry.value {
            Value::Text(_) | Value::List(_) => words(&entry.value).map_err(wrong)?,
            _ => return Err(wrong("is a key or a list of keys, in quotes".to_owned())),
        };
        let keys: Vec<keys::Key> =
            keys.iter().map(|k| k.parse()).collect::<Result<_, _>>().map_err(wrong)?;
        changes.push((binding.action, keys));
    }
    Keymap::with(changes).map_err(|why| fail(line, format!("[keys]: {why}")))
}

fn targets(
    section: &Section,
    fail: &impl Fn(usize, String) -> ConfigError,
) -> Result<Vec<Target>, ConfigError> {
    if let Some(entry) = section.entries.first() {
        let text = format!("targets.{}: a target is a table: [targets.{}]", entry.key, entry.key);
        return Err(fail(entry.line, text));
    }
    section.sections.iter().map(|(name, line, inner)| Target::read(name, inner, fail, *line)).collect()
}

/// What settings must be to each other.
fn agrees(s: &Settings) -> Result<(), String> {
    if s.thresholds.queue_usage_warn > s.thresholds.queue_usage_critical {
        return Err("thresholds: queue_usage_warn lies above queue_usage_critical".to_owned());
    }
    let (command, handler) = (&s.handling.command, s.handling.handler);
    if handler == Some(HandlerKind::Exec) && command.is_empty() {
        return Err(
            "worker: handler \"exec\" needs a command, as in command = [\"./job\", \"--flag\"]".to_owned()
        );
    }
    if !command.is_empty() && s.handling.kind() != Some(HandlerKind::Exec) {
        return Err("worker: there is a command, and a handler that does not run it; take one of them out"
            .to_owned());
    }
    if s.worker.backoff > s.worker.backoff_max {
        return Err("worker: backoff is longer than backoff_max".to_owned());
    }
    Ok(())
}
