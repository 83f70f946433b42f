//! One alert on one ledger: from ok by way of pending to firing, and back only with hysteresis.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::Verdict;

/// A resolved alert is shown for this long, then it is ok.
const RESOLVED_FOR: TimeDelta = TimeDelta::minutes(5);

/// Where an alert stands. Times are those of samples, by the server's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Its condition does not hold.
    #[default]
    Ok,
    /// It holds, but not for long enough.
    Pending {
        /// The sample that first showed it.
        since: DateTime<Utc>,
    },
    /// It has held for long enough, and was not clearly over since.
    Firing {
        /// The sample at which it fired.
        since: DateTime<Utc>,
    },
    /// It fired, and is over.
    Resolved {
        /// The sample at which it was resolved.
        at: DateTime<Utc>,
    },
}

impl Phase {
    /// The word on screens and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Pending { .. } => "pending",
            Self::Firing { .. } => "firing",
            Self::Resolved { .. } => "resolved",
        }
    }

    /// Whether it fires.
    pub fn is_firing(self) -> bool {
        matches!(self, Self::Firing { .. })
    }
}

/// A turn that is worth telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// From pending to firing.
    Fired,
    /// From firing to resolved.
    Resolved,
}

/// What is remembered of an alert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    phase: Phase,
    /// Seconds of the way to the next phase that were seen: bad while pending, good while firing.
    seen_s: f64,
    /// Whether the sample before was on that way, so that the time up to this one counts.
    counts: bool,
}

impl State {
    /// Where it stands.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Seconds for which its condition was seen while it is pending.
    pub fn pending_s(&self) -> Option<f64> {
        matches!(self.phase, Phase::Pending { .. }).then_some(self.seen_s)
    }

    /// Takes in the verdict of a sample taken at `at`, `dt` seconds after the one before; zero if nothing was
    /// seen in between. It fires after `hold` seconds and is resolved after `clear` seconds.
    pub fn step(
        &mut self,
        verdict: &Verdict,
        at: DateTime<Utc>,
        dt: f64,
        hold: f64,
        clear: f64,
    ) -> Option<Turn> {
        if let Verdict::Unknown(_) = verdict {
            // what was not seen counts neither way; what was, is not forgotten
            self.counts = false;
            return None;
        }
        if matches!(self.phase, Phase::Resolved { at: over } if at - over > RESOLVED_FOR) {
            self.to(Phase::Ok, false);
        }
        match (self.phase, verdict) {
            (Phase::Ok | Phase::Resolved { .. }, Verdict::Bad) => {
                self.to(Phase::Pending { since: at }, true);
                return self.fire(at, hold);
            }
            (Phase::Pending { .. }, Verdict::Bad) => {
                self.go_on(dt);
                return self.fire(at, hold);
            }
            (Phase::Pending { .. }, _) => self.to(Phase::Ok, false),
            (Phase::Firing { .. }, Verdict::Good) => {
                self.go_on(dt);
                if self.seen_s >= clear {
                    self.to(Phase::Resolved { at }, false);
                    return Some(Turn::Resolved);
                }
            }
            (Phase::Firing { .. }, _) => {
                self.seen_s = 0.0;
                self.counts = false;
            }
            (Phase::Ok | Phase::Resolved { .. }, _) => {}
        }
        None
    }

    fn to(&mut self, phase: Phase, counts: bool) {
        *self = Self { phase, seen_s: 0.0, counts };
    }

    fn go_on(&mut self, dt: f64) {
        if self.counts {
            self.seen_s += dt;
        }
        self.counts = true;
    }

