//! `pgwake drill`.

use super::{Failure, Outcome, block_on, print};
use crate::cli::Drill;
use crate::drill;

pub(super) fn run(args: &Drill) -> Outcome {
    block_on(async {
        let chosen = drill::choose(&args.names).map_err(Failure::usage)?;
        let each = |r: &drill::Report| {
            if !args.json {
                let verdict = if r.held { "held  " } else { "BROKEN" };
                let text = format!(
                    "{verdict}  {}  {:.1} s\n        breaks:   {}\n        promise:  {}\n        evidence: {}\n",
                    r.name,
                    r.took.as_secs_f64(),
                    r.breaks,
                    r.promise,
                    r.evidence
                );
                let _ = print(&text);
            }
        };
        let reports = drill::run(&chosen, args.pg_bin.clone(), each).await.map_err(Failure::failed)?;
        if args.json {
            let text = serde_json::to_string_pretty(&reports).map_err(Failure::failed)?;
            print(&format!("{text}\n"))?;
        }
        let broken: Vec<&str> = reports.iter().filter(|r| !r.held).map(|r| r.name).collect();
        if broken.is_empty() {
            Ok(())
        } else {
            Err(Failure::failed(format!("broken: {}", broken.join(", "))))
        }
    })
}
