//! Every setting of the file, in one table: it reads the file and prints the example.

use super::reader::Value;
use super::rules::{budget, command, handler, keep, limit, notify, share, switch, time, whole, word};
use super::settings::{HandlerKind, Notify, Settings};
use crate::text::{keep_text, time_text};
use std::time::Duration;

/// One setting.
pub(super) struct Setting {
    /// The table it stands in; empty at the top.
    pub(super) section: &'static str,
    /// Its key.
    pub(super) key: &'static str,
    /// What it is, for the example.
    pub(super) help: &'static str,
    /// Takes a value, or says what it must be.
    pub(super) set: fn(&mut Settings, &Value) -> Result<(), String>,
    /// The value as TOML.
    pub(super) get: fn(&Settings) -> String,
}

/// The tables, in the order of the example, with a word on each.
pub(super) const SECTIONS: &[(&str, &str)] = &[
    ("", ""),
    ("thresholds", "When a figure needs attention."),
    ("alerts", "When an alert fires and is resolved, and whether it is told outside the screen."),
    ("sampling", "How the database is looked at. Every sample costs the server something."),
    ("worker", "How a drain worker behaves: the one inside the dashboard, and `pgwake work`."),
];

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn time_toml(time: Duration) -> String {
    quoted(&time_text(time))
}

fn number(n: f64) -> String {
    format!("{n:?}")
}

/// A row: `row!(section, key, help, field path, rule, printer)`.
macro_rules! row {
    ($section:literal, $key:literal, $help:literal, $($field:ident).+, $rule:expr, $show:expr) => {
        Setting {
            section: $section,
            key: $key,
            help: $help,
            set: |s, value| {
                let rule: fn(&Value) -> Result<_, String> = $rule;
                s.$($field).+ = rule(value)?;
                Ok(())
            },
            get: |s| $show(&s.$($field).+),
        }
    };
}

fn seconds(value: &Value) -> Result<f64, String> {
    time(value, "1ms", "168h").map(|t| t.as_secs_f64())
}

fn milliseconds(value: &Value) -> Result<f64, String> {
    seconds(value).map(|s| s * 1e3)
}

fn show_seconds(s: &f64) -> String {
    time_toml(Duration::from_secs_f64(*s))
}

fn show_milliseconds(ms: &f64) -> String {
    time_toml(Duration::from_secs_f64(*ms / 1e3))
}

fn show_time(t: &Duration) -> String {
    time_toml(*t)
}

fn show_word(text: impl AsRef<str>) -> String {
    quoted(text.as_ref())
}

fn show_share(n: &f64) -> String {
    number(*n)
}

fn show<T: ToString>(value: &T) -> String {
    value.to_string()
}

fn show_budget(budget: &Option<u64>) -> String {
    budget.map_or_else(|| quoted("off"), |n| n.to_string())
}

fn show_handler(handler: &Option<HandlerKind>) -> String {
    quoted(match handler {
        None => "auto",
        Some(HandlerKind::Exec) => "exec",
        Some(HandlerKind::Noop) => "noop",
        Some(HandlerKind::Simulate) => "simulate",
    })
}

fn show_notify(notify: &Notify) -> String {
    quoted(match notify {
        Notify::Off => "off",
        Notify::Osc9 => "osc9",
        Notify::Osc777 => "osc777",
    })
}

fn show_command(words: &[String]) -> String {
    format!("[{}]", words.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(", "))
}

fn show_limit(limit: &Option<Duration>) -> String {
    limit.map_or_else(|| quoted("off"), time_toml)
}

fn show_keep(keep: &Option<Duration>) -> String {
    quoted(&keep_text(*keep))
}

fn count(value: &Value) -> Result<i64, String> {
    whole(value, 1, 1_000_000)
}

fn jobs(value: &Value) -> Result<usize, String> {
    whole(value, 1, 10_000).map(|n| usize::try_from(n).unwrap_or(1))
}

fn sessions(value: &Value) -> Result<usize, String> {
    whole(value, 1, 16).map(|n| usize::try_from(n).unwrap_or(1))
}

fn debounce(value: &Value) -> Result<Duration, String> {
    time(value, "100ms", "300ms")
}

fn lease(value: &Value) -> Result<Duration, String> {
    time(value, "1s", "24h")
}

fn fallback(value: &Value) -> Result<Duration, String> {
    time(value, "1s", "1h")
}

fn interval(value: &Value) -> Result<Duration, String> {
    time(value, "100ms", "1h")
}

fn any_time(value: &Value) -> Result<Duration, String> {
    time(value, "1ms", "168h")
}

fn probe_timeout(value: &Value) -> Result<Duration, String> {
    time(value, "10ms", "500ms")
}

