//! `pgwake runbook`: what to do about an alert, for a pipe.

use super::{Failure, Outcome, print, settings};
use crate::app::alerts::runbook::document;
use crate::app::alerts::{ALERTS, Alert};
use crate::cli::{Connect, Runbook};
use crate::text::clean;

pub(super) fn run(connect: &Connect, args: &Runbook) -> Outcome {
    let keys = settings::load(connect)?.settings.keys;
    let Some(name) = &args.name else { return print(&document(&keys)) };
    let Some((_, alert)) = Alert::find(name) else {
        let known: Vec<&str> = ALERTS.iter().map(|a| a.name).collect();
        let name = clean(name);
        return Err(Failure::usage(format!("no alert {name}; there are {}", known.join(", "))));
    };
    print(&alert.markdown(&keys, 0))
}
