//! A target by name: `pgwake @production`.

use std::fmt;

use super::reader::{ConfigError, Section, did_you_mean};
use super::rules::{colour, switch, text, text_or_number, word, words};

/// A place to connect to, and how it is shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// The connection string; may hold a password, so it is never shown.
    conninfo: String,
    /// A name that is always on the screen.
    pub label: Option<String>,
    /// The colour of the head line.
    pub bar: Option<String>,
    /// Whether every action is taken away.
    pub read_only: bool,
    /// Its ledgers; empty: every known one that exists.
    pub profiles: Vec<String>,
    /// Whether a password stands in it.
    pub has_password: bool,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("name", &self.name)
            .field("label", &self.label)
            .field("bar", &self.bar)
            .field("read_only", &self.read_only)
            .field("profiles", &self.profiles)
            .finish_non_exhaustive()
    }
}

/// Keys that are handed on as a connection string of theirs.
const KEYWORDS: [&str; 9] = [
    "host",
    "port",
    "user",
    "dbname",
    "password",
    "sslmode",
    "sslrootcert",
    "connect_timeout",
    "application_name",
];

/// Keys of ours.
const OWN: [&str; 5] = ["conninfo", "label", "bar", "read_only", "profiles"];

impl Target {
    /// The connection string, for the connection alone.
    pub fn conninfo(&self) -> &str {
        &self.conninfo
    }

    pub(super) fn read(
        name: &str,
        section: &Section,
        fail: &impl Fn(usize, String) -> ConfigError,
        line: usize,
    ) -> Result<Self, ConfigError> {
        let path = format!("targets.{name}");
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
            return Err(fail(line, format!("{path}: a name is made of letters, digits, -, _ and .")));
        }
        if let Some((inner, line, _)) = section.sections.first() {
            return Err(fail(*line, format!("{path}.{inner}: a target has no tables of its own")));
        }
        let mut target = Self { name: name.to_owned(), ..Self::default() };
        let mut pairs = Vec::new();
        for entry in &section.entries {
            let key = entry.key.as_str();
            let wrong = |why: String| fail(entry.line, format!("{path}.{key} {why}"));
            let value = &entry.value;
            match key {
                "conninfo" => target.conninfo = text(value).map_err(wrong)?,
                "label" => target.label = Some(word(value).map_err(wrong)?),
                "bar" => target.bar = Some(colour(value).map_err(wrong)?),
                "read_only" => target.read_only = switch(value).map_err(wrong)?,
                "profiles" => target.profiles = words(value).map_err(wrong)?,
                _ if KEYWORDS.contains(&key) => {
                    let value = text_or_number(value).map_err(wrong)?;
                    pairs.push(format!("{key}='{}'", value.replace('\\', "\\\\").replace('\'', "\\'")));
                }
                _ => {
                    let near = did_you_mean(key, KEYWORDS.into_iter().chain(OWN));
                    return Err(fail(entry.line, format!("{path}.{key}: there is no such key{near}")));
                }
            }
        }
        if !target.conninfo.is_empty() && !pairs.is_empty() {
            let why = "conninfo says it all, or host, port, user and the like do; not both";
            return Err(fail(line, format!("{path}: {why}")));
        }
        if !pairs.is_empty() {
            target.conninfo = pairs.join(" ");
        }
        target.has_password = holds_password(&target.conninfo);
        Ok(target)
    }
}

/// Whether a connection string holds a password, as a keyword or in a URI.
fn holds_password(conninfo: &str) -> bool {
    let in_uri = conninfo.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    });
    in_uri || conninfo.replace(' ', "").contains("password=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_found_wherever_they_stand() {
        for with in
            ["password=x", "host=a password = 'x'", "postgres://u:p@h/d", "postgres://h/d?password=p"]
        {
            assert!(holds_password(with), "{with}");
        }
        for without in ["", "orders", "host=a", "postgres://u@h:5432/d", "postgres://h:5432,g:5433/d"] {
            assert!(!holds_password(without), "{without}");
        }
    }
}
