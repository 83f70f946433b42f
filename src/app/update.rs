//! Every change of the state, and what it asks of the world.

use super::actions::{
    ask_end, ask_wake, copy, count_expired, open_release, pace, release_selected, toggle_worker,
};
use super::alerts::Phase;
use super::dialog::{Dialog, Outcome};
use super::jobs::{on_answer, open_job, open_plan};
use super::lists::{List, arrange};
use super::moves::{back, choose, freeze, next_ledger, open, page, reverse, show_holder, sort, step, turn};
use super::on_job;
use super::palette::{Item, Palette};
use super::time::{self, Step};
use super::world::{on_alerts, on_link, on_listen, on_sample, on_silence, on_worker};
use super::{App, Embedded, JobsView, LeaseKey, Msg, Screen};
use crate::config::keys::{Action, Key};
use crate::model::{ActionEvent, Ending, Event, Intent, JobAction, Lease, Now};

/// Longest filter that can be typed, characters.
const FILTER: usize = 64;

/// Takes in one message; what comes back is to be carried out.
pub fn update(app: &mut App, msg: Msg, now: Now) -> Vec<Intent> {
    match msg {
        Msg::Key(key) => on_key(app, key, now),
        Msg::Paste(text) => {
            // typed confirmations are typed: only a field that confirms nothing takes a paste
            if let Some(Dialog::Palette(palette)) = &mut app.dialog {
                palette.paste(&text);
            } else if app.typing && app.dialog.is_none() {
                let text = crate::text::clean(&text);
                refilter(app, |filter| filter.push_str(&text));
            }
            Vec::new()
        }
        Msg::Tick => silence(app, now),
        Msg::Scroll(rows) => {
            match &mut app.dialog {
                None => step(app, isize::from(rows)),
                // what is read scrolls as well; the wheel answers no question
                Some(
                    dialog @ (Dialog::Help { .. }
                    | Dialog::Job(_)
                    | Dialog::Plan(_)
                    | Dialog::Runbook { .. }),
                ) => {
                    let key = if rows < 0 { Key::Up } else { Key::Down };
                    for _ in 0..rows.unsigned_abs() {
                        dialog.key(key, &app.setup.keys);
                    }
                }
                Some(_) => {}
            }
            Vec::new()
        }
        Msg::Row { row, top } => {
            if app.dialog.is_none() {
                choose(app, row, top);
            }
            Vec::new()
        }
        Msg::Click(..) => Vec::new(),
        Msg::Resize(width, height) => {
            app.size = (width, height);
            Vec::new()
        }
        Msg::Playing(playing) => {
            app.playing = Some(playing);
            Vec::new()
        }
        Msg::Event(event) => on_event(app, *event, now),
    }
}

fn silence(app: &mut App, now: Now) -> Vec<Intent> {
    on_silence(&mut app.world, &app.setup.thresholds, app.setup.fallback_s, now)
}

fn on_event(app: &mut App, event: Event, now: Now) -> Vec<Intent> {
    let is_sample = matches!(event, Event::Sample(_));
    let mut ask = None;
    // the sample that ends a silence comes too late to be warned of it
    let mut intents = if is_sample { Vec::new() } else { silence(app, now) };
    let world = &mut app.world;
    world.log.record(&event, now);
    world.tape.record(&event, world.worker.is_on(), now);
    match event {
        Event::Link(link) => on_link(world, link, now),
        Event::Listen(listen) => on_listen(world, listen, now),
        Event::Sample(sample) => {
            let (limits, fallback_s) = (&app.setup.thresholds, app.setup.fallback_s);
            intents.extend(on_alerts(world, limits, fallback_s, &sample, now));
            app.past.sample(world, &sample, now);
            on_sample(world, *sample, now);
        }
        Event::Wake(wake) => {
            world.wakeups += wake.count;
            world.hear(&wake.channel, wake.count);
            world.last_wakeup = Some(now.mono);
        }
        Event::Worker(event) => on_worker(world, event, now),
        Event::Action(event) => {
            on_action(app, &event, now);
            // the list shows what was done, without waiting for the slow lane
            let acted = matches!(event, ActionEvent::OnJob { .. });
            ask = app.jobs.as_ref().filter(|_| acted).map(JobsView::intent);
        }
        answer @ (Event::Backlog(_) | Event::Jobs(_) | Event::Job(_) | Event::Plan(_)) => {
            return on_answer(app, answer, now);
        }
        Event::Note(_) => {}
    }
    app.past.states(&app.world, now);
    if app.frozen.is_none() {
        arrange(app, List::Events);
        arrange(app, List::Tape);
        if is_sample {
            follow(app);
        }
    }
    intents.extend(ask);
    intents
}

