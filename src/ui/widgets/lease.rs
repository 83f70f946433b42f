//! How expiries and heartbeats look, wherever leases stand.

use chrono::{DateTime, Utc};

use crate::text::{age, ago};
use crate::ui::Role;
use crate::ui::Ui;
use crate::ui::paint::Piece;

/// Cells of the bar.
const BAR: usize = 10;

/// Cells of an expiry: the bar and the time left.
pub(in crate::ui) const EXPIRY: usize = BAR + 8;

/// A heartbeat older than this means that the process is not there: three refreshes of 5 s.
const ALIVE_S: f64 = 15.0;

/// Whole seconds, for what counts down: `1m58s`, `42s`.
pub(in crate::ui) fn whole(seconds: f64) -> String {
    age(seconds.max(0.0).floor()).replace(".0s", "s")
}

/// Seconds from `from` to `to`.
pub(in crate::ui) fn seconds(from: DateTime<Utc>, to: DateTime<Utc>) -> f64 {
    (to - from).num_milliseconds() as f64 / 1e3
}

/// A bar that drains towards the expiry; past it, for how long it has been. In numbers that are stale
/// nothing is a verdict any more: the lease may have been renewed since.
pub(in crate::ui) fn expiry(ui: Ui<'_>, expires: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Vec<Piece> {
    let stale = ui.app.is_stale(ui.now);
    let style = |role| ui.style(if stale { Role::Dim } else { role });
    let Some(expires) = expires else {
        return vec![("○ no end".to_owned(), style(Role::Warn))];
    };
    let left = seconds(now, expires);
    if left <= 0.0 && stale {
        return vec![(format!("? due {} ago", whole(-left)), style(Role::Dim))];
    }
    if left <= 0.0 {
        return vec![(format!("✖ expired {}", whole(-left)), style(Role::Critical))];
    }
    let share = (left / ui.app.setup().lease_s.max(1.0)).clamp(0.0, 1.0);
    let full = ((share * BAR as f64).round() as usize).clamp(usize::from(share > 0.0), BAR);
    let role = if share < 0.2 { Role::Warn } else { Role::Ok };
    vec![
        ("█".repeat(full), style(role)),
        ("░".repeat(BAR - full), ui.style(Role::Dim)),
        (format!(" {}", whole(left)), style(Role::Text)),
    ]
}

/// When the process behind a holder was last heard of; as seen by the newest sample when that is stale.
pub(in crate::ui) fn heartbeat(ui: Ui<'_>, at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Piece {
    let Some(at) = at else { return ("○ none".to_owned(), ui.style(Role::Dim)) };
    let s = seconds(at, now).max(0.0);
    let (mark, role) = match s {
        _ if ui.app.is_stale(ui.now) => ("?", Role::Dim),
        s if s <= ALIVE_S => ("●", Role::Ok),
        _ => ("✖", Role::Critical),
    };
    (format!("{mark} {}", ago(s)), ui.style(role))
}
