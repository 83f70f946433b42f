//! One pass of the fast lane: every probe pipelined on one session, each failing alone.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use tokio::join;

use super::flow::{Counted, Workers, flow};
use super::held::{Held, holders};
use super::locks;
use super::probes;
use crate::config::{Sampling, Thresholds};
use crate::ledger::{self, CappedCounts, LeaseRow, Ledger};
use crate::model::{
    Cost, Counts, Evidence, Hidden, LockedRows, NotifyLock, Quality, Reading, Sample, Session as Listed,
    TableLock, Trouble, Vitals, WorkerRow,
};
use crate::pg::{Error, Session};

/// What is remembered of a ledger between passes.
#[derive(Default)]
pub(super) struct Memory {
    held: Held,
    workers: Workers,
    counted: Option<Counted>,
    last: Option<Sample>,
    usage: VecDeque<(DateTime<Utc>, f64)>,
}

/// Growth of the notification queue is told over this long.
const GROWTH: TimeDelta = TimeDelta::seconds(30);
/// Due rows that are looked at for lockers.
const LOOKED: i64 = 20;
/// Due rows that stay this long are looked at: a worker takes them sooner.
const STAYS: f64 = 2.0;

/// Per ledger name.
pub(super) type Memories = HashMap<String, Memory>;

/// What one ledger's probes answered.
struct Asked {
    counts: Result<CappedCounts, Error>,
    oldest: Result<Option<f64>, Error>,
    next: Result<Option<f64>, Error>,
    leases: Result<Vec<LeaseRow>, Error>,
    arrived: Result<Option<i64>, Error>,
    workers: Result<Vec<WorkerRow>, Error>,
    locked: Option<Result<LockedRows, Error>>,
}

/// What the server's probes answered.
struct ServerAsked {
    usage: Result<f64, Error>,
    connections: Result<((i64, i64), Hidden), Error>,
    lock: Result<NotifyLock, Error>,
    sessions: Result<Vec<Listed>, Error>,
    backends: Result<Vec<(String, i32)>, Error>,
    tables: Result<Vec<Vec<TableLock>>, Error>,
    row_security: Result<Vec<bool>, Error>,
}

async fn ask(session: &Session, l: &Ledger, s: &Sampling, look: bool) -> Asked {
    let locked = async { if look { Some(l.locked_rows(session, LOOKED).await) } else { None } };
    let (counts, oldest, next, leases, arrived, workers, locked) = join!(
        l.counts(session, s.cap),
        l.oldest_ready(session),
        l.next_scheduled(session),
        l.leases(session, s.leases),
        l.arrived(session),
        ledger::workers(session, l.name()),
        locked,
    );
    Asked { counts, oldest, next, leases, arrived, workers, locked }
}

async fn ask_server(session: &Session, ledgers: &[Ledger], long: Duration) -> ServerAsked {
    let relations: Vec<String> = ledgers.iter().map(|l| l.profile().relation()).collect();
    let (usage, connections, quick, sessions, backends) = join!(
        probes::queue_usage(session),
        probes::connections(session),
        locks::quick(session, &relations),
        locks::sessions(session, long, false),
        probes::backends(session),
    );
    let free = || vec![Vec::new(); relations.len()];
    let (lock, sessions, tables, row_security) = match quick {
        Ok(quick) => {
            // a second round trip only where somebody waits or holds something
            let (lock, waiting, tables) = join!(
                async {
                    let ask = quick.notify;
                    if ask { locks::notify_lock(session).await } else { Ok(NotifyLock::default()) }
                },
                async {
                    let ask = quick.waits || quick.notify;
                    if ask { Some(locks::sessions(session, long, true).await) } else { None }
                },
                async { if quick.tables { locks::tables(session, &relations).await } else { Ok(free()) } },
            );
            (lock, waiting.unwrap_or(sessions), tables, Ok(quick.row_security))
        }
        Err(e) => (Err(e.again()), sessions, Err(e.again()), Err(e)),
    };
    ServerAsked { usage, connections, lock, sessions, backends, tables, row_security }
}

/// One pass over all ledgers. The statements go out together, so a pass takes one round trip and the sum
/// of their run times.
///
/// # Errors
/// Only when the session itself is lost; a refused probe is the trouble of its own reading.
pub(super) async fn pass(
    session: &Session,
    ledgers: &[Ledger],
    memories: &mut Memories,
    sampling: &Sampling,
    thresholds: &Thresholds,
    number: u64,
) -> Result<(Vec<Sample>, bool), Error> {
    let began = Instant::now();
    let long = Duration::from_secs_f64(thresholds.long_transaction_s);
    let (clock, server, asked) = join!(
        probes::clock(session),
        ask_server(session, ledgers, long),
        join_all(ledgers.iter().map(|l| ask(session, l, sampling, stays(memories, l.name())))),
    );
    let (now, in_recovery) = clock?;
    if let Some(loss) = session.ended().borrow().clone() {
        return Err(Error::Statement(loss));
    }
    let cost = Cost {
        pass_ms: began.elapsed().as_secs_f64() * 1000.0,
        interval_ms: u64::try_from(sampling.interval.as_millis()).unwrap_or(u64::MAX),
        effective_ms: 0,
    };
    let samples = ledgers
        .iter()
        .zip(asked)
        .enumerate()
        .map(|(i, (ledger, asked))| {
            let memory = memories.entry(ledger.name().to_owned()).or_default();
            let mut sample = build(ledger, memory, asked, (&server, i), now);
            sample.pass = number;
            sample.cost = cost;
            memory.last = Some(sample.clone());
            sample
        })
        .collect();
    Ok((samples, in_recovery))
}

