//! What keys and events make of the state.

use pgwake::app::dialog::{BulkPhase, Dialog, ReleasePhase};
use pgwake::app::{App, Embedded, ListenState, Msg, Screen, Setup, WorkerSetup, update};
use pgwake::config::keys::Key;
use pgwake::model::*;

use crate::fixtures::*;

fn keys(app: &mut App, keys: &str) -> Vec<Intent> {
    keys.chars().flat_map(|c| press(app, Key::Char(c))).collect()
}

fn release(app: &App) -> &pgwake::app::dialog::Release {
    match app.dialog() {
        Some(Dialog::Release(r)) => r,
        other => panic!("no release dialog but {other:?}"),
    }
}

fn bulk(app: &App) -> &BulkPhase {
    match app.dialog() {
        Some(Dialog::Bulk(b)) => &b.phase,
        other => panic!("no bulk dialog but {other:?}"),
    }
}

fn notice(app: &App) -> &str {
    app.notice(end()).unwrap_or_default()
}

fn act(app: &mut App, event: ActionEvent) {
    send(app, END as f64 + 0.4, Event::Action(event));
}

/// The busy ledger one second later, with these leases.
fn next(app: &mut App, leases: Vec<Lease>) {
    let mut s = flowing(END, 3.0, 3.0, 1);
    hold(&mut s, leases, &[]);
    send(app, END as f64 + 0.2, Event::Sample(Box::new(s)));
}

#[test]
fn q_and_ctrl_c_leave_and_ctrl_c_leaves_from_any_dialog() {
    let mut app = busy();
    assert_eq!(press(&mut app, Key::Char('q')), [Intent::Quit]);
    assert!(app.is_quitting());
    let mut app = busy();
    keys(&mut app, "3G");
    keys(&mut app, "r");
    assert_eq!(keys(&mut app, "q"), [], "q is a letter where an id is typed");
    assert_eq!(press(&mut app, Key::Ctrl('c')), [Intent::Quit]);
}

#[test]
fn screens_change_by_digit_and_by_tab() {
    let mut app = calm();
    keys(&mut app, "7");
    assert_eq!(app.screen(), Screen::Events);
    press(&mut app, Key::Tab);
    assert_eq!(app.screen(), Screen::Overview);
    press(&mut app, Key::BackTab);
    assert_eq!(app.screen(), Screen::Events);
    press(&mut app, Key::Esc);
    assert_eq!(app.screen(), Screen::Overview);
    keys(&mut app, "890");
    assert_eq!(app.screen(), Screen::Overview);
    for (digit, screen) in ('1'..='7').zip(Screen::ALL) {
        press(&mut app, Key::Char(digit));
        assert_eq!(app.screen(), screen);
    }
    keys(&mut app, "1");
    for screen in Screen::ALL.into_iter().cycle().skip(1).take(7) {
        press(&mut app, Key::Tab);
        assert_eq!(app.screen(), screen);
    }
}

#[test]
fn an_expired_lease_is_released_exactly_as_it_was_shown() {
    let mut app = busy();
    keys(&mut app, "3r");
    let shown = release(&app).lease.clone();
    assert_eq!(shown.id, "4700");
    assert!(!release(&app).needs_typing);
    let sent = press(&mut app, Key::Enter);
    assert_eq!(sent, [Intent::Release { ledger: "jobs".into(), lease: shown }]);
    assert_eq!(press(&mut app, Key::Char('y')), [], "it is sent once");
    act(
        &mut app,
        ActionEvent::Released { ledger: "jobs".into(), id: "4700".into(), holder: "mail-worker-7".into() },
    );
    assert!(matches!(release(&app).phase, ReleasePhase::Over(true, _)));
    press(&mut app, Key::Esc);
    assert!(app.dialog().is_none());
}

#[test]
fn a_lease_that_has_not_expired_needs_its_id_typed() {
    let mut app = busy();
    keys(&mut app, "3Gr");
    let id = release(&app).lease.id.clone();
    assert!(release(&app).needs_typing);
    assert_eq!(press(&mut app, Key::Enter), []);
    assert_eq!(keys(&mut app, "y"), []);
    assert_eq!(press(&mut app, Key::Enter), []);
    press(&mut app, Key::Backspace);
    assert_eq!(keys(&mut app, &id), []);
    assert_eq!(press(&mut app, Key::Enter).len(), 1);
}

