//! What events make of the world.

use std::sync::Arc;
use std::time::Duration;

use super::alerts::{Change, Look};
use super::events::Tone;
use super::{Embedded, LinkState, ListenState, World};
use crate::config::Thresholds;
use crate::model::{Intent, Link, Listen, Now, Sample, WorkerEvent};

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

/// What a sample makes of the alerts of its ledger: in the log, and as what is to be told outside the screen.
pub(super) fn on_alerts(
    world: &mut World,
    limits: &Thresholds,
    fallback_s: f64,
    sample: &Sample,
    now: Now,
) -> Option<Intent> {
    let changes = world.ledger_mut(&sample.ledger).alerts.observe(Look::fresh(sample, limits, fallback_s));
    tell(world, &sample.ledger, &changes, now)
}

/// What the silence of the sampler makes of the alerts: the only one that fires between samples.
pub(super) fn on_silence(world: &mut World, limits: &Thresholds, fallback_s: f64, now: Now) -> Vec<Intent> {
    let mut missed = Vec::new();
    for ledger in &mut world.ledgers {
        let Some((sample, arrived)) = &ledger.sample else { continue };
        let age_s = now.mono.saturating_sub(*arrived).as_secs_f64();
        let look = Look { age_s, ..Look::fresh(sample, limits, fallback_s) };
        if age_s > look.longest_pause_s() {
            missed.extend(ledger.alerts.miss(look).map(|change| (ledger.name.clone(), change)));
        }
    }
    missed.into_iter().filter_map(|(ledger, change)| tell(world, &ledger, &[change], now)).collect()
}

fn tell(world: &mut World, ledger: &str, changes: &[Change], now: Now) -> Option<Intent> {
    for change in changes {
        world.log.alert(now, ledger, change);
    }
    // the first is the worst; the rest is a number
    let fired: Vec<&Change> = changes.iter().filter(|c| c.fired).collect();
    let first = fired.first()?;
    let more = match fired.len() - 1 {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    Some(Intent::Alarm(format!("{ledger}: {}, {}{more}", first.alert.title, first.figure)))
}

pub(super) fn on_sample(world: &mut World, sample: Sample, now: Now) {
    let name = sample.ledger.clone();
    let ledger = world.ledger_mut(&name);
    let sample = Arc::new(sample);
    let before = ledger.take(Arc::clone(&sample), now.mono);
    expired(world, before.as_deref(), &sample, now);
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
