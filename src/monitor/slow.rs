//! The slow lane: what is too dear for every second, and what somebody asks to see in detail.
//!
//! It has a read-only session of its own, so that a look at ten thousand jobs, or a payload that comes
//! slowly, never delays the fast lane. The same limits hold: a short statement_timeout and lock_timeout,
//! a bounded number of rows, each probe failing alone, and a longer pause after a pass that was dear.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use tokio::join;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::pass::reading;
use super::sampler::{MonitorError, Setup, open};
use super::{pins, probes};
use crate::ledger::Ledger;
use crate::model::{
    Backlog, ClaimPlan, Event, Inconsistent, Intent, JobDetail, JobList, JobState, Looked, NotifyTrigger,
    PlanCheck, Reading, Sink, TableFacts, Trouble,
};
use crate::pg::{Error, Session};

/// Longest that a pass or an answer may take before its session is given up.
const DEADLINE: Duration = Duration::from_secs(5);
/// Jobs of each state in a list.
const LISTED: i64 = 200;
/// Rows that nobody will take are counted this far.
const LEFT_OVER: i64 = 100;
/// A failed pass is tried again after this long, if that is sooner than the interval.
const AGAIN: Duration = Duration::from_secs(5);

/// See the module.
pub struct Slow {
    setup: Setup,
    open: Option<(Session, Vec<Ledger>)>,
    last: HashMap<String, Backlog>,
}

impl Slow {
    /// A lane that has not connected yet.
    pub fn new(setup: Setup) -> Self {
        Self { setup, open: None, last: HashMap::new() }
    }

    /// Passes and answers until stopped. Of `asks` only questions are answered.
    pub async fn run(
        mut self,
        sink: Arc<dyn Sink>,
        mut asks: mpsc::Receiver<Intent>,
        mut stop: watch::Receiver<bool>,
    ) {
        let mut next = tokio::time::Instant::now();
        let mut asking = true;
        loop {
            tokio::select! {
                biased;
                () = told_to_stop(&mut stop) => return,
                ask = asks.recv(), if asking => match ask {
                    Some(intent) => {
                        if let Some(event) = self.answer(&intent).await {
                            sink.emit(event);
                        }
                    }
                    None => asking = false,
                },
                () = tokio::time::sleep_until(next) => {
                    let pause = match self.pass().await {
                        Ok(passes) => {
                            let pause = passes.first().map_or(self.setup.sampling.slow, |b| {
                                Duration::from_millis(b.interval_ms)
                            });
                            for backlog in passes {
                                sink.emit(Event::Backlog(Box::new(backlog)));
                            }
                            pause
                        }
                        // The fast lane tells that the server is away; here the figures only grow old.
                        Err(_) => AGAIN.min(self.setup.sampling.slow),
                    };
                    next = tokio::time::Instant::now() + pause;
                }
            }
        }
    }

