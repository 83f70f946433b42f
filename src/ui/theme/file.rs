//! A theme file, and what it inherits.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Role, ThemeError};

/// A theme as it stands in its file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: String,
    #[serde(default)]
    pub(super) inherits: Option<String>,
    /// What contrast is checked against, and what is drawn if `filled`.
    #[serde(default)]
    pub(super) background: Option<String>,
    /// Whether the background is drawn. Otherwise it is the terminal's own.
    #[serde(default)]
    pub(super) filled: Option<bool>,
    #[serde(default)]
    pub(super) palette: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) roles: BTreeMap<String, Looks>,
}

/// The style of a role.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Looks {
    pub(super) fg: Option<String>,
    pub(super) bg: Option<String>,
    #[serde(default)]
    pub(super) bold: bool,
    #[serde(default)]
    pub(super) dim: bool,
    #[serde(default)]
    pub(super) underlined: bool,
    #[serde(default)]
    pub(super) reversed: bool,
}

impl File {
    /// Reads the text of a file; roles and keys that nobody knows are errors.
    pub(super) fn read(text: &str) -> Result<Self, ThemeError> {
        let file: Self = toml::from_str(text).map_err(|e| ThemeError::Bad {
            name: "?".to_owned(),
            text: match e.span() {
                Some(span) => {
                    let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
                    format!("line {line}: {}", e.message())
                }
                None => e.message().to_owned(),
            },
        })?;
        match file.roles.keys().find(|k| !Role::ALL.iter().any(|(_, n)| n == k)) {
            Some(name) => Err(file.bad(format!("there is no role {name:?}"))),
            None => Ok(file),
        }
    }

    pub(super) fn bad(&self, text: impl Into<String>) -> ThemeError {
        ThemeError::Bad { name: self.name.clone(), text: text.into() }
    }

    /// With everything filled in that it inherits. `find` gives the file of a name, for a file of a name.
    pub(super) fn merged<'a>(
        mut self,
        find: &impl Fn(&str, &str) -> Option<&'a Self>,
        depth: u8,
    ) -> Result<Self, ThemeError> {
        let Some(parent) = self.inherits.take() else { return Ok(self) };
        let Some(found) = find(&parent, &self.name).filter(|_| depth < 8) else {
            return Err(self.bad(format!("cannot inherit {parent:?}")));
        };
        let parent = found.clone().merged(find, depth + 1)?;
        for (word, colour) in parent.palette {
            self.palette.entry(word).or_insert(colour);
        }
        for (role, looks) in parent.roles {
            self.roles.entry(role).or_insert(looks);
        }
        self.background = self.background.or(parent.background);
        self.filled = self.filled.or(parent.filled);
        Ok(self)
    }
}
