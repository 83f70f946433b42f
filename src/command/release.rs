//! `pgwake release`: the same guards as the screen.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::{Failure, Outcome, conninfo_to_change, print, profiles};
use crate::cli::{Connect, Release};
use crate::ledger::{self, LeaseRow, Ledger};
use crate::model::{ActionEvent, Event, Lease, Sink};
use crate::monitor::{AuditFile, Operator};
use crate::pg::{Purpose, Session};
use crate::text::{age, ago, count};

pub(super) async fn run(connect: &Connect, args: Release) -> Outcome {
    if args.ids.is_empty() && !args.expired && args.holder.is_none() {
        return Err(Failure::usage("release: give job ids, --expired or --holder NAME"));
    }
    if !args.yes && !args.dry_run && !std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "release: standard input is no terminal to ask on; add --yes or --dry-run",
        ));
    }
    let conninfo = conninfo_to_change(connect, None)?;
    let session = Session::connect(&conninfo, Purpose::Command).await.map_err(Failure::failed)?;
    let ledgers = ledger::open_all(&session, &profiles(connect, None)?).await.map_err(Failure::failed)?;
    let named = !connect.profile.is_empty();
    let ledger = one_ledger("release", &session, &ledgers, &args.ids, named).await?;
    let mut operator = Operator::new(
        conninfo,
        vec![ledger.profile().clone()],
        (!ledger.may_write()).then(|| "this role may not update the table".to_owned()),
        args.reason.clone(),
        AuditFile::default_place(),
        quiet(),
    );
    if args.ids.is_empty() {
        bulk(&mut operator, &ledger, &args).await
    } else {
        single(&session, &mut operator, &ledger, &args).await
    }
}

/// Results are printed from what the operator returns; a warning (the audit file) comes only this way.
pub(super) fn quiet() -> Arc<dyn Sink> {
    Arc::new(|event| {
        if let Event::Note(note) = event {
            eprintln!("pgwake: {}", note.text);
        }
    })
}

/// The ledger that is meant: the only one, or, if none was named, the one that has all these jobs.
pub(super) async fn one_ledger(
    command: &str,
    session: &Session,
    ledgers: &[Ledger],
    ids: &[String],
    named: bool,
) -> Result<Ledger, Failure> {
    match ledgers {
        [] => Err(Failure::failed("no ledger of a known profile in this database")),
        [only] => Ok(only.clone()),
        several if named || ids.is_empty() => {
            let names = names(several);
            Err(Failure::usage(format!(
                "{command}: there are the ledgers {names}; name one with --profile"
            )))
        }
        several => the_one_with(command, session, several, ids).await,
    }
}

fn names(ledgers: &[Ledger]) -> String {
    ledgers.iter().map(Ledger::name).collect::<Vec<_>>().join(" and ")
}

/// The one ledger that has all these jobs. The same number may name another job in another ledger: then it
/// is for the person to say which is meant.
async fn the_one_with(
    command: &str,
    session: &Session,
    ledgers: &[Ledger],
    ids: &[String],
) -> Result<Ledger, Failure> {
    let mut one: Option<&Ledger> = None;
    for id in ids {
        let shown = crate::text::clean(id);
        let (mut having, mut trouble) = (Vec::new(), None);
        for ledger in ledgers {
            match ledger.job(session, id, false).await {
                Ok(Some(_)) => having.push(ledger.clone()),
                Ok(None) => {}
                Err(e) => trouble = Some(format!("job {shown}: {}", e.loss())),
            }
        }
        match (having.as_slice(), trouble) {
            ([], Some(trouble)) => return Err(Failure::failed(trouble)),
            ([], None) => {
                let names = names(ledgers);
                return Err(Failure::failed(format!("there is no job {shown} in the ledgers {names}")));
            }
            ([found], None) if one.is_none_or(|one| one.name() == found.name()) => {
                one = ledgers.iter().find(|l| l.name() == found.name());
            }
            ([found], None) => {
                return Err(Failure::usage(format!(
                    "{command}: job {shown} is in ledger {}, another is not; name one with --profile",
                    found.name()
                )));
            }
            (_, Some(trouble)) => {
                return Err(Failure::usage(format!("{command}: {trouble}; name a ledger with --profile")));
            }
            (several, None) => {
                return Err(Failure::usage(format!(
                    "{command}: job {shown} is in the ledgers {}; name one with --profile",
                    names(several)
                )));
            }
        }
    }
    one.cloned().ok_or_else(|| Failure::usage(format!("{command}: give job ids")))
}

