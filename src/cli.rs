//! Arguments. As in psql, `-h` is the host; help is `--help` and `-?`.

mod check;
mod on_job;

use std::path::PathBuf;
use std::time::Duration;

pub use check::Check;
pub use on_job::OnJob;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

/// A terminal dashboard for work queues kept in PostgreSQL tables.
#[derive(Debug, Parser)]
#[command(
    name = "pgwake",
    version,
    disable_help_flag = true,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = false,
    subcommand_negates_reqs = true,
    after_help = "Without a command: the dashboard. PG* environment variables are read as by psql."
)]
pub struct Cli {
    /// What to do; nothing: the dashboard.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Connection string, database name, or @NAME of a target of the configuration file.
    #[arg(value_name = "CONNINFO|@NAME")]
    pub conninfo: Option<String>,
    /// How the dashboard behaves.
    #[command(flatten)]
    pub dashboard: Dashboard,
    /// Where to connect.
    #[command(flatten)]
    pub connect: Connect,
    /// Print help.
    #[arg(long, short = '?', action = ArgAction::Help, global = true)]
    help: Option<bool>,
}

/// Connection options, the same for every command.
#[derive(Clone, Debug, Default, Args)]
pub struct Connect {
    /// Server host, or the folder of a unix socket.
    #[arg(short = 'h', long, global = true, value_name = "HOST")]
    pub host: Option<String>,
    /// Server port.
    #[arg(short, long, global = true, value_name = "PORT")]
    pub port: Option<String>,
    /// Role.
    #[arg(short = 'U', long = "username", global = true, value_name = "NAME")]
    pub user: Option<String>,
    /// Database, or a connection string.
    #[arg(short, long, global = true, value_name = "DBNAME")]
    pub dbname: Option<String>,
    /// Ledger profile: a built-in name (jobs, outbox, jobs-plain) or a TOML file; repeatable. Without it,
    /// every ledger of a known profile that exists.
    #[arg(long, global = true, value_name = "NAME|FILE")]
    pub profile: Vec<String>,
    /// Configuration file [default: $XDG_CONFIG_HOME/pgwake/config.toml].
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// How the screen looks.
#[derive(Clone, Debug, Default, Args)]
pub struct Looks {
    /// Theme by name; t tries them all [default: dark].
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// Draw with ASCII characters only.
    #[arg(long)]
    pub ascii: bool,
    /// Take the mouse: the wheel scrolls, a click selects.
    #[arg(long)]
    pub mouse: bool,
}

/// Options of the dashboard.
#[derive(Clone, Debug, Args)]
pub struct Dashboard {
    /// Take every action away.
    #[arg(long)]
    pub read_only: bool,
    /// Pause between samples [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub interval: Option<Duration>,
    /// Handler of the embedded worker, over that of the configuration file; exec runs the command of the file.
    #[arg(long, value_name = "HANDLER")]
    pub handler: Option<HandlerName>,
    /// How it looks.
    #[command(flatten)]
    pub looks: Looks,
    /// Show the payload of a job as soon as the job is opened; without this, only when a key asks for it.
    #[arg(long)]
    pub show_payloads: bool,
    /// Also write every event to this new file, one JSON line each; payloads are never in it.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

/// Handlers that ship.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HandlerName {
    /// Sleeps as the payload says.
    Simulate,
    /// Does nothing.
    Noop,
    /// Runs a command for each job, that after "--" or that of the configuration file: payload on standard input, exit 0 is done, 75 is later.
    Exec,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// A throwaway PostgreSQL with producers, workers and the dashboard; faults on F.
    Demo(Demo),
    /// A drain worker without a screen.
    Work(Work),
    /// Add one job, or many from standard input.
    Enqueue(Enqueue),
    /// Create or upgrade the schema.
    Migrate(Migrate),
    /// Print the settings in force, or a commented example.
    Config(Config),
    /// One sample for pipes and cron.
    Status(Status),
    /// One line for a monitoring system: OK, WARNING, CRITICAL or UNKNOWN as exit code 0, 1, 2 or 3.
    Check(Check),
    /// List the leases.
    Leases(Leases),
    /// Give held jobs back to the queue.
    Release(Release),
    /// Make failed jobs ready again, due now.
    Retry(OnJob),
    /// Mark ready or scheduled jobs failed.
    GiveUp(OnJob),
    /// Make scheduled jobs due now.
    RunNow(OnJob),
    /// Fault drills, judged by the ledger's final state; on a throwaway server unless one is named.
    Drill(Drill),
    /// A recording on the screen, with time control.
    Replay(Replay),
    /// What to do about an alert, as Markdown; all of them without a name.
    Runbook(Runbook),
    /// SVG pictures from a recording.
    Screenshot(Screenshot),
}

/// Options of `runbook`.
#[derive(Debug, Args)]
pub struct Runbook {
    /// Name of an alert, such as no-worker.
    pub name: Option<String>,
}

/// Options of `demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// Folder with the PostgreSQL server binaries.
    #[arg(long, value_name = "DIR")]
    pub pg_bin: Option<PathBuf>,
    /// Jobs per second that the producers add.
    #[arg(long, default_value_t = 40.0)]
    pub rate: f64,
    /// Run without a screen and print the final sample as JSON.
    #[arg(long)]
    pub headless: bool,
    /// How long to run without a screen.
    #[arg(long, value_name = "N", default_value_t = 20, requires = "headless")]
    pub seconds: u64,
    /// How it looks.
    #[command(flatten)]
    pub looks: Looks,
    /// Also write every event to this new file, one JSON line each; payloads are never in it.
    #[arg(long, value_name = "FILE", conflicts_with = "headless")]
    pub record: Option<PathBuf>,
}

