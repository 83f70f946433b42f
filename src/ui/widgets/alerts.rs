//! The list of alerts, and a runbook.

use chrono::{DateTime, Utc};

use super::dialog::{Rows, keys};
use crate::app::alerts::runbook::{Block, Reader, Span};
use crate::app::alerts::{ALERTS, Alert, Look, Phase, State, Verdict};
use crate::app::health::Level;
use crate::text::{age, ago, fit, width};
use crate::ui::frame::symbol;
use crate::ui::paint::Piece;
use crate::ui::{Role, Ui};

/// Every alert with its state and its figure, the one `at` marked. The last row is the keys.
pub(super) fn list(ui: Ui<'_>, at: usize, cells: usize, room: usize) -> Rows {
    let Some(ledger) = ui.app.ledger() else {
        return vec![vec![("nothing was sampled yet".to_owned(), ui.style(Role::Dim))]];
    };
    let room = room.saturating_sub(2).max(1);
    let top = (at + 1).saturating_sub(room);
    let look = ui.app.look(ui.now);
    let all = ledger.alerts.all().enumerate().skip(top).take(room);
    let mut rows: Rows =
        all.map(|(i, (alert, state))| line(ui, alert, state, look, i == at, cells)).collect();
    rows.push(Vec::new());
    rows.push(keys(ui, &[("Enter", "runbook"), ("j k", "choose"), ("Esc", "back")]));
    rows
}

fn line(
    ui: Ui<'_>,
    alert: &Alert,
    state: State,
    look: Option<Look<'_>>,
    chosen: bool,
    cells: usize,
) -> Vec<Piece> {
    let judged = look.map(|l| alert.judge(l));
    let since = |at: DateTime<Utc>| {
        look.map_or_else(String::new, |l| ago((l.sample.taken_at - at).as_seconds_f64() + l.age_s))
    };
    let unknown = match judged.as_ref().map(|j| &j.verdict) {
        None => Some("not read yet".to_owned()),
        Some(Verdict::Unknown(why)) => Some(why.clone()),
        Some(_) => None,
    };
    let (mark, role, word) = match state.phase() {
        Phase::Firing { since: at } => (symbol(alert.level), Role::of(alert.level), since(at)),
        Phase::Pending { .. } => {
            let (seen, of) = (state.pending_s().unwrap_or(0.0), look.map_or(0.0, |l| alert.hold_s(l)));
            ("○", Role::Warn, format!("{} of {}", short(seen), short(of)))
        }
        Phase::Resolved { at } => ("✔", Role::Ok, since(at)),
        Phase::Ok if unknown.is_some() => ("?", Role::Unknown, String::new()),
        Phase::Ok => ("✔", Role::Ok, String::new()),
    };
    let state = match (state.phase(), &unknown) {
        (Phase::Ok, Some(_)) => "unknown",
        (phase, _) => phase.word(),
    };
    let loud = role != Role::Ok && role != Role::Unknown;
    // in a narrow terminal the figure says more than the time, and so does the reason that there is none
    let narrow = cells < 66 || (word.is_empty() && unknown.is_some());
    let figure = unknown
        .map(|why| format!("— {why}"))
        .unwrap_or_else(|| judged.map(|j| j.figure).unwrap_or_default());
    let title = ui.style(if chosen {
        Role::Selection
    } else if loud {
        role
    } else {
        Role::Text
    });
    let since = if narrow { String::new() } else { format!("{} ", fit(&word, 15)) };
    let left = cells.saturating_sub(4 + 25 + 10 + width(&since));
    vec![
        (if chosen { "▶ " } else { "  " }.to_owned(), ui.style(Role::Accent)),
        (format!("{mark} "), ui.style(role)),
        (fit(alert.title, 25), title),
        (format!(" {} ", fit(state, 8)), ui.style(role)),
        (since, ui.style(Role::Dim)),
        (fit(&figure, left), ui.style(if loud { Role::Text } else { Role::Dim })),
    ]
}

/// `12s`, `10m00s`.
fn short(seconds: f64) -> String {
    age(seconds.floor()).replace(".0s", "s")
}

