//! Retention: jobs that were done longer ago than they are kept are deleted, beside the loop and never in
//! its way.
//!
//! A walk goes through the table by the primary key, a page at a time, on a session of its own that is closed
//! at its end. It stops at the first page in which no row is old enough for anything to have been done that
//! long ago; it begins where the last one found the first row that stayed, so that it does not go through
//! index entries of rows that are gone. Workers do not agree on who prunes: each walks at times of its own,
//! and finds what the others have left, which is little.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use super::Setup;
use crate::ledger::Ledger;
use crate::model::{Event, Sink, WorkerEvent};
use crate::pg::{Error, Purpose, Session, sqlstate};

/// Rows of a page.
const PAGE: usize = 1000;
/// Where a page takes longer than its session allows, smaller ones are tried, down to this.
const LEAST: usize = 50;
/// After a page: so many times what it took nothing is done. A walk costs a twentieth of the time at most.
const REST: u32 = 19;
/// The longest of these pauses.
const LONGEST_REST: Duration = Duration::from_secs(30);
/// One walk in so many begins at the head of the table: a row with an old id may have been committed late.
const FROM_HEAD: u32 = 16;
/// Between two walks: a tenth of the time that is kept, within these.
const OFTEN: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(600);
/// The same where a walk always goes through the whole table.
const SELDOM_WHOLE: Duration = Duration::from_secs(86_400);
/// The first walk comes within this, so that workers that start together spread out.
const FIRST: Duration = Duration::from_secs(10);
/// A long walk says how far it is this often.
const TELL: Duration = Duration::from_secs(30);
/// At the end of the worker: how long a page that is under way is waited for.
const LAST_PAGE: Duration = Duration::from_millis(500);

/// The task that walks. Dropped, it ends at once.
pub(super) struct Pruner {
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    gone: Arc<AtomicU64>,
}

impl Pruner {
    /// Starts it, where jobs are kept for a limited time.
    pub(super) fn start(setup: &Setup, ledgers: &[Ledger], sink: &Arc<dyn Sink>) -> Self {
        let (stop, ear) = watch::channel(false);
        let gone: Arc<AtomicU64> = Arc::default();
        let mut tasks = JoinSet::new();
        if let Some(keep) = setup.settings.keep.filter(|keep| !keep.is_zero()) {
            // One that ends as soon as it can has no time to lose.
            let first = if setup.until_empty { Duration::ZERO } else { FIRST.min(keep) };
            let begin = Instant::now() + first.mul_f64(fastrand::f64());
            let beats = ledgers.iter().map(|l| Beat::new(l.clone(), begin)).collect();
            let (setup, sink, gone) = (setup.clone(), sink.clone(), gone.clone());
            tasks.spawn(Walker { setup, keep, beats, sink, gone, stop: ear }.run());
        }
        Self { tasks, stop, gone }
    }

    /// Ends it after its page. Returns how many jobs it has deleted.
    pub(super) async fn stop(mut self) -> u64 {
        self.stop.send_replace(true);
        let _ = timeout(LAST_PAGE, self.tasks.join_next()).await;
        self.gone.load(Ordering::Relaxed)
    }
}

/// A ledger as it is walked through.
struct Beat {
    ledger: Ledger,
    next: Instant,
    walks: u32,
    /// Up to this id nothing is left.
    cleared: Option<String>,
    /// What was said about the last walk that failed: it is said once.
    trouble: Option<String>,
}

impl Beat {
    fn new(ledger: Ledger, next: Instant) -> Self {
        Self { ledger, next, walks: 0, cleared: None, trouble: None }
    }
}

struct Walker {
    setup: Setup,
    keep: Duration,
    beats: Vec<Beat>,
    sink: Arc<dyn Sink>,
    gone: Arc<AtomicU64>,
    stop: watch::Receiver<bool>,
}

impl Walker {
    async fn run(mut self) {
        let mut beats = std::mem::take(&mut self.beats);
        while let Some(beat) = beats.iter_mut().min_by_key(|b| b.next) {
            if self.stopped_by(beat.next).await {
                return;
            }
            match self.walk(beat).await {
                Ok(()) => beat.trouble = None,
                Err(error) => self.tell_trouble(beat, &error),
            }
            beat.walks = beat.walks.wrapping_add(1);
            let pause = between(self.keep, beat.ledger.ids_grow());
            beat.next = Instant::now() + pause.mul_f64(0.9 + 0.2 * fastrand::f64());
        }
    }

