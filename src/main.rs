//! The binary: exit codes, nothing else.

fn main() -> std::process::ExitCode {
    pgwake::command::main()
}
