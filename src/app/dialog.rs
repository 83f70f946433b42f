//! What asks before something happens. Every dialog names its target and its effect, and keeps the
//! target as it was when the dialog opened.

use super::alerts::ALERTS;
pub use super::ending::{End, PlanView};
use super::ending::{answer_end, end_key, plan_key};
use super::lists::WorkerLine;
use super::on_job::{OnJob, of_key};
use super::palette::{Item, Palette};
use super::seen::JobSeen;
use super::sessions::{Held, SessionLine};
use crate::config::Keymap;
use crate::config::keys::{Action, Key, Scope};
use crate::model::{ActionEvent, Fault, Holder, Intent, JobAction, JobDetail, Lease, LedgerFacts};

/// How far a release has come.
#[derive(Clone, Debug, PartialEq)]
pub enum ReleasePhase {
    /// Asks.
    Asking,
    /// Sent; no answer yet.
    Sent,
    /// Over, with what the server said; `true` when the lease was released.
    Over(bool, String),
}

/// The release of one lease.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// The ledger's facts: relation, statement, fencing.
    pub facts: LedgerFacts,
    /// The lease as it was seen; exactly this one is released, or nothing.
    pub lease: Lease,
    /// What was known of its holder.
    pub holder: Option<Holder>,
    /// Whether the lease had not expired when the dialog opened: then the id must be typed.
    pub needs_typing: bool,
    /// What was typed so far.
    pub typed: String,
    /// How far it has come.
    pub phase: ReleasePhase,
}

impl Release {
    /// Whether Enter would send it.
    pub fn is_confirmable(&self) -> bool {
        self.phase == ReleasePhase::Asking && (!self.needs_typing || self.typed == self.lease.id)
    }
}

/// How far a bulk release has come.
#[derive(Clone, Debug, PartialEq)]
pub enum BulkPhase {
    /// The dry run is under way.
    Counting,
    /// Asks, with the count of the dry run.
    Asking {
        /// How many would be freed.
        count: u64,
        /// Whether the count stopped at its cap.
        capped: bool,
    },
    /// Running, batch by batch.
    Running {
        /// Freed so far.
        total: u64,
        /// Batches so far.
        batches: u64,
        /// Asked to stop after the batch in hand.
        stopping: bool,
    },
    /// Over.
    Over {
        /// Freed altogether.
        total: u64,
        /// Whether it was stopped before the end.
        stopped: bool,
    },
    /// Could not be done.
    Refused(String),
}

/// The release of all expired leases.
#[derive(Clone, Debug, PartialEq)]
pub struct Bulk {
    /// Profile name of the ledger.
    pub ledger: String,
    /// Only those of these holders; `None`: of all.
    pub holders: Option<Vec<String>>,
    /// What a late completion would do.
    pub verdict: &'static str,
    /// How far it has come.
    pub phase: BulkPhase,
}

/// A question with one effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// What is asked.
    pub title: String,
    /// Target and effect, line by line.
    pub lines: Vec<String>,
    /// What is sent when confirmed.
    pub intent: Intent,
}

/// One job that is looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct JobView {
    /// Profile name of the ledger.
    pub ledger: String,
    /// Which job.
    pub id: String,
    /// Whether its payload was asked for.
    pub payload: bool,
    /// The answer, once it has come.
    pub detail: Option<JobDetail>,
    /// What the samples in memory showed of it when it was opened.
    pub seen: Option<JobSeen>,
    /// First row shown.
    pub top: usize,
}

