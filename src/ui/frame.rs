//! The two head lines and the footer.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::paint::{self, Piece, width_of};
use super::{Role, Ui};
use crate::app::health::Level;
use crate::app::on_job;
use crate::app::{Embedded, ListenState, Playing, Screen};
use crate::config::keys::{Action, Binding};
use crate::model::{Play, Role as ServerRole};
use crate::text::{age, fit_middle, percent, width};

/// A part of the head line. Parts leave by importance, the largest number first, until the rest fits.
struct Part {
    pieces: Vec<Piece>,
    importance: u8,
    right: bool,
    is_address: bool,
}

fn full_address(ui: Ui<'_>) -> &str {
    let app = ui.app;
    app.live().server.as_ref().map_or(app.setup().target.as_str(), |s| s.address.as_str())
}

/// The symbol of a level.
pub(super) fn symbol(level: Level) -> &'static str {
    match level {
        Level::Ok => "✔",
        Level::Unknown => "?",
        Level::Warn => "▲",
        Level::Critical => "✖",
    }
}

/// First line: where am I, is it live, how old is this.
pub(super) fn head(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let room = usize::from(area.width);
    let mut parts = parts(ui, room);
    let gap = 2;
    let need = |parts: &[Part]| {
        parts.iter().map(|p| width_of(&p.pieces) + gap).sum::<usize>().saturating_sub(gap) + 2
    };
    while need(&parts) > room {
        let Some(at) = (0..parts.len()).max_by_key(|i| parts[*i].importance) else { break };
        if parts[at].importance == 0 {
            break;
        }
        parts.remove(at);
    }
    // the address takes what room is left
    let address = full_address(ui);
    let spare = room.saturating_sub(need(&parts));
    if let Some((text, _)) = parts.iter_mut().find(|p| p.is_address).and_then(|p| p.pieces.first_mut()) {
        *text = fit_middle(address, width(address).min(width(text) + spare));
    }
    let (right, left): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(|p| p.right);
    let mut x = area.x + 1;
    for part in &left {
        x = paint::line(buf, x, area.y, area.right().saturating_sub(x), &part.pieces) + gap as u16;
    }
    let need = right.iter().map(|p| width_of(&p.pieces) + gap).sum::<usize>().saturating_sub(gap) as u16;
    let mut x = area.right().saturating_sub(need + 1).max(x);
    for part in &right {
        x = paint::line(buf, x, area.y, area.right().saturating_sub(x), &part.pieces) + gap as u16;
    }
    // a target with a colour of its own is told from others from across the room
    if let Some(bar) = ui.theme.bar(ui.app.setup().bar.as_deref()) {
        let frozen = ui.style(Role::Frozen).bg;
        for x in area.x..area.right() {
            if let Some(cell) = buf.cell_mut((x, area.y))
                && (frozen.is_none() || Some(cell.bg) != frozen)
            {
                cell.set_style(bar);
            }
        }
    }
}

fn parts(ui: Ui<'_>, room: usize) -> Vec<Part> {
    let app = ui.app;
    let text = ui.style(Role::Text);
    let dim = ui.style(Role::Dim);
    let part = |importance, right, pieces| Part { pieces, importance, right, is_address: false };
    let mut out = vec![part(8, false, vec![("pgwake".to_owned(), ui.style(Role::Title))])];

    let server = app.live().server.as_ref();
    let address = full_address(ui);
    let cells = width(address).min((room / 3).clamp(16, 24));
    let address = part(2, false, vec![(fit_middle(address, cells), text)]);
    out.push(Part { is_address: true, ..address });
    if let Some(ledger) = app.ledger() {
        let of = app.world().ledgers.len();
        let mut pieces = vec![(ledger.name.clone(), ui.style(Role::Accent))];
        if of > 1 {
            let at = app.world().ledgers.iter().position(|l| l.name == ledger.name).unwrap_or(0) + 1;
            pieces.push((format!(" {at}/{of}"), dim));
        }
        out.push(part(1, false, pieces));
    }
    if let Some(s) = server {
        let role = match s.role {
            ServerRole::Primary => ("primary", dim),
            ServerRole::Standby => ("STANDBY", ui.style(Role::Warn)),
        };
        let pieces = vec![(format!("PG {} ", s.version), dim), (role.0.to_owned(), role.1)];
        out.push(part(if s.role == ServerRole::Standby { 3 } else { 7 }, false, pieces));
    }
    // a frozen picture is told before anything else on the right
    if let Some(lasted) = app.frozen_for(ui.now) {
        let at = app.clock(app.shown_now(ui.now).wall);
        let text = match lasted.as_secs() {
            0 => format!(" FROZEN {at} "),
            s => format!(" FROZEN {at}, {} ", crate::text::ago(s as f64)),
        };
        out.push(part(0, true, vec![(text, ui.style(Role::Frozen))]));
    }
    if let Some(playing) = app.playing() {
        out.push(part(0, true, vec![(replay(playing), ui.style(Role::Frozen))]));
    }
    if let Some(pieces) = alerts(ui) {
        out.push(part(1, true, pieces));
    }
    out.push(part(4, true, listener(ui, room)));
    if let Some(pieces) = worker(ui) {
        out.push(part(5, true, pieces));
    }
    if let Some(pieces) = cost(ui) {
        out.push(part(6, true, pieces));
    }
    if let Some(label) = &app.setup().label {
        let style = match ui.theme.bar(app.setup().bar.as_deref()) {
            Some(bar) => bar.add_modifier(Modifier::REVERSED | Modifier::BOLD),
            None => ui.style(Role::Label),
        };
        out.push(part(
            0,
            true,
            vec![(format!(" {} ", crate::text::fit(label, width(label).min(16))), style)],
        ));
    }
    out.push(part(3, true, vec![(app.clock(ui.now.wall), text)]));
    out
}

