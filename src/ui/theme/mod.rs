//! Colours: roles on a palette, from TOML.

mod colour;
mod file;
mod role;
mod shelf;

pub use role::Role;
pub use shelf::Themes;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use colour::{nearest, readable_on};
use file::File;

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

/// A style for every role, and how glyphs are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    name: String,
    styles: [Style; Role::ALL.len()],
    /// What contrast is checked against.
    background: Option<Color>,
    /// Whether the background is drawn; otherwise it is the terminal's own.
    filled: bool,
    ascii: bool,
    mono: bool,
}

impl Theme {
    /// The built-in theme `name`.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn load(name: &str) -> Result<Self, ThemeError> {
        Themes::built_in().get(name)
    }

    /// A theme from a file with everything filled in that it inherits.
    fn from_file(file: &File) -> Result<Self, ThemeError> {
        let colour = |word: &String| {
            let word = file.palette.get(word).unwrap_or(word);
            word.parse::<Color>()
                .map_err(|_| file.bad(format!("{word:?} is neither in the palette nor a colour")))
        };
        let mut styles = [Style::new(); Role::ALL.len()];
        for (role, name) in Role::ALL {
            let looks =
                file.roles.get(name).ok_or_else(|| file.bad(format!("the role {name:?} is missing")))?;
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
        let filled = file.filled.unwrap_or(false);
        if filled && background.is_none() {
            return Err(file.bad("filled needs a background"));
        }
        // a theme without any colour has none in the head line either
        let mono = styles.iter().all(|s| s.fg.is_none() && s.bg.is_none());
        Ok(Self { name: file.name.clone(), styles, background, filled, ascii: false, mono })
    }

    /// The same without any colour: symbols, words and weight carry the meaning.
    pub fn without_colour(mut self) -> Self {
        for (role, _) in Role::ALL {
            self.styles[role as usize] = role.mono();
        }
        self.filled = false;
        self.mono = true;
        self
    }

    /// The same for a terminal that knows 256 colours.
    pub fn in_256_colours(mut self) -> Self {
        for style in &mut self.styles {
            style.fg = style.fg.map(nearest);
            style.bg = style.bg.map(nearest);
        }
        self.background = self.background.map(nearest);
        self
    }

    /// The same on the terminal's own background.
    pub fn unfilled(mut self) -> Self {
        self.filled = false;
        self
    }

    /// The same drawn with ASCII only, or not.
    pub fn with_ascii(mut self, ascii: bool) -> Self {
        self.ascii = ascii;
        self
    }

    /// The background it was made for; drawn only if the theme says so.
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

    /// The style of the head line, in the colour that the target's settings ask for; `None` leaves it as it is.
    pub fn bar(&self, colour: Option<&str>) -> Option<Style> {
        let bg = colour.and_then(|c| c.parse::<Color>().ok()).filter(|_| !self.mono)?;
        Some(Style::new().bg(bg).fg(readable_on(bg)))
    }

    /// The background that is drawn, if any.
    pub fn fill(&self) -> Option<Color> {
        self.background.filter(|_| self.filled)
    }

    /// Draws the background under everything that has none of its own.
    pub(super) fn lay_under(&self, buf: &mut Buffer) {
        let Some(ground) = self.fill() else { return };
        let text = self.style(Role::Text).fg.unwrap_or(Color::Reset);
        for cell in &mut buf.content {
            if cell.bg == Color::Reset {
                cell.bg = ground;
            }
            if cell.fg == Color::Reset {
                cell.fg = text;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::colour::contrast;
    use super::*;

    fn all() -> Vec<Theme> {
        let themes = Themes::built_in();
        themes.names().map(|n| themes.get(n).unwrap()).collect()
    }

    #[test]
    fn roles_stand_in_their_order() {
        for (i, (role, _)) in Role::ALL.iter().enumerate() {
            assert_eq!(*role as usize, i);
        }
    }

    #[test]
    fn every_text_role_can_be_read_on_its_background() {
        for theme in all() {
            let name = theme.name();
            let ground = theme.background.unwrap();
            // a theme on the terminal's own background is read on what terminals usually have
            let dark = colour::luminance(colour::rgb(ground).unwrap()) < 0.2;
            let usual = if dark { Color::Rgb(0, 0, 0) } else { Color::Rgb(255, 255, 255) };
            let grounds = if theme.filled { vec![ground] } else { vec![ground, usual] };
            for (role, word) in Role::ALL {
                // frames are not read
                if matches!(role, Role::Border) {
                    continue;
                }
                let style = theme.style(role);
                let Some(fg) = style.fg else { continue };
                for ground in &grounds {
                    let c = contrast(fg, style.bg.unwrap_or(*ground)).unwrap();
                    assert!(c >= 4.5, "{name}: {word} has a contrast of {c:.1}");
                }
                // a selected row keeps its own colours on the ground of the selection
                if let (None, Some(selected)) = (style.bg, theme.style(Role::Selection).bg) {
                    let c = contrast(fg, selected).unwrap();
                    assert!(c >= 4.5, "{name}: {word} has a contrast of {c:.1} when selected");
                }
            }
        }
    }

    #[test]
    fn a_bar_of_any_colour_can_be_read() {
        let theme = Theme::load("dark").unwrap();
        for colour in ["red", "#ff8800", "yellow", "201", "blue", "#000000", "white", "green", "52"] {
            let bar = theme.bar(Some(colour)).unwrap();
            if let Some(c) = contrast(bar.fg.unwrap(), bar.bg.unwrap()) {
                assert!(c >= 4.5, "{colour}: {c:.1}");
            }
        }
        assert_eq!(theme.bar(Some("nonsense")), None);
        assert_eq!(theme.bar(None), None);
    }

    #[test]
    fn what_is_wrong_with_a_theme_is_named() {
        let add = |text: &str| Themes::built_in().add(text).unwrap_err().to_string();
        let e = Theme::load("solarised").unwrap_err().to_string();
        assert!(e.contains("solarised") && e.contains("dark, light"), "{e}");
        let e = add("name = \"x\"\ninherits = \"dark\"\n[roles]\nwrn = {}");
        assert!(e.contains("wrn"), "{e}");
        let e = add("name = \"x\"\ninherits = \"dark\"\n[roles]\nwarn = { fg = \"gren\" }");
        assert!(e.contains("gren"), "{e}");
        let e = add("name = \"x\"\ncolor = \"red\"");
        assert!(e.contains("line 2") && e.contains("color"), "{e}");
    }

    #[test]
    fn without_colour_there_is_none_and_mono_is_that() {
        let mono = Theme::load("mono").unwrap();
        assert_eq!(mono.bar(Some("red")), None);
        for theme in all() {
            let theme = theme.without_colour();
            for (role, _) in Role::ALL {
                let style = theme.style(role);
                assert_eq!((style.fg, style.bg), (None, None));
                assert_eq!(style, mono.style(role), "{role:?}");
            }
            assert_eq!(theme.bar(Some("red")), None);
            assert_eq!(theme.fill(), None);
        }
    }

    #[test]
    fn in_256_colours_no_other_is_left() {
        for theme in all() {
            let theme = theme.in_256_colours();
            for (role, _) in Role::ALL {
                let style = theme.style(role);
                for colour in [style.fg, style.bg, theme.fill()].into_iter().flatten() {
                    assert!(!matches!(colour, Color::Rgb(..)), "{}: {role:?}", theme.name());
                }
            }
        }
    }
}
