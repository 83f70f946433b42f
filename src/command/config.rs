//! `pgwake config`: the settings in force, or the commented example.

use super::{Outcome, print, settings};
use crate::cli::{Config, Connect};
use crate::config::Settings;

pub(super) fn run(connect: &Connect, args: &Config) -> Outcome {
    if args.example {
        return print(&Settings::default().to_toml());
    }
    let found = settings::load(connect)?;
    let place = found.path.map_or_else(|| "no place for a file".to_owned(), |p| p.display().to_string());
    let there = if found.exists { "" } else { " (not there: all defaults)" };
    // what a target says stays in the file: it may hold a password
    let names: String = found.settings.targets.iter().map(|t| format!("# target @{}\n", t.name)).collect();
    let text = found.settings.to_toml();
    let body = text.split_once("\n\n").map_or(text.as_str(), |(_, body)| body);
    print(&format!("# {place}{there}\n{names}\n{body}"))
}
