//! The keys that ask the world for something: what they refuse, and what they ask first.

use super::dialog::{Ask, Bulk, BulkPhase, Dialog, End, Release, ReleasePhase};
use super::lists::List;
use super::moves::show_holder;
use super::sessions::{Held, SessionKey, name_of};
use super::update::{notice, selected_lease};
use super::{App, Embedded, Screen, WorkerSetup};
use crate::model::{Ending, Intent, Lease, Now, Pin, PinKind};
use crate::text::quote_literal;

pub(super) fn release_selected(app: &mut App, now: Now) {
    if app.screen == Screen::Overview {
        // holders are listed here, leases are released
        match app.holder_selection().key().cloned() {
            Some(name) => {
                show_holder(app, name);
                notice(app, "choose a lease of this holder, then r again", now);
            }
            None => notice(app, "no holder is selected", now),
        }
        return;
    }
    match selected_lease(app) {
        Some(lease) => open_release(app, lease, now),
        None if app.lease_selection().is_gone() => {
            notice(app, "the selected lease is gone; choose another", now)
        }
        None => notice(app, "there is no lease to release", now),
    }
}

pub(super) fn open_release(app: &mut App, lease: Lease, now: Now) {
    if let Some(why) = app.refusal() {
        return notice(app, format!("release refused: {why}"), now);
    }
    let Some(facts) = app.facts().cloned() else {
        return notice(app, "release refused: the server has not told about this ledger yet", now);
    };
    // the release asks about now: a picture of the past may show an expiry that was renewed since
    let live = app.world.ledgers.iter().find(|l| l.name == facts.name).and_then(|l| l.sample.as_ref());
    let key = super::LeaseKey::of(&lease);
    let live = live.and_then(|(s, _)| s.leases.current()?.iter().find(|l| key.is(l)).cloned());
    let lease = live.unwrap_or(lease);
    // whether it has expired is a question to the server's clock as it is, not to a frozen picture
    let server_now = app.live_server_now(now);
    app.dialog = Some(Dialog::Release(Box::new(Release {
        needs_typing: !lease.is_expired(server_now),
        holder: app.holder_named(&lease.holder).cloned(),
        facts,
        lease,
        typed: String::new(),
        phase: ReleasePhase::Asking,
    })));
}

pub(super) fn count_expired(app: &mut App, now: Now) -> Vec<Intent> {
    if let Some(why) = app.refusal() {
        notice(app, format!("release refused: {why}"), now);
        return Vec::new();
    }
    let Some(facts) = app.facts().cloned() else {
        notice(app, "release refused: the server has not told about this ledger yet", now);
        return Vec::new();
    };
    let holders = holders_shown(app);
    if holders.as_ref().is_some_and(Vec::is_empty) {
        notice(app, "nothing is shown here that could be released", now);
        return Vec::new();
    }
    app.dialog = Some(Dialog::Bulk(Bulk {
        ledger: facts.name.clone(),
        holders: holders.clone(),
        verdict: facts.fencing.verdict(),
        phase: BulkPhase::Counting,
    }));
    vec![Intent::CountExpired { ledger: facts.name, holders }]
}

/// The holders that the person narrowed the list to, by Enter on one or by a filter; `None` when it is not
/// narrowed. A list that shows fewer than all and a key that frees all do not go together.
fn holders_shown(app: &App) -> Option<Vec<String>> {
    let is_filtered = !app.lever(app.list()).filter().is_empty();
    let mut names: Vec<String> = match app.screen {
        Screen::Leases if is_filtered => app.leases().into_iter().map(|l| l.holder.clone()).collect(),
        Screen::Leases => return app.only_holder.clone().map(|only| vec![only]),
        Screen::Overview if is_filtered => app.holders().into_iter().map(|h| h.name.clone()).collect(),
        _ => return None,
    };
    names.sort_unstable();
    names.dedup();
    Some(names)
}

pub(super) fn ask_wake(app: &mut App, now: Now) {
    if let Some(why) = app.refusal() {
        return notice(app, format!("wake-up refused: {why}"), now);
    }
    let Some(facts) = app.facts() else {
        return notice(app, "wake-up refused: the server has not told about this ledger yet", now);
    };
    let Some(channel) = facts.channel.clone() else {
        return notice(app, "this ledger has no wake-up channel", now);
    };
    app.dialog = Some(Dialog::Ask(Ask {
        title: "Send a wake-up".to_owned(),
        lines: vec![
            format!("One notification on the channel {channel}."),
            "Workers that listen there scan the ledger; no job is changed.".to_owned(),
        ],
        intent: Intent::Wake { ledger: facts.name.clone() },
    }));
}

/// Asks about the selected session; what has none is explained.
pub(super) fn ask_end(app: &mut App, how: Ending, now: Now) {
    let what = how.word();
    if let Some(why) = app.refusal() {
        return notice(app, format!("{what} refused: {why}"), now);
    }
    let Some(line) = app.selected_session().cloned() else {
        return notice(app, "no session is selected", now);
    };
    let session = match line.held {
        Held::Session(session) => session,
        Held::Pin(pin) => {
            let title = format!("No session to {what}");
            app.dialog = Some(Dialog::Notice { title, lines: instead(&pin) });
            return;
        }
    };
    let others = app.sample().and_then(|s| s.sessions.value()).map_or(&[][..], Vec::as_slice);
    let behind = others.iter().filter(|s| s.lock.as_ref().is_some_and(|l| l.by.contains(&session.pid)));
    let blocks = behind.map(|s| name_of(others, s.pid)).collect();
    app.dialog = Some(Dialog::End(Box::new(End {
        how,
        session: *session,
        blocks,
        behind: line.behind,
        typed: String::new(),
        phase: ReleasePhase::Asking,
    })));
}

