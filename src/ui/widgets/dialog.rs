//! What lies over a screen.

use chrono::{DateTime, Utc};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::lease::{expiry, heartbeat, seconds};
use super::{alerts, details, on_job, plan, release, session};
use crate::app::Screen;
use crate::app::alerts::ALERTS;
use crate::app::dialog::{Bulk, BulkPhase, Dialog, FAULT_KEYS};
use crate::app::events::leases;
use crate::config::keys::Action;
use crate::model::{Ending, Fault, Holder, Lease};
use crate::text::{age, count, fit, width};
use crate::ui::paint::{self, Piece};
use crate::ui::screens::leases::attempts;
use crate::ui::{Role, Ui};

/// Rows of a dialog.
pub(super) type Rows = Vec<Vec<Piece>>;

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect, dialog: &Dialog) {
    // text is wrapped to what the widest dialog can hold
    let cells = usize::from(area.width.saturating_sub(6)).min(84);
    let (title, rows, role) = match dialog {
        Dialog::Help { top } => return help(ui, buf, area, *top),
        Dialog::Palette(palette) => return super::palette::draw(ui, buf, area, palette),
        Dialog::Lease(shown) => {
            let (lease, holder) = shown.as_ref();
            ("Lease".to_owned(), lease_rows(ui, lease, holder.as_ref(), cells), Role::Focus)
        }
        Dialog::Worker(line) => ("Worker".to_owned(), details::worker(ui, line, cells), Role::Focus),
        Dialog::Session(s) => ("Session".to_owned(), session::rows(ui, s, cells), Role::Focus),
        Dialog::Plan(view) => {
            let room = usize::from(area.height.saturating_sub(2));
            (format!("Plan of a claim · {}", view.ledger), plan::rows(ui, view, cells, room), Role::Focus)
        }
        Dialog::End(e) => {
            let room = usize::from(area.height.saturating_sub(2));
            let what = match e.how {
                Ending::Cancel => "Cancel what it runs",
                Ending::Terminate => "Terminate the session",
            };
            (format!("{what}: pid {}", e.session.pid), session::end_rows(ui, e, cells, room), Role::Warn)
        }
        Dialog::Job(view) => {
            let room = usize::from(area.height.saturating_sub(2));
            (format!("Job {}", view.id), details::job(ui, view, cells, room), Role::Focus)
        }
        Dialog::Event(seq) => ("Event".to_owned(), event_rows(ui, *seq, cells), Role::Focus),
        Dialog::Release(r) => {
            let room = usize::from(area.height.saturating_sub(2));
            (format!("Release job {}", r.lease.id), release::rows(ui, r, cells, room), Role::Warn)
        }
        Dialog::OnJob(on) => {
            let room = usize::from(area.height.saturating_sub(2));
            (on_job::title(on), on_job::rows(ui, on, cells, room), Role::Warn)
        }
        Dialog::Bulk(b) => {
            let which = if b.holders.is_some() {
                "Release expired leases of these holders"
            } else {
                "Release all expired leases"
            };
            (which.to_owned(), bulk_rows(ui, b, cells), Role::Warn)
        }
        Dialog::Ask(ask) => {
            let mut rows = text_rows(ui, &ask.lines, cells);
            rows.push(Vec::new());
            rows.push(keys(ui, &[("Enter", "yes"), ("Esc", "no")]));
            (ask.title.clone(), rows, Role::Warn)
        }
        Dialog::Alerts { at } => {
            let room = usize::from(area.height.saturating_sub(2));
            let of = ui.app.ledger().map(|l| format!(" of {}", l.name)).unwrap_or_default();
            (format!("Alerts{of}"), alerts::list(ui, *at, cells, room), Role::Focus)
        }
        Dialog::Runbook { alert, top, .. } => {
            let room = usize::from(area.height.saturating_sub(2));
            let rows = ALERTS.get(*alert).map(|a| alerts::runbook(ui, a, *top, cells, room));
            (alerts::title(*alert), rows.unwrap_or_default(), Role::Focus)
        }
        Dialog::Faults { list, at } => (
            "Break something".to_owned(),
            fault_rows(ui, list, *at, cells, usize::from(area.height.saturating_sub(2))),
            Role::Warn,
        ),
        Dialog::Notice { title, lines } => {
            let mut rows = text_rows(ui, lines, cells);
            rows.push(Vec::new());
            rows.push(keys(ui, &[("Esc", "back")]));
            (title.clone(), rows, Role::Focus)
        }
    };
    popup(ui, buf, area, &title, &rows, role);
}