/// Everything that can lie over a screen.
#[derive(Clone, Debug, PartialEq)]
pub enum Dialog {
    /// The keys.
    Help {
        /// First line shown.
        top: usize,
    },
    /// One lease in full, as it was when opened.
    Lease(Box<(Lease, Option<Holder>)>),
    /// One event in full, by its number.
    Event(u64),
    /// Finds an action by name.
    Palette(Palette),
    /// One worker: as it is now, or as it was when it was last seen.
    Worker(Box<WorkerLine>),
    /// One session, likewise.
    Session(Box<SessionLine>),
    /// The plan of a claim.
    Plan(Box<PlanView>),
    /// Cancel or terminate.
    End(Box<End>),
    /// One job.
    Job(Box<JobView>),
    /// Retry, give up or run now.
    OnJob(Box<OnJob>),
    /// Release one.
    Release(Box<Release>),
    /// Release all expired.
    Bulk(Bulk),
    /// A question.
    Ask(Ask),
    /// The alerts of the ledger.
    Alerts {
        /// The selected one, by its place in the table.
        at: usize,
    },
    /// The runbook of an alert, with the evidence of what is shown.
    Runbook {
        /// Which, by its place in the table.
        alert: usize,
        /// First row shown.
        top: usize,
        /// Whether it was opened from the list, to which Esc goes back.
        listed: bool,
    },
    /// The fault menu.
    Faults {
        /// Entries.
        list: Vec<Fault>,
        /// The selected one.
        at: usize,
    },
    /// Something to read, with a title.
    Notice {
        /// Title.
        title: String,
        /// Lines.
        lines: Vec<String>,
    },
}

/// Keys of the lines of the fault menu, in order.
pub const FAULT_KEYS: &str = "123456789abcdefghi";

/// What a key did to a dialog.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It stays.
    Stay,
    /// It closes.
    Close,
    /// It stays and this is sent, unless actions are refused by now.
    Send(Intent),
    /// It closes and this is sent, unless actions are refused by now.
    CloseAndSend(Intent),
    /// It closes and the release of the lease it showed is asked for.
    OpenRelease(Lease),
    /// It closes and this is asked about the job that it showed.
    OpenOnJob(JobAction),
    /// It closes and this is done.
    Run(Item),
    /// It stays and this is copied: what it is, and its text.
    Copy(&'static str, String),
    /// It closes and the leases of this holder are shown.
    ShowHolder(String),
}

impl Dialog {
    /// Handles one key. Within a dialog keys are its own, but for those that do the same as outside.
    pub fn key(&mut self, key: Key, keys: &Keymap) -> Outcome {
        let is = |action| keys.of(action).is_some_and(|b| b.keys.contains(&key));
        match self {
            Self::Help { .. } if is(Action::Help) => Outcome::Close,
            Self::Palette(palette) => palette.key(key),
            Self::Release(r) if key == Key::Ctrl('y') => {
                Outcome::Copy("the statement", r.facts.release_sql.clone())
            }
            Self::Help { top } => match key {
                Key::Down | Key::Char('j') => {
                    *top += 1;
                    Outcome::Stay
                }
                Key::Up | Key::Char('k') => {
                    *top = top.saturating_sub(1);
                    Outcome::Stay
                }
                Key::Esc | Key::Enter | Key::Char('q') => Outcome::Close,
                _ => Outcome::Stay,
            },
            Self::Lease(shown) if is(Action::Release) => Outcome::OpenRelease(shown.0.clone()),
            Self::Lease(shown) if is(Action::Copy) => Outcome::Copy("the job's id", shown.0.id.clone()),
            Self::Lease(_) => close_on_any_leave(key),
            Self::Worker(line) if key == Key::Enter => Outcome::ShowHolder(line.name.clone()),
            Self::Worker(line) if is(Action::Copy) => Outcome::Copy("the worker's name", line.name.clone()),
            Self::Worker(_) => close_on_any_leave(key),
            Self::OnJob(on) if key == Key::Ctrl('y') => {
                Outcome::Copy("the statement", on.offer.sql.clone())
            }
            Self::OnJob(on) => on.key(key),
            Self::Session(line) if is(Action::Copy) => match &line.held {
                Held::Session(s) => Outcome::Copy("the pid", s.pid.to_string()),
                Held::Pin(p) => Outcome::Copy("the name", p.name.clone()),
            },
            Self::Job(view) => job_key(view, key, keys),
            Self::Event(_) | Self::Session(_) | Self::Notice { .. } => close_on_any_leave(key),
            Self::Plan(view) => plan_key(view, key, keys),
            Self::End(end) => end_key(end, key),
            Self::Release(release) => release_key(release, key),
            Self::Bulk(bulk) => bulk_key(bulk, key),
            Self::Ask(ask) => match key {
                Key::Enter | Key::Char('y') => Outcome::CloseAndSend(ask.intent.clone()),
                Key::Esc | Key::Char('n' | 'q') => Outcome::Close,
                _ => Outcome::Stay,
            },
            Self::Alerts { at } => match key {
                Key::Up | Key::Char('k') => {
                    *at = at.saturating_sub(1);
                    Outcome::Stay
                }
                Key::Down | Key::Char('j') => {
                    *at = (*at + 1).min(ALERTS.len() - 1);
                    Outcome::Stay
                }
                Key::Enter => {
                    *self = Self::Runbook { alert: *at, top: 0, listed: true };
                    Outcome::Stay
                }
                Key::Esc | Key::Char('q') => Outcome::Close,
                _ if is(Action::Alerts) => Outcome::Close,
                _ => Outcome::Stay,
            },
            Self::Runbook { alert, listed: true, .. } if key == Key::Esc => {
                *self = Self::Alerts { at: *alert };
                Outcome::Stay
            }
            Self::Runbook { alert, top, .. } => runbook_key(*alert, top, key, keys),
            Self::Faults { list, at } => match key {
                Key::Up | Key::Char('k') => {
                    *at = at.saturating_sub(1);
                    Outcome::Stay
                }
                Key::Down | Key::Char('j') => {
                    *at = (*at + 1).min(list.len().saturating_sub(1));
                    Outcome::Stay
                }
                Key::Enter => {
                    list.get(*at).map_or(Outcome::Close, |f| Outcome::CloseAndSend(Intent::Fault(*f)))
                }
                Key::Char(c) if FAULT_KEYS.contains(c) => {
                    let at = FAULT_KEYS.find(c).unwrap_or_default();
                    list.get(at).map_or(Outcome::Stay, |f| Outcome::CloseAndSend(Intent::Fault(*f)))
                }
                Key::Esc | Key::Char('q') => Outcome::Close,
                _ if is(Action::Faults) => Outcome::Close,
                _ => Outcome::Stay,
            },
        }
    }