    /// One pass over all ledgers.
    ///
    /// # Errors
    /// No session; a refused probe is the trouble of its own reading.
    pub async fn pass(&mut self) -> Result<Vec<Backlog>, MonitorError> {
        let sampling = self.setup.sampling;
        let began = Instant::now();
        let asked = {
            let (session, ledgers) = self.opened().await?;
            let run = async {
                let (clock, pins, asked) = join!(
                    probes::clock(session),
                    pins::pins(session),
                    join_all(ledgers.iter().map(|l| one(session, l, sampling.by_type)))
                );
                clock.map(|(now, _)| (now, pins, asked))
            };
            timeout(DEADLINE, run).await.unwrap_or(Err(Error::Deadline(DEADLINE)))
        };
        let (now, pins, asked) = match asked {
            Ok(done) => done,
            Err(e) => {
                self.open = None;
                return Err(e.into());
            }
        };
        let pass_ms = began.elapsed().as_secs_f64() * 1e3;
        let needed = Duration::from_secs_f64(pass_ms / 1e3 / sampling.budget.max(1e-3));
        let interval = sampling.slow.max(needed.min(Duration::from_secs(300)));
        let mut out = Vec::with_capacity(asked.len());
        let pins = reading(pins, now);
        for Asked { name, states, table, inconsistent, triggers } in asked {
            let last = self.last.remove(&name).unwrap_or_else(|| Backlog::empty(name.clone(), now));
            let [running, ready, scheduled, failed] = states.map(|s| reading(s, now));
            let table = match table {
                Ok(Some(facts)) => Reading::exact(facts, now),
                Ok(None) => Reading::unknown(Trouble::NotHere("no plain table".to_owned())),
                Err(e) => Reading::unknown(e.trouble()),
            };
            let backlog = Backlog {
                ledger: name.clone(),
                taken_at: now,
                ready: ready.or_last(&last.ready),
                scheduled: scheduled.or_last(&last.scheduled),
                running: running.or_last(&last.running),
                failed: failed.or_last(&last.failed),
                table: table.or_last(&last.table),
                pins: pins.clone().or_last(&last.pins),
                inconsistent: reading(inconsistent, now).or_last(&last.inconsistent),
                triggers: reading(triggers, now).or_last(&last.triggers),
                pass_ms,
                interval_ms: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX),
            };
            self.last.insert(name, backlog.clone());
            out.push(backlog);
        }
        Ok(out)
    }

    /// The answer to a question; `None` for an intent that asks nothing.
    pub async fn answer(&mut self, intent: &Intent) -> Option<Event> {
        match intent {
            Intent::Jobs { ledger, key } => {
                let jobs = self.jobs(ledger, key.as_deref()).await;
                let (jobs, taken_at) = told(jobs);
                let limit = LISTED.unsigned_abs();
                let (ledger, key) = (ledger.clone(), key.clone());
                Some(Event::Jobs(Box::new(JobList { ledger, key, taken_at, jobs, limit })))
            }
            Intent::Job { ledger, id, payload } => {
                let detail = self.job(ledger, id, *payload).await.unwrap_or_else(|e| JobDetail {
                    ledger: ledger.clone(),
                    id: id.clone(),
                    taken_at: Utc::now(),
                    found: Reading::unknown(e.trouble()),
                    releases: Reading::unknown(Trouble::NotYet),
                });
                Some(Event::Job(Box::new(detail)))
            }
            Intent::Plan { ledger } => {
                let (plan, taken_at) = told(self.plan(ledger).await);
                Some(Event::Plan(Box::new(PlanCheck { ledger: ledger.clone(), taken_at, plan })))
            }
            _ => None,
        }
    }

    async fn plan(&mut self, name: &str) -> Result<(ClaimPlan, DateTime<Utc>), Error> {
        let done = {
            let (session, ledger) = self.named(name).await?;
            let run = async {
                let plan = ledger.claim_plan(session).await?;
                Ok((plan, probes::clock(session).await?.0))
            };
            timeout(DEADLINE, run).await.unwrap_or(Err(Error::Deadline(DEADLINE)))
        };
        self.checked(done)
    }

    async fn jobs(
        &mut self,
        ledger: &str,
        key: Option<&str>,
    ) -> Result<(Vec<crate::model::JobRow>, DateTime<Utc>), Error> {
        let among = self.setup.sampling.by_type;
        let (session, ledger) = self.named(ledger).await?;
        let run = async {
            let (clock, jobs) = join!(probes::clock(session), ledger.jobs(session, key, among, LISTED));
            Ok((jobs?, clock?.0))
        };
        let done = timeout(DEADLINE, run).await.unwrap_or(Err(Error::Deadline(DEADLINE)));
        self.checked(done)
    }

    async fn job(&mut self, name: &str, id: &str, payload: bool) -> Result<JobDetail, Error> {
        let (session, ledger) = self.named(name).await?;
        let run = async {
            let (clock, found, releases) = join!(
                probes::clock(session),
                ledger.job(session, id, payload),
                ledger.releases_of(session, id)
            );
            let now = clock?.0;
            Ok(JobDetail {
                ledger: name.to_owned(),
                id: id.to_owned(),
                taken_at: now,
                found: reading(found.map(|f| f.map(Box::new)), now),
                releases: reading(releases, now),
            })
        };
        let done = timeout(DEADLINE, run).await.unwrap_or(Err(Error::Deadline(DEADLINE)));
        self.checked(done)
    }

    /// A session that did not answer in time is given up; the next question opens a new one.
    fn checked<T>(&mut self, done: Result<T, Error>) -> Result<T, Error> {
        if done.as_ref().is_err_and(|e| e.is_session_lost() || matches!(e, Error::Deadline(_))) {
            self.open = None;
        }
        done
    }

    async fn opened(&mut self) -> Result<(&Session, &[Ledger]), MonitorError> {
        if self.open.as_ref().is_some_and(|(s, _)| s.ended().borrow().is_some()) {
            self.open = None;
        }
        let (session, ledgers) = match self.open.take() {
            Some(there) => there,
            None => {
                let (session, _, ledgers) = timeout(DEADLINE, open(&self.setup))
                    .await
                    .unwrap_or(Err(Error::Deadline(DEADLINE).into()))?;
                (session, ledgers)
            }
        };
        let (session, ledgers) = self.open.insert((session, ledgers));
        Ok((session, ledgers))
    }

    async fn named(&mut self, name: &str) -> Result<(&Session, &Ledger), Error> {
        let missing = || {
            Error::Statement(crate::model::Loss {
                sqlstate: Some("42P01".to_owned()),
                message: format!("there is no ledger {} here", crate::text::clean(name)),
            })
        };
        let (session, ledgers) = self.opened().await.map_err(|e| match e {
            MonitorError::Pg(e) => e,
            other => Error::Statement(crate::model::Loss { sqlstate: None, message: other.to_string() }),
        })?;
        let ledger = ledgers.iter().find(|l| l.name() == name).ok_or_else(missing)?;
        Ok((session, ledger))
    }
}

async fn told_to_stop(stop: &mut watch::Receiver<bool>) {
    // what it gives back is a lock; it is let go here
    let _ = stop.wait_for(|stop| *stop).await;
}

/// What one ledger's probes answered.
struct Asked {
    name: String,
    states: [Result<Looked, Error>; 4],
    table: Result<Option<TableFacts>, Error>,
    inconsistent: Result<Inconsistent, Error>,
    triggers: Result<Vec<NotifyTrigger>, Error>,
}

async fn one(session: &Session, ledger: &Ledger, limit: i64) -> Asked {
    let (running, ready, scheduled, failed, table, inconsistent, triggers) = join!(
        ledger.by_type(session, JobState::Running, limit),
        ledger.by_type(session, JobState::Ready, limit),
        ledger.by_type(session, JobState::Scheduled, limit),
        ledger.by_type(session, JobState::Failed, limit),
        ledger.table_facts(session),
        ledger.inconsistent(session, LEFT_OVER),
        ledger.notify_triggers(session),
    );
    let states = [running, ready, scheduled, failed];
    Asked { name: ledger.name().to_owned(), states, table, inconsistent, triggers }
}

fn told<T>(done: Result<(T, DateTime<Utc>), Error>) -> (Reading<T>, DateTime<Utc>) {
    match done {
        Ok((value, at)) => (Reading::exact(value, at), at),
        // no answer, no server time: only the reason is shown
        Err(e) => (Reading::unknown(e.trouble()), Utc::now()),
    }
}
