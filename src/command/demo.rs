//! stub
pub(super) fn run(_: &crate::cli::Demo) -> super::Outcome { Ok(()) }