/// A frame in the middle with these rows in it.
pub(super) fn popup(ui: Ui<'_>, buf: &mut Buffer, area: Rect, title: &str, rows: &Rows, role: Role) {
    let widest =
        rows.iter().map(|r| paint::width_of(r)).max().unwrap_or(0).max(crate::text::width(title) + 2);
    let width = (widest as u16).saturating_add(4).clamp(24, area.width.saturating_sub(2).max(24));
    let height = (rows.len() as u16).saturating_add(2).min(area.height);
    let at = Rect::new(
        area.x + area.width.saturating_sub(width) / 2,
        area.y + area.height.saturating_sub(height) / 2,
        width.min(area.width),
        height,
    );
    paint::clear(buf, at);
    let inner = paint::panel(ui, buf, at, &[(title.to_owned(), ui.style(Role::Title))], role);
    for (i, row) in rows.iter().take(usize::from(inner.height)).enumerate() {
        paint::line(buf, inner.x + 1, inner.y + i as u16, inner.width.saturating_sub(2), row);
    }
}

/// `Enter yes   Esc no`.
pub(in crate::ui) fn keys(ui: Ui<'_>, list: &[(&str, &str)]) -> Vec<Piece> {
    let mut row = Vec::new();
    for (key, word) in list {
        row.push(((*key).to_owned(), ui.style(Role::Key)));
        row.push((format!(" {word}   "), ui.style(Role::Dim)));
    }
    row
}

/// `name       value`, the value wrapped with a hanging indent.
pub(super) fn field(ui: Ui<'_>, name: &str, value: Vec<Piece>) -> Vec<Piece> {
    let mut row = vec![(format!("{} ", fit(name, 10)), ui.style(Role::Dim))];
    row.extend(value);
    row
}

pub(super) fn wrapped(ui: Ui<'_>, rows: &mut Rows, text: &str, role: Role, cells: usize) {
    rows.extend(paint::wrap(text, cells).into_iter().map(|l| vec![(l, ui.style(role))]));
}

fn text_rows(ui: Ui<'_>, lines: &[String], cells: usize) -> Rows {
    let mut rows = Rows::new();
    for l in lines {
        wrapped(ui, &mut rows, l, Role::Text, cells);
    }
    rows
}

/// What is known of a lease and its holder at server time `now`.
pub(super) fn lease_facts(
    ui: Ui<'_>,
    lease: &Lease,
    holder: Option<&Holder>,
    now: DateTime<Utc>,
    cells: usize,
) -> Rows {
    let text = ui.style(Role::Text);
    let dim = ui.style(Role::Dim);
    let cut = |s: &str| fit(s, crate::text::width(s).min(cells.saturating_sub(12)));
    let since = age(seconds(lease.seen_since, now));
    let held = if lease.held_exact { since } else { format!("≥{since}, since before it was watched") };
    let mut until = expiry(ui, lease.expires, now);
    if let Some(at) = lease.expires {
        until.push((format!("  at {}", ui.app.clock(at)), dim));
    }
    let mut process = vec![heartbeat(ui, holder.and_then(|h| h.heartbeat), now)];
    let backend = holder
        .and_then(|h| h.backend)
        .map_or_else(|| "backend not known".to_owned(), |pid| format!("backend pid {pid}"));
    process.push((format!("  {backend}"), dim));
    vec![
        field(
            ui,
            "job",
            vec![
                (cut(&format!("{}  {}", lease.id, lease.job_type)), text),
                (format!("  attempt {}", attempts(lease)), dim),
            ],
        ),
        field(ui, "holder", vec![(cut(&lease.holder), text)]),
        field(ui, "heartbeat", process),
        field(ui, "expiry", until),
        field(ui, "held", vec![(held, text)]),
        field(ui, "token", vec![(cut(&lease.token), dim)]),
    ]
}

fn lease_rows(ui: Ui<'_>, lease: &Lease, holder: Option<&Holder>, cells: usize) -> Rows {
    let mut rows = lease_facts(ui, lease, holder, ui.app.server_now(ui.now), cells);
    rows.push(Vec::new());
    let key = |action| ui.app.keys().key_text(action);
    let (release, copy) = (key(Action::Release), key(Action::Copy));
    let list = [(release.as_str(), "release"), (copy.as_str(), "copy the id"), ("Esc", "back")];
    let bound: Vec<(&str, &str)> = list.into_iter().filter(|(key, _)| !key.is_empty()).collect();
    rows.push(keys(ui, &bound));
    rows
}

