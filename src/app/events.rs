//! The event log, and how events of the model become lines of it.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::alerts::Change;
use crate::model::{
    ActionEvent, BudgetState, ClaimOutcome, Event, Link, Listen, Now, ScanReason, WorkerEvent,
};
use crate::text::{age, count};

/// Lines kept.
const KEEP: usize = 1000;

/// A line like the one before it within this time is counted into it.
const FOLD_WITHIN: Duration = Duration::from_secs(60);

/// What a line is about; it chooses the symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tone {
    /// Worth knowing.
    Info,
    /// Something went well.
    Good,
    /// A session came back.
    Back,
    /// Needs attention.
    Warn,
    /// Something broke.
    Bad,
    /// Somebody did something here.
    Action,
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Number since the start; its identity.
    pub seq: u64,
    /// The client's wall clock, display only.
    pub wall: DateTime<Utc>,
    /// Monotonic.
    pub at: Duration,
    /// What it is about.
    pub tone: Tone,
    /// The text.
    pub text: String,
    /// How many alike events it stands for.
    pub times: u64,
    /// The alert it is about, by name.
    pub alert: Option<&'static str>,
    fold: Option<Fold>,
}

/// Alike lines, counted into one.
#[derive(Clone, Debug, PartialEq)]
struct Fold {
    key: String,
    jobs: u64,
}

/// Newest last; bounded.
#[derive(Clone, Debug, Default)]
pub struct Log {
    lines: VecDeque<Line>,
    next: u64,
}

impl Log {
    /// Lines, newest first.
    pub fn newest(&self) -> impl DoubleEndedIterator<Item = &Line> + ExactSizeIterator {
        self.lines.iter().rev()
    }

    /// The line at `row`, newest first.
    pub fn get(&self, row: usize) -> Option<&Line> {
        self.lines.len().checked_sub(row + 1).and_then(|at| self.lines.get(at))
    }

    /// The row of the line numbered `seq`, newest first.
    pub fn row_of(&self, seq: u64) -> Option<usize> {
        let first = self.lines.front()?.seq;
        let at = usize::try_from(seq.checked_sub(first)?).ok()?;
        self.lines.len().checked_sub(at + 1)
    }