/// Options of `work`.
#[derive(Debug, Args)]
pub struct Work {
    /// Connection string or database name.
    pub conninfo: Option<String>,
    /// What to do with a job; without it, what the configuration file says. simulate and noop do no work: the
    /// ledger must be marked as scratch.
    #[arg(long, value_name = "HANDLER")]
    pub handler: Option<HandlerName>,
    /// With --handler exec: longest that a command may run; then it is stopped, a failed attempt.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub job_timeout: Option<Duration>,
    /// The program and its arguments, for --handler exec.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
    /// End when nothing is due and nothing is held by this worker.
    #[arg(long)]
    pub until_empty: bool,
    /// The first wake-up after a quiet spell scans at once.
    #[arg(long)]
    pub eager: bool,
    /// Jobs per claim [default: 10].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub batch: Option<u16>,
    /// Jobs in hand at once [default: 10].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub concurrency: Option<u16>,
    /// Work sessions; one is enough for all but the fastest queues [default: 1].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub sessions: Option<u16>,
    /// Length of a lease, 1s to 24h; renewed at a third [default: 2m].
    #[arg(long, value_name = "TIME", value_parser = lease)]
    pub lease: Option<Duration>,
    /// Scan after this long without a wake-up, 1s to 1h [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = fallback)]
    pub fallback: Option<Duration>,
    /// Wait this long after a wake-up, so that others fold into one scan, 100ms to 300ms [default: 200ms].
    #[arg(long, value_name = "TIME", value_parser = debounce)]
    pub debounce: Option<Duration>,
    /// Jobs per 30 s before the load is looked at, or "off" [default: 200].
    #[arg(long, value_name = "N|off", value_parser = budget)]
    pub budget: Option<Budget>,
    /// How long jobs in hand may take to end on shutdown [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub grace: Option<Duration>,
    /// How long done jobs stay: "forever", a time as in 7d, or 0 to delete each when it is done; failed jobs
    /// always stay [default: forever].
    #[arg(long, value_name = "TIME|forever", value_parser = keep)]
    pub keep: Option<Keep>,
    /// Name on the leases; unique per process.
    #[arg(long)]
    pub name: Option<String>,
}

/// A drain budget, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(pub Option<u64>);

/// How long done jobs stay; `None` for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep(pub Option<Duration>);

/// Options of `enqueue`.
#[derive(Debug, Args)]
pub struct Enqueue {
    /// Type of the job, or topic of the message.
    #[arg(value_name = "TYPE")]
    pub job_type: String,
    /// Payload as JSON; "-" reads one payload a line from standard input.
    #[arg(value_name = "PAYLOAD", default_value = "{}")]
    pub payload: String,
    /// Message key, where the ledger has one.
    #[arg(long)]
    pub key: Option<String>,
    /// Not before this much later.
    #[arg(long = "in", value_name = "TIME", value_parser = duration)]
    pub after: Option<Duration>,
}

/// Options of `config`.
#[derive(Debug, Args)]
pub struct Config {
    /// Every setting with its default and what it is.
    #[arg(long)]
    pub example: bool,
}

/// Options of `migrate`.
#[derive(Debug, Args)]
pub struct Migrate {
    /// Connection string or database name.
    pub conninfo: Option<String>,
    /// Print the SQL instead of running it.
    #[arg(long)]
    pub print: bool,
    /// Print the SQL that creates the roles pgwake_watcher and pgwake_operator with the least rights.
    #[arg(long, conflicts_with = "print")]
    pub print_roles: bool,
    /// Also mark the (empty) ledgers as scratch: handlers that do no work may run on them.
    #[arg(long)]
    pub scratch: bool,
}

/// Options of `status`.
#[derive(Debug, Args)]
pub struct Status {
    /// Connection string or database name.
    pub conninfo: Option<String>,
    /// As JSON: one object with one entry per ledger.
    #[arg(long)]
    pub json: bool,
    /// Again every interval, until interrupted.
    #[arg(long)]
    pub watch: bool,
    /// Pause between samples with --watch.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub interval: Duration,
}