fn event_rows(ui: Ui<'_>, seq: u64, cells: usize) -> Rows {
    let log = &ui.app.world().log;
    let Some(line) = log.row_of(seq).and_then(|row| log.get(row)) else {
        return vec![vec![("it has left the log".to_owned(), ui.style(Role::Dim))]];
    };
    let (symbol, role) = crate::ui::screens::events::look(line.tone);
    let mut rows = vec![vec![
        (format!("{symbol} "), ui.style(role)),
        (ui.app.clock(line.wall), ui.style(Role::Text)),
        (
            if line.times > 1 { format!("  the last of {}", count(line.times)) } else { String::new() },
            ui.style(Role::Dim),
        ),
    ]];
    rows.push(Vec::new());
    wrapped(ui, &mut rows, &line.text, Role::Text, cells);
    rows.push(Vec::new());
    rows.push(keys(ui, &[("Esc", "back")]));
    rows
}

fn bulk_rows(ui: Ui<'_>, b: &Bulk, cells: usize) -> Rows {
    let mut rows = Rows::new();
    let text = ui.style(Role::Text);
    rows.push(field(ui, "ledger", vec![(b.ledger.clone(), text)]));
    let who = b.holders.as_ref().map_or_else(|| "every holder".to_owned(), |h| holders(h));
    let mut named = Rows::new();
    wrapped(ui, &mut named, &who, Role::Text, cells.saturating_sub(11));
    for (i, row) in named.into_iter().take(4).enumerate() {
        rows.push(field(ui, if i == 0 { "holders" } else { "" }, row));
    }
    rows.push(Vec::new());
    match &b.phase {
        BulkPhase::Counting => {
            rows.push(vec![("counting, nothing is changed …".to_owned(), text)]);
            rows.push(Vec::new());
            rows.push(keys(ui, &[("Esc", "back")]));
        }
        BulkPhase::Asking { count: 0, .. } => {
            rows.push(vec![("No lease is expired now: there is nothing to release.".to_owned(), text)]);
            rows.push(Vec::new());
            rows.push(keys(ui, &[("Esc", "back")]));
        }
        BulkPhase::Asking { count: n, capped } => {
            let mark = if *capped { "≥" } else { "" };
            let say = format!("{mark}{} expired {} would be released.", count(*n), leases(*n));
            rows.push(vec![(say, ui.style(Role::Warn))]);
            wrapped(
                ui,
                &mut rows,
                "Their jobs become ready again, the earliest expiry first, in batches of 100. Leases that are renewed or \
                 taken meanwhile stay as they are.",
                Role::Text,
                cells,
            );
            wrapped(ui, &mut rows, b.verdict, fencing_role(b.verdict), cells);
            rows.push(Vec::new());
            rows.push(keys(ui, &[("Enter", "release them"), ("Esc", "leave them")]));
        }
        BulkPhase::Running { total, batches, stopping } => {
            let say = format!("released {} so far, {} batches", count(*total), count(*batches));
            rows.push(vec![(say, text)]);
            rows.push(Vec::new());
            rows.push(if *stopping {
                keys(ui, &[("", "stopping after the batch in hand …"), ("Esc", "close")])
            } else {
                keys(ui, &[("Esc", "stop")])
            });
        }
        BulkPhase::Over { total, stopped } => {
            let end = if *stopped { ", stopped before the end" } else { "" };
            let say = format!("✔ released {} {}{end}", count(*total), leases(*total));
            rows.push(vec![(say, ui.style(Role::Ok))]);
            rows.push(Vec::new());
            rows.push(keys(ui, &[("Esc", "back")]));
        }
        BulkPhase::Refused(why) => {
            wrapped(ui, &mut rows, &format!("✖ not done: {why}"), Role::Critical, cells);
            rows.push(Vec::new());
            rows.push(keys(ui, &[("Esc", "back")]));
        }
    }
    rows
}

/// `only a, b and 3 more`.
fn holders(names: &[String]) -> String {
    let some: Vec<String> = names.iter().take(5).map(|n| fit(n, width(n).min(40))).collect();
    let more = match names.len().saturating_sub(some.len()) {
        0 => String::new(),
        n => format!(" and {} more", count(n as u64)),
    };
    format!("only {}{more}", some.join(", "))
}

/// A verdict that promises nothing is a warning.
pub(super) fn fencing_role(verdict: &str) -> Role {
    if verdict.starts_with("NOT") { Role::Critical } else { Role::Text }
}