    /// Forgets what came after `at`.
    pub(super) fn until(&mut self, at: Duration) {
        while self.lines.back().is_some_and(|l| l.at > at) {
            self.lines.pop_back();
        }
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Adds a line.
    pub fn push(&mut self, now: Now, tone: Tone, text: impl Into<String>) {
        self.add(now, tone, text.into(), None);
    }

    /// Adds a line about an alert of a ledger that fired or was resolved.
    pub(super) fn alert(&mut self, now: Now, ledger: &str, change: &Change) {
        let Change { alert, fired, figure, .. } = change;
        let (tone, text) = match fired {
            true => {
                let tone = if alert.is_critical() { Tone::Bad } else { Tone::Warn };
                (tone, format!("{ledger}: alert {}: {}, {figure}", alert.name, alert.title))
            }
            false => (Tone::Good, format!("{ledger}: alert {} is resolved, {figure}", alert.name)),
        };
        self.add(now, tone, text, None);
        if let Some(line) = self.lines.back_mut() {
            line.alert = Some(alert.name);
        }
    }

    fn add(&mut self, now: Now, tone: Tone, text: String, fold: Option<Fold>) {
        let line =
            Line { seq: self.next, wall: now.wall, at: now.mono, tone, text, times: 1, alert: None, fold };
        self.lines.push_back(line);
        self.next += 1;
        while self.lines.len() > KEEP {
            self.lines.pop_front();
        }
    }

    /// Adds a line, or counts it into one of the newest when that has the same key. `text` gets the
    /// number of events and the sum of their jobs.
    fn fold(&mut self, now: Now, tone: Tone, key: String, jobs: u64, text: impl Fn(u64, u64) -> String) {
        // two sessions that fail in turn fold each into its own line
        for last in self.lines.iter_mut().rev().take(3) {
            let Some(fold) = &mut last.fold else { continue };
            if fold.key != key || now.mono.saturating_sub(last.at) > FOLD_WITHIN {
                continue;
            }
            fold.jobs += jobs;
            last.times += 1;
            last.text = text(last.times, fold.jobs);
            last.wall = now.wall;
            return;
        }
        self.add(now, tone, text(1, jobs), Some(Fold { key, jobs }));
    }

    /// Adds a line about something that lasts and has a size.
    pub(super) fn open(&mut self, now: Now, tone: Tone, key: String, size: u64, text: String) {
        self.add(now, tone, text, Some(Fold { key, jobs: size }));
    }

    /// What the newest line of that key is about has grown to `size`: it says so, in its place.
    pub(super) fn rise(&mut self, key: &str, size: u64, text: String) {
        let about = |l: &&mut Line| l.fold.as_ref().is_some_and(|f| f.key == key);
        if let Some(line) = self.lines.iter_mut().rev().find(about)
            && let Some(fold) = &mut line.fold
            && fold.jobs < size
        {
            fold.jobs = size;
            line.text = text;
        }
    }

    /// The line, if any, that `event` leaves in the log.
    pub fn record(&mut self, event: &Event, now: Now) {
        match event {
            Event::Sample(_)
            | Event::Wake(_)
            | Event::Backlog(_)
            | Event::Jobs(_)
            | Event::Job(_)
            | Event::Plan(_) => {}
            Event::Link(link) => self.link(link, now),
            Event::Listen(listen) => self.listen(listen, now),
            Event::Worker(worker) => self.worker(worker, now),
            Event::Action(action) => self.action(action, now),
            Event::Note(n) => {
                self.push(now, if n.warn { Tone::Warn } else { Tone::Info }, n.text.clone());
            }
        }
    }

    fn link(&mut self, link: &Link, now: Now) {
        match link {
            Link::Up(s) => {
                self.push(
                    now,
                    Tone::Good,
                    format!("connected to {} (PostgreSQL {})", s.address, s.version),
                );
            }
            Link::Down(loss) => self.push(now, Tone::Bad, format!("connection lost: {loss}")),
            Link::Retry { after_ms, loss, .. } => {
                let wait = age(*after_ms as f64 / 1e3);
                self.fold(now, Tone::Bad, format!("link {loss}"), 0, |n, _| {
                    format!("cannot connect{}: {loss}; next attempt after {wait}", times(n))
                });
            }
        }
    }

    fn listen(&mut self, listen: &Listen, now: Now) {
        match listen {
            Listen::Up { channels, phases, again, .. } => {
                let on = channels.join(", ");
                let took = lasting(phases.listening_ms);
                if *again {
                    self.push(now, Tone::Back, format!("listening again on {on}, {took} after the loss"));
                } else {
                    self.push(now, Tone::Good, format!("listening on {on}, proven after {took}"));
                }
            }
            Listen::Down { loss, up_ms } => {
                let up = age(*up_ms as f64 / 1e3);
                self.push(now, Tone::Bad, format!("listener lost after {up}: {loss}"));
            }
            Listen::Retry { after_ms, loss, .. } => {
                let wait = age(*after_ms as f64 / 1e3);
                self.fold(now, Tone::Bad, format!("listen {loss}"), 0, |n, _| {
                    format!("cannot listen{}: {loss}; next attempt after {wait}", times(n))
                });
            }
            Listen::Deaf { why } => {
                self.push(now, Tone::Warn, format!("wake-ups cannot arrive here, polling only: {why}"));
            }
            Listen::Off => self.push(now, Tone::Info, "no wake-up channel is configured, polling only"),
        }
    }

    fn worker(&mut self, event: &WorkerEvent, now: Now) {
        match event {
            WorkerEvent::Started { name } => self.push(now, Tone::Action, format!("worker {name} started")),
            WorkerEvent::Stopped { given_back, trouble } => {
                let back = if *given_back > 0 {
                    format!(", gave back {}", jobs(*given_back))
                } else {
                    String::new()
                };
                match trouble {
                    Some(why) => self.push(now, Tone::Bad, format!("worker stopped{back}: {why}")),
                    None => self.push(now, Tone::Action, format!("worker stopped{back}")),
                }
            }
            WorkerEvent::Drained { jobs: 0, .. } => {}
            WorkerEvent::Drained { ledger, reason, jobs: n } => {
                let tone = if *reason == ScanReason::Fallback { Tone::Warn } else { Tone::Good };
                let by = match reason {
                    ScanReason::Startup => "the startup scan",
                    ScanReason::Notify => "wake-ups",
                    ScanReason::Fallback => "the fallback scan",
                    ScanReason::Reconnect => "the reconnect scan",
                };
                self.fold(
                    now,
                    tone,
                    format!("drained {ledger} {}", reason.word()),
                    *n,
                    |times, sum| match (times, reason) {
                        (1, ScanReason::Notify) => format!("{ledger}: {} found by a wake-up", jobs(sum)),
                        (1, _) => format!("{ledger}: {} found by {by}", jobs(sum)),
                        _ => format!("{ledger}: {} found by {by} in {} drains", jobs(sum), count(times)),
                    },
                );
            }
            WorkerEvent::Claim { ledger, outcome: ClaimOutcome::Contended, .. } => {
                self.fold(now, Tone::Warn, format!("contended {ledger}"), 0, |n, _| {
                    format!("{ledger}: claim found only rows locked by others{}", times(n))
                });
            }
            WorkerEvent::Claim { .. } => {}
            WorkerEvent::ClaimFailed { ledger, loss } => {
                self.fold(now, Tone::Bad, format!("claim {ledger} {loss}"), 0, |n, _| {
                    format!("{ledger}: claim failed{}: {loss}", times(n))
                });
            }
            WorkerEvent::Lost { ledger, id, what } => {
                self.push(now, Tone::Warn, format!("{ledger}: lease of {id} was lost before {what}"));
            }
            WorkerEvent::Exhausted { ledger, jobs: n } => {
                let n = jobs(*n);
                self.push(
                    now,
                    Tone::Warn,
                    format!("{ledger}: {n} marked failed, the last attempt died with its holder"),
                );
            }
            WorkerEvent::Pruned { ledger, jobs: n } => {
                self.fold(now, Tone::Info, format!("pruned {ledger}"), *n, |_, sum| {
                    format!("{ledger}: {} deleted that were done long enough ago", jobs(sum))
                });
            }
            WorkerEvent::PruneFailed { ledger, loss } => {
                self.fold(now, Tone::Warn, format!("pruning {ledger} {loss}"), 0, |_, _| {
                    format!("{ledger}: done jobs stay, they could not be deleted: {loss}")
                });
            }
            WorkerEvent::Budget { state, why } => {
                let tone = if *state == BudgetState::Waiting { Tone::Warn } else { Tone::Info };
                self.fold(now, tone, format!("budget {state:?}"), 0, |n, _| match state {
                    BudgetState::Waiting => {
                        format!("budget spent, waiting for its window{}: {why}", times(n))
                    }
                    BudgetState::Renewed => format!("budget spent and renewed{}: {why}", times(n)),
                    BudgetState::Open => format!("budget open again: {why}"),
                });
            }
            WorkerEvent::Recovered(r) => {
                let took = age(r.scanned_ms as f64 / 1e3);
                self.push(
                    now,
                    Tone::Back,
                    format!("recovered in {took}, {} found by the reconnect scan", jobs(r.jobs)),
                );
            }
        }
    }

    fn action(&mut self, event: &ActionEvent, now: Now) {
        match event {
            ActionEvent::Released { ledger, id, holder } => {
                self.push(now, Tone::Action, format!("{ledger}: released {id}, held by {holder}"));
            }
            ActionEvent::MovedOn { ledger, id, found } => {
                self.push(now, Tone::Warn, format!("{ledger}: {id} not released, it moved on: {found}"));
            }
            ActionEvent::OnJob { ledger, action, id, moved: None } => {
                self.push(
                    now,
                    Tone::Action,
                    format!("{ledger}: {} {id}, {}", action.word(), action.done()),
                );
            }
            ActionEvent::OnJob { ledger, action, id, moved: Some(found) } => {
                let text = format!("{ledger}: {} {id} did nothing, it moved on: {found}", action.word());
                self.push(now, Tone::Warn, text);
            }
            ActionEvent::ExpiredCount { .. } | ActionEvent::Batch { .. } => {}
            ActionEvent::BulkDone { ledger, total, stopped } => {
                let end = if *stopped { ", stopped before the end" } else { "" };
                self.push(
                    now,
                    Tone::Action,
                    format!("{ledger}: released {} expired {}{end}", count(*total), leases(*total)),
                );
            }
            ActionEvent::Ended { pid, how, sent, answer } => {
                let tone = if *sent { Tone::Action } else { Tone::Warn };
                self.push(now, tone, format!("{} pid {pid}: {answer}", how.word()));
            }
            ActionEvent::WakeSent { channel } => {
                self.push(now, Tone::Action, format!("wake-up sent on {channel}"));
            }
            ActionEvent::FaultDone { text } => self.push(now, Tone::Action, format!("fault: {text}")),
            ActionEvent::Refused { what, why } => {
                self.push(now, Tone::Bad, format!("{what} refused: {why}"))
            }
        }
    }
}

/// `21ms`, `0.8s`, `12.0s`: what took no time at all still took some.
fn lasting(ms: u64) -> String {
    if ms < 100 { format!("{ms}ms") } else { age(ms as f64 / 1e3) }
}

/// `, 7 times`, nothing for once.
fn times(n: u64) -> String {
    if n > 1 { format!(", {} times", count(n)) } else { String::new() }
}

/// `1 job`, `1,204 jobs`.
pub fn jobs(n: u64) -> String {
    format!("{} {}", count(n), if n == 1 { "job" } else { "jobs" })
}

/// `lease` or `leases`.
pub fn leases(n: u64) -> &'static str {
    if n == 1 { "lease" } else { "leases" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Loss, Phases};

