//! The live tape of wake-ups, claims and drains, and how long a wake-up takes to become a claim.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::events::jobs;
use super::table::{Row, Value};
use crate::model::{ClaimOutcome, Event, Listen, Now, ScanReason, WorkerEvent};
use crate::text::count;

/// Lines kept.
const KEEP: usize = 500;

/// What is alike within this time is counted into one line: a storm of notifications stays readable.
const FOLD_WITHIN: Duration = Duration::from_secs(1);

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// Notifications arrived here.
    Wake,
    /// Claims that got jobs.
    Got,
    /// Claims that found nothing.
    Empty,
    /// Claims that found only rows locked by others.
    Contended,
    /// A claim that failed.
    Failed,
    /// A drain ended.
    Drain(ScanReason),
    /// The listen session was lost.
    Lost,
    /// It is there.
    Back,
}

/// One line of the tape.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Number since the start; its identity.
    pub seq: u64,
    /// Monotonic.
    pub at: Duration,
    /// Wall clock, display only.
    pub wall: DateTime<Utc>,
    /// What it is about.
    pub mark: Mark,
    /// The channel or the ledger.
    pub of: String,
    /// Notifications, or jobs.
    pub n: u64,
    /// How many events it stands for.
    pub times: u64,
    /// In words.
    pub text: String,
    slowest_ms: f64,
}

impl Line {
    fn say(&mut self) {
        let (n, times) = (count(self.n), count(self.times));
        let claims = if self.times == 1 { "claim" } else { "claims" };
        self.text = match self.mark {
            Mark::Wake if self.n == 1 => "1 wake-up".to_owned(),
            Mark::Wake => format!("{n} wake-ups"),
            Mark::Got => format!("{times} {claims} got {} in ≤ {:.1}ms", jobs(self.n), self.slowest_ms),
            Mark::Empty => format!("{times} {claims} found nothing due"),
            Mark::Contended => format!("{times} {claims} found only rows locked by others"),
            Mark::Failed => format!("{times} {claims} failed"),
            Mark::Drain(reason) => format!("drained {} ({})", jobs(self.n), reason.word()),
            Mark::Lost => "listener lost".to_owned(),
            Mark::Back => "listening".to_owned(),
        };
    }
}

impl Row for Line {
    type Key = u64;

    fn key(&self) -> u64 {
        self.seq
    }

    fn is(&self, key: &u64) -> bool {
        self.seq == *key
    }

    fn cells(&self) -> Vec<&str> {
        vec![&self.of, &self.text]
    }

    fn value(&self, column: usize) -> Value {
        match column {
            0 => Value::Number(self.seq as f64),
            1 => Value::Text(self.of.clone()),
            _ => Value::Number(self.n as f64),
        }
    }
}

/// Upper bounds of the histogram's classes, milliseconds; the last class has none.
pub const CLASSES_MS: [f64; 12] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0];

/// See the module. Newest last; bounded.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    lines: VecDeque<Line>,
    next: u64,
    /// Since when a wake-up waits for the embedded worker's claim.
    waiting: Option<Duration>,
    classes: [u64; CLASSES_MS.len() + 1],
    largest: Option<f64>,
}

impl Tape {
    /// Lines, newest first.
    pub fn newest(&self) -> impl DoubleEndedIterator<Item = &Line> + ExactSizeIterator {
        self.lines.iter().rev()
    }

    /// The line at `row`, newest first.
    pub fn get(&self, row: usize) -> Option<&Line> {
        self.lines.len().checked_sub(row + 1).and_then(|at| self.lines.get(at))
    }

    /// How many wake-ups of this program's worker became a claim within each class of [`CLASSES_MS`].
    pub fn classes(&self) -> &[u64] {
        &self.classes
    }

    /// The longest of them, milliseconds.
    pub fn largest(&self) -> Option<f64> {
        self.largest
    }

    /// Forgets what came after `at`.
    pub fn until(&mut self, at: Duration) {
        while self.lines.back().is_some_and(|l| l.at > at) {
            self.lines.pop_back();
        }
    }

    fn put(&mut self, now: Now, mark: Mark, of: &str, n: u64, ms: f64) {
        // claims and wake-ups come in turn: each folds into its own line
        let alike = self
            .lines
            .iter_mut()
            .rev()
            .take(4)
            .find(|l| l.mark == mark && l.of == of && now.mono.saturating_sub(l.at) < FOLD_WITHIN);
        if let Some(line) = alike {
            line.n += n;
            line.times += 1;
            line.slowest_ms = line.slowest_ms.max(ms);
            line.say();
            return;
        }
        let mut line = Line {
            seq: self.next,
            at: now.mono,
            wall: now.wall,
            mark,
            of: of.to_owned(),
            n,
            times: 1,
            text: String::new(),
            slowest_ms: ms,
        };
        line.say();
        self.lines.push_back(line);
        self.next += 1;
        while self.lines.len() > KEEP {
            self.lines.pop_front();
        }
    }

