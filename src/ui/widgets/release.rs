//! The dialog that releases one lease: everything that can be known before saying yes.

use super::dialog::{Rows, fencing_role, field, keys, lease_facts, wrapped};
use crate::app::dialog::{Release, ReleasePhase};
use crate::ui::paint;
use crate::ui::{Role, Ui};

/// The rows, at most `room` of them: of the statement as much as fits, of the question everything.
pub(super) fn rows(ui: Ui<'_>, r: &Release, cells: usize, room: usize) -> Rows {
    let text = ui.style(Role::Text);
    let mut head =
        vec![field(ui, "ledger", vec![(format!("{}  {}", r.facts.name, r.facts.relation), text)])];
    // even over a frozen picture the question is about now
    let now = ui.app.live_server_now(ui.now);
    head.extend(lease_facts(ui, &r.lease, r.holder.as_ref(), now, cells));
    let tail = tail(ui, r, cells);

    let verdict = r.facts.fencing.verdict();
    let mut fencing = Rows::new();
    wrapped(ui, &mut fencing, verdict, fencing_role(verdict), cells.saturating_sub(11));
    for (i, row) in fencing.into_iter().enumerate() {
        head.push(field(ui, if i == 0 { "fencing" } else { "" }, row));
    }

    let left = room.saturating_sub(head.len() + tail.len() + 1);
    let mut sql: Vec<String> = paint::wrap(&r.facts.release_sql, cells.saturating_sub(2));
    let mut rows = head;
    if left > 0 {
        rows.push(vec![("what runs, with this id and token:".to_owned(), ui.style(Role::Dim))]);
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

fn tail(ui: Ui<'_>, r: &Release, cells: usize) -> Rows {
    let mut rows: Rows = vec![Vec::new()];
    match &r.phase {
        ReleasePhase::Asking => {
            if let Some(drift) = ui.app.drift(r) {
                let say = format!("▲ {drift}; releasing what is shown here would change nothing");
                wrapped(ui, &mut rows, &say, Role::Warn, cells);
            }
            if r.needs_typing {
                wrapped(
                    ui,
                    &mut rows,
                    "▲ This lease has not expired: somebody may be at work on the job right now.",
                    Role::Warn,
                    cells,
                );
                rows.push(vec![
                    (
                        "Type the id of the job to release it all the same: ".to_owned(),
                        ui.style(Role::Text),
                    ),
                    (r.typed.clone(), ui.style(Role::Accent)),
                    ("▏".to_owned(), ui.style(Role::Accent)),
                ]);
                rows.push(if r.is_confirmable() {
                    keys(ui, &[("Enter", "release"), ("Esc", "leave it")])
                } else {
                    keys(ui, &[("Esc", "leave it")])
                });
            } else {
                rows.push(keys(ui, &[("Enter", "release"), ("Esc", "leave it")]));
            }
        }
        ReleasePhase::Sent => {
            rows.push(vec![("sent, waiting for the server …".to_owned(), ui.style(Role::Text))]);
            rows.push(keys(ui, &[("Esc", "close")]));
        }
        ReleasePhase::Over(done, say) => {
            let (mark, role) = if *done { ("✔", Role::Ok) } else { ("▲", Role::Warn) };
            wrapped(ui, &mut rows, &format!("{mark} {say}"), role, cells);
            rows.push(keys(ui, &[("Esc", "back")]));
        }
    }
    rows
}
