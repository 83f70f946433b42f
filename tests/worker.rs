//! The drain worker against a real server: what it finds, why, and what becomes of it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;
#[path = "support/work.rs"]
mod work;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pgwake::config;
use pgwake::ledger::Job;
use pgwake::model::{ClaimOutcome, Event, Listen, ScanReason, Sink, WorkerEvent};
use pgwake::pg::{Conninfo, Host, ListenConfig, Listener, Options};
use pgwake::worker::{self, HandlerError, Practice, Setup, Stop, WorkerError};
use support::{DEADLINE, wait_until};
use tokio::net::{TcpListener, UnixStream};
use work::{Bench, Do, Effects, Running, busy, profile, settings};

#[tokio::test]
async fn the_four_reasons_to_scan_are_counted_apart() {
    let bench = Bench::new().await;
    let effects = Effects::default();
    bench.enqueue(3).await;
    let fallback = Duration::from_secs(3);
    let worker = bench.start(config::Worker { fallback, ..settings() }, effects.handler()).await;
    bench.until_counter("found_startup", 3).await;
    bench.enqueue(2).await;
    bench.until_counter("found_notify", 2).await;
    // Inserted and cut off in one transaction: no wake-up, and nobody listens when it commits.
    let listener = bench.pids("listen").await[0];
    bench
        .run(&format!(
            "begin; insert into pgwake.jobs (job_type) values ('t'); select pg_terminate_backend({listener}); commit"
        ))
        .await;
    bench.until_counter("found_reconnect", 1).await;
    let before = Instant::now();
    bench.insert(4).await;
    bench.until_counter("found_fallback", 4).await;
    assert!(before.elapsed() < fallback + Duration::from_secs(2), "{:?}", before.elapsed());
    assert_eq!(bench.counter("found_timed").await, 0);
    bench.until_done(10).await;
    effects.assert_each_once(10);
    let reasons: Vec<ScanReason> = worker
        .worker_events()
        .into_iter()
        .filter_map(|e| match e {
            WorkerEvent::Drained { reason, jobs: 1.., .. } => Some(reason),
            _ => None,
        })
        .collect();
    assert_eq!(
        reasons,
        [ScanReason::Startup, ScanReason::Notify, ScanReason::Reconnect, ScanReason::Fallback]
    );
    let recovered = worker.count(|e| matches!(e, WorkerEvent::Recovered(r) if r.jobs == 1));
    assert_eq!(recovered, 1, "{:?}", worker.worker_events());
}

/// A way to the server on which every connection takes this much longer; returns its port.
async fn slow_way_to(conninfo: &Conninfo, delay: Duration) -> u16 {
    let (Host::Socket(dir), port) = conninfo.hosts[0].clone() else { panic!("not a socket") };
    let socket = dir.join(format!(".s.PGSQL.{port}"));
    let way = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = way.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = way.accept().await {
            tokio::time::sleep(delay).await;
            let mut far = UnixStream::connect(&socket).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        }
    });
    port
}

