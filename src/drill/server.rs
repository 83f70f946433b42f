//! Drills that break the server.

use std::time::{Duration, Instant};

use super::bench::{Bench, Terms, all_done};
use super::{DrillError, Verdict};
use crate::demo::Halt;

const JOBS: u64 = 400;

pub(super) async fn server_restarted(bench: &mut Bench<'_>) -> Result<Verdict, DrillError> {
    bench.enqueue(JOBS as usize).await?;
    // Ends that were not recorded come again when their leases are over.
    let worker = bench.work(Terms {
        lease: Duration::from_secs(5),
        fallback: Duration::from_secs(2),
        takes: Duration::from_millis(50),
        ..Terms::default()
    });
    let mut verdict = Verdict::default();
    for (how, from) in [(Halt::Fast, 50), (Halt::Immediate, 150)] {
        let before = bench.wait(|t| t.done >= from).await?;
        verdict.expect(before.done < JOBS, || format!("the {how:?} restart came after the drain"));
        let began = Instant::now();
        bench
            .server(move |server| match how {
                Halt::Fast => server.restart_fast(),
                Halt::Immediate => server.restart_immediate(),
            })
            .await?;
        let up = began.elapsed();
        bench.connect_again().await?;
        // More than were in hand.
        let enough = (before.done + 20).min(JOBS);
        let after = bench.wait(|t| t.done >= enough).await?;
        verdict.expect(after.done >= enough, || {
            format!(
                "work should go on after the {how:?} restart: {} done, then {}",
                before.done, after.done
            )
        });
        if !verdict.broken.is_empty() {
            break;
        }
        verdict.recovered(began.elapsed());
        verdict.evidence.push(format!(
            "{how:?} restart at {} done: the server was back after {:.1} s, work after {:.1} s",
            before.done,
            up.as_secs_f64(),
            began.elapsed().as_secs_f64()
        ));
    }
    if verdict.broken.is_empty() {
        bench.wait(|t| t.done == JOBS).await?;
    }
    let rest = bench.judge(vec![worker], all_done(JOBS), None).await?;
    verdict.broken.extend(rest.broken);
    verdict.evidence.extend(rest.evidence);
    Ok(verdict)
}
