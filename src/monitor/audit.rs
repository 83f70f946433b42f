//! The local audit file: every release, one JSON line, always, whatever the schema has.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use etcetera::BaseStrategy;
use serde::Serialize;

/// An append-only file of JSON lines.
#[derive(Clone, Debug)]
pub struct AuditFile {
    path: PathBuf,
}

#[derive(Serialize)]
struct Line<'a> {
    at: DateTime<Utc>,
    operator: &'a str,
    server: &'a str,
    ledger: &'a str,
    how: &'a str,
    what: &'a str,
    outcome: &'a str,
}

impl AuditFile {
    /// At this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// `releases.log` in the state folder (`$XDG_STATE_HOME/pgwake`), or `None` without a home.
    pub fn default_place() -> Option<Self> {
        let base = etcetera::choose_base_strategy().ok()?;
        let state = base.state_dir().unwrap_or_else(|| base.data_dir());
        Some(Self::at(state.join("pgwake").join("releases.log")))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one line and flushes it.
    ///
    /// # Errors
    /// The folder cannot be made, or the file not written.
    pub fn append(
        &self,
        at: DateTime<Utc>,
        server: &str,
        ledger: &str,
        how: &str,
        what: &str,
        outcome: &str,
    ) -> std::io::Result<()> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let operator = operator_name();
        let line = Line { at, operator: &operator, server, ledger, how, what, outcome };
        let mut text = serde_json::to_string(&line)?;
        text.push('\n');
        // One write of one line: lines of several processes do not mix.
        OpenOptions::new().create(true).append(true).open(&self.path)?.write_all(text.as_bytes())
    }
}

/// Operating system user and host: who releases.
pub fn operator_name() -> String {
    let user = whoami::username().unwrap_or_else(|_| "unknown".to_owned());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    crate::text::clean(&format!("{user}@{host}"))
}
