//! Who holds which job.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::JobState;

/// What a late completion of a released or expired lease would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fencing {
    /// A token new at every claim: a late holder changes nothing.
    Token,
    /// Holder and attempt count must match: a late holder changes nothing once somebody else, or a
    /// later attempt, holds the job.
    HolderAttempts,
    /// Nothing is checked: a late holder may finish somebody else's run.
    None,
}

impl Fencing {
    /// One sentence for the release dialog.
    pub fn verdict(self) -> &'static str {
        match self {
            Self::Token => "a late completion is ignored: its token no longer matches",
            Self::HolderAttempts => {
                "a late completion is ignored once another holder or a later attempt has the job"
            }
            Self::None => "NOT FENCED: a late completion may finish the new run",
        }
    }
}

/// A held job: holder, token and expiry. Identity is `id` and `token`, never a screen row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    /// The job's id as text.
    pub id: String,
    /// What fences the lease, as text: the token, or holder and attempt count.
    pub token: String,
    /// The worker name on the lease; display only.
    pub holder: String,
    /// The job's type or topic.
    pub job_type: String,
    /// Expiry by the server's clock; `None` when the column holds infinity.
    pub expires: Option<DateTime<Utc>>,
    /// Attempts so far, where the table counts them.
    pub attempts: Option<i64>,
    /// Attempts allowed, where the table says.
    pub max_attempts: Option<i64>,
    /// When this lease was first seen by server time, or earlier (see `held_exact`).
    pub seen_since: DateTime<Utc>,
    /// Whether `seen_since` is the claim itself (to one sampling interval) or merely the start of watching.
    pub held_exact: bool,
}

impl Lease {
    /// Whether the lease is past its expiry at `server_now`.
    pub fn is_expired(&self, server_now: DateTime<Utc>) -> bool {
        self.expires.is_some_and(|e| e <= server_now)
    }
}

/// The leases of one holder name, counted, with whatever is known of the process behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Holder {
    /// The worker name on the leases.
    pub name: String,
    /// Jobs held, expired ones included.
    pub held: u64,
    /// Of those, past their expiry.
    pub expired: u64,
    /// The earliest `seen_since` of its leases.
    pub oldest_since: Option<DateTime<Utc>>,
    /// The earliest expiry of its leases.
    pub next_expiry: Option<DateTime<Utc>>,
    /// Last heartbeat in `pgwake.workers`, by the server's clock; `None` when it reports nothing.
    pub heartbeat: Option<DateTime<Utc>>,
    /// Backend pid of a session whose application name names the holder.
    pub backend: Option<i32>,
}

/// What an action found instead of what the person saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "now")]
pub enum Found {
    /// The row is no longer there.
    Gone,
    /// The job is in a state without a lease.
    State {
        /// The state in the ledger's own word.
        state: String,
    },
    /// Held under another lease, or the same one renewed.
    Held {
        /// The holder now.
        holder: String,
        /// Its expiry, unless infinite.
        expires: Option<DateTime<Utc>>,
        /// Whether it is the same token with a new expiry.
        renewed: bool,
    },
    /// A job that is not as it was seen.
    Job {
        /// Its state; `None` for one that the profile does not know.
        state: Option<JobState>,
        /// Who holds it.
        holder: Option<String>,
        /// When it is due, or its lease ends.
        due: Option<DateTime<Utc>>,
        /// Attempts so far.
        attempts: Option<i64>,
    },
    /// It is as seen, but another session has the row locked at this moment.
    Locked,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let until = |e: &Option<DateTime<Utc>>| match e {
            Some(e) => format!("until {}", e.format("%H:%M:%S")),
            None => "without end".to_owned(),
        };
        match self {
            Self::Gone => f.write_str("gone from the table"),
            Self::State { state } => write!(f, "{state}"),
            Self::Held { holder, expires, renewed: true } => {
                write!(f, "renewed by {holder} {}", until(expires))
            }
            Self::Held { holder, expires, renewed: false } => {
                write!(f, "claimed again by {holder} {}", until(expires))
            }
            Self::Job { state, holder, due, attempts } => {
                f.write_str(state.map_or("in a state that the profile does not know", JobState::word))?;
                match state {
                    Some(JobState::Running) => {
                        let holder = holder.as_deref().unwrap_or("nobody that is named");
                        write!(f, ", held by {holder} {}", until(due))?;
                    }
                    Some(JobState::Ready | JobState::Scheduled) => match due {
                        Some(at) => write!(f, ", due {}", at.format("%H:%M:%S"))?,
                        None => f.write_str(", due at no time")?,
                    },
                    _ => {}
                }
                attempts.map_or(Ok(()), |n| write!(f, ", attempts {n}"))
            }
            Self::Locked => f.write_str("locked by another session at this moment"),
        }
    }
}
