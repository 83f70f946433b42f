//! Retry, give up and run now: what keys and the server's answers make of the dialog.

use pgwake::app::dialog::Dialog;
use pgwake::app::on_job::{OnJob, OnJobPhase};
use pgwake::app::{App, Msg, update};
use pgwake::config::keys::Key;
use pgwake::model::*;

use crate::fixtures::*;

/// The jobs of the first type, as the server answered; the cursor on the job `id`.
fn on(id: &str) -> App {
    let mut app = busy();
    looking(&mut app);
    select(&mut app, id);
    app
}

fn looking(app: &mut App) {
    press(app, Key::Char('2'));
    press(app, Key::Enter);
    send(app, END as f64, Event::Jobs(Box::new(jobs_of_mail(END))));
}

fn select(app: &mut App, id: &str) {
    press(app, Key::Char('g'));
    for _ in 0..9 {
        if app.job_selection().key().map(String::as_str) == Some(id) {
            return;
        }
        press(app, Key::Char('j'));
    }
    panic!("no job {id}");
}

fn dialog(app: &App) -> &OnJob {
    match app.dialog() {
        Some(Dialog::OnJob(on)) => on,
        other => panic!("no dialog about a job but {other:?}"),
    }
}

fn answer(app: &mut App, detail: JobDetail) {
    send(app, END as f64 + 0.2, Event::Job(Box::new(detail)));
}

fn act(app: &mut App, event: ActionEvent) -> Vec<Intent> {
    update(app, Msg::Event(Box::new(Event::Action(event))), end())
}

fn said(app: &App) -> &str {
    app.notice(end()).unwrap_or_default()
}

fn done(action: JobAction, id: &str, moved: Option<Found>) -> ActionEvent {
    ActionEvent::OnJob { ledger: "jobs".into(), action, id: id.into(), moved }
}

#[test]
fn each_key_asks_the_server_first_and_sends_exactly_what_it_told() {
    for (key, id, action) in [
        ('a', "4400", JobAction::Retry),
        ('x', "4800", JobAction::GiveUp),
        ('x', "4900", JobAction::GiveUp),
        ('u', "4900", JobAction::RunNow),
    ] {
        let mut app = on(id);
        let look = Intent::Job { ledger: "jobs".into(), id: id.into(), payload: false };
        assert_eq!(press(&mut app, Key::Char(key)), [look]);
        assert_eq!(dialog(&app).phase, OnJobPhase::Looking);
        assert_eq!(press(&mut app, Key::Enter), [], "nothing is known of it yet");
        assert_eq!(press(&mut app, Key::Char('y')), []);
        answer(&mut app, job_4700(END, false));
        assert_eq!(dialog(&app).phase, OnJobPhase::Looking, "that is about another job");

        let detail = detail_of(id, END);
        let facts = detail.found.value().unwrap().clone().unwrap();
        answer(&mut app, detail);
        assert_eq!(dialog(&app).phase, OnJobPhase::Asking);
        let sent = press(&mut app, Key::Enter);
        assert_eq!(sent, [Intent::OnJob { ledger: "jobs".into(), action, job: ShownJob::of(&facts) }]);
        assert_eq!(press(&mut app, Key::Char('y')), [], "it is sent once");
        let again = act(&mut app, done(action, id, None));
        assert!(matches!(again[..], [Intent::Jobs { .. }]), "the list is read anew: {again:?}");
        assert_eq!(dialog(&app).phase, OnJobPhase::Over(true));
        press(&mut app, Key::Esc);
        assert!(app.dialog().is_none());
    }
}

#[test]
fn what_is_shown_is_frozen_while_lists_and_looks_go_on() {
    let mut app = on("4900");
    press(&mut app, Key::Char('u'));
    answer(&mut app, detail_of("4900", END));
    let frozen = dialog(&app).job.clone();
    let mut later = detail_of("4900", END);
    later.found = later.found.map(|f| {
        let mut f = f.clone();
        f.as_mut().unwrap().row.attempts = Some(4);
        f
    });
    answer(&mut app, later);
    assert_eq!(dialog(&app).job, frozen);
}

#[test]
fn a_job_that_moved_on_is_told_before_and_after_the_question() {
    let mut app = on("4400");
    press(&mut app, Key::Char('a'));
    let mut running = detail_of("4400", END);
    running.found = running.found.map(|f| {
        let mut f = f.clone();
        f.as_mut().unwrap().row.state = Some(JobState::Running);
        f
    });
    answer(&mut app, running);
    assert_eq!(dialog(&app).phase, OnJobPhase::Over(false));
    assert!(dialog(&app).said.contains("moved on") && dialog(&app).said.contains("running"));
    assert_eq!(press(&mut app, Key::Char('y')), []);

    let mut app = on("4400");
    press(&mut app, Key::Char('a'));
    let mut gone = detail_of("4400", END);
    gone.found = gone.found.map(|_| None);
    answer(&mut app, gone);
    assert!(dialog(&app).said.contains("gone from the table"), "{}", dialog(&app).said);

    let mut app = on("4400");
    press(&mut app, Key::Char('a'));
    answer(&mut app, detail_of("4400", END));
    press(&mut app, Key::Enter);
    act(&mut app, done(JobAction::Retry, "4400", Some(Found::Locked)));
    assert_eq!(dialog(&app).phase, OnJobPhase::Over(false));
    assert!(dialog(&app).said.contains("locked by another session"), "{}", dialog(&app).said);
}

