//! `pgwake enqueue`: one job, or many from standard input with one wake-up a batch.

use tokio::io::{AsyncBufReadExt, BufReader};

use super::{Failure, Outcome, conninfo_to_change, print, profiles};
use crate::cli::{Connect, Enqueue};
use crate::ledger::{self, Ledger, NewJob};
use crate::pg::{Error, Purpose, Session};

/// Lines that go into one transaction with one wake-up.
const BATCH: usize = 1000;

pub(super) async fn run(connect: &Connect, args: Enqueue) -> Outcome {
    let conninfo = conninfo_to_change(connect, None)?;
    let profiles = profiles(connect, None)?;
    if args.payload != "-" {
        check_json(&args.payload).map_err(|e| Failure::usage(format!("PAYLOAD: {e}")))?;
    }
    let session = Session::connect(&conninfo, Purpose::Command).await.map_err(Failure::failed)?;
    let ledgers = ledger::open_all(&session, &profiles).await.map_err(Failure::failed)?;
    let Some(ledger) = ledgers.first() else {
        return Err(Failure::failed(
            "no ledger of a known profile in this database; create one with: pgwake migrate",
        ));
    };
    if args.key.is_some() && !ledger.has_key() {
        return Err(Failure::usage(format!(
            "--key: ledger {} has no message key; name another with --profile",
            ledger.name()
        )));
    }
    let run_at = match args.after.map(chrono::TimeDelta::from_std).transpose().map_err(Failure::usage)? {
        // By the server's clock, by which it becomes due.
        Some(after) => Some(ledger::server_now(&session).await.map_err(Failure::failed)? + after),
        None => None,
    };
    let job = |payload: String| NewJob {
        job_type: args.job_type.clone(),
        payload,
        key: args.key.clone(),
        run_at,
    };
    if args.payload != "-" {
        let ids = add(ledger, &session, &[job(args.payload.clone())])
            .await
            .map_err(|e| Failure::failed(format!("ledger {}: {e}; nothing was added", ledger.name())))?;
        return print(&format!("{}\n", ids.join("\n")));
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let (mut batch, mut added, mut number) = (Vec::with_capacity(BATCH), 0, 0_u64);
    // of the batch in hand
    let mut first = 1_u64;
    loop {
        let line = lines.next_line().await.map_err(|e| {
            Failure::failed(format!("standard input after line {number}: {e}; {added} jobs were added"))
        })?;
        let end = line.is_none();
        if let Some(line) = line {
            number += 1;
            if !line.trim().is_empty() {
                check_json(&line).map_err(|e| {
                    Failure::failed(format!(
                        "standard input, line {number}: {e}; {added} jobs of the lines before were added"
                    ))
                })?;
                batch.push(job(line));
            }
        }
        if batch.len() == BATCH || (end && !batch.is_empty()) {
            let ids = add(ledger, &session, &batch).await.map_err(|e| {
                Failure::failed(format!(
                    "ledger {}, lines {first} to {number} of standard input: {e}; none of them was added, \
                     {added} jobs of the lines before were",
                    ledger.name()
                ))
            })?;
            added += ids.len();
            batch.clear();
            first = number + 1;
        }
        if end {
            return print(&format!("{added} jobs added\n"));
        }
    }
}

async fn add(ledger: &Ledger, session: &Session, jobs: &[NewJob]) -> Result<Vec<String>, Error> {
    ledger.enqueue(session, jobs).await
}

fn check_json(text: &str) -> Result<(), String> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).map(drop).map_err(|e| format!("not JSON: {e}"))
}
