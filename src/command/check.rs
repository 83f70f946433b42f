//! `pgwake check`: one line for a monitoring system, and its exit codes.

use tokio::time::timeout;

use super::{Failure, Outcome, monitor_setup, print};
use crate::cli::{Check, Connect};
use crate::monitor::Sampler;
use crate::report::check::{State, Wanted, check, line};

pub(super) async fn run(connect: &Connect, args: Check) -> Outcome {
    let (state, said) = match timeout(args.timeout, looked(connect, &args)).await {
        Ok(Ok(found)) => found,
        Ok(Err(failure)) => (State::Unknown, line(State::Unknown, &failure.line)),
        Err(_) => {
            let why = format!("no answer within {} s", args.timeout.as_secs_f64());
            (State::Unknown, line(State::Unknown, &why))
        }
    };
    print(&format!("{said}\n"))?;
    match state.code() {
        0 => Ok(()),
        code => Err(Failure::said(code)),
    }
}

async fn looked(connect: &Connect, args: &Check) -> Result<(State, String), Failure> {
    let setup = monitor_setup(connect, args.conninfo.clone())?;
    let limits = setup.thresholds;
    let mut sampler = Sampler::connect(setup).await.map_err(Failure::failed)?;
    let samples = sampler.sample().await.map_err(|e| Failure::failed(e.loss()))?;
    let wanted = Wanted { warning: args.warning.clone(), critical: args.critical.clone() };
    Ok(check(&samples, &limits, &wanted))
}
