//! The rules, one function each, in the order of their list.

use std::time::Duration;

use super::locks::locked_rows;
use super::{Answer, Diagnosis, Evidence, Rule};
use crate::app::events::{jobs, leases};
use crate::app::health::Level;
use crate::app::series::Figure;
use crate::app::{Embedded, LinkState, ListenState};
use crate::model::{BudgetState, Quality, Reading, SessionMark};
use crate::text::{age, ago, count, percent, rate};

/// Rates in the line are means over this long.
const RATE_SPAN: Duration = Duration::from_secs(10);

/// Nothing finished for this long means that nothing finishes.
const NOTHING_FINISHED: Duration = Duration::from_secs(15);

/// When the backlog will be empty is told from the means of this long.
const FORECAST_SPAN: Duration = Duration::from_secs(30);

/// A forecast in steps so wide that it does not flicker: `<10s`, `~40s`, `~3m`, `~25m`, `~2h`, `~3d`;
/// `≥` where the backlog is only known to be at least so long.
fn roughly(seconds: f64, exact: bool) -> String {
    let mark = if exact { "~" } else { "≥" };
    let steps = |by: f64| (seconds / by).ceil() * by;
    match seconds {
        s if s < 10.0 && exact => "<10s".to_owned(),
        s if s <= 50.0 => format!("{mark}{:.0}s", steps(10.0)),
        s if s <= 540.0 => format!("{mark}{:.0}m", steps(60.0) / 60.0),
        s if s <= 3300.0 => format!("{mark}{:.0}m", steps(300.0) / 60.0),
        s if s <= 82_800.0 => format!("{mark}{:.0}h", steps(3600.0) / 3600.0),
        _ => format!("{mark}{:.0}d", steps(86_400.0) / 86_400.0),
    }
}

pub(super) fn say(
    rule: Rule,
    level: Level,
    headline: impl Into<String>,
    detail: impl Into<String>,
) -> Answer {
    Some(Diagnosis { rule, level, headline: headline.into(), detail: detail.into() })
}

/// A count with its quality, as everywhere on the screen.
fn quantity(reading: &Reading<u64>) -> Option<(u64, String)> {
    let n = *reading.current()?;
    let text = match reading.quality() {
        Quality::Exact => count(n),
        Quality::AtLeast => format!("≥{}", count(n)),
        Quality::Estimate => format!("~{}", count(n)),
    };
    Some((n, text))
}

fn ready(e: &Evidence<'_>) -> Option<(u64, String)> {
    quantity(&e.sample?.counts.ready)
}

fn expired(e: &Evidence<'_>) -> Option<u64> {
    e.sample?.counts.expired.current().copied()
}

/// Held by somebody whose lease still runs.
fn live(e: &Evidence<'_>) -> Option<u64> {
    let c = &e.sample?.counts;
    Some(c.running.current()?.saturating_sub(*c.expired.current()?))
}

fn done_rate(e: &Evidence<'_>) -> Option<f64> {
    e.series.mean(Figure::Done, RATE_SPAN, e.mono)
}

fn oldest(e: &Evidence<'_>) -> Option<f64> {
    e.sample?.vitals.oldest_ready.current().copied().flatten()
}

/// ` · oldest 4m12s`, or nothing when it is not known.
fn oldest_text(e: &Evidence<'_>) -> String {
    oldest(e).map_or_else(String::new, |o| format!(" · oldest {}", age(o)))
}

fn alive(e: &Evidence<'_>) -> Option<usize> {
    let rows = e.sample?.workers.current()?;
    Some(rows.iter().filter(|w| w.is_alive(e.server_now)).count())
}

