//! One session in full, and the question before it is cancelled or ended.

use super::details::{cut, plain};
use super::dialog::{Rows, field, keys, wrapped};
use crate::app::dialog::{End, ReleasePhase};
use crate::app::sessions::{Held, SessionLine, name_of};
use crate::config::keys::Action;
use crate::model::{Ending, Pin, PinKind, Session, SessionMark};
use crate::text::{age, bytes_count, count};
use crate::ui::screens::sessions;
use crate::ui::{Role, Ui};

/// What each mark means for the queue.
const MEANING: [(SessionMark, &str); 5] = [
    (
        SessionMark::LongTransaction,
        "Its open transaction keeps dead rows from being removed: claims walk over them.",
    ),
    (
        SessionMark::ProbableListener,
        "Its last statement was LISTEN. A listener within a transaction holds the notification queue.",
    ),
    (SessionMark::NotReading, "It does not read what the server sends, and pins a snapshot meanwhile."),
    (
        SessionMark::IdleInTransaction,
        "It waits for its program within a transaction: what it has locked stays locked.",
    ),
    (
        SessionMark::NotifyHolder,
        "It commits after a NOTIFY: until it is through, no other transaction that notified can commit.",
    ),
];

fn hidden() -> String {
    "— hidden from this role".to_owned()
}

/// A row as it is now; as it was when it has left the list.
pub(super) fn rows(ui: Ui<'_>, kept: &SessionLine, cells: usize) -> Rows {
    let key = kept.key();
    let current = ui.app.sessions().into_iter().find(|l| l.key() == key);
    let line = current.unwrap_or(kept);
    let gone = current.is_none();
    let mut rows = match &line.held {
        Held::Session(s) => {
            let mut rows = facts(ui, s, Some(line), gone, cells);
            rows.push(Vec::new());
            for (mark, text) in MEANING {
                if s.marks.contains(&mark) {
                    wrapped(ui, &mut rows, text, Role::Dim, cells);
                }
            }
            rows
        }
        Held::Pin(p) => pin(ui, p, line, gone, cells),
    };
    rows.push(Vec::new());
    let key = |action| ui.app.keys().key_text(action);
    let (cancel, end) = (key(Action::CancelQuery), key(Action::Terminate));
    let list = [(cancel.as_str(), "cancel"), (end.as_str(), "terminate"), ("Esc", "back")];
    let bound: Vec<(&str, &str)> = list.into_iter().filter(|(key, _)| !key.is_empty()).collect();
    rows.push(keys(ui, &bound));
    rows
}

fn facts(ui: Ui<'_>, s: &Session, line: Option<&SessionLine>, gone: bool, cells: usize) -> Rows {
    let mut rows = vec![field(ui, "pid", plain(ui, s.pid.to_string()))];
    if gone {
        rows.push(field(ui, "", vec![("it is no longer in the list".to_owned(), ui.style(Role::Warn))]));
    }
    if let Some(line) = line {
        let (why, role) = sessions::why(line);
        rows.push(field(ui, "why", vec![(why, ui.style(role))]));
    }
    let role = match &s.database {
        Some(other) => format!("{} in database {other}", s.user),
        None => s.user.clone(),
    };
    rows.push(field(ui, "role", plain(ui, cut(&role, cells))));
    rows.push(field(ui, "program", plain(ui, cut(&s.application, cells))));
    rows.push(field(ui, "state", plain(ui, s.state.clone().unwrap_or_else(hidden))));
    rows.push(field(ui, "waits for", plain(ui, cut(&sessions::wait(s), cells))));
    if let Some(lock) = &s.lock {
        let all = ui.app.sample().and_then(|s| s.sessions.value()).map_or(&[][..], Vec::as_slice);
        let mut by: Vec<String> = lock.by.iter().map(|pid| name_of(all, *pid)).collect();
        by.extend(lock.prepared.iter().map(|gid| format!("prepared transaction {gid}")));
        rows.push(field(ui, "behind", plain(ui, cut(&by.join(", "), cells))));
    }
    let tx = match (s.transaction_age, s.hidden) {
        (Some(a), _) => format!("open for {}", age(a)),
        (None, true) => hidden(),
        (None, false) => "none open".to_owned(),
    };
    rows.push(field(ui, "transact.", plain(ui, tx)));
    rows.push(Vec::new());
    wrapped(ui, &mut rows, &s.query.clone().unwrap_or_else(hidden), Role::Text, cells);
    rows
}

