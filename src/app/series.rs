//! A bounded history of figures, with gaps kept as gaps.

use std::collections::VecDeque;
use std::time::Duration;

use crate::model::Sample;

/// Points kept as they came: ten minutes at one a second.
const KEEP: usize = 600;

/// What is older is folded into points of this length.
const COARSE: Duration = Duration::from_secs(5);

/// Folded points kept: an hour of them, 200 kB.
const KEEP_COARSE: usize = 720;

/// One figure of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Jobs a second that came in.
    Arrived,
    /// Jobs a second that were finished.
    Done,
    /// Failed attempts a second.
    Failed,
    /// Age of the oldest ready job, seconds; 0 when nothing is ready.
    OldestReady,
    /// Share of the notification queue, 0–1.
    QueueUsage,
    /// Claim success, 0–1.
    ClaimSuccess,
    /// Wake-ups a second that arrived here.
    WakeUps,
}

/// How the figures of several points become one, in the order of [`Figure`].
const FOLDS: [Fold; 7] = [Fold::Mean, Fold::Mean, Fold::Mean, Fold::Max, Fold::Max, Fold::Min, Fold::Mean];

/// How several points in one column become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Their mean: rates.
    Mean,
    /// The largest: ages and shares that are bad when high.
    Max,
    /// The smallest: shares that are bad when low.
    Min,
}

/// The figures of one sample; `None` where the newest attempt gave nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    /// Arrival, by the monotonic clock.
    at: Duration,
    /// Longest time this point stands for when nothing follows it.
    lasts: Duration,
    values: [Option<f64>; 7],
    /// How many samples it stands for.
    samples: u32,
}

impl Point {
    /// Takes in the next one, unless there is a gap between them or the whole would be too long.
    fn absorb(&mut self, next: &Self) -> bool {
        if next.at > self.at + self.lasts || next.at >= self.at + COARSE {
            return false;
        }
        self.lasts = (next.at + next.lasts).saturating_sub(self.at);
        for ((mine, theirs), fold) in self.values.iter_mut().zip(&next.values).zip(FOLDS) {
            *mine = match (*mine, *theirs, fold) {
                (None, v, _) | (v, None, _) => v,
                (Some(a), Some(b), Fold::Max) => Some(a.max(b)),
                (Some(a), Some(b), Fold::Min) => Some(a.min(b)),
                (Some(a), Some(b), Fold::Mean) => Some(a + (b - a) / f64::from(self.samples + 1)),
            };
        }
        self.samples += 1;
        true
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Folded, older than all of `points`.
    coarse: VecDeque<Point>,
    points: VecDeque<Point>,
}

impl Series {
    /// Adds the figures of a sample that arrived at `at`, and the wake-ups a second since the one before.
    /// Only current readings count.
    pub fn push(&mut self, sample: &Sample, wakeups: Option<f64>, at: Duration) {
        let v = &sample.vitals;
        // A reading of "nothing is ready" is an age of nothing, not an unknown age.
        let oldest = v.oldest_ready.current().map(|o| o.unwrap_or(0.0));
        let point = Point {
            at,
            lasts: Duration::from_millis(sample.cost.effective_ms.max(200)).mul_f64(2.5),
            values: [
                sample.flow.arrived.current().copied(),
                sample.flow.done.current().copied(),
                sample.flow.failed.current().copied(),
                oldest,
                v.queue_usage.current().copied(),
                v.claim_success.current().copied().flatten(),
                wakeups,
            ],
            samples: 1,
        };
        self.points.push_back(point);
        while self.points.len() > KEEP {
            let Some(old) = self.points.pop_front() else { break };
            if !self.coarse.back_mut().is_some_and(|last| last.absorb(&old)) {
                self.coarse.push_back(old);
            }
            while self.coarse.len() > KEEP_COARSE {
                self.coarse.pop_front();
            }
        }
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = &Point> {
        self.coarse.iter().chain(&self.points)
    }

    /// Forgets what came after `at`.
    pub(super) fn until(&mut self, at: Duration) {
        for points in [&mut self.points, &mut self.coarse] {
            while points.back().is_some_and(|p| p.at > at) {
                points.pop_back();
            }
        }
    }

    /// Points kept.
    pub fn len(&self) -> usize {
        self.coarse.len() + self.points.len()
    }

    /// Whether nothing is kept yet.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty() && self.coarse.is_empty()
    }

