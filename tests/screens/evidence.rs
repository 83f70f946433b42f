//! What holds the queue: the line that names it, the tree of waits, and the questions before a session ends.

use pgwake::app::diagnosis::Rule;
use pgwake::app::dialog::Dialog;
use pgwake::app::health::Level;
use pgwake::app::{App, Msg, update};
use pgwake::config::keys::Key;
use pgwake::model::*;

use crate::fixtures::*;

/// A quiet queue with a live worker, changed.
fn with(change: impl Fn(&mut Sample)) -> App {
    let mut app = connected(setup());
    for t in END - 3..=END {
        let mut s = quiet(t);
        s.workers = Reading::exact(vec![worker_row("w-1", t, 1)], s.taken_at);
        change(&mut s);
        send(&mut app, t as f64, Event::Sample(Box::new(s)));
    }
    app
}

fn due(s: &mut Sample) {
    s.counts.ready = Reading::exact(40, s.taken_at);
    s.vitals.oldest_ready = Reading::exact(Some(30.0), s.taken_at);
}

#[test]
fn a_table_behind_an_alter_is_told_with_who_waits_and_for_whom() {
    let lock = |granted, mode: &str, seconds| TableLock {
        pid: Some(4711),
        application: "migration".into(),
        granted,
        mode: mode.into(),
        seconds: Some(seconds),
        by: vec![4242],
        ..TableLock::default()
    };
    let told = |lock: TableLock| {
        let app = with(|s| {
            due(s);
            s.evidence.table_locks = Reading::exact(vec![lock.clone()], s.taken_at);
        });
        app.diagnosis(end())
    };
    let d = told(lock(false, "AccessExclusiveLock", 12.0));
    assert_eq!((d.rule, d.headline.as_str()), (Rule::TableLocked, "table locked"));
    assert_eq!(
        d.detail,
        "pid 4711 (migration) waits for 12.0s behind pid 4242 · all others wait behind it"
    );
    let d = told(lock(true, "ShareLock", 12.0));
    assert_eq!(d.headline, "table locked against claims");
    assert_eq!(d.detail, "by pid 4711 (migration) for 12.0s · ShareLock");
    // for a moment it is normal
    assert_ne!(told(lock(true, "AccessExclusiveLock", 0.2)).rule, Rule::TableLocked);
}

#[test]
fn due_rows_that_a_prepared_transaction_has_are_told_by_its_name() {
    let told = |rows, seconds| {
        let by = RowLocker {
            prepared: Some("order-4711".into()),
            seconds: Some(seconds),
            rows,
            ..RowLocker::default()
        };
        let app = with(|s| {
            due(s);
            s.evidence.locked_rows =
                Reading::exact(LockedRows { seen: 20, by: vec![by.clone()] }, s.taken_at);
        });
        app.diagnosis(end())
    };
    let d = told(20, 600.0);
    assert_eq!((d.rule, d.level), (Rule::Contended, Level::Critical));
    assert_eq!(
        d.detail,
        "40 ready · 20 of the first 20 locked by prepared transaction order-4711 for 10m00s"
    );
    assert_ne!(told(2, 600.0).rule, Rule::Contended, "others can be claimed");
    assert_ne!(told(20, 0.1).rule, Rule::Contended, "a claim at work");
}

#[test]
fn the_holder_of_the_notify_lock_is_told_with_what_it_waits_for() {
    let app = with(|s| {
        let lock = NotifyLock {
            holder: Some(4711),
            waiters: 3,
            application: "shop".into(),
            wait: Some("IPC/SyncRep".into()),
            longest: Some(12.0),
            ..NotifyLock::default()
        };
        s.notify_lock = Reading::exact(lock, s.taken_at);
    });
    let d = app.diagnosis(end());
    assert_eq!(
        d.detail,
        "pid 4711 (shop) holds the NOTIFY commit lock, waiting for IPC/SyncRep · 3 wait for up to 12.0s"
    );
}

#[test]
fn under_row_security_nothing_due_is_not_said_as_if_it_were_known() {
    let app = with(|s| s.evidence.row_security = Reading::exact(true, s.taken_at));
    let d = app.diagnosis(end());
    assert_eq!((d.rule, d.level), (Rule::NothingDue, Level::Unknown));
    assert!(d.detail.contains("row security"), "{}", d.detail);
    assert_eq!(with(|_| {}).diagnosis(end()).level, Level::Ok);
}

