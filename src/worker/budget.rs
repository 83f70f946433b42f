//! How much a worker may take before it looks at the load. Pure: time and load come in.

use std::time::{Duration, Instant};

use crate::ledger::Load;
use crate::model::BudgetState;

/// Claim p99 above this is load (the contract's starting value).
const CLAIM_P99_MS: f64 = 100.0;
/// Share of the server's connections in use above this is load.
const CONNECTIONS: f64 = 0.80;
/// Notification queue usage above this is load (the contract's starting value).
const QUEUE_USAGE: f64 = 0.10;

/// So many jobs per window; then the load decides whether to go on.
#[derive(Debug)]
pub(super) struct Budget {
    limit: Option<u64>,
    window: Duration,
    spent: u64,
    opened: Instant,
    state: BudgetState,
}

impl Budget {
    pub(super) fn new(limit: Option<u64>, window: Duration, now: Instant) -> Self {
        Self { limit, window, spent: 0, opened: now, state: BudgetState::Open }
    }

    /// Jobs that may still be claimed; opens the next window when this one is over.
    pub(super) fn left(&mut self, now: Instant) -> u64 {
        let Some(limit) = self.limit else { return u64::MAX };
        if now.duration_since(self.opened) >= self.window {
            self.spent = 0;
            self.opened = now;
            self.state = BudgetState::Open;
        }
        limit.saturating_sub(self.spent)
    }

    /// Counts claimed jobs.
    pub(super) fn spend(&mut self, jobs: u64) {
        self.spent = self.spent.saturating_add(jobs);
    }

    /// What the spent budget does under this load: a new window at once, or waiting for the end of this
    /// one. The answer comes with its evidence; `None` when it was decided before.
    pub(super) fn decide(
        &mut self,
        load: &Load,
        claim_p99_ms: Option<f64>,
        now: Instant,
    ) -> Option<String> {
        match trouble(load, claim_p99_ms) {
            None => {
                self.spent = 0;
                self.opened = now;
                self.state = BudgetState::Renewed;
                Some("the load is healthy".to_owned())
            }
            Some(why) => self.wait(why),
        }
    }

    /// Waits because the load could not be read, or was not healthy.
    pub(super) fn wait(&mut self, why: String) -> Option<String> {
        let first = self.state != BudgetState::Waiting;
        self.state = BudgetState::Waiting;
        first.then_some(why)
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.state == BudgetState::Waiting
    }

    pub(super) fn state(&self) -> BudgetState {
        self.state
    }

    /// When the window ends.
    pub(super) fn reopens(&self) -> Instant {
        self.opened + self.window
    }
}

fn trouble(load: &Load, claim_p99_ms: Option<f64>) -> Option<String> {
    if let Some(p99) = claim_p99_ms.filter(|p| *p > CLAIM_P99_MS) {
        return Some(format!("claim p99 {p99:.0} ms > {CLAIM_P99_MS:.0} ms"));
    }
    let share = load.connections as f64 / load.max_connections.max(1) as f64;
    if share > CONNECTIONS {
        return Some(format!("{} of {} connections in use", load.connections, load.max_connections));
    }
    if load.queue_usage > QUEUE_USAGE {
        return Some(format!("notification queue {} full", crate::text::percent(load.queue_usage)));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(30);

    fn calm() -> Load {
        Load { queue_usage: 0.0, connections: 10, max_connections: 100 }
    }

    #[test]
    fn a_spent_budget_opens_at_once_under_a_healthy_load() {
        let t = Instant::now();
        let mut b = Budget::new(Some(200), WINDOW, t);
        assert_eq!(b.left(t), 200);
        b.spend(200);
        assert_eq!(b.left(t), 0);
        assert!(b.decide(&calm(), Some(3.0), t).is_some());
        assert_eq!((b.left(t), b.state()), (200, BudgetState::Renewed));
    }

    #[test]
    fn a_spent_budget_waits_for_the_window_under_load() {
        let t = Instant::now();
        let loads = [
            (calm(), Some(140.0), "claim p99"),
            (Load { connections: 81, ..calm() }, None, "connections"),
            (Load { queue_usage: 0.2, ..calm() }, None, "notification queue"),
        ];
        for (load, p99, word) in loads {
            let mut b = Budget::new(Some(200), WINDOW, t);
            b.spend(210);
            let why = b.decide(&load, p99, t).unwrap();
            assert!(why.contains(word), "{why}");
            assert!(b.is_waiting());
            assert_eq!(b.decide(&load, p99, t), None, "said once");
            assert_eq!(b.left(t + WINDOW - Duration::from_millis(1)), 0);
            assert_eq!(b.left(t + WINDOW), 200);
            assert_eq!(b.state(), BudgetState::Open);
        }
    }

    #[test]
    fn without_a_budget_nothing_is_ever_spent() {
        let t = Instant::now();
        let mut b = Budget::new(None, WINDOW, t);
        b.spend(1_000_000);
        assert_eq!(b.left(t), u64::MAX);
    }
}
