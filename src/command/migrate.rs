//! `pgwake migrate`.

use super::{Failure, Outcome, conninfo_to_change, print, profiles};
use crate::cli::{Connect, Migrate};
use crate::ledger;
use crate::pg::{Purpose, Session};
use crate::profile::Profile;

pub(super) async fn run(connect: &Connect, args: Migrate) -> Outcome {
    if args.print_roles {
        return print(ledger::ROLES);
    }
    if args.print {
        let text: String =
            ledger::migrations().into_iter().map(|(name, sql)| format!("-- {name}\n\n{sql}\n")).collect();
        return print(&text);
    }
    let conninfo = conninfo_to_change(connect, args.conninfo.clone())?;
    let mut session = Session::connect(&conninfo, Purpose::Command).await.map_err(Failure::failed)?;
    let address = conninfo.address();
    let outcome = ledger::migrate(&mut session)
        .await
        .map_err(|e| Failure::failed(format!("migrating {address}: {e}; nothing was changed")))?;
    if outcome.applied.is_empty() {
        print(&format!("schema pgwake is at version {}; nothing to do\n", outcome.version))?;
    } else {
        print(&format!(
            "applied {}; schema pgwake is at version {}\n",
            outcome.applied.join(", "),
            outcome.version
        ))?;
    }
    if args.scratch {
        let mut chosen = profiles(connect, args.conninfo.as_deref())?;
        if chosen.is_empty() {
            chosen = ["jobs", "outbox"]
                .into_iter()
                .map(|name| Profile::find(name).map_err(Failure::failed))
                .collect::<Result<_, _>>()?;
        }
        for ledger in ledger::open_all(&session, &chosen).await.map_err(Failure::failed)? {
            ledger::mark_scratch(&session, &ledger).await.map_err(Failure::failed)?;
            print(&format!("ledger {} is marked as scratch\n", ledger.name()))?;
        }
    }
    Ok(())
}
