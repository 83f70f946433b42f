//! What a piece of the screen is, as far as its looks go.

use ratatui::style::{Modifier, Style};

use crate::app::health::Level;

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
    pub(super) fn mono(self) -> Style {
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