pub(super) fn reading<T>(asked: Result<T, Error>, at: DateTime<Utc>) -> Reading<T> {
    match asked {
        Ok(value) => Reading::exact(value, at),
        Err(e) => Reading::unknown(e.trouble()),
    }
}

/// Whether due rows stayed in the pass before while nothing was finished, so that it is worth asking who has
/// them locked; also when there was none.
fn stays(memories: &Memories, ledger: &str) -> bool {
    let Some(last) = memories.get(ledger).and_then(|m| m.last.as_ref()) else { return true };
    let waits = last.vitals.oldest_ready.current().copied().flatten().is_some_and(|s| s >= STAYS)
        || last.counts.expired.current().is_some_and(|n| *n > 0);
    waits && last.flow.done.current().is_none_or(|done| *done <= 0.0)
}

/// By how much the queue fills, from what it was up to [`GROWTH`] ago. A value that is not known makes a gap.
fn growth(memory: &mut Memory, usage: &Result<f64, Error>, now: DateTime<Utc>) -> Reading<f64> {
    match usage {
        Ok(usage) => memory.usage.push_back((now, *usage)),
        Err(_) => memory.usage.clear(),
    }
    while memory.usage.front().is_some_and(|(at, _)| now - *at > GROWTH) {
        memory.usage.pop_front();
    }
    match (memory.usage.front(), memory.usage.back()) {
        (Some((from, was)), Some((to, is))) if to > from => {
            Reading::estimate((is - was) / (*to - *from).as_seconds_f64(), now)
        }
        _ => Reading::default(),
    }
}

fn evidence(
    memory: &mut Memory,
    locked: Option<Result<LockedRows, Error>>,
    (server, at): (&ServerAsked, usize),
    now: DateTime<Utc>,
) -> Evidence {
    fn one<T: Clone>(asked: &Result<Vec<T>, Error>, at: usize, now: DateTime<Utc>) -> Reading<T> {
        match asked {
            Ok(all) => all.get(at).map_or_else(Reading::default, |one| Reading::exact(one.clone(), now)),
            Err(e) => Reading::unknown(e.trouble()),
        }
    }
    Evidence {
        table_locks: one(&server.tables, at, now),
        row_security: one(&server.row_security, at, now),
        locked_rows: match locked {
            Some(asked) => reading(asked, now),
            None => Reading::unknown(Trouble::NotHere("due rows do not stay".to_owned())),
        },
        queue_growth: growth(memory, &server.usage, now),
        hidden: match &server.connections {
            Ok((_, hidden)) => Reading::exact(hidden.clone(), now),
            Err(e) => Reading::unknown(e.trouble()),
        },
    }
}

/// Under row security there may be more than this role sees.
fn partial(counts: Counts, row_security: &Reading<bool>) -> Counts {
    if row_security.current() != Some(&true) {
        return counts;
    }
    let less = |r: Reading<u64>| match (r.current().copied(), r.at()) {
        (Some(n), Some(at)) => Reading::at_least(n, at),
        _ => r,
    };
    Counts {
        ready: less(counts.ready),
        scheduled: less(counts.scheduled),
        running: less(counts.running),
        expired: less(counts.expired),
        failed: less(counts.failed),
    }
}

fn counted(n: (u64, bool), at: DateTime<Utc>) -> Reading<u64> {
    match n {
        (n, false) => Reading::exact(n, at),
        (n, true) => Reading::at_least(n, at),
    }
}

fn counts(asked: Result<CappedCounts, Error>, at: DateTime<Utc>) -> Counts {
    match asked {
        Ok(c) => Counts {
            ready: counted(c.ready, at),
            scheduled: counted(c.scheduled, at),
            running: counted(c.running, at),
            expired: counted(c.expired, at),
            failed: counted(c.failed, at),
        },
        Err(e) => {
            let unknown = || Reading::unknown(e.trouble());
            Counts {
                ready: unknown(),
                scheduled: unknown(),
                running: unknown(),
                expired: unknown(),
                failed: unknown(),
            }
        }
    }
}

/// The value only if it is this pass's own and exact.
fn exact(r: &Reading<u64>) -> Option<i64> {
    r.current().filter(|_| r.quality() == Quality::Exact).and_then(|n| i64::try_from(*n).ok())
}

