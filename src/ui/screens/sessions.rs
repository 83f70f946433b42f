//! Other sessions of the server: those that hold the queue up, or may.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::lists::List;
use crate::app::sessions::{Held, SessionLine};
use crate::model::{NotifyLock, Pin, PinKind, Sample, Session, SessionMark, Trouble};
use crate::text::{age, bytes_count, count, fit, percent};
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
    let third = third(ui);
    let height = if third.is_some() { 5 } else { 4 };
    let head = Rect { height: height.min(area.height), ..area };
    server(ui, buf, head, third);
    let rest = Rect { y: head.bottom(), height: area.height - head.height, ..area };
    let list = ui.app.sessions();
    let inner = paint::airy_panel(ui, buf, rest, &title(ui, list.len()), Role::Focus);
    let empty = match ui.app.sample().map(|s| &s.sessions) {
        None => ("nothing is known yet".to_owned(), Role::Unknown),
        Some(r) => match (r.value(), r.trouble()) {
            (None, Some(why)) => (format!("— {why}"), Role::Unknown),
            _ => (nothing(ui.app.sample()), Role::Dim),
        },
    };
    let selection = ui.app.session_selection();
    let grid = Grid { list: List::Sessions, columns: &COLUMNS, selection, len: list.len(), empty };
    grid.draw(ui, buf, inner, |i, w| list.get(i).map_or_else(Vec::new, |s| row(ui, s, w)));
}

/// What concerns the server as a whole.
fn server(ui: Ui<'_>, buf: &mut Buffer, area: Rect, third: Option<Vec<Piece>>) {
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
    let left = s.vitals.queue_usage.current().and_then(|u| s.evidence.full_in(*u)).filter(|_| !stale);
    if let Some(left) = left {
        first.push((format!(", full in {}", age(left)), ui.style(Role::Warn)));
    }
    if let Some(note) = used.note.or(usage.note) {
        first.push((format!("   {note}"), ui.style(Role::Unknown)));
    }
    let lock = show(&s.notify_lock, now, stale, notify_lock);
    let waits = s.notify_lock.current().is_some_and(|l| l.waiters > 0) && !stale;
    let mut second = vec![
        ("NOTIFY commit lock ".to_owned(), dim),
        (lock.value, ui.style(if waits { Role::Warn } else { lock.role })),
    ];
    if let Some(note) = lock.note {
        second.push((format!("   {note}"), ui.style(Role::Unknown)));
    }
    for (i, pieces) in
        [Some(first), Some(second), third].iter().flatten().enumerate().take(usize::from(inner.height))
    {
        paint::line(buf, inner.x, inner.y + i as u16, inner.width, pieces);
    }
}

/// Who holds the lock, what that waits for itself, and who waits.
fn notify_lock(l: &NotifyLock) -> String {
    let longest = l.longest.map_or_else(String::new, |s| format!(", the longest {}", age(s)));
    let Some(pid) = l.holder else {
        return match l.waiters {
            0 => "free".to_owned(),
            n => format!("{} wait, held for a moment at a time", count(n)),
        };
    };
    let program = if l.application.is_empty() { String::new() } else { format!(" ({})", l.application) };
    let reason = match (&l.wait, l.hidden) {
        (Some(wait), _) => format!(", which waits for {wait}"),
        (None, true) => ", what it does is hidden".to_owned(),
        (None, false) => String::new(),
    };
    let behind = match l.waiters {
        0 => ", nobody waits".to_owned(),
        1 => format!(", 1 session waits to commit{longest}"),
        n => format!(", {} sessions wait to commit{longest}", count(n)),
    };
    format!("held by pid {pid}{program}{reason}{behind}")
}

/// What could not be seen, and what to ask for; otherwise what keeps dead rows, if that is old.
fn third(ui: Ui<'_>) -> Option<Vec<Piece>> {
    let dim = ui.style(Role::Dim);
    let hidden = ui.app.sample().and_then(|s| s.evidence.hidden.value()).filter(|h| h.sessions > 0);
    if let Some(h) = hidden {
        // short: at 60 columns the statement must still be whole
        return Some(vec![
            (format!("{} hidden · ", count(h.sessions)), ui.style(Role::Warn)),
            (h.grant(), ui.style(Role::Accent)),
        ]);
    }
    let backlog = ui.app.backlog()?;
    if let Some(why) = backlog.pins.trouble().filter(|why| **why != Trouble::NotYet) {
        return Some(vec![
            ("oldest snapshot ".to_owned(), dim),
            (format!("— {why}"), ui.style(Role::Unknown)),
        ]);
    }
    let line = ui.app.sessions().into_iter().find(|l| l.is_oldest)?;
    let pin = backlog.pins.value()?.first()?;
    let xids = count(pin.xids?.unsigned_abs());
    let lasted = pin.seconds.map_or_else(String::new, |s| format!(", {}", age(s)));
    let who = match line.session() {
        Some(s) => format!("pid {} ({})", s.pid, s.application),
        None => pin.name.clone(),
    };
    let old = format!(", {xids} transactions{lasted} old: dead rows stay");
    Some(vec![("oldest snapshot ".to_owned(), dim), (who, ui.style(Role::Warn)), (old, dim)])
}