fn pin(ui: Ui<'_>, p: &Pin, line: &SessionLine, gone: bool, cells: usize) -> Rows {
    let (why, role) = sessions::why(line);
    let mut rows = vec![field(ui, "name", plain(ui, cut(&p.name, cells)))];
    if gone {
        rows.push(field(ui, "", vec![("it is no longer in the list".to_owned(), ui.style(Role::Warn))]));
    }
    rows.push(field(ui, "why", vec![(why, ui.style(role))]));
    rows.push(field(ui, "of", plain(ui, cut(&p.about, cells))));
    let old = p.xids.map_or_else(
        || "no transaction".to_owned(),
        |n| format!("{} transactions", count(n.unsigned_abs())),
    );
    rows.push(field(ui, "holds", plain(ui, old)));
    if let Some(s) = p.seconds {
        rows.push(field(ui, "since", plain(ui, age(s))));
    }
    if let Some(n) = p.retained {
        rows.push(field(ui, "log kept", plain(ui, bytes_count(n))));
    }
    rows.push(Vec::new());
    let text = match p.kind {
        PinKind::Prepared => {
            "It outlives the session that prepared it, keeps its locks and its snapshot, and waits for COMMIT PREPARED or ROLLBACK PREPARED."
        }
        PinKind::Slot => {
            "A slot keeps what its reader may still need, whether that ever comes back or not."
        }
        PinKind::Standby => "What its own queries need is kept here, by hot_standby_feedback.",
        PinKind::Session => {
            "The oldest snapshot of this database. What it does is hidden, or its transaction is young."
        }
    };
    wrapped(ui, &mut rows, text, Role::Dim, cells);
    rows
}

/// The question, at most `room` rows: of the statement as much as fits, of the question everything.
pub(super) fn end_rows(ui: Ui<'_>, e: &End, cells: usize, room: usize) -> Rows {
    let mut rows = facts(ui, &e.session, None, false, cells);
    let mut tail = Rows::new();
    tail.push(Vec::new());
    let blocked = match e.blocks.len() {
        0 => "Nobody that is listed waits for it.".to_owned(),
        _ => {
            let through = e.behind.saturating_sub(e.blocks.len());
            let more = if through > 0 {
                format!(", and {} behind them", count(through as u64))
            } else {
                String::new()
            };
            format!("It blocks {}{more}.", e.blocks.join(", "))
        }
    };
    wrapped(ui, &mut tail, &blocked, Role::Warn, cells);
    let effect = match e.how {
        Ending::Cancel if e.session.state.as_deref().is_some_and(|s| s.starts_with("idle")) => {
            "It runs nothing now: a cancel would do nothing, and its transaction would stay open."
        }
        Ending::Cancel => "What it runs is cancelled; its program gets an error (57014).",
        Ending::Terminate => {
            "The session ends, its transaction is rolled back, and its program loses the connection."
        }
    };
    wrapped(ui, &mut tail, effect, Role::Text, cells);
    match &e.phase {
        ReleasePhase::Asking => {
            if e.needs_typing() {
                tail.push(vec![
                    ("Type the pid to end it: ".to_owned(), ui.style(Role::Text)),
                    (format!("{}▏", e.typed), ui.style(Role::Accent)),
                ]);
            }
            let leave = ("Esc", "leave it");
            tail.push(if e.is_confirmable() {
                keys(ui, &[("Enter", e.how.word()), leave])
            } else {
                keys(ui, &[leave])
            });
        }
        ReleasePhase::Sent => {
            tail.push(vec![("sent, waiting for the server …".to_owned(), ui.style(Role::Text))]);
            tail.push(keys(ui, &[("Esc", "close")]));
        }
        ReleasePhase::Over(done, say) => {
            let (mark, role) = if *done { ("✔", Role::Ok) } else { ("▲", Role::Warn) };
            wrapped(ui, &mut tail, &format!("{mark} {say}"), role, cells);
            tail.push(keys(ui, &[("Esc", "back")]));
        }
    }
    rows.truncate(room.saturating_sub(tail.len()));
    rows.extend(tail);
    rows
}
