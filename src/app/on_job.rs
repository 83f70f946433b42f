//! Retry, give up and run now: the dialog asks the server about the job first, freezes what it answers, and
//! what is sent repeats all of that.

use super::App;
use super::dialog::{Dialog, Outcome};
use super::jobs::is_reachable;
use super::update::notice;
use crate::config::keys::{Action, Key};
use crate::model::{
    ActionEvent, Found, Intent, JobAction, JobDetail, JobFacts, JobState, LedgerFacts, Now, Offer, ShownJob,
};

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnJobPhase {
    /// The server is asked about the job.
    Looking,
    /// Asks.
    Asking,
    /// Sent; no answer yet.
    Sent,
    /// Over; `true` when it was done.
    Over(bool),
}

/// One action on one job.
#[derive(Clone, Debug, PartialEq)]
pub struct OnJob {
    /// The ledger's facts.
    pub facts: LedgerFacts,
    /// What it would do there.
    pub offer: Offer,
    /// Which job.
    pub id: String,
    /// The job as the server told; exactly this one is changed, or nothing.
    pub job: Option<Box<JobFacts>>,
    /// How far it has come.
    pub phase: OnJobPhase,
    /// How it ended, once it has.
    pub said: String,
}

/// What a key stands for, if it acts on a job.
pub fn of_key(action: Action) -> Option<JobAction> {
    match action {
        Action::Retry => Some(JobAction::Retry),
        Action::GiveUp => Some(JobAction::GiveUp),
        Action::RunNow => Some(JobAction::RunNow),
        _ => None,
    }
}

/// The key of an action on a job.
pub fn key_of(action: JobAction) -> Action {
    match action {
        JobAction::Retry => Action::Retry,
        JobAction::GiveUp => Action::GiveUp,
        JobAction::RunNow => Action::RunNow,
    }
}

/// Whether the selected job is in a state that the action takes.
pub fn fits_selected(app: &App, action: JobAction) -> bool {
    let key = app.lists.jobs.selection().key();
    let job = app.jobs().into_iter().find(|j| Some(&j.id) == key);
    job.is_some_and(|j| action.takes(j.state))
}

/// Opens the dialog for the selected job.
pub(super) fn on_selected(app: &mut App, action: JobAction, now: Now) -> Vec<Intent> {
    let Some(id) = app.lists.jobs.selection().key().cloned() else {
        notice(app, "no job is selected", now);
        return Vec::new();
    };
    if app.lists.jobs.selection().is_gone() {
        notice(app, "the selected job is gone; choose another", now);
        return Vec::new();
    }
    let state = app.jobs().into_iter().find(|j| j.id == id).and_then(|j| j.state);
    open(app, action, id, state, now)
}

/// Opens the dialog for a job that is in this state as far as is known.
pub(super) fn open(
    app: &mut App,
    action: JobAction,
    id: String,
    state: Option<JobState>,
    now: Now,
) -> Vec<Intent> {
    let word = action.word();
    if let Some(why) = app.refusal() {
        notice(app, format!("{word} refused: {why}"), now);
        return Vec::new();
    }
    if let Some(why) = action.unfit(state) {
        notice(app, why, now);
        return Vec::new();
    }
    let facts = app.facts().cloned();
    let Some((facts, offer)) =
        facts.and_then(|f| f.offers.iter().find(|o| o.action == action).cloned().map(|o| (f, o)))
    else {
        notice(app, format!("{word} refused: the server has not told about this ledger yet"), now);
        return Vec::new();
    };
    if !is_reachable(app, now) {
        return Vec::new();
    }
    let mut intents = vec![Intent::Job { ledger: facts.name.clone(), id: id.clone(), payload: false }];
    let (mut phase, mut said) = (OnJobPhase::Looking, String::new());
    if let Some(why) = &offer.refusal {
        (phase, said) = (OnJobPhase::Over(false), format!("not offered here: {why}"));
        intents.clear();
    }
    app.dialog = Some(Dialog::OnJob(Box::new(OnJob { facts, offer, id, job: None, phase, said })));
    intents
}

impl OnJob {
    /// Takes the server's answer about the job; freezes it.
    pub(super) fn looked(&mut self, detail: JobDetail) {
        if self.phase != OnJobPhase::Looking || detail.ledger != self.facts.name || detail.id != self.id {
            return;
        }
        self.phase = OnJobPhase::Over(false);
        match (detail.found.value(), detail.found.trouble()) {
            (_, Some(why)) => self.said = format!("the job cannot be read: {why}"),
            (Some(Some(facts)), None) => match self.offer.action.unfit(facts.row.state) {
                None => {
                    self.job = Some(facts.clone());
                    self.phase = OnJobPhase::Asking;
                }
                Some(why) => self.said = format!("it moved on: {why}"),
            },
            _ => self.said = format!("it moved on: now {}", Found::Gone),
        }
    }

    pub(super) fn key(&mut self, key: Key) -> Outcome {
        match (key, &self.job) {
            (Key::Enter | Key::Char('y'), Some(job)) if self.phase == OnJobPhase::Asking => {
                let job = ShownJob::of(job);
                self.phase = OnJobPhase::Sent;
                Outcome::Send(Intent::OnJob {
                    ledger: self.facts.name.clone(),
                    action: self.offer.action,
                    job,
                })
            }
            (Key::Char('n'), _) if self.phase == OnJobPhase::Asking => Outcome::Close,
            // what is asked about is not closed by the key that would have confirmed it
            (Key::Enter, _) if self.phase == OnJobPhase::Looking => Outcome::Stay,
            (Key::Esc | Key::Enter | Key::Char('q'), _) => Outcome::Close,
            _ => Outcome::Stay,
        }
    }

    pub(super) fn answer(&mut self, event: &ActionEvent) {
        if self.phase != OnJobPhase::Sent {
            return;
        }
        let (done, said) = match event {
            ActionEvent::OnJob { ledger, action, id, moved }
                if *ledger == self.facts.name && *action == self.offer.action && *id == self.id =>
            {
                match moved {
                    None if action.wakes() && self.facts.channel.is_some() => {
                        (true, format!("{}; a wake-up was sent with it", action.done()))
                    }
                    None => (true, action.done().to_owned()),
                    Some(found) => (false, format!("nothing was changed, it moved on: now {found}")),
                }
            }
            ActionEvent::Refused { why, .. } => (false, format!("nothing was changed: {why}")),
            _ => return,
        };
        (self.phase, self.said) = (OnJobPhase::Over(done), said);
    }
}
