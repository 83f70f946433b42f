//! How often jobs were put off, so that one that says "later" each time is asked less and less often.
//!
//! No attempt counts where a job is put off, so the table does not tell; a worker remembers it for itself. What it
//! forgets, at its end or because there are too many, costs some shorter delays and nothing else.

use std::collections::HashMap;

use super::inflight::Key;

/// Jobs that are remembered at most: some hundred kilobytes.
const MOST: usize = 10_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Deferred(HashMap<Key, u32>);

impl Deferred {
    /// Times in a row that this job was put off before.
    pub(super) fn times(&self, key: &Key) -> u32 {
        self.0.get(key).copied().unwrap_or(0)
    }

    /// It was put off once more.
    pub(super) fn once_more(&mut self, key: &Key) {
        if let Some(times) = self.0.get_mut(key) {
            *times = times.saturating_add(1);
            return;
        }
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(key.clone(), 1);
    }

    /// It has ended in another way.
    pub(super) fn over(&mut self, key: &Key) {
        // most workers never put anything off
        if !self.0.is_empty() {
            self.0.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_remembered_until_it_ends_and_never_more_than_so_many() {
        let mut deferred = Deferred::default();
        let key = (0, "7".to_owned());
        for times in 0..3 {
            assert_eq!(deferred.times(&key), times);
            deferred.once_more(&key);
        }
        deferred.over(&key);
        assert_eq!(deferred.times(&key), 0);
        for id in 0..3 * MOST {
            deferred.once_more(&(0, id.to_string()));
            assert!(deferred.0.len() <= MOST);
        }
    }
}
