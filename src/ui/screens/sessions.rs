//! Other sessions of the server: those that hold the queue up, or may.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::lists::List;
use crate::model::{Session, SessionMark};
use crate::text::{age, count, fit, percent};
use crate::ui::paint::{self, Piece};
use crate::ui::widgets::grid::{self, Column, Grid, filter_title, fixed, growing};
use crate::ui::widgets::reading::show;
use crate::ui::{Role, Ui};

const COLUMNS: [Column; 8] = [
    fixed("pid", 8, true, 0),
    fixed("why", 18, false, 0),
    fixed("transaction", 12, true, 1),
    growing("application", 12, 30, 0),
    growing("state", 12, 20, 2),
    growing("user", 8, 16, 4),
    growing("wait", 12, 24, 5),
    growing("query", 16, 400, 6),
];

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let head = Rect { height: 4.min(area.height), ..area };
    server(ui, buf, head);
    let rest = Rect { y: head.bottom(), height: area.height - head.height, ..area };
    let list = ui.app.sessions();
    let inner = paint::airy_panel(ui, buf, rest, &title(ui, list.len()), Role::Focus);
    let empty = match ui.app.sample().map(|s| &s.sessions) {
        None => ("nothing is known yet".to_owned(), Role::Unknown),
        Some(r) => match (r.value(), r.trouble()) {
            (None, Some(why)) => (format!("— {why}"), Role::Unknown),
            _ => ("no long transaction, no listener, nobody that does not read".to_owned(), Role::Dim),
        },
    };
    let selection = ui.app.session_selection();
    let grid = Grid { list: List::Sessions, columns: &COLUMNS, selection, len: list.len(), empty };
    grid.draw(ui, buf, inner, |i, w| list.get(i).map_or_else(Vec::new, |s| row(ui, s, w)));
}

/// What concerns the server as a whole.
fn server(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let title = [("Server".to_owned(), ui.style(Role::Title))];
    let inner = paint::airy_panel(ui, buf, area, &title, Role::Border);
    let Some(s) = ui.app.sample() else {
        paint::text(buf, inner.x, inner.y, inner.width, "— nothing is known yet", ui.style(Role::Unknown));
        return;
    };
    let now = ui.app.server_now(ui.now);
    let stale = ui.app.is_stale(ui.now);
    let dim = ui.style(Role::Dim);
    let used = show(&s.connections, now, stale, |(used, most)| format!("{used} of {most}"));
    let full = s.connections.value().is_some_and(|(used, most)| used * 10 >= most * 9) && !stale;
    let usage = show(&s.vitals.queue_usage, now, stale, |u| percent(*u));
    let mut first = vec![
        ("connections ".to_owned(), dim),
        (used.value, ui.style(if full { Role::Critical } else { used.role })),
        ("   notification queue ".to_owned(), dim),
        (usage.value, ui.style(usage.role)),
    ];
    if let Some(note) = used.note.or(usage.note) {
        first.push((format!("   {note}"), ui.style(Role::Unknown)));
    }
    let lock = show(&s.notify_lock, now, stale, |l| match (l.holder, l.waiters) {
        (None, 0) => "free".to_owned(),
        (None, n) => format!("{} wait, held for a moment at a time", count(n)),
        (Some(pid), 0) => format!("held by pid {pid}, nobody waits"),
        (Some(pid), 1) => format!("held by pid {pid}, 1 session waits to commit"),
        (Some(pid), n) => format!("held by pid {pid}, {} sessions wait to commit", count(n)),
    });
    let waits = s.notify_lock.current().is_some_and(|l| l.waiters > 0) && !stale;
    let mut second = vec![
        ("NOTIFY commit lock ".to_owned(), dim),
        (lock.value, ui.style(if waits { Role::Warn } else { lock.role })),
    ];
    if let Some(note) = lock.note {
        second.push((format!("   {note}"), ui.style(Role::Unknown)));
    }
    for (i, pieces) in [first, second].iter().enumerate().take(usize::from(inner.height)) {
        paint::line(buf, inner.x, inner.y + i as u16, inner.width, pieces);
    }
}

fn title(ui: Ui<'_>, n: usize) -> Vec<Piece> {
    let mut pieces = vec![("Sessions".to_owned(), ui.style(Role::Title))];
    pieces.extend(filter_title(ui, List::Sessions));
    let Some(s) = ui.app.sample() else { return pieces };
    let now = ui.app.server_now(ui.now);
    if let Some(all) = s.sessions.value() {
        let long = all.iter().filter(|s| s.marks.contains(&SessionMark::LongTransaction)).count();
        pieces.push((format!(" · {n} listed"), ui.style(Role::Dim)));
        if long > 0 {
            let limit = age(ui.app.setup().thresholds.long_transaction_s);
            let many = if long == 1 { "transaction" } else { "transactions" };
            pieces.push((format!(" · {long} {many} over {limit}"), ui.style(Role::Warn)));
        }
    }
    if let Some(note) = show(&s.sessions, now, ui.app.is_stale(ui.now), |_| String::new()).note {
        pieces.push((format!(" · {note}"), ui.style(Role::Warn)));
    }
    pieces
}

/// Why a session is listed, in words.
pub(in crate::ui) fn why(session: &Session) -> (&'static str, Role) {
    let has = |m| session.marks.contains(&m);
    if has(SessionMark::NotReading) {
        ("✖ does not read", Role::Critical)
    } else if has(SessionMark::LongTransaction) && has(SessionMark::ProbableListener) {
        ("✖ LISTEN, long tx", Role::Critical)
    } else if has(SessionMark::LongTransaction) {
        ("▲ long transaction", Role::Warn)
    } else {
        ("● listens, likely", Role::Dim)
    }
}

fn row(ui: Ui<'_>, s: &Session, w: &[usize]) -> Vec<Vec<Piece>> {
    let app = ui.app;
    let faded = app.is_stale(ui.now) || app.sample().is_some_and(|s| !s.sessions.is_current());
    let role = if faded { Role::Dim } else { Role::Text };
    let (why, why_role) = why(s);
    let hidden = |t: Option<&String>| t.map_or("—".to_owned(), Clone::clone);
    let lasted = s.transaction_age.map_or_else(|| "none".to_owned(), age);
    vec![
        grid::right(ui, &s.pid.to_string(), w[0], role),
        vec![(why.to_owned(), ui.style(if faded { Role::Dim } else { why_role }))],
        grid::right(ui, &lasted, w[2], role),
        grid::text(ui, &s.application, w[3], role),
        grid::text(ui, &hidden(s.state.as_ref()), w[4], role),
        grid::text(ui, &s.user, w[5], role),
        grid::text(ui, &s.wait.clone().unwrap_or_else(|| "none".to_owned()), w[6], role),
        vec![(fit(&hidden(s.query.as_ref()), w[7]), ui.style(Role::Dim))],
    ]
}
