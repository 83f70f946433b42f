//! The real terminal: entering and leaving it, what is typed, and when to draw.

mod alarm;
mod colours;
mod guard;
mod input;
mod job;
mod locale;
mod pace;

pub use alarm::Alarm;
pub use colours::{Colours, colours};
pub use guard::{Guard, TerminalError, is_alive, panicked, watch_panics};
pub use input::message;
pub use job::{continue_signal, may_stop, stop, stop_signal};
pub use locale::is_utf8;
pub use pace::Pace;
