//! What events make of the world.

use std::sync::Arc;
use std::time::Duration;

use super::events::Tone;
use super::health::{Level, Vital};
use super::{Embedded, LinkState, ListenState, World};
use crate::config::Thresholds;
use crate::model::{Link, Listen, Now, Sample, WorkerEvent};

pub(super) fn on_link(world: &mut World, link: Link, now: Now) {
    let down_since = match &world.link {
        LinkState::Down { since, .. } => *since,
        _ => now.mono,
    };
    match link {
        Link::Up(server) => {
            for facts in &server.ledgers {
                world.ledger_mut(&facts.name);
            }
            world.server = Some(*server);
            world.link = LinkState::Up { since: now.mono };
        }
        Link::Down(loss) => {
            world.link = LinkState::Down { loss, since: down_since, retry_at: None, attempt: 0 };
        }
        Link::Retry { attempt, after_ms, loss } => {
            let retry_at = Some(now.mono + Duration::from_millis(after_ms));
            world.link = LinkState::Down { loss, since: down_since, retry_at, attempt };
        }
    }
}

pub(super) fn on_listen(world: &mut World, listen: Listen, now: Now) {
    world.gaps.listen(&listen, now);
    let down_since = match &world.listen {
        ListenState::Down { since, .. } => *since,
        _ => now.mono,
    };
    world.listen = match listen {
        Listen::Up { pid, channels, .. } => ListenState::Up { pid, channels, since: now.mono },
        Listen::Down { loss, .. } => ListenState::Down { loss, since: down_since, retry_at: None },
        Listen::Retry { after_ms, loss, .. } => ListenState::Down {
            loss,
            since: down_since,
            retry_at: Some(now.mono + Duration::from_millis(after_ms)),
        },
        Listen::Deaf { why } => ListenState::Deaf { why },
        Listen::Off => ListenState::Off,
    };
}

pub(super) fn on_worker(world: &mut World, event: WorkerEvent, now: Now) {
    match event {
        WorkerEvent::Started { name } => {
            world.worker = Embedded::Running { name, since: now.mono, budget: None };
        }
        WorkerEvent::Stopped { trouble, .. } => world.worker = Embedded::Off { trouble },
        WorkerEvent::Budget { state, why } => {
            if let Embedded::Running { budget, .. } = &mut world.worker {
                *budget = Some((state, why));
            }
        }
        WorkerEvent::Recovered(recovery) => world.gaps.recovered(&recovery),
        _ => {}
    }
}

pub(super) fn on_sample(world: &mut World, limits: &Thresholds, sample: Sample, now: Now) {
    let name = sample.ledger.clone();
    let ledger = world.ledger_mut(&name);
    let sample = Arc::new(sample);
    let before = ledger.take(Arc::clone(&sample), now.mono);
    for (tone, text) in changes(before.as_deref(), &sample, limits) {
        world.log.push(now, tone, text);
    }
    expired(world, before.as_deref(), &sample, now);
}

/// What changed for better or worse between two samples, for the log.
fn changes(before: Option<&Sample>, after: &Sample, limits: &Thresholds) -> Vec<(Tone, String)> {
    let mut out = Vec::new();
    let name = &after.ledger;
    for vital in Vital::ALL {
        let was = before.map_or(Level::Ok, |b| vital.level(&b.vitals, limits));
        let is = vital.level(&after.vitals, limits);
        // unknown in between is no change: the figure itself says that it is unknown
        if was == is || was == Level::Unknown || is == Level::Unknown {
            continue;
        }
        let tone = match is {
            Level::Ok => Tone::Good,
            Level::Critical => Tone::Bad,
            _ => Tone::Warn,
        };
        let word = match is {
            Level::Ok => "is ok again",
            Level::Critical => "is critical",
            _ => "needs attention",
        };
        out.push((tone, format!("{name}: {} {word}", vital.title())));
    }
    out
}

/// One line for expired leases from the first to the last of them; while it lasts it tells the most there
/// were.
fn expired(world: &mut World, before: Option<&Sample>, after: &Sample, now: Now) {
    let count = |s: &Sample| s.counts.expired.current().copied();
    let Some(is) = count(after) else { return };
    let was = before.map_or(Some(0), count).unwrap_or(is);
    let name = &after.ledger;
    let key = format!("expired {name}");
    match (was, is) {
        (0, 0) => {}
        (0, _) => world.log.open(now, Tone::Warn, key, is, format!("{name}: expired leases: {is}")),
        (_, 0) => world.log.push(now, Tone::Good, format!("{name}: no expired leases any more")),
        _ => world.log.rise(&key, is, format!("{name}: expired leases: up to {is}")),
    }
}