/// How many alerts fire, of all ledgers, and the key that lists them; else how many may soon.
fn alerts(ui: Ui<'_>) -> Option<Vec<Piece>> {
    let ledgers = &ui.app.world().ledgers;
    let firing: Vec<_> = ledgers.iter().flat_map(|l| l.alerts.firing()).collect();
    let key = ui.app.keys().key_text(Action::Alerts);
    let key = if key.is_empty() { key } else { format!(" {key}") };
    let plural = |n: usize| if n == 1 { "alert" } else { "alerts" };
    if let Some(level) = firing.iter().map(|a| a.level).max() {
        let text = format!("{} {} {}", symbol(level), firing.len(), plural(firing.len()));
        return Some(vec![(text, ui.style(Role::of(level))), (key, ui.style(Role::Key))]);
    }
    let pending: usize = ledgers.iter().map(|l| l.alerts.pending()).sum();
    (pending > 0).then(|| vec![(format!("○ {pending} pending"), ui.style(Role::Dim))])
}

/// Whether wake-ups can reach this program.
fn listener(ui: Ui<'_>, room: usize) -> Vec<Piece> {
    let world = ui.app.world();
    let lasted = |since: &std::time::Duration| {
        let s = ui.app.shown_now(ui.now).mono.saturating_sub(*since).as_secs_f64().floor();
        age(s).replace(".0s", "s")
    };
    match &world.listen {
        ListenState::Connecting => vec![("○ listener connecting".to_owned(), ui.style(Role::Dim))],
        ListenState::Up { channels, since, .. } => {
            let on =
                if room < 100 { String::new() } else { format!(" {}", fit_short(&channels.join(","), 24)) };
            let lasted = if room < 72 { String::new() } else { format!(" {}", lasted(since)) };
            vec![
                ("● ".to_owned(), ui.style(Role::Ok)),
                (format!("LISTEN{on}{lasted}"), ui.style(Role::Text)),
            ]
        }
        ListenState::Down { loss, since, .. } => {
            let code = loss.sqlstate.as_deref().map_or_else(String::new, |c| format!(" {c}"));
            vec![(format!("✖ listener lost {}{code}", lasted(since)), ui.style(Role::Critical))]
        }
        ListenState::Deaf { .. } => vec![("▲ deaf, polling".to_owned(), ui.style(Role::Warn))],
        ListenState::Off => vec![("○ polling".to_owned(), ui.style(Role::Dim))],
    }
}

/// Where a replay stands: `REPLAY ▶ ×4 2:13 of 10:00`.
fn replay(playing: &Playing) -> String {
    let clock = |t: std::time::Duration| {
        let s = t.as_secs();
        match s / 3600 {
            0 => format!("{}:{:02}", s / 60, s % 60),
            h => format!("{h}:{:02}:{:02}", s / 60 % 60, s % 60),
        }
    };
    let going = match (playing.paused, playing.at >= playing.length) {
        (_, true) => "at its end".to_owned(),
        (true, false) => "paused".to_owned(),
        (false, false) => format!("▶ ×{}", playing.speed),
    };
    format!(" REPLAY {going} {} of {} ", clock(playing.at), clock(playing.length))
}

fn fit_short(text: &str, cells: usize) -> String {
    fit_middle(text, width(text).min(cells))
}

fn worker(ui: Ui<'_>) -> Option<Vec<Piece>> {
    let (text, role) = match &ui.app.world().worker {
        Embedded::Off { trouble: None } => return None,
        Embedded::Off { trouble: Some(_) } => ("✖ worker ended", Role::Critical),
        Embedded::Starting => ("○ worker starting", Role::Dim),
        Embedded::Running { .. } => ("● worker", Role::Ok),
        Embedded::Stopping => ("○ worker stopping", Role::Dim),
    };
    Some(vec![(text.to_owned(), ui.style(role))])
}