    /// Takes the answer to what the dialog sent.
    pub fn answer(&mut self, event: &ActionEvent) {
        match self {
            Self::End(e) => answer_end(e, event),
            Self::Release(r) => answer_release(r, event),
            Self::Bulk(b) => answer_bulk(b, event),
            Self::OnJob(on) => on.answer(event),
            _ => {}
        }
    }
}

fn job_key(view: &mut JobView, key: Key, keys: &Keymap) -> Outcome {
    match keys.lookup(key, |scope| scope != Scope::Replay) {
        Some(Action::Payload) => {
            view.payload = !view.payload;
            if view.payload {
                let (ledger, id) = (view.ledger.clone(), view.id.clone());
                return Outcome::Send(Intent::Job { ledger, id, payload: true });
            }
            // what is hidden is not kept either
            if let Some(detail) = &mut view.detail {
                detail.hide_payload();
            }
            Outcome::Stay
        }
        Some(Action::Down) => {
            view.top += 1;
            Outcome::Stay
        }
        Some(Action::Up) => {
            view.top = view.top.saturating_sub(1);
            Outcome::Stay
        }
        Some(Action::PageDown) => {
            view.top += 10;
            Outcome::Stay
        }
        Some(Action::PageUp) => {
            view.top = view.top.saturating_sub(10);
            Outcome::Stay
        }
        Some(action) if of_key(action).is_some() => {
            of_key(action).map_or(Outcome::Stay, Outcome::OpenOnJob)
        }
        _ => close_on_any_leave(key),
    }
}

/// A runbook scrolls, and the keys that it names do what they do outside: it closes, and they are pressed.
fn runbook_key(alert: usize, top: &mut usize, key: Key, keys: &Keymap) -> Outcome {
    let action = keys.lookup(key, |scope| scope != Scope::Replay);
    match action {
        Some(Action::Down) => *top += 1,
        Some(Action::Up) => *top = top.saturating_sub(1),
        Some(Action::PageDown) => *top += 10,
        Some(Action::PageUp) => *top = top.saturating_sub(10),
        Some(action) if ALERTS.get(alert).is_some_and(|a| a.actions().any(|named| named == action)) => {
            // what is released or ended is chosen first
            let action = match action {
                Action::Release => Action::Leases,
                Action::CancelQuery | Action::Terminate => Action::Sessions,
                other => other,
            };
            return Outcome::Run(Item::Action(action));
        }
        _ => return close_on_any_leave(key),
    }
    Outcome::Stay
}

