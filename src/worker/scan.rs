//! Scans: which ledger is being drained, and why.

use std::time::{Duration, Instant};

use super::stats::Stats;
use crate::ledger::{Ledger, Mark};
use crate::model::ScanReason;

/// A mark stands this far below the last claimed due time: what is committed later than that with an
/// earlier due time is found by a scan from the head.
const SLACK: Duration = Duration::from_secs(2);
/// Claiming from the head takes longer than this when dead index entries are in the way: an old snapshot
/// somewhere keeps vacuum from removing them. Then a drain after a wake-up starts from the mark, too.
const DEAR: Duration = Duration::from_millis(10);

/// A drain that has begun and not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan {
    pub reason: ScanReason,
    pub jobs: u64,
    /// The first wake-up it answers, until the first claim has been timed against it.
    pub woken: Option<Instant>,
    /// A claim came back empty although something was due: it came in between, or somebody holds it locked.
    pub doubted: bool,
    /// The next claim starts from the head of the due order; otherwise from the mark.
    pub head: bool,
    /// It ends with a look from the head: it is to find what no wake-up announced, too.
    pub thorough: bool,
    /// The last claim was full: there is work for more than one claim at a time.
    pub deep: bool,
    /// A wake-up came during the last look at the head of the due order, which may not have seen it.
    pub again: bool,
}

/// One ledger as the worker serves it.
#[derive(Debug)]
pub(super) struct Served {
    pub ledger: Ledger,
    pub stats: Stats,
    pub scan: Option<Scan>,
    /// When to look at the head of the due order again, and why.
    pub next_due: Option<(Instant, ScanReason)>,
    /// The scan was broken off: what is due was not seen to the end.
    pub unfinished: bool,
    /// Claims under way.
    pub asked: usize,
    /// The look at the head after an empty claim is under way.
    pub looking: bool,
    /// Done jobs are deleted at once, unless the server has refused that.
    pub removes: bool,
    mark: Mark,
    heads: Heads,
}

/// Scans from the head of the due order.
#[derive(Clone, Copy, Debug, Default)]
struct Heads {
    /// How long the last claim from there took.
    took: Duration,
    /// When the last thorough scan began.
    at: Option<Instant>,
}

impl Heads {
    /// Whether a scan that begins now is thorough. After a wake-up it need not be, but wake-ups that follow one
    /// another without end put the fallback scan off each time: once in its interval one of them is.
    fn thorough(&mut self, reason: ScanReason, now: Instant, within: Duration) -> bool {
        let due = self.at.is_none_or(|at| now.saturating_duration_since(at) >= within);
        let thorough = reason != ScanReason::Notify || due;
        if thorough {
            self.at = Some(now);
        }
        thorough
    }
}

impl Served {
    pub(super) fn new(ledger: Ledger, removes: bool) -> Self {
        Self {
            ledger,
            stats: Stats::new(),
            scan: None,
            next_due: None,
            unfinished: false,
            asked: 0,
            looking: false,
            removes,
            mark: Mark::HEAD,
            heads: Heads::default(),
        }
    }

    /// Begins a scan. One that is under way is not begun again: it drains until nothing is due, so it
    /// finds what the new reason is about; a reconnect takes its name.
    ///
    /// `woken` is a wake-up that this scan serves although it began for another reason: what it finds was
    /// announced.
    ///
    /// At `now`; something thorough comes at least once `within` this.
    pub(super) fn begin(
        &mut self,
        reason: ScanReason,
        woken: Option<Instant>,
        now: Instant,
        within: Duration,
    ) {
        self.next_due = None;
        self.unfinished = false;
        let reason = match (reason, woken) {
            (ScanReason::Fallback, Some(_)) => ScanReason::Notify,
            _ => reason,
        };
        let thorough = self.heads.thorough(reason, now, within);
        match &mut self.scan {
            None => {
                let head = thorough || self.heads.took < DEAR;
                self.scan = Some(Scan {
                    reason,
                    jobs: 0,
                    woken,
                    doubted: false,
                    head,
                    thorough,
                    deep: false,
                    again: false,
                });
            }
            Some(scan) => {
                scan.head |= thorough;
                scan.thorough |= thorough;
                scan.again |= self.looking;
                if reason == ScanReason::Reconnect {
                    scan.reason = reason;
                } else {
                    scan.announce(reason);
                }
            }
        }
    }

    /// Where the next claim starts, and whether that is the head.
    pub(super) fn start(&mut self) -> (Mark, bool) {
        let head = self.scan.as_mut().is_none_or(|scan| std::mem::take(&mut scan.head));
        let mark = if head { Mark::HEAD } else { self.mark };
        (mark, mark == Mark::HEAD)
    }

