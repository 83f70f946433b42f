//! Options of `check`.

use std::time::Duration;

use clap::Args;

use super::duration;
use crate::report::check::{Range, wanted};

/// Options of `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Connection string or database name.
    pub conninfo: Option<String>,
    /// A figure and the range outside which it warns, as oldest_ready=60; repeatable. Ranges: 10, 10:, ~:10, 10:20, @10:20.
    #[arg(long, short = 'W', value_name = "NAME=RANGE", value_parser = wanted)]
    pub warning: Vec<(String, Range)>,
    /// The same for what is critical.
    #[arg(long, short = 'C', value_name = "NAME=RANGE", value_parser = wanted)]
    pub critical: Vec<(String, Range)>,
    /// Without an answer within this time the state is UNKNOWN.
    #[arg(long, short = 't', value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub timeout: Duration,
}
