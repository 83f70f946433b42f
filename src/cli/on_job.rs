//! Arguments of `retry`, `give-up` and `run-now`.

use clap::Args;

/// Options of `retry`, `give-up` and `run-now`.
#[derive(Debug, Args)]
pub struct OnJob {
    /// Ids of jobs.
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    /// Why, for the audit.
    #[arg(long, default_value = "from the command line")]
    pub reason: String,
}