fn on_action(app: &mut App, event: &ActionEvent, now: Now) {
    if let Some(dialog) = &mut app.dialog {
        dialog.answer(event);
    }
    let is_shown = matches!(
        app.dialog,
        Some(Dialog::Release(_) | Dialog::Bulk(_) | Dialog::OnJob(_) | Dialog::End(_))
    );
    if let ActionEvent::Refused { what, why } = event {
        // an embedded worker that could not start is off again
        if app.world.worker == Embedded::Starting {
            app.world.worker = Embedded::Off { trouble: Some(why.clone()) };
        }
        if !is_shown {
            app.notice = Some((format!("{what} refused: {why}"), now.mono));
        }
    } else if let (ActionEvent::Ended { pid, how, answer, .. }, false) = (event, is_shown) {
        app.notice = Some((format!("{} pid {pid}: {answer}", how.word()), now.mono));
    } else if let ActionEvent::WakeSent { channel } = event {
        app.notice = Some((format!("wake-up sent on {channel}"), now.mono));
    } else if let ActionEvent::FaultDone { text } = event {
        app.notice = Some((text.clone(), now.mono));
    }
}

impl App {
    /// Puts the world of another state in the place of this one's; the screen and what is chosen stay.
    pub(super) fn take_world_of(&mut self, other: App) {
        self.world = other.world;
        self.notice = other.notice;
        self.frozen = None;
        follow(self);
    }
}

/// Lets every list find its rows in what is shown now.
pub(super) fn follow(app: &mut App) {
    for list in List::ALL {
        arrange(app, list);
    }
}

fn on_key(app: &mut App, key: Key, now: Now) -> Vec<Intent> {
    // leaving works everywhere, whatever is open
    if key == Key::Ctrl('c') {
        return quit(app);
    }
    if let Some(dialog) = &mut app.dialog {
        let outcome = dialog.key(key, &app.setup.keys);
        return on_outcome(app, outcome, now);
    }
    app.notice = None;
    if app.typing {
        return type_filter(app, key);
    }
    let action = app.keys().lookup(key, |scope| app.offers(scope));
    match action {
        Some(action) => on_action_key(app, action, now),
        None => Vec::new(),
    }
}

/// Keys while the filter is typed. The cursor still moves, by the keys that are no letters.
fn type_filter(app: &mut App, key: Key) -> Vec<Intent> {
    match key {
        Key::Enter => app.typing = false,
        Key::Esc => {
            app.typing = false;
            refilter(app, String::clear);
        }
        Key::Backspace => refilter(app, |filter| {
            filter.pop();
        }),
        Key::Char(c) => refilter(app, |filter| filter.push(c)),
        Key::Up => step(app, -1),
        Key::Down => step(app, 1),
        Key::PageUp => step(app, -page(app)),
        Key::PageDown => step(app, page(app)),
        _ => {}
    }
    Vec::new()
}

pub(super) fn refilter(app: &mut App, change: impl FnOnce(&mut String)) {
    let list = app.list();
    let lever = app.lists.lever_mut(list);
    let mut text = lever.filter().to_owned();
    change(&mut text);
    lever.set_filter(text.chars().take(FILTER).collect());
    arrange(app, list);
}

fn quit(app: &mut App) -> Vec<Intent> {
    app.quit = true;
    vec![Intent::Quit]
}

fn on_outcome(app: &mut App, outcome: Outcome, now: Now) -> Vec<Intent> {
    let (close, intent) = match outcome {
        Outcome::Stay => (false, None),
        Outcome::Close => (true, None),
        Outcome::Send(intent) => (false, Some(intent)),
        Outcome::CloseAndSend(intent) => (true, Some(intent)),
        Outcome::OpenRelease(lease) => {
            app.dialog = None;
            open_release(app, lease, now);
            return Vec::new();
        }
        Outcome::OpenOnJob(action) => {
            let Some(Dialog::Job(view)) = app.dialog.take() else { return Vec::new() };
            let facts = view.detail.as_ref().and_then(|d| d.found.value()).and_then(Option::as_ref);
            let state = facts.and_then(|f| f.row.state);
            return on_job::open(app, action, view.id, state, now);
        }
        Outcome::Run(item) => {
            app.dialog = None;
            return run(app, item, now);
        }
        Outcome::Copy(what, text) => {
            notice(app, format!("copied {what}"), now);
            return vec![Intent::Copy(text)];
        }
        Outcome::ShowHolder(name) => {
            app.dialog = None;
            show_holder(app, name);
            return Vec::new();
        }
    };
    if close {
        app.dialog = None;
    }
    let Some(intent) = intent else { return Vec::new() };
    let harmless = matches!(intent, Intent::StopBulk | Intent::Fault(_) | Intent::Job { .. });
    if let Some(why) = app.refusal().filter(|_| !harmless) {
        // the session went away while the dialog was open
        let refused = ActionEvent::Refused { what: "this".to_owned(), why };
        app.world.log.record(&Event::Action(refused.clone()), now);
        on_action(app, &refused, now);
        return Vec::new();
    }
    if intent == (Intent::Worker { on: true }) {
        app.world.worker = Embedded::Starting;
    }
    vec![intent]
}

