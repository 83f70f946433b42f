//! `pgwake screenshot`: SVG pictures from recordings.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::{Failure, Outcome, print};
use crate::app::playback::Playback;
use crate::app::{Msg, Setup, update};
use crate::cli::{self, Screenshot};
use crate::config::keys::Key;
use crate::record::{self, Recording};
use crate::ui::{Theme, Themes, picture};

/// Where the recordings of the project's own pictures lie, and the list of the pictures.
const RECORDINGS: &str = "tests/recordings";
/// Where those pictures go.
const PICTURES: &str = "screenshots";

pub(super) fn run(args: &Screenshot) -> Outcome {
    if args.all {
        return all(args);
    }
    let Some(path) = &args.recording else { return Err(Failure::usage("which recording?")) };
    let recording = open(path)?;
    if let Some(broken) = &recording.broken {
        eprintln!("pgwake: {}: broken off at {broken}; what stands before it is shown", path.display());
    }
    let shot = Shot {
        keys: format!("{}{}", args.screen, args.keys.replace("\\n", "\n")),
        size: args.size,
        theme: args.theme.clone().unwrap_or_else(|| "dark".to_owned()),
        at: args.at,
    };
    let svg = shot.take(recording)?;
    match &args.output {
        Some(path) => write(path, &svg),
        None => print(&svg),
    }
}

/// Every picture of the list.
fn all(args: &Screenshot) -> Outcome {
    let folder = args.output.clone().unwrap_or_else(|| PathBuf::from(PICTURES));
    for (name, svg) in set(Path::new(RECORDINGS), args.theme.as_deref())? {
        write(&folder.join(name), &svg)?;
    }
    Ok(())
}

/// One picture of `pictures.toml`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Name of the picture, without `.svg`; `*` stands for the theme.
    name: String,
    /// Name of the recording, without `.jsonl`.
    recording: String,
    /// Keys to type, the screen's digit first.
    #[serde(default)]
    keys: String,
    #[serde(default)]
    size: Option<String>,
    /// A theme, or `*` for every one there is.
    #[serde(default)]
    theme: Option<String>,
    #[serde(default)]
    at: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    picture: Vec<Entry>,
}

/// File names and contents of the project's own pictures, from the folder of their recordings; only those
/// in `theme` if it is given.
///
/// # Errors
/// A recording or the list cannot be read; a picture asks for what there is not.
pub fn set(folder: &Path, theme: Option<&str>) -> Result<Vec<(String, String)>, Failure> {
    let list = folder.join("pictures.toml");
    let failed = |e: &dyn ToString| Failure::failed(format!("{}: {}", list.display(), e.to_string()));
    let text = fs::read_to_string(&list).map_err(|e| failed(&e))?;
    let entries = toml::from_str::<List>(&text).map_err(|e| failed(&e.message()))?.picture;
    let mut out = Vec::new();
    let themes = Themes::built_in();
    let in_themes = entries.into_iter().flat_map(|entry| {
        let names = match entry.theme.as_deref() {
            Some("*") => themes.names().map(str::to_owned).collect(),
            name => vec![name.unwrap_or("dark").to_owned()],
        };
        names.into_iter().map(move |name| (entry.clone(), name))
    });
    for (entry, name) in in_themes.filter(|(_, name)| theme.is_none_or(|wanted| wanted == name)) {
        let wrong = |e: String| Failure::failed(format!("{}: {}: {e}", list.display(), entry.name));
        let shot = Shot {
            keys: entry.keys.clone(),
            size: cli::size(entry.size.as_deref().unwrap_or("120x36")).map_err(wrong)?,
            theme: name.clone(),
            at: entry.at.as_deref().map(cli::duration).transpose().map_err(wrong)?,
        };
        let recording = open(&folder.join(&entry.recording).with_extension("jsonl"))?;
        out.push((format!("{}.svg", entry.name.replace('*', &name)), shot.take(recording)?));
    }
    Ok(out)
}

/// What a picture shows of a recording.
struct Shot {
    keys: String,
    size: (u16, u16),
    theme: String,
    /// Since the beginning; the end without this.
    at: Option<Duration>,
}

impl Shot {
    fn take(&self, recording: Recording) -> Result<String, Failure> {
        let theme = Theme::load(&self.theme).map_err(Failure::usage)?;
        let mut playback = playback(recording, |setup| setup)?;
        let mut app = playback.app();
        let at = self.at.map_or(playback.end(), |at| playback.begin() + at);
        playback.go(&mut app, at);
        let now = playback.now();
        update(&mut app, Msg::Resize(self.size.0, self.size.1), now);
        for c in self.keys.chars() {
            let key = if c == '\n' { Key::Enter } else { Key::Char(c) };
            // what a key asks of the world has nobody to go to
            let _ = update(&mut app, Msg::Key(key), now);
        }
        let title = format!("pgwake, {}", app.clock(now.wall));
        let buf = picture::screen(&mut app, self.size, now, &theme);
        Ok(picture::svg(&buf, &theme, &title))
    }
}

/// The screens of a recording, its setup changed by `dress`.
pub(super) fn playback(recording: Recording, dress: fn(Setup) -> Setup) -> Result<Playback, Failure> {
    if recording.events.is_empty() {
        return Err(Failure::failed("the recording holds no event"));
    }
    // an older recording may say less: the rest has defaults
    let setup: Setup = serde_json::from_value(recording.about).unwrap_or_default();
    Ok(Playback::new(dress(setup), recording.events))
}

/// Reads a recording.
pub(super) fn open(path: &Path) -> Result<Recording, Failure> {
    let failed = |e: record::RecordError| Failure::failed(format!("{}: {e}", path.display()));
    let file = File::open(path).map_err(|e| failed(e.into()))?;
    record::read(BufReader::new(file)).map_err(failed)
}

fn write(path: &Path, svg: &str) -> Outcome {
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(|e| Failure::failed(format!("{}: {e}", folder.display())))?;
    }
    fs::write(path, svg).map_err(|e| Failure::failed(format!("{}: {e}", path.display())))
}
