//! A sample for pipes and machines: text and JSON. No escape bytes, no terminal.

pub mod check;
mod evidence;
mod json;
mod line;
mod text;

pub use json::{lease, status};
pub use line::event;
pub use text::{leases, status as status_text};
