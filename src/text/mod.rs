//! Untrusted text made safe, cell widths, and numbers for people.
//!
//! Everything that came from a database goes through [`clean`] exactly once, where it enters.

mod clean;
mod ident;
mod people;
mod statement;
mod time;
mod width;

pub use clean::{clean, clean_block};
pub use ident::{CHANNEL_MAX_BYTES, channel_problem, qualified, quote_ident, quote_literal};
pub use people::{age, ago, bytes_count, count, percent, rate};
pub use statement::without_literals;
pub use time::{keep_text, parse_keep, parse_time, time_text};
pub use width::{fit, fit_middle, pad_left, width, wrap};
