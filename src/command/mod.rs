//! One file per subcommand: wires the rooms below, holds no logic.

pub mod screen;
