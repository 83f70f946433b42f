//! A throwaway PostgreSQL to play with: found, started, broken on purpose, and gone without a trace.

pub mod binaries;
mod cluster;
mod folder;
mod reaper;
pub mod server;

pub use binaries::{Binaries, NoBinaries};
pub use server::{Halt, Options, Server, ServerError};