pub(super) fn disconnected(e: &Evidence<'_>) -> Answer {
    let LinkState::Down { loss, since, retry_at, .. } = e.link else { return None };
    let next = match retry_at {
        Some(at) if *at > e.mono => {
            format!("next attempt in {:.0}s · ", (*at - e.mono).as_secs_f64().ceil())
        }
        Some(_) => "trying now · ".to_owned(),
        None => String::new(),
    };
    let lasted = age(e.mono.saturating_sub(*since).as_secs_f64().floor());
    let lasted = lasted.strip_suffix(".0s").map_or(lasted.clone(), |s| format!("{s}s"));
    // the reason last: it may be long, and where room is short it is what is cut
    let old = if e.sample.is_some() { "all numbers are from before · " } else { "" };
    say(Rule::Disconnected, Level::Critical, format!("disconnected {lasted}"), format!("{next}{old}{loss}"))
}

pub(super) fn not_yet(e: &Evidence<'_>) -> Answer {
    if e.sample.is_some() {
        return None;
    }
    match e.link {
        LinkState::Up { .. } => {
            say(Rule::NotYet, Level::Unknown, "waiting for the first sample", "nothing is known yet")
        }
        _ => say(Rule::NotYet, Level::Unknown, "connecting", "nothing is known yet"),
    }
}

pub(super) fn stale(e: &Evidence<'_>) -> Answer {
    (e.age.as_secs_f64() > stale_after(e)).then_some(())?;
    let old = format!("last sample {}", ago(e.age.as_secs_f64()));
    say(Rule::Stale, Level::Warn, "numbers are stale", format!("{old} · the state now is unknown"))
}

/// A stretched interval makes samples rarer without making them stale.
fn stale_after(e: &Evidence<'_>) -> f64 {
    let interval = e.sample.map_or(0.0, |s| s.cost.effective_ms as f64 / 1e3);
    e.limits.stale_s.max(interval * 2.5)
}

pub(super) fn cannot_tell(e: &Evidence<'_>) -> Answer {
    let trouble = e.sample?.counts.ready.trouble()?;
    say(
        Rule::CannotTell,
        Level::Unknown,
        "cannot tell",
        format!("ready jobs could not be counted: {trouble}"),
    )
}

pub(super) fn nothing_due(e: &Evidence<'_>) -> Answer {
    if ready(e)?.0 > 0 || expired(e)? > 0 {
        return None;
    }
    // what producers cannot commit is not due yet, but it is not nothing
    if e.sample?.notify_lock.current().is_some_and(|l| l.waiters > 0) {
        return None;
    }
    // what row security hides may be due
    if e.sample?.evidence.row_security.current() == Some(&true) {
        let detail = "row security is active for this role: counts may be partial";
        return say(Rule::NothingDue, Level::Unknown, "nothing due that this role may see", detail);
    }
    let held = live(e).unwrap_or(0);
    if held > 0 && is_standing_still(e).is_some() {
        return None;
    }
    let flow = match (e.series.mean(Figure::Arrived, RATE_SPAN, e.mono), done_rate(e)) {
        (Some(i), Some(d)) if i > 0.0 || d > 0.0 => format!("{} in · {} done · ", rate(i), rate(d)),
        _ => String::new(),
    };
    let headline = if flow.is_empty() && held == 0 { "nothing due" } else { "keeping up" };
    let hand = if held > 0 { format!("{} in hand · ", jobs(held)) } else { String::new() };
    let next = match e.sample?.next_scheduled.current() {
        Some(Some(s)) => format!("next scheduled in {}", age(*s)),
        Some(None) => "nothing scheduled".to_owned(),
        None => "next unknown".to_owned(),
    };
    say(Rule::NothingDue, Level::Ok, headline, format!("{flow}{hand}{next}"))
}

pub(super) fn no_worker(e: &Evidence<'_>) -> Answer {
    let (n, text) = ready(e)?;
    let waiting = n + expired(e).unwrap_or(0);
    // a worker that does not report shows itself by what it holds or finishes
    let signs = live(e).unwrap_or(0) > 0 || done_rate(e).is_some_and(|d| d > 0.0);
    if waiting == 0 || alive(e)? > 0 || e.worker.is_on() || signs {
        return None;
    }
    let hint = if e.can_start_worker { " · w starts one here" } else { "" };
    let what = if n > 0 { format!("{text} ready") } else { jobs(waiting) + " expired" };
    say(
        Rule::NoWorker,
        Level::Critical,
        "no worker alive",
        format!("{what} waiting{}{hint}", oldest_text(e)),
    )
}

