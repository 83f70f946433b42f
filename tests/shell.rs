//! The real binary as a job of a shell in a pseudo-terminal: stopped and continued, ended by signals, with
//! its terminal closed, resized without end; what it writes and what it leaves at the server.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/program.rs"]
mod program;
mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use program::{LIMIT, Screen, run};
use support::{DEADLINE, Db, database, wait_until};

const WIDE: (u16, u16) = (120, 36);

/// The state of the terminal before, while stopped, and after; and words that a test can wait for.
const JOB: &str = "stty -a > $D/before; set -m; \"$PGWAKE\" $ARGS \"$CONN\"; stty -a > $D/stopped; echo STOPPED; \
                   read x; fg >/dev/null; stty -a > $D/after; echo OVER";

struct Job {
    db: Db,
    folder: PathBuf,
    screen: Screen,
}

impl Job {
    async fn start(name: &str, args: &str) -> Self {
        let db = database().await;
        assert_eq!(run(&["migrate", db.conninfo(), "--scratch"], &[], "").code, 0);
        let folder =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("job-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let env = [("D", folder.to_str().unwrap()), ("CONN", db.conninfo()), ("ARGS", args)];
        let screen = Screen::shell(JOB, &env, WIDE);
        screen.wait_for("LISTEN pgwake_work");
        Self { db, folder, screen }
    }

    /// The modes of the terminal; its size, in the first line, is not the program's.
    fn stty(&self, when: &str) -> String {
        let all = fs::read_to_string(self.folder.join(when)).unwrap();
        all.split_once('\n').expect("some lines").1.to_owned()
    }

    /// The process of the binary, a child of the shell.
    fn pid(&self) -> String {
        let shell = self.screen.pid();
        let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        children.split_whitespace().next().unwrap().to_owned()
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.pid()]).status().unwrap().success());
    }
}

/// Backend pids of sessions of this kind in the database.
async fn sessions(db: &Db, kind: &str) -> Vec<i32> {
    let client = db.connect().await;
    let sql =
        "select pid from pg_stat_activity where datname = $1 and application_name like $2 order by pid";
    let rows = client.query(sql, &[&db.name, &format!("pgwake/{kind}%")]).await.unwrap();
    rows.iter().map(|r| r.get(0)).collect()
}

async fn gone(db: &Db) {
    wait_until("no session is left", DEADLINE, async || sessions(db, "").await.is_empty().then_some(()))
        .await;
}