/// A runbook with the evidence of what is shown. The last row is the keys.
pub(super) fn runbook(ui: Ui<'_>, alert: &Alert, top: usize, cells: usize, room: usize) -> Rows {
    let reader = ui.app.look(ui.now).map_or(Reader::Paper, Reader::Screen);
    let mut rows = vec![state_row(ui, alert)];
    for block in alert.read(reader, ui.app.keys()) {
        match block {
            // the frame has it
            Block::Title(_) => {}
            Block::Head(spans) => {
                rows.push(Vec::new());
                flow(ui, &mut rows, "", &spans, Role::Title, cells);
            }
            Block::Item(mark, spans) => flow(ui, &mut rows, &format!("{mark} "), &spans, Role::Text, cells),
            Block::Text(spans) => flow(ui, &mut rows, "", &spans, Role::Text, cells),
        }
    }
    let room = room.saturating_sub(2).max(1);
    let top = top.min(rows.len().saturating_sub(room));
    let widest = rows.iter().map(|r| crate::ui::paint::width_of(r)).max().unwrap_or(0);
    let mut shown: Rows = rows.into_iter().skip(top).take(room).collect();
    shown.push(Vec::new());
    let mut last = keys(ui, &[("j k", "scroll"), ("a key of these steps", "does it"), ("Esc", "back")]);
    // as wide as its widest line: it must not jump while it is scrolled
    let gap = widest.saturating_sub(crate::ui::paint::width_of(&last));
    last.push((" ".repeat(gap), ui.style(Role::Text)));
    shown.push(last);
    shown
}

/// Where the alert stands now, and its figure.
fn state_row(ui: Ui<'_>, alert: &Alert) -> Vec<Piece> {
    let place = Alert::find(alert.name).map_or(0, |(i, _)| i);
    let state = ui.app.ledger().and_then(|l| l.alerts.all().nth(place)).map(|(_, s)| s).unwrap_or_default();
    let judged = ui.app.look(ui.now).map(|l| alert.judge(l));
    let (text, role) = match (state.phase(), judged.map(|j| (j.verdict, j.figure))) {
        (_, None) => ("not read yet".to_owned(), Role::Unknown),
        (phase, Some((Verdict::Unknown(why), _))) => {
            let word = if phase == Phase::Ok { "unknown" } else { phase.word() };
            (format!("{word}, cannot be judged: {why}"), Role::Unknown)
        }
        (phase, Some((_, figure))) => {
            let level = if phase.is_firing() { alert.level } else { Level::Ok };
            (format!("{}: {figure}", phase.word()), Role::of(level))
        }
    };
    let ledger = ui.app.ledger().map(|l| format!("{} · ", l.name)).unwrap_or_default();
    vec![(format!("{ledger}{} · ", alert.name), ui.style(Role::Dim)), (text, ui.style(role))]
}

/// Words of several styles, wrapped, with a hanging indent as wide as the mark.
fn flow(ui: Ui<'_>, rows: &mut Rows, mark: &str, spans: &[Span], base: Role, cells: usize) {
    let indent = width(mark);
    let mut row: Vec<Piece> = vec![(mark.to_owned(), ui.style(Role::Dim))];
    let mut used = indent;
    for span in spans {
        let (text, role) = match span {
            Span::Text(t) => (t, base),
            Span::Bold(t) => (t, Role::Title),
            Span::Code(t) => (t, Role::Accent),
            Span::Evidence(t) if t.starts_with('—') => (t, Role::Unknown),
            Span::Evidence(t) => (t, Role::Accent),
            Span::Key(t) => (t, Role::Key),
        };
        for word in text.split_inclusive(' ') {
            let bare = width(word.trim_end());
            if used + bare > cells && used > indent {
                trim(&mut row);
                rows.push(std::mem::replace(&mut row, vec![(" ".repeat(indent), ui.style(Role::Dim))]));
                used = indent;
            }
            // one that is longer than a row is cut: nothing here may be wider than the screen
            let word = if bare > cells.saturating_sub(used) {
                fit(word, cells.saturating_sub(used))
            } else {
                word.to_owned()
            };
            used += width(&word);
            row.push((word, ui.style(role)));
        }
    }
    trim(&mut row);
    rows.push(row);
}

/// A space at the end of a row would make it wider than it looks.
fn trim(row: &mut [Piece]) {
    if let Some((text, _)) = row.last_mut() {
        text.truncate(text.trim_end().len());
    }
}

/// The title of the frame of a runbook.
pub(super) fn title(alert: usize) -> String {
    ALERTS.get(alert).map_or_else(String::new, |a| format!("Runbook: {}", a.title))
}