#[tokio::test]
async fn it_listens_before_the_first_scan_even_when_that_takes_a_while() {
    let bench = Bench::new().await;
    let port = slow_way_to(&bench.conninfo, Duration::from_millis(500)).await;
    let given =
        format!("host=127.0.0.1 port={port} user=postgres dbname={} sslmode=disable", bench.db.name);
    let given = Options { conninfo: Some(given), ..Options::default() };
    let slow = Conninfo::resolve(&given, &|_| None).unwrap();
    let (stop, ear) = Stop::new();
    let events: Arc<Mutex<Vec<Event>>> = Arc::default();
    let told = events.clone();
    let sink: Arc<dyn Sink> = Arc::new(move |event: Event| told.lock().unwrap().push(event));
    let config = ListenConfig::new(slow, vec!["pgwake_work".to_owned()]).unwrap();
    let listener = Arc::new(Listener::start(config, sink.clone()));
    let handler = Effects::default().handler();
    let worker = tokio::spawn(worker::run(bench.setup(settings()), handler, Some(listener), sink, ear));
    let at = |which: fn(&Event) -> bool| events.lock().unwrap().iter().position(which);
    let claim = |e: &Event| matches!(e, Event::Worker(WorkerEvent::Claim { .. }));
    let scanned = wait_until("it scans", DEADLINE, async || at(claim)).await;
    let listening = at(|e| matches!(e, Event::Listen(Listen::Up { .. })));
    assert!(listening.is_some_and(|at| at < scanned), "{:?}", events.lock().unwrap());
    stop.stop();
    worker.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_storm_of_wakeups_makes_a_bounded_number_of_claims() {
    let bench = Bench::new().await;
    let debounce = Duration::from_millis(200);
    let worker = bench.start(config::Worker { debounce, ..settings() }, Effects::default().handler()).await;
    let claims = |w: &Running| w.count(|e| matches!(e, WorkerEvent::Claim { .. }));
    let (before, began) = (claims(&worker), Instant::now());
    for _ in 0..300 {
        bench.run("notify pgwake_work, 'ready'").await;
    }
    bench.until_counter("wakeups", 300).await;
    let drained = |e: &WorkerEvent| matches!(e, WorkerEvent::Drained { reason: ScanReason::Notify, .. });
    worker.until("they are answered", drained).await;
    let most = (began.elapsed().as_millis() / 100) as usize + 1;
    let made = claims(&worker) - before;
    assert!((1..=most).contains(&made), "{made} claims, {most} allowed");
}

#[tokio::test]
async fn eager_answers_the_first_wakeup_at_once_and_folds_those_that_follow() {
    let bench = Bench::new().await;
    // Without eager, the shortest wait would be half of this.
    let debounce = Duration::from_millis(1000);
    let s = config::Worker { eager: true, debounce, ..settings() };
    let worker = bench.start(s, Effects::default().handler()).await;
    // The quiet spell that is meant.
    tokio::time::sleep(debounce + Duration::from_millis(100)).await;
    bench.enqueue(1).await;
    bench.until_counter("found_notify", 1).await;
    let waited: f64 = bench.text("select wake_p99_ms from pgwake.workers").await.parse().unwrap();
    assert!(waited < 400.0, "{waited} ms");
    for _ in 0..3 {
        bench.enqueue(1).await;
    }
    bench.until_done(4).await;
    let drains = |e: &WorkerEvent| matches!(e, WorkerEvent::Drained { reason: ScanReason::Notify, .. });
    worker.until("the second drain", |_| worker.count(drains) >= 2).await;
    assert_eq!(worker.count(drains), 2, "one at once, and one for the other three");
}

#[tokio::test]
async fn a_scheduled_job_is_found_when_it_is_due_and_no_wakeup_is_missed_for_it() {
    let bench = Bench::new().await;
    let _worker = bench.start(settings(), Effects::default().handler()).await;
    bench.run("select pgwake.enqueue('t', '{}', now() + interval '1.5 s')").await;
    bench.until_done(1).await;
    let late =
        "select count(*) from pgwake.jobs where finished_at between run_at and run_at + interval '3 s'";
    assert_eq!(bench.number(late).await, 1, "neither early nor at the fallback scan");
    bench.until_counter("found_timed", 1).await;
    assert_eq!(bench.counter("found_fallback").await, 1);
    assert_eq!(bench.counter("found_notify").await, 0);
}

#[tokio::test]
async fn a_message_is_not_called_found_by_fallback_when_another_ledgers_wakeup_came_first() {
    let bench = Bench::new().await;
    let setup = Setup {
        profiles: vec![profile("jobs"), profile("outbox")],
        ..bench.setup(config::Worker { debounce: Duration::from_millis(100), ..settings() })
    };
    let worker = Running::start(setup, Effects::default().handler());
    // The startup scan of both is over: what it found would be called so.
    worker
        .until(
            "the first drain",
            |e| matches!(e, WorkerEvent::Drained { ledger, .. } if ledger == "outbox"),
        )
        .await;
    for n in 1..=20 {
        bench.run("select pgwake.publish('t', null)").await;
        bench.run("select pgwake.enqueue('t')").await;
        let sent = "select count(*) from pgwake.outbox where status = 'SENT'";
        bench.until(n, "the message is sent", sent).await;
    }
    wait_until("all are counted", DEADLINE, async || {
        (bench.counter_of("outbox", "found_notify + found_fallback").await == 20).then_some(())
    })
    .await;
    // One may be seen before its wake-up, which is on its way.
    let missed = bench.counter_of("outbox", "found_fallback").await;
    assert!(missed <= 1, "{missed} of 20");
}

#[tokio::test]
async fn jobs_that_others_held_locked_keep_the_reason_for_which_they_were_looked_for() {
    let bench = Bench::new().await;
    let worker = bench.start(settings(), Effects::default().handler()).await;
    let other = bench.db.connect().await;
    bench.insert(1).await;
    other.batch_execute("begin; select 1 from pgwake.jobs for update").await.unwrap();
    bench.run("notify pgwake_work, 'ready'").await;
    let contended =
        |e: &WorkerEvent| matches!(e, WorkerEvent::Claim { outcome: ClaimOutcome::Contended, .. });
    worker.until("a contended claim", contended).await;
    other.batch_execute("commit").await.unwrap();
    bench.until_done(1).await;
    bench.until_counter("found_notify", 1).await;
    assert_eq!(bench.counter("found_fallback").await, 0);
}

#[tokio::test]
async fn an_idle_worker_costs_next_to_nothing_with_and_without_a_channel() {
    for channel in [true, false] {
        let bench = Bench::new().await;
        let mut setup = bench.setup(config::Worker { heartbeat: Duration::from_secs(5), ..settings() });
        if !channel {
            setup.profiles[0].channel = None;
        }
        let worker = Running::start(setup, Effects::default().handler());
        worker.until("the first drain", |e| matches!(e, WorkerEvent::Drained { .. })).await;
        let before = busy();
        // The span that is measured.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let spent = busy() - before;
        assert!(spent <= Duration::from_millis(100), "{spent:?} of 1 s, channel: {channel}");
    }
}

#[tokio::test]
async fn a_long_job_keeps_its_lease_and_runs_once() {
    let bench = Bench::new().await;
    bench.insert(1).await;
    let effects = Effects::default();
    let ran = effects.clone();
    let long = Do(move |job: Job| {
        ran.add(job.id);
        async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            Ok(())
        }
    });
    let setup = bench.setup(config::Worker { lease: Duration::from_secs(1), ..settings() });
    let worker = Running::start(setup, long);
    let mut expiries = std::collections::BTreeSet::new();
    wait_until("the job ends", DEADLINE, async || {
        let expiry = bench.text("select coalesce(max(locked_until)::text, '') from pgwake.jobs").await;
        if !expiry.is_empty() {
            expiries.insert(expiry);
        }
        (bench.number("select count(*) from pgwake.jobs where status = 'done'").await == 1).then_some(())
    })
    .await;
    assert!(expiries.len() > 3, "renewed {} times", expiries.len() - 1);
    assert_eq!(bench.number("select attempts from pgwake.jobs").await, 1);
    effects.assert_each_once(1);
    assert_eq!(worker.stop().await.lost, 0);
}

