//! What is known of the world: the two sessions, the embedded worker, and each ledger.

use std::sync::Arc;
use std::time::Duration;

use super::alerts::Board;
use super::events::Log;
use super::gaps::Gaps;
use super::series::Series;
use super::tape::Tape;
use crate::model::{Backlog, BudgetState, Holder, Loss, Role, Sample, Server};

/// The stats session.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkState {
    /// Nothing was heard of it yet.
    Connecting,
    /// Connected since then (monotonic).
    Up {
        /// Since.
        since: Duration,
    },
    /// Lost or never there.
    Down {
        /// Why.
        loss: Loss,
        /// Since when nothing can be asked (monotonic).
        since: Duration,
        /// When the next attempt comes (monotonic), once it is known.
        retry_at: Option<Duration>,
        /// Attempts since the loss.
        attempt: u32,
    },
}

/// The listen session.
#[derive(Clone, Debug, PartialEq)]
pub enum ListenState {
    /// Nothing was heard of it yet.
    Connecting,
    /// LISTEN is committed and proven.
    Up {
        /// Backend pid.
        pid: i32,
        /// Channels.
        channels: Vec<String>,
        /// Since (monotonic).
        since: Duration,
    },
    /// Lost or never there.
    Down {
        /// Why.
        loss: Loss,
        /// Since (monotonic).
        since: Duration,
        /// When the next attempt comes (monotonic), once it is known.
        retry_at: Option<Duration>,
    },
    /// Accepted, but not on this backend: wake-ups never arrive here.
    Deaf {
        /// What the proof found.
        why: String,
    },
    /// No channel: polling only.
    Off,
}

/// The worker inside this program.
#[derive(Clone, Debug, PartialEq)]
pub enum Embedded {
    /// Not running; with the reason when it ended by itself.
    Off {
        /// Why it ended when it was not asked to.
        trouble: Option<String>,
    },
    /// Asked to start.
    Starting,
    /// Running.
    Running {
        /// Its holder name.
        name: String,
        /// Since (monotonic).
        since: Duration,
        /// What its budget decided last, and the evidence.
        budget: Option<(BudgetState, String)>,
    },
    /// Asked to stop; it gives back what it holds.
    Stopping,
}

impl Embedded {
    /// Whether it runs or is about to.
    pub fn is_on(&self) -> bool {
        matches!(self, Self::Starting | Self::Running { .. })
    }

    /// The holder name of the one that runs.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Running { name, .. } => Some(name),
            _ => None,
        }
    }
}

/// What is known of one ledger.
#[derive(Clone, Debug)]
pub struct LedgerState {
    /// Profile name.
    pub name: String,
    /// The newest sample and when it arrived (monotonic).
    pub sample: Option<(Arc<Sample>, Duration)>,
    /// The newest pass of the slow lane and when it arrived (monotonic).
    pub backlog: Option<(Arc<Backlog>, Duration)>,
    /// The pass of the slow lane before that one.
    pub(super) backlog_before: Option<Arc<Backlog>>,
    /// History of its figures.
    pub series: Series,
    /// Its alerts.
    pub alerts: Board,
    /// Wake-ups on its channel since the newest sample.
    pub(super) heard: u64,
    /// Order in which the sample's holders are shown, made once per sample.
    holder_order: Vec<usize>,
}

impl LedgerState {
    /// A ledger of which nothing was sampled yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            sample: None,
            backlog: None,
            backlog_before: None,
            series: Series::default(),
            alerts: Board::default(),
            heard: 0,
            holder_order: Vec::new(),
        }
    }

    /// Takes in a sample that arrived at `at`; gives back the one before.
    pub fn take(&mut self, sample: Arc<Sample>, at: Duration) -> Option<Arc<Sample>> {
        let since = self.sample.as_ref().map(|(_, before)| at.saturating_sub(*before).as_secs_f64());
        let heard = std::mem::take(&mut self.heard);
        let wakeups = since.filter(|s| *s > 0.0).map(|s| heard as f64 / s);
        self.series.push(&sample, wakeups, at);
        let before = self.sample.take().map(|(before, _)| before);
        self.show(Some((sample, at)));
        before
    }

    /// Makes a sample the one that is shown, without adding it to the history.
    pub(super) fn show(&mut self, sample: Option<(Arc<Sample>, Duration)>) {
        let holders = sample.as_ref().and_then(|(s, _)| s.holders.value()).map_or(&[][..], Vec::as_slice);
        self.holder_order = (0..holders.len()).collect();
        self.holder_order.sort_by_key(|i| (holders[*i].expired == 0, holders[*i].name.as_str()));
        self.sample = sample;
    }

    /// Holders: those with expired leases first, each group by name.
    pub fn holders(&self) -> Vec<&Holder> {
        let all = self.sample.as_ref().and_then(|(s, _)| s.holders.value());
        all.map_or_else(Vec::new, |all| self.holder_order.iter().map(|i| &all[*i]).collect())
    }

    /// The holder of that name.
    pub fn holder_named(&self, name: &str) -> Option<&Holder> {
        let all = self.sample.as_ref()?.0.holders.value()?;
        let (expired, rest) =
            self.holder_order.split_at(self.holder_order.partition_point(|i| all[*i].expired > 0));
        [expired, rest].into_iter().find_map(|group| {
            let at = group.binary_search_by(|i| all[*i].name.as_str().cmp(name)).ok()?;
            all.get(group[at])
        })
    }
}