    /// Sleeps until then, unless the worker ends before: `true`.
    async fn stopped_by(&mut self, then: Instant) -> bool {
        tokio::select! {
            biased;
            _ = self.stop.wait_for(|stop| *stop) => true,
            () = sleep_until(then.into()) => false,
        }
    }

    async fn walk(&mut self, beat: &mut Beat) -> Result<(), Error> {
        let session = Session::connect(&self.setup.conninfo, Purpose::Prune).await?;
        session.label(&self.setup.name).await?;
        let mut told = Instant::now();
        let mut sum = 0;
        let outcome = self.pages(beat, &session, &mut sum, &mut told).await;
        self.tell(beat, &mut sum);
        session.close().await;
        outcome
    }

    async fn pages(
        &mut self,
        beat: &mut Beat,
        session: &Session,
        sum: &mut u64,
        told: &mut Instant,
    ) -> Result<(), Error> {
        let from_head = beat.walks.is_multiple_of(FROM_HEAD);
        let mut after = if from_head { None } else { beat.cleared.clone() };
        let mut size = PAGE;
        // Nothing has been left behind so far.
        let mut clear = true;
        loop {
            let began = Instant::now();
            match beat.ledger.prune(session, self.keep, after.as_deref(), size).await {
                Ok(page) => {
                    self.gone.fetch_add(page.gone, Ordering::Relaxed);
                    *sum += page.gone;
                    if let Some(cleared) = page.cleared.filter(|_| clear) {
                        beat.cleared = Some(cleared);
                    }
                    clear &= page.gone == page.rows as u64;
                    if page.rows < size || (!page.early && beat.ledger.ids_grow()) {
                        return Ok(());
                    }
                    after = page.last;
                }
                Err(e) if e.sqlstate() == Some(sqlstate::QUERY_CANCELED) && size > LEAST => {
                    size = (size / 4).max(LEAST);
                }
                Err(e) => return Err(e),
            }
            if told.elapsed() >= TELL {
                self.tell(beat, sum);
                *told = Instant::now();
            }
            if self.stopped_by(Instant::now() + (began.elapsed() * REST).min(LONGEST_REST)).await {
                return Ok(());
            }
        }
    }

    fn tell(&self, beat: &Beat, sum: &mut u64) {
        let jobs = std::mem::take(sum);
        if jobs > 0 {
            let ledger = beat.ledger.name().to_owned();
            self.sink.emit(Event::Worker(WorkerEvent::Pruned { ledger, jobs }));
        }
    }

    /// A server that is away is said by others; a table that is locked as a whole is there again next time.
    fn tell_trouble(&self, beat: &mut Beat, error: &Error) {
        let loss = error.loss();
        tracing::warn!(reason = %loss, ledger = beat.ledger.name(), "could not delete what was done long ago");
        let passes = error.is_session_lost()
            || error.is_retryable()
            || error.sqlstate() == Some(sqlstate::LOCK_NOT_AVAILABLE);
        let said = loss.to_string();
        if passes || beat.trouble.as_ref() == Some(&said) {
            return;
        }
        beat.trouble = Some(said);
        let ledger = beat.ledger.name().to_owned();
        self.sink.emit(Event::Worker(WorkerEvent::PruneFailed { ledger, loss }));
    }
}

/// From the end of a walk to the next one.
fn between(keep: Duration, ids_grow: bool) -> Duration {
    (keep / 10).clamp(OFTEN, if ids_grow { SELDOM } else { SELDOM_WHOLE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_are_a_tenth_of_the_kept_time_apart_within_bounds() {
        let (second, day) = (Duration::from_secs(1), Duration::from_secs(86_400));
        for (keep, apart) in [(second, second), (second * 60, second * 6), (day * 7, SELDOM)] {
            assert_eq!(between(keep, true), apart);
        }
        assert_eq!(between(day * 7, false), day * 7 / 10, "a walk through everything is dear");
        assert_eq!(between(day * 3650, false), day);
    }
}
