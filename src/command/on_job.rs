//! `pgwake retry`, `give-up` and `run-now`: the same guards as the screen.

use std::io::IsTerminal;

use super::release::{ask, one_ledger, quiet};
use super::{Failure, Outcome, conninfo_to_change, print, profiles};
use crate::cli::{Connect, OnJob};
use crate::ledger::{self, Ledger};
use crate::model::{ActionEvent, JobAction, JobFacts, ShownJob};
use crate::monitor::{AuditFile, Operator};
use crate::pg::{Purpose, Session};

pub(super) async fn run(connect: &Connect, action: JobAction, args: OnJob) -> Outcome {
    let name = name(action);
    if !args.yes && !args.dry_run && !std::io::stdin().is_terminal() {
        return Err(Failure::usage(format!(
            "{name}: standard input is no terminal to ask on; add --yes or --dry-run"
        )));
    }
    let conninfo = conninfo_to_change(connect, None)?;
    let session = Session::connect(&conninfo, Purpose::Command).await.map_err(Failure::failed)?;
    let ledgers = ledger::open_all(&session, &profiles(connect, None)?).await.map_err(Failure::failed)?;
    let named = !connect.profile.is_empty();
    let ledger = one_ledger(name, &session, &ledgers, &args.ids, named).await?;
    if let Some(why) = ledger.refuses(action) {
        return Err(Failure::failed(format!("{name}: {why}")));
    }
    let mut operator = Operator::new(
        conninfo,
        vec![ledger.profile().clone()],
        None,
        args.reason.clone(),
        AuditFile::default_place(),
        quiet(),
    );
    let mut failures = Vec::new();
    for id in &args.ids {
        if let Err(why) = one(&session, &mut operator, &ledger, action, id, &args).await {
            failures.push(format!("job {}: {why}", crate::text::clean(id)));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::failed(failures.join("; "))) }
}

/// As it is typed.
fn name(action: JobAction) -> &'static str {
    match action {
        JobAction::Retry => "retry",
        JobAction::GiveUp => "give-up",
        JobAction::RunNow => "run-now",
    }
}

/// One job; why it was not done.
async fn one(
    session: &Session,
    operator: &mut Operator,
    ledger: &Ledger,
    action: JobAction,
    id: &str,
    args: &OnJob,
) -> Result<(), String> {
    let facts = ledger.job(session, id, false).await.map_err(|e| e.loss().to_string())?;
    let facts = facts.ok_or_else(|| format!("there is none in ledger {}", ledger.name()))?;
    if let Some(why) = action.unfit(facts.row.state) {
        return Err(why);
    }
    let what = format!("{}: {}", ledger.name(), told(&facts));
    if args.dry_run {
        return print(&format!("would {} {what}\n", action.word())).map_err(|e| e.line);
    }
    let effect = ledger.offers().into_iter().find(|o| o.action == action).map(|o| o.effect);
    let effect = effect.unwrap_or_default();
    let question = format!("{} {what}? {effect} Type yes: ", action.word());
    if !args.yes && !ask(&question, "yes").map_err(|e| e.line)? {
        return Err("was left alone".to_owned());
    }
    match operator.on_job(ledger.name(), action, &ShownJob::of(&facts)).await {
        Ok(ActionEvent::OnJob { moved: Some(found), .. }) => {
            Err(format!("moved on: now {found}; nothing was done"))
        }
        Ok(_) => print(&format!("{what}: {}\n", action.done())).map_err(|e| e.line),
        Err(e) => Err(e.to_string()),
    }
}

/// `job 7 of type mail, failed, attempts 5 of 5`.
fn told(facts: &JobFacts) -> String {
    let row = &facts.row;
    let state = row.state.map_or(facts.status.as_str(), |state| state.word());
    let attempts = match (row.attempts, row.max_attempts) {
        (Some(n), Some(max)) => format!(", attempts {n} of {max}"),
        (Some(n), None) => format!(", attempts {n}"),
        _ => String::new(),
    };
    format!("job {} of type {}, {state}{attempts}", row.id, row.job_type)
}