/// The world as a whole; cloned when the picture is frozen.
#[derive(Clone, Debug)]
pub struct World {
    /// The server, once it was reached.
    pub server: Option<Server>,
    /// The stats session.
    pub link: LinkState,
    /// The listen session.
    pub listen: ListenState,
    /// The embedded worker.
    pub worker: Embedded,
    /// Ledgers in the order they are shown.
    pub ledgers: Vec<LedgerState>,
    /// The event log.
    pub log: Log,
    /// The tape of wake-ups and claims.
    pub tape: Tape,
    /// When no wake-up could arrive.
    pub gaps: Gaps,
    /// Wake-ups that arrived here since the start.
    pub wakeups: u64,
    /// When the last one arrived (monotonic).
    pub last_wakeup: Option<Duration>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            server: None,
            link: LinkState::Connecting,
            listen: ListenState::Connecting,
            worker: Embedded::Off { trouble: None },
            ledgers: Vec::new(),
            log: Log::default(),
            tape: Tape::default(),
            gaps: Gaps::default(),
            wakeups: 0,
            last_wakeup: None,
        }
    }
}

impl World {
    /// The state of the ledger `name`, made when it is new.
    pub fn ledger_mut(&mut self, name: &str) -> &mut LedgerState {
        let at = match self.ledgers.iter().position(|l| l.name == name) {
            Some(at) => at,
            None => {
                self.ledgers.push(LedgerState::new(name));
                self.ledgers.len() - 1
            }
        };
        &mut self.ledgers[at]
    }

    /// Counts wake-ups for the ledgers of their channel.
    pub(super) fn hear(&mut self, channel: &str, wakeups: u64) {
        let facts = self.server.as_ref().map_or(&[][..], |s| s.ledgers.as_slice());
        // the wake-up's channel was cleaned for display, so the ledger's is compared cleaned
        let of = facts
            .iter()
            .filter(|f| f.channel.as_deref().map(crate::text::clean).as_deref() == Some(channel));
        for name in of.map(|f| f.name.as_str()) {
            if let Some(ledger) = self.ledgers.iter_mut().find(|l| l.name == name) {
                ledger.heard += wakeups;
            }
        }
    }

    /// Why nothing can be changed, as far as the server says.
    pub fn server_refusal(&self) -> Option<String> {
        let server = self.server.as_ref()?;
        server.read_only.clone().or_else(|| {
            (server.role == Role::Standby)
                .then(|| "the server is a standby and accepts no writes".to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Reading;
    use chrono::DateTime;

    fn holder(name: &str, expired: u64) -> Holder {
        Holder {
            name: name.into(),
            held: 1,
            expired,
            oldest_since: None,
            next_expiry: None,
            heartbeat: None,
            backend: None,
        }
    }

    #[test]
    fn holders_with_expired_leases_lead_and_every_one_is_found_by_name() {
        let at = DateTime::UNIX_EPOCH;
        let mut sample = Sample::empty("jobs", at);
        let all = [("d", 0), ("b", 2), ("a", 0), ("c", 1), ("e", 0)];
        sample.holders = Reading::exact(all.iter().map(|(n, e)| holder(n, *e)).collect(), at);
        let mut ledger = LedgerState::new("jobs");
        ledger.take(Arc::new(sample), Duration::ZERO);
        let names: Vec<&str> = ledger.holders().iter().map(|h| h.name.as_str()).collect();
        assert_eq!(names, ["b", "c", "a", "d", "e"]);
        for (name, _) in all {
            assert_eq!(ledger.holder_named(name).unwrap().name, name);
        }
        assert!(ledger.holder_named("nobody").is_none());
    }
}
