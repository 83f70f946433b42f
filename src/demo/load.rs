//! Producers: a mixed load with a tide and bursts, so that the pictures move.

use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use tokio::time::{MissedTickBehavior, interval};

use super::DemoError;
use super::controls::Controls;
use crate::ledger::{Ledger, NewJob, enqueue_one_by_one, open_all};
use crate::pg::{Backoff, Conninfo, Purpose, Session};
use crate::profile::Profile;

/// Producers commit this often; each commit that adds anything is one wake-up.
const TICK: Duration = Duration::from_millis(100);
/// Longest time that is caught up with after a pause: an outage is not followed by a flood.
const CATCH_UP: Duration = Duration::from_secs(1);
/// The tide rises and falls within this time, by this share.
const TIDE: (f64, f64) = (40.0, 0.4);
/// Every so many seconds a burst, which together make this share of the load.
const BURSTS: (f64, f64) = (12.0, 0.25);
/// One message in the outbox for so many jobs.
const JOBS_PER_MESSAGE: f64 = 8.0;

/// (type, share in percent, milliseconds of work).
const KINDS: &[(&str, u32, u32)] = &[
    ("mail", 38, 40),
    ("webhook", 25, 150),
    ("thumbnail", 20, 250),
    ("invoice", 12, 120),
    ("report", 5, 800),
];
/// Topics of the outbox.
const TOPICS: &[&str] = &["orders.created", "orders.paid", "invoices.issued", "customers.updated"];

/// One job in so many fails half of its attempts, and one in so many all of them.
const STUMBLES: u32 = 100;
const NEVER_WORKS: u32 = 1000;
/// Percent of the jobs that are scheduled for some seconds later.
const LATER: u32 = 3;

/// Jobs of the burst that a person asks for: short ones, so that its end is seen, too.
const BURST: usize = 1000;

/// Where the load goes.
pub(super) struct Producer {
    session: Session,
    jobs: Ledger,
    outbox: Ledger,
}

impl Producer {
    pub(super) async fn connect(conninfo: &Conninfo, profiles: &[Profile; 2]) -> Result<Self, DemoError> {
        let session = Session::connect(conninfo, Purpose::Command).await?;
        let mut ledgers = open_all(&session, profiles).await?.into_iter();
        match (ledgers.next(), ledgers.next()) {
            (Some(jobs), Some(outbox)) => Ok(Self { session, jobs, outbox }),
            _ => Err(DemoError::NoLedger),
        }
    }

    /// A thousand jobs in one commit, each with its wake-up unless they are muted.
    pub(super) async fn burst(&self, muted: bool) -> Result<usize, DemoError> {
        let jobs = short_jobs(BURST);
        if muted {
            self.add(&self.jobs, &jobs, true).await?;
        } else {
            let payloads: Vec<String> = jobs.into_iter().map(|job| job.payload).collect();
            enqueue_one_by_one(&self.session, "mail", &payloads).await?;
        }
        Ok(BURST)
    }

    /// A few short jobs in one commit.
    pub(super) async fn some(&self, n: usize, muted: bool) -> Result<(), DemoError> {
        self.add(&self.jobs, &short_jobs(n), muted).await
    }

    /// A few short jobs, not announced, that become due after a while.
    pub(super) async fn soon(&self, n: usize, after: TimeDelta) -> Result<(), DemoError> {
        let mut jobs = short_jobs(n);
        jobs.iter_mut().for_each(|job| job.run_at = Some(Utc::now() + after));
        self.add(&self.jobs, &jobs, true).await
    }

    /// One wake-up.
    pub(super) async fn wake(&self) -> Result<(), DemoError> {
        self.jobs.wake(&self.session).await?;
        Ok(())
    }

    /// A job that fails at every attempt; its id.
    pub(super) async fn poison(&self, muted: bool) -> Result<String, DemoError> {
        let job = [new_job("poison", 200, 1.0)];
        let ids = if muted {
            self.jobs.enqueue_quiet(&self.session, &job).await?
        } else {
            self.jobs.enqueue(&self.session, &job).await?
        };
        Ok(ids.into_iter().next().unwrap_or_default())
    }

    /// A few messages in one commit, announced.
    pub(super) async fn messages(&self, n: usize) -> Result<(), DemoError> {
        let messages: Vec<NewJob> = (0..n).map(|_| some_message()).collect();
        self.add(&self.outbox, &messages, false).await
    }

    async fn add(&self, ledger: &Ledger, jobs: &[NewJob], muted: bool) -> Result<(), DemoError> {
        if jobs.is_empty() {
            return Ok(());
        }
        if muted {
            ledger.enqueue_quiet(&self.session, jobs).await?;
        } else {
            ledger.enqueue(&self.session, jobs).await?;
        }
        Ok(())
    }
}

/// Produces for as long as it is polled; a lost session is opened again.
pub(super) async fn produce(conninfo: Conninfo, profiles: [Profile; 2], controls: Controls) {
    let mut backoff = Backoff::new();
    let began = Instant::now();
    let mut flow = Flow::default();
    loop {
        if let Ok(producer) = Producer::connect(&conninfo, &profiles).await {
            backoff = Backoff::new();
            let mut tick = interval(TICK);
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut last = began.elapsed();
            loop {
                tick.tick().await;
                let now = began.elapsed();
                let (jobs, messages) =
                    flow.due(now, now.saturating_sub(last).min(CATCH_UP), controls.rate());
                last = now;
                let muted = controls.is_muted();
                let jobs: Vec<NewJob> = (0..jobs).map(|_| some_job(muted)).collect();
                let messages: Vec<NewJob> = (0..messages).map(|_| some_message()).collect();
                let added = async {
                    producer.add(&producer.jobs, &jobs, muted).await?;
                    producer.add(&producer.outbox, &messages, muted).await
                };
                if let Err(error) = added.await {
                    tracing::warn!(reason = %error, "the demo's producer was cut off");
                    break;
                }
            }
        }
        tokio::time::sleep(backoff.failed()).await;
    }
}

