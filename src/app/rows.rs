//! What the rows of each list are filtered and sorted by, column by column of [`super::lists::List`].

use super::lists::{TypeLine, WorkerLine};
use super::sessions::{Held, SessionKey, SessionLine};
use super::table::{Row, Value};
use super::{LeaseKey, events};
use crate::model::{Holder, JobRow, JobState, Lease};

impl Row for TypeLine {
    type Key = String;

    fn key(&self) -> String {
        self.key.clone()
    }

    fn is(&self, key: &String) -> bool {
        self.key == *key
    }

    fn cells(&self) -> Vec<&str> {
        vec![&self.job_type]
    }

    fn value(&self, column: usize) -> Value {
        let jobs = |i: usize| Value::number(self.jobs[i].map(|n| n as f64));
        match column {
            0 => Value::Text(self.job_type.clone()),
            1 => jobs(0),
            2 => Value::number(self.oldest),
            3 => jobs(1),
            4 => Value::number(self.next),
            5 => jobs(2),
            6 => jobs(3),
            _ => Value::number(self.change),
        }
    }
}

impl Row for JobRow {
    type Key = String;

    fn key(&self) -> String {
        self.id.clone()
    }

    fn is(&self, key: &String) -> bool {
        self.id == *key
    }

    fn cells(&self) -> Vec<&str> {
        let state = self.state.map_or("", JobState::word);
        let (holder, error) = (self.holder.as_deref(), self.error.as_deref());
        vec![&self.id, &self.job_type, state, holder.unwrap_or(""), error.unwrap_or("")]
    }

    fn value(&self, column: usize) -> Value {
        let text = |t: Option<&String>| t.map_or(Value::Nothing, |t| Value::Text(t.clone()));
        match column {
            0 => Value::Text(self.id.clone()),
            1 => Value::number(self.state.map(|s| f64::from(s as u8))),
            2 => Value::time(self.due),
            3 => Value::number(self.attempts.map(|n| n as f64)),
            4 => text(self.holder.as_ref()),
            _ => text(self.error.as_ref()),
        }
    }
}

impl Row for Lease {
    type Key = LeaseKey;

    fn key(&self) -> LeaseKey {
        LeaseKey::of(self)
    }

    fn is(&self, key: &LeaseKey) -> bool {
        key.is(self)
    }

    fn cells(&self) -> Vec<&str> {
        vec![&self.id, &self.job_type, &self.holder]
    }

    fn value(&self, column: usize) -> Value {
        match column {
            0 => Value::Text(self.id.clone()),
            1 => Value::Text(self.job_type.clone()),
            2 => Value::Text(self.holder.clone()),
            3 => Value::time(self.expires),
            4 => Value::time(Some(self.seen_since)),
            _ => Value::number(self.attempts.map(|n| n as f64)),
        }
    }
}

impl Row for Holder {
    type Key = String;

    fn key(&self) -> String {
        self.name.clone()
    }

    fn is(&self, key: &String) -> bool {
        self.name == *key
    }

    fn cells(&self) -> Vec<&str> {
        vec![&self.name]
    }

    fn value(&self, column: usize) -> Value {
        match column {
            0 => Value::Text(self.name.clone()),
            1 => Value::Number(self.held as f64),
            2 => Value::time(self.oldest_since),
            3 => Value::time(self.next_expiry),
            _ => Value::time(self.heartbeat),
        }
    }
}

impl Row for WorkerLine {
    type Key = String;

    fn key(&self) -> String {
        self.name.clone()
    }

    fn is(&self, key: &String) -> bool {
        self.name == *key
    }

    fn cells(&self) -> Vec<&str> {
        vec![&self.name, self.row.as_ref().map_or("", |r| r.host.as_str())]
    }

    fn value(&self, column: usize) -> Value {
        let row = self.row.as_ref();
        match column {
            0 => Value::Text(self.name.clone()),
            1 => Value::time(row.map(|r| r.seen_at)),
            2 => Value::Number(self.holder.as_ref().map_or(0.0, |h| h.held as f64)),
            3 => Value::number(row.map(|r| r.counters.jobs_done as f64)),
            4 => Value::number(row.and_then(|r| r.counters.claim_success())),
            5 => Value::number(row.and_then(|r| r.wake_latency.p95)),
            6 => Value::number(row.and_then(|r| r.claim.p95)),
            _ => Value::number(row.map(|r| r.reconnects as f64)),
        }
    }
}

impl Row for SessionLine {
    type Key = SessionKey;

    fn key(&self) -> SessionKey {
        SessionLine::key(self)
    }

    fn is(&self, key: &SessionKey) -> bool {
        SessionLine::key(self) == *key
    }

    fn cells(&self) -> Vec<&str> {
        match &self.held {
            Held::Session(s) => {
                let (state, query) = (s.state.as_deref(), s.query.as_deref());
                vec![&s.user, &s.application, state.unwrap_or(""), query.unwrap_or("")]
            }
            Held::Pin(p) => vec![&p.name, &p.about],
        }
    }

    fn value(&self, column: usize) -> Value {
        match (&self.held, column) {
            (Held::Session(s), 0) => Value::Number(f64::from(s.pid)),
            (Held::Session(s), 1) => Value::Text(s.user.clone()),
            (Held::Session(s), 2) => Value::Text(s.application.clone()),
            (Held::Session(s), 3) => s.state.as_ref().map_or(Value::Nothing, |s| Value::Text(s.clone())),
            (Held::Session(s), _) => Value::number(s.transaction_age),
            (Held::Pin(p), 0) => Value::number(p.pid.map(f64::from)),
            (Held::Pin(_), 1) => Value::Nothing,
            (Held::Pin(p), 2) => Value::Text(p.name.clone()),
            (Held::Pin(p), 3) => Value::Text(p.about.clone()),
            (Held::Pin(p), _) => Value::number(p.seconds),
        }
    }
}

impl Row for events::Line {
    type Key = u64;

    fn key(&self) -> u64 {
        self.seq
    }

    fn is(&self, key: &u64) -> bool {
        self.seq == *key
    }

    fn cells(&self) -> Vec<&str> {
        vec![&self.text]
    }

    fn value(&self, column: usize) -> Value {
        if column == 0 { Value::Number(self.seq as f64) } else { Value::Text(self.text.clone()) }
    }
}
