//! Settings and the one key table.

mod keymap;
pub mod keys;
mod settings;

pub use keymap::Keymap;
pub use settings::{Sampling, Thresholds, Worker};