    /// `columns` values of `figure` that end at `now`, each `width` long. A column without a point is
    /// filled from the point before it only as long as that one lasts: anything longer is a gap.
    /// Columns are aligned to multiples of `width`, so the picture moves by whole columns.
    pub fn columns(
        &self,
        figure: Figure,
        fold: Fold,
        columns: usize,
        width: Duration,
        now: Duration,
    ) -> Vec<Option<f64>> {
        let step = width.as_secs_f64().max(1e-3);
        let last = (now.as_secs_f64() / step).floor() as i64;
        let first = last - columns as i64 + 1;
        let mut out: Vec<(Option<f64>, u32)> = vec![(None, 0); columns];
        let column_of = |t: Duration| (t.as_secs_f64() / step).floor() as i64 - first;
        let mut points = self.all().peekable();
        while let Some(p) = points.next() {
            let from = column_of(p.at);
            // the end does not belong to the point: that is where the next one, or the gap, begins
            let next = points.peek().map_or(now + width, |n| n.at);
            let to = column_of(next.min(p.at + p.lasts).saturating_sub(Duration::from_nanos(1)));
            let Some(value) = p.values[figure as usize] else { continue };
            if to < 0 || from >= columns as i64 {
                continue;
            }
            if let Ok(c) = usize::try_from(from) {
                let (cell, n) = &mut out[c];
                *cell = Some(match (*cell, fold) {
                    (None, _) => value,
                    (Some(old), _) if *n == 0 => {
                        // only carried in from before: a point of its own replaces it
                        let _ = old;
                        value
                    }
                    (Some(old), Fold::Mean) => old + (value - old) / f64::from(*n + 1),
                    (Some(old), Fold::Max) => old.max(value),
                    (Some(old), Fold::Min) => old.min(value),
                });
                *n += 1;
            }
            for c in (from + 1).max(0)..=to.min(columns as i64 - 1) {
                if let Ok(c) = usize::try_from(c)
                    && out[c].1 == 0
                {
                    out[c].0 = Some(value);
                }
            }
        }
        out.into_iter().map(|(v, _)| v).collect()
    }

    /// The mean of `figure` over the last `span`; `None` when nothing is known of it.
    pub fn mean(&self, figure: Figure, span: Duration, now: Duration) -> Option<f64> {
        let from = now.saturating_sub(span);
        let (sum, n) = self
            .all()
            .rev()
            .take_while(|p| p.at >= from)
            .filter_map(|p| Some((p.values[figure as usize]?, p.samples)))
            .fold((0.0, 0u32), |(s, n), (v, of)| (s + v * f64::from(of), n + of));
        (n > 0).then(|| sum / f64::from(n))
    }

    /// By how much `figure` has changed over the last `span`; `None` when one of both ends is not known.
    pub fn change(&self, figure: Figure, span: Duration, now: Duration) -> Option<f64> {
        let known = |p: &Point| p.values[figure as usize];
        let last = self.all().rev().find(|p| p.at <= now)?;
        let from = now.checked_sub(span)?;
        let first = self.all().find(|p| p.at + p.lasts >= from)?;
        // a younger history says nothing of the whole span
        (first.at <= from + first.lasts).then_some(())?;
        Some(known(last)? - known(first)?)
    }

