//! One file per subcommand; each wires the rooms below and holds no logic of its own.

pub mod screen;

/// Runs the program.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
