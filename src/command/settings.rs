//! Where settings come from: flags over the environment over the file over the defaults.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use etcetera::BaseStrategy;

use super::Failure;
use super::screen::ScreenOptions;
use crate::cli::{Connect, Looks};
use crate::config::{Settings, Target};
use crate::ui::Themes;

/// What the file said, and where it lies.
#[derive(Debug)]
pub(super) struct Found {
    pub settings: Settings,
    /// The file, read or not there.
    pub path: Option<PathBuf>,
    /// Whether it was there.
    pub exists: bool,
}

/// The first that is given.
fn layered<T>(flag: Option<T>, environment: Option<T>, file: T) -> T {
    flag.or(environment).unwrap_or(file)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// The file, and whether somebody named it.
fn place(flag: Option<&Path>) -> (Option<PathBuf>, bool) {
    let named = flag.map(Path::to_owned).or_else(|| variable("PGWAKE_CONFIG").map(PathBuf::from));
    match named {
        Some(path) => (Some(path), true),
        None => {
            let base = etcetera::choose_base_strategy().ok();
            (base.map(|b| b.config_dir().join("pgwake").join("config.toml")), false)
        }
    }
}

/// Reads the file. One that nobody named need not be there.
pub(super) fn load(connect: &Connect) -> Result<Found, Failure> {
    let (path, named) = place(connect.config.as_deref());
    let Some(path) = path else {
        return Ok(Found { settings: Settings::default(), path: None, exists: false });
    };
    let shown = path.display().to_string();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && !named => {
            return Ok(Found { settings: Settings::default(), path: Some(path), exists: false });
        }
        Err(e) => return Err(Failure::usage(format!("{shown}: {e}"))),
    };
    let settings = Settings::parse(&text, &shown).map_err(Failure::usage)?;
    if let Some(target) = settings.targets.iter().find(|t| t.has_password) {
        let mode = std::fs::metadata(&path).map_err(|e| Failure::usage(format!("{shown}: {e}")))?;
        if mode.permissions().mode() & 0o077 != 0 {
            return Err(Failure::usage(format!(
                "{shown}: targets.{} holds a password and others may read the file; chmod 600 it",
                target.name
            )));
        }
    }
    Ok(Found { settings, path: Some(path), exists: true })
}

/// The name of a target, if `text` is one: `@production`.
fn target_name<'a>(connect: &'a Connect, text: Option<&'a str>) -> Option<&'a str> {
    [text, connect.dbname.as_deref()].into_iter().flatten().find_map(|t| t.strip_prefix('@'))
}

/// The target that was named, if one was.
pub(super) fn target(connect: &Connect, text: Option<&str>) -> Result<Option<Target>, Failure> {
    let Some(name) = target_name(connect, text) else { return Ok(None) };
    let found = load(connect)?;
    if let Some(target) = found.settings.targets.iter().find(|t| t.name == name) {
        return Ok(Some(target.clone()));
    }
    let place = found.path.map(|p| p.display().to_string()).unwrap_or_default();
    let names: Vec<String> = found.settings.targets.iter().map(|t| format!("@{}", t.name)).collect();
    let known = match (found.exists, names.is_empty()) {
        (false, _) => "there is no such file".to_owned(),
        (true, true) => "it has no targets".to_owned(),
        (true, false) => format!("it has {}", names.join(", ")),
    };
    Err(Failure::usage(format!("no target @{} in {place}: {known}", crate::text::clean(name))))
}

/// Themes that are built in and those beside the configuration file; what is wrong with some of these.
fn themes(found: &Found) -> (Themes, Vec<String>) {
    let mut themes = Themes::built_in();
    let mut wrong = Vec::new();
    let folder = found.path.as_deref().and_then(Path::parent).map(|p| p.join("themes"));
    let Some(files) = folder.and_then(|f| std::fs::read_dir(f).ok()) else { return (themes, wrong) };
    let mut files: Vec<PathBuf> = files.filter_map(|e| e.ok().map(|e| e.path())).collect();
    // one that inherits from another of the folder finds it whatever the order on the disk
    files.sort();
    files.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    let mut left = files;
    loop {
        let mut failed = Vec::new();
        let before = left.len();
        for path in left {
            let added = std::fs::read_to_string(&path)
                .map_err(|e| e.to_string())
                .and_then(|text| themes.add(&text).map_err(|e| e.to_string()));
            if let Err(why) = added {
                failed.push((path, why));
            }
        }
        if failed.is_empty() || failed.len() == before {
            wrong.extend(failed.into_iter().map(|(path, why)| format!("{}: {why}", path.display())));
            return (themes, wrong);
        }
        left = failed.into_iter().map(|(path, _)| path).collect();
    }
}

/// How the screen looks and which keys it has.
pub(super) fn screen(found: &Found, looks: &Looks, start: Instant) -> ScreenOptions {
    let settings = &found.settings;
    let mut options = ScreenOptions::from_env(start);
    let (themes, wrong) = themes(found);
    options.themes = themes;
    options.notes = wrong;
    options.theme = layered(looks.theme.clone(), variable("PGWAKE_THEME"), settings.theme.clone());
    options.filled = settings.theme_background;
    options.ascii |= looks.ascii || settings.ascii;
    options.mouse = looks.mouse || settings.mouse;
    options.alerts = settings.alerts;
    options.keys = settings.keys.clone();
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_given_counts() {
        assert_eq!(layered(Some(1), Some(2), 3), 1);
        assert_eq!(layered(None, Some(2), 3), 2);
        assert_eq!(layered(None, None, 3), 3);
    }

    #[test]
    fn a_target_is_named_where_a_database_is_named() {
        let with =
            |dbname: Option<&str>| Connect { dbname: dbname.map(str::to_owned), ..Connect::default() };
        assert_eq!(target_name(&with(None), Some("@prod")), Some("prod"));
        assert_eq!(target_name(&with(Some("@prod")), None), Some("prod"));
        assert_eq!(target_name(&with(Some("prod")), None), None);
        assert_eq!(target_name(&with(None), Some("dbname=@prod")), None);
    }
}
