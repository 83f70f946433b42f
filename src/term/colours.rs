//! How many colours may be used.

/// What the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// None: weight and symbols only.
    None,
    /// The fixed 256.
    Fixed256,
    /// All of them.
    True,
}

/// What the environment says: none with a `NO_COLOR` that is not empty, all when `COLORTERM` says so,
/// else the fixed 256, which terminals without more understand, too.
pub fn colours(variable: impl Fn(&str) -> Option<String>) -> Colours {
    if variable("NO_COLOR").is_some_and(|v| !v.is_empty()) {
        return Colours::None;
    }
    let is_true = |v: String| v == "truecolor" || v == "24bit";
    let direct = |v: String| v.ends_with("-direct");
    if variable("COLORTERM").is_some_and(is_true) || variable("TERM").is_some_and(direct) {
        return Colours::True;
    }
    Colours::Fixed256
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_counts_when_it_is_not_empty_and_above_all() {
        let with = |set: &[(&str, &str)]| {
            colours(|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
        };
        assert_eq!(with(&[]), Colours::Fixed256);
        assert_eq!(with(&[("NO_COLOR", "")]), Colours::Fixed256);
        assert_eq!(with(&[("NO_COLOR", "1"), ("COLORTERM", "truecolor")]), Colours::None);
        assert_eq!(with(&[("COLORTERM", "truecolor")]), Colours::True);
        assert_eq!(with(&[("TERM", "xterm-direct")]), Colours::True);
        assert_eq!(with(&[("TERM", "xterm-256color"), ("COLORTERM", "yes")]), Colours::Fixed256);
    }
}