#[test]
fn a_paste_confirms_nothing() {
    for start in ["3r", "3Gr", "R", "n"] {
        let mut app = busy();
        keys(&mut app, start);
        let before = app.dialog().cloned();
        assert!(before.is_some());
        let sent = update(&mut app, Msg::Paste("y\n4720\n".into()), end());
        assert_eq!(sent, []);
        assert_eq!(app.dialog(), before.as_ref());
    }
}

#[test]
fn a_lease_that_moves_while_the_dialog_is_open_is_told_and_the_frozen_one_is_sent() {
    let mut app = busy();
    keys(&mut app, "3r");
    let shown = release(&app).lease.clone();
    assert_eq!(app.drift(release(&app)), None);

    let mut renewed = shown.clone();
    renewed.expires = renewed.expires.map(|e| e + chrono::TimeDelta::minutes(2));
    next(&mut app, vec![renewed.clone()]);
    assert!(app.drift(release(&app)).unwrap().contains("renewed"));

    next(&mut app, vec![Lease { token: "another".into(), holder: "w-9".into(), ..renewed }]);
    assert!(app.drift(release(&app)).unwrap().contains("claimed again by w-9"));

    next(&mut app, Vec::new());
    assert!(app.drift(release(&app)).unwrap().contains("no longer"));

    assert_eq!(press(&mut app, Key::Enter), [Intent::Release { ledger: "jobs".into(), lease: shown }]);
    let found = Found::State { state: "done".into() };
    act(&mut app, ActionEvent::MovedOn { ledger: "jobs".into(), id: "4700".into(), found });
    let ReleasePhase::Over(false, said) = &release(&app).phase else { panic!("not over") };
    assert!(said.contains("moved on: now done"), "{said}");
}

#[test]
fn a_chosen_lease_that_is_gone_is_not_replaced_by_its_neighbour() {
    let mut app = busy();
    keys(&mut app, "3j");
    assert_eq!(app.lease_selection().key().unwrap().id, "4701");
    next(&mut app, vec![lease(END, 4700, "mail-worker-7", 252, -132), lease(END, 4750, "w", 1, 100)]);
    assert!(app.lease_selection().is_gone());
    keys(&mut app, "r");
    assert!(app.dialog().is_none());
    assert!(notice(&app).contains("gone"));
}

#[test]
fn the_same_id_under_a_new_token_is_another_lease() {
    let mut app = busy();
    keys(&mut app, "3j");
    next(&mut app, vec![Lease { token: "new".into(), ..lease(END, 4701, "mail-worker-3", 0, 120) }]);
    assert!(app.lease_selection().is_gone());
}

#[test]
fn a_bulk_release_counts_first_then_asks_then_tells_its_progress() {
    let mut app = busy();
    let expired = |holder: Option<&str>| (String::from("jobs"), holder.map(|h| vec![h.to_owned()]));
    let (ledger, holders) = expired(None);
    assert_eq!(keys(&mut app, "R"), [Intent::CountExpired { ledger, holders }]);
    assert_eq!(bulk(&app), &BulkPhase::Counting);
    assert_eq!(press(&mut app, Key::Enter), [], "nothing is released before it was counted");

    let (ledger, holders) = expired(None);
    act(&mut app, ActionEvent::ExpiredCount { ledger, holders, count: 230, capped: false });
    assert_eq!(bulk(&app), &BulkPhase::Asking { count: 230, capped: false });
    let (ledger, holders) = expired(None);
    assert_eq!(press(&mut app, Key::Enter), [Intent::ReleaseExpired { ledger, holders }]);

    act(&mut app, ActionEvent::Batch { ledger: "jobs".into(), batch: 100, total: 100 });
    assert_eq!(bulk(&app), &BulkPhase::Running { total: 100, batches: 1, stopping: false });
    assert_eq!(press(&mut app, Key::Esc), [Intent::StopBulk]);
    act(&mut app, ActionEvent::BulkDone { ledger: "jobs".into(), total: 200, stopped: true });
    assert_eq!(bulk(&app), &BulkPhase::Over { total: 200, stopped: true });
}