/// The screen Sessions of a busy server, with the cursor on the root of the tree of waits.
fn on_sessions() -> App {
    let mut app = busy();
    press(&mut app, Key::Char('5'));
    app
}

fn answer(app: &mut App, pid: i32, how: Ending, sent: bool, text: &str) {
    let told = ActionEvent::Ended { pid, how, sent, answer: text.into() };
    send(app, END as f64, Event::Action(told));
}

fn end_of(app: &App) -> &pgwake::app::dialog::End {
    match app.dialog() {
        Some(Dialog::End(e)) => e,
        other => panic!("{other:?}"),
    }
}

#[test]
fn terminate_shows_whom_it_blocks_wants_the_pid_typed_and_keeps_the_server_s_answer() {
    let mut app = on_sessions();
    assert_eq!(press(&mut app, Key::Char('K')), []);
    let e = end_of(&app);
    assert_eq!(
        (e.session.pid, e.blocks.as_slice(), e.behind),
        (4250, &["pid 4251 (billing)".to_owned()][..], 2)
    );
    assert_eq!(press(&mut app, Key::Enter), [], "not without the pid");
    // a paste confirms nothing
    update(&mut app, Msg::Paste("4250".into()), end());
    assert_eq!(press(&mut app, Key::Enter), []);
    for c in "4250".chars() {
        press(&mut app, Key::Char(c));
    }
    let session = Box::new(end_of(&app).session.clone());
    assert_eq!(press(&mut app, Key::Enter), [Intent::End { how: Ending::Terminate, session }]);
    assert_eq!(press(&mut app, Key::Enter), [], "once");
}

#[test]
fn cancel_asks_and_shows_the_answer_of_its_own_session_only() {
    let mut app = on_sessions();
    press(&mut app, Key::Char('C'));
    let session = Box::new(end_of(&app).session.clone());
    assert_eq!(press(&mut app, Key::Enter), [Intent::End { how: Ending::Cancel, session }]);
    answer(&mut app, 1, Ending::Cancel, true, "another");
    assert_eq!(end_of(&app).phase, pgwake::app::dialog::ReleasePhase::Sent);
    answer(&mut app, 4250, Ending::Cancel, false, "42501 permission denied");
    let over = pgwake::app::dialog::ReleasePhase::Over(false, "42501 permission denied".into());
    assert_eq!(end_of(&app).phase, over);
}

#[test]
fn what_has_no_session_is_not_terminated_but_explained() {
    let mut app = on_sessions();
    press(&mut app, Key::Char('G'));
    press(&mut app, Key::Char('k'));
    assert_eq!(press(&mut app, Key::Char('K')), []);
    let Some(Dialog::Notice { lines, .. }) = app.dialog() else { panic!("{:?}", app.dialog()) };
    assert_eq!(lines.last().map(String::as_str), Some("rollback prepared 'order-4711';"));
}

#[test]
fn where_actions_are_off_neither_key_asks() {
    let mut app = lost();
    press(&mut app, Key::Char('5'));
    for key in ['C', 'K'] {
        assert_eq!(press(&mut app, Key::Char(key)), []);
        assert!(app.dialog().is_none());
        assert!(app.notice(end()).is_some_and(|n| n.contains("refused")), "{:?}", app.notice(end()));
    }
}

#[test]
fn the_plan_of_a_claim_is_asked_for_and_shown_when_it_comes() {
    let mut app = busy();
    assert_eq!(press(&mut app, Key::Char('e')), [Intent::Plan { ledger: "jobs".into() }]);
    let plan = ClaimPlan {
        flaws: vec!["Sort".into()],
        index: Some("create index".into()),
        ..ClaimPlan::default()
    };
    let taken_at = end().wall;
    let check = |ledger: &str| PlanCheck {
        ledger: ledger.into(),
        taken_at,
        plan: Reading::exact(plan.clone(), taken_at),
    };
    send(&mut app, END as f64, Event::Plan(Box::new(check("outbox"))));
    assert!(matches!(app.dialog(), Some(Dialog::Plan(v)) if v.check.is_none()), "another ledger's");
    send(&mut app, END as f64, Event::Plan(Box::new(check("jobs"))));
    assert!(matches!(app.dialog(), Some(Dialog::Plan(v)) if v.check.is_some()));
    assert_eq!(press(&mut app, Key::Char('y')), [Intent::Copy("create index".into())]);
    press(&mut app, Key::Esc);
    assert!(app.dialog().is_none());
}
