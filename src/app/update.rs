//! Every change of the state, and what it asks of the world.

use super::actions::{ask_wake, count_expired, open_release, release_selected, toggle_worker};
use super::dialog::{Dialog, Outcome};
use super::selection::Selection;
use super::world::{on_link, on_listen, on_sample, on_worker};
use super::{App, Embedded, LIST_CHROME, LeaseKey, Msg, Screen};
use crate::config::keys::{self, Action, Key};
use crate::model::{ActionEvent, Event, Intent, Lease, Now};

/// Takes in one message; what comes back is to be carried out.
pub fn update(app: &mut App, msg: Msg, now: Now) -> Vec<Intent> {
    match msg {
        Msg::Key(key) => on_key(app, key, now),
        // there is no text field that a paste may fill: typed confirmations are typed
        Msg::Paste(_) | Msg::Tick => Vec::new(),
        Msg::Resize(width, height) => {
            app.size = (width, height);
            Vec::new()
        }
        Msg::Event(event) => {
            on_event(app, *event, now);
            Vec::new()
        }
    }
}

fn on_event(app: &mut App, event: Event, now: Now) {
    let is_sample = matches!(event, Event::Sample(_));
    let world = &mut app.world;
    world.log.record(&event, now);
    match event {
        Event::Link(link) => on_link(world, link, now),
        Event::Listen(listen) => on_listen(world, listen, now),
        Event::Sample(sample) => on_sample(world, &app.setup.thresholds, *sample, now),
        Event::Wake(wake) => {
            world.wakeups += wake.count;
            world.last_wakeup = Some(now.mono);
        }
        Event::Worker(event) => on_worker(world, event, now),
        Event::Action(event) => on_action(app, &event, now),
        Event::Note(_) | Event::Backlog(_) | Event::Jobs(_) | Event::Job(_) => {}
    }
    if app.frozen.is_none() {
        follow_log(app);
        if is_sample {
            follow_lists(app);
        }
    }
}

fn on_action(app: &mut App, event: &ActionEvent, now: Now) {
    if let Some(dialog) = &mut app.dialog {
        dialog.answer(event);
    }
    let is_shown = matches!(app.dialog, Some(Dialog::Release(_) | Dialog::Bulk(_)));
    if let ActionEvent::Refused { what, why } = event {
        // an embedded worker that could not start is off again
        if app.world.worker == Embedded::Starting {
            app.world.worker = Embedded::Off { trouble: Some(why.clone()) };
        }
        if !is_shown {
            app.notice = Some((format!("{what} refused: {why}"), now.mono));
        }
    } else if let ActionEvent::WakeSent { channel } = event {
        app.notice = Some((format!("wake-up sent on {channel}"), now.mono));
    } else if let ActionEvent::FaultDone { text } = event {
        app.notice = Some((text.clone(), now.mono));
    }
}

/// Lets every selection find its thing in what is shown now.
fn follow(app: &mut App) {
    follow_lists(app);
    follow_log(app);
}

/// Leases and holders: they change with a sample, which is rarer than an event.
fn follow_lists(app: &mut App) {
    let mut lease = std::mem::take(&mut app.lease);
    {
        let list = app.leases();
        lease.follow(list.len(), |i| LeaseKey::of(list[i]), |k| list.iter().position(|l| k.is(l)));
    }
    app.lease = lease;
    let mut holder = std::mem::take(&mut app.holder);
    {
        let list = app.holders();
        holder.follow(list.len(), |i| list[i].name.clone(), |k| list.iter().position(|h| h.name == *k));
    }
    app.holder = holder;
}

fn follow_log(app: &mut App) {
    let mut event = std::mem::take(&mut app.event);
    {
        let log = &app.world().log;
        let at = |row: usize| log.get(row).map_or(0, |l| l.seq);
        event.follow(log.len(), at, |seq| log.row_of(*seq));
    }
    app.event = event;
}

