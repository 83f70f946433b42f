//! Moving about: the cursor, the order of a list, from screen to screen, into what is selected and back.

use super::alerts::Alert;
use super::dialog::Dialog;
use super::jobs::{open_job, open_type};
use super::lists::{List, arrange};
use super::update::notice;
use super::update::{follow, refilter, selected_lease};
use super::{App, LIST_CHROME, Screen};
use crate::model::{Intent, Now};

/// Puts the cursor on a row of the list, which is shown from `top` on and stays where it is.
pub(super) fn choose(app: &mut App, row: usize, top: usize) {
    let list = app.list();
    app.lists.lever_mut(list).choose(row, top);
    arrange(app, list);
}

pub(super) fn turn(app: &mut App, by: usize) {
    let at = Screen::ALL.iter().position(|s| *s == app.screen).unwrap_or(0);
    app.screen = Screen::ALL[(at + by) % Screen::ALL.len()];
}

pub(super) fn page(app: &App) -> isize {
    isize::try_from(app.size.1.saturating_sub(LIST_CHROME).max(1)).unwrap_or(1)
}

pub(super) fn step(app: &mut App, by: isize) {
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

pub(super) fn sort(app: &mut App, now: Now) {
    let list = app.list();
    app.lists.lever_mut(list).next_sort(list.columns().len());
    arrange(app, list);
    say_order(app, list, now);
}

pub(super) fn reverse(app: &mut App, now: Now) {
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

pub(super) fn open(app: &mut App, now: Now) -> Vec<Intent> {
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
            app.dialog = app.selected_session().map(|line| Dialog::Session(Box::new(line.clone())));
        }
        List::Tape => {}
        List::Events => {
            let log = &app.world().log;
            let seq = app.event_selection().key().copied();
            let line = seq.and_then(|seq| log.row_of(seq)).and_then(|row| log.get(row));
            let alert = line.and_then(|l| Alert::find(l.alert?));
            app.dialog = match alert {
                Some((alert, _)) => Some(Dialog::Runbook { alert, top: 0, listed: false }),
                None => seq.map(Dialog::Event),
            };
        }
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

pub(super) fn back(app: &mut App) {
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

pub(super) fn freeze(app: &mut App, now: Now) {
    if app.frozen.take().is_none() {
        app.frozen = Some(Box::new((app.world.clone(), now)));
    }
    follow(app);
}

pub(super) fn next_ledger(app: &mut App, now: Now) {
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