pub(super) fn budget(e: &Evidence<'_>) -> Answer {
    ready(e).filter(|(n, _)| *n > 0)?;
    let rows = e.sample?.workers.current()?;
    let (mut alive, mut waiting) = (0, 0);
    for w in rows.iter().filter(|w| w.is_alive(e.server_now)) {
        alive += 1;
        waiting += usize::from(w.budget == BudgetState::Waiting);
    }
    // the embedded worker knows before its row does
    let why = match e.worker {
        Embedded::Running { budget: Some((BudgetState::Waiting, why)), .. } => {
            waiting = waiting.max(1);
            alive = alive.max(1);
            format!(" · {why}")
        }
        _ => String::new(),
    };
    (waiting > 0 && waiting == alive).then_some(())?;
    let who = if alive == 1 { "the worker waits".to_owned() } else { format!("all {alive} workers wait") };
    say(
        Rule::Budget,
        Level::Warn,
        "paused by budget",
        format!("{who} for the window to end{}{why}", oldest_text(e)),
    )
}

pub(super) fn contended(e: &Evidence<'_>) -> Answer {
    let (n, text) = ready(e)?;
    let idle = done_rate(e).is_none_or(|d| d <= 0.0);
    (n > 0 && idle).then_some(())?;
    if let Some(answer) = locked_rows(e, &text) {
        return Some(answer);
    }
    let success = (*e.sample?.vitals.claim_success.current()?)?;
    (success < e.limits.claim_success).then_some(())?;
    let by = e
        .sample?
        .sessions
        .current()
        .into_iter()
        .flatten()
        .filter(|s| s.marks.contains(&SessionMark::LongTransaction))
        .max_by(|a, b| a.transaction_age.unwrap_or(0.0).total_cmp(&b.transaction_age.unwrap_or(0.0)))
        .map_or_else(String::new, |s| {
            let old = s.transaction_age.map_or_else(String::new, |a| format!(", transaction {}", age(a)));
            format!(" · perhaps pid {}{old}", s.pid)
        });
    say(
        Rule::Contended,
        Level::Critical,
        "ready rows locked elsewhere",
        format!("{text} ready · claim success {}{by}", percent(success)),
    )
}

/// How long nothing has been finished although jobs are held.
fn is_standing_still(e: &Evidence<'_>) -> Option<Duration> {
    (live(e)? > 0).then_some(())?;
    e.series.zero_for(Figure::Done, e.mono).filter(|d| *d >= NOTHING_FINISHED)
}

pub(super) fn nothing_finishes(e: &Evidence<'_>) -> Answer {
    let still = is_standing_still(e)?;
    let held = live(e)?;
    say(
        Rule::NothingFinishes,
        Level::Warn,
        "running, but nothing finishes",
        format!(
            "{} in hand · none finished for {}{}",
            jobs(held),
            age(still.as_secs_f64()),
            oldest_text(e)
        ),
    )
}

pub(super) fn wakeups_missing(e: &Evidence<'_>) -> Answer {
    let share = (*e.sample?.vitals.fallback_share.current()?)?;
    (share > e.limits.fallback_share).then_some(())?;
    let here = match e.listen {
        ListenState::Deaf { why } => format!(" · {why}"),
        ListenState::Down { loss, .. } => format!(" · listener down here: {loss}"),
        _ => String::new(),
    };
    say(
        Rule::WakeupsMissing,
        Level::Warn,
        "wake-ups do not arrive",
        format!("{} of the jobs found by fallback{}{here}", percent(share), oldest_text(e)),
    )
}