#[test]
fn a_bulk_release_of_nothing_cannot_be_confirmed() {
    let mut app = calm();
    keys(&mut app, "R");
    act(
        &mut app,
        ActionEvent::ExpiredCount { ledger: "jobs".into(), holders: None, count: 0, capped: false },
    );
    assert_eq!(press(&mut app, Key::Enter), []);
}

#[test]
fn a_bulk_release_from_a_holder_s_leases_frees_only_those() {
    let mut app = busy();
    press(&mut app, Key::Enter);
    assert_eq!((app.screen(), app.only_holder()), (Screen::Leases, Some("mail-worker-7")));
    let holders = Some(vec!["mail-worker-7".to_owned()]);
    assert_eq!(keys(&mut app, "R"), [Intent::CountExpired { ledger: "jobs".into(), holders }]);
    press(&mut app, Key::Esc);
    press(&mut app, Key::Esc);
    assert_eq!((app.screen(), app.only_holder()), (Screen::Leases, None));
}

#[test]
fn a_bulk_release_of_a_filtered_list_frees_only_what_the_holders_shown_hold() {
    let counts = |names: &[&str]| {
        let holders = Some(names.iter().map(|n| (*n).to_owned()).collect());
        vec![Intent::CountExpired { ledger: "jobs".into(), holders }]
    };
    for (screen, filter, names) in [
        ("3", "worker-7", &["mail-worker-7"][..]),
        ("3", "mail", &["mail-worker-3", "mail-worker-4", "mail-worker-7"]),
        ("3", "4741", &["mail-worker-4"]),
        ("1", "worker-4", &["mail-worker-4"]),
    ] {
        let mut app = busy();
        keys(&mut app, screen);
        keys(&mut app, "/");
        keys(&mut app, filter);
        press(&mut app, Key::Enter);
        assert_eq!(keys(&mut app, "R"), counts(names), "{screen} {filter}");
        // the answer to another question is none to this one
        act(
            &mut app,
            ActionEvent::ExpiredCount { ledger: "jobs".into(), holders: None, count: 9, capped: false },
        );
        assert_eq!(bulk(&app), &BulkPhase::Counting);
        let holders = Some(names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        let counted =
            |holders| ActionEvent::ExpiredCount { ledger: "jobs".into(), holders, count: 2, capped: false };
        act(&mut app, counted(holders.clone()));
        assert_eq!(
            press(&mut app, Key::Enter),
            [Intent::ReleaseExpired { ledger: "jobs".into(), holders }]
        );
    }
    // a filter that nothing passes is no leave to free everything
    let mut app = busy();
    keys(&mut app, "3/zzzz");
    press(&mut app, Key::Enter);
    assert_eq!(keys(&mut app, "R"), []);
    assert!(app.dialog().is_none() && notice(&app).contains("nothing is shown"), "{}", notice(&app));
}

#[test]
fn actions_are_refused_with_a_reason_where_they_cannot_be_done() {
    let mut read_only = setup();
    read_only.read_only = Some("--read-only".into());
    let mut standby = server();
    standby.role = pgwake::model::Role::Standby;
    let mut on_standby = connected(setup());
    send(&mut on_standby, 1.0, Event::Link(Link::Up(Box::new(standby))));
    let cases = [
        (connected(read_only), "--read-only"),
        (on_standby, "standby"),
        (lost(), "connection refused"),
        (connecting(), "not connected yet"),
    ];
    for (mut app, why) in cases {
        for key in ["3R", "n"] {
            assert_eq!(keys(&mut app, key), []);
            assert!(app.dialog().is_none(), "{why}");
            assert!(notice(&app).contains(why), "{} lacks {why}", notice(&app));
        }
    }
}

#[test]
fn a_connection_lost_while_a_dialog_asks_refuses_in_the_dialog() {
    let mut app = busy();
    keys(&mut app, "3r");
    let loss = Loss { sqlstate: None, message: "connection reset".into() };
    send(&mut app, END as f64, Event::Link(Link::Down(loss)));
    assert_eq!(press(&mut app, Key::Enter), []);
    let ReleasePhase::Over(false, said) = &release(&app).phase else { panic!("not refused") };
    assert!(said.contains("connection reset"), "{said}");
}

#[test]
fn a_wakeup_asks_and_names_its_channel() {
    let mut app = calm();
    keys(&mut app, "n");
    let Some(Dialog::Ask(ask)) = app.dialog() else { panic!("it does not ask") };
    assert!(ask.lines[0].contains("pgwake_work"));
    assert_eq!(keys(&mut app, "y"), [Intent::Wake { ledger: "jobs".into() }]);
    act(&mut app, ActionEvent::WakeSent { channel: "pgwake_work".into() });
    assert!(notice(&app).contains("wake-up sent"));
}

#[test]
fn without_a_handler_w_says_how_to_configure_one() {
    let mut without = setup();
    without.worker = WorkerSetup::Unavailable { how: "start with --handler".into() };
    let mut app = connected(without);
    assert_eq!(keys(&mut app, "w"), []);
    let Some(Dialog::Notice { lines, .. }) = app.dialog() else { panic!("it says nothing") };
    assert!(lines.iter().any(|l| l.contains("--handler")));
}

#[test]
fn with_a_handler_w_asks_starts_and_stops() {
    let mut with = setup();
    with.worker = WorkerSetup::Available { handler: "simulate".into() };
    let mut app = connected(with);
    assert_eq!(keys(&mut app, "w"), []);
    assert_eq!(press(&mut app, Key::Enter), [Intent::Worker { on: true }]);
    assert_eq!(app.live().worker, Embedded::Starting);
    send(&mut app, 2.0, Event::Worker(WorkerEvent::Started { name: "me".into() }));
    assert_eq!(keys(&mut app, "w"), [Intent::Worker { on: false }]);
    assert_eq!(app.live().worker, Embedded::Stopping);
    send(&mut app, 3.0, Event::Worker(WorkerEvent::Stopped { given_back: 2, trouble: None }));
    assert_eq!(app.live().worker, Embedded::Off { trouble: None });
}

#[test]
fn what_would_be_run_for_real_is_shown_before_it_is_started() {
    let mut with = setup();
    with.worker = WorkerSetup::Available { handler: "exec".into() };
    with.runs = Some("./job --flag".into());
    let mut app = connected(with);
    assert_eq!(keys(&mut app, "w"), []);
    let Some(Dialog::Ask(ask)) = app.dialog() else { panic!("it does not ask") };
    assert!(ask.lines.iter().any(|l| l.ends_with("./job --flag")), "{:?}", ask.lines);
    assert!(ask.lines.iter().any(|l| l.contains("real work")), "{:?}", ask.lines);
}

#[test]
fn faults_are_there_in_the_demo_only() {
    let mut app = calm();
    keys(&mut app, "F");
    assert!(app.dialog().is_none());
    let mut app = connected(Setup { faults: Fault::ALL.to_vec(), ..setup() });
    keys(&mut app, "F");
    press(&mut app, Key::Down);
    assert_eq!(press(&mut app, Key::Enter), [Intent::Fault(Fault::FreezeListener)]);
    // Each line has a key of its own, also beyond the ninth.
    for (key, fault) in "123456789abcdefgh".chars().zip(Fault::ALL) {
        keys(&mut app, "F");
        assert_eq!(press(&mut app, Key::Char(key)), [Intent::Fault(fault)]);
    }
    keys(&mut app, "F");
    assert_eq!(press(&mut app, Key::Char('i')), [], "no such line");
    assert!(app.dialog().is_some());
}

#[test]
fn a_frozen_picture_stays_while_samples_go_on() {
    let mut app = calm();
    keys(&mut app, " ");
    let before = app.sample().unwrap().clone();
    let mut s = flowing(END + 9, 3.0, 3.0, 777);
    hold(&mut s, Vec::new(), &[]);
    send(&mut app, END as f64 + 9.0, Event::Sample(Box::new(s)));
    let later = now_at(END as f64 + 9.5);
    assert_eq!(app.sample().unwrap(), &before);
    assert_eq!(app.frozen_for(later).unwrap().as_secs(), 9);
    assert!(!app.is_stale(later), "what is frozen does not age");
    update(&mut app, Msg::Key(Key::Char(' ')), later);
    assert_eq!(app.sample().unwrap().counts.ready.value(), Some(&777));
    assert_eq!(app.frozen_for(later), None);
}

#[test]
fn a_release_over_a_frozen_picture_asks_about_now() {
    let mut app = busy();
    keys(&mut app, "3G ");
    let id = app.lease_selection().key().unwrap().id.clone();
    // a quarter of an hour later the newest sample shows it expired, the picture does not
    let mut s = flowing(END + 900, 3.0, 3.0, 1);
    hold(&mut s, Vec::new(), &[]);
    send(&mut app, END as f64 + 900.0, Event::Sample(Box::new(s)));
    update(&mut app, Msg::Key(Key::Char('r')), now_at(END as f64 + 900.5));
    assert_eq!(release(&app).lease.id, id);
    assert!(!release(&app).needs_typing);
    assert!(app.drift(release(&app)).unwrap().contains("no longer"));
}

#[test]
fn the_next_ledger_is_shown_and_told_apart() {
    let mut app = calm();
    assert_eq!(app.ledger().unwrap().name, "jobs");
    keys(&mut app, "p");
    assert_eq!(app.ledger().unwrap().name, "outbox");
    assert!(app.sample().is_none(), "nothing of another ledger is shown as its own");
    keys(&mut app, "p");
    assert_eq!(app.ledger().unwrap().name, "jobs");
}

#[test]
fn the_server_s_clock_goes_on_between_samples_and_the_client_s_does_not_count() {
    let app = calm();
    let taken = app.sample().unwrap().taken_at;
    let mut now = now_at(END as f64 + 2.0);
    now.wall += chrono::TimeDelta::hours(5);
    assert_eq!(app.server_now(now) - taken, chrono::TimeDelta::seconds(2));
}

#[test]
fn the_listener_s_loss_keeps_its_first_moment_through_every_retry() {
    let app = lost();
    let ListenState::Down { since, retry_at, .. } = &app.live().listen else { panic!("not down") };
    assert_eq!(since.as_secs_f64(), 270.5);
    assert_eq!(retry_at.unwrap().as_secs_f64(), 305.0);
}

#[test]
fn the_log_follows_the_newest_until_somebody_moves() {
    let mut app = busy();
    let note = |text: &str| Event::Note(Note { warn: false, text: text.into() });
    keys(&mut app, "7");
    send(&mut app, END as f64, note("one"));
    assert_eq!(app.event_selection().row(), 0);
    keys(&mut app, "j");
    let at = *app.event_selection().key().unwrap();
    send(&mut app, END as f64, note("two"));
    assert_eq!((app.event_selection().key(), app.event_selection().row()), (Some(&at), 2));
    keys(&mut app, "g");
    send(&mut app, END as f64, note("three"));
    assert_eq!(app.event_selection().row(), 0);
}

#[test]
fn a_filter_is_typed_kept_and_cleared_and_the_cursor_stays_on_its_row() {
    let mut app = busy();
    keys(&mut app, "3jjj/mw4");
    assert!(app.is_typing());
    assert_eq!(app.leases().len(), 4);
    assert!(app.lease_selection().key().is_some(), "4741 matches and stays selected");
    press(&mut app, Key::Enter);
    assert!(!app.is_typing());
    // letters are keys again; the filter stays through samples and through other screens
    next(&mut app, vec![lease(END, 1, "mail-worker-4", 1, 60), lease(END, 2, "w-9", 1, 60)]);
    keys(&mut app, "13");
    assert_eq!(app.leases().iter().map(|l| l.id.as_str()).collect::<Vec<_>>(), ["1"]);
    press(&mut app, Key::Esc);
    assert_eq!((app.screen(), app.leases().len()), (Screen::Leases, 2));
    press(&mut app, Key::Esc);
    assert_eq!(app.screen(), Screen::Overview);
}

#[test]
fn letters_that_are_keys_are_letters_while_a_filter_is_typed() {
    let mut app = busy();
    assert_eq!(keys(&mut app, "3/qrRn"), []);
    assert!(!app.is_quitting() && app.dialog().is_none());
    assert_eq!(app.lever(app.list()).filter(), "qrRn");
    press(&mut app, Key::Backspace);
    update(&mut app, Msg::Paste("x\ny\u{1b}".into()), end());
    assert_eq!(app.lever(app.list()).filter(), "qrRx y␛");
    press(&mut app, Key::Esc);
    assert_eq!(app.lever(app.list()).filter(), "");
    assert_eq!(press(&mut app, Key::Ctrl('c')), [Intent::Quit]);
}

#[test]
fn an_order_holds_through_samples_and_a_release_takes_what_the_cursor_is_on() {
    let mut app = busy();
    // by job, turned round
    keys(&mut app, "3sS");
    let ids: Vec<&str> = app.leases().iter().map(|l| l.id.as_str()).collect();
    assert!(ids.windows(2).all(|w| w[0].parse::<u64>().unwrap() > w[1].parse().unwrap()), "{ids:?}");
    keys(&mut app, "g");
    assert_eq!(app.lease_selection().key().unwrap().id, "4743");
    let mut more: Vec<Lease> = (0..3).map(|i| lease(END, 9_000 + i, "new", 0, 100)).collect();
    more.push(lease(END, 4743, "mail-worker-4", 1, 90));
    next(&mut app, more);
    assert_eq!(app.leases()[0].id, "9002");
    assert_eq!(app.lease_selection().key().unwrap().id, "4743");
    assert_eq!(app.lease_selection().row(), 3);
    keys(&mut app, "r");
    assert_eq!(release(&app).lease.id, "4743");
}

#[test]
fn every_screen_keeps_its_cursor_and_its_scroll() {
    let mut app = busy();
    keys(&mut app, "3jjjjj");
    let key = app.lease_selection().key().cloned();
    keys(&mut app, "4jj5j");
    keys(&mut app, "3");
    assert_eq!(app.lease_selection().key().cloned(), key);
    keys(&mut app, "4");
    assert_eq!(app.worker_selection().row(), 2);
}

#[test]
fn a_silent_worker_with_expired_leases_leads_and_a_holder_without_reports_is_there() {
    let app = busy();
    let first = app.workers()[0];
    assert_eq!(first.name, "mail-worker-7");
    assert!(first.row.is_some() && first.holder.as_ref().unwrap().expired == 2);
    assert!(hostile().workers().iter().any(|w| w.row.is_none() && w.holder.is_some()));
}

#[test]
fn enter_on_a_worker_opens_it_and_again_its_leases() {
    let mut app = busy();
    keys(&mut app, "4");
    press(&mut app, Key::Enter);
    assert!(matches!(app.dialog(), Some(Dialog::Worker(w)) if w.name == "mail-worker-7"));
    press(&mut app, Key::Enter);
    assert_eq!((app.screen(), app.only_holder()), (Screen::Leases, Some("mail-worker-7")));
}

#[test]
fn types_are_looked_into_and_jobs_opened_with_the_payload_only_when_asked() {
    let mut app = busy();
    keys(&mut app, "2");
    let key = Some("key of mail.send".to_owned());
    assert_eq!(press(&mut app, Key::Enter), [Intent::Jobs { ledger: "jobs".into(), key }]);
    assert!(app.jobs().is_empty());
    send(&mut app, END as f64, Event::Jobs(Box::new(jobs_of_mail(END))));
    assert_eq!(app.jobs().len(), 6);
    let ask = |payload| Intent::Job { ledger: "jobs".into(), id: "4700".into(), payload };
    assert_eq!(press(&mut app, Key::Enter), [ask(false)]);
    send(&mut app, END as f64, Event::Job(Box::new(job_4700(END, false))));
    assert_eq!(keys(&mut app, "v"), [ask(true)]);
    press(&mut app, Key::Esc);
    assert_eq!(keys(&mut app, "v"), [ask(true)], "v opens it with its payload");
    press(&mut app, Key::Esc);
    press(&mut app, Key::Esc);
    assert!(app.jobs_view().is_none());
    let mut shown = setup();
    shown.show_payloads = true;
    let mut app = connected(shown);
    send(&mut app, 1.0, Event::Backlog(Box::new(some_backlog(1))));
    send(&mut app, 1.0, Event::Sample(Box::new(quiet(1))));
    keys(&mut app, "2");
    press(&mut app, Key::Enter);
    send(&mut app, 2.0, Event::Jobs(Box::new(jobs_of_mail(2))));
    assert_eq!(press(&mut app, Key::Enter), [ask(true)]);
}

#[test]
fn an_answer_to_a_look_that_was_left_changes_nothing() {
    let mut app = busy();
    keys(&mut app, "2");
    press(&mut app, Key::Enter);
    press(&mut app, Key::Esc);
    send(&mut app, END as f64, Event::Jobs(Box::new(jobs_of_mail(END))));
    send(&mut app, END as f64, Event::Job(Box::new(job_4700(END, true))));
    assert!(app.jobs_view().is_none() && app.dialog().is_none());
}

#[test]
fn jobs_that_are_looked_at_keep_the_pace_of_the_slow_lane() {
    let mut app = busy();
    keys(&mut app, "2");
    let ask = press(&mut app, Key::Enter);
    let pass = Msg::Event(Box::new(Event::Backlog(Box::new(some_backlog(END)))));
    assert_eq!(update(&mut app, pass.clone(), end()), ask);
    press(&mut app, Key::Esc);
    assert_eq!(update(&mut app, pass, end()), []);
}

#[test]
fn without_a_server_a_look_is_refused_with_the_reason() {
    let mut app = lost();
    keys(&mut app, "2");
    assert_eq!(press(&mut app, Key::Enter), []);
    assert!(notice(&app).contains("connection refused"), "{}", notice(&app));
}

#[test]
fn time_steps_back_from_sample_to_sample_and_forward_to_now() {
    let mut app = busy();
    let shown = |app: &App| app.sample().unwrap().pass;
    let now = shown(&app);
    keys(&mut app, "[");
    let one = shown(&app);
    assert!(one < now && app.frozen_for(end()).is_some());
    keys(&mut app, "{");
    assert!((one - 75..=one - 60).contains(&shown(&app)), "{}", shown(&app));
    assert!(!app.is_stale(end()), "the past is not old in itself");
    // what goes on meanwhile does not disturb it
    let before = shown(&app);
    send(&mut app, END as f64 + 1.0, Event::Sample(Box::new(quiet(END + 1))));
    assert_eq!(shown(&app), before);
    keys(&mut app, "}");
    assert_eq!(shown(&app), one);
    for _ in 0..5 {
        keys(&mut app, "]");
    }
    assert_eq!((shown(&app), app.frozen_for(end())), (END + 1, None));
    keys(&mut app, "]");
    assert!(notice(&app).contains("this is now"));
}

#[test]
fn the_past_ends_with_a_word_and_a_gap_is_told_when_it_is_crossed() {
    let mut app = busy();
    for _ in 0..7 {
        keys(&mut app, "{");
    }
    assert!(notice(&app).contains("nothing older is kept"), "{}", notice(&app));
    let mut crossed = String::new();
    for _ in 0..300 {
        keys(&mut app, "]");
        if notice(&app).contains("nothing was sampled") {
            crossed = notice(&app).to_owned();
            break;
        }
    }
    assert_eq!(crossed, "nothing was sampled for 31.0s");
}

#[test]
fn the_past_shows_its_own_listener_log_and_backlog() {
    let mut app = lost();
    assert!(matches!(app.world().listen, ListenState::Down { .. }));
    keys(&mut app, "[");
    assert!(matches!(app.world().listen, ListenState::Up { .. }), "before the loss it was there");
    assert!(app.world().gaps.newest().next().is_none());
    assert!(!app.events().iter().any(|l| l.text.contains("lost")));
    let mut app = busy();
    assert!(app.backlog().is_some());
    keys(&mut app, "{");
    assert!(app.backlog().is_none(), "the first pass came later");
}

#[test]
fn a_release_from_the_past_is_of_the_lease_as_it_is_now() {
    let mut app = busy();
    keys(&mut app, "{3G");
    let selected = app.lease_selection().key().unwrap().clone();
    let seen = app.leases().into_iter().find(|l| l.id == selected.id).unwrap().clone();
    keys(&mut app, "r");
    let asked = &release(&app).lease;
    assert_eq!((&asked.id, &asked.token), (&seen.id, &seen.token));
    assert!(asked.expires > seen.expires, "renewed since, and that is what would be released");
}

#[test]
fn an_hour_of_samples_stays_within_its_bound() {
    let mut app = connected(setup());
    for t in 1..=4_000 {
        let mut s = flowing(t, 400.0, 400.0, 1_204);
        let leases = (0..40).map(|i| lease(t, t * 40 + i, &format!("worker-{i}"), 1, 100)).collect();
        hold(&mut s, leases, &[]);
        send(&mut app, t as f64, Event::Sample(Box::new(s)));
    }
    let history = app.past().of("jobs").unwrap();
    println!("4,000 samples with 40 leases each: {} bytes, {} moments", app.past().bytes(), history.len());
    assert!(app.past().bytes() <= pgwake::app::history::BOUND + 100_000);
    assert!(history.first().unwrap().0.as_secs() <= 4_000 - 3_600);
}

#[test]
fn expired_leases_are_one_line_of_the_log_that_tells_the_most_there_were() {
    let mut app = calm();
    let before = app.world().log.len();
    for (i, n) in [3, 12, 5].into_iter().enumerate() {
        let mut s = flowing(END + i as u64, 3.0, 3.0, 1);
        s.counts.expired = Reading::exact(n, s.taken_at);
        send(&mut app, (END + i as u64) as f64, Event::Sample(Box::new(s)));
    }
    assert_eq!(app.world().log.len(), before + 1);
    assert_eq!(app.world().log.get(0).unwrap().text, "jobs: expired leases: up to 12");
}

#[test]
fn plus_and_minus_change_the_interval_within_its_bounds() {
    let mut app = busy();
    let pace = |interval_ms| vec![Intent::Pace { interval_ms }];
    assert_eq!(keys(&mut app, "+"), pace(500));
    assert_eq!(keys(&mut app, "+"), pace(200));
    assert_eq!(keys(&mut app, "+"), []);
    assert_eq!(notice(&app), "sampling every 0.2s: that is the shortest interval");
    assert_eq!(keys(&mut app, "--"), [pace(500), pace(1000)].concat());
    assert_eq!(notice(&app), "sampling every 1s (0.2s to 30s)");
    keys(&mut app, "----------");
    assert_eq!(notice(&app), "sampling every 30s: that is the longest interval");
}

#[test]
fn a_worker_that_is_long_gone_is_counted_and_not_listed() {
    let mut app = calm();
    let mut s = flowing(END, 3.0, 3.0, 1);
    let workers = [worker_row("here", END, 2), worker_row("quiet", END, 60), worker_row("gone", END, 400)];
    s.workers = Reading::exact(workers.into(), s.taken_at);
    let at = s.taken_at;
    send(&mut app, END as f64, Event::Sample(Box::new(s)));
    let names: Vec<&str> = app.workers().iter().map(|w| w.name.as_str()).collect();
    assert!(names.contains(&"quiet") && !names.contains(&"gone"), "{names:?}");
    let tally = app.tally(at).unwrap();
    assert_eq!((tally.alive, tally.silent, tally.gone), (1, 1, 1));
}

#[test]
fn a_type_tells_its_change_only_where_both_passes_saw_all_its_jobs() {
    let mut app = connected(setup());
    send(&mut app, 1.0, Event::Sample(Box::new(quiet(1))));
    let pass = |second: u64, more: bool, jobs: u64| {
        let mut b = no_backlog(second);
        b.ready = looked(second, more, &[("mail", jobs, Some(1.0))]);
        Event::Backlog(Box::new(b))
    };
    let change = |app: &App| app.types()[0].change;
    send(&mut app, 10.0, pass(10, false, 50));
    assert_eq!(change(&app), None, "one pass says nothing of a change");
    send(&mut app, 20.0, pass(20, false, 30));
    assert_eq!(change(&app), Some(-2.0));
    send(&mut app, 30.0, pass(30, true, 30));
    assert_eq!(change(&app), None, "the count stopped at its cap");
}
