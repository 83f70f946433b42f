//! From the rows of a database to the bytes on a terminal: nothing that came from the database is obeyed by
//! the terminal, or hides from the person in front of it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/program.rs"]
mod program;
mod support;

use std::time::Duration;

use chrono::DateTime;
use pgwake::app::{App, Msg, Setup as AppSetup, update};
use pgwake::config::keys::Key;
use pgwake::config::{Sampling, Thresholds};
use pgwake::model::*;
use pgwake::monitor::{Sampler, Setup, Slow};
use pgwake::pg::Session;
use pgwake::ui::{Theme, draw};
use program::{Screen, run};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use ratatui::Terminal;
use ratatui::TerminalOptions;
use ratatui::Viewport;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use support::Db;
use support::ledger::{conninfo, migrated, session};
use support::server;

/// How often the rows are filled with other texts.
const ROUNDS: usize = 24;

/// What a terminal obeys, what turns the direction of text, and what has no width: by the Unicode character
/// database (General_Category Cc and Cf, Bidi_Control, Default_Ignorable_Code_Point).
fn is_forbidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200c}'
                | '\u{200e}'
                | '\u{200f}'
        )
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{e0000}'..='\u{e0fff}' | '\u{3164}' | '\u{ffa0}' | '\u{115f}' | '\u{1160}')
}

/// What is left of an output when the sequences that a renderer writes are taken out: CSI with its digits and
/// one final letter out of those that move, colour, clear and switch modes.
fn without_sequences(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).expect("whole UTF-8");
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        let open = rest.next();
        assert_eq!(open, Some('['), "ESC begins nothing but CSI here, found {open:?}");
        let last = rest.by_ref().find(|c| !matches!(c, '0'..='9' | ';' | ':' | '?'));
        assert!(last.is_some_and(|c| "HABCDGJKmhl".contains(c)), "CSI ends with {last:?}");
    }
    out
}

/// Fails with the character and its surroundings.
fn assert_harmless(text: &str, of: &str) {
    let all: Vec<char> = text.chars().collect();
    for (i, c) in all.iter().enumerate() {
        // a joiner belongs between two emoji, and there only
        let joins = *c == '\u{200d}'
            && i > 0
            && all[i - 1] > '\u{2190}'
            && all.get(i + 1).is_some_and(|n| *n > '\u{2190}');
        let hides = *c == '\u{200d}' && !joins;
        assert!(
            !is_forbidden(*c) && !hides,
            "{of}: U+{:04X} after {:?}",
            *c as u32,
            all[i.saturating_sub(20)..i].iter().collect::<String>()
        );
    }
}

/// Text as hostile as a text column can hold: anything but NUL, and often what terminals obey.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\u{1b}[2J\u{1b}[31m"),
        Just("\u{1b}]0;owned\u{7}"),
        Just("\u{1b}]52;c;ZXZpbA==\u{7}"),
        Just("\u{9b}31m"),
        Just("\u{1b}P+q\u{1b}\\"),
        Just("\r\n\t\u{b}\u{c}"),
        Just("\u{7f}\u{8}\u{8}"),
        Just("\u{202e}txt.exe\u{202c}"),
        Just("\u{2066}a\u{2069}"),
        Just("ad\u{200d}min"),
        Just("ad\u{200b}m\u{200c}in\u{feff}"),
        Just("👩\u{200d}🔧"),
        Just("작업 대기열"),
        Just("e\u{301}\u{302}\u{303}"),
        Just("\u{e0041}\u{e0042}"),
        Just("\u{61c}\u{200f}عربي"),
        Just("\u{2028}\u{2029}\u{85}"),
        Just("'; drop table jobs; --"),
        Just("%s%n"),
        Just("\\x1b[0m"),
    ];
    let any =
        proptest::collection::vec(any::<char>().prop_filter("text holds no NUL", |c| *c != '\0'), 0..12)
            .prop_map(|c| c.into_iter().collect::<String>());
    let part = prop_oneof![3 => piece.prop_map(str::to_owned), 1 => any, 1 => "[a-z]{1,9}", 1 => Just("x".repeat(700))];
    proptest::collection::vec(part, 1..6).prop_map(|parts| parts.concat())
}

