//! The sampler: one read-only session, one pass at a time, at a bounded cost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::pass::{Memories, pass};
use super::probes;
use crate::config::{Sampling, Thresholds};
use crate::ledger::{self, Ledger, LedgerError};
use crate::model::{Event, Link, Role, Sample, Server, Sink};
use crate::pg::{Backoff, Conninfo, Error, Purpose, Session};
use crate::profile::Profile;

/// Statements of a pass for each ledger, and for the server; a few more than there are.
const PROBES: u32 = 9;
/// A whole pass may take this much longer than all its probes at their limits.
const SPARE: Duration = Duration::from_secs(2);
/// Shortest interval that may be asked for.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// Longest interval that stretching leads to.
const MAX_INTERVAL: Duration = Duration::from_secs(30);

/// What to sample, and how.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Where.
    pub conninfo: Conninfo,
    /// Which ledgers; empty: every built-in one that exists.
    pub profiles: Vec<Profile>,
    /// How often, how far.
    pub sampling: Sampling,
    /// When a transaction is long.
    pub thresholds: Thresholds,
    /// Why actions are off, if the person or the target says so.
    pub read_only: Option<String>,
}

/// Why sampling could not begin.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// No session, or the server refused.
    #[error(transparent)]
    Pg(#[from] Error),
    /// A ledger is missing or does not fit its profile.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// No ledger at all.
    #[error(
        "no ledger of a known profile in database {0}; create one with: pgwake migrate, or name yours with: --profile FILE"
    )]
    NoLedger(String),
}

/// A connected sampler.
pub struct Sampler {
    setup: Setup,
    session: Session,
    server: Server,
    ledgers: Vec<Ledger>,
    memories: Memories,
    passes: u64,
    /// Passes that brought samples.
    seen: u64,
    recent_ms: VecDeque<f64>,
    /// The interval that somebody asks for while it runs.
    pace: Option<watch::Receiver<Duration>>,
}

impl Sampler {
    /// Connects and resolves the ledgers.
    ///
    /// # Errors
    /// One line each: no connection, no ledger, or one that does not fit.
    pub async fn connect(setup: Setup) -> Result<Self, MonitorError> {
        let (session, server, ledgers) = open(&setup).await?;
        Ok(Self {
            setup,
            session,
            server,
            ledgers,
            memories: Memories::default(),
            passes: 0,
            seen: 0,
            recent_ms: VecDeque::new(),
            pace: None,
        })
    }

    /// Takes the interval from `pace` whenever that changes, within `MIN_INTERVAL` and `MAX_INTERVAL`.
    #[must_use]
    pub fn paced(mut self, pace: watch::Receiver<Duration>) -> Self {
        self.pace = Some(pace);
        self
    }

    /// What was found.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The ledgers.
    pub fn ledgers(&self) -> &[Ledger] {
        &self.ledgers
    }

    /// One pass: a sample per ledger.
    ///
    /// # Errors
    /// Only when the session is lost.
    pub async fn sample(&mut self) -> Result<Vec<Sample>, Error> {
        self.passes += 1;
        let (sampling, thresholds) = (self.setup.sampling, self.setup.thresholds);
        let deadline = pass_deadline(self.ledgers.len(), sampling.probe_timeout);
        let run =
            pass(&self.session, &self.ledgers, &mut self.memories, &sampling, &thresholds, self.passes);
        let (mut samples, in_recovery) =
            timeout(deadline, run).await.map_err(|_| Error::Deadline(deadline))??;
        let took = samples.first().map_or(0.0, |s| s.cost.pass_ms);
        let effective = self.stretch(took);
        for sample in &mut samples {
            sample.cost.effective_ms = u64::try_from(effective.as_millis()).unwrap_or(u64::MAX);
        }
        // A promotion or a fall-back to standby: everything known of the server is read anew.
        if (self.server.role == Role::Standby) != in_recovery {
            return Err(Error::Statement(crate::model::Loss {
                sqlstate: None,
                message: if in_recovery {
                    "the server became a standby"
                } else {
                    "the server was promoted"
                }
                .to_owned(),
            }));
        }
        Ok(samples)
    }

    /// The interval to the next pass: as asked, or longer when passes cost more than their share of it.
    /// The median of the last five, so that one slow pass does not slow the screen.
    fn stretch(&mut self, took_ms: f64) -> Duration {
        self.recent_ms.push_back(took_ms);
        if self.recent_ms.len() > 5 {
            self.recent_ms.pop_front();
        }
        let mut sorted: Vec<f64> = self.recent_ms.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        stretched(self.setup.sampling.interval, sorted[sorted.len() / 2], self.setup.sampling.budget)
    }

