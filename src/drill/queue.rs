//! The drill of the server's notification queue.

use super::bench::{Bench, Terms, all_done, setup};
use super::{DrillError, Verdict};
use crate::config::{Sampling, Thresholds};
use crate::ledger;
use crate::model::{Sample, SessionMark};
use crate::monitor::{self, Sampler};
use crate::pg::{Purpose, Session};

/// The queue holds 8 GB in a standard installation (manual: NOTIFY). The drill does not fill a tenth of
/// it, where the warning begins, but the 200th part of that.
const SCALE: f64 = 200.0;
/// About 8 kB each: twice the scaled threshold.
const NOTIFICATIONS: i64 = 1000;

pub(super) async fn listener_holds_queue(bench: &Bench<'_>) -> Result<Verdict, DrillError> {
    let thresholds = Thresholds { long_transaction_s: 1.0, ..Thresholds::default() };
    let limit = thresholds.queue_usage_warn / SCALE;
    let sampler = Sampler::connect(monitor::Setup {
        conninfo: bench.conninfo.clone(),
        profiles: vec![bench.ledger.profile().clone()],
        sampling: Sampling::default(),
        thresholds,
        read_only: None,
    })
    .await
    .map_err(setup)?;
    let sampler = tokio::sync::Mutex::new(sampler);
    let sample = async || Ok(sampler.lock().await.sample().await?.into_iter().next());
    let usage = |s: &Option<Sample>| s.as_ref().and_then(|s| s.vitals.queue_usage.current().copied());

    let worker = bench.work(Terms::default());
    bench.enqueue(1).await?;
    bench.wait(|t| t.done == 1).await?;
    let culprit = Session::connect(&bench.conninfo, Purpose::Listen).await.map_err(setup)?;
    let channel = bench.ledger.channel().unwrap_or_default();
    ledger::listen_in_transaction(&culprit, channel).await.map_err(setup)?;
    ledger::fill_queue(&bench.session, NOTIFICATIONS).await.map_err(setup)?;
    bench.enqueue(20).await?;
    bench.wait(|t| t.done == 21).await?;
    let full = |s: &Option<Sample>| usage(s).is_some_and(|u| u > limit) && !suspects(s).is_empty();
    let held = bench.until(sample, full).await.map_err(setup)?;
    let named = suspects(&held);

    let mut verdict = Verdict::default();
    let percent = |u: Option<f64>| u.map_or("unknown".to_owned(), |u| format!("{:.3} %", u * 100.0));
    verdict
        .expect(usage(&held).is_some_and(|u| u > limit), || "the usage should pass its limit".to_owned());
    verdict.expect(named == [culprit.pid()], || {
        format!("the suspect should be {} alone, not {named:?}", culprit.pid())
    });
    ledger::terminate(&bench.session, culprit.pid()).await.map_err(setup)?;
    let clear = |s: &Option<Sample>| usage(s).is_some_and(|u| u < limit) && suspects(s).is_empty();
    let after = bench.until(sample, clear).await.map_err(setup)?;
    verdict.expect(clear(&after), || "the end of that session should clear the queue".to_owned());
    verdict.evidence.push(format!(
        "queue usage {} with the session of pid {} in its transaction, {} after its end (limit {})",
        percent(usage(&held)),
        culprit.pid(),
        percent(usage(&after)),
        percent(Some(limit))
    ));
    let rest = bench.judge(vec![worker], all_done(21), Some(21)).await?;
    verdict.broken.extend(rest.broken);
    verdict.evidence.extend(rest.evidence);
    Ok(verdict)
}

/// Sessions that listen, as far as can be told, and have been in a transaction for long.
fn suspects(sample: &Option<Sample>) -> Vec<i32> {
    let sessions = sample.as_ref().and_then(|s| s.sessions.current());
    let is = |marks: &[SessionMark]| {
        marks.contains(&SessionMark::LongTransaction) && marks.contains(&SessionMark::ProbableListener)
    };
    sessions.into_iter().flatten().filter(|s| is(&s.marks)).map(|s| s.pid).collect()
}