/// What ends something that has no session.
fn instead(pin: &Pin) -> Vec<String> {
    match pin.kind {
        PinKind::Prepared => vec![
            format!(
                "The prepared transaction {} has no session: it outlives the one that made it.",
                pin.name
            ),
            "Whoever coordinates it should end it. By hand, in its database:".to_owned(),
            format!("rollback prepared {};", quote_literal(&pin.name)),
        ],
        PinKind::Slot => vec![
            format!("The replication slot {} holds this without a session.", pin.name),
            "If nobody will read it again:".to_owned(),
            format!("select pg_drop_replication_slot({});", quote_literal(&pin.name)),
        ],
        PinKind::Standby => vec![
            format!("{} is a standby: its own queries hold this, by hot_standby_feedback.", pin.name),
            "End the long query there.".to_owned(),
        ],
        PinKind::Session => {
            vec![
                "It is listed for its old snapshot only; once its transaction is long it can be ended."
                    .to_owned(),
            ]
        }
    }
}

pub(super) fn toggle_worker(app: &mut App, now: Now) -> Vec<Intent> {
    // the worker of a recording runs, or ran, somewhere else
    if let (Some(why), true) = (app.refusal(), app.playing.is_some()) {
        notice(app, format!("worker refused: {why}"), now);
        return Vec::new();
    }
    if matches!(app.world.worker, Embedded::Starting | Embedded::Running { .. }) {
        app.world.worker = Embedded::Stopping;
        return vec![Intent::Worker { on: false }];
    }
    if app.world.worker == Embedded::Stopping {
        notice(app, "the worker is stopping; it gives back what it holds", now);
        return Vec::new();
    }
    match app.setup.worker.clone() {
        WorkerSetup::Unavailable { how } => {
            app.dialog = Some(Dialog::Notice {
                title: "No worker here".to_owned(),
                lines: vec![
                    "A worker needs a handler, so that real work is never marked as done by looking at it."
                        .to_owned(),
                    how,
                ],
            });
        }
        WorkerSetup::Available { handler } => {
            if let Some(why) = app.refusal() {
                notice(app, format!("worker refused: {why}"), now);
                return Vec::new();
            }
            let on: Vec<&str> = app.world.ledgers.iter().map(|l| l.name.as_str()).collect();
            let mut lines = vec![format!("It claims and runs jobs of: {}.", on.join(", "))];
            if let Some(command) = &app.setup.runs {
                lines.push(format!("For each job it runs: {command}"));
                lines.push("This is real work: exit status 0 marks the job as done.".to_owned());
            }
            lines.push(format!("Handler: {handler}. w again stops it."));
            app.dialog = Some(Dialog::Ask(Ask {
                title: "Start a worker in this program".to_owned(),
                lines,
                intent: Intent::Worker { on: true },
            }));
        }
    }
    Vec::new()
}

/// The intervals of the fast lane that its keys choose from, milliseconds.
const PACES: [u64; 7] = [200, 500, 1_000, 2_000, 5_000, 10_000, 30_000];

/// Samples more or less often. It changes nothing at the server but how often that is asked.
pub(super) fn pace(app: &mut App, faster: bool, now: Now) -> Vec<Intent> {
    let sampled = app.world.ledgers.iter().find_map(|l| l.sample.as_ref());
    let Some(is) = app.pace.or_else(|| sampled.map(|(s, _)| s.cost.interval_ms)) else {
        notice(app, "nothing was sampled yet", now);
        return Vec::new();
    };
    let seconds = |ms: u64| format!("{}s", ms as f64 / 1e3);
    let next = match faster {
        true => PACES.into_iter().rev().find(|p| *p < is),
        false => PACES.into_iter().find(|p| *p > is),
    };
    let Some(interval_ms) = next else {
        let end = if faster { "shortest" } else { "longest" };
        notice(app, format!("sampling every {}: that is the {end} interval", seconds(is)), now);
        return Vec::new();
    };
    app.pace = Some(interval_ms);
    notice(app, format!("sampling every {} (0.2s to 30s)", seconds(interval_ms)), now);
    vec![Intent::Pace { interval_ms }]
}

/// Copies what a person would type elsewhere: an id, a name, a line of the log.
pub(super) fn copy(app: &mut App, now: Now) -> Vec<Intent> {
    let lists = &app.lists;
    let found = match app.list() {
        List::Holders => lists.holders.selection().key().map(|name| ("the holder's name", name.clone())),
        List::Types => lists.types.selection().key().map(|name| ("the type", name.clone())),
        List::Jobs => lists.jobs.selection().key().map(|id| ("the job's id", id.clone())),
        List::Leases => lists.leases.selection().key().map(|lease| ("the job's id", lease.id.clone())),
        List::Workers => lists.workers.selection().key().map(|name| ("the worker's name", name.clone())),
        List::Sessions => lists.sessions.selection().key().map(|key| match key {
            SessionKey::Pid(pid) => ("the pid", pid.to_string()),
            SessionKey::Named(_, name) => ("the name", name.clone()),
        }),
        List::Tape => None,
        List::Events => {
            let log = &app.world().log;
            let at = lists.events.selection().key().and_then(|seq| log.row_of(*seq));
            at.and_then(|row| log.get(row)).map(|line| ("the event", line.text.clone()))
        }
    };
    match found {
        Some((what, text)) => {
            notice(app, format!("copied {what}"), now);
            vec![Intent::Copy(text)]
        }
        None => {
            notice(app, "nothing is selected that could be copied", now);
            Vec::new()
        }
    }
}
