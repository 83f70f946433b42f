//! The profiles that ship in the program.

use super::{Profile, ProfileError};

/// Name and text of every built-in profile, in the order in which ledgers are shown.
pub const BUILTIN: &[(&str, &str)] = &[
    ("jobs", include_str!("builtin/jobs.toml")),
    ("outbox", include_str!("builtin/outbox.toml")),
    ("jobs-plain", include_str!("builtin/jobs-plain.toml")),
];

/// The built-in profile of that name.
pub fn builtin(name: &str) -> Option<Result<Profile, ProfileError>> {
    BUILTIN.iter().find(|(n, _)| *n == name).map(|(n, text)| Profile::parse(text, n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_profile_is_valid_and_bears_its_name() {
        for (name, _) in BUILTIN {
            let profile = builtin(name).unwrap().unwrap();
            assert_eq!(profile.name, *name);
            assert!(profile.has_lease());
        }
    }
}
