//! `pgwake status`: one sample for pipes and cron.

use tokio::time::sleep;

use super::{Failure, Outcome, monitor_setup, print, settings};
use crate::app::alerts::Boards;
use crate::cli::{Connect, Status};
use crate::monitor::Sampler;
use crate::report;

pub(super) async fn run(connect: &Connect, args: Status) -> Outcome {
    let mut setup = monitor_setup(connect, args.conninfo)?;
    let fallback_s = settings::load(connect)?.settings.worker.fallback.as_secs_f64();
    let mut boards = Boards::new(setup.thresholds, fallback_s);
    setup.sampling.interval = args.interval;
    let mut sampler = Sampler::connect(setup).await.map_err(Failure::failed)?;
    loop {
        let samples = sampler.sample().await.map_err(|e| Failure::failed(e.loss()))?;
        for sample in &samples {
            boards.observe(sample);
        }
        let text = if args.json {
            // With --watch one object a line, so that a reader can take them one by one.
            let value = report::status(sampler.server(), &samples, &boards);
            if args.watch { value.to_string() } else { format!("{value:#}") }
        } else {
            report::status_text(sampler.server(), &samples)
        };
        print(&format!("{}\n", text.trim_end()))?;
        if !args.watch {
            return Ok(());
        }
        sleep(args.interval).await;
    }
}
