//! Does the terminal take UTF-8?

/// Whether the effective locale is UTF-8: `LC_ALL` over `LC_CTYPE` over `LANG`; an empty one does not
/// count. Without any the C locale is in force, which is not.
pub fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let effective = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| variable(name).filter(|v| !v.is_empty()));
    effective.is_some_and(|v| {
        let v = v.to_ascii_lowercase();
        v.contains("utf-8") || v.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &[(&str, &str)]) -> bool {
        is_utf8(|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn the_first_variable_that_is_set_decides() {
        assert!(with(&[("LANG", "de_DE.UTF-8")]));
        assert!(with(&[("LANG", "C.utf8")]));
        assert!(!with(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")]));
        assert!(with(&[("LC_CTYPE", "en_US.UTF-8"), ("LANG", "C")]));
        assert!(with(&[("LC_ALL", ""), ("LANG", "en_US.UTF-8")]));
        assert!(!with(&[("LANG", "en_US.ISO-8859-1")]));
        assert!(!with(&[]));
    }
}
