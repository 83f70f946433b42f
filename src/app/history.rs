//! The past, compact: samples kept for stepping back in time.
//!
//! A moment is the JSON of a sample, packed against the first moment of its chunk, which it mostly
//! repeats: a few hundred bytes where the sample itself takes ten thousand. The last five minutes are kept
//! as they came (at most one a second), what is older at one in five, what is older than [`SPAN`] not at
//! all. Lists are cut to their first rows ([`slim`]). Above [`BOUND`] bytes a ledger the oldest part is
//! thinned further, so the bound holds whatever the samples hold.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::{DateTime, Utc};
use lz4_flex::block::{
    compress_into, compress_into_with_dict, decompress, decompress_with_dict, get_maximum_output_size,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::model::{Reading, Sample};

/// Bytes that the moments of one ledger take at most.
pub const BOUND: usize = 2 * 1024 * 1024;

/// How far back moments are kept.
pub const SPAN: Duration = Duration::from_secs(65 * 60);

/// As long as this every moment is kept.
const FULL: Duration = Duration::from_secs(5 * 60);

/// Of what is older, one in so many.
pub(super) const THIN: usize = 5;

/// Moments closer than this to the one before are left out.
const CLOSEST: Duration = Duration::from_millis(900);

/// Moments in a chunk.
const CHUNK: usize = 60;

/// Largest JSON of a moment.
const LARGEST: usize = 1024 * 1024;

/// Rows kept of each list of a sample.
pub const ROWS: usize = 100;

/// One moment.
#[derive(Clone, Debug)]
struct Moment {
    at: Duration,
    wall: DateTime<Utc>,
    /// Length of the JSON.
    length: usize,
    packed: Box<[u8]>,
}

/// Moments that lean on the first of them.
#[derive(Clone, Debug)]
struct Chunk {
    first: Moment,
    rest: Vec<Moment>,
    /// One in so many of `rest` is left.
    step: usize,
}

impl Chunk {
    fn bytes(&self) -> usize {
        let one = |m: &Moment| m.packed.len() + std::mem::size_of::<Moment>();
        one(&self.first) + self.rest.iter().map(one).sum::<usize>()
    }

    fn thin(&mut self, step: usize) {
        let every = step.div_ceil(self.step.max(1)).max(2);
        let mut i = 0;
        self.rest.retain(|_| {
            i += 1;
            i % every == 0
        });
        self.rest.shrink_to_fit();
        self.step = step;
    }

    fn last(&self) -> &Moment {
        self.rest.last().unwrap_or(&self.first)
    }
}

/// Moments of one kind, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History {
    chunks: VecDeque<Chunk>,
    /// JSON of the first moment of the newest chunk.
    lead: Vec<u8>,
    bytes: usize,
}

/// Room to work in, kept from moment to moment. Packed in a buffer of its own and cut down to its length, every
/// moment would be carved out of a hole of the size of the whole JSON, and leave the rest of it to nobody: the
/// heap would grow with each although they are few.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    json: Vec<u8>,
    packed: Vec<u8>,
}

impl Scratch {
    /// The JSON, packed against `lead` where there is one, in exactly the bytes that it takes.
    fn pack(&mut self, lead: Option<&[u8]>) -> Option<Box<[u8]>> {
        self.packed.resize(get_maximum_output_size(self.json.len()), 0);
        let n = match lead {
            Some(lead) => compress_into_with_dict(&self.json, &mut self.packed, lead),
            None => compress_into(&self.json, &mut self.packed),
        };
        Some(self.packed.get(..n.ok()?)?.into())
    }
}

