//! From TOML to a checked [`Profile`].

use std::path::Path;

use super::{BUILTIN, Profile, builtin};
use crate::model::Fencing;
use crate::text::{channel_problem, clean};

/// A profile that cannot be used: one line that says what, where and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("profile {origin}: {problem}")]
pub struct ProfileError {
    /// Name or path of the profile.
    pub origin: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Profile {
    /// Reads and checks a profile; `origin` names it in errors.
    ///
    /// # Errors
    /// Anything that is not valid TOML of this shape, or contradicts itself.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ProfileError> {
        let fail = |problem: String| ProfileError { origin: clean(origin), problem };
        let profile: Self = toml::from_str(text).map_err(|e| {
            let line = e.span().map(|s| text[..s.start.min(text.len())].matches('\n').count() + 1);
            let place = line.map(|l| format!("line {l}: ")).unwrap_or_default();
            fail(format!("{place}{}{}", clean(e.message()), nearest(e.message())))
        })?;
        profile.check().map_err(fail)?;
        Ok(profile)
    }

    /// Finds a profile by name among the built-in ones, or reads the file of that path.
    ///
    /// # Errors
    /// An unknown name (naming the known ones), an unreadable file, or a bad profile.
    pub fn find(name_or_file: &str) -> Result<Self, ProfileError> {
        if let Some(found) = builtin(name_or_file) {
            return found;
        }
        let path = Path::new(name_or_file);
        let known: Vec<&str> = BUILTIN.iter().map(|(n, _)| *n).collect();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, name_or_file),
            Err(e) => Err(ProfileError {
                origin: clean(name_or_file),
                problem: format!(
                    "no built-in profile has that name ({}), and as a file: {e}",
                    known.join(", ")
                ),
            }),
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.name.is_empty() || clean(&self.name) != self.name {
            return Err("name: must be a plain, non-empty word".to_owned());
        }
        for (what, value) in [("schema", &self.schema), ("table", &self.table)] {
            if value.is_empty() || value.contains('\0') {
                return Err(format!("{what}: must not be empty"));
            }
        }
        if let Some(channel) = &self.channel
            && let Some(problem) = channel_problem(channel)
        {
            return Err(format!("channel: {problem}"));
        }
        let c = &self.columns;
        if c.locked_by.is_some() != c.locked_until.is_some() {
            return Err("columns: locked_by and locked_until come together or not at all".to_owned());
        }
        match self.fencing {
            Fencing::Token if c.lease_token.is_none() => {
                Err("fencing = \"token\" needs columns.lease_token".to_owned())
            }
            Fencing::HolderAttempts if c.attempts.is_none() || c.locked_by.is_none() => {
                Err("fencing = \"holder-attempts\" needs columns.attempts and columns.locked_by".to_owned())
            }
            Fencing::HolderAttempts if self.attempts_count == super::AttemptsCount::Failures => {
                Err("fencing = \"holder-attempts\" needs attempts_count = \"claims\": \
                     otherwise two claims of one holder look the same"
                    .to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// A hint for an unknown key, taken from serde's own list of expected ones.
fn nearest(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    if !message.starts_with("unknown field") {
        return String::new();
    }
    let Some(unknown) = quoted.next() else { return String::new() };
    quoted
        .map(|known| (strsim::damerau_levenshtein(unknown, known), known))
        .filter(|(distance, _)| *distance <= 3)
        .min()
        .map(|(_, known)| format!("; did you mean `{known}`?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs_with(from: &str, to: &str) -> Result<Profile, ProfileError> {
        let text = BUILTIN[0].1;
        assert!(text.contains(from));
        Profile::parse(&text.replace(from, to), "mine.toml")
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line_and_the_nearest_one() {
        let e = jobs_with("channel =", "chanel =").unwrap_err().to_string();
        assert!(
            e.contains("mine.toml") && e.contains("line 5") && e.contains("did you mean `channel`"),
            "{e}"
        );
        assert!(!e.contains('\n'));
    }

    #[test]
    fn a_channel_of_64_bytes_is_refused_with_the_byte_count() {
        let e = jobs_with("pgwake_work", &"x".repeat(64)).unwrap_err().to_string();
        assert!(e.contains("64 bytes"), "{e}");
    }

    #[test]
    fn fencing_needs_its_columns() {
        let e = jobs_with("lease_token = \"lease_token\"\n", "").unwrap_err().to_string();
        assert!(e.contains("columns.lease_token"), "{e}");
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let e = Profile::find("jbos").unwrap_err().to_string();
        assert!(e.contains("jobs, outbox, jobs-plain"), "{e}");
    }
}
