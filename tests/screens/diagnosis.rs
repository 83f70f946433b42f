//! One test per rule of the second head line, and one for their order.

use std::time::Duration;

use pgwake::app::diagnosis::{Diagnosis, Rule};
use pgwake::app::health::Level;
use pgwake::app::{App, WorkerSetup};
use pgwake::model::*;

use crate::fixtures::*;

/// Thirty samples of `change`, the last one at the end.
fn told(change: impl Fn(u64, &mut Sample)) -> App {
    told_with(connected(setup()), change)
}

fn told_with(mut app: App, change: impl Fn(u64, &mut Sample)) -> App {
    for t in END - 30..=END {
        let mut s = quiet(t);
        change(t, &mut s);
        send(&mut app, t as f64, Event::Sample(Box::new(s)));
    }
    app
}

fn say(app: &App) -> Diagnosis {
    app.diagnosis(end())
}

/// 1,204 ready jobs, a live worker, nothing done.
fn backlog(t: u64, s: &mut Sample) {
    let at = s.taken_at;
    s.counts.ready = Reading::exact(1_204, at);
    s.vitals.oldest_ready = Reading::exact(Some(252.0), at);
    s.workers = Reading::exact(vec![worker_row("w-1", t, 1)], at);
}

#[test]
fn a_lost_connection_is_told_with_its_reason_and_the_next_attempt() {
    let d = say(&lost());
    assert_eq!((d.rule, d.level), (Rule::Disconnected, Level::Critical));
    assert_eq!(d.headline, "disconnected 29s");
    assert!(d.detail.starts_with("next attempt in 5s · "), "{}", d.detail);
    assert!(d.detail.ends_with("connection refused"), "the reason is what is cut first: {}", d.detail);
}

#[test]
fn before_the_first_sample_nothing_is_claimed() {
    let d = say(&connected(setup()));
    assert_eq!((d.rule, d.level), (Rule::NotYet, Level::Unknown));
    assert_eq!(say(&connecting()).headline, "connecting");
}

#[test]
fn old_numbers_are_called_stale_and_not_explained() {
    let app = told(backlog);
    let later = now_at(END as f64 + 14.0);
    let d = app.diagnosis(later);
    assert_eq!(d.rule, Rule::Stale);
    assert!(d.detail.starts_with("last sample 14s ago"), "{}", d.detail);
}

#[test]
fn a_stretched_interval_makes_no_sample_stale() {
    let app = told(|t, s| {
        backlog(t, s);
        s.cost.effective_ms = 10_000;
    });
    assert_ne!(app.diagnosis(now_at(END as f64 + 14.0)).rule, Rule::Stale);
}

#[test]
fn a_table_that_is_locked_against_readers_is_told() {
    let d = say(&told(|_, s| s.counts.ready = Reading::unknown(Trouble::Locked)));
    assert_eq!(d.rule, Rule::TableLocked);
}

#[test]
fn an_unknown_count_is_not_an_empty_ledger() {
    let d = say(&told(|_, s| s.counts.ready = Reading::unknown(Trouble::NoPrivilege)));
    assert_eq!((d.rule, d.level), (Rule::CannotTell, Level::Unknown));
    assert!(d.detail.contains("no privilege"));
}

#[test]
fn an_empty_ledger_is_fine() {
    let d = say(&told(|_, s| s.next_scheduled = Reading::exact(Some(12.0), s.taken_at)));
    assert_eq!((d.rule, d.level), (Rule::NothingDue, Level::Ok));
    assert_eq!((d.headline.as_str(), d.detail.as_str()), ("nothing due", "next scheduled in 12.0s"));
}

#[test]
fn what_is_wrong_beside_a_good_answer_stands_at_its_head() {
    let mut app = calm();
    let loss = Loss { sqlstate: Some("57P01".into()), message: "terminating connection".into() };
    send(&mut app, END as f64, Event::Listen(Listen::Down { loss, up_ms: 1000 }));
    let d = say(&app);
    assert_eq!((d.rule, d.level), (Rule::NothingDue, Level::Warn));
    assert_eq!(d.headline, "keeping up, but not listening: polling");

    let d = say(&told(|_, s| s.vitals.queue_usage = Reading::exact(0.36, s.taken_at)));
    assert_eq!((d.rule, d.level), (Rule::NothingDue, Level::Critical));
    assert_eq!(d.headline, "nothing due, but queue usage 36.0%");
}

#[test]
fn work_that_never_waits_is_keeping_up() {
    let d = say(&calm());
    assert_eq!(d.headline, "keeping up");
    assert_eq!(d.detail, "3.0/s in · 3.0/s done · 2 jobs in hand · next scheduled in 12.0s");
}