/// Options of `leases`.
#[derive(Debug, Args)]
pub struct Leases {
    /// Connection string or database name.
    pub conninfo: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `release`.
#[derive(Debug, Args)]
pub struct Release {
    /// Ids of held jobs, expired or not.
    #[arg(value_name = "ID", conflicts_with_all = ["expired", "holder"])]
    pub ids: Vec<String>,
    /// All expired leases.
    #[arg(long)]
    pub expired: bool,
    /// Only expired leases of this holder.
    #[arg(long, value_name = "NAME")]
    pub holder: Option<String>,
    /// Say what would be released, and release nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    /// Why, for the audit.
    #[arg(long, default_value = "from the command line")]
    pub reason: String,
}

/// Options of `drill`.
#[derive(Debug, Args)]
pub struct Drill {
    /// Names of drills, or "all".
    #[arg(default_value = "all")]
    pub names: Vec<String>,
    /// Run on this server (connection string, database name or @NAME), and not on a throwaway one. Each drill
    /// creates a database of its own there, pgwake_drill_…, and drops it again, also after an interrupt: the
    /// role needs CREATEDB. What would break the server itself is not run.
    #[arg(long, value_name = "CONNINFO", conflicts_with = "pg_bin")]
    pub on: Option<String>,
    /// Say which drills there are, and run none.
    #[arg(long)]
    pub list: bool,
    /// Folder with the PostgreSQL server binaries.
    #[arg(long, value_name = "DIR")]
    pub pg_bin: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `replay`.
#[derive(Debug, Args)]
pub struct Replay {
    /// A recording, as `--record` writes it.
    #[arg(value_name = "RECORDING")]
    pub recording: PathBuf,
    /// Where to begin, counted from the beginning of the recording.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub at: Option<Duration>,
    /// How it looks.
    #[command(flatten)]
    pub looks: Looks,
}

/// Options of `screenshot`.
#[derive(Debug, Args)]
pub struct Screenshot {
    /// A recording, as `--record` writes it.
    #[arg(value_name = "RECORDING", required_unless_present = "all")]
    pub recording: Option<PathBuf>,
    /// Every picture that tests/recordings/pictures.toml names, into a folder (default: screenshots).
    #[arg(long, conflicts_with_all = ["recording", "screen", "size", "at", "keys"])]
    pub all: bool,
    /// Number of the screen.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=9))]
    pub screen: u8,
    /// Size in cells.
    #[arg(long, value_name = "WxH", value_parser = size, default_value = "120x36")]
    pub size: (u16, u16),
    /// Theme; with --all only the pictures of this theme.
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// The moment, counted from the beginning of the recording; its end without this.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub at: Option<Duration>,
    /// Keys to type before the picture is taken; "\n" is Enter.
    #[arg(long, default_value = "")]
    pub keys: String,
    /// Where to write: a file, or a folder for --all; standard output without this.
    #[arg(short, long, value_name = "FILE|DIR")]
    pub output: Option<PathBuf>,
}

/// `120x36`.
pub fn size(text: &str) -> Result<(u16, u16), String> {
    let (width, height) = text.split_once(['x', 'X']).ok_or("a size is WIDTHxHEIGHT, as in 120x36")?;
    let part = |text: &str| match text.parse() {
        Ok(n @ 1..=1000) => Ok(n),
        _ => Err("width and height lie between 1 and 1000 cells".to_owned()),
    };
    Ok((part(width)?, part(height)?))
}

/// `500ms`, `30s`, `2m`, `1h`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    crate::text::parse_time(text)
}

/// A time within bounds, which the error names.
fn between(text: &str, what: &str, least: &str, most: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if (duration(least)?..=duration(most)?).contains(&time) {
        Ok(time)
    } else {
        Err(format!("{what} lies between {least} and {most}"))
    }
}

fn debounce(text: &str) -> Result<Duration, String> {
    between(text, "the debounce", "100ms", "300ms")
}

/// Shorter than a second a lease could end while its renewal is under way.
fn lease(text: &str) -> Result<Duration, String> {
    between(text, "a lease", "1s", "24h")
}

/// More often than every second the fallback would be polling; rarer than every hour it is no safety net.
fn fallback(text: &str) -> Result<Duration, String> {
    between(text, "the fallback", "1s", "1h")
}

fn keep(text: &str) -> Result<Keep, String> {
    crate::text::parse_keep(text).map(Keep)
}

fn budget(text: &str) -> Result<Budget, String> {
    match text {
        "off" => Ok(Budget(None)),
        number => match number.parse() {
            Ok(n) if n > 0 => Ok(Budget(Some(n))),
            _ => Err("the budget is a number of jobs from 1, or off".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn h_is_the_host_as_in_psql() {
        let cli =
            Cli::try_parse_from(["pgwake", "-h", "db-1", "-p", "6000", "status", "-U", "me"]).unwrap();
        assert_eq!(cli.connect.host.as_deref(), Some("db-1"));
        assert_eq!(cli.connect.user.as_deref(), Some("me"));
        assert!(matches!(cli.command, Some(Command::Status(_))));
    }

    #[test]
    fn sizes_are_two_numbers() {
        assert_eq!(size("80x24"), Ok((80, 24)));
        for bad in ["80", "0x5", "80x", "9999x9999"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_need_a_sane_number_and_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("30"), Ok(Duration::from_secs(30)));
        for bad in ["", "x", "5 days", "0s", "-1s", "1e9h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert!(debounce("99ms").is_err() && debounce("301ms").is_err());
    }
}
