//! The sampling session on a server that answers slowly.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use pgwake::config::{Sampling, Thresholds};
use pgwake::model::Trouble;
use pgwake::monitor::{Sampler, Setup};
use pgwake::profile::builtin;
use support::ledger::{conninfo, migrated, run};

#[tokio::test]
async fn where_every_figure_of_three_ledgers_times_out_each_says_so_and_the_session_is_kept() {
    let db = migrated().await;
    let client = db.connect().await;
    run(&client, "insert into pgwake.jobs (job_type) select 't' from generate_series(1, 20)").await;
    let mut profiles = Vec::new();
    for n in 1..=3 {
        let view = format!("slow_{n}");
        run(
            &client,
            &format!(
                "create view public.{view} as select * from pgwake.jobs where pg_sleep(1) is not null"
            ),
        )
        .await;
        let mut profile = builtin("jobs").unwrap().unwrap();
        profile.schema = "public".into();
        profile.name.clone_from(&view);
        profile.table = view;
        profiles.push(profile);
    }
    let setup = Setup {
        conninfo: conninfo(db.conninfo()),
        profiles,
        sampling: Sampling::default(),
        thresholds: Thresholds::default(),
        read_only: None,
    };
    let mut sampler = Sampler::connect(setup).await.unwrap();
    for _ in 0..2 {
        let samples = sampler.sample().await.unwrap();
        assert_eq!(samples.len(), 3);
        for sample in &samples {
            assert_eq!(sample.counts.ready.trouble(), Some(&Trouble::TimedOut));
            assert_eq!(sample.counts.ready.value(), None, "and not zero");
            assert!(sample.vitals.queue_usage.current().is_some(), "the others are read");
            assert!(sample.cost.effective_ms > sample.cost.interval_ms, "asked less often");
        }
    }
}
