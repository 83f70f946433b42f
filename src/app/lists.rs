//! Every list of the screens: what its rows are, and what they are filtered and sorted by.

use chrono::{DateTime, Utc};

use super::sessions::{self, SessionKey};
use super::table::{Lever, Table};
use super::{App, LeaseKey, Screen};
use crate::model::{Backlog, Holder, JobState, Lease, WorkerRow};

/// A list that can have the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum List {
    /// Overview: holders of leases.
    Holders,
    /// Backlog: types.
    Types,
    /// Backlog: jobs of one type.
    Jobs,
    /// Leases.
    Leases,
    /// Workers, and holders that report nothing.
    Workers,
    /// Sessions of the server.
    Sessions,
    /// Wake-ups, claims and drains.
    Tape,
    /// The log.
    Events,
}

impl List {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Holders,
        Self::Types,
        Self::Jobs,
        Self::Leases,
        Self::Workers,
        Self::Sessions,
        Self::Tape,
        Self::Events,
    ];

    /// What it can be sorted by: the heads of its columns.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Holders => &["holder", "held", "oldest", "next expiry", "heartbeat"],
            Self::Types => &["type", "ready", "oldest", "scheduled", "next", "running", "failed", "change"],
            Self::Jobs => &["job", "state", "due", "attempts", "holder", "error"],
            Self::Leases => &["job", "type", "holder", "expiry", "held", "attempts"],
            Self::Workers => {
                &["worker", "state", "held", "jobs", "success", "wake p95", "claim p95", "reconnects"]
            }
            Self::Sessions => &["pid", "user", "application", "state", "transaction"],
            Self::Tape => &["time", "of", "number"],
            Self::Events => &["time", "event"],
        }
    }
}

/// The tables of all lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    pub holders: Table<String>,
    pub types: Table<String>,
    pub jobs: Table<String>,
    pub leases: Table<LeaseKey>,
    pub workers: Table<String>,
    pub sessions: Table<SessionKey>,
    pub tape: Table<u64>,
    pub events: Table<u64>,
}

impl Lists {
    pub(super) fn lever(&self, list: List) -> &dyn Lever {
        match list {
            List::Holders => &self.holders,
            List::Types => &self.types,
            List::Jobs => &self.jobs,
            List::Leases => &self.leases,
            List::Workers => &self.workers,
            List::Sessions => &self.sessions,
            List::Tape => &self.tape,
            List::Events => &self.events,
        }
    }

    pub(super) fn lever_mut(&mut self, list: List) -> &mut dyn Lever {
        match list {
            List::Holders => &mut self.holders,
            List::Types => &mut self.types,
            List::Jobs => &mut self.jobs,
            List::Leases => &mut self.leases,
            List::Workers => &mut self.workers,
            List::Sessions => &mut self.sessions,
            List::Tape => &mut self.tape,
            List::Events => &mut self.events,
        }
    }
}

/// Lets a table find its rows anew.
pub(super) fn arrange(app: &mut App, list: List) {
    fn all<T>(_: &T) -> bool {
        true
    }
    match list {
        List::Holders => {
            let mut table = std::mem::take(&mut app.lists.holders);
            let rows = app.ledger().map(|l| l.holders()).unwrap_or_default();
            table.arrange(rows.into_iter(), all);
            app.lists.holders = table;
        }
        List::Types => {
            app.types = app.backlog().map(|b| types(b, app.backlog_before())).unwrap_or_default();
            app.lists.types.arrange(app.types.iter(), all);
        }
        List::Jobs => {
            let rows = app.jobs.as_ref().and_then(|j| j.list.as_ref()).and_then(|l| l.0.jobs.value());
            app.lists.jobs.arrange(rows.into_iter().flatten(), all);
        }
        List::Leases => {
            let mut table = std::mem::take(&mut app.lists.leases);
            let rows = app.sample().and_then(|s| s.leases.value());
            let only = app.only_holder.as_deref();
            table.arrange(rows.into_iter().flatten(), |l: &Lease| only.is_none_or(|h| l.holder == h));
            app.lists.leases = table;
        }
        List::Workers => {
            app.workers = workers(app);
            app.lists.workers.arrange(app.workers.iter(), all);
        }
        List::Sessions => {
            app.sessions = sessions::of(app);
            app.lists.sessions.arrange(app.sessions.iter(), all);
        }
        List::Tape => {
            let mut table = std::mem::take(&mut app.lists.tape);
            table.arrange(app.world().tape.newest(), all);
            app.lists.tape = table;
        }
        List::Events => {
            let mut table = std::mem::take(&mut app.lists.events);
            table.arrange(app.world().log.newest(), all);
            app.lists.events = table;
        }
    }
}

/// Which list has the keys on a screen.
pub(super) fn of_screen(app: &App) -> List {
    match app.screen {
        Screen::Overview => List::Holders,
        Screen::Backlog if app.jobs.is_some() => List::Jobs,
        Screen::Backlog => List::Types,
        Screen::Leases => List::Leases,
        Screen::Workers => List::Workers,
        Screen::Sessions => List::Sessions,
        Screen::WakeUps => List::Tape,
        Screen::Events => List::Events,
    }
}

/// The states that the backlog counts, in the order of its columns.
pub const COUNTED: [JobState; 4] =
    [JobState::Ready, JobState::Scheduled, JobState::Running, JobState::Failed];