fn on_key(app: &mut App, key: Key, now: Now) -> Vec<Intent> {
    // leaving works everywhere, whatever is open
    if key == Key::Ctrl('c') {
        return quit(app);
    }
    if let Some(dialog) = &mut app.dialog {
        let outcome = dialog.key(key);
        return on_outcome(app, outcome, now);
    }
    let action = keys::lookup(key, |scope| app.offers(scope));
    app.notice = None;
    match action {
        Some(action) => on_action_key(app, action, now),
        None => Vec::new(),
    }
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
    };
    if close {
        app.dialog = None;
    }
    let Some(intent) = intent else { return Vec::new() };
    let harmless = matches!(intent, Intent::StopBulk | Intent::Fault(_));
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
        Action::Leases => app.screen = Screen::Leases,
        Action::Events => app.screen = Screen::Events,
        Action::NextScreen => turn(app, 1),
        Action::PreviousScreen => turn(app, Screen::ALL.len() - 1),
        Action::Up => step(app, -1),
        Action::Down => step(app, 1),
        Action::PageUp => step(app, -page(app)),
        Action::PageDown => step(app, page(app)),
        Action::Top => step(app, isize::MIN),
        Action::Bottom => step(app, isize::MAX),
        Action::Open => open(app),
        Action::Back => back(app),
        Action::Freeze => freeze(app, now),
        Action::NextLedger => next_ledger(app, now),
        Action::Theme => app.theme = app.theme.wrapping_add(1),
        Action::Help => app.dialog = Some(Dialog::Help { top: 0 }),
        Action::Faults => app.dialog = Some(Dialog::Faults { list: app.setup.faults.clone(), at: 0 }),
        Action::Release => release_selected(app, now),
        Action::Worker => return toggle_worker(app, now),
        Action::ReleaseExpired => return count_expired(app, now),
        Action::Wake => ask_wake(app, now),
    }
    Vec::new()
}

fn turn(app: &mut App, by: usize) {
    let at = Screen::ALL.iter().position(|s| *s == app.screen).unwrap_or(0);
    app.screen = Screen::ALL[(at + by) % Screen::ALL.len()];
}

fn page(app: &App) -> isize {
    isize::try_from(app.size.1.saturating_sub(LIST_CHROME).max(1)).unwrap_or(1)
}

fn step(app: &mut App, by: isize) {
    let height = usize::from(app.size.1.saturating_sub(LIST_CHROME).max(1));
    match app.screen {
        Screen::Overview => {
            let mut sel = std::mem::take(&mut app.holder);
            let list = app.holders();
            sel.step(by, list.len(), height, |i| list[i].name.clone());
            app.holder = sel;
        }
        Screen::Leases => {
            let mut sel = std::mem::take(&mut app.lease);
            let list = app.leases();
            sel.step(by, list.len(), height, |i| LeaseKey::of(list[i]));
            app.lease = sel;
        }
        Screen::Events => {
            let mut sel = std::mem::take(&mut app.event);
            let log = &app.world().log;
            let before = sel.row();
            sel.step(by, log.len(), height, |i| log.get(i).map_or(0, |l| l.seq));
            // back at the newest line the log is followed again
            if sel.row() == 0 && before > 0 {
                sel = Selection::default();
            }
            app.event = sel;
            follow(app);
        }
    }
}

fn open(app: &mut App) {
    match app.screen {
        Screen::Overview => {
            if let Some(name) = app.holder.key().cloned() {
                show_holder(app, name);
            }
        }
        Screen::Leases => {
            if let Some(lease) = selected_lease(app) {
                let holder = app.holder_named(&lease.holder).cloned();
                app.dialog = Some(Dialog::Lease(Box::new((lease, holder))));
            }
        }
        Screen::Events => app.dialog = app.event.key().map(|seq| Dialog::Event(*seq)),
    }
}

/// To the screen Leases, narrowed to one holder.
pub(super) fn show_holder(app: &mut App, name: String) {
    app.only_holder = Some(name);
    app.screen = Screen::Leases;
    app.lease = Selection::default();
    follow(app);
}

fn back(app: &mut App) {
    if app.screen == Screen::Leases && app.only_holder.take().is_some() {
        follow(app);
    } else if app.screen != Screen::Overview {
        app.screen = Screen::Overview;
    }
}

fn freeze(app: &mut App, now: Now) {
    if app.frozen.take().is_none() {
        app.frozen = Some(Box::new((app.world.clone(), now)));
    }
    follow(app);
}

fn next_ledger(app: &mut App, now: Now) {
    let n = app.world().ledgers.len();
    if n < 2 {
        app.notice = Some(("there is no other ledger in this database".to_owned(), now.mono));
        return;
    }
    app.current = (app.current + 1) % n;
    app.only_holder = None;
    app.lease = Selection::default();
    app.holder = Selection::default();
    follow(app);
}

pub(super) fn selected_lease(app: &App) -> Option<Lease> {
    let key = app.lease.key()?;
    app.leases().into_iter().find(|l| key.is(l)).cloned()
}

pub(super) fn notice(app: &mut App, text: impl Into<String>, now: Now) {
    app.notice = Some((text.into(), now.mono));
}