    /// Takes in what `event` tells. `has_worker`: whether a worker runs in this program.
    pub fn record(&mut self, event: &Event, has_worker: bool, now: Now) {
        match event {
            Event::Wake(wake) => {
                self.put(now, Mark::Wake, &wake.channel, wake.count, 0.0);
                if has_worker && self.waiting.is_none() {
                    self.waiting = Some(now.mono);
                }
            }
            Event::Listen(Listen::Down { .. }) => self.put(now, Mark::Lost, "", 0, 0.0),
            Event::Listen(Listen::Up { channels, .. }) => {
                self.put(now, Mark::Back, &channels.join(","), 0, 0.0);
            }
            Event::Worker(WorkerEvent::Claim { ledger, outcome, jobs, ms }) => {
                let mark = match outcome {
                    ClaimOutcome::Got => Mark::Got,
                    ClaimOutcome::Empty => Mark::Empty,
                    ClaimOutcome::Contended => Mark::Contended,
                    ClaimOutcome::Error => Mark::Failed,
                };
                self.put(now, mark, ledger, *jobs, *ms);
                if let Some(since) = self.waiting.take() {
                    // a claim is told when it has ended; it began so much earlier
                    let took = now.mono.saturating_sub(since).as_secs_f64() * 1e3 - ms;
                    self.took(took.max(0.0));
                }
            }
            Event::Worker(WorkerEvent::Drained { ledger, reason, jobs }) if *jobs > 0 => {
                self.put(now, Mark::Drain(*reason), ledger, *jobs, 0.0);
            }
            Event::Worker(WorkerEvent::Stopped { .. }) => self.waiting = None,
            _ => {}
        }
    }

    fn took(&mut self, ms: f64) {
        let class = CLASSES_MS.iter().position(|c| ms <= *c).unwrap_or(CLASSES_MS.len());
        self.classes[class] += 1;
        self.largest = Some(self.largest.map_or(ms, |l| l.max(ms)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Wake;

    fn now(ms: u64) -> Now {
        Now { mono: Duration::from_millis(ms), wall: DateTime::UNIX_EPOCH }
    }

    fn wake(n: u64) -> Event {
        Event::Wake(Wake { channel: "c".into(), count: n })
    }

    fn claim(outcome: ClaimOutcome, jobs: u64, ms: f64) -> Event {
        Event::Worker(WorkerEvent::Claim { ledger: "jobs".into(), outcome, jobs, ms })
    }

    #[test]
    fn what_is_alike_within_a_second_is_one_line() {
        let mut tape = Tape::default();
        for ms in 0..10 {
            tape.record(&wake(3), false, now(ms * 50));
            tape.record(&claim(ClaimOutcome::Got, 10, ms as f64), false, now(ms * 50 + 1));
        }
        tape.record(&wake(1), false, now(2_000));
        let told: Vec<&str> = tape.newest().map(|l| l.text.as_str()).collect();
        assert_eq!(told, ["1 wake-up", "10 claims got 100 jobs in ≤ 9.0ms", "30 wake-ups"]);
    }

    #[test]
    fn a_wakeup_is_measured_to_the_beginning_of_the_first_claim_after_it() {
        let mut tape = Tape::default();
        tape.record(&wake(1), true, now(0));
        tape.record(&wake(1), true, now(100));
        tape.record(&claim(ClaimOutcome::Got, 1, 5.0), true, now(160));
        tape.record(&claim(ClaimOutcome::Empty, 0, 5.0), true, now(170));
        // 155 ms: above 100, not above 200
        assert_eq!(tape.classes()[7], 1);
        assert_eq!(tape.classes().iter().sum::<u64>(), 1);
        assert_eq!(tape.largest(), Some(155.0));
    }

    #[test]
    fn without_a_worker_here_nothing_is_measured() {
        let mut tape = Tape::default();
        tape.record(&wake(1), false, now(0));
        tape.record(&claim(ClaimOutcome::Got, 1, 5.0), false, now(160));
        assert_eq!(tape.largest(), None);
    }

    #[test]
    fn the_tape_is_bounded() {
        let mut tape = Tape::default();
        for i in 0..2_000 {
            tape.record(&wake(1), false, now(i * 1_000));
        }
        assert_eq!(tape.newest().len(), KEEP);
    }
}
