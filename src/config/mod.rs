//! Settings (file, environment, flags) and the one key table.

mod file;
mod key;
mod keymap;
pub mod keys;
mod reader;
mod rules;
mod settings;
mod table;
mod target;

pub use keymap::Keymap;
pub use reader::ConfigError;
pub use settings::{Alerts, HandlerKind, Handling, Notify, Sampling, Settings, Thresholds, Worker};
pub use target::Target;
