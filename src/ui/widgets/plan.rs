//! How the server would claim, and what is wrong with that.

use super::dialog::{Rows, keys, wrapped};
use crate::app::dialog::PlanView;
use crate::model::ClaimPlan;
use crate::text::count;
use crate::ui::{Role, Ui};

/// The rows, at most `room` of them; the last is the keys.
pub(super) fn rows(ui: Ui<'_>, view: &PlanView, cells: usize, room: usize) -> Rows {
    let mut rows = Rows::new();
    let mut last = vec![("j k", "scroll"), ("Esc", "back")];
    match view.check.as_ref().map(|c| (c.plan.value(), c.plan.trouble())) {
        None => rows.push(vec![("asking the server …".to_owned(), ui.style(Role::Dim))]),
        Some((Some(plan), _)) => {
            if plan.index.is_some() {
                last.insert(0, ("y", "copy the statement"));
            }
            verdict(ui, &mut rows, plan, cells);
        }
        Some((None, why)) => {
            let why = why.map(ToString::to_string).unwrap_or_default();
            rows.push(vec![(format!("— {why}"), ui.style(Role::Unknown))]);
        }
    }
    let room = room.saturating_sub(2).max(1);
    let top = view.top.min(rows.len().saturating_sub(room));
    let mut shown: Rows = rows.into_iter().skip(top).take(room).collect();
    shown.push(Vec::new());
    shown.push(keys(ui, &last));
    shown
}

fn verdict(ui: Ui<'_>, rows: &mut Rows, plan: &ClaimPlan, cells: usize) {
    for flaw in &plan.flaws {
        wrapped(ui, rows, &format!("▲ {flaw}"), Role::Warn, cells);
    }
    match (plan.flaws.is_empty(), plan.rows) {
        (false, _) => {}
        (true, Some(n)) if n < 1_000 => {
            let text =
                format!("The table has ~{} rows: any plan will do, and this one says little.", count(n));
            wrapped(ui, rows, &text, Role::Dim, cells);
        }
        (true, _) => {
            wrapped(ui, rows, "✔ An index gives the due order: no Seq Scan, no Sort.", Role::Ok, cells)
        }
    }
    if let Some(index) = &plan.index {
        rows.push(Vec::new());
        wrapped(
            ui,
            rows,
            "If this index is missing, add it; if it is there, analyze the table:",
            Role::Text,
            cells,
        );
        wrapped(ui, rows, index, Role::Accent, cells);
    }
    if plan.only_the_pick {
        let text = "This role may not update the table: the choice of rows alone was planned.";
        wrapped(ui, rows, text, Role::Dim, cells);
    }
    rows.push(Vec::new());
    for line in &plan.lines {
        rows.push(vec![(line.clone(), ui.style(Role::Text))]);
    }
}
