//! Colours: roles on a palette, from TOML.

use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

use crate::app::health::Level;

/// The themes that are built in, by name, in the order of the theme key.
const BUILT_IN: &[(&str, &str)] =
    &[("dark", include_str!("../../themes/dark.toml")), ("light", include_str!("../../themes/light.toml"))];

/// What a piece of the screen is, as far as its looks go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Ordinary text.
    Text,
    /// Secondary text, and values that are old.
    Dim,
    /// Titles and column heads.
    Title,
    /// Frames.
    Border,
    /// The frame of what has the keys.
    Focus,
    /// What should catch the eye without being an alarm.
    Accent,
    /// Key names in the footer and the help.
    Key,
    /// As it should be.
    Ok,
    /// Needs attention.
    Warn,
    /// Needs it now.
    Critical,
    /// Nothing can be said.
    Unknown,
    /// The row under the cursor.
    Selection,
    /// The mark of a frozen picture.
    Frozen,
    /// The name of the target.
    Label,
    /// Sparklines.
    Spark,
    /// Flow: came in.
    Arrived,
    /// Flow: finished.
    Done,
    /// Flow: failed attempts.
    Failed,
}

impl Role {
    /// Every role with its name in a theme file.
    pub const ALL: [(Self, &'static str); 18] = [
        (Self::Text, "text"),
        (Self::Dim, "dim"),
        (Self::Title, "title"),
        (Self::Border, "border"),
        (Self::Focus, "focus"),
        (Self::Accent, "accent"),
        (Self::Key, "key"),
        (Self::Ok, "ok"),
        (Self::Warn, "warn"),
        (Self::Critical, "critical"),
        (Self::Unknown, "unknown"),
        (Self::Selection, "selection"),
        (Self::Frozen, "frozen"),
        (Self::Label, "label"),
        (Self::Spark, "spark"),
        (Self::Arrived, "arrived"),
        (Self::Done, "done"),
        (Self::Failed, "failed"),
    ];

    /// The role of a health level.
    pub fn of(level: Level) -> Self {
        match level {
            Level::Ok => Self::Ok,
            Level::Unknown => Self::Unknown,
            Level::Warn => Self::Warn,
            Level::Critical => Self::Critical,
        }
    }

    /// What carries the meaning when there is no colour.
    fn mono(self) -> Style {
        let with = |m| Style::new().add_modifier(m);
        match self {
            Self::Dim => with(Modifier::DIM),
            Self::Title | Self::Key | Self::Focus | Self::Warn => with(Modifier::BOLD),
            Self::Critical => with(Modifier::BOLD | Modifier::UNDERLINED),
            Self::Selection | Self::Frozen | Self::Label => with(Modifier::REVERSED),
            _ => Style::new(),
        }
    }
}

/// Why a theme could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ThemeError {
    /// No theme of that name.
    #[error("no theme named {name:?}; there are: {known}")]
    NoSuch {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The file is not what a theme file should be.
    #[error("theme {name:?}: {text}")]
    Bad {
        /// Which.
        name: String,
        /// What is wrong.
        text: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    inherits: Option<String>,
    #[serde(default)]
    background: Option<String>,
    #[serde(default)]
    palette: BTreeMap<String, String>,
    #[serde(default)]
    roles: BTreeMap<String, Looks>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Looks {
    fg: Option<String>,
    bg: Option<String>,
    #[serde(default)]
    bold: bool,
    #[serde(default)]
    dim: bool,
    #[serde(default)]
    underlined: bool,
    #[serde(default)]
    reversed: bool,
}

/// A style for every role, and how glyphs are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    name: String,
    styles: [Style; Role::ALL.len()],
    background: Option<Color>,
    ascii: bool,
    mono: bool,
}

impl Theme {
    /// The names of the built-in themes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The built-in theme `name`.
    pub fn load(name: &str) -> Result<Self, ThemeError> {
        let Some((_, text)) = BUILT_IN.iter().find(|(n, _)| *n == name) else {
            let known = Self::names().collect::<Vec<_>>().join(", ");
            return Err(ThemeError::NoSuch { name: name.to_owned(), known });
        };
        Self::parse(text)
    }

    /// A theme from the text of a file; what it inherits must be built in.
    pub fn parse(text: &str) -> Result<Self, ThemeError> {
        let file = merged(text, 0)?;
        let bad = |text: String| ThemeError::Bad { name: file.name.clone(), text };
        let colour = |word: &String| {
            let word = file.palette.get(word).unwrap_or(word);
            word.parse::<Color>()
                .map_err(|_| bad(format!("{word:?} is neither in the palette nor a colour")))
        };
        if let Some(name) = file.roles.keys().find(|k| !Role::ALL.iter().any(|(_, n)| n == k)) {
            return Err(bad(format!("there is no role {name:?}")));
        }
        let mut styles = [Style::new(); Role::ALL.len()];
        for (role, name) in Role::ALL {
            let looks = file.roles.get(name).ok_or_else(|| bad(format!("the role {name:?} is missing")))?;
            let mut style = Style::new();
            style.fg = looks.fg.as_ref().map(colour).transpose()?;
            style.bg = looks.bg.as_ref().map(colour).transpose()?;
            for (on, modifier) in [
                (looks.bold, Modifier::BOLD),
                (looks.dim, Modifier::DIM),
                (looks.underlined, Modifier::UNDERLINED),
                (looks.reversed, Modifier::REVERSED),
            ] {
                if on {
                    style = style.add_modifier(modifier);
                }
            }
            styles[role as usize] = style;
        }
        let background = file.background.as_ref().map(colour).transpose()?;
        Ok(Self { name: file.name.clone(), styles, background, ascii: false, mono: false })
    }

    /// The same without any colour: symbols, words and weight carry the meaning.
    pub fn without_colour(mut self) -> Self {
        for (role, _) in Role::ALL {
            self.styles[role as usize] = role.mono();
        }
        self.mono = true;
        self
    }

    /// The same drawn with ASCII only, or not.
    pub fn with_ascii(mut self, ascii: bool) -> Self {
        self.ascii = ascii;
        self
    }

    /// The background it was made for; never drawn on a terminal, which has its own.
    pub fn ground(&self) -> Color {
        self.background.unwrap_or(Color::Black)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether only ASCII is drawn.
    pub fn is_ascii(&self) -> bool {
        self.ascii
    }

    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.styles[role as usize]
    }

    /// The style of the target's label, in the colour that its settings ask for.
    pub fn label(&self, colour: Option<&str>) -> Style {
        let style = self.style(Role::Label);
        match colour.and_then(|c| c.parse::<Color>().ok()) {
            Some(bg) if !self.mono => style.bg(bg).fg(readable_on(bg)),
            _ => style,
        }
    }
}

/// The file with everything it inherits filled in.
fn merged(text: &str, depth: u8) -> Result<File, ThemeError> {
    let mut file: File = toml::from_str(text)
        .map_err(|e| ThemeError::Bad { name: "?".to_owned(), text: e.message().to_owned() })?;
    let Some(parent) = file.inherits.take() else { return Ok(file) };
    let bad = |text: &str| ThemeError::Bad { name: file.name.clone(), text: text.to_owned() };
    let Some((_, text)) = BUILT_IN.iter().find(|(n, _)| *n == parent).filter(|_| depth < 8) else {
        return Err(bad(&format!("cannot inherit {parent:?}")));
    };
    let parent = merged(text, depth + 1)?;
    for (word, colour) in parent.palette {
        file.palette.entry(word).or_insert(colour);
    }
    for (role, looks) in parent.roles {
        file.roles.entry(role).or_insert(looks);
    }
    file.background = file.background.or(parent.background);
    Ok(file)
}

/// Black or white, whichever can be read on `bg`.
fn readable_on(bg: Color) -> Color {
    match rgb(bg) {
        Some(c) if luminance(c) > 0.18 => Color::Indexed(16),
        _ => Color::Indexed(231),
    }
}

/// Red, green and blue of a colour that has fixed ones.
fn rgb(colour: Color) -> Option<(u8, u8, u8)> {
    match colour {
        Color::Rgb(r, g, b) => Some((r, g, b)),
        Color::Indexed(i @ 16..=231) => {
            let i = i - 16;
            let part = |n: u8| if n == 0 { 0 } else { 55 + n * 40 };
            Some((part(i / 36), part(i / 6 % 6), part(i % 6)))
        }
        Color::Indexed(i @ 232..) => {
            let v = 8 + (i - 232) * 10;
            Some((v, v, v))
        }
        // the first sixteen and the names are the terminal's own choice; these are the usual ones
        Color::Red | Color::Indexed(1) => Some((205, 0, 0)),
        Color::Green | Color::Indexed(2) => Some((0, 205, 0)),
        Color::Yellow | Color::Indexed(3) => Some((205, 205, 0)),
        Color::LightRed => Some((255, 0, 0)),
        Color::LightGreen => Some((0, 255, 0)),
        Color::LightYellow => Some((255, 255, 0)),
        Color::White | Color::Gray => Some((229, 229, 229)),
        _ => None,
    }
}

/// Relative luminance, 0–1.
fn luminance((r, g, b): (u8, u8, u8)) -> f64 {
    let part = |c: u8| {
        let c = f64::from(c) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contrast(a: Color, b: Color) -> f64 {
        let (a, b) = (luminance(rgb(a).unwrap()), luminance(rgb(b).unwrap()));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_built_in_theme_has_every_role_and_its_own_name() {
        for name in Theme::names() {
            assert_eq!(Theme::load(name).unwrap().name(), name);
        }
        for (i, (role, _)) in Role::ALL.iter().enumerate() {
            assert_eq!(*role as usize, i);
        }
    }

    #[test]
    fn every_text_role_can_be_read_on_its_background() {
        for name in Theme::names() {
            let theme = Theme::load(name).unwrap();
            let ground = theme.background.unwrap();
            for (role, word) in Role::ALL {
                // frames are not read
                if matches!(role, Role::Border) {
                    continue;
                }
                let style = theme.style(role);
                let Some(fg) = style.fg else { continue };
                let c = contrast(fg, style.bg.unwrap_or(ground));
                assert!(c >= 4.5, "{name}: {word} has a contrast of {c:.1}");
                // a selected row keeps its own colours on the ground of the selection
                if style.bg.is_none() {
                    let c = contrast(fg, theme.style(Role::Selection).bg.unwrap());
                    assert!(c >= 4.5, "{name}: {word} has a contrast of {c:.1} when selected");
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_with_a_theme_is_named() {
        let e = Theme::load("solarised").unwrap_err().to_string();
        assert!(e.contains("solarised") && e.contains("dark, light"), "{e}");
        let e =
            Theme::parse("name = \"x\"\ninherits = \"dark\"\n[roles]\nwrn = {}").unwrap_err().to_string();
        assert!(e.contains("wrn"), "{e}");
        let e = Theme::parse("name = \"x\"\ninherits = \"dark\"\n[roles]\nwarn = { fg = \"gren\" }");
        assert!(e.unwrap_err().to_string().contains("gren"));
    }

    #[test]
    fn without_colour_there_is_none() {
        let theme = Theme::load("dark").unwrap().without_colour();
        for (role, _) in Role::ALL {
            let style = theme.style(role);
            assert_eq!((style.fg, style.bg), (None, None));
        }
        assert_eq!(theme.label(Some("red")).bg, None);
    }
}
