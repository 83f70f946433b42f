//! Leases as they were first seen, and grouped by holder. Pure.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};

use crate::ledger::LeaseRow;
use crate::model::{Holder, Lease, WorkerRow};

/// Remembers when each lease was first seen: tables say when a lease ends, not when it began.
#[derive(Debug, Default)]
pub(super) struct Held {
    first_seen: HashMap<(String, String), (DateTime<Utc>, bool)>,
    watching: bool,
}

impl Held {
    /// Takes the rows of a pass.
    pub(super) fn update(&mut self, rows: Vec<LeaseRow>, now: DateTime<Utc>) -> Vec<Lease> {
        let mut next = HashMap::with_capacity(rows.len());
        let leases = rows
            .into_iter()
            .map(|row| {
                let key = (row.id, row.token);
                // A lease that was there when watching began is at least this old.
                let seen = self.first_seen.get(&key).copied().unwrap_or((now, self.watching));
                next.insert(key.clone(), seen);
                Lease {
                    id: key.0,
                    token: key.1,
                    holder: row.holder,
                    job_type: row.job_type,
                    expires: row.expires,
                    attempts: row.attempts,
                    max_attempts: row.max_attempts,
                    seen_since: seen.0,
                    held_exact: seen.1,
                }
            })
            .collect();
        self.first_seen = next;
        self.watching = true;
        leases
    }
}

/// Leases by holder name: holders with expired leases first, then by name, so that rows do not jump.
/// The table of holders comes from the jobs themselves; workers only add what they report.
pub(super) fn holders(
    leases: &[Lease],
    workers: &[WorkerRow],
    backends: &[(String, i32)],
    now: DateTime<Utc>,
) -> Vec<Holder> {
    let mut by_name: BTreeMap<&str, Holder> = BTreeMap::new();
    for lease in leases {
        let holder = by_name.entry(&lease.holder).or_insert_with(|| Holder {
            name: lease.holder.clone(),
            held: 0,
            expired: 0,
            oldest_since: None,
            next_expiry: None,
            heartbeat: workers.iter().filter(|w| w.name == lease.holder).map(|w| w.seen_at).max(),
            backend: backends.iter().find(|(app, _)| names(app, &lease.holder)).map(|(_, pid)| *pid),
        });
        holder.held += 1;
        holder.expired += u64::from(lease.is_expired(now));
        holder.oldest_since =
            Some(holder.oldest_since.map_or(lease.seen_since, |o: DateTime<Utc>| o.min(lease.seen_since)));
        holder.next_expiry = match (holder.next_expiry, lease.expires) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    let mut holders: Vec<Holder> = by_name.into_values().collect();
    holders.sort_by_key(|h| h.expired == 0);
    holders
}

/// Whether an application_name is the holder's: equal to it, or ending in it as this program's own do.
/// The server cuts application_name at 63 bytes.
fn names(application: &str, holder: &str) -> bool {
    application == holder
        || application.split_once("/work ").is_some_and(|(_, name)| {
            name == holder || (application.len() >= 63 && !name.is_empty() && holder.starts_with(name))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_000_000 + second, 0).unwrap()
    }

    fn row(id: &str, token: &str, holder: &str, expires: i64) -> LeaseRow {
        LeaseRow {
            id: id.into(),
            token: token.into(),
            holder: holder.into(),
            job_type: "t".into(),
            expires: Some(at(expires)),
            attempts: Some(1),
            max_attempts: Some(5),
            running: true,
            expired: false,
        }
    }

    #[test]
    fn a_lease_keeps_the_time_it_was_first_seen_and_a_new_token_is_a_new_lease() {
        let mut held = Held::default();
        let first = held.update(vec![row("1", "a", "w", 100)], at(0));
        assert_eq!((first[0].seen_since, first[0].held_exact), (at(0), false));
        let later = held.update(vec![row("1", "a", "w", 130), row("2", "x", "w", 130)], at(10));
        assert_eq!((later[0].seen_since, later[0].held_exact), (at(0), false));
        assert_eq!((later[1].seen_since, later[1].held_exact), (at(10), true));
        let again = held.update(vec![row("1", "b", "v", 200)], at(20));
        assert_eq!((again[0].seen_since, again[0].held_exact), (at(20), true));
    }

    #[test]
    fn holders_with_expired_leases_come_first_and_count_them_apart() {
        let mut held = Held::default();
        let rows = vec![row("1", "a", "alive", 100), row("2", "b", "dead", 5), row("3", "c", "dead", 100)];
        let leases = held.update(rows, at(0));
        let backends = vec![("pgwake/work alive".to_owned(), 42)];
        let h = holders(&leases, &[], &backends, at(10));
        assert_eq!(
            h.iter().map(|h| (h.name.as_str(), h.held, h.expired)).collect::<Vec<_>>(),
            [("dead", 2, 1), ("alive", 1, 0)]
        );
        assert_eq!((h[0].backend, h[1].backend), (None, Some(42)));
        assert_eq!(h[0].next_expiry, Some(at(5)));
    }
}