/// Fills every text that the database can hand over.
async fn fill(db: &Db, text: &mut impl FnMut() -> String) {
    let client = db.connect().await;
    client.batch_execute("truncate pgwake.jobs, pgwake.outbox, pgwake.workers").await.unwrap();
    for state in ["ready", "running", "failed", "running"] {
        let (kind, holder, error) = (text(), text(), text());
        client
            .execute(
                "insert into pgwake.jobs (job_type, payload, status, locked_by, locked_until, lease_token, last_error, finished_at)
                 values ($1, jsonb_build_object('text', $2::text), $3::text,
                   case when $3 = 'running' then $4::text end,
                   case when $3 = 'running' then now() + (random() - 0.5) * interval '1 h' end,
                   case when $3 = 'running' then gen_random_uuid() end,
                   $5, case when $3 = 'failed' then now() end)",
                &[&kind, &text(), &state, &holder, &error],
            )
            .await
            .unwrap();
    }
    client
        .execute(
            "insert into pgwake.workers (name, ledger, host, pid, version, started_at, seen_at)
             values ($1, 'jobs', $2, 1, $3, now(), now())",
            &[&text(), &text(), &text()],
        )
        .await
        .unwrap();
}

/// A refusal by the server that quotes what somebody put into the database.
async fn refusal(session: &Session, text: &str) -> Loss {
    let raised = format!("do $do$ begin raise exception using message = {}; end $do$", quoted(text));
    session.batch(&raised, Duration::from_secs(5)).await.unwrap_err().loss()
}