/// The interval, what a pass cost, and its share; or how old the numbers are.
fn cost(ui: Ui<'_>) -> Option<Vec<Piece>> {
    let sample = ui.app.sample()?;
    if ui.app.is_stale(ui.now) {
        let old = age(ui.app.sample_age(ui.now)?.as_secs_f64().floor()).replace(".0s", "s");
        return Some(vec![(format!("▲ {old} old"), ui.style(Role::Warn))]);
    }
    let c = &sample.cost;
    let interval = age(c.effective_ms as f64 / 1e3);
    let share = if c.share() >= 0.001 { format!("{:.1}%", c.share() * 100.0) } else { percent(c.share()) };
    let pass = format!(" {:.1}ms {share}", c.pass_ms);
    if c.is_stretched() {
        return Some(vec![
            (format!("▲ every {interval}"), ui.style(Role::Warn)),
            (pass, ui.style(Role::Dim)),
        ]);
    }
    Some(vec![(format!("{interval}{pass}"), ui.style(Role::Dim))])
}

/// Second line: is it draining, and if not, why.
pub(super) fn diagnosis(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let d = ui.app.diagnosis(ui.now);
    let style = ui.style(Role::of(d.level));
    let pieces = [
        (format!(" {} {}", symbol(d.level), d.headline), style),
        ("  ".to_owned(), style),
        (d.detail, ui.style(Role::Text)),
    ];
    paint::line(buf, area.x, area.y, area.width, &pieces);
}

/// Whether the footer should offer `binding` now.
fn is_offered(ui: Ui<'_>, binding: &Binding) -> bool {
    let app = ui.app;
    let here = match binding.action {
        Action::Overview => app.screen() != Screen::Overview,
        Action::Backlog => app.screen() != Screen::Backlog,
        Action::Leases => app.screen() != Screen::Leases,
        Action::Workers => app.screen() != Screen::Workers,
        Action::Sessions => app.screen() != Screen::Sessions,
        Action::WakeUps => app.screen() != Screen::WakeUps,
        Action::Events => app.screen() != Screen::Events,
        Action::NextLedger => app.world().ledgers.len() > 1,
        other => on_job::of_key(other).is_none_or(|action| on_job::fits_selected(app, action)),
    };
    !binding.short.is_empty()
        && !binding.keys.is_empty()
        && here
        && app.offers(binding.scope)
        && !(binding.action == Action::Freeze && app.playing().is_some())
        && !(binding.action.changes() && app.read_only().is_some())
}

/// The last line: a notice, or the keys that matter most here.
pub(super) fn footer(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    if let Some(text) = ui.app.notice(ui.now) {
        paint::text(buf, area.x, area.y, area.width, &format!(" ▶ {text}"), ui.style(Role::Accent));
        return;
    }
    if ui.app.is_typing() {
        let filter = ui.app.lever(ui.app.list()).filter();
        let mut pieces =
            vec![(" /".to_owned(), ui.style(Role::Key)), (format!("{filter}▏  "), ui.style(Role::Accent))];
        pieces.extend(super::widgets::dialog::keys(ui, &[("Enter", "keep"), ("Esc", "show all")]));
        paint::line(buf, area.x, area.y, area.width, &pieces);
        return;
    }
    let mut offered: Vec<&Binding> = ui.app.keys().iter().filter(|b| is_offered(ui, b)).collect();
    let shown = |b: &Binding| -> String {
        let key = b.keys.first().map(ToString::to_string).unwrap_or_default();
        let word = match b.action {
            // one word for all the digits
            Action::NextScreen => return b.short.to_owned(),
            Action::Freeze if ui.app.frozen_for(ui.now).is_some() => "follow",
            Action::Play(Play::PauseOrGoOn) if ui.app.playing().is_some_and(|p| p.paused) => "go on",
            Action::Worker if ui.app.live().worker.is_on() => "stop worker",
            _ => b.short,
        };
        format!("{key} {word}")
    };
    // the way out of a frozen picture is always shown
    let frozen = ui.app.frozen_for(ui.now).is_some();
    let rank = |b: &Binding| if frozen && b.action == Action::Freeze { 0 } else { b.rank };
    let why = ui.app.read_only().map(|why| format!("read only: {why}"));
    let room = usize::from(area.width).saturating_sub(1 + why.as_ref().map_or(0, |w| width(w) + 2));
    while offered.iter().map(|b| width(&shown(b)) + 2).sum::<usize>() > room {
        let Some(at) = (0..offered.len()).max_by_key(|i| (rank(offered[*i]), *i)) else { break };
        offered.remove(at);
    }
    let mut pieces: Vec<Piece> = vec![(" ".to_owned(), ui.style(Role::Text))];
    if let Some(why) = why {
        pieces.push((format!("{why}  "), ui.style(Role::Warn)));
    }
    for b in offered {
        let text = shown(b);
        let x = area.x + paint::width_of(&pieces) as u16;
        if let Some(key) = b.keys.first() {
            ui.zones.borrow_mut().key(Rect::new(x, area.y, width(&text) as u16, 1), *key);
        }
        let (key, word) = text.split_once(' ').unwrap_or((&text, ""));
        pieces.push((key.to_owned(), ui.style(Role::Key)));
        pieces.push((format!(" {word}  "), ui.style(Role::Dim)));
    }
    paint::line(buf, area.x, area.y, area.width, &pieces);
}