fn times(raw: &[u8], needle: &[u8]) -> usize {
    raw.windows(needle.len()).filter(|w| *w == needle).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_z_gives_the_shell_a_sane_terminal_and_leaves_no_listener() {
    let mut job = Job::start("ctrl-z", "").await;
    let before = sessions(&job.db, "listen").await;
    assert_eq!(before.len(), 1);
    job.screen.press("\u{1a}");
    job.screen.wait_for("STOPPED");
    assert!(!job.screen.is_alternate());
    assert_eq!(job.stty("before"), job.stty("stopped"));
    wait_until("the listener is gone", Duration::from_secs(2), async || {
        sessions(&job.db, "listen").await.is_empty().then_some(())
    })
    .await;
    // the terminal has another size when it goes on
    job.screen.resize(100, 30);
    job.screen.press("\n");
    job.screen.wait("the screen again, in the new size", |t| {
        t.contains("Vital signs") && t.lines().count() == 30 && t.contains("q quit")
    });
    assert!(job.screen.is_alternate());
    let again = wait_until("the listener is back", DEADLINE, async || {
        Some(sessions(&job.db, "listen").await).filter(|s| !s.is_empty())
    })
    .await;
    assert_ne!(before, again);
    job.screen.press("7");
    job.screen.wait_for("closed while the program is stopped");
    job.screen.press("q");
    job.screen.wait_for("OVER");
    assert_eq!(job.stty("before"), job.stty("after"));
    gone(&job.db).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_gives_back_what_it_holds_before_it_stops_and_scans_when_it_goes_on() {
    let mut job = Job::start("worker", "--handler noop").await;
    job.screen.press("w");
    job.screen.wait_for("Start a worker");
    job.screen.press("\r");
    job.screen.wait_for("● worker");
    job.screen.press("\u{1a}");
    job.screen.wait_for("STOPPED");
    wait_until("the worker is gone", Duration::from_secs(3), async || {
        (sessions(&job.db, "work").await.is_empty() && sessions(&job.db, "listen").await.is_empty())
            .then_some(())
    })
    .await;
    assert_eq!(run(&["enqueue", "mail", "-", "-d", job.db.conninfo()], &[], &"{}\n".repeat(5)).code, 0);
    job.screen.press("\n");
    let client = job.db.connect().await;
    wait_until("what came meanwhile is done", DEADLINE, async || {
        let sql = "select count(*) from pgwake.jobs where status <> 'done'";
        (client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 0).then_some(())
    })
    .await;
    job.screen.wait_for("● worker");
    job.screen.press("q");
    job.screen.wait_for("OVER");
    gone(&job.db).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_signal_from_outside_is_the_same_as_the_key() {
    let mut job = Job::start("tstp", "").await;
    job.signal("-TSTP");
    job.screen.wait_for("STOPPED");
    assert!(!job.screen.is_alternate());
    assert_eq!(job.stty("before"), job.stty("stopped"));
    wait_until("the listener is gone", Duration::from_secs(2), async || {
        sessions(&job.db, "listen").await.is_empty().then_some(())
    })
    .await;
    job.screen.press("\n");
    job.screen.wait_for("Vital signs");
    job.screen.press("q");
    job.screen.wait_for("OVER");
    assert_eq!(job.stty("before"), job.stty("after"));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_standstill_it_listens_anew_and_draws_everything() {
    let mut job = Job::start("stop", "").await;
    let before = sessions(&job.db, "listen").await;
    job.signal("-STOP");
    // the standstill itself is what is tried here: well longer than a gap that passes for normal, which is
    // counted from the tick before it
    std::thread::sleep(Duration::from_secs(14));
    // by the shell, which gives it the terminal: continued from elsewhere it would be in the background, and be
    // stopped again as soon as it touches the terminal. The terminal is still raw: no return becomes a line end
    job.screen.wait_for("STOPPED");
    job.screen.press("\n");
    wait_until("another listener", DEADLINE, async || {
        let now = sessions(&job.db, "listen").await;
        (!now.is_empty() && now != before).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_end_it_with_the_terminal_as_it_was_and_no_session_left() {
    for signal in ["-TERM", "-HUP", "-INT"] {
        let job = Job::start(&signal[1..], "").await;
        job.signal(signal);
        job.screen.wait_for("STOPPED");
        assert!(!job.screen.is_alternate());
        assert_eq!(job.stty("before"), job.stty("stopped"), "{signal}");
        gone(&job.db).await;
    }
    // nothing can be restored after this one, but the server is free of it
    let job = Job::start("KILL", "").await;
    job.signal("-KILL");
    gone(&job.db).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_terminal_ends_it_and_its_leases_are_given_back() {
    let mut job = Job::start("closed", "--handler simulate").await;
    // it takes longer than anybody waits
    let long = "{\"ms\": 600000}\n";
    assert_eq!(run(&["enqueue", "mail", "-", "-d", job.db.conninfo()], &[], long).code, 0);
    job.screen.press("w");
    job.screen.wait_for("Start a worker");
    job.screen.press("\r");
    let client = job.db.connect().await;
    let held = async || {
        let sql = "select count(*) from pgwake.jobs where status = 'running'";
        client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0)
    };
    wait_until("the job is held", DEADLINE, async || (held().await == 1).then_some(())).await;
    // the session's leader dies, as a login shell does when its connection is lost: the terminal is gone
    let shell = job.screen.pid().to_string();
    assert!(Command::new("kill").args(["-KILL", &shell]).status().unwrap().success());
    gone(&job.db).await;
    assert_eq!(held().await, 0, "the lease was given back");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_sizes_do_not_touch_the_sessions() {
    let mut job = Job::start("resize", "").await;
    let before = (sessions(&job.db, "listen").await, sessions(&job.db, "stats").await);
    for i in 0..200u16 {
        job.screen.resize(1 + i * 37 % 240, 1 + i * 23 % 80);
    }
    job.screen.resize(0, 0);
    job.screen.resize(500, 200);
    job.screen.resize(120, 36);
    job.screen.wait("the whole screen", |t| t.contains("Vital signs") && t.contains("q quit"));
    assert_eq!(before, (sessions(&job.db, "listen").await, sessions(&job.db, "stats").await));
    job.screen.press("q");
    job.screen.wait_for("STOPPED");
    assert_eq!(job.stty("before"), job.stty("stopped"));
}

/// The letters and digits of a colour in an SGR sequence, if there is one.
fn colours(raw: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(raw);
    let sgr = text.split("\u{1b}[").skip(1).filter_map(|s| {
        let end = s.find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':')?;
        s[end..].starts_with('m').then(|| s[..end].to_owned())
    });
    let is_colour = |p: &str| matches!(p.parse(), Ok(30..=38 | 40..=48 | 90..=107));
    sgr.filter(|s| s.split([';', ':']).any(is_colour)).collect()
}

/// Presses every key that does no harm.
fn tour(screen: &mut Screen) {
    for keys in ["1", "3", "j", "k", "G", "g", "7", "\t", "\u{1b}[Z", " ", " ", "t", "\u{c}", "y", ":"] {
        screen.press(keys);
    }
    screen.wait_for("Find by name");
    // twice: what follows an escape could be part of it
    screen.press("\u{1b}");
    screen.wait("the palette is closed", |t| !t.contains("Find by name"));
    screen.press("?");
    screen.wait_for("Keys on the screen");
    screen.press("\u{1b}");
    screen.wait("the help is closed", |t| !t.contains("Keys on the screen"));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_color_means_none_and_a_c_locale_means_ascii() {
    let db = database().await;
    assert_eq!(run(&["migrate", db.conninfo()], &[], "").code, 0);
    let client = db.connect().await;
    let sql = "insert into pgwake.jobs (job_type, status, locked_by, locked_until, lease_token, attempts)
               values ('메일', 'running', '担当者-東京', now() + interval '1 hour', gen_random_uuid(), 1)";
    client.batch_execute(sql).await.unwrap();
    for (env, plain, ascii) in [
        (vec![("NO_COLOR", "1")], true, false),
        (vec![("LC_ALL", "C"), ("LANG", "en_US.UTF-8")], false, true),
        (vec![("COLORTERM", "truecolor"), ("PGWAKE_THEME", "nord")], false, false),
    ] {
        let mut screen = Screen::start(&[db.conninfo()], &env, WIDE);
        screen.wait_for("LISTEN pgwake_work");
        tour(&mut screen);
        screen.press("q");
        assert_eq!(screen.end().0, 0);
        let raw = screen.raw();
        assert_eq!(colours(&raw).is_empty(), plain, "{env:?}: {:?}", colours(&raw).first());
        assert_eq!(raw.is_ascii(), ascii, "{env:?}");
        for mouse in ["\u{1b}[?1000h", "\u{1b}[?1002h", "\u{1b}[?1003h", "\u{1b}[?1006h"] {
            assert_eq!(times(&raw, mouse.as_bytes()), 0, "{mouse:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_it_writes_little_and_never_erases_the_screen() {
    let db = database().await;
    assert_eq!(run(&["migrate", db.conninfo()], &[], "").code, 0);
    let screen = Screen::start(&[db.conninfo()], &[], (80, 24));
    screen.wait_for("LISTEN");
    let (began, before) = (Instant::now(), screen.raw().len());
    // time is what is measured here
    std::thread::sleep(Duration::from_secs(5));
    let wrote = screen.raw().len() - before;
    let a_second = wrote as f64 / began.elapsed().as_secs_f64();
    println!("idle: {a_second:.0} bytes a second at 80x24");
    assert!(a_second < 2048.0, "{a_second}");
    assert_eq!(times(&screen.raw(), b"\x1b[2J"), 0);
    assert!(began.elapsed() < LIMIT);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mouse_is_taken_when_asked_for_and_given_back() {
    let db = database().await;
    assert_eq!(run(&["migrate", db.conninfo()], &[], "").code, 0);
    let client = db.connect().await;
    let sql = "insert into pgwake.jobs (job_type, status, locked_by, locked_until, lease_token, attempts)
               select 'mail', 'running', 'worker', now() + i * interval '1 hour', gen_random_uuid(), 1
               from generate_series(1, 9) as i";
    client.batch_execute(sql).await.unwrap();
    let mut screen = Screen::start(&["--mouse", db.conninfo()], &[], (80, 24));
    screen.wait_for("LISTEN");
    screen.press("3");
    screen.wait_for("attempts");
    // a click on the third row of the list, then its id
    screen.press("\u{1b}[<0;10;7M\u{1b}[<0;10;7m");
    screen.press("y");
    screen.wait_for("copied the job's id");
    screen.press("q");
    assert_eq!(screen.end().0, 0);
    let raw = screen.raw();
    assert!(times(&raw, b"\x1b[?1000h") == 1 && times(&raw, b"\x1b[?1000l") >= 1);
    // "3" in base64
    assert!(times(&raw, b"\x1b]52;c;Mw==") == 1, "the id went to the clipboard");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_has_its_label_its_keys_and_takes_actions_away() {
    let db = database().await;
    assert_eq!(run(&["migrate", db.conninfo()], &[], "").code, 0);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("target-{}", std::process::id()));
    fs::create_dir_all(folder.join("themes")).unwrap();
    fs::write(folder.join("themes/mine.toml"), "name = \"mine\"\ninherits = \"nord\"").unwrap();
    let file = folder.join("config.toml");
    let text = format!(
        "theme = \"mine\"\n[keys]\nleases = \"L\"\n[targets.production]\nconninfo = \"{}\"\nlabel = \"PROD\"\n\
         bar = \"red\"\nread_only = true\nprofiles = [\"jobs\"]\n",
        db.conninfo()
    );
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let mut screen = Screen::start(&["@production", "--config", file], &[], WIDE);
    screen.wait("label and reason", |t| t.contains("PROD") && t.contains("@production is read_only"));
    screen.press("L");
    screen.wait_for("attempts");
    screen.press("R");
    screen.wait_for("release refused");
    screen.press("q");
    assert_eq!(screen.end().0, 0);

    let refused = run(&["enqueue", "mail", "-d", "@production", "--config", file], &[], "");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("@production is read_only"), "{refused:?}");
    let read = run(&["status", "@production", "--config", file], &[], "");
    assert_eq!(read.code, 0, "{read:?}");
    let unknown = run(&["status", "@prod", "--config", file], &[], "");
    assert!(unknown.code == 2 && unknown.err.contains("it has @production"), "{unknown:?}");
    let printed = run(&["config", "--config", file], &[], "");
    assert!(printed.out.contains("theme = \"mine\"") && !printed.out.contains(&db.name), "{printed:?}");
}

#[test]
fn a_bad_file_is_one_line_and_exit_code_2() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bad-{}.toml", std::process::id()));
    let name = file.to_str().unwrap();
    fs::write(&file, "[thresholds]\noldest_redy = \"60s\"\n").unwrap();
    let ran = run(&["status", "--config", name], &[], "");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains(":2: ") && ran.err.contains("did you mean oldest_ready?"), "{ran:?}");
    assert_eq!(ran.err.lines().count(), 1);
    fs::write(&file, "[targets.a]\npassword = \"sesame\"\n").unwrap();
    let ran = run(&["status", "@a", "--config", name], &[], "");
    assert!(ran.code == 2 && ran.err.contains("chmod 600") && !ran.err.contains("sesame"), "{ran:?}");
    let ran = run(&["status", "--config", "/nowhere/config.toml"], &[], "");
    assert!(ran.code == 2 && ran.err.contains("/nowhere/config.toml"), "{ran:?}");
    let example = run(&["config", "--example"], &[], "");
    assert!(example.code == 0 && example.out.contains("[targets.production]"));
}