fn quoted(text: &str) -> String {
    format!("e'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn now(second: u64) -> Now {
    let wall = DateTime::parse_from_rfc3339("2026-03-01T21:26:07Z").unwrap().to_utc();
    Now { mono: Duration::from_secs(second), wall: wall + chrono::TimeDelta::seconds(second as i64) }
}

fn tell(app: &mut App, second: u64, event: Event) {
    update(app, Msg::Event(Box::new(event)), now(second));
}

/// Draws through the backend that writes the escape sequences, into bytes.
fn bytes(app: &App, (width, height): (u16, u16)) -> Vec<u8> {
    let theme = Theme::load("dark").unwrap();
    let mut out = Vec::new();
    let fixed = TerminalOptions { viewport: Viewport::Fixed(Rect::new(0, 0, width, height)) };
    let mut terminal = Terminal::with_options(CrosstermBackend::new(&mut out), fixed).unwrap();
    terminal.draw(|frame| draw(frame, app, now(9), &theme)).unwrap();
    drop(terminal);
    out
}

/// Key presses that open every screen, its details and every dialog about what the database said.
const LOOKS: &[&[Key]] = &[
    &[Key::Char('1')],
    &[Key::Char('2')],
    &[Key::Char('2'), Key::Enter],
    &[Key::Char('3')],
    &[Key::Char('3'), Key::Enter],
    &[Key::Char('3'), Key::Char('r')],
    &[Key::Char('3'), Key::Char('R')],
    &[Key::Char('4')],
    &[Key::Char('4'), Key::Enter],
    &[Key::Char('5')],
    &[Key::Char('5'), Key::Enter],
    &[Key::Char('6')],
    &[Key::Char('7')],
    &[Key::Char('7'), Key::Enter],
    &[Key::Char('?')],
    &[Key::Char(':')],
];

#[tokio::test]
async fn nothing_that_a_terminal_obeys_gets_from_a_row_to_the_terminal() {
    let db = migrated().await;
    let session = session(&db).await;
    let mut runner =
        TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let texts = hostile();
    let mut text = || texts.new_tree(&mut runner).unwrap().current();
    let setup = Setup {
        conninfo: conninfo(db.conninfo()),
        profiles: Vec::new(),
        sampling: Sampling::default(),
        thresholds: Thresholds::default(),
        read_only: None,
    };
    let mut sampler = Sampler::connect(setup.clone()).await.unwrap();
    let mut slow = Slow::new(setup);
    let mut marked = 0;
    for _ in 0..ROUNDS {
        fill(&db, &mut text).await;
        let other = db.connect().await;
        // the server itself makes an application_name ASCII; idle in transaction, it is listed
        other.execute("select set_config('application_name', $1, false)", &[&text()]).await.unwrap();
        other
            .batch_execute(&format!("listen pgwake_work; begin; select {}", quoted(&text())))
            .await
            .unwrap();

        let mut app = App::new(AppSetup::new("shop@db-1:5432/orders"));
        tell(&mut app, 1, Event::Link(Link::Up(Box::new(sampler.server().clone()))));
        for second in 2..4 {
            for sample in sampler.sample().await.unwrap() {
                tell(&mut app, second, Event::Sample(Box::new(sample)));
            }
        }
        for backlog in slow.pass().await.unwrap() {
            tell(&mut app, 4, Event::Backlog(Box::new(backlog)));
        }
        let loss = refusal(&session, &text()).await;
        tell(&mut app, 5, Event::Listen(Listen::Down { loss: loss.clone(), up_ms: 9 }));
        let failed = WorkerEvent::ClaimFailed { ledger: "jobs".into(), loss };
        tell(&mut app, 5, Event::Worker(failed));
        for keys in LOOKS {
            let mut app = app.clone();
            for key in *keys {
                for intent in update(&mut app, Msg::Key(*key), now(6)) {
                    if let Some(answer) = slow.answer(&intent).await {
                        tell(&mut app, 6, answer);
                    }
                }
            }
            for size in [(200, 60), (80, 24)] {
                let out = without_sequences(&bytes(&app, size));
                assert_harmless(&out, &format!("{keys:?} at {size:?}"));
                marked += usize::from(out.contains('␛') || out.contains("<U+"));
            }
        }
    }
    assert!(marked > ROUNDS * 4, "the hostile texts were on the screens, as visible marks: {marked}");
}

/// A conninfo value that may hold anything.
fn value(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_itself_writes_no_hostile_byte_whatever_database_it_is_pointed_at() {
    let name = "ev\u{1b}[2J\u{202e}il\u{9b}31m";
    let admin = support::connect(&server().conninfo("postgres")).await;
    // a database of that name may be there from the other process of the same server
    admin.batch_execute(&format!("create database \"{name}\"")).await.unwrap();
    let with_name = format!("{} dbname={}", server().conninfo("postgres"), value(name));
    assert_eq!(run(&["migrate", &with_name], &[], "").code, 0);
    let client = support::connect(&with_name).await;
    let evil = "a\u{1b}]0;owned\u{7}\u{202e}b\u{200b}c\u{9b}31m";
    for state in ["ready", "running"] {
        client
            .execute(
                "insert into pgwake.jobs (job_type, status, locked_by, locked_until, lease_token)
                 values ($1, $2::text, case when $2 = 'running' then $1 end,
                   case when $2 = 'running' then now() - interval '1 min' end,
                   case when $2 = 'running' then gen_random_uuid() end)",
                &[&evil, &state],
            )
            .await
            .unwrap();
    }
    for command in [&["status"][..], &["status", "--json"], &["leases"], &["leases", "--json"]] {
        let ran = run(&[command, &[&with_name]].concat(), &[], "");
        assert_eq!(ran.code, 0, "{ran:?}");
        let lines = ran.out.replace('\n', " ");
        assert_harmless(&lines, &command.join(" "));
        assert!(!ran.out.contains('\u{1b}'));
    }

    let mut screen = Screen::start(&[&with_name], &[], (120, 36));
    screen.wait("the overview", |t| t.contains("Vital signs") && t.contains("expired"));
    for (key, there) in [
        ("2", "Backlog"),
        ("3", "holder"),
        ("4", "Workers"),
        ("5", "Sessions"),
        ("6", "Tape"),
        ("7", "Events"),
    ] {
        screen.press(key);
        screen.wait_for(there);
    }
    screen.press("3");
    screen.wait_for("holder");
    screen.press("r");
    screen.wait_for("Release");
    screen.press("\u{1b}");
    screen.wait("the dialog is closed", |t| !t.contains("Release job"));
    screen.press("q");
    assert_eq!(screen.end().0, 0);
    screen.wait_given_back();
    let raw = String::from_utf8(screen.raw()).unwrap();
    // the frames; what enters and leaves the screen is the program's own: modes, and line ends of its last words
    assert!(!raw.contains("owned\u{7}") && !raw.contains("\u{1b}]0;owned"), "a title was set");
    let visible = without_sequences(raw.replace("\r\n", " ").as_bytes());
    assert_harmless(&visible, "the whole run");
    assert!(visible.contains('␛'), "the name was shown, harmless");
}
