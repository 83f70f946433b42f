//! Looking at the jobs of one type, and at one job.

use std::sync::Arc;
use std::time::Duration;

use super::dialog::{Dialog, JobView, PlanView};
use super::lists::{List, arrange};
use super::seen;
use super::update::notice;
use super::{App, LinkState};
use crate::model::{Event, Intent, JobList, Now};

/// The jobs of one type, as they were when the server was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct JobsView {
    /// Profile name of the ledger.
    pub ledger: String,
    /// The type's key; `None`: all types.
    pub key: Option<String>,
    /// The type's text.
    pub title: String,
    /// The answer and when it came (monotonic).
    pub list: Option<(Arc<JobList>, Duration)>,
}

impl JobsView {
    pub(super) fn intent(&self) -> Intent {
        Intent::Jobs { ledger: self.ledger.clone(), key: self.key.clone() }
    }
}

/// Opens the jobs of the selected type.
pub(super) fn open_type(app: &mut App, now: Now) -> Vec<Intent> {
    let Some(ledger) = app.ledger().map(|l| l.name.clone()) else { return Vec::new() };
    let Some(key) = app.lists.types.selection().key().cloned() else {
        notice(app, "no type is selected", now);
        return Vec::new();
    };
    let title = app.types.iter().find(|t| t.key == key).map(|t| t.job_type.clone()).unwrap_or_default();
    if !is_reachable(app, now) {
        return Vec::new();
    }
    let view = JobsView { ledger, key: Some(key), title, list: None };
    let intent = view.intent();
    app.jobs = Some(view);
    app.lists.jobs.clear();
    arrange(app, List::Jobs);
    vec![intent]
}

/// Opens the selected job, with or without its payload.
pub(super) fn open_job(app: &mut App, payload: bool, now: Now) -> Vec<Intent> {
    let Some(id) = app.lists.jobs.selection().key().cloned() else { return Vec::new() };
    let Some(ledger) = app.jobs.as_ref().map(|j| j.ledger.clone()) else { return Vec::new() };
    if !is_reachable(app, now) {
        return Vec::new();
    }
    let payload = payload || app.setup.show_payloads;
    let intent = Intent::Job { ledger: ledger.clone(), id: id.clone(), payload };
    let seen = app.past.of(&ledger).and_then(|history| seen::of_job(history, &id));
    let view = JobView { ledger, id, payload, detail: None, seen, top: 0 };
    app.dialog = Some(Dialog::Job(Box::new(view)));
    vec![intent]
}

/// Asks how the server would claim from the ledger that is shown.
pub(super) fn open_plan(app: &mut App, now: Now) -> Vec<Intent> {
    let Some(ledger) = app.ledger().map(|l| l.name.clone()) else { return Vec::new() };
    if !is_reachable(app, now) {
        return Vec::new();
    }
    app.dialog = Some(Dialog::Plan(Box::new(PlanView { ledger: ledger.clone(), check: None, top: 0 })));
    vec![Intent::Plan { ledger }]
}

/// A look asks about now, whatever the picture shows: without a server it would never be answered.
pub(super) fn is_reachable(app: &mut App, now: Now) -> bool {
    let why = match &app.world.link {
        LinkState::Up { .. } => return true,
        LinkState::Down { loss, .. } => format!("this cannot be read: not connected: {loss}"),
        LinkState::Connecting => "this cannot be read: not connected yet".to_owned(),
    };
    notice(app, why, now);
    false
}

/// Takes in what the slow lane answered; what comes back asks it again.
pub(super) fn on_answer(app: &mut App, event: Event, now: Now) -> Vec<Intent> {
    match event {
        Event::Backlog(backlog) => {
            let name = backlog.ledger.clone();
            app.past.backlog(&backlog, now);
            let ledger = app.world.ledger_mut(&name);
            let before = ledger.backlog.replace((Arc::new(*backlog), now.mono));
            ledger.backlog_before = before.map(|(b, _)| b);
            arrange(app, List::Types);
            arrange(app, List::Sessions);
            // the list that somebody looks at keeps the pace of the slow lane
            let open = app.jobs.as_ref().filter(|j| j.ledger == name && app.frozen.is_none());
            return open.map(JobsView::intent).into_iter().collect();
        }
        Event::Jobs(list) => {
            if let Some(view) = &mut app.jobs
                && view.ledger == list.ledger
                && view.key == list.key
            {
                view.list = Some((Arc::new(*list), now.mono));
                arrange(app, List::Jobs);
            }
        }
        Event::Job(detail) => match &mut app.dialog {
            Some(Dialog::Job(view)) if view.ledger == detail.ledger && view.id == detail.id => {
                view.detail = Some(*detail);
            }
            Some(Dialog::OnJob(on)) => on.looked(*detail),
            _ => {}
        },
        Event::Plan(check) => {
            if let Some(Dialog::Plan(view)) = &mut app.dialog
                && view.ledger == check.ledger
            {
                view.check = Some(*check);
            }
        }
        _ => {}
    }
    Vec::new()
}
