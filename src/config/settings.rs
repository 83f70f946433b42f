//! Every number that can be set, with its default and where the default comes from.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Keymap, Target};

/// Everything that a configuration file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Name of the theme.
    pub theme: String,
    /// Whether a theme may draw a background of its own.
    pub theme_background: bool,
    /// Draw with ASCII only.
    pub ascii: bool,
    /// Take the mouse.
    pub mouse: bool,
    /// Show payloads without being asked.
    pub show_payloads: bool,
    /// Take every action away.
    pub read_only: bool,
    /// When a figure needs attention.
    pub thresholds: Thresholds,
    /// How an alert that fires is told outside the screen.
    pub alerts: Alerts,
    /// How the monitor samples.
    pub sampling: Sampling,
    /// How a worker behaves.
    pub worker: Worker,
    /// What it does with a job.
    pub handling: Handling,
    /// The keys.
    pub keys: Keymap,
    /// Targets by name.
    pub targets: Vec<Target>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            theme: "dark".to_owned(),
            theme_background: true,
            ascii: false,
            mouse: false,
            show_payloads: false,
            read_only: false,
            thresholds: Thresholds::default(),
            alerts: Alerts::default(),
            sampling: Sampling::default(),
            worker: Worker::default(),
            handling: Handling::default(),
            keys: Keymap::default(),
            targets: Vec::new(),
        }
    }
}

/// When a figure needs attention. The first values are the contract's starting values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thresholds {
    /// Oldest ready job, seconds.
    pub oldest_ready_s: f64,
    /// Share of the notification queue that warns, 0–1.
    pub queue_usage_warn: f64,
    /// Share of the notification queue that is critical at once, 0–1.
    pub queue_usage_critical: f64,
    /// Claim success below which it warns, 0–1.
    pub claim_success: f64,
    /// p95 of lost → scanned, seconds.
    pub recovery_p95_s: f64,
    /// p99 of the claim statement, milliseconds.
    pub claim_p99_ms: f64,
    /// A transaction older than this is listed, seconds.
    pub long_transaction_s: f64,
    /// Share of jobs found by fallback above which wake-ups do not arrive, 0–1.
    pub fallback_share: f64,
    /// A sample older than this is called stale, seconds.
    pub stale_s: f64,
    /// p99 of the open transactions of listeners, seconds: one in a transaction holds the notification queue.
    pub listener_transaction_s: f64,
    /// The warning share of the notification queue must have lasted this long before its alert fires, seconds.
    pub queue_usage_for_s: f64,
    /// So must a state that is broken or not, without a figure of its own, seconds.
    pub broken_for_s: f64,
    /// A firing alert is resolved after its figure was clearly good for this long, seconds.
    pub resolve_after_s: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            oldest_ready_s: 60.0,
            queue_usage_warn: 0.10,
            queue_usage_critical: 0.30,
            claim_success: 0.90,
            recovery_p95_s: 60.0,
            claim_p99_ms: 100.0,
            long_transaction_s: 30.0,
            fallback_share: 0.5,
            stale_s: 5.0,
            listener_transaction_s: 5.0,
            queue_usage_for_s: 600.0,
            broken_for_s: 5.0,
            resolve_after_s: 15.0,
        }
    }
}

/// Which desktop notification a terminal is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notify {
    /// None.
    #[default]
    Off,
    /// OSC 9: iTerm2, WezTerm, Windows Terminal, kitty.
    Osc9,
    /// OSC 777: urxvt, foot, Ghostty, VTE.
    Osc777,
}

/// How an alert that fires is told outside the screen. Both are off: nothing is written then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alerts {
    /// Ring the terminal's bell.
    pub bell: bool,
    /// Ask the terminal for a desktop notification.
    pub notify: Notify,
}

/// How the monitor samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// The interval of the fast lane.
    pub interval: Duration,
    /// A count stops here and is shown as "at least".
    pub cap: i64,
    /// At most this many leases are listed.
    pub leases: i64,
    /// statement_timeout and lock_timeout of every probe.
    pub probe_timeout: Duration,
    /// The interval of the slow lane: backlog by type, table and index size.
    pub slow: Duration,
    /// The slow lane looks at this many jobs of each state at most.
    pub by_type: i64,
    /// A pass may take this share of the interval, 0–1; above it the interval stretches.
    pub budget: f64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            cap: 10_000,
            leases: 10_000,
            probe_timeout: Duration::from_millis(500),
            slow: Duration::from_secs(15),
            by_type: 10_000,
            budget: 0.05,
        }
    }
}

/// A handler that ships.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerKind {
    /// Runs a command for each job.
    Exec,
    /// Does nothing; for practice.
    Noop,
    /// Sleeps as the payload says; for practice.
    Simulate,
}

/// What a worker does with a job, where no flag says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handling {
    /// The handler that was named.
    pub handler: Option<HandlerKind>,
    /// The program and its arguments; empty: there is none.
    pub command: Vec<String>,
    /// The longest that one command may run; `None`: as long as it likes.
    pub job_timeout: Option<Duration>,
}

impl Handling {
    /// The handler: the one that was named, or `exec` where there is a command.
    pub fn kind(&self) -> Option<HandlerKind> {
        self.handler.or((!self.command.is_empty()).then_some(HandlerKind::Exec))
    }
}

/// How a drain worker behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worker {
    /// Jobs per claim.
    pub batch: usize,
    /// Jobs in hand at once.
    pub concurrency: usize,
    /// Work sessions; each carries one claim and the ends of jobs at the same time.
    pub sessions: usize,
    /// How long a done job stays in the ledger: `None` for ever, zero not at all (it is deleted when it is
    /// done; what was done before stays). Failed jobs always stay.
    pub keep: Option<Duration>,
    /// Length of a lease; renewed at a third.
    pub lease: Duration,
    /// Wait this long for a wake-up, then scan anyway (15–60 s keeps the oldest job within a minute).
    pub fallback: Duration,
    /// Wait this long after the first wake-up, so that those that follow fold into one scan (100–300 ms).
    /// The wait is never extended, so it is its own maximum however many wake-ups arrive.
    pub debounce: Duration,
    /// The first wake-up after a quiet spell scans at once.
    pub eager: bool,
    /// Jobs per budget window; `None` switches the budget off.
    pub budget: Option<u64>,
    /// Length of the budget window.
    pub budget_window: Duration,
    /// How long in-flight jobs may take to end on shutdown.
    pub grace: Duration,
    /// Refresh of the row in `pgwake.workers`.
    pub heartbeat: Duration,
    /// First retry delay; doubles at every failed attempt, jittered upwards.
    pub backoff: Duration,
    /// Longest retry delay.
    pub backoff_max: Duration,
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            batch: 10,
            concurrency: 10,
            sessions: 1,
            keep: None,
            lease: Duration::from_secs(120),
            fallback: Duration::from_secs(30),
            debounce: Duration::from_millis(200),
            eager: false,
            budget: Some(200),
            budget_window: Duration::from_secs(30),
            grace: Duration::from_secs(10),
            heartbeat: Duration::from_secs(5),
            backoff: Duration::from_secs(2),
            backoff_max: Duration::from_secs(3600),
        }
    }
}
