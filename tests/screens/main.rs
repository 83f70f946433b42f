//! The screen as a whole: what events and keys make of it, and how it looks.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod alerts;
mod diagnosis;
mod evidence;
#[path = "../support/fixtures.rs"]
mod fixtures;
mod help;
mod mouse;
mod on_job;
mod pictures;
mod sizes;
mod update;
