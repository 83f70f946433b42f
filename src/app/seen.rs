//! What this program itself saw of one job: claims, expiries and changes of holder, from the samples it
//! keeps. Between two samples a lease can come and go unseen, so this is never the whole story.

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::history::{History, ROWS};
use crate::model::{Lease, Reading};

/// Lines kept, the newest.
const KEEP: usize = 20;

/// Of a kept moment, what is needed here.
#[derive(Deserialize)]
struct Moment {
    sample: Leases,
}

#[derive(Deserialize)]
struct Leases {
    taken_at: DateTime<Utc>,
    leases: Reading<Vec<Lease>>,
}

/// One thing that happened, at the sample that first showed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The server's clock at that sample.
    pub at: DateTime<Utc>,
    /// What it shows.
    pub what: What,
    /// By whom.
    pub holder: String,
}

/// What a sample shows of a job that the one before did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It was held already when watching began.
    Held,
    /// A lease with a new token.
    Claimed,
    /// The lease ran out.
    Expired,
    /// It is held no longer: finished, given back or released.
    Ended,
}

/// What was seen of a job, oldest first, and since when there are samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSeen {
    /// The server's clock at the oldest sample.
    pub since: DateTime<Utc>,
    /// The newest things.
    pub lines: Vec<Seen>,
}

/// What the moments of a ledger show of the job `id`; `None` when there is no moment.
pub(super) fn of_job(history: &History, id: &str) -> Option<JobSeen> {
    let mut since = None;
    let mut lines: Vec<Seen> = Vec::new();
    let mut held: Option<(Lease, bool)> = None;
    history.each(|moment: Moment| {
        let at = moment.sample.taken_at;
        let first = since.is_none();
        since.get_or_insert(at);
        let Some(leases) = moment.sample.leases.current() else { return };
        let now = leases.iter().find(|l| l.id == id);
        let mut tell = |what, holder: &str| lines.push(Seen { at, what, holder: holder.to_owned() });
        let Some(lease) = now else {
            // a list that was cut may have left it out
            if leases.len() < ROWS
                && let Some((was, _)) = held.take()
            {
                tell(What::Ended, &was.holder);
            }
            return;
        };
        let same = held.as_ref().filter(|(was, _)| was.token == lease.token && was.holder == lease.holder);
        if same.is_none() {
            tell(if first { What::Held } else { What::Claimed }, &lease.holder);
        }
        let told = same.is_some_and(|(was, told)| *told && was.expires == lease.expires);
        let expired = lease.is_expired(at);
        if expired && !told {
            tell(What::Expired, &lease.holder);
        }
        held = Some((lease.clone(), expired));
    });
    let lines = lines.split_off(lines.len().saturating_sub(KEEP));
    Some(JobSeen { since: since?, lines })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Sample;
    use std::time::Duration;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + chrono::TimeDelta::seconds(second)
    }

    /// Moments, one every ten seconds: holder, token and expiry of job 7, or nothing.
    fn history(leases: &[Option<(&str, &str, i64)>]) -> History {
        let mut h = History::default();
        for (i, lease) in leases.iter().enumerate() {
            let now = at(i as i64 * 10);
            let mut sample = Sample::empty("jobs", now);
            let lease = lease.map(|(holder, token, expires)| Lease {
                id: "7".into(),
                token: token.into(),
                holder: holder.into(),
                job_type: "mail".into(),
                expires: Some(at(expires)),
                attempts: None,
                max_attempts: None,
                seen_since: now,
                held_exact: true,
            });
            sample.leases = Reading::exact(lease.into_iter().collect(), now);
            h.push(
                &serde_json::json!({ "sample": sample }),
                Duration::from_secs(i as u64 * 10),
                now,
                &mut crate::app::history::Scratch::default(),
            );
        }
        h
    }

    #[test]
    fn claims_expiries_and_the_end_are_told_once_each_and_renewals_not_at_all() {
        let h = history(&[
            None,
            Some(("a", "t1", 35)),
            Some(("a", "t1", 38)),
            Some(("a", "t1", 38)),
            Some(("a", "t1", 38)),
            Some(("a", "t1", 38)),
            Some(("b", "t2", 90)),
            None,
        ]);
        let seen = of_job(&h, "7").unwrap();
        let lines: Vec<_> = seen.lines.iter().map(|l| (l.at, l.what, l.holder.as_str())).collect();
        assert_eq!(seen.since, at(0));
        assert_eq!(
            lines,
            [
                (at(10), What::Claimed, "a"),
                (at(40), What::Expired, "a"),
                (at(60), What::Claimed, "b"),
                (at(70), What::Ended, "b"),
            ]
        );
        assert_eq!(of_job(&h, "8").unwrap().lines, []);
        assert_eq!(of_job(&History::default(), "7"), None);
    }
}