#[rustfmt::skip]
pub(super) const SETTINGS: &[Setting] = &[
    row!("", "theme", "Name of a theme; t tries them. Files in the folder `themes` beside this one add to them.", theme, word, show_word),
    row!("", "theme_background", "Whether a theme may draw a background of its own.", theme_background, switch, show),
    row!("", "ascii", "Draw with ASCII only, whatever the locale says.", ascii, switch, show),
    row!("", "mouse", "Take the mouse: the wheel scrolls, a click selects. Selecting text then needs Shift.", mouse, switch, show),
    row!("", "show_payloads", "Show payloads of jobs without being asked.", show_payloads, switch, show),
    row!("", "read_only", "Take every action away.", read_only, switch, show),
    row!("thresholds", "oldest_ready", "Age of the oldest job that is due.", thresholds.oldest_ready_s, seconds, show_seconds),
    row!("thresholds", "queue_usage_warn", "Share of the server's notification queue that warns.", thresholds.queue_usage_warn, share, show_share),
    row!("thresholds", "queue_usage_critical", "And that is critical at once.", thresholds.queue_usage_critical, share, show_share),
    row!("thresholds", "claim_success", "Share of claimed jobs that end well, below which it warns.", thresholds.claim_success, share, show_share),
    row!("thresholds", "recovery_p95", "From losing the listen session to the end of the scan after it, p95.", thresholds.recovery_p95_s, seconds, show_seconds),
    row!("thresholds", "claim_p99", "The claim statement, p99.", thresholds.claim_p99_ms, milliseconds, show_milliseconds),
    row!("thresholds", "long_transaction", "A transaction older than this is listed.", thresholds.long_transaction_s, seconds, show_seconds),
    row!("thresholds", "fallback_share", "Share of jobs found without a wake-up, above which wake-ups do not arrive.", thresholds.fallback_share, share, show_share),
    row!("thresholds", "stale", "A sample older than this is called stale.", thresholds.stale_s, seconds, show_seconds),
    row!("thresholds", "listener_transaction", "Open transactions of sessions that listen, p99: they hold the notification queue.", thresholds.listener_transaction_s, seconds, show_seconds),
    row!("alerts", "bell", "Ring the terminal's bell when one fires.", alerts.bell, switch, show),
    row!("alerts", "notify", "Ask the terminal for a desktop notification: \"off\", \"osc9\" or \"osc777\".", alerts.notify, notify, show_notify),
    row!("alerts", "queue_usage_for", "How long the share of the notification queue that warns must last.", thresholds.queue_usage_for_s, seconds, show_seconds),
    row!("alerts", "broken_for", "How long no worker, a locked table, a held NOTIFY lock, a deaf listener or failing claims must last.", thresholds.broken_for_s, seconds, show_seconds),
    row!("alerts", "resolve_after", "One that fires is resolved when its figure was clearly good for so long.", thresholds.resolve_after_s, seconds, show_seconds),
    row!("sampling", "interval", "Pause between two samples.", sampling.interval, interval, show_time),
    row!("sampling", "cap", "A count stops here and is shown as at least that.", sampling.cap, count, show),
    row!("sampling", "leases", "At most so many leases are listed.", sampling.leases, count, show),
    row!("sampling", "probe_timeout", "Longest that one probe may run or wait for a lock.", sampling.probe_timeout, probe_timeout, show_time),
    row!("sampling", "slow", "Pause between two looks at what costs more: backlog by type, sizes of tables.", sampling.slow, interval, show_time),
    row!("sampling", "by_type", "That look takes in so many jobs of each state at most.", sampling.by_type, count, show),
    row!("sampling", "budget", "Share of the interval that sampling may take; above it the interval stretches.", sampling.budget, share, show_share),
    row!("worker", "command", "Runs for each job, without a shell: a program and its arguments, as in [\"./job\", \"--flag\"].", handling.command, command, show_command),
    row!("worker", "handler", "What is done with a job: \"exec\" runs the command, \"noop\" and \"simulate\" do no work, \"auto\" is\n# exec if there is a command and otherwise nothing.", handling.handler, handler, show_handler),
    row!("worker", "job_timeout", "Longest that a command may run, or \"off\"; then it is stopped, a failed attempt.", handling.job_timeout, limit, show_limit),
    row!("worker", "batch", "Jobs per claim.", worker.batch, jobs, show),
    row!("worker", "concurrency", "Jobs in hand at once.", worker.concurrency, jobs, show),
    row!("worker", "sessions", "Work sessions: one is enough for all but the fastest queues.", worker.sessions, sessions, show),
    row!("worker", "lease", "Length of a lease, 1s to 24h; renewed at a third.", worker.lease, lease, show_time),
    row!("worker", "fallback", "Scan after this long without a wake-up, 1s to 1h.", worker.fallback, fallback, show_time),
    row!("worker", "debounce", "Wait after a wake-up, so that others fold into one scan: 100ms to 300ms.", worker.debounce, debounce, show_time),
    row!("worker", "eager", "The first wake-up after a quiet spell scans at once.", worker.eager, switch, show),
    row!("worker", "budget", "Jobs per window before the load is looked at, or \"off\".", worker.budget, budget, show_budget),
    row!("worker", "budget_window", "Length of that window.", worker.budget_window, any_time, show_time),
    row!("worker", "keep", "How long done jobs stay: \"forever\", a time as in \"7d\", or \"0\" to delete each when done.", worker.keep, keep, show_keep),
    row!("worker", "grace", "How long jobs in hand may take to end on shutdown.", worker.grace, any_time, show_time),
    row!("worker", "heartbeat", "Refresh of the worker's row.", worker.heartbeat, any_time, show_time),
    row!("worker", "backoff", "First retry delay of a job; doubles at every failure.", worker.backoff, any_time, show_time),
    row!("worker", "backoff_max", "Longest retry delay.", worker.backoff_max, any_time, show_time),
];