/// Says so when it is dropped.
struct OnDrop(Effects, &'static str);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.add(self.1);
    }
}

#[tokio::test]
async fn a_lost_lease_stops_the_handler_and_nothing_is_overwritten() {
    let bench = Bench::new().await;
    bench.insert(1).await;
    let effects = Effects::default();
    let ran = effects.clone();
    let endless = Do(move |_| {
        let guard = OnDrop(ran.clone(), "stopped");
        ran.add("began");
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    });
    let setup = bench.setup(config::Worker { lease: Duration::from_secs(2), ..settings() });
    let worker = Running::start(setup, endless);
    wait_until("the job begins", DEADLINE, async || (effects.len() == 1).then_some(())).await;
    bench
        .run(
            "update pgwake.jobs set locked_by = 'another', lease_token = '11111111-1111-4111-8111-111111111111', \
             locked_until = now() + interval '1 hour'",
        )
        .await;
    wait_until("the handler is stopped", DEADLINE, async || (effects.len() == 2).then_some(())).await;
    assert_eq!(effects.all(), ["began", "stopped"]);
    worker.until("it is told", |e| matches!(e, WorkerEvent::Lost { what, .. } if what == "renew")).await;
    let summary = worker.stop().await;
    assert_eq!((summary.lost, summary.done, summary.given_back), (1, 0, 0));
    let holder = "select locked_by || lease_token::text from pgwake.jobs where status = 'running'";
    assert_eq!(bench.text(holder).await, "another11111111-1111-4111-8111-111111111111");
}

#[tokio::test]
async fn a_late_end_of_a_lost_job_changes_nothing_and_is_counted_as_lost() {
    let bench = Bench::new().await;
    bench.insert(1).await;
    let taken = bench.db.connect().await;
    let taken = Arc::new(taken);
    let late = Do(move |_| {
        let taken = taken.clone();
        async move {
            let thief = "update pgwake.jobs set locked_by = 'another', lease_token = gen_random_uuid()";
            taken.batch_execute(thief).await.unwrap();
            Ok(())
        }
    });
    let worker = Running::start(bench.setup(settings()), late);
    worker.until("it is told", |e| matches!(e, WorkerEvent::Lost { what, .. } if what == "done")).await;
    assert_eq!(bench.text("select status || ' ' || locked_by from pgwake.jobs").await, "running another");
    let summary = worker.stop().await;
    assert_eq!((summary.lost, summary.done), (1, 0));
}

#[tokio::test]
async fn a_panic_is_a_failed_attempt_with_its_text_and_the_worker_goes_on() {
    let bench = Bench::new().await;
    bench.insert(1).await;
    let tries = Arc::new(AtomicUsize::new(0));
    let fragile = Do(move |_| {
        let tries = tries.clone();
        async move {
            assert!(tries.fetch_add(1, Ordering::Relaxed) > 0, "a loose wire");
            Ok(())
        }
    });
    let worker = bench.start(settings(), fragile).await;
    bench.until_done(1).await;
    assert_eq!(
        bench.text("select last_error from pgwake.jobs").await,
        "the handler panicked: a loose wire"
    );
    let summary = worker.stop().await;
    assert_eq!((summary.done, summary.failed), (1, 1));
}

