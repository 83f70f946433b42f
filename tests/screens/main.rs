//! The screen as a whole: what events and keys make of it, and how it looks.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod alerts;
mod diagnosis;
#[path = "../support/fixtures.rs"]
mod fixtures;
mod help;
mod mouse;
mod pictures;
mod sizes;
mod update;