    /// Where a look at the head of the order starts after a claim that did not start from there.
    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    /// A claim brought jobs that were due up to `last_due`.
    pub(super) fn passed(&mut self, last_due: Mark) {
        self.mark = self.mark.max(last_due.less(SLACK));
    }

    /// A claim from the head of the order took so long.
    pub(super) fn head_claim_took(&mut self, took: Duration) {
        self.heads.took = took;
    }

    /// A wake-up arrives. A scan under way claims at least once more, so it serves it: `true`. What a
    /// fallback scan finds from now on was announced.
    pub(super) fn serves_wakeup(&mut self) -> bool {
        match &mut self.scan {
            Some(scan) => {
                scan.announce(ScanReason::Notify);
                scan.again |= self.looking;
                true
            }
            None => false,
        }
    }

    /// Doubts an empty claim; `false` when the one before was doubted already.
    pub(super) fn doubt(&mut self) -> bool {
        self.scan.as_mut().is_some_and(|scan| !std::mem::replace(&mut scan.doubted, true))
    }

    /// Looks again at `at` or before, because something becomes due by time then.
    pub(super) fn due_by(&mut self, at: Instant) {
        match &mut self.next_due {
            Some((due, _)) => *due = at.min(*due),
            None => self.next_due = Some((at, ScanReason::Fallback)),
        }
    }

    /// Ends the scan and begins it again at `at`, for the same reason: what it was to find is still there.
    pub(super) fn postpone(&mut self, at: Instant) -> Option<Scan> {
        let ended = self.scan.take();
        self.unfinished = true;
        self.next_due = Some((at, ended.map_or(ScanReason::Fallback, |s| s.reason)));
        ended
    }
}

impl Scan {
    fn announce(&mut self, reason: ScanReason) {
        if self.reason == ScanReason::Fallback && reason == ScanReason::Notify {
            self.reason = ScanReason::Notify;
        }
    }
}

/// The pause until the next fallback scan: up to the interval, jittered downwards by at most a tenth, so
/// that the promise "within the interval" holds while workers spread out.
pub(super) fn fallback_pause(interval: Duration, jitter: f64) -> Duration {
    interval.mul_f64(1.0 - 0.1 * jitter)
}

/// Retry delay after failed attempt number `attempt`: exponential, capped, jittered upwards by at most a
/// half; never earlier than asked, never zero.
pub(super) fn backoff(base: Duration, cap: Duration, attempt: i64, jitter: f64) -> Duration {
    let doublings = u32::try_from(attempt.saturating_sub(1).clamp(0, 30)).unwrap_or(0);
    let delay = base.max(Duration::from_millis(1)).saturating_mul(2_u32.saturating_pow(doublings)).min(cap);
    delay.mul_f64(1.0 + 0.5 * jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wakeups_without_end_put_off_no_look_from_the_head_beyond_the_fallback_interval() {
        let (start, within) = (Instant::now(), Duration::from_secs(30));
        let mut heads = Heads::default();
        assert!(heads.thorough(ScanReason::Startup, start, within));
        let at = |s: u64| start + Duration::from_secs(s);
        let found: Vec<u64> =
            (1..=90).filter(|s| heads.thorough(ScanReason::Notify, at(*s), within)).collect();
        assert_eq!(found, [30, 60, 90]);
        assert!(heads.thorough(ScanReason::Fallback, at(91), within));
    }

    const BASE: Duration = Duration::from_secs(2);
    const CAP: Duration = Duration::from_secs(3600);

    #[test]
    fn backoff_doubles_and_is_never_earlier_than_asked() {
        for (attempt, least) in [(0, 2), (1, 2), (2, 4), (3, 8), (4, 16), (20, 3600), (i64::MAX, 3600)] {
            assert_eq!(backoff(BASE, CAP, attempt, 0.0), Duration::from_secs(least), "{attempt}");
            assert_eq!(backoff(BASE, CAP, attempt, 1.0), Duration::from_secs(least).mul_f64(1.5));
        }
        assert!(backoff(Duration::ZERO, CAP, 1, 0.0) > Duration::ZERO);
    }

    #[test]
    fn the_fallback_never_comes_later_than_its_interval() {
        let i = Duration::from_secs(30);
        assert_eq!(fallback_pause(i, 0.0), i);
        assert_eq!(fallback_pause(i, 1.0), Duration::from_secs(27));
    }
}
