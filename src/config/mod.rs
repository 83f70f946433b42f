//! Settings and the one key table.

pub mod keys;
mod settings;

pub use settings::{Sampling, Thresholds, Worker};
