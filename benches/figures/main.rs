//! The figures of the dashboard on this machine: `cargo bench --bench figures [-- PART… ROWS…]`.
//!
//! | part | figure | bound |
//! |---|---|---|
//! | `frame` | building one frame of 200×60 with 10,000 leases, every screen | 1 ms |
//! | `hour` | memory and CPU of the screen's half after an hour of samples; a replay of that hour | |
//! | `start` | exec to the first live frame | 100 ms |
//! | `idle` | memory and CPU of the idle dashboard, 120×36, 1 s, and what it costs the server | 16 MiB, 0.5 % |
//! | `large` | the same with 10,000 leases and 500 workers in the ledger | |
//! | `key` | key to frame, before and while every query hangs | 50 ms |
//! | `pass` | database time of a fast pass on ledgers of ROWS rows (default 100,000 and 1,000,000) | |

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[allow(dead_code)]
#[path = "../../tests/support/fixtures.rs"]
mod fixtures;
mod frame;
mod hour;
mod key;
mod server;
mod terminal;

use std::time::Duration;

fn main() {
    if let Ok(load) = std::env::var(hour::CHILD) {
        return hour::child(&load);
    }
    // cargo adds flags of its own
    let given: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let mut rows: Vec<u64> = given.iter().filter_map(|a| a.replace('_', "").parse().ok()).collect();
    let parts: Vec<&String> = given.iter().filter(|a| a.parse::<u64>().is_err()).collect();
    let wanted = |part: &str| {
        if parts.is_empty() { rows.is_empty() || part == "pass" } else { parts.iter().any(|p| *p == part) }
    };
    let [start, idle, large, key, pass] = ["start", "idle", "large", "key", "pass"].map(wanted);
    if wanted("frame") {
        frame::all();
    }
    if wanted("hour") {
        hour::all();
    }
    if rows.is_empty() {
        rows = vec![100_000, 1_000_000];
    }
    if start || idle || large || key || pass {
        server::all(server::Wanted { start, idle, large, key, pass }, &rows);
    }
}

/// Values in milliseconds, in order.
fn ms(mut times: Vec<Duration>) -> Vec<f64> {
    times.sort();
    times.iter().map(|t| t.as_secs_f64() * 1e3).collect()
}

/// The value that so much of `sorted` does not exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).ceil() as usize]
}

/// utime + stime in seconds. Manual: proc(5), fields 14 and 15 of /proc/PID/stat, in clock ticks (100/s).
fn cpu(pid: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = after.split(' ').collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// A line of /proc/PID/status, in MiB: `VmRSS`, or `VmHWM` for the highest it was.
fn memory(pid: &str, line: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with(line)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}