#[tokio::test]
async fn failed_attempts_back_off_and_finally_the_job_is_given_up() {
    let bench = Bench::new().await;
    bench.insert(1).await;
    let runs: Arc<std::sync::Mutex<Vec<Instant>>> = Arc::default();
    let ran = runs.clone();
    let hopeless = Do(move |_| {
        ran.lock().unwrap().push(Instant::now());
        std::future::ready(Err(HandlerError::new("no luck")))
    });
    let s = config::Worker {
        backoff: Duration::from_millis(100),
        backoff_max: Duration::from_millis(400),
        ..settings()
    };
    let worker = bench.start(s, hopeless).await;
    bench.until(1, "it is given up", "select count(*) from pgwake.jobs where status = 'failed'").await;
    assert_eq!(bench.text("select attempts || ' ' || last_error from pgwake.jobs").await, "5 no luck");
    let runs = runs.lock().unwrap().clone();
    let pauses: Vec<u128> = runs.windows(2).map(|w| (w[1] - w[0]).as_millis()).collect();
    assert_eq!(pauses.len(), 4);
    for (pause, least) in pauses.iter().zip([100, 200, 400, 400]) {
        assert!(*pause >= least, "{pauses:?}");
    }
    assert_eq!(worker.stop().await.failed, 5);
}

#[tokio::test]
async fn on_stop_jobs_end_within_the_grace_time_and_the_rest_is_given_back() {
    let bench = Bench::new().await;
    bench.insert(6).await;
    let effects = Effects::default();
    let ran = effects.clone();
    let mixed = Do(move |job: Job| {
        ran.add(job.id.clone());
        async move {
            if job.id.parse::<i64>().unwrap() > 2 {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok(())
        }
    });
    let s = config::Worker { concurrency: 4, grace: Duration::from_secs(1), ..settings() };
    let worker = Running::start(bench.setup(s), mixed);
    wait_until("four are in hand", DEADLINE, async || (effects.len() == 4).then_some(())).await;
    bench.until(1, "the worker has a row", "select count(*) from pgwake.workers").await;
    let began = Instant::now();
    let summary = worker.stop().await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!((summary.done, summary.given_back), (2, 2));
    assert_eq!(bench.number("select count(*) from pgwake.jobs where status = 'running'").await, 0);
    assert_eq!(bench.number("select count(*) from pgwake.jobs where status = 'ready'").await, 4);
    assert_eq!(bench.number("select count(*) from pgwake.workers").await, 0);
    assert_eq!(effects.len(), 4, "nothing is claimed after the stop");
}

#[tokio::test]
async fn what_was_committed_while_no_worker_ran_is_done_each_once_and_then_it_ends() {
    let bench = Bench::new().await;
    bench.enqueue(100).await;
    let effects = Effects::default();
    let setup = Setup { until_empty: true, ..bench.setup(settings()) };
    let summary = Running::start(setup, effects.handler()).task.await.unwrap().unwrap();
    assert_eq!((summary.done, summary.failed, summary.lost, summary.given_back), (100, 0, 0, 0));
    let once = "select count(*) from pgwake.jobs where status = 'done' and attempts = 1";
    assert_eq!(bench.number(once).await, 100);
    effects.assert_each_once(100);
}

#[tokio::test]
async fn two_workers_share_the_jobs_and_none_runs_twice() {
    let bench = Bench::new().await;
    bench.insert(300).await;
    let effects = Effects::default();
    let start = |name: &str| {
        let setup = Setup { name: name.to_owned(), until_empty: true, ..bench.setup(settings()) };
        Running::start(setup, effects.handler())
    };
    let (one, other) = (start("one"), start("other"));
    let (one, other) = (one.task.await.unwrap().unwrap(), other.task.await.unwrap().unwrap());
    assert_eq!(one.done + other.done, 300);
    effects.assert_each_once(300);
}

#[tokio::test]
async fn a_handler_that_does_no_work_is_refused_on_a_ledger_that_is_not_scratch() {
    let bench = Bench::new().await;
    bench.insert(1).await;
    for practice in [Practice::Noop, Practice::Simulate { pace: 100 }] {
        let worker = Running::start(bench.setup(settings()), practice);
        let ended = tokio::time::timeout(DEADLINE, worker.task).await.expect("it does not begin to work");
        let refused = ended.unwrap().unwrap_err();
        assert!(matches!(&refused, WorkerError::NotScratch(ledger) if ledger == "jobs"), "{refused}");
    }
    assert_eq!(bench.number("select count(*) from pgwake.jobs where status = 'ready'").await, 1);
}