/// What an empty list means; nothing where states are hidden.
fn nothing(sample: Option<&Sample>) -> String {
    match sample.and_then(|s| s.evidence.hidden.value()) {
        Some(h) if h.sessions > 0 => "nothing among what this role may see".to_owned(),
        _ => "no long transaction, no listener, nobody that waits or does not read".to_owned(),
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

/// Why a row is listed, in words.
pub(in crate::ui) fn why(line: &SessionLine) -> (String, Role) {
    let s = match &line.held {
        Held::Session(s) => s,
        Held::Pin(p) => return why_pin(p, line),
    };
    let has = |m| s.marks.contains(&m);
    let (text, role) = if has(SessionMark::NotReading) {
        ("✖ does not read", Role::Critical)
    } else if has(SessionMark::LongTransaction) && has(SessionMark::ProbableListener) {
        ("✖ LISTEN, long tx", Role::Critical)
    } else if has(SessionMark::NotifyHolder) && line.behind > 0 {
        ("✖ NOTIFY lock", Role::Critical)
    } else if line.behind > 0 {
        return (format!("✖ blocks {}", count(line.behind as u64)), Role::Critical);
    } else if has(SessionMark::NotifyWaiter) {
        ("▲ waits to commit", Role::Warn)
    } else if has(SessionMark::Blocked) {
        ("▲ waits for a lock", Role::Warn)
    } else if line.is_oldest {
        ("▲ oldest snapshot", Role::Warn)
    } else if has(SessionMark::IdleInTransaction) {
        ("▲ idle in tx", Role::Warn)
    } else if has(SessionMark::LongTransaction) {
        ("▲ long transaction", Role::Warn)
    } else if has(SessionMark::NotifyHolder) {
        ("● NOTIFY lock", Role::Dim)
    } else if has(SessionMark::Blocking) {
        ("✖ blocks others", Role::Critical)
    } else {
        ("● listens, likely", Role::Dim)
    };
    (text.to_owned(), role)
}

fn why_pin(p: &Pin, line: &SessionLine) -> (String, Role) {
    let (text, role) = match p.kind {
        PinKind::Prepared if line.behind > 0 => {
            return (format!("✖ prepared, blocks {}", count(line.behind as u64)), Role::Critical);
        }
        PinKind::Prepared => ("▲ prepared tx", Role::Warn),
        _ if line.is_oldest => ("▲ oldest snapshot", Role::Warn),
        PinKind::Slot if p.pid.is_none() => ("▲ slot, not read", Role::Warn),
        PinKind::Slot => ("● slot", Role::Dim),
        PinKind::Standby => ("● standby", Role::Dim),
        PinKind::Session => ("▲ old snapshot", Role::Warn),
    };
    (text.to_owned(), role)
}

/// What a session waits for: the lock and for how long, or the wait event.
pub(in crate::ui) fn wait(s: &Session) -> String {
    match &s.lock {
        Some(lock) => {
            let lasted = lock.seconds.map_or_else(String::new, |a| format!("{} ", age(a)));
            format!("{lasted}{}", lock.what)
        }
        None => s.wait.clone().unwrap_or_else(|| if s.hidden { "—" } else { "none" }.to_owned()),
    }
}

/// The branch that a row hangs on; an order of the person's own has no branches.
fn branch(ui: Ui<'_>, line: &SessionLine) -> String {
    let lever = ui.app.lever(List::Sessions);
    let natural = lever.sorted() == (None, false) && lever.filter().is_empty();
    match line.depth {
        0 => String::new(),
        _ if !natural => String::new(),
        n => format!("{}└ ", "  ".repeat((n - 1).min(4))),
    }
}

fn row(ui: Ui<'_>, line: &SessionLine, w: &[usize]) -> Vec<Vec<Piece>> {
    let app = ui.app;
    let faded = app.is_stale(ui.now) || app.sample().is_some_and(|s| !s.sessions.is_current());
    let role = if faded { Role::Dim } else { Role::Text };
    let (why, why_role) = why(line);
    let why = vec![(why, ui.style(if faded { Role::Dim } else { why_role }))];
    let hidden = |t: Option<&String>| t.map_or("—".to_owned(), Clone::clone);
    let s = match &line.held {
        Held::Session(s) => s,
        Held::Pin(p) => {
            let pid = p.pid.map_or_else(|| "none".to_owned(), |pid| pid.to_string());
            let lasted = p.seconds.map_or_else(|| "—".to_owned(), age);
            let keeps = [
                p.xids.map(|n| format!("{} transactions old", count(n.unsigned_abs()))),
                p.retained.map(|n| format!("keeps {} of log", bytes_count(n))),
            ];
            let keeps = keeps.into_iter().flatten().collect::<Vec<_>>().join(", ");
            return vec![
                grid::right(ui, &pid, w[0], Role::Dim),
                why,
                grid::right(ui, &lasted, w[2], role),
                grid::text(ui, &p.name, w[3], role),
                grid::text(ui, &p.about, w[4], role),
                Vec::new(),
                grid::text(ui, "", w[6], role),
                vec![(fit(&keeps, w[7]), ui.style(Role::Dim))],
            ];
        }
    };
    let none = if s.hidden { "—" } else { "none" };
    let lasted = s.transaction_age.map_or_else(|| none.to_owned(), age);
    let program = format!("{}{}", branch(ui, line), s.application);
    let user = match &s.database {
        Some(other) => format!("{}@{other}", s.user),
        None => s.user.clone(),
    };
    vec![
        grid::right(ui, &s.pid.to_string(), w[0], role),
        why,
        grid::right(ui, &lasted, w[2], role),
        grid::text(ui, &program, w[3], role),
        grid::text(ui, &hidden(s.state.as_ref()), w[4], role),
        grid::text(ui, &user, w[5], role),
        grid::text(ui, &wait(s), w[6], role),
        vec![(fit(&hidden(s.query.as_ref()), w[7]), ui.style(Role::Dim))],
    ]
}
