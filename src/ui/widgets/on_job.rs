//! The dialog of retry, give up and run now: the job as the server told, the effect, the statement, the question.

use super::details::moment;
use super::dialog::{Rows, fencing_role, field, keys, wrapped};
use crate::app::dialog::JobView;
use crate::app::on_job::{OnJob, OnJobPhase, key_of};
use crate::config::keys::Action;
use crate::model::{Fencing, JobAction, JobFacts, JobState};
use crate::text::{fit, width};
use crate::ui::paint::{self, Piece};
use crate::ui::screens::jobs;
use crate::ui::{Role, Ui};

/// `Give up job 7`.
pub(super) fn title(on: &OnJob) -> String {
    let verb = match on.offer.action {
        JobAction::Retry => "Retry job",
        JobAction::GiveUp => "Give up job",
        JobAction::RunNow => "Run job now:",
    };
    format!("{verb} {}", on.id)
}

/// The rows, at most `room` of them: of the statement as much as fits, of the question everything.
pub(super) fn rows(ui: Ui<'_>, on: &OnJob, cells: usize, room: usize) -> Rows {
    let text = ui.style(Role::Text);
    let mut rows =
        vec![field(ui, "ledger", vec![(format!("{}  {}", on.facts.name, on.facts.relation), text)])];
    if let Some(job) = &on.job {
        facts(ui, &mut rows, job, cells);
    }
    let tail = tail(ui, on, cells);
    let indented = |rows: &mut Rows, name: &str, say: &str, role: Role| {
        let mut lines = Rows::new();
        wrapped(ui, &mut lines, say, role, cells.saturating_sub(11));
        for (i, line) in lines.into_iter().enumerate() {
            rows.push(field(ui, if i == 0 { name } else { "" }, line));
        }
    };
    if on.offer.refusal.is_none() {
        indented(&mut rows, "effect", &on.offer.effect, Role::Text);
    }
    // where nothing is fenced, a holder of before may end the new run
    if on.offer.action == JobAction::Retry && on.facts.fencing == Fencing::None {
        let verdict = on.facts.fencing.verdict();
        indented(&mut rows, "fencing", verdict, fencing_role(verdict));
    }
    let left = room.saturating_sub(rows.len() + tail.len() + 1);
    if left > 0 && on.job.is_some() {
        let mut sql: Vec<String> = paint::wrap(&on.offer.sql, cells.saturating_sub(2));
        rows.push(vec![("what runs, if the job still is as shown here:".to_owned(), ui.style(Role::Dim))]);
        if sql.len() > left {
            sql.truncate(left.saturating_sub(1));
            sql.push("…".to_owned());
        }
        rows.extend(sql.into_iter().map(|l| vec![(format!("  {l}"), ui.style(Role::Accent))]));
    }
    // on a small screen facts at the end give way; the question never does
    rows.truncate(room.saturating_sub(tail.len()));
    rows.extend(tail);
    rows
}

fn facts(ui: Ui<'_>, rows: &mut Rows, job: &JobFacts, cells: usize) {
    let text = ui.style(Role::Text);
    let cut = |s: &str| fit(s, width(s).min(cells.saturating_sub(12)));
    // even over a frozen picture the question is about now
    let now = ui.app.live_server_now(ui.now);
    rows.push(field(ui, "job", vec![(cut(&format!("{}  {}", job.row.id, job.row.job_type)), text)]));
    let in_table = (format!("   in the table: {}", job.status), ui.style(Role::Dim));
    rows.push(field(ui, "state", vec![jobs::state(ui, &job.row, false), in_table]));
    rows.push(field(ui, "attempts", vec![(jobs::attempts(&job.row), text)]));
    let waits = matches!(job.row.state, Some(JobState::Ready | JobState::Scheduled));
    match (waits, job.run_at, job.finished) {
        (true, Some(at), _) => rows.push(field(ui, "due", moment(ui, at, now))),
        (true, None, _) => {
            rows.push(field(ui, "due", vec![("never, or always: the time is infinite".to_owned(), text)]));
        }
        (false, _, Some(at)) => rows.push(field(ui, "ended", moment(ui, at, now))),
        _ => {}
    }
    if let Some(error) = &job.row.error {
        rows.push(field(ui, "error", vec![(cut(error), ui.style(Role::Warn))]));
    }
}

fn tail(ui: Ui<'_>, on: &OnJob, cells: usize) -> Rows {
    let text = ui.style(Role::Text);
    let mut rows: Rows = vec![Vec::new()];
    match on.phase {
        OnJobPhase::Looking => {
            rows.push(vec![("asking the server about it, nothing is changed …".to_owned(), text)]);
            rows.push(keys(ui, &[("Esc", "back")]));
        }
        OnJobPhase::Asking => {
            let what = match on.offer.action {
                JobAction::Retry => "retry it",
                JobAction::GiveUp => "give it up",
                JobAction::RunNow => "run it now",
            };
            rows.push(keys(ui, &[("Enter", what), ("Esc", "leave it")]));
        }
        OnJobPhase::Sent => {
            rows.push(vec![("sent, waiting for the server …".to_owned(), text)]);
            rows.push(keys(ui, &[("Esc", "close")]));
        }
        OnJobPhase::Over(done) => {
            let (mark, role) = if done { ("✔", Role::Ok) } else { ("▲", Role::Warn) };
            wrapped(ui, &mut rows, &format!("{mark} {}", on.said), role, cells);
            rows.push(keys(ui, &[("Esc", "back")]));
        }
    }
    rows
}

/// The keys under one job: those that its state takes, and the payload.
pub(super) fn keys_of(ui: Ui<'_>, view: &JobView, hint: &str) -> Vec<Piece> {
    let facts = view.detail.as_ref().and_then(|d| d.found.value()).and_then(Option::as_ref);
    let state = facts.and_then(|f| f.row.state);
    let key = |action| ui.app.keys().key_text(action);
    let mut list: Vec<(String, &str)> = vec![(key(Action::Payload), hint)];
    if ui.app.read_only().is_none() {
        let fit = JobAction::ALL.into_iter().filter(|a| a.takes(state));
        list.extend(fit.map(|a| (key(key_of(a)), a.word())));
    }
    list.extend([("j k".to_owned(), "scroll"), ("Esc".to_owned(), "back")]);
    let bound: Vec<(&str, &str)> =
        list.iter().filter(|(key, _)| !key.is_empty()).map(|(key, word)| (key.as_str(), *word)).collect();
    keys(ui, &bound)
}
