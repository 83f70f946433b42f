//! `pgwake leases`.

use super::{Failure, Outcome, monitor_setup, print};
use crate::cli::{Connect, Leases};
use crate::monitor::Sampler;
use crate::report;

pub(super) async fn run(connect: &Connect, args: Leases) -> Outcome {
    let mut sampler =
        Sampler::connect(monitor_setup(connect, args.conninfo)?).await.map_err(Failure::failed)?;
    let samples = sampler.sample().await.map_err(|e| Failure::failed(e.loss()))?;
    let unknown: Vec<String> = samples
        .iter()
        .filter_map(|s| s.leases.trouble().map(|t| format!("leases of {} are unknown: {t}", s.ledger)))
        .collect();
    if args.json {
        let all: Vec<_> = samples
            .iter()
            .flat_map(|s| s.leases.value().into_iter().flatten().map(|l| report::lease(&s.ledger, l, s)))
            .collect();
        print(&format!("{:#}\n", serde_json::Value::Array(all)))?;
    } else {
        print(&report::leases(&samples))?;
    }
    // An empty list must not be taken for "no leases" when they could not be read.
    if unknown.is_empty() { Ok(()) } else { Err(Failure::failed(unknown.join("; "))) }
}