fn on_action_key(app: &mut App, action: Action, now: Now) -> Vec<Intent> {
    match action {
        Action::Quit => return quit(app),
        Action::Overview => app.screen = Screen::Overview,
        Action::Backlog => app.screen = Screen::Backlog,
        Action::Leases => app.screen = Screen::Leases,
        Action::Workers => app.screen = Screen::Workers,
        Action::Sessions => app.screen = Screen::Sessions,
        Action::WakeUps => app.screen = Screen::WakeUps,
        Action::Events => app.screen = Screen::Events,
        Action::NextScreen => turn(app, 1),
        Action::PreviousScreen => turn(app, Screen::ALL.len() - 1),
        Action::Up => step(app, -1),
        Action::Down => step(app, 1),
        Action::PageUp => step(app, -page(app)),
        Action::PageDown => step(app, page(app)),
        Action::Top => step(app, isize::MIN),
        Action::Bottom => step(app, isize::MAX),
        Action::Open => return open(app, now),
        Action::Payload => return open_job(app, true, now),
        Action::Retry => return on_job::on_selected(app, JobAction::Retry, now),
        Action::GiveUp => return on_job::on_selected(app, JobAction::GiveUp, now),
        Action::RunNow => return on_job::on_selected(app, JobAction::RunNow, now),
        Action::Filter => app.typing = true,
        Action::Sort => sort(app, now),
        Action::Reverse => reverse(app, now),
        Action::Earlier => time::step(app, Step::Earlier, now),
        Action::Later => time::step(app, Step::Later, now),
        Action::MuchEarlier => time::step(app, Step::MuchEarlier, now),
        Action::MuchLater => time::step(app, Step::MuchLater, now),
        Action::Back => back(app),
        Action::Freeze => freeze(app, now),
        Action::SampleFaster => return pace(app, true, now),
        Action::SampleSlower => return pace(app, false, now),
        Action::NextLedger => next_ledger(app, now),
        Action::Theme => theme(app, app.theme.wrapping_add(1), now),
        Action::Palette => app.dialog = Some(Dialog::Palette(Palette::new(app))),
        Action::Copy => return copy(app, now),
        Action::Redraw => return vec![Intent::Redraw],
        Action::Suspend => return vec![Intent::Suspend],
        Action::Help => app.dialog = Some(Dialog::Help { top: 0 }),
        Action::Faults => app.dialog = Some(Dialog::Faults { list: app.setup.faults.clone(), at: 0 }),
        Action::Alerts => app.dialog = Some(Dialog::Alerts { at: first_alert(app) }),
        Action::Release => release_selected(app, now),
        Action::Play(play) => return vec![Intent::Play(play)],
        Action::Worker => return toggle_worker(app, now),
        Action::ReleaseExpired => return count_expired(app, now),
        Action::CancelQuery => ask_end(app, Ending::Cancel, now),
        Action::Terminate => ask_end(app, Ending::Terminate, now),
        Action::ClaimPlan => return open_plan(app, now),
        Action::Wake => ask_wake(app, now),
    }
    Vec::new()
}

/// Where the list of alerts begins: at the first that fires, or is about to.
fn first_alert(app: &App) -> usize {
    let states: Vec<Phase> =
        app.ledger().map(|l| l.alerts.all().map(|(_, s)| s.phase()).collect()).unwrap_or_default();
    let firing = states.iter().position(|p| p.is_firing());
    firing.or_else(|| states.iter().position(|p| matches!(p, Phase::Pending { .. }))).unwrap_or(0)
}

/// What the palette was asked to do.
fn run(app: &mut App, item: Item, now: Now) -> Vec<Intent> {
    match item {
        Item::Action(action) => return on_action_key(app, action, now),
        Item::Theme(at) => theme(app, at, now),
        Item::Runbook(alert) => app.dialog = Some(Dialog::Runbook { alert, top: 0, listed: false }),
    }
    Vec::new()
}

fn theme(app: &mut App, at: usize, now: Now) {
    let names = &app.setup.themes;
    let text = names.get(at % names.len().max(1)).map(|name| format!("theme: {name}"));
    app.theme = at;
    if let Some(text) = text {
        notice(app, text, now);
    }
}

pub(super) fn selected_lease(app: &App) -> Option<Lease> {
    let key = app.lease_selection().key()?;
    app.leases().into_iter().find(|l| LeaseKey::is(key, l)).cloned()
}

pub(super) fn notice(app: &mut App, text: impl Into<String>, now: Now) {
    app.notice = Some((text.into(), now.mono));
}