/// Turns a rate into whole jobs.
#[derive(Debug, Default)]
struct Flow {
    jobs: f64,
    messages: f64,
    bursts: u64,
}

impl Flow {
    /// Jobs and messages that became due in the last `dt`.
    fn due(&mut self, now: Duration, dt: Duration, rate: f64) -> (usize, usize) {
        let (now, dt) = (now.as_secs_f64(), dt.as_secs_f64());
        let tide = 1.0 + TIDE.1 * (now * std::f64::consts::TAU / TIDE.0).sin();
        self.jobs += rate * (1.0 - BURSTS.1) * tide * dt;
        self.messages += rate * dt / JOBS_PER_MESSAGE;
        let bursts = (now / BURSTS.0) as u64;
        if bursts > self.bursts {
            self.bursts = bursts;
            self.jobs += rate * BURSTS.1 * BURSTS.0;
        }
        (whole(&mut self.jobs), whole(&mut self.messages))
    }
}

/// Takes the whole part out.
fn whole(n: &mut f64) -> usize {
    let taken = n.trunc();
    *n -= taken;
    taken as usize
}

fn short_jobs(n: usize) -> Vec<NewJob> {
    (0..n).map(|_| new_job("mail", fastrand::u32(5..30), 0.0)).collect()
}

fn new_job(job_type: &str, ms: u32, fail: f64) -> NewJob {
    NewJob {
        job_type: job_type.to_owned(),
        payload: serde_json::json!({ "ms": ms, "fail": fail }).to_string(),
        key: None,
        run_at: None,
    }
}

/// While wake-ups are muted every job is due at once and works at once: a retry or a scheduled job brings
/// workers to the table by time, and then it is not only the fallback scan that finds the others.
fn some_job(muted: bool) -> NewJob {
    let mut pick = fastrand::u32(0..100);
    let (job_type, ms) = KINDS
        .iter()
        .find_map(|(job_type, share, ms)| {
            if pick < *share {
                return Some((*job_type, *ms));
            }
            pick -= share;
            None
        })
        .unwrap_or(("mail", 40));
    let ms = fastrand::u32(ms / 2..=ms + ms / 2);
    if muted {
        return new_job(job_type, ms, 0.0);
    }
    let fail = match fastrand::u32(0..NEVER_WORKS) {
        0 => 1.0,
        n if n % STUMBLES == 1 => 0.5,
        _ => 0.0,
    };
    let mut job = new_job(job_type, ms, fail);
    if fastrand::u32(0..100) < LATER {
        job.run_at = Some(Utc::now() + TimeDelta::seconds(fastrand::i64(3..=20)));
    }
    job
}

fn some_message() -> NewJob {
    let topic = TOPICS[fastrand::usize(0..TOPICS.len())];
    let order = fastrand::u32(1000..9999);
    NewJob {
        job_type: topic.to_owned(),
        payload: serde_json::json!({ "ms": fastrand::u32(5..40), "order": order }).to_string(),
        key: Some(order.to_string()),
        run_at: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_some_tides_the_rate_is_kept() {
        let mut flow = Flow::default();
        let (mut jobs, mut messages, mut most, mut least) = (0, 0, 0, usize::MAX);
        let seconds = 240;
        for second in 0..seconds {
            let mut sum = 0;
            for tenth in 0..10 {
                let now = Duration::from_millis(second * 1000 + tenth * 100);
                let (j, m) = flow.due(now, TICK, 40.0);
                sum += j;
                messages += m;
            }
            jobs += sum;
            most = most.max(sum);
            least = least.min(sum);
        }
        let rate = jobs as f64 / seconds as f64;
        assert!((38.0..=42.0).contains(&rate), "{rate} jobs per second");
        assert!((1195..=1205).contains(&messages), "{messages}");
        assert!(most > 100 && least < 25, "it moves: {least} to {most} in a second");
    }

    #[test]
    fn the_shares_of_the_kinds_make_a_hundred() {
        assert_eq!(KINDS.iter().map(|k| k.1).sum::<u32>(), 100);
    }

    #[test]
    fn of_the_jobs_about_one_percent_fails_and_a_few_are_scheduled() {
        let jobs: Vec<NewJob> = (0..20_000).map(|_| some_job(false)).collect();
        let fails = jobs.iter().filter(|j| !j.payload.contains("\"fail\":0.0")).count();
        assert!((120..340).contains(&fails), "{fails} of 20000");
        let later = jobs.iter().filter(|j| j.run_at.is_some()).count();
        assert!((400..800).contains(&later), "{later} of 20000");
    }

    #[test]
    fn muted_jobs_bring_nobody_to_the_table_by_time() {
        let jobs: Vec<NewJob> = (0..1000).map(|_| some_job(true)).collect();
        assert!(jobs.iter().all(|j| j.run_at.is_none() && j.payload.contains("\"fail\":0.0")));
    }
}