pub(super) fn close_on_any_leave(key: Key) -> Outcome {
    match key {
        Key::Esc | Key::Enter | Key::Char('q') => Outcome::Close,
        _ => Outcome::Stay,
    }
}

fn release_key(r: &mut Release, key: Key) -> Outcome {
    if r.phase != ReleasePhase::Asking {
        return close_on_any_leave(key);
    }
    let send = |r: &mut Release| {
        r.phase = ReleasePhase::Sent;
        Outcome::Send(Intent::Release { ledger: r.facts.name.clone(), lease: r.lease.clone() })
    };
    match key {
        Key::Esc => Outcome::Close,
        Key::Enter if r.is_confirmable() => send(r),
        Key::Char('y') if !r.needs_typing => send(r),
        Key::Char('n' | 'q') if !r.needs_typing => Outcome::Close,
        Key::Backspace => {
            r.typed.pop();
            Outcome::Stay
        }
        // long enough for any id, bounded for a cat on the keyboard
        Key::Char(c) if r.needs_typing && r.typed.chars().count() < 128 => {
            r.typed.push(c);
            Outcome::Stay
        }
        _ => Outcome::Stay,
    }
}

fn bulk_key(b: &mut Bulk, key: Key) -> Outcome {
    match (&mut b.phase, key) {
        (BulkPhase::Asking { count, .. }, Key::Enter | Key::Char('y')) if *count > 0 => {
            b.phase = BulkPhase::Running { total: 0, batches: 0, stopping: false };
            Outcome::Send(Intent::ReleaseExpired { ledger: b.ledger.clone(), holders: b.holders.clone() })
        }
        (BulkPhase::Asking { .. }, Key::Char('n')) => Outcome::Close,
        (BulkPhase::Running { stopping, .. }, Key::Esc) if !*stopping => {
            *stopping = true;
            Outcome::Send(Intent::StopBulk)
        }
        // a second Esc does not wait for a server that does not answer
        (BulkPhase::Running { .. }, Key::Esc) => Outcome::Close,
        (BulkPhase::Running { .. }, _) => Outcome::Stay,
        (BulkPhase::Counting, Key::Enter) => Outcome::Stay,
        (_, key) => close_on_any_leave(key),
    }
}

fn answer_release(r: &mut Release, event: &ActionEvent) {
    if r.phase != ReleasePhase::Sent {
        return;
    }
    match event {
        ActionEvent::Released { ledger, id, .. } if *ledger == r.facts.name && *id == r.lease.id => {
            r.phase = ReleasePhase::Over(true, "released; a wake-up was sent with it".to_owned());
        }
        ActionEvent::MovedOn { ledger, id, found } if *ledger == r.facts.name && *id == r.lease.id => {
            r.phase = ReleasePhase::Over(false, format!("nothing was changed, it moved on: now {found}"));
        }
        ActionEvent::Refused { why, .. } => {
            r.phase = ReleasePhase::Over(false, format!("nothing was changed: {why}"));
        }
        _ => {}
    }
}

fn answer_bulk(b: &mut Bulk, event: &ActionEvent) {
    match event {
        ActionEvent::ExpiredCount { ledger, holders, count, capped }
            if *ledger == b.ledger && *holders == b.holders && b.phase == BulkPhase::Counting =>
        {
            b.phase = BulkPhase::Asking { count: *count, capped: *capped };
        }
        ActionEvent::Batch { ledger, total: freed, .. } if *ledger == b.ledger => {
            if let BulkPhase::Running { total, batches, .. } = &mut b.phase {
                *total = *freed;
                *batches += 1;
            }
        }
        ActionEvent::BulkDone { ledger, total, stopped } if *ledger == b.ledger => {
            if matches!(b.phase, BulkPhase::Running { .. }) {
                b.phase = BulkPhase::Over { total: *total, stopped: *stopped };
            }
        }
        ActionEvent::Refused { why, .. } => {
            if matches!(b.phase, BulkPhase::Running { .. } | BulkPhase::Counting) {
                b.phase = BulkPhase::Refused(why.clone());
            }
        }
        _ => {}
    }
}
