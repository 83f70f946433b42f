//! Stepping back and forward in time, and what the world was at a moment.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::alerts::Board;
use super::history::{History, Scratch, slim};
use super::update::{follow, notice};
use super::{App, Embedded, LinkState, ListenState, World};
use crate::model::{Backlog, Now, Sample};

/// Changes of the sessions' states that are kept.
const STATES: usize = 512;

/// A larger step.
const STRIDE: Duration = Duration::from_secs(60);

/// What is kept with a sample.
#[derive(Serialize)]
struct Kept<'a> {
    sample: &'a Sample,
    wakeups: u64,
    last_wakeup: Option<Duration>,
    alerts: Option<&'a Board>,
}

/// The same, read back.
#[derive(Deserialize)]
struct Was {
    sample: Sample,
    wakeups: u64,
    last_wakeup: Option<Duration>,
    alerts: Option<Board>,
}

/// What is kept of the past.
#[derive(Clone, Debug, Default)]
pub struct Past {
    samples: HashMap<String, History>,
    backlogs: HashMap<String, History>,
    states: VecDeque<(Duration, LinkState, ListenState, Embedded)>,
    scratch: Scratch,
}

impl Past {
    /// Keeps the newest sample of a ledger.
    pub(super) fn sample(&mut self, world: &World, sample: &Sample, now: Now) {
        let sample = slim(sample);
        let alerts = world.ledgers.iter().find(|l| l.name == sample.ledger).map(|l| &l.alerts);
        let kept = Kept { sample: &sample, wakeups: world.wakeups, last_wakeup: world.last_wakeup, alerts };
        let history = self.samples.entry(sample.ledger.clone()).or_default();
        history.push(&kept, now.mono, now.wall, &mut self.scratch);
    }

    /// Keeps the newest pass of the slow lane.
    pub(super) fn backlog(&mut self, backlog: &Backlog, now: Now) {
        let history = self.backlogs.entry(backlog.ledger.clone()).or_default();
        history.push(backlog, now.mono, now.wall, &mut self.scratch);
    }

    /// Keeps the states of the sessions and of the worker, if one has changed.
    pub(super) fn states(&mut self, world: &World, now: Now) {
        let same = self.states.back().is_some_and(|(_, link, listen, worker)| {
            *link == world.link && *listen == world.listen && *worker == world.worker
        });
        if !same {
            let state = (now.mono, world.link.clone(), world.listen.clone(), world.worker.clone());
            self.states.push_back(state);
            while self.states.len() > STATES {
                self.states.pop_front();
            }
        }
    }

    /// Bytes that the kept moments take, all ledgers together.
    pub fn bytes(&self) -> usize {
        self.samples.values().chain(self.backlogs.values()).map(History::bytes).sum()
    }

    /// The moments of a ledger.
    pub fn of(&self, ledger: &str) -> Option<&History> {
        self.samples.get(ledger)
    }

    /// The world as it was at `at`, as far as it is kept. Rows of the log that were counted into another
    /// one later keep that text.
    fn world(&self, live: &World, at: Duration) -> World {
        let mut world = live.clone();
        world.log.until(at);
        world.tape.until(at);
        world.gaps.until(at);
        if let Some((_, link, listen, worker)) = self.states.iter().rfind(|s| s.0 <= at) {
            world.link = link.clone();
            world.listen = listen.clone();
            world.worker = worker.clone();
        }
        for ledger in &mut world.ledgers {
            ledger.series.until(at);
            let was = self.samples.get(&ledger.name).and_then(|h| h.at::<Was>(at));
            ledger.show(was.as_ref().map(|w| (Arc::new(w.0.sample.clone()), w.1)));
            ledger.alerts = Board::default();
            if let Some((was, _, _)) = was {
                ledger.alerts = was.alerts.unwrap_or_default();
                world.wakeups = was.wakeups;
                world.last_wakeup = was.last_wakeup;
            }
            let backlogs = self.backlogs.get(&ledger.name);
            let backlog = backlogs.and_then(|h| h.at::<Backlog>(at));
            let before = backlogs.zip(backlog.as_ref());
            ledger.backlog_before = before
                .and_then(|(h, (_, at, _))| h.at::<Backlog>(h.before(*at)?))
                .map(|(b, _, _)| Arc::new(b));
            ledger.backlog = backlog.map(|(b, at, _)| (Arc::new(b), at));
        }
        world
    }
}

/// A direction and a width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Earlier,
    Later,
    MuchEarlier,
    MuchLater,
}

/// Shows the world as it was a step away from what is shown.
pub(super) fn step(app: &mut App, step: Step, now: Now) {
    let Some(name) = app.ledger().map(|l| l.name.clone()) else {
        return notice(app, "nothing was sampled yet", now);
    };
    let shown = app.ledger().and_then(|l| l.sample.as_ref()).map_or(now.mono, |s| s.1);
    let Some(history) = app.past.of(&name) else {
        return notice(app, "nothing was sampled yet", now);
    };
    let target = match step {
        Step::Earlier => history.before(shown),
        Step::MuchEarlier => {
            let far = shown.saturating_sub(STRIDE);
            // not past the first moment, and never not at all
            history.before(far + Duration::from_millis(1)).or_else(|| history.first().map(|f| f.0))
        }
        Step::Later => history.after(shown),
        Step::MuchLater => history.after(shown + STRIDE - Duration::from_millis(1)),
    };
    let forward = matches!(step, Step::Later | Step::MuchLater);
    if forward && app.frozen.is_none() {
        return notice(app, "this is now; [ goes back in time", now);
    }
    match target.filter(|t| *t != shown) {
        Some(at) => go(app, &name, (shown, at), matches!(step, Step::MuchEarlier | Step::MuchLater), now),
        None if forward => {
            app.frozen = None;
            follow(app);
            notice(app, "this is now again", now);
        }
        None => {
            let first = history.first().map(|f| app.clock(f.1)).unwrap_or_default();
            notice(app, format!("nothing older is kept: the first sample is of {first}"), now);
        }
    }
}

fn go(app: &mut App, ledger: &str, (from, at): (Duration, Duration), far: bool, now: Now) {
    let world = app.past.world(&app.world, at);
    let wall = now.wall - chrono::TimeDelta::from_std(now.mono.saturating_sub(at)).unwrap_or_default();
    let between = at.max(from).saturating_sub(at.min(from));
    let every = world
        .ledgers
        .iter()
        .find(|l| l.name == ledger)
        .and_then(|l| l.sample.as_ref())
        .map_or(1.0, |(s, _)| s.cost.effective_ms as f64 / 1e3);
    app.frozen = Some(Box::new((world, Now { mono: at, wall })));
    follow(app);
    // a step by one crosses at most a few thinned moments; more than that was never sampled
    if !far && between.as_secs_f64() > every * 2.0 * super::history::THIN as f64 {
        let text = format!("nothing was sampled for {}", crate::text::age(between.as_secs_f64()));
        notice(app, text, now);
    }
}