fn fault_rows(ui: Ui<'_>, list: &[Fault], at: usize, cells: usize, room: usize) -> Rows {
    let mut rows = Rows::new();
    // The four rows below stay; of the list as many as fit, the marked one among them.
    let shown = room.saturating_sub(4).max(1);
    let first = (at + 1).saturating_sub(shown);
    for (i, (fault, key)) in list.iter().zip(FAULT_KEYS.chars()).enumerate().skip(first).take(shown) {
        let chosen = i == at;
        let style = if chosen { ui.style(Role::Selection) } else { ui.style(Role::Text) };
        rows.push(vec![
            (if chosen { "▶ ".to_owned() } else { "  ".to_owned() }, ui.style(Role::Accent)),
            (format!("{key} "), ui.style(Role::Key)),
            (fault.title().to_owned(), style),
        ]);
    }
    rows.push(Vec::new());
    // Only of the marked one: all of them would not fit into a small terminal. As wide as the widest, so
    // that the frame keeps still.
    let expects = |f: &Fault| format!("look for: {}", f.expect());
    let widest = list.iter().map(|f| width(&expects(f))).max().unwrap_or(0).min(cells);
    let look = list.get(at).map(expects).unwrap_or_default();
    rows.push(vec![(fit(&look, widest), ui.style(Role::Dim))]);
    rows.push(Vec::new());
    let last = FAULT_KEYS.chars().nth(list.len().saturating_sub(1)).unwrap_or('1');
    let range = if last > '9' { format!("1-9 a-{last}") } else { format!("1-{last}") };
    rows.push(keys(
        ui,
        &[(&range, "do that one at once"), ("Enter", "do the marked one"), ("Esc", "back")],
    ));
    rows
}

fn help(ui: Ui<'_>, buf: &mut Buffer, area: Rect, top: usize) {
    let mut rows = Rows::new();
    wrapped(ui, &mut rows, about(ui), Role::Dim, usize::from(area.width.saturating_sub(6)).min(72));
    rows.push(Vec::new());
    for b in ui.app.keys().iter().filter(|b| ui.app.offers(b.scope) && !b.keys.is_empty()) {
        rows.push(vec![
            (format!("{} ", fit(&b.keys_text(), 11)), ui.style(Role::Key)),
            (b.help.to_owned(), ui.style(Role::Text)),
        ]);
    }
    rows.push(Vec::new());
    for (mark, role, what) in [
        ("✔", Role::Ok, "as it should be"),
        ("▲", Role::Warn, "needs attention"),
        ("✖", Role::Critical, "broken, or past its end"),
        ("?", Role::Unknown, "not known; — in place of a number"),
        ("≥", Role::Text, "at least: the count stopped at its cap"),
        ("~", Role::Text, "an estimate"),
    ] {
        rows.push(vec![
            (format!("{} ", fit(mark, 11)), ui.style(role)),
            (what.to_owned(), ui.style(Role::Text)),
        ]);
    }
    let room = usize::from(area.height.saturating_sub(5));
    let top = top.min(rows.len().saturating_sub(room));
    // as wide as its widest line, whichever lines are in sight: it must not jump while it is scrolled
    let widest = rows.iter().map(|r| paint::width_of(r)).max().unwrap_or(0);
    let mut shown: Rows = rows.iter().skip(top).take(room).cloned().collect();
    shown.push(if rows.len() > room {
        keys(ui, &[("j k", "scroll"), ("Esc", "back")])
    } else {
        keys(ui, &[("Esc", "back")])
    });
    if let Some(last) = shown.last_mut() {
        last.push((" ".repeat(widest.saturating_sub(paint::width_of(last))), ui.style(Role::Text)));
    }
    let title = format!("Keys on the screen {}", ui.app.screen().title());
    popup(ui, buf, area, &title, &shown, Role::Focus);
}

/// What stands on a screen, and what Enter does there.
fn about(ui: Ui<'_>) -> &'static str {
    match ui.app.screen() {
        Screen::Overview => {
            "Is it draining, and if not, why: vital signs, backlog, flow, and who holds jobs. Enter shows the \
             leases of a holder."
        }
        Screen::Backlog if ui.app.jobs_view().is_some() => {
            "Jobs of one type, as the server had them when it was asked. Enter opens a job; its payload stays \
             hidden until a key asks for it."
        }
        Screen::Backlog => {
            "Jobs by type, read every 15 s among the first rows of each state only: ≥ marks a count that stopped \
             there. Change is what came in minus what went out, a second, since the reading before. Enter lists \
             the jobs of a type."
        }
        Screen::Leases => {
            "Every job that is held, earliest expiry first. Enter opens a lease, r releases it."
        }
        Screen::Workers => {
            "Workers that report, and holders of jobs that do not. Silent ones with expired leases lead. Enter \
             opens one."
        }
        Screen::Sessions => {
            "What holds the queue up, or may: who waits hangs below whom it waits for; long and idle \
             transactions, listeners, old snapshots, prepared transactions and slots. Enter opens one."
        }
        Screen::WakeUps => {
            "How work is announced and found. One commit is one wake-up, however many jobs it brings; jobs that \
             only the fallback scan found were not announced, or were due by time."
        }
        Screen::Events => "Everything that happened, newest first. Enter opens a line in full.",
    }
}