pub(super) fn holder_dead(e: &Evidence<'_>) -> Answer {
    let n = expired(e).filter(|n| *n > 0)?;
    let sample = e.sample?;
    let first = sample
        .leases
        .current()
        .and_then(|l| l.iter().filter_map(|l| l.expires).min())
        .map(|at| (e.server_now - at).num_milliseconds() as f64 / 1e3);
    // Ready jobs and expired leases stand in one order: behind older jobs they merely wait their turn.
    let at_the_head = first.is_none_or(|s| oldest(e).is_none_or(|o| o <= s));
    let overdue = at_the_head && first.is_none_or(|s| s > e.fallback_s);
    // the next scan takes them: no news while there is other work
    if !overdue && ready(e).is_none_or(|(n, _)| n > 0) {
        return None;
    }
    let since = match first {
        Some(s) if overdue => format!("the first {}, and no scan took it", ago(s)),
        _ => "the next scan takes them".to_owned(),
    };
    let by = sample
        .holders
        .current()
        .into_iter()
        .flatten()
        .filter(|h| h.expired > 0)
        .max_by_key(|h| h.expired)
        .map_or_else(String::new, |h| match h.heartbeat {
            Some(at) => {
                let seen = ago((e.server_now - at).num_milliseconds() as f64 / 1e3);
                format!(" · {} last seen {seen}", h.name)
            }
            None => format!(" · {} reports nothing", h.name),
        });
    let flow = done_rate(e).map_or_else(String::new, |d| format!(" · {} done", rate(d)));
    let level = if overdue { Level::Warn } else { Level::Ok };
    say(
        Rule::HolderDead,
        level,
        format!("{} {} expired", count(n), leases(n)),
        format!("{since}{by}{flow}"),
    )
}

pub(super) fn draining(e: &Evidence<'_>) -> Answer {
    let (n, _) = ready(e)?;
    let done = done_rate(e).filter(|d| *d > 0.0)?;
    let arrived = e.series.mean(Figure::Arrived, RATE_SPAN, e.mono);
    let flow = arrived.map_or_else(|| "in —".to_owned(), |a| format!("{} in", rate(a)));
    let late = oldest(e).is_some_and(|o| o > e.limits.oldest_ready_s);
    let level = if late { Level::Warn } else { Level::Ok };
    let growth = arrived.map(|a| done - a);
    // the difference of two rates is only worth a forecast over a longer time, and when it is no noise
    let mean = |figure| e.series.mean(figure, FORECAST_SPAN, e.mono);
    let shrinks = mean(Figure::Done).zip(mean(Figure::Arrived)).map(|(d, a)| d - a);
    let (headline, end) = match growth {
        Some(g) if g > 0.0 => match shrinks.filter(|s| *s > 0.05 * done) {
            Some(s) => {
                let exact = e.sample?.counts.ready.quality() == Quality::Exact;
                ("draining", format!(" · empty in {}", roughly(n as f64 / s, exact)))
            }
            None => ("draining", String::new()),
        },
        // A backlog that grows for a moment while nothing waits long is a burst, and bursts are normal.
        Some(g) if g < -0.05 * done && oldest(e).is_some_and(|o| o > e.limits.oldest_ready_s / 6.0) => {
            ("falling behind", format!(" · grows by {}", rate(-g)))
        }
        Some(g) if g < -0.05 * done => ("draining", format!(" · grows by {}", rate(-g))),
        _ => ("draining", String::new()),
    };
    let level = if headline == "falling behind" { level.max(Level::Warn) } else { level };
    say(Rule::Draining, level, headline, format!("{flow} · {} done{}{end}", rate(done), oldest_text(e)))
}

pub(super) fn waiting(e: &Evidence<'_>) -> Diagnosis {
    let text = ready(e).map_or_else(|| "—".to_owned(), |(_, t)| t);
    let done = match done_rate(e) {
        Some(_) => "none finished in the last 10 s",
        None => "rates are not known yet",
    };
    Diagnosis {
        rule: Rule::Waiting,
        level: Level::Unknown,
        headline: "waiting".to_owned(),
        detail: format!("{text} ready{} · {done}", oldest_text(e)),
    }
}