fn build(
    ledger: &Ledger,
    memory: &mut Memory,
    asked: Asked,
    (server, at): (&ServerAsked, usize),
    now: DateTime<Utc>,
) -> Sample {
    let last = memory.last.take().unwrap_or_else(|| Sample::empty(ledger.name(), now));
    let evidence = evidence(memory, asked.locked, (server, at), now);
    let counts = partial(counts(asked.counts, now), &evidence.row_security);
    let workers = reading(asked.workers, now);
    let rows: &[WorkerRow] = workers.current().map_or(&[], Vec::as_slice);
    let reported = memory.workers.update(rows, now);
    let this = Counted {
        at: now,
        arrived: match asked.arrived {
            Ok(_) if !ledger.has_sequence() => Err(Trouble::NotHere("the id has no sequence".to_owned())),
            Ok(value) => Ok(value),
            Err(e) => Err(e.trouble()),
        },
        left: [&counts.ready, &counts.scheduled, &counts.running, &counts.failed]
            .into_iter()
            .map(exact)
            .sum::<Option<i64>>(),
    };
    let flow = flow(memory.counted.as_ref(), &this, &reported);
    memory.counted = Some(this);
    let leases = match asked.leases {
        Ok(_) if !ledger.profile().has_lease() => {
            Reading::unknown(Trouble::NotHere("the profile has no lease columns".to_owned()))
        }
        Ok(found) => Reading::exact(memory.held.update(found, now), now),
        Err(e) => Reading::unknown(e.trouble()),
    };
    let backends: &[(String, i32)] = server.backends.as_deref().unwrap_or(&[]);
    let by_holder = leases.map(|l| holders(l, rows, backends, now));
    let vitals = vitals(asked.oldest, server, &workers, &reported.window, now);
    let share = |r: &Result<Vec<Listed>, Error>| match r {
        Ok(v) => Reading::exact(v.clone(), now),
        Err(e) => Reading::unknown(e.trouble()),
    };
    Sample {
        ledger: ledger.name().to_owned(),
        pass: 0,
        taken_at: now,
        counts: Counts {
            ready: counts.ready.or_last(&last.counts.ready),
            scheduled: counts.scheduled.or_last(&last.counts.scheduled),
            running: counts.running.or_last(&last.counts.running),
            expired: counts.expired.or_last(&last.counts.expired),
            failed: counts.failed.or_last(&last.counts.failed),
        },
        next_scheduled: reading(asked.next, now).or_last(&last.next_scheduled),
        vitals: Vitals {
            oldest_ready: vitals.oldest_ready.or_last(&last.vitals.oldest_ready),
            queue_usage: vitals.queue_usage.or_last(&last.vitals.queue_usage),
            claim_success: vitals.claim_success.or_last(&last.vitals.claim_success),
            claim_p99_ms: vitals.claim_p99_ms.or_last(&last.vitals.claim_p99_ms),
            recovery_p95: vitals.recovery_p95.or_last(&last.vitals.recovery_p95),
            reconnects: vitals.reconnects.or_last(&last.vitals.reconnects),
            fallback_share: vitals.fallback_share.or_last(&last.vitals.fallback_share),
        },
        // A rate belongs to its interval: one that is not known is a gap, never an old value kept.
        flow,
        leases: leases.or_last(&last.leases),
        holders: by_holder.or_last(&last.holders),
        workers: workers.or_last(&last.workers),
        sessions: share(&server.sessions).or_last(&last.sessions),
        notify_lock: match &server.lock {
            Ok(lock) => Reading::exact(lock.clone(), now),
            Err(e) => Reading::unknown(e.trouble()),
        }
        .or_last(&last.notify_lock),
        connections: match &server.connections {
            Ok((pair, _)) => Reading::exact(*pair, now),
            Err(e) => Reading::unknown(e.trouble()),
        }
        .or_last(&last.connections),
        evidence,
        cost: Cost::default(),
    }
}

fn vitals(
    oldest: Result<Option<f64>, Error>,
    server: &ServerAsked,
    workers: &Reading<Vec<WorkerRow>>,
    window: &crate::model::Counters,
    now: DateTime<Utc>,
) -> Vitals {
    let alive = workers.map(|rows| rows.iter().filter(|w| w.is_alive(now)).cloned().collect::<Vec<_>>());
    let largest = |f: fn(&WorkerRow) -> Option<f64>| {
        alive.map(|rows| rows.iter().filter_map(f).max_by(f64::total_cmp))
    };
    Vitals {
        oldest_ready: reading(oldest, now),
        queue_usage: match &server.usage {
            Ok(usage) => Reading::exact(*usage, now),
            Err(e) => Reading::unknown(e.trouble()),
        },
        claim_success: alive.map(|_| window.claim_success()),
        claim_p99_ms: largest(|w| w.claim.p99),
        recovery_p95: largest(|w| w.recovery.p95.map(|ms| ms / 1000.0)),
        reconnects: alive.map(|rows| rows.iter().map(|w| w.reconnects).sum()),
        fallback_share: alive.map(|_| window.fallback_share()),
    }
}