    fn now(s: u64) -> Now {
        Now { mono: Duration::from_secs(s), wall: DateTime::UNIX_EPOCH + Duration::from_secs(s) }
    }

    fn drained(jobs: u64) -> Event {
        Event::Worker(WorkerEvent::Drained { ledger: "jobs".into(), reason: ScanReason::Notify, jobs })
    }

    #[test]
    fn drains_of_one_kind_fold_into_one_line() {
        let mut log = Log::default();
        log.record(&drained(1000), now(1));
        assert_eq!(log.get(0).unwrap().text, "jobs: 1,000 jobs found by a wake-up");
        log.record(&drained(0), now(2));
        log.record(&drained(4), now(2));
        assert_eq!(log.len(), 1);
        assert_eq!(log.get(0).unwrap().text, "jobs: 1,004 jobs found by wake-ups in 2 drains");
        log.record(&drained(4), now(200));
        assert_eq!(log.len(), 2);
    }

    #[test]
    fn a_loss_is_told_with_its_sqlstate_and_the_return_with_its_time() {
        let mut log = Log::default();
        let loss = Loss { sqlstate: Some("57P01".into()), message: "terminating connection".into() };
        log.record(&Event::Listen(Listen::Down { loss, up_ms: 7_980_000 }), now(1));
        let phases = Phases { connected_ms: 500, listening_ms: 800 };
        let up = Listen::Up { pid: 7, channels: vec!["c".into()], phases, again: true };
        log.record(&Event::Listen(up), now(2));
        assert_eq!(log.get(1).unwrap().text, "listener lost after 2h13m: 57P01 terminating connection");
        assert_eq!(log.get(0).unwrap().text, "listening again on c, 0.8s after the loss");
        assert_eq!(log.get(0).unwrap().tone, Tone::Back);
    }

    #[test]
    fn the_log_is_bounded_and_a_line_keeps_its_number() {
        let mut log = Log::default();
        for i in 0..KEEP as u64 + 10 {
            log.push(now(i), Tone::Info, i.to_string());
        }
        assert_eq!(log.len(), KEEP);
        assert_eq!(log.row_of(KEEP as u64 + 9), Some(0));
        assert_eq!(log.get(log.row_of(500).unwrap()).unwrap().text, "500");
        assert_eq!(log.row_of(3), None);
    }
}