impl History {
    /// Keeps `what` as the moment `at`. What cannot be kept is left out, as if it had not been sampled.
    pub fn push<T: Serialize>(
        &mut self,
        what: &T,
        at: Duration,
        wall: DateTime<Utc>,
        scratch: &mut Scratch,
    ) {
        if self.chunks.back().is_some_and(|c| at < c.last().at + CLOSEST) {
            return;
        }
        scratch.json.clear();
        if serde_json::to_writer(&mut scratch.json, what).is_err() {
            return;
        }
        let length = scratch.json.len();
        if length > LARGEST {
            *scratch = Scratch::default();
            return;
        }
        match self.chunks.back_mut().filter(|c| c.rest.len() + 1 < CHUNK) {
            Some(chunk) => {
                let Some(packed) = scratch.pack(Some(&self.lead)) else { return };
                self.bytes += packed.len() + std::mem::size_of::<Moment>();
                chunk.rest.push(Moment { at, wall, length, packed });
            }
            None => {
                let Some(packed) = scratch.pack(None) else { return };
                let first = Moment { at, wall, length, packed };
                self.chunks.push_back(Chunk { first, rest: Vec::new(), step: 1 });
                self.lead.clone_from(&scratch.json);
                self.tidy(at);
            }
        }
        if self.bytes > BOUND {
            self.tidy(at);
        }
    }

    /// Thins what is old, and more of it while it is too much.
    fn tidy(&mut self, now: Duration) {
        while self.chunks.front().is_some_and(|c| c.last().at + SPAN < now) {
            self.chunks.pop_front();
        }
        for chunk in &mut self.chunks {
            if chunk.step < THIN && chunk.last().at + FULL < now {
                chunk.thin(THIN);
            }
        }
        self.count();
        while self.bytes > BOUND {
            // the thickest of the closed chunks gives half of its moments, the oldest first; then chunks go
            let closed = self.chunks.len().saturating_sub(1);
            let thickest = (0..closed)
                .filter(|i| !self.chunks[*i].rest.is_empty())
                .min_by_key(|i| (self.chunks[*i].step, *i));
            match thickest.and_then(|i| self.chunks.get_mut(i)) {
                Some(chunk) => {
                    let step = chunk.step * 2;
                    chunk.thin(step);
                }
                None if closed > 0 => drop(self.chunks.pop_front()),
                None => {
                    // one chunk alone is too much: begin anew
                    self.chunks.clear();
                }
            }
            self.count();
        }
    }

    fn count(&mut self) {
        self.bytes = self.chunks.iter().map(Chunk::bytes).sum();
    }