    /// How long `figure` has been nothing without a break, up to `now`; `None` unless it is known to be
    /// nothing now.
    pub fn zero_for(&self, figure: Figure, now: Duration) -> Option<Duration> {
        let mut since = None;
        let mut later: Option<Duration> = None;
        for p in self.all().rev() {
            // a gap ends what is known
            if later.is_some_and(|l| l > p.at + p.lasts) {
                break;
            }
            match p.values[figure as usize] {
                Some(v) if v <= 0.0 => since = Some(p.at),
                _ => break,
            }
            later = Some(p.at);
        }
        since.map(|s| now.saturating_sub(s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Reading, Trouble};
    use chrono::{DateTime, Utc};

    const AT: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn sample(done: Reading<f64>) -> Sample {
        let mut s = Sample::empty("jobs", AT);
        s.cost.effective_ms = 1000;
        s.flow.done = done;
        s
    }

    fn secs(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn done(series: &Series, columns: usize, width: u64, now: u64) -> Vec<Option<f64>> {
        series.columns(Figure::Done, Fold::Mean, columns, secs(width), secs(now))
    }

    #[test]
    fn a_gap_between_samples_stays_a_gap() {
        let mut s = Series::default();
        for t in [0, 1, 2, 10, 11] {
            s.push(&sample(Reading::exact(5.0, AT)), None, secs(t));
        }
        let got = done(&s, 12, 1, 11);
        // the sample of second 2 stands for two and a half seconds, then nothing is known
        assert_eq!(got[..5], [Some(5.0); 5]);
        assert_eq!(got[5..10], [None; 5]);
        assert_eq!(got[10..], [Some(5.0); 2]);
    }

    #[test]
    fn a_failed_reading_is_a_gap_and_not_a_zero() {
        let mut s = Series::default();
        s.push(&sample(Reading::exact(5.0, AT)), None, secs(0));
        let kept = Reading::unknown(Trouble::TimedOut).or_last(&Reading::exact(5.0, AT));
        s.push(&sample(kept), None, secs(1));
        s.push(&sample(Reading::exact(7.0, AT)), None, secs(2));
        assert_eq!(done(&s, 3, 1, 2), [Some(5.0), None, Some(7.0)]);
    }

    #[test]
    fn several_points_in_a_column_fold_as_asked() {
        let mut s = Series::default();
        for (t, v) in [(0, 1.0), (1, 3.0), (2, 8.0)] {
            s.push(&sample(Reading::exact(v, AT)), None, secs(t));
        }
        let fold = |f| s.columns(Figure::Done, f, 1, secs(3), secs(2))[0];
        assert_eq!(fold(Fold::Mean), Some(4.0));
        assert_eq!(fold(Fold::Max), Some(8.0));
        assert_eq!(fold(Fold::Min), Some(1.0));
    }

    #[test]
    fn the_history_is_bounded() {
        let mut s = Series::default();
        for t in 0..3 * 3600 {
            s.push(&sample(Reading::exact(1.0, AT)), None, secs(t));
        }
        assert_eq!(s.len(), KEEP + KEEP_COARSE);
    }

    #[test]
    fn an_hour_ago_is_still_there_and_its_gaps_are_gaps() {
        let mut s = Series::default();
        for t in (0..3600).filter(|t| !(100..160).contains(t)) {
            s.push(&sample(Reading::exact((t % 5) as f64, AT)), None, secs(t));
        }
        let got = s.columns(Figure::Done, Fold::Mean, 20, secs(10), secs(199));
        assert_eq!(
            got.iter().map(|v| if v.is_some() { '1' } else { '0' }).collect::<String>(),
            "11111111111000001111"
        );
        assert_eq!(got[3], Some(2.0));
        s.until(secs(99));
        assert_eq!(s.columns(Figure::Done, Fold::Mean, 1, secs(10), secs(120)), [None]);
    }

    #[test]
    fn nothing_for_a_while_is_known_only_without_a_break() {
        let mut s = Series::default();
        for (t, v) in [(0, 4.0), (1, 0.0), (2, 0.0), (3, 0.0)] {
            s.push(&sample(Reading::exact(v, AT)), None, secs(t));
        }
        assert_eq!(s.zero_for(Figure::Done, secs(4)), Some(secs(3)));
        s.push(&sample(Reading::exact(0.0, AT)), None, secs(60));
        assert_eq!(s.zero_for(Figure::Done, secs(61)), Some(secs(1)));
        s.push(&sample(Reading::unknown(Trouble::TimedOut)), None, secs(62));
        assert_eq!(s.zero_for(Figure::Done, secs(62)), None);
    }
}
