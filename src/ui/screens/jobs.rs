//! The jobs of one type: running, ready, scheduled, failed. Never a payload.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::lists::List;
use crate::model::{JobRow, JobState};
use crate::text::{ago, count, fit, fit_middle, width};
use crate::ui::paint::{self, Piece};
use crate::ui::widgets::grid::{self, Column, Grid, filter_title, fixed, growing};
use crate::ui::widgets::lease::{seconds, whole};
use crate::ui::{Role, Ui};

const COLUMNS: [Column; 6] = [
    growing("job", 10, 36, 0),
    fixed("state", 11, false, 0),
    fixed("due", 13, true, 0),
    fixed("attempts", 9, true, 1),
    growing("holder", 12, 32, 2),
    growing("error", 16, 400, 3),
];

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let Some(view) = ui.app.jobs_view() else { return };
    let list = ui.app.jobs();
    let name = if view.title.is_empty() { "(no type)" } else { &view.title };
    let dim = ui.style(Role::Dim);
    let mut title = vec![
        ("Jobs of ".to_owned(), ui.style(Role::Title)),
        (fit_middle(name, width(name).min(32)), ui.style(Role::Title)),
    ];
    title.extend(filter_title(ui, List::Jobs));
    let mut empty = ("asking the server …".to_owned(), Role::Dim);
    if let Some((answer, at)) = &view.list {
        let all = answer.jobs.value().map_or(0, Vec::len) as u64;
        title.push((format!(" · {}, at most {} of each state", count(all), answer.limit), dim));
        let old = ui.now.mono.saturating_sub(*at).as_secs_f64();
        title.push((format!(" · asked {}", ago(old)), dim));
        empty = match answer.jobs.trouble() {
            Some(why) => (format!("— {why}"), Role::Unknown),
            None => ("none of this type among the first of each state".to_owned(), Role::Dim),
        };
    }
    title.push((" · Esc back".to_owned(), dim));
    let inner = paint::airy_panel(ui, buf, area, &title, Role::Focus);
    let selection = ui.app.job_selection();
    let grid = Grid { list: List::Jobs, columns: &COLUMNS, selection, len: list.len(), empty };
    grid.draw(ui, buf, inner, |i, w| list.get(i).map_or_else(Vec::new, |job| row(ui, job, w)));
}

/// The mark and the colour of a state.
pub(in crate::ui) fn state(ui: Ui<'_>, job: &JobRow, is_expired: bool) -> Piece {
    let (mark, word, role) = match job.state {
        Some(JobState::Running) if is_expired => ("✖", "expired", Role::Critical),
        Some(JobState::Running) => ("▶", "running", Role::Ok),
        Some(JobState::Ready) => ("●", "ready", Role::Text),
        Some(JobState::Scheduled) => ("○", "scheduled", Role::Dim),
        Some(JobState::Failed) => ("✖", "failed", Role::Warn),
        Some(JobState::Done) => ("✔", "done", Role::Dim),
        None => ("?", "unknown", Role::Unknown),
    };
    (format!("{mark} {word}"), ui.style(role))
}

/// `2 of 5`, `2`, or `—` where the table does not count them.
pub(in crate::ui) fn attempts(job: &JobRow) -> String {
    match (job.attempts, job.max_attempts) {
        (Some(n), Some(max)) => format!("{n} of {max}"),
        (Some(n), None) => n.to_string(),
        _ => "—".to_owned(),
    }
}

fn row(ui: Ui<'_>, job: &JobRow, w: &[usize]) -> Vec<Vec<Piece>> {
    // a look asks about now, whatever the picture shows
    let now = ui.app.live_server_now(ui.now);
    let left = job.due.map(|due| seconds(now, due));
    let running = job.state == Some(JobState::Running);
    let due = match (job.state, left) {
        (Some(JobState::Failed | JobState::Done), _) => "—".to_owned(),
        (_, None) => "no end".to_owned(),
        (_, Some(s)) if s > 0.0 && running => format!("{} left", whole(s)),
        (_, Some(s)) if s > 0.0 => format!("in {}", whole(s)),
        (_, Some(s)) => ago(-s),
    };
    let holder = job.holder.as_deref().unwrap_or("");
    let error = job.error.as_deref().unwrap_or("");
    vec![
        grid::text(ui, &job.id, w[0], Role::Text),
        vec![state(ui, job, running && left.is_some_and(|s| s <= 0.0))],
        grid::right(ui, &due, w[2], Role::Text),
        grid::right(ui, &attempts(job), w[3], Role::Text),
        grid::text(ui, holder, w[4], Role::Text),
        vec![(fit(error, w[5]), ui.style(Role::Dim))],
    ]
}
