//! All alerts of one ledger.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::state::Turn;
use super::{ALERTS, Alert, Look, Phase, State};
use crate::config::Thresholds;
use crate::model::Sample;

/// Where the alerts of one ledger stand, by the samples it has taken in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Board {
    /// In the order of the table; what is missing at the end is ok.
    states: Vec<State>,
    /// When the newest sample was taken.
    last: Option<DateTime<Utc>>,
}

/// An alert that fired or was resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Which.
    pub alert: &'static Alert,
    /// Whether it fired; otherwise it was resolved.
    pub fired: bool,
    /// The sample at which it did.
    pub at: DateTime<Utc>,
    /// Its figure then.
    pub figure: String,
}

impl Board {
    /// Takes in the next sample; what fired and what was resolved, in the order of the table.
    pub fn observe(&mut self, look: Look<'_>) -> Vec<Change> {
        let at = look.sample.taken_at;
        let since = self.last.map_or(0.0, |last| (at - last).as_seconds_f64());
        let dt = if (0.0..=look.longest_pause_s()).contains(&since) { since } else { 0.0 };
        self.last = Some(at);
        self.states.resize(ALERTS.len(), State::default());
        let mut changes = Vec::new();
        for (alert, state) in ALERTS.iter().zip(&mut self.states) {
            let judged = alert.judge(look);
            let turn = state.step(&judged.verdict, at, dt, alert.hold_s(look), look.limits.resolve_after_s);
            if let Some(turn) = turn {
                changes.push(Change { alert, fired: turn == Turn::Fired, at, figure: judged.figure });
            }
        }
        changes
    }

    /// No sample has come for so long that the newest one, which `look` shows with its age, is stale: the one
    /// alert that a sample cannot tell. It is told once.
    pub fn miss(&mut self, look: Look<'_>) -> Option<Change> {
        let (place, alert) = Alert::find(super::table::STALE)?;
        self.states.resize(ALERTS.len(), State::default());
        let judged = alert.judge(look);
        let at = look.sample.taken_at + TimeDelta::milliseconds((look.age_s * 1e3) as i64);
        let state = self.states.get_mut(place)?;
        state.step(&judged.verdict, at, 0.0, 0.0, f64::INFINITY)?;
        Some(Change { alert, fired: true, at, figure: judged.figure })
    }

    /// Every alert with its state, in the order of the table.
    pub fn all(&self) -> impl Iterator<Item = (&'static Alert, State)> + '_ {
        ALERTS.iter().enumerate().map(|(i, a)| (a, self.states.get(i).copied().unwrap_or_default()))
    }

    /// Those that fire, the critical ones first.
    pub fn firing(&self) -> Vec<&'static Alert> {
        let mut firing: Vec<_> =
            self.all().filter(|(_, s)| s.phase().is_firing()).map(|(alert, _)| alert).collect();
        firing.sort_by_key(|a| std::cmp::Reverse(a.level));
        firing
    }

    /// How many are pending.
    pub fn pending(&self) -> usize {
        self.all().filter(|(_, s)| matches!(s.phase(), Phase::Pending { .. })).count()
    }
}

/// The alerts of several ledgers, without a screen around them.
#[derive(Clone, Debug)]
pub struct Boards {
    limits: Thresholds,
    fallback_s: f64,
    boards: HashMap<String, Board>,
}

impl Boards {
    /// Nothing was sampled yet. `fallback_s` is the fallback interval of the workers, seconds.
    pub fn new(limits: Thresholds, fallback_s: f64) -> Self {
        Self { limits, fallback_s, boards: HashMap::new() }
    }

    /// Takes in the next sample of its ledger.
    pub fn observe(&mut self, sample: &Sample) -> Vec<Change> {
        let look = Look::fresh(sample, &self.limits, self.fallback_s);
        self.boards.entry(sample.ledger.clone()).or_default().observe(look)
    }

    /// Every alert of the ledger of `sample`, and what it is judged by in that sample.
    pub fn of<'a>(&'a self, sample: &'a Sample) -> impl Iterator<Item = (&'static Alert, State, Look<'a>)> {
        let look = Look::fresh(sample, &self.limits, self.fallback_s);
        let board = self.boards.get(&sample.ledger);
        let states = board.into_iter().flat_map(Board::all);
        states.map(move |(alert, state)| (alert, state, look))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{NotifyLock, Reading};

    fn blocked(t: i64) -> Sample {
        let at = DateTime::UNIX_EPOCH + TimeDelta::seconds(t);
        let mut s = Sample::empty("jobs", at);
        s.notify_lock =
            Reading::exact(NotifyLock { holder: Some(7), waiters: 2, ..NotifyLock::default() }, at);
        s
    }

    /// The second at which it fires, of samples taken at these.
    fn fires(times: &[i64]) -> Option<i64> {
        let mut boards = Boards::new(Thresholds::default(), 30.0);
        times.iter().copied().find(|t| boards.observe(&blocked(*t)).iter().any(|c| c.fired))
    }

    #[test]
    fn what_lay_in_a_gap_is_no_time_in_the_condition() {
        assert_eq!(fires(&[0, 1, 2, 3, 4, 5, 6]), Some(5));
        assert_eq!(fires(&[0, 60, 61, 62, 63, 64, 65, 66]), Some(65), "a minute that nobody saw");
        assert_eq!(fires(&[100, 0, 1, 2, 3, 4, 5]), Some(5), "a clock that went back");
        assert_eq!(fires(&[0, 4, 8]), Some(8), "a rare sample is no gap");
    }

    #[test]
    fn ledgers_do_not_share_their_alerts() {
        let mut boards = Boards::new(Thresholds::default(), 30.0);
        (0..9).for_each(|t| drop(boards.observe(&blocked(t))));
        let other = Sample { ledger: "outbox".into(), ..blocked(9) };
        boards.observe(&other);
        let firing = |s: &Sample| boards.of(s).filter(|(_, state, _)| state.phase().is_firing()).count();
        assert_eq!((firing(&blocked(9)), firing(&other)), (1, 0));
    }
}