#[test]
fn an_answer_that_cannot_be_had_is_no_leave_to_go_on() {
    let mut app = on("4400");
    press(&mut app, Key::Char('a'));
    let mut detail = detail_of("4400", END);
    detail.found = Reading::unknown(Trouble::TimedOut);
    answer(&mut app, detail);
    assert_eq!(dialog(&app).phase, OnJobPhase::Over(false));
    assert!(dialog(&app).said.contains("timed out"), "{}", dialog(&app).said);
    assert_eq!(press(&mut app, Key::Enter), []);
    assert!(app.dialog().is_none(), "Enter closes what is over");
}

#[test]
fn a_job_in_another_state_is_refused_with_what_it_is_and_what_to_do() {
    for (key, id, words) in [
        ('a', "4800", &["only a failed job", "ready"][..]),
        ('a', "4700", &["only a failed job", "running"]),
        ('u', "4800", &["only a scheduled job", "ready"]),
        ('x', "4400", &["only a ready or a scheduled job", "failed"]),
        ('x', "4720", &["running", "release its lease first"]),
        ('x', "4700", &["running", "release its lease first"]),
    ] {
        let mut app = on(id);
        assert_eq!(press(&mut app, Key::Char(key)), []);
        assert!(app.dialog().is_none());
        assert!(words.iter().all(|w| said(&app).contains(w)), "{key} on {id}: {}", said(&app));
    }
}

#[test]
fn a_paste_confirms_nothing() {
    let mut app = on("4400");
    press(&mut app, Key::Char('a'));
    answer(&mut app, detail_of("4400", END));
    let before = app.dialog().cloned();
    assert_eq!(update(&mut app, Msg::Paste("y\n4400\r\n".into()), end()), []);
    assert_eq!(app.dialog().cloned(), before);
}

#[test]
fn n_and_esc_leave_it() {
    for key in [Key::Char('n'), Key::Esc, Key::Char('q')] {
        let mut app = on("4400");
        press(&mut app, Key::Char('a'));
        answer(&mut app, detail_of("4400", END));
        assert_eq!(press(&mut app, key), []);
        assert!(app.dialog().is_none() && !app.is_quitting());
    }
}

#[test]
fn a_refusal_of_the_server_is_said_in_the_dialog() {
    let mut app = on("4400");
    press(&mut app, Key::Char('a'));
    answer(&mut app, detail_of("4400", END));
    press(&mut app, Key::Enter);
    let why = "42501 permission denied for table jobs".to_owned();
    act(&mut app, ActionEvent::Refused { what: "retry".into(), why: why.clone() });
    assert_eq!(dialog(&app).said, format!("nothing was changed: {why}"));
}

#[test]
fn read_only_a_standby_and_a_ledger_that_does_not_offer_it_refuse_and_say_why() {
    let mut app = on("4400");
    let mut only = server();
    only.read_only = Some("started with --read-only".into());
    send(&mut app, END as f64, Event::Link(Link::Up(Box::new(only))));
    assert_eq!(press(&mut app, Key::Char('a')), []);
    assert!(app.dialog().is_none() && said(&app).contains("retry refused: started with --read-only"));

    let mut app = on("4400");
    let mut standby = server();
    standby.role = Role::Standby;
    send(&mut app, END as f64, Event::Link(Link::Up(Box::new(standby))));
    assert_eq!(press(&mut app, Key::Char('a')), []);
    assert!(app.dialog().is_none() && said(&app).contains("standby"), "{}", said(&app));

    let mut app = on("4400");
    let mut odd = server();
    odd.ledgers[0].offers[0].refusal = Some("this role may not update \"pgwake\".\"jobs\"".into());
    send(&mut app, END as f64, Event::Link(Link::Up(Box::new(odd))));
    assert_eq!(press(&mut app, Key::Char('a')), [], "the server is not even asked");
    assert_eq!(dialog(&app).phase, OnJobPhase::Over(false));
    assert!(dialog(&app).said.contains("may not update"));
    assert_eq!(press(&mut app, Key::Char('y')), []);
}

#[test]
fn the_same_keys_work_on_an_open_job() {
    let mut app = on("4400");
    press(&mut app, Key::Enter);
    answer(&mut app, detail_of("4400", END));
    let asked = press(&mut app, Key::Char('a'));
    assert!(matches!(asked[..], [Intent::Job { payload: false, .. }]), "{asked:?}");
    assert_eq!((dialog(&app).id.as_str(), dialog(&app).phase), ("4400", OnJobPhase::Looking));
    // of another state it says why, and the job is closed
    let mut app = on("4800");
    press(&mut app, Key::Enter);
    answer(&mut app, detail_of("4800", END));
    assert_eq!(press(&mut app, Key::Char('a')), []);
    assert!(said(&app).contains("only a failed job"), "{}", said(&app));
}

#[test]
fn elsewhere_the_keys_do_nothing() {
    for screen in "1234567".chars() {
        for key in "axu".chars() {
            let mut app = busy();
            press(&mut app, Key::Char(screen));
            assert_eq!(press(&mut app, Key::Char(key)), []);
            assert!(app.dialog().is_none());
        }
    }
}