    fn fire(&mut self, at: DateTime<Utc>, hold: f64) -> Option<Turn> {
        (self.seen_s >= hold).then(|| {
            self.to(Phase::Firing { since: at }, false);
            Turn::Fired
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(s: f64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::milliseconds((s * 1e3) as i64)
    }

    fn verdict() -> impl Strategy<Value = Verdict> {
        prop_oneof![
            4 => Just(Verdict::Bad),
            4 => Just(Verdict::Good),
            1 => Just(Verdict::Near),
            1 => Just(Verdict::Unknown("timed out".into())),
        ]
    }

    /// Verdicts in runs, each with the seconds since the one before; zero: nothing was seen in between.
    fn samples() -> impl Strategy<Value = Vec<(Verdict, f64)>> {
        let step = prop_oneof![8 => Just(1.0), 1 => Just(0.0), 1 => Just(2.5)];
        let run = (verdict(), prop::collection::vec(step, 1..12));
        prop::collection::vec(run, 1..20).prop_map(|runs| {
            runs.into_iter().flat_map(|(v, steps)| steps.into_iter().map(move |s| (v.clone(), s))).collect()
        })
    }

    fn run(samples: &[(Verdict, f64)], hold: f64, clear: f64) -> Vec<(f64, Turn)> {
        let (mut state, mut t, mut turns) = (State::default(), 0.0, Vec::new());
        for (v, dt) in samples {
            t += dt;
            turns.extend(state.step(v, at(t), *dt, hold, clear).map(|turn| (t, turn)));
        }
        turns
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_fires_only_after_its_condition_was_seen_for_its_time(list in samples(), hold in 0.0f64..15.0) {
            let (mut state, mut t, mut seen, mut before_bad) = (State::default(), 0.0, 0.0, false);
            for (v, dt) in &list {
                t += dt;
                // the time in the condition, told from the samples alone
                match v {
                    Verdict::Bad => {
                        seen += if before_bad { *dt } else { 0.0 };
                        before_bad = true;
                    }
                    Verdict::Unknown(_) => before_bad = false,
                    _ => (seen, before_bad) = (0.0, false),
                }
                if state.step(v, at(t), *dt, hold, 5.0) == Some(Turn::Fired) {
                    prop_assert!(seen >= hold, "fired after {seen} of {hold}");
                    prop_assert_eq!(v, &Verdict::Bad);
                }
            }
        }

        #[test]
        fn it_flaps_no_faster_than_its_hysteresis(list in samples(), hold in 0.0f64..5.0, clear in 1.0f64..15.0) {
            let turns = run(&list, hold, clear);
            for pair in turns.windows(2) {
                prop_assert!(pair[0].1 != pair[1].1, "it turns one way, then the other");
                if pair[1].1 == Turn::Resolved {
                    prop_assert!(pair[1].0 - pair[0].0 >= clear, "resolved too soon: {pair:?}");
                }
            }
            prop_assert!(turns.first().is_none_or(|t| t.1 == Turn::Fired));
        }

        #[test]
        fn the_same_samples_make_the_same_turns(list in samples()) {
            prop_assert_eq!(run(&list, 3.0, 5.0), run(&list, 3.0, 5.0));
        }
    }

    #[test]
    fn a_figure_that_hovers_fires_once() {
        let hovering: Vec<_> =
            (0..600).map(|i| (if i % 10 < 7 { Verdict::Bad } else { Verdict::Good }, 1.0)).collect();
        assert_eq!(run(&hovering, 0.0, 15.0), [(1.0, Turn::Fired)]);
    }

    #[test]
    fn one_without_a_time_fires_at_the_first_sample() {
        assert_eq!(run(&[(Verdict::Bad, 1.0)], 0.0, 15.0), [(1.0, Turn::Fired)]);
        assert_eq!(run(&[(Verdict::Bad, 1.0)], 1.0, 15.0), []);
    }

    #[test]
    fn unknown_neither_fires_nor_resolves_and_a_gap_is_no_time_in_the_condition() {
        let unknown = || (Verdict::Unknown("timed out".into()), 1.0);
        let mut list = vec![(Verdict::Bad, 1.0), (Verdict::Bad, 1.0)];
        list.extend((0..100).map(|_| unknown()));
        assert_eq!(run(&list, 3.0, 15.0), [], "1 of 3 seconds was seen");
        list.push((Verdict::Bad, 1.0));
        list.push((Verdict::Bad, 0.0));
        assert_eq!(run(&list, 3.0, 15.0), []);
        list.push((Verdict::Bad, 2.0));
        assert_eq!(run(&list, 3.0, 15.0).len(), 1);
        list.extend((0..100).map(|_| unknown()));
        assert_eq!(run(&list, 3.0, 15.0).len(), 1, "still firing");
        list.extend((0..17).map(|_| (Verdict::Good, 1.0)));
        assert_eq!(run(&list, 3.0, 15.0).len(), 2);
    }

    #[test]
    fn what_is_resolved_is_ok_after_a_while() {
        let mut state = State::default();
        state.step(&Verdict::Bad, at(0.0), 0.0, 0.0, 1.0);
        for t in 1..=3 {
            state.step(&Verdict::Good, at(f64::from(t)), 1.0, 0.0, 1.0);
        }
        assert_eq!(state.phase(), Phase::Resolved { at: at(2.0) });
        state.step(&Verdict::Good, at(303.0), 0.0, 0.0, 1.0);
        assert_eq!(state.phase(), Phase::Ok);
    }
}
