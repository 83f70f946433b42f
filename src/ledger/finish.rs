//! Ending a claim: done, a failed attempt, or given back. Always fenced; a row that does not come back
//! was lost to somebody else, which is an event and not a success.

use std::collections::HashSet;
use std::time::Duration;

use super::{DEADLINE, Ledger};
use crate::pg::{Arg, Error, Line, Session, sqlstate};
use crate::text::clean_block;

/// A failed attempt to record.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Job.
    pub id: String,
    /// Its fence.
    pub token: String,
    /// What went wrong; cleaned and cut before it is stored.
    pub error: String,
    /// Not before this much later.
    pub delay: Duration,
}

/// A claim to give back unfinished.
#[derive(Clone, Debug, PartialEq)]
pub struct Giveback {
    /// Job.
    pub id: String,
    /// Its fence.
    pub token: String,
    /// Whether a handler had begun: an attempt that never began is not counted.
    pub started: bool,
}

/// What became of a fenced batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finished {
    /// Recorded.
    pub recorded: Vec<String>,
    /// Of those, jobs that have now given up (failed attempts only).
    pub gave_up: Vec<String>,
    /// The lease had moved: nothing was changed.
    pub lost: Vec<String>,
    /// The row is locked by somebody else at this moment: nothing was changed, try again.
    pub busy: Vec<String>,
    /// The server refuses this very row (a constraint, a trigger): nothing was changed.
    pub refused: Vec<String>,
}

impl Finished {
    /// Both batches together.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.recorded.extend(other.recorded);
        self.gave_up.extend(other.gave_up);
        self.lost.extend(other.lost);
        self.busy.extend(other.busy);
        self.refused.extend(other.refused);
        self
    }
}

/// Longest error text that is stored, in characters.
const MAX_ERROR: usize = 2000;

/// How long a finish waits for a row that is locked before it passes over it: less than a person notices,
/// and far less than deadlock_timeout (1 s).
const NEXT_TO_NOTHING: Duration = Duration::from_millis(20);

/// A place in the batch, with what the statement said about it.
pub(super) type Outcome = (usize, Option<String>);

impl Ledger {
    /// Marks claims done: (id, token) each.
    ///
    /// # Errors
    /// As any statement; nothing is recorded then.
    pub async fn done(&self, session: &Session, claims: &[(String, String)]) -> Result<Finished, Error> {
        let sql = &self.inner.sql;
        self.finish_at_once(session, (&sql.done_at_once, &sql.done), claims).await
    }

    /// Removes claims that are done, where no history is kept: (id, token) each.
    ///
    /// # Errors
    /// As any statement; nothing is removed then.
    pub async fn remove_done(
        &self,
        session: &Session,
        claims: &[(String, String)],
    ) -> Result<Finished, Error> {
        let sql = &self.inner.sql;
        self.finish_at_once(session, (&sql.remove_at_once, &sql.remove), claims).await
    }

    /// Records failed attempts: the lease is cleared, the error stored, and the job is due again after its
    /// delay, or has given up at max_attempts.
    ///
    /// # Errors
    /// As any statement; nothing is recorded then.
    pub async fn failed(&self, session: &Session, failures: &[Failure]) -> Result<Finished, Error> {
        self.failures(session, &self.inner.sql.failed, failures).await
    }

    /// A statement that takes ids, tokens, texts and delays.
    pub(super) async fn failures(
        &self,
        session: &Session,
        sql: &str,
        failures: &[Failure],
    ) -> Result<Finished, Error> {
        let claims: Vec<_> = failures.iter().map(|f| (f.id.clone(), f.token.clone())).collect();
        let errors: Vec<String> =
            failures.iter().map(|f| clean_block(&f.error).chars().take(MAX_ERROR).collect()).collect();
        let errors: Vec<&str> = errors.iter().map(String::as_str).collect();
        let delays: Vec<f64> = failures.iter().map(|f| f.delay.as_secs_f64()).collect();
        let more = [Arg::Texts(&errors), Arg::Floats(&delays)];
        self.finish(session, sql, &claims, &more).await
    }

    /// Gives claims back to the queue, due as before.
    ///
    /// # Errors
    /// As any statement; the leases then end by themselves.
    pub async fn give_back(&self, session: &Session, claims: &[Giveback]) -> Result<Finished, Error> {
        let refunds: Vec<i32> = claims.iter().map(|c| i32::from(!c.started)).collect();
        let claims: Vec<_> = claims.iter().map(|c| (c.id.clone(), c.token.clone())).collect();
        self.finish(session, &self.inner.sql.give_back, &claims, &[Arg::Ints(&refunds)]).await
    }

