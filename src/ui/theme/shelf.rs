//! All themes there are: those that are built in, and a person's own beside or over them.

use super::file::File;
use super::{Theme, ThemeError};

/// The themes that are built in, in the order of the theme key.
const BUILT_IN: &[&str] = &[
    include_str!("../../../themes/dark.toml"),
    include_str!("../../../themes/light.toml"),
    include_str!("../../../themes/high-contrast.toml"),
    include_str!("../../../themes/high-contrast-light.toml"),
    include_str!("../../../themes/colour-blind.toml"),
    include_str!("../../../themes/mono.toml"),
    include_str!("../../../themes/catppuccin-latte.toml"),
    include_str!("../../../themes/catppuccin-mocha.toml"),
    include_str!("../../../themes/dracula.toml"),
    include_str!("../../../themes/gruvbox-dark.toml"),
    include_str!("../../../themes/gruvbox-light.toml"),
    include_str!("../../../themes/nord.toml"),
    include_str!("../../../themes/solarized-dark.toml"),
    include_str!("../../../themes/solarized-light.toml"),
    include_str!("../../../themes/tokyo-night.toml"),
];

/// Themes by name.
#[derive(Clone, Debug)]
pub struct Themes {
    built_in: Vec<File>,
    own: Vec<File>,
}

impl Themes {
    /// Those that are built in.
    pub fn built_in() -> Self {
        // every one of them is read by a test
        let built_in = BUILT_IN.iter().filter_map(|text| File::read(text).ok()).collect();
        Self { built_in, own: Vec::new() }
    }

    /// Adds a person's own; one with the name of another takes its place.
    ///
    /// # Errors
    /// The text is not a theme, or does not come to a whole one.
    pub fn add(&mut self, text: &str) -> Result<(), ThemeError> {
        let file = File::read(text)?;
        let name = file.name.clone();
        self.own.retain(|f| f.name != name);
        self.own.push(file);
        self.get(&name).map(drop).inspect_err(|_| self.own.retain(|f| f.name != name))
    }

    /// The names, a person's own first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let is_own = |name: &str| self.own.iter().any(|f| f.name == name);
        let built_in = self.built_in.iter().map(|f| f.name.as_str()).filter(move |n| !is_own(n));
        self.own.iter().map(|f| f.name.as_str()).chain(built_in)
    }

    /// The theme `name`.
    ///
    /// # Errors
    /// There is none of that name; the nearest one is named.
    pub fn get(&self, name: &str) -> Result<Theme, ThemeError> {
        let find = |wanted: &str, by: &str| {
            // a theme that takes the place of another can still inherit from it
            let own = self.own.iter().find(|f| f.name == wanted && wanted != by);
            own.or_else(|| self.built_in.iter().find(|f| f.name == wanted))
        };
        match find(name, "") {
            Some(file) => Theme::from_file(&file.clone().merged(&find, 0)?),
            None => Err(self.no_such(name)),
        }
    }

    fn no_such(&self, name: &str) -> ThemeError {
        let known = self.names().collect::<Vec<_>>().join(", ");
        ThemeError::NoSuch { name: name.to_owned(), known }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_theme_is_read_and_bears_the_name_of_its_file() {
        let themes = Themes::built_in();
        assert_eq!(themes.built_in.len(), BUILT_IN.len());
        let mut files: Vec<String> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/themes"))
            .unwrap()
            .map(|e| e.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        let mut names: Vec<&str> = themes.names().collect();
        files.sort();
        names.sort_unstable();
        assert_eq!(names, files);
        for name in names {
            assert_eq!(themes.get(name).unwrap().name(), name);
        }
    }

    #[test]
    fn a_persons_own_theme_adds_or_takes_a_place() {
        let mut themes = Themes::built_in();
        themes.add("name = \"mine\"\ninherits = \"nord\"\n[palette]\ngreen = \"#00ff00\"").unwrap();
        themes.add("name = \"dark\"\ninherits = \"dark\"\n[palette]\ngreen = \"#00ff00\"").unwrap();
        assert_eq!(themes.names().take(3).collect::<Vec<_>>(), ["mine", "dark", "light"]);
        let dark = themes.get("dark").unwrap();
        assert_ne!(dark, Themes::built_in().get("dark").unwrap());
        // what inherits from the one that was replaced follows
        assert_eq!(
            themes.get("nord").unwrap().style(super::super::Role::Ok).fg.unwrap().to_string(),
            "#A3BE8C"
        );
    }

    #[test]
    fn a_theme_that_is_none_is_refused_and_leaves_the_others_alone() {
        let mut themes = Themes::built_in();
        for text in [
            "name = \"dark\"\ninherits = \"nosuch\"",
            "name = \"dark\"",
            "name = \"dark\"\ninherits = \"light\"\n[roles]\nok = { fg = \"gren\" }",
            "colour = 1",
        ] {
            assert!(themes.add(text).is_err(), "{text}");
        }
        assert_eq!(themes.get("dark").unwrap(), Themes::built_in().get("dark").unwrap());
        // two that inherit from each other have no end
        themes.add("name = \"a\"\ninherits = \"dark\"").unwrap();
        themes.add("name = \"b\"\ninherits = \"a\"").unwrap();
        assert!(themes.add("name = \"a\"\ninherits = \"b\"").is_err());
    }
}
