//! What the lists of the screens show, in the order shown.

use chrono::{DateTime, Utc};

use super::alerts::Look;
use super::lists::{self, List, TypeLine, WorkerLine};
use super::selection::Selection;
use super::sessions::{SessionKey, SessionLine};
use super::table::Lever;
use super::{App, JobsView, LeaseKey, LedgerState, events, tape};
use crate::model::{Backlog, Holder, JobRow, Lease, Now};

impl App {
    /// The list that has the keys.
    pub fn list(&self) -> List {
        lists::of_screen(self)
    }

    /// Filter, order and counts of a list.
    pub fn lever(&self, list: List) -> &dyn Lever {
        self.lists.lever(list)
    }

    /// Whether the filter of the list on the screen is being typed.
    pub fn is_typing(&self) -> bool {
        self.typing
    }

    /// Leases of the screen Leases, in the order shown. The natural one is by expiry, so expired ones lead.
    pub fn leases(&self) -> Vec<&Lease> {
        let all = self.sample().and_then(|s| s.leases.value()).map_or(&[][..], Vec::as_slice);
        self.lists.leases.order().iter().filter_map(|i| all.get(*i)).collect()
    }

    /// Holders in the order shown. In the natural one those with expired leases lead, each group by name:
    /// rows do not dance with every renewal.
    pub fn holders(&self) -> Vec<&Holder> {
        let all = self.ledger().map(LedgerState::holders).unwrap_or_default();
        self.lists.holders.order().iter().filter_map(|i| all.get(*i).copied()).collect()
    }

    /// What is known of the holder `name`.
    pub fn holder_named(&self, name: &str) -> Option<&Holder> {
        self.ledger()?.holder_named(name)
    }

    /// The newest pass of the slow lane over the ledger that is shown.
    pub fn backlog(&self) -> Option<&Backlog> {
        self.ledger()?.backlog.as_ref().map(|(b, _)| b.as_ref())
    }

    /// The pass before that one.
    pub(super) fn backlog_before(&self) -> Option<&Backlog> {
        self.ledger()?.backlog_before.as_deref()
    }

    /// How many workers report at server time `now`; `None` while that cannot be read.
    pub fn tally(&self, now: DateTime<Utc>) -> Option<lists::Tally> {
        lists::tally(self, now)
    }

    /// What the alerts are judged by: the newest sample that is shown.
    pub fn look(&self, now: Now) -> Option<Look<'_>> {
        let fresh = Look::fresh(self.sample()?, &self.setup.thresholds, self.setup.fallback_s);
        Some(Look { age_s: self.sample_age(now)?.as_secs_f64(), ..fresh })
    }

    /// Types of the backlog, in the order shown.
    pub fn types(&self) -> Vec<&TypeLine> {
        self.lists.types.order().iter().filter_map(|i| self.types.get(*i)).collect()
    }

    /// The jobs of one type that are looked at, if any are.
    pub fn jobs_view(&self) -> Option<&JobsView> {
        self.jobs.as_ref()
    }

    /// Its jobs, in the order shown.
    pub fn jobs(&self) -> Vec<&JobRow> {
        let all = self.jobs.as_ref().and_then(|j| j.list.as_ref()).and_then(|l| l.0.jobs.value());
        let all = all.map_or(&[][..], Vec::as_slice);
        self.lists.jobs.order().iter().filter_map(|i| all.get(*i)).collect()
    }

    /// Workers, and holders that report nothing, in the order shown.
    pub fn workers(&self) -> Vec<&WorkerLine> {
        self.lists.workers.order().iter().filter_map(|i| self.workers.get(*i)).collect()
    }

    /// The worker of that name.
    pub fn worker_named(&self, name: &str) -> Option<&WorkerLine> {
        self.workers.iter().find(|w| w.name == name)
    }

    /// Sessions, in the order shown.
    pub fn sessions(&self) -> Vec<&SessionLine> {
        self.lists.sessions.order().iter().filter_map(|i| self.sessions.get(*i)).collect()
    }

    /// The row that has the cursor among sessions.
    pub fn selected_session(&self) -> Option<&SessionLine> {
        let key = self.lists.sessions.selection().key()?;
        self.sessions.iter().find(|l| l.key() == *key)
    }

    /// Lines of the tape, in the order shown.
    pub fn tape(&self) -> Vec<&tape::Line> {
        let tape = &self.world().tape;
        self.lists.tape.order().iter().filter_map(|i| tape.get(*i)).collect()
    }

    /// Lines of the log, in the order shown.
    pub fn events(&self) -> Vec<&events::Line> {
        let log = &self.world().log;
        self.lists.events.order().iter().filter_map(|i| log.get(*i)).collect()
    }

    /// The selection among leases.
    pub fn lease_selection(&self) -> &Selection<LeaseKey> {
        self.lists.leases.selection()
    }

    /// The selection among holders.
    pub fn holder_selection(&self) -> &Selection<String> {
        self.lists.holders.selection()
    }

    /// The selection among types.
    pub fn type_selection(&self) -> &Selection<String> {
        self.lists.types.selection()
    }

    /// The selection among jobs.
    pub fn job_selection(&self) -> &Selection<String> {
        self.lists.jobs.selection()
    }

    /// The selection among workers.
    pub fn worker_selection(&self) -> &Selection<String> {
        self.lists.workers.selection()
    }

    /// The selection among sessions.
    pub fn session_selection(&self) -> &Selection<SessionKey> {
        self.lists.sessions.selection()
    }

    /// The selection on the tape.
    pub fn tape_selection(&self) -> &Selection<u64> {
        self.lists.tape.selection()
    }

    /// The selection among events.
    pub fn event_selection(&self) -> &Selection<u64> {
        self.lists.events.selection()
    }
}
