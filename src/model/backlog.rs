//! What the slow lane knows of a ledger: the backlog by type, the table itself, and single jobs.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Inconsistent, NotifyTrigger, Pin, Reading};

/// The state of a job, in the words of every profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Leased.
    Running,
    /// Due now.
    Ready,
    /// Due later.
    Scheduled,
    /// Gave up.
    Failed,
    /// Finished.
    Done,
}

impl JobState {
    /// The word on screens.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ready => "ready",
            Self::Scheduled => "scheduled",
            Self::Failed => "failed",
            Self::Done => "done",
        }
    }

    /// The state for a word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Running, Self::Ready, Self::Scheduled, Self::Failed, Self::Done]
            .into_iter()
            .find(|s| s.word() == word)
    }
}

/// Jobs of one type in one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypeCount {
    /// Names the type to the server, whatever its text is: a hash that the server made.
    pub key: String,
    /// The type or topic, cleaned.
    pub job_type: String,
    /// How many.
    pub jobs: u64,
    /// Ready: seconds since the oldest became due. Scheduled: seconds until the next. Else nothing.
    pub edge: Option<f64>,
}

/// The first jobs of one state, by type. At most a fixed number of rows is looked at, whatever the table
/// holds: the oldest ready, the next scheduled, the earliest expiries, the newest failures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Looked {
    /// By type, the largest first.
    pub types: Vec<TypeCount>,
    /// Rows that were looked at.
    pub seen: u64,
    /// Whether there are more than that: then every count is "at least".
    pub more: bool,
}

/// The table behind a ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableFacts {
    /// The table with its TOAST part, bytes.
    pub table_bytes: u64,
    /// All its indexes, bytes.
    pub index_bytes: u64,
    /// Live rows, as the server's statistics guess; `None` when it has none.
    pub live: Option<u64>,
    /// Dead rows, likewise.
    pub dead: Option<u64>,
    /// The last vacuum by anybody.
    pub vacuumed: Option<DateTime<Utc>>,
    /// The last autovacuum.
    pub autovacuumed: Option<DateTime<Utc>>,
    /// Autovacuums since the statistics began.
    pub autovacuums: Option<u64>,
    /// Whether one runs now.
    pub vacuuming: bool,
}

/// One pass of the slow lane over one ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Backlog {
    /// Profile name of the ledger.
    pub ledger: String,
    /// The server's clock at the pass.
    pub taken_at: DateTime<Utc>,
    /// Due now and not held.
    pub ready: Reading<Looked>,
    /// Due later.
    pub scheduled: Reading<Looked>,
    /// Held.
    pub running: Reading<Looked>,
    /// Gave up.
    pub failed: Reading<Looked>,
    /// The table.
    pub table: Reading<TableFacts>,
    /// What keeps dead rows or log, oldest first, bounded.
    #[serde(default)]
    pub pins: Reading<Vec<Pin>>,
    /// Rows that no claim will ever take.
    #[serde(default)]
    pub inconsistent: Reading<Inconsistent>,
    /// Triggers of the table that notify.
    #[serde(default)]
    pub triggers: Reading<Vec<NotifyTrigger>>,
    /// What the pass took, milliseconds.
    pub pass_ms: f64,
    /// When the next one is due, milliseconds after this one.
    pub interval_ms: u64,
}

impl Backlog {
    /// Nothing is known yet.
    pub fn empty(ledger: impl Into<String>, taken_at: DateTime<Utc>) -> Self {
        Self {
            ledger: ledger.into(),
            taken_at,
            ready: Reading::default(),
            scheduled: Reading::default(),
            running: Reading::default(),
            failed: Reading::default(),
            table: Reading::default(),
            pins: Reading::default(),
            inconsistent: Reading::default(),
            triggers: Reading::default(),
            pass_ms: 0.0,
            interval_ms: 0,
        }
    }

    /// The reading of one state; `None` for what is never counted.
    pub fn of(&self, state: JobState) -> Option<&Reading<Looked>> {
        match state {
            JobState::Ready => Some(&self.ready),
            JobState::Scheduled => Some(&self.scheduled),
            JobState::Running => Some(&self.running),
            JobState::Failed => Some(&self.failed),
            JobState::Done => None,
        }
    }
}

/// One job in a list. A payload is never part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRow {
    /// Id as text; its identity.
    pub id: String,
    /// Type or topic.
    pub job_type: String,
    /// State; `None` for a status that the profile does not know.
    pub state: Option<JobState>,
    /// When it is, or was, due; for a held job its expiry. `None` when that is infinite.
    pub due: Option<DateTime<Utc>>,
    /// Attempts so far.
    pub attempts: Option<i64>,
    /// Attempts allowed.
    pub max_attempts: Option<i64>,
    /// Who holds it.
    pub holder: Option<String>,
    /// Error of the last failed attempt: one line, cut.
    pub error: Option<String>,
}

/// Jobs of one type, or of all, of every state that is not done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobList {
    /// Profile name of the ledger.
    pub ledger: String,
    /// The type's key; `None`: all types.
    pub key: Option<String>,
    /// The server's clock.
    pub taken_at: DateTime<Utc>,
    /// The jobs: running, ready, scheduled, failed, each in its order and bounded.
    pub jobs: Reading<Vec<JobRow>>,
    /// At most so many of each state.
    pub limit: u64,
}

/// A payload, as far as somebody asked for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Payload {
    /// Bytes as they are stored, compressed if the server compressed them; known without reading them.
    pub stored: Option<u64>,
    /// Bytes of its text; known once it was read.
    pub length: Option<u64>,
    /// Its beginning, cleaned. Never written to a recording.
    #[serde(skip)]
    pub text: Option<String>,
}

/// A release of this job by hand, earlier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastRelease {
    /// When.
    pub at: DateTime<Utc>,
    /// By whom.
    pub operator: String,
    /// From whom.
    pub holder: String,
    /// Whether the lease had expired.
    pub was_expired: bool,
}

/// One job in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobFacts {
    /// What a list shows.
    pub row: JobRow,
    /// The state in the table's own word.
    pub status: String,
    /// Message key.
    pub key: Option<String>,
    /// When it came in.
    pub created: Option<DateTime<Utc>>,
    /// When a waiting row is due, whatever the state; `None` when that is infinite.
    #[serde(default)]
    pub run_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub finished: Option<DateTime<Utc>>,
    /// Expiry of its lease.
    pub expires: Option<DateTime<Utc>>,
    /// The whole error, up to a bound, with its line breaks.
    pub error: Option<String>,
    /// Its payload.
    pub payload: Payload,
}

/// The answer about one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobDetail {
    /// Profile name of the ledger.
    pub ledger: String,
    /// Which job was asked for.
    pub id: String,
    /// The server's clock.
    pub taken_at: DateTime<Utc>,
    /// The job; the inner `None`: it is no longer there.
    pub found: Reading<Option<Box<JobFacts>>>,
    /// Its releases by hand, newest first.
    pub releases: Reading<Vec<PastRelease>>,
}

impl JobDetail {
    /// Forgets the text of the payload.
    pub fn hide_payload(&mut self) {
        self.found = self.found.map(|found| {
            let mut found = found.clone();
            if let Some(facts) = &mut found {
                facts.payload.text = None;
            }
            found
        });
    }
}