    /// The statement that locks each row once and waits for a locked one, for next to nothing; and where
    /// there was one, that which passes over it.
    async fn finish_at_once(
        &self,
        session: &Session,
        (at_once, passing): (&str, &str),
        claims: &[(String, String)],
    ) -> Result<Finished, Error> {
        if claims.is_empty() {
            return Ok(Finished::default());
        }
        let (ids, tokens) = columns(claims);
        let pairs = [Arg::Texts(&ids), Arg::Texts(&tokens)];
        match session.kept_without_waiting(at_once, &pairs, DEADLINE, NEXT_TO_NOTHING).await {
            Ok(lines) => {
                let still = &self.inner.sql.still;
                let (done, busy) = self.judged(session, still, claims, outcomes(&lines)).await?;
                Ok(sorted(claims, done, &busy))
            }
            Err(e) if e.sqlstate() == Some(sqlstate::LOCK_NOT_AVAILABLE) || e.is_retryable() => {
                self.finish(session, passing, claims, &[]).await
            }
            Err(e) => Err(e),
        }
    }

    async fn finish(
        &self,
        session: &Session,
        sql: &str,
        claims: &[(String, String)],
        more: &[Arg<'_>],
    ) -> Result<Finished, Error> {
        let (done, busy) = self.fenced(session, (sql, &self.inner.sql.still), claims, more).await?;
        Ok(sorted(claims, done, &busy))
    }

    /// Runs a fenced statement on a batch: what it did, and which rows are still the caller's but locked by
    /// somebody else. The same claim twice is done once.
    pub(super) async fn fenced(
        &self,
        session: &Session,
        (sql, still): (&str, &str),
        claims: &[(String, String)],
        more: &[Arg<'_>],
    ) -> Result<(Vec<Outcome>, HashSet<usize>), Error> {
        if claims.is_empty() {
            return Ok(Default::default());
        }
        let (ids, tokens) = columns(claims);
        let pairs = [Arg::Texts(&ids), Arg::Texts(&tokens)];
        let args: Vec<Arg<'_>> = pairs.iter().chain(more).copied().collect();
        let lines = session.kept(sql, &args, DEADLINE).await?;
        self.judged(session, still, claims, outcomes(&lines)).await
    }

    /// Of those that were not done, which are still the caller's but locked.
    async fn judged(
        &self,
        session: &Session,
        still: &str,
        claims: &[(String, String)],
        done: Vec<Outcome>,
    ) -> Result<(Vec<Outcome>, HashSet<usize>), Error> {
        if done.len() == claims.len() {
            return Ok((done, HashSet::new()));
        }
        let (ids, tokens) = columns(claims);
        let did: HashSet<&(String, String)> = done.iter().filter_map(|(at, _)| claims.get(*at)).collect();
        let pairs = [Arg::Texts(&ids), Arg::Texts(&tokens)];
        let lines = session.kept(still, &pairs, DEADLINE).await?;
        let still = lines.iter().filter_map(place);
        let busy = still.filter(|at| claims.get(*at).is_some_and(|c| !did.contains(c))).collect();
        Ok((done, busy))
    }
}

fn columns(claims: &[(String, String)]) -> (Vec<&str>, Vec<&str>) {
    claims.iter().map(|(id, token)| (id.as_str(), token.as_str())).unzip()
}

/// The statements count from one.
fn place(line: &Line) -> Option<usize> {
    line.number::<usize>(0).and_then(|n| n.checked_sub(1))
}

fn outcomes(lines: &[Line]) -> Vec<Outcome> {
    lines.iter().filter_map(|l| Some((place(l)?, l.cell(1).map(str::to_owned)))).collect()
}

fn sorted(claims: &[(String, String)], done: Vec<Outcome>, busy: &HashSet<usize>) -> Finished {
    let mut out = Finished::default();
    let mut recorded = HashSet::with_capacity(done.len());
    for (at, said) in done {
        let Some((id, token)) = claims.get(at) else { continue };
        recorded.insert((id, token));
        if said.as_deref() == Some("true") {
            out.gave_up.push(id.clone());
        }
        out.recorded.push(id.clone());
    }
    for (at, (id, token)) in claims.iter().enumerate() {
        if busy.contains(&at) {
            out.busy.push(id.clone());
        } else if !recorded.contains(&(id, token)) {
            out.lost.push(id.clone());
        }
    }
    out
}