    /// Samples until stopped, through whatever happens to the server.
    pub async fn run(mut self, sink: Arc<dyn Sink>, mut stop: watch::Receiver<bool>) {
        sink.emit(Event::Link(Link::Up(Box::new(self.server.clone()))));
        let mut backoff = Backoff::new();
        loop {
            let before = self.seen;
            let loss = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                error = self.until_lost(sink.as_ref()) => error.loss(),
            };
            sink.emit(Event::Link(Link::Down(loss.clone())));
            if self.seen > before {
                backoff = Backoff::new();
            } else if pause(&mut backoff, loss, sink.as_ref(), &mut stop).await {
                // A session that was of no use: the next one does not follow at once.
                return;
            }
            loop {
                let reopened = tokio::select! {
                    biased;
                    _ = stop.wait_for(|stop| *stop) => return,
                    reopened = open(&self.setup) => reopened,
                };
                match reopened {
                    Ok((session, server, ledgers)) => {
                        self.session = session;
                        self.server = server;
                        self.ledgers = ledgers;
                        sink.emit(Event::Link(Link::Up(Box::new(self.server.clone()))));
                        break;
                    }
                    Err(error) => {
                        if pause(&mut backoff, loss_of(&error), sink.as_ref(), &mut stop).await {
                            return;
                        }
                    }
                }
            }
        }
    }

    async fn until_lost(&mut self, sink: &dyn Sink) -> Error {
        loop {
            let began = Instant::now();
            match self.sample().await {
                Ok(samples) => {
                    self.seen += 1;
                    let pause = samples.first().map_or(self.setup.sampling.interval, |s| {
                        Duration::from_millis(s.cost.effective_ms)
                    });
                    for sample in samples {
                        sink.emit(Event::Sample(Box::new(sample)));
                    }
                    let rest = pause.saturating_sub(began.elapsed());
                    tokio::select! {
                        biased;
                        // A lost session is known at once, not at the next pass.
                        loss = self.session.wait_ended() => return Error::Statement(loss),
                        // The next sample comes at once and tells the interval it was taken at.
                        interval = changed(&mut self.pace) => {
                            self.setup.sampling.interval = interval.clamp(MIN_INTERVAL, MAX_INTERVAL);
                        }
                        () = sleep(rest) => {}
                    }
                }
                Err(error) => return error,
            }
        }
    }
}

/// The next interval that is asked for.
async fn changed(pace: &mut Option<watch::Receiver<Duration>>) -> Duration {
    if let Some(pace) = pace
        && pace.changed().await.is_ok()
    {
        return *pace.borrow_and_update();
    }
    std::future::pending().await
}

/// Waits before the next attempt, and says so; `true` when it was stopped.
async fn pause(
    backoff: &mut Backoff,
    loss: crate::model::Loss,
    sink: &dyn Sink,
    stop: &mut watch::Receiver<bool>,
) -> bool {
    let pause = backoff.failed();
    sink.emit(Event::Link(Link::Retry {
        attempt: backoff.attempts(),
        after_ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
        loss,
    }));
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => true,
        () = sleep(pause) => false,
    }
}

/// Longest that a whole pass may take before its session is given up: every probe may use up its limit
/// and the pass still comes to its end, slow, with each figure's own trouble.
fn pass_deadline(ledgers: usize, probe: Duration) -> Duration {
    let lanes = u32::try_from(ledgers + 1).unwrap_or(u32::MAX);
    probe.saturating_mul(PROBES.saturating_mul(lanes)).saturating_add(SPARE)
}

fn loss_of(error: &MonitorError) -> crate::model::Loss {
    match error {
        MonitorError::Pg(e) | MonitorError::Ledger(LedgerError::Pg(e)) => e.loss(),
        other => crate::model::Loss { sqlstate: None, message: other.to_string() },
    }
}

fn stretched(interval: Duration, took_ms: f64, budget: f64) -> Duration {
    let needed = Duration::from_secs_f64((took_ms / 1000.0 / budget).max(0.0));
    interval.max(needed.min(MAX_INTERVAL))
}

pub(super) async fn open(setup: &Setup) -> Result<(Session, Server, Vec<Ledger>), MonitorError> {
    let session = Session::connect(&setup.conninfo, Purpose::Stats).await?;
    let (version, version_num, in_recovery) = probes::server(&session).await?;
    let ledgers = ledger::open_all(&session, &setup.profiles).await?;
    if ledgers.is_empty() {
        return Err(MonitorError::NoLedger(crate::text::clean(&setup.conninfo.dbname)));
    }
    // After the catalog has been read: that may take longer than a probe may.
    probes::limits(&session, setup.sampling.probe_timeout).await?;
    let read_only = setup.read_only.clone().or_else(|| {
        if in_recovery {
            return Some("this server is a standby".to_owned());
        }
        let none_writable = !ledgers.iter().any(Ledger::may_write);
        none_writable.then(|| "this role may not update the ledger".to_owned())
    });
    let server = Server {
        address: setup.conninfo.address(),
        version,
        version_num,
        role: if in_recovery { Role::Standby } else { Role::Primary },
        read_only,
        pid: session.pid(),
        ledgers: ledgers.iter().map(Ledger::facts).collect(),
    };
    Ok((session, server, ledgers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_of_which_every_probe_times_out_is_not_given_up() {
        let probe = Duration::from_millis(500);
        assert!(pass_deadline(1, probe) >= probe * (6 + 6));
        assert!(pass_deadline(5, probe) >= probe * (5 * 6 + 6));
    }

    #[test]
    fn a_pass_above_its_share_stretches_the_interval_and_no_further_than_needed() {
        let second = Duration::from_secs(1);
        assert_eq!(stretched(second, 2.0, 0.05), second);
        assert_eq!(stretched(second, 50.0, 0.05), second);
        assert_eq!(stretched(second, 100.0, 0.05), Duration::from_secs(2));
        assert_eq!(stretched(second, 60_000.0, 0.05), MAX_INTERVAL);
    }
}