/// One type of the backlog.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeLine {
    /// Names it to the server.
    pub key: String,
    /// Its text.
    pub job_type: String,
    /// Jobs in each of [`COUNTED`]: `None` where none was seen.
    pub jobs: [Option<u64>; 4],
    /// Seconds since the oldest ready job became due.
    pub oldest: Option<f64>,
    /// Seconds until the next scheduled one.
    pub next: Option<f64>,
    /// By how much its jobs that are not over have grown a second since the pass before: what came in minus
    /// what went out. `None` where one of the two passes did not see all of them.
    pub change: Option<f64>,
}

/// The states of a job that is not over.
const UNFINISHED: [JobState; 3] = [JobState::Ready, JobState::Scheduled, JobState::Running];

/// Whether a pass saw every job that is not over.
fn saw_all(backlog: &Backlog) -> bool {
    UNFINISHED.iter().all(|s| backlog.of(*s).and_then(|r| r.current()).is_some_and(|l| !l.more))
}

/// Jobs of a type that are not over.
fn unfinished(backlog: &Backlog, key: &str) -> u64 {
    let of = |s: &JobState| backlog.of(*s).and_then(|r| r.value()).into_iter().flat_map(|l| &l.types);
    UNFINISHED.iter().flat_map(of).filter(|t| t.key == key).map(|t| t.jobs).sum()
}

/// Types of all states together: those with most ready jobs first, then by name. `before` is the pass
/// before.
pub fn types(backlog: &Backlog, before: Option<&Backlog>) -> Vec<TypeLine> {
    let mut lines: Vec<TypeLine> = Vec::new();
    let mut at = std::collections::HashMap::new();
    for (column, state) in COUNTED.into_iter().enumerate() {
        let Some(looked) = backlog.of(state).and_then(|r| r.value()) else { continue };
        for t in &looked.types {
            let i = *at.entry(t.key.as_str()).or_insert_with(|| {
                lines.push(TypeLine {
                    key: t.key.clone(),
                    job_type: t.job_type.clone(),
                    jobs: [None; 4],
                    oldest: None,
                    next: None,
                    change: None,
                });
                lines.len() - 1
            });
            let Some(line) = lines.get_mut(i) else { continue };
            line.jobs[column] = Some(t.jobs);
            match state {
                JobState::Ready => line.oldest = t.edge,
                JobState::Scheduled => line.next = t.edge,
                _ => {}
            }
        }
    }
    if let Some(before) = before.filter(|b| saw_all(b) && saw_all(backlog)) {
        let seconds = (backlog.taken_at - before.taken_at).as_seconds_f64();
        for line in lines.iter_mut().filter(|_| seconds > 0.0) {
            let (is, was) = (unfinished(backlog, &line.key), unfinished(before, &line.key));
            line.change = Some((is as f64 - was as f64) / seconds);
        }
    }
    lines.sort_by(|a, b| b.jobs[0].cmp(&a.jobs[0]).then_with(|| a.job_type.cmp(&b.job_type)));
    lines
}

/// A worker, or a holder of leases that reports nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerLine {
    /// The name on its leases.
    pub name: String,
    /// What it reports; `None` for a holder that reports nothing.
    pub row: Option<WorkerRow>,
    /// What it holds, if anything.
    pub holder: Option<Holder>,
    /// Whether it runs in this program.
    pub here: bool,
}

/// A worker that has been silent for so long, seconds, and holds nothing is of the past.
pub const GONE_S: i64 = 300;

/// How many workers report, and how many did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Reporting.
    pub alive: usize,
    /// Silent, but not for long, or with leases.
    pub silent: usize,
    /// Silent for more than [`GONE_S`], without a lease: not listed.
    pub gone: usize,
}

/// Whether a worker that is silent at server time `now` is of the past.
fn is_gone(row: &WorkerRow, holder: Option<&Holder>, now: DateTime<Utc>) -> bool {
    (now - row.seen_at).num_seconds() > GONE_S && holder.is_none_or(|h| h.held == 0)
}

/// Workers that report, at server time `now`; `None` while that cannot be read.
pub(super) fn tally(app: &App, now: DateTime<Utc>) -> Option<Tally> {
    let mut out = Tally::default();
    for row in app.sample()?.workers.value()? {
        if row.is_alive(now) {
            out.alive += 1;
        } else if is_gone(row, app.holder_named(&row.name), now) {
            out.gone += 1;
        } else {
            out.silent += 1;
        }
    }
    Some(out)
}

/// Those with expired leases first, then the one of this program, then by name.
fn workers(app: &App) -> Vec<WorkerLine> {
    let Some(sample) = app.sample() else { return Vec::new() };
    let here = app.world().worker.name();
    let rows = sample.workers.value().map_or(&[][..], Vec::as_slice);
    let mut lines: Vec<WorkerLine> = rows
        .iter()
        .filter(|row| !is_gone(row, app.holder_named(&row.name), sample.taken_at))
        .map(|row| WorkerLine {
            name: row.name.clone(),
            row: Some(row.clone()),
            holder: app.holder_named(&row.name).cloned(),
            here: here == Some(row.name.as_str()),
        })
        .collect();
    let names: std::collections::HashSet<&str> = rows.iter().map(|r| r.name.as_str()).collect();
    for holder in sample.holders.value().into_iter().flatten() {
        if !names.contains(holder.name.as_str()) {
            let here = here == Some(holder.name.as_str());
            let (name, holder) = (holder.name.clone(), Some(holder.clone()));
            lines.push(WorkerLine { name, row: None, holder, here });
        }
    }
    lines.sort_by(|a, b| {
        let first = |w: &WorkerLine| (w.holder.as_ref().is_none_or(|h| h.expired == 0), !w.here);
        first(a).cmp(&first(b)).then_with(|| a.name.cmp(&b.name))
    });
    lines
}
