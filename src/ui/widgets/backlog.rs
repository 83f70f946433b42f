//! Jobs per state, and what else is worth a row where there is room.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::reading::{count_text, show};
use crate::model::Reading;
use crate::text::{age, count, fit, pad_left, percent};
use crate::ui::paint;
use crate::ui::{Role, Ui};

pub(in crate::ui) fn draw(ui: Ui<'_>, buf: &mut Buffer, area: Rect) {
    let title = [("Backlog".to_owned(), ui.style(Role::Title))];
    let inner = paint::panel(ui, buf, area, &title, Role::Border);
    let Some(s) = ui.app.sample() else {
        paint::text(
            buf,
            inner.x + 1,
            inner.y,
            inner.width,
            "— nothing is known yet",
            ui.style(Role::Unknown),
        );
        return;
    };
    let now = ui.app.server_now(ui.now);
    let stale = ui.app.is_stale(ui.now);
    let seconds_or_none =
        |r: &Reading<Option<f64>>| show(r, now, stale, |v| v.map_or_else(|| "none".to_owned(), age));
    let number = |r: &Reading<u64>| show(r, now, stale, count_text(r));
    let loud = |r: &Reading<u64>| r.current().is_some_and(|n| *n > 0) && !stale;
    let rows = [
        ("ready", &s.counts.ready, Some(("oldest", seconds_or_none(&s.vitals.oldest_ready), Role::Text))),
        ("scheduled", &s.counts.scheduled, Some(("next", seconds_or_none(&s.next_scheduled), Role::Text))),
        (
            "running",
            &s.counts.running,
            Some((
                "expired",
                number(&s.counts.expired),
                if loud(&s.counts.expired) { Role::Critical } else { Role::Text },
            )),
        ),
        ("failed", &s.counts.failed, None),
    ];
    let wide = inner.width >= 38;
    let mut y = inner.y;
    for (name, reading, beside) in rows {
        if y >= inner.bottom() {
            return;
        }
        let shown = number(reading);
        let role = if name == "failed" && loud(reading) { Role::Warn } else { shown.role };
        let mut pieces = vec![
            (format!(" {} ", fit(name, 9)), ui.style(Role::Dim)),
            (pad_left(&shown.value, if wide { 9 } else { 8 }), ui.style(role)),
            ((if wide { "  " } else { " " }).to_owned(), ui.style(Role::Text)),
        ];
        match (shown.note, beside) {
            // the reason of a missing count matters more than its neighbour
            (Some(note), _) if !stale => pieces.push((note, ui.style(Role::Unknown))),
            (_, Some((name, shown, role))) => {
                let role = if shown.role == Role::Text { role } else { shown.role };
                pieces.push((format!(" {} ", fit(name, 7)), ui.style(Role::Dim)));
                pieces.push((pad_left(&shown.value, if wide { 7 } else { 6 }), ui.style(role)));
            }
            _ => {}
        }
        paint::line(buf, inner.x, y, inner.width, &pieces);
        y += 1;
    }
    for (name, text, role) in company(ui) {
        if y >= inner.bottom() {
            return;
        }
        let cells = usize::from(inner.width).saturating_sub(12);
        let pieces = [
            (format!(" {} ", fit(name, 9)), ui.style(Role::Dim)),
            (" ".to_owned(), ui.style(Role::Dim)),
            (fit(&text, cells), ui.style(role)),
        ];
        paint::line(buf, inner.x, y, inner.width, &pieces);
        y += 1;
    }
}

/// What else is worth a row where there is room.
fn company(ui: Ui<'_>) -> Vec<(&'static str, String, Role)> {
    let mut out = Vec::new();
    let Some(s) = ui.app.sample() else { return out };
    let now = ui.app.server_now(ui.now);
    match (ui.app.tally(now), s.workers.trouble()) {
        (Some(t), _) => {
            let role = if t.alive == 0 { Role::Warn } else { Role::Text };
            let silent = if t.silent > 0 { format!(", {} silent", t.silent) } else { String::new() };
            out.push(("workers", format!("{} alive{silent}", t.alive), role));
        }
        (None, Some(why)) => out.push(("workers", format!("— {why}"), Role::Unknown)),
        (None, None) => {}
    }
    let world = ui.app.world();
    let last = match world.last_wakeup {
        Some(at) => {
            let s = ui.app.shown_now(ui.now).mono.saturating_sub(at).as_secs_f64();
            format!("{} here, last {}", count(world.wakeups), crate::text::ago(s))
        }
        None => "none here yet".to_owned(),
    };
    out.push(("wake-ups", last, Role::Text));
    let share = show(&s.vitals.fallback_share, now, false, |v| v.map_or("none".to_owned(), percent));
    out.push(("fallback", format!("{} of the jobs found", share.value), share.role));
    let p99 = show(&s.vitals.claim_p99_ms, now, false, |v| {
        v.map_or("none".to_owned(), |ms| format!("{ms:.1}ms"))
    });
    out.push(("claim p99", p99.value, p99.role));
    let used = show(&s.connections, now, false, |(used, most)| format!("{used} of {most} used"));
    out.push(("sessions", used.value, used.role));
    out
}
