//! What a person can do to a job that nobody holds.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{JobFacts, JobState};

/// One of three things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobAction {
    /// A failed job is ready again, with room for one more attempt.
    Retry,
    /// A waiting job is marked failed.
    GiveUp,
    /// A scheduled job is due now.
    RunNow,
}

impl JobAction {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Retry, Self::GiveUp, Self::RunNow];

    /// For people, and in the audit.
    pub fn word(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::GiveUp => "give up",
            Self::RunNow => "run now",
        }
    }

    /// What it did: `job 7 is ready again`.
    pub fn done(self) -> &'static str {
        match self {
            Self::Retry => "ready again",
            Self::GiveUp => "marked failed",
            Self::RunNow => "due now",
        }
    }

    /// Whether it can be done to a job in this state.
    pub fn takes(self, state: Option<JobState>) -> bool {
        match self {
            Self::Retry => state == Some(JobState::Failed),
            Self::GiveUp => matches!(state, Some(JobState::Ready | JobState::Scheduled)),
            Self::RunNow => state == Some(JobState::Scheduled),
        }
    }

    /// Whether it sends a wake-up, where the ledger has a channel.
    pub fn wakes(self) -> bool {
        self != Self::GiveUp
    }

    fn only(self) -> &'static str {
        match self {
            Self::Retry => "only a failed job can be retried",
            Self::GiveUp => "only a ready or a scheduled job can be given up",
            Self::RunNow => "only a scheduled job can be made due now",
        }
    }

    /// Why it is not for a job in this state; `None` when it is.
    pub fn unfit(self, state: Option<JobState>) -> Option<String> {
        if self.takes(state) {
            return None;
        }
        let is = state.map_or("in a state that the profile does not know", JobState::word);
        let first = match (self, state) {
            (Self::GiveUp, Some(JobState::Running)) => ": release its lease first",
            _ => "",
        };
        Some(format!("{}; this one is {is}{first}", self.only()))
    }
}

/// A job as a person saw it: an action repeats all of it, or does nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShownJob {
    /// Id as text.
    pub id: String,
    /// Type or topic, for the audit.
    pub job_type: String,
    /// Not before; `None` when it is infinite.
    pub run_at: Option<DateTime<Utc>>,
    /// Attempts so far, where the table counts them.
    pub attempts: Option<i64>,
    /// Attempts allowed, where the table says.
    pub max_attempts: Option<i64>,
    /// When it ended, where the table says.
    pub finished: Option<DateTime<Utc>>,
}

impl ShownJob {
    /// Of what the server told.
    pub fn of(facts: &JobFacts) -> Self {
        Self {
            id: facts.row.id.clone(),
            job_type: facts.row.job_type.clone(),
            run_at: facts.run_at,
            attempts: facts.row.attempts,
            max_attempts: facts.row.max_attempts,
            finished: facts.finished,
        }
    }
}

/// What an action would do in one ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Which.
    pub action: JobAction,
    /// The statement, as it would run.
    pub sql: String,
    /// Its effect on the job, in a sentence or two.
    pub effect: String,
    /// Why it is not offered, if it is not.
    pub refusal: Option<String>,
}