#[test]
fn work_that_waits_for_nobody_is_told_with_the_key_that_helps() {
    let alone = |_: u64, s: &mut Sample| {
        backlog(0, s);
        s.workers = Reading::exact(Vec::new(), s.taken_at);
    };
    let d = say(&told(alone));
    assert_eq!((d.rule, d.level), (Rule::NoWorker, Level::Critical));
    assert_eq!(d.detail, "1,204 ready waiting · oldest 4m12s");
    let mut with = setup();
    with.worker = WorkerSetup::Available { handler: "simulate".into() };
    assert!(say(&told_with(connected(with), alone)).detail.ends_with("w starts one here"));
}

#[test]
fn a_worker_that_does_not_report_shows_by_what_it_does() {
    let d = say(&told(|_, s| {
        backlog(0, s);
        s.workers = Reading::exact(Vec::new(), s.taken_at);
        s.flow.done = Reading::exact(5.0, s.taken_at);
    }));
    assert_ne!(d.rule, Rule::NoWorker);
    let d = say(&told(|_, s| {
        backlog(0, s);
        s.workers = Reading::unknown(Trouble::Missing);
    }));
    assert_ne!(d.rule, Rule::NoWorker);
}

#[test]
fn workers_that_all_wait_for_their_window_are_paused_by_budget() {
    let paused = |both: bool| {
        told(move |t, s| {
            backlog(t, s);
            let mut rows = vec![worker_row("w-1", t, 1), worker_row("w-2", t, 1)];
            rows[0].budget = BudgetState::Waiting;
            rows[1].budget = if both { BudgetState::Waiting } else { BudgetState::Open };
            s.workers = Reading::exact(rows, s.taken_at);
        })
    };
    assert_eq!(say(&paused(true)).rule, Rule::Budget);
    assert_ne!(say(&paused(false)).rule, Rule::Budget);
}

#[test]
fn ready_rows_that_others_hold_locked_are_told_with_the_likely_pid() {
    let d = say(&told(|t, s| {
        backlog(t, s);
        s.vitals.claim_success = Reading::exact(Some(0.12), s.taken_at);
        s.sessions = Reading::exact(
            vec![Session {
                pid: 4711,
                user: "etl".into(),
                application: "psql".into(),
                state: Some("idle in transaction".into()),
                wait: None,
                transaction_age: Some(252.0),
                query: None,
                marks: vec![SessionMark::LongTransaction],
                ..Session::default()
            }],
            s.taken_at,
        );
    }));
    assert_eq!(d.rule, Rule::Contended);
    assert_eq!(d.detail, "1,204 ready · claim success 12.0% · perhaps pid 4711, transaction 4m12s");
}

#[test]
fn jobs_in_hand_of_which_none_is_finished_are_told_with_the_time() {
    let d = say(&stuck());
    assert_eq!(d.rule, Rule::NothingFinishes);
    assert_eq!(d.detail, "11 jobs in hand · none finished for 1m40s · oldest 1m40s · queue usage 13.0%");
}

#[test]
fn work_that_only_the_fallback_finds_means_that_wakeups_do_not_arrive() {
    let d = say(&told(|t, s| {
        backlog(t, s);
        s.flow.done = Reading::exact(5.0, s.taken_at);
        s.vitals.fallback_share = Reading::exact(Some(0.92), s.taken_at);
    }));
    assert_eq!(d.rule, Rule::WakeupsMissing);
    assert!(d.detail.starts_with("92.0% of the jobs found by fallback"));
}

#[test]
fn producers_behind_the_notify_lock_are_told_even_when_nothing_is_due() {
    let d = say(&told(|_, s| {
        s.notify_lock = Reading::exact(
            NotifyLock { holder: Some(4711), waiters: 3, ..NotifyLock::default() },
            s.taken_at,
        );
    }));
    assert_eq!(d.rule, Rule::NotifyLock);
    assert_eq!(d.detail, "pid 4711 holds the NOTIFY commit lock · 3 wait");
}

#[test]
fn leases_that_stay_expired_longer_than_a_fallback_interval_are_told_with_their_holder() {
    let d = say(&busy());
    assert_eq!((d.rule, d.level), (Rule::HolderDead, Level::Warn));
    assert_eq!(d.headline, "2 leases expired");
    assert!(d.detail.contains("mail-worker-7 last seen 4m ago"), "{}", d.detail);
}