    /// Bytes that the moments take.
    pub fn bytes(&self) -> usize {
        self.bytes + self.lead.len()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|c| 1 + c.rest.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    fn moments(&self) -> impl DoubleEndedIterator<Item = (&Chunk, &Moment)> {
        self.chunks
            .iter()
            .flat_map(|c| std::iter::once((c, &c.first)).chain(c.rest.iter().map(move |m| (c, m))))
    }

    /// When the oldest moment was.
    pub fn first(&self) -> Option<(Duration, DateTime<Utc>)> {
        self.chunks.front().map(|c| (c.first.at, c.first.wall))
    }

    /// The last moment before `at`.
    pub fn before(&self, at: Duration) -> Option<Duration> {
        self.moments().map(|(_, m)| m.at).rfind(|m| *m < at)
    }

    /// The first moment after `at`.
    pub fn after(&self, at: Duration) -> Option<Duration> {
        self.moments().map(|(_, m)| m.at).find(|m| *m > at)
    }

    /// Every moment, oldest first; one that cannot be read is left out.
    pub fn each<T: DeserializeOwned>(&self, mut tell: impl FnMut(T)) {
        for chunk in &self.chunks {
            let Ok(lead) = decompress(&chunk.first.packed, chunk.first.length) else { continue };
            if let Ok(what) = serde_json::from_slice(&lead) {
                tell(what);
            }
            for moment in &chunk.rest {
                let json = decompress_with_dict(&moment.packed, moment.length, &lead);
                if let Some(what) = json.ok().and_then(|json| serde_json::from_slice(&json).ok()) {
                    tell(what);
                }
            }
        }
    }

    /// What was newest at `at`, and the moment it came.
    pub fn at<T: DeserializeOwned>(&self, at: Duration) -> Option<(T, Duration, DateTime<Utc>)> {
        let (chunk, moment) = self.moments().rfind(|(_, m)| m.at <= at)?;
        let lead = decompress(&chunk.first.packed, chunk.first.length).ok()?;
        let json = if moment.at == chunk.first.at {
            lead
        } else {
            decompress_with_dict(&moment.packed, moment.length, &lead).ok()?
        };
        Some((serde_json::from_slice(&json).ok()?, moment.at, moment.wall))
    }
}

/// A sample with its lists cut to [`ROWS`]; the counts still tell how many there were.
pub fn slim(sample: &Sample) -> Sample {
    fn cut<T: Clone>(reading: &Reading<Vec<T>>) -> Reading<Vec<T>> {
        reading.map(|all| all.iter().take(ROWS).cloned().collect())
    }
    Sample {
        ledger: sample.ledger.clone(),
        leases: cut(&sample.leases),
        holders: cut(&sample.holders),
        workers: cut(&sample.workers),
        sessions: cut(&sample.sessions),
        counts: sample.counts.clone(),
        next_scheduled: sample.next_scheduled.clone(),
        vitals: sample.vitals.clone(),
        flow: sample.flow.clone(),
        notify_lock: sample.notify_lock.clone(),
        connections: sample.connections.clone(),
        evidence: sample.evidence.clone(),
        ..*sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn wall(s: u64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + secs(s)
    }

    fn filled(seconds: u64, what: impl Fn(u64) -> String) -> History {
        let mut h = History::default();
        for t in 0..seconds {
            h.push(&what(t), secs(t), wall(t), &mut Scratch::default());
        }
        h
    }

    #[test]
    fn the_last_minutes_are_whole_and_an_hour_ago_is_still_there() {
        let h = filled(2 * 3600, |t| format!("sample {t} {}", "of much the same text ".repeat(20)));
        let now = 2 * 3600 - 1;
        for back in 0..300 {
            let (_, at, _) = h.at::<String>(secs(now - back)).unwrap();
            assert_eq!(at, secs(now - back));
        }
        let (text, at, was) = h.at::<String>(secs(now - 3600)).unwrap();
        assert!(text.starts_with(&format!("sample {} ", at.as_secs())), "{text}");
        assert_eq!(was, wall(at.as_secs()));
        assert!(secs(now - 3600) - at < secs(12), "{at:?}");
        assert!(h.first().unwrap().0 > secs(now) - SPAN - secs(2 * CHUNK as u64));
    }

    #[test]
    fn the_bound_holds_for_samples_that_do_not_pack() {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut h = History::default();
        for t in 0..3600 {
            let noise: String = (0..8_000).map(|_| rng.alphanumeric()).collect();
            h.push(&noise, secs(t), wall(t), &mut Scratch::default());
            assert!(h.bytes() <= BOUND + 16_000, "{} bytes at {t}", h.bytes());
        }
        assert!(h.at::<String>(secs(3599)).is_some());
        assert!(h.first().unwrap().0 < secs(600), "the hour is there, thinner");
    }

    #[test]
    fn stepping_goes_from_moment_to_moment() {
        let h = filled(10, |t| t.to_string());
        assert_eq!(h.before(secs(5)), Some(secs(4)));
        assert_eq!(h.after(secs(5)), Some(secs(6)));
        assert_eq!(h.before(secs(0)), None);
        assert_eq!(h.after(secs(9)), None);
        assert_eq!(h.at::<String>(Duration::from_millis(5_400)).unwrap().0, "5");
    }

    #[test]
    fn moments_closer_than_a_second_are_left_out() {
        let mut h = History::default();
        for t in 0..50 {
            h.push(&t, Duration::from_millis(t * 100), wall(0), &mut Scratch::default());
        }
        assert_eq!(h.len(), 6);
    }
}