async fn bulk(operator: &mut Operator, ledger: &Ledger, args: &Release) -> Outcome {
    let holders: Option<Vec<String>> = args.holder.clone().map(|h| vec![h]);
    let (n, capped) =
        operator.count_expired(ledger.name(), holders.as_deref()).await.map_err(Failure::failed)?;
    let of = args.holder.as_deref().map_or_else(String::new, |h| format!(" of {}", crate::text::clean(h)));
    let what = format!(
        "{}{} expired leases{of} in ledger {}",
        if capped { ">=" } else { "" },
        count(n),
        ledger.name()
    );
    if args.dry_run {
        return print(&format!("would release {what}\n"));
    }
    if n == 0 {
        return print(&format!("{what}: nothing to release\n"));
    }
    if !args.yes && !ask(&format!("release {what}? Type yes: "), "yes")? {
        return Err(Failure::failed("nothing was released"));
    }
    let total =
        operator.release_expired(ledger.name(), holders.as_deref()).await.map_err(Failure::failed)?;
    print(&format!("released {}\n", count(total)))
}

async fn single(session: &Session, operator: &mut Operator, ledger: &Ledger, args: &Release) -> Outcome {
    let mut failures = Vec::new();
    for id in &args.ids {
        let shown = crate::text::clean(id);
        let row = match ledger.lease_of(session, id).await {
            Ok(Some(row)) if row.running => row,
            Ok(Some(_)) => {
                failures.push(format!("job {shown} is not held"));
                continue;
            }
            Ok(None) => {
                failures.push(format!("there is no job {shown} in ledger {}", ledger.name()));
                continue;
            }
            Err(e) => {
                failures.push(format!("job {shown}: {}", e.loss()));
                continue;
            }
        };
        let now = ledger::server_now(session).await.map_err(|e| Failure::failed(e.loss()))?;
        let (lease, expired) = seen(row, now);
        let state = match lease.expires {
            None => "its lease never ends".to_owned(),
            Some(e) => {
                let left = (e - now).as_seconds_f64();
                if expired {
                    format!("expired {}", ago(-left))
                } else {
                    format!("for another {}", age(left))
                }
            }
        };
        let what = format!("{}: job {shown} held by {}, {state}", ledger.name(), lease.holder);
        if args.dry_run {
            print(&format!("would release {what}\n"))?;
            continue;
        }
        // A live lease needs its id typed: on the command line it was, and --yes says so was meant.
        let (question, answer) = if expired {
            (format!("release {what}? Type yes: "), "yes".to_owned())
        } else {
            let verdict = ledger.profile().fencing.verdict();
            (
                format!(
                    "{what}: it may still run, and will run again; {verdict}. Type the job id to release it: "
                ),
                id.clone(),
            )
        };
        if !args.yes && !ask(&question, &answer)? {
            failures.push(format!("job {shown} was not released"));
            continue;
        }
        match operator.release(ledger.name(), &lease).await {
            Ok(ActionEvent::MovedOn { found, .. }) => {
                failures.push(format!("job {shown} moved on: now {found}; nothing was done"));
            }
            Ok(_) => print(&format!("released {what}\n"))?,
            Err(e) => failures.push(format!("job {shown}: {e}")),
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::failed(failures.join("; "))) }
}

fn seen(row: LeaseRow, now: DateTime<Utc>) -> (Lease, bool) {
    let lease = Lease {
        id: row.id,
        token: row.token,
        holder: row.holder,
        job_type: row.job_type,
        expires: row.expires,
        attempts: row.attempts,
        max_attempts: row.max_attempts,
        seen_since: now,
        held_exact: false,
    };
    let expired = row.expired;
    (lease, expired)
}

pub(super) fn ask(question: &str, answer: &str) -> Result<bool, Failure> {
    let failed = |e: std::io::Error| Failure::failed(format!("the terminal: {e}"));
    let mut err = std::io::stderr();
    err.write_all(question.as_bytes()).and_then(|()| err.flush()).map_err(failed)?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(failed)?;
    Ok(line.trim() == answer)
}
