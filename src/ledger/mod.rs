//! Every statement that touches a ledger.
//!
//! One statement, one purpose; each is one short transaction, matches what it must match (id, token,
//! state), and returns what it did. Stamps, comparisons and ages use the server's clock only. External
//! work never runs inside a transaction of this room.

mod backlog;
mod claim;
mod defer;
mod effects;
mod enqueue;
mod evidence;
mod finish;
mod load;
mod migrate;
mod on_job;
mod open;
mod plan;
mod practice;
mod prune;
mod read;
mod release;
mod renew;
mod scratch;
mod sql;
mod tally;
mod workers;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use claim::by_id;
pub use claim::{Claim, Earliest, Job, Mark};
pub use effects::{EffectCount, create_effects, effects, note_attempt, send_effect};
pub use enqueue::NewJob;
pub use finish::{Failure, Finished, Giveback};
pub use load::{Load, load, server_now};
pub use migrate::{Migrated, migrate, migrations};
pub use open::{LedgerError, Problem, detect, open_all};
pub use practice::{
    Host, alter, are_pooled, at_gate, close_to_others, commit_synchronously, create_database,
    deaf_listener, drop_database, enqueue_one_by_one, expire_leases, fill_queue, host, idle_for, leased_by,
    listen_in_transaction, listeners, lock_ready, open_gate, read_and_stay, shut_gate, terminate,
    terminate_listeners, wait_for_a_standby,
};
pub use prune::{Pruned, RetentionProblem};
pub use read::{CappedCounts, LeaseRow};
pub use release::{Audit, Release};
pub use renew::Renewed;
pub use scratch::{ScratchError, mark_scratch};
pub use tally::Tally;
pub use workers::{delete_worker, has_workers, upsert_worker, workers};

use crate::model::LedgerFacts;
use crate::profile::Profile;

/// SQL that creates the roles of those who watch and of those who act, with the least rights.
pub const ROLES: &str = include_str!("roles.sql");

/// Longest that any statement of this room may take on the client's side.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// One table, resolved against the catalog: every name checked, every statement built.
#[derive(Clone, Debug)]
pub struct Ledger {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    profile: Profile,
    sql: sql::Statements,
    scratch: bool,
    may_write: bool,
    may_delete: bool,
    sequence: Option<String>,
}

impl Ledger {
    /// The profile's name, which is the ledger's name on screens and in JSON.
    pub fn name(&self) -> &str {
        &self.inner.profile.name
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.inner.profile
    }

    /// The wake-up channel, exact bytes.
    pub fn channel(&self) -> Option<&str> {
        self.inner.profile.channel.as_deref()
    }

    /// Whether its rows have a message key.
    pub fn has_key(&self) -> bool {
        self.inner.profile.columns.key.is_some()
    }

    /// Whether handlers that do no work may touch it.
    pub fn is_scratch(&self) -> bool {
        self.inner.scratch
    }

    /// Whether this role may update the table.
    pub fn may_write(&self) -> bool {
        self.inner.may_write
    }

    /// What the screen needs to know.
    pub fn facts(&self) -> LedgerFacts {
        let p = &self.inner.profile;
        LedgerFacts {
            name: p.name.clone(),
            relation: p.relation(),
            channel: p.channel.clone(),
            fencing: p.fencing,
            scratch: self.inner.scratch,
            release_sql: self.inner.sql.release.clone(),
            offers: self.offers(),
        }
    }

    /// Every statement with its name, for plan checks and for people who want to read them.
    pub fn statements(&self) -> Vec<(&'static str, &str)> {
        let mut all = self.inner.sql.named();
        all.extend(self.inner.sql.backlog.named());
        all
    }
}
