//! `pgwake status`: one sample for pipes and cron.

use std::time::Instant;

use tokio::time::sleep;

use super::{Failure, Outcome, monitor_setup, print, settings};
use crate::app::alerts::Boards;
use crate::cli::{Connect, Status};
use crate::monitor::{Sampler, Slow};
use crate::report;

pub(super) async fn run(connect: &Connect, args: Status) -> Outcome {
    let mut setup = monitor_setup(connect, args.conninfo)?;
    let fallback_s = settings::load(connect)?.settings.worker.fallback.as_secs_f64();
    let mut boards = Boards::new(setup.thresholds, fallback_s);
    setup.sampling.interval = args.interval;
    let mut slow = Slow::new(setup.clone());
    let (mut backlogs, mut looked) = (Vec::new(), None::<Instant>);
    let rarely = setup.sampling.slow;
    let mut sampler = Sampler::connect(setup).await.map_err(Failure::failed)?;
    loop {
        let samples = sampler.sample().await.map_err(|e| Failure::failed(e.loss()))?;
        for sample in &samples {
            boards.observe(sample);
        }
        // a lane that fails leaves its figures out; what was read before is told with its time
        if looked.is_none_or(|at| at.elapsed() >= rarely) {
            backlogs = slow.pass().await.unwrap_or(backlogs);
            looked = Some(Instant::now());
        }
        let text = if args.json {
            // With --watch one object a line, so that a reader can take them one by one.
            let value = report::status(sampler.server(), &samples, &backlogs, &boards);
            if args.watch { value.to_string() } else { format!("{value:#}") }
        } else {
            report::status_text(sampler.server(), &samples, &backlogs)
        };
        print(&format!("{}\n", text.trim_end()))?;
        if !args.watch {
            return Ok(());
        }
        sleep(args.interval).await;
    }
}