#[test]
fn a_lease_that_has_just_expired_is_no_news_while_work_gets_done() {
    let d = say(&told(|t, s| {
        backlog(t, s);
        s.flow.done = Reading::exact(5.0, s.taken_at);
        hold(s, vec![lease(t, 1, "w-1", 125, -5)], &[]);
    }));
    assert_eq!(d.rule, Rule::Draining);
}

#[test]
fn expired_leases_behind_older_jobs_wait_their_turn_in_the_one_order() {
    let with = |oldest: f64| {
        say(&told(move |t, s| {
            backlog(t, s);
            s.vitals.oldest_ready = Reading::exact(Some(oldest), s.taken_at);
            s.flow.done = Reading::exact(5.0, s.taken_at);
            hold(s, vec![lease(t, 1, "w-1", 300, -120)], &[]);
        }))
    };
    assert_eq!(with(121.0).rule, Rule::Draining);
    assert_eq!(with(119.0).rule, Rule::HolderDead);
}

#[test]
fn draining_gives_rates_and_the_time_to_empty() {
    let with = |arrived: f64, done: f64, oldest: f64| {
        say(&told(move |t, s| {
            backlog(t, s);
            s.vitals.oldest_ready = Reading::exact(Some(oldest), s.taken_at);
            s.flow.arrived = Reading::exact(arrived, s.taken_at);
            s.flow.done = Reading::exact(done, s.taken_at);
        }))
    };
    let d = with(100.0, 401.0, 0.4);
    assert_eq!((d.rule, d.level, d.headline.as_str()), (Rule::Draining, Level::Ok, "draining"));
    assert_eq!(d.detail, "100/s in · 401/s done · oldest 0.4s · empty in <10s");
    let d = with(100.0, 110.0, 0.4);
    assert!(d.detail.ends_with("empty in ~3m"), "two minutes and a bit, in steps: {}", d.detail);
    let d = with(100.0, 102.0, 0.4);
    assert!(!d.detail.contains("empty in"), "a difference within the noise is no forecast: {}", d.detail);
    let d = with(401.0, 100.0, 20.0);
    assert_eq!((d.level, d.headline.as_str()), (Level::Warn, "falling behind"));
    assert!(d.detail.ends_with("grows by 301/s"), "{}", d.detail);
    let burst = with(401.0, 100.0, 0.4);
    assert_eq!((burst.level, burst.headline.as_str()), (Level::Ok, "draining"), "nothing waits long");
    assert!(burst.detail.ends_with("grows by 301/s"), "{}", burst.detail);
}

#[test]
fn work_that_waits_for_a_reason_nobody_knows_is_not_called_fine() {
    let d = say(&told(backlog));
    assert_eq!((d.rule, d.level), (Rule::Waiting, Level::Unknown));
}

/// Every trouble at once; taking the first one away lets the next one speak.
#[test]
fn the_rules_answer_in_their_order() {
    let order = [
        Rule::Stale,
        Rule::NoWorker,
        Rule::Budget,
        Rule::Contended,
        Rule::NothingFinishes,
        Rule::WakeupsMissing,
        Rule::NotifyLock,
        Rule::HolderDead,
        Rule::Draining,
    ];
    let got: Vec<Rule> = (0..order.len())
        .map(|cured| {
            let app = told(|t, s| {
                let at = s.taken_at;
                backlog(t, s);
                let mut row = worker_row("w-1", t, if cured > 1 { 1 } else { 60 });
                row.budget = if cured > 2 { BudgetState::Open } else { BudgetState::Waiting };
                s.workers = Reading::exact(vec![row], at);
                s.vitals.claim_success = Reading::exact(Some(if cured > 3 { 1.0 } else { 0.1 }), at);
                s.flow.done = Reading::exact(if cured > 4 { 5.0 } else { 0.0 }, at);
                s.vitals.fallback_share = Reading::exact(Some(if cured > 5 { 0.0 } else { 0.9 }), at);
                let waiters = if cured > 6 { 0 } else { 3 };
                s.notify_lock =
                    Reading::exact(NotifyLock { holder: Some(1), waiters, ..NotifyLock::default() }, at);
                let mut held = Vec::new();
                if cured <= 7 {
                    held.push(lease(t, 1, "dead", 900, -600));
                }
                if cured > 1 {
                    held.push(lease(t, 2, "w-1", 10, 100));
                }
                hold(s, held, &[]);
            });
            let late = if cured > 0 { Duration::ZERO } else { Duration::from_secs(14) };
            let mut now = end();
            now.mono += late;
            app.diagnosis(now).rule
        })
        .collect();
    assert_eq!(got, order);
}
