//! Every change of the state, and what it asks of the world.

use super::actions::{ask_wake, copy, count_expired, open_release, release_selected, toggle_worker};
use super::dialog::{Dialog, Outcome};
use super::jobs::{on_answer, open_job, open_type};
use super::lists::{List, arrange};
use super::palette::{Item, Palette};
use super::time::{self, Step};
use super::world::{on_link, on_listen, on_sample, on_worker};
use super::{App, Embedded, LIST_CHROME, LIST_TOP, LeaseKey, Msg, Screen};
use crate::config::keys::{Action, Key};
use crate::model::{ActionEvent, Event, Intent, Lease, Now};

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
        Msg::Tick => Vec::new(),
        Msg::Scroll(rows) => {
            if app.dialog.is_none() {
                step(app, isize::from(rows));
            }
            Vec::new()
        }
        Msg::Click(row) => {
            if app.dialog.is_none() {
                click(app, row);
            }
            Vec::new()
        }
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

fn on_event(app: &mut App, event: Event, now: Now) -> Vec<Intent> {
    let is_sample = matches!(event, Event::Sample(_));
    let world = &mut app.world;
    world.log.record(&event, now);
    world.tape.record(&event, world.worker.is_on(), now);
    match event {
        Event::Link(link) => on_link(world, link, now),
        Event::Listen(listen) => on_listen(world, listen, now),
        Event::Sample(sample) => {
            app.past.sample(world, &sample, now);
            on_sample(world, &app.setup.thresholds, *sample, now);
        }
        Event::Wake(wake) => {
            world.wakeups += wake.count;
            world.hear(&wake.channel, wake.count);
            world.last_wakeup = Some(now.mono);
        }
        Event::Worker(event) => on_worker(world, event, now),
        Event::Action(event) => on_action(app, &event, now),
        answer @ (Event::Backlog(_) | Event::Jobs(_) | Event::Job(_)) => {
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
    Vec::new()
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

fn refilter(app: &mut App, change: impl FnOnce(&mut String)) {
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
        Action::Filter => app.typing = true,
        Action::Sort => sort(app, now),
        Action::Reverse => reverse(app, now),
        Action::Earlier => time::step(app, Step::Earlier, now),
        Action::Later => time::step(app, Step::Later, now),
        Action::MuchEarlier => time::step(app, Step::MuchEarlier, now),
        Action::MuchLater => time::step(app, Step::MuchLater, now),
        Action::Back => back(app),
        Action::Freeze => freeze(app, now),
        Action::NextLedger => next_ledger(app, now),
        Action::Theme => theme(app, app.theme.wrapping_add(1), now),
        Action::Palette => app.dialog = Some(Dialog::Palette(Palette::new(app))),
        Action::Copy => return copy(app, now),
        Action::Redraw => return vec![Intent::Redraw],
        Action::Suspend => return vec![Intent::Suspend],
        Action::Help => app.dialog = Some(Dialog::Help { top: 0 }),
        Action::Faults => app.dialog = Some(Dialog::Faults { list: app.setup.faults.clone(), at: 0 }),
        Action::Release => release_selected(app, now),
        Action::Play(play) => return vec![Intent::Play(play)],
        Action::Worker => return toggle_worker(app, now),
        Action::ReleaseExpired => return count_expired(app, now),
        Action::Wake => ask_wake(app, now),
    }
    Vec::new()
}

/// What the palette was asked to do.
fn run(app: &mut App, item: Item, now: Now) -> Vec<Intent> {
    match item {
        Item::Action(action) => return on_action_key(app, action, now),
        Item::Theme(at) => theme(app, at, now),
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

/// Selects the row of the list that stands on the row `y` of the terminal.
fn click(app: &mut App, y: u16) {
    // two head lines, the frame, the column heads
    let Some(below) = y.checked_sub(LIST_TOP) else { return };
    let height = usize::from(app.size.1.saturating_sub(LIST_CHROME).max(1));
    if usize::from(below) >= height {
        return;
    }
    let list = app.list();
    // elsewhere the rows stand where the layout puts them
    if !matches!(list, List::Leases | List::Events) {
        return;
    }
    let lever = app.lever(list);
    let ((row, top), (len, _)) = (lever.cursor(height), lever.counts());
    let wanted = top + usize::from(below);
    if wanted < len {
        step(app, wanted as isize - row as isize);
    }
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
    let list = app.list();
    app.lists.lever_mut(list).step(by, height);
    arrange(app, list);
    // back at the newest line, what happens is followed again
    if matches!(list, List::Events | List::Tape) && by < 0 {
        let newest = |row: usize, order: &[usize]| row == 0 && order.first() == Some(&0);
        if newest(app.event_selection().row(), app.lists.events.order()) {
            app.lists.events.restart();
        }
        if newest(app.tape_selection().row(), app.lists.tape.order()) {
            app.lists.tape.restart();
        }
        arrange(app, list);
    }
}

fn sort(app: &mut App, now: Now) {
    let list = app.list();
    app.lists.lever_mut(list).next_sort(list.columns().len());
    arrange(app, list);
    say_order(app, list, now);
}

fn reverse(app: &mut App, now: Now) {
    let list = app.list();
    app.lists.lever_mut(list).reverse();
    arrange(app, list);
    say_order(app, list, now);
}

fn say_order(app: &mut App, list: List, now: Now) {
    let (column, reverse) = app.lever(list).sorted();
    let by = column
        .and_then(|c| list.columns().get(c))
        .map_or("in the usual order".to_owned(), |c| format!("sorted by {c}"));
    notice(app, format!("{by}{}", if reverse { ", turned round" } else { "" }), now);
}

fn open(app: &mut App, now: Now) -> Vec<Intent> {
    match app.list() {
        List::Holders => {
            if let Some(name) = app.holder_selection().key().cloned() {
                show_holder(app, name);
            }
        }
        List::Types => return open_type(app, now),
        List::Jobs => return open_job(app, false, now),
        List::Leases => {
            if let Some(lease) = selected_lease(app) {
                let holder = app.holder_named(&lease.holder).cloned();
                app.dialog = Some(Dialog::Lease(Box::new((lease, holder))));
            }
        }
        List::Workers => {
            let line = app.worker_selection().key().and_then(|name| app.worker_named(name)).cloned();
            app.dialog = line.map(|l| Dialog::Worker(Box::new(l)));
        }
        List::Sessions => {
            let pid = app.session_selection().key();
            let session = app.sessions().into_iter().find(|s| Some(&s.pid) == pid).cloned();
            app.dialog = session.map(|s| Dialog::Session(Box::new(s)));
        }
        List::Tape => {}
        List::Events => app.dialog = app.event_selection().key().map(|seq| Dialog::Event(*seq)),
    }
    Vec::new()
}

/// To the screen Leases, narrowed to one holder.
pub(super) fn show_holder(app: &mut App, name: String) {
    app.only_holder = Some(name);
    app.screen = Screen::Leases;
    app.lists.leases.clear();
    follow(app);
}

fn back(app: &mut App) {
    let list = app.list();
    if !app.lever(list).filter().is_empty() {
        refilter(app, String::clear);
    } else if (app.screen == Screen::Backlog && app.jobs.take().is_some())
        || (app.screen == Screen::Leases && app.only_holder.take().is_some())
    {
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
    app.jobs = None;
    app.lists = super::lists::Lists::default();
    follow(app);
}

pub(super) fn selected_lease(app: &App) -> Option<Lease> {
    let key = app.lease_selection().key()?;
    app.leases().into_iter().find(|l| LeaseKey::is(key, l)).cloned()
}

pub(super) fn notice(app: &mut App, text: impl Into<String>, now: Now) {
    app.notice = Some((text.into(), now.mono));
}
