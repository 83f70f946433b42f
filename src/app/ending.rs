//! The end of a session, or of what it runs, and the plan of a claim: what is asked, and the keys.

use super::dialog::{Outcome, ReleasePhase, close_on_any_leave};
use crate::config::Keymap;
use crate::config::keys::{Action, Key, Scope};
use crate::model::{ActionEvent, Ending, Intent, PlanCheck, Session};

/// The end of a session, or of what it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// Which of the two.
    pub how: Ending,
    /// The session as it was seen; exactly this one is meant.
    pub session: Session,
    /// Those that wait for it, by pid and program.
    pub blocks: Vec<String>,
    /// All that wait for it, through others too.
    pub behind: usize,
    /// What was typed so far.
    pub typed: String,
    /// How far it has come.
    pub phase: ReleasePhase,
}

impl End {
    /// Ending a session loses its transaction: that is not done by one key.
    pub fn needs_typing(&self) -> bool {
        self.how == Ending::Terminate
    }

    /// Whether Enter would send it.
    pub fn is_confirmable(&self) -> bool {
        self.phase == ReleasePhase::Asking
            && (!self.needs_typing() || self.typed == self.session.pid.to_string())
    }
}

/// The plan of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanView {
    /// Profile name of the ledger.
    pub ledger: String,
    /// The answer, once it has come.
    pub check: Option<PlanCheck>,
    /// First row shown.
    pub top: usize,
}

pub(super) fn plan_key(view: &mut PlanView, key: Key, keys: &Keymap) -> Outcome {
    match keys.lookup(key, |scope| scope != Scope::Replay) {
        Some(Action::Down) => view.top += 1,
        Some(Action::Up) => view.top = view.top.saturating_sub(1),
        Some(Action::Copy) => {
            let index = view.check.as_ref().and_then(|c| c.plan.value()).and_then(|p| p.index.clone());
            return index.map_or(Outcome::Stay, |sql| Outcome::Copy("the statement", sql));
        }
        _ => return close_on_any_leave(key),
    }
    Outcome::Stay
}

pub(super) fn end_key(e: &mut End, key: Key) -> Outcome {
    if e.phase != ReleasePhase::Asking {
        return close_on_any_leave(key);
    }
    match key {
        Key::Esc => Outcome::Close,
        Key::Enter if e.is_confirmable() => {
            e.phase = ReleasePhase::Sent;
            Outcome::Send(Intent::End { how: e.how, session: Box::new(e.session.clone()) })
        }
        Key::Char('n' | 'q') if !e.needs_typing() => Outcome::Close,
        Key::Backspace => {
            e.typed.pop();
            Outcome::Stay
        }
        Key::Char(c) if e.needs_typing() && e.typed.len() < 12 => {
            e.typed.push(c);
            Outcome::Stay
        }
        _ => Outcome::Stay,
    }
}

pub(super) fn answer_end(e: &mut End, event: &ActionEvent) {
    if e.phase != ReleasePhase::Sent {
        return;
    }
    match event {
        ActionEvent::Ended { pid, how, sent, answer } if *pid == e.session.pid && *how == e.how => {
            e.phase = ReleasePhase::Over(*sent, answer.clone());
        }
        ActionEvent::Refused { why, .. } => {
            e.phase = ReleasePhase::Over(false, format!("nothing was done: {why}"));
        }
        _ => {}
    }
}
