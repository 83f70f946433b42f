//! Commands run from the dashboard: only when somebody has said yes, and none is left behind.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/program.rs"]
mod program;
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use program::{Screen, run};
use support::{DEADLINE, Db, database, wait_until};

const WIDE: (u16, u16) = (120, 36);

/// A database with real work, a folder of the test's own, and a configuration file that names a command.
struct Scene {
    db: Db,
    folder: PathBuf,
    config: String,
}

impl Scene {
    /// The command is a script of the shell; `$D` is the folder.
    async fn new(name: &str, script: &str) -> Self {
        let db = database().await;
        assert_eq!(run(&["migrate", db.conninfo()], &[], "").code, 0);
        assert_eq!(run(&["enqueue", "mail", "-d", db.conninfo()], &[], "").code, 0);
        let folder =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("dash-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("job");
        fs::write(&program, format!("#!/bin/sh\nD={}\n{script}\n", folder.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let config = folder.join("config.toml");
        fs::write(&config, format!("[worker]\ncommand = [\"{}\", \"--two words\"]\n", program.display()))
            .unwrap();
        Self { db, config: config.display().to_string(), folder }
    }

    fn screen(&self) -> Screen {
        let screen = Screen::start(&[self.db.conninfo(), "--config", &self.config], &[], WIDE);
        screen.wait_for("no worker alive");
        screen
    }

    async fn number(&self, sql: &str) -> i64 {
        self.db.connect().await.query_one(&format!("select ({sql})::bigint"), &[]).await.unwrap().get(0)
    }

    async fn until(&self, n: i64, what: &str, sql: &str) {
        wait_until(what, DEADLINE, async || (self.number(sql).await == n).then_some(())).await;
    }

    /// The pids that the command has written, once there are `n`.
    async fn pids(&self, n: usize) -> Vec<String> {
        wait_until("pids", DEADLINE, async || {
            let text = fs::read_to_string(self.folder.join("pids")).unwrap_or_default();
            let pids: Vec<String> = text.lines().map(str::to_owned).collect();
            (text.ends_with('\n') && pids.len() == n).then_some(pids)
        })
        .await
    }
}

const ATTEMPTS: &str = "select sum(attempts) from pgwake.jobs";
const RUNNING: &str = "select count(*) from pgwake.jobs where status = 'running'";
const READY: &str = "select count(*) from pgwake.jobs where status = 'ready'";
const DONE: &str = "select count(*) from pgwake.jobs where status = 'done'";

/// Runs for ever with a child; neither heeds TERM.
const STUBBORN: &str = "trap '' TERM; sh -c 'trap \"\" TERM; sleep 600' & echo $$ >> $D/pids; echo $! >> $D/pids; wait; sleep 600";
/// The same, but TERM ends both.
const PLAIN: &str = "sleep 600 & echo $$ >> $D/pids; echo $! >> $D/pids; wait";

fn alive(pids: &[String]) -> Vec<&String> {
    let lives = |pid: &&String| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    pids.iter().filter(lives).collect()
}

fn start_work(screen: &mut Screen) {
    screen.press("w");
    screen.wait_for("Start a worker");
    screen.press("\r");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_is_shown_and_runs_only_after_a_yes() {
    let scene = Scene::new("yes", "echo \"$1\" > $D/ran").await;
    let mut screen = scene.screen();
    screen.press("w");
    let asked = screen.wait_for("Start a worker");
    let program = scene.folder.join("job").display().to_string();
    let one_line = asked.replace(['│', '\n', ' '], "");
    assert!(one_line.contains(&program) && asked.contains("\"--two words\""), "{asked}");
    assert!(asked.contains("real work"), "{asked}");
    screen.press("\u{1b}");
    screen.wait("the question is gone", |t| !t.contains("Start a worker"));
    assert_eq!(scene.number(ATTEMPTS).await, 0);
    start_work(&mut screen);
    scene.until(1, "the job is done", DONE).await;
    assert_eq!(fs::read_to_string(scene.folder.join("ran")).unwrap(), "--two words\n");
    screen.press("q");
    assert_eq!(screen.end().0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_missing_or_has_gone_is_said_and_nothing_is_claimed() {
    let scene = Scene::new("missing", "exit 0").await;
    let mut screen = scene.screen();
    fs::remove_file(scene.folder.join("job")).unwrap();
    start_work(&mut screen);
    screen.wait_for("no such program");
    screen.press("q");
    assert_eq!(screen.end().0, 0);
    // and before the start: looking is possible all the same
    let mut screen = scene.screen();
    screen.press("w");
    screen.wait_for("no such program");
    screen.press("\u{1b}");
    screen.wait("it is closed", |t| !t.contains("no such program"));
    screen.press("q");
    assert_eq!(screen.end().0, 0);
    assert_eq!(scene.number(ATTEMPTS).await, 0);
    let asked = run(&[scene.db.conninfo(), "--config", &scene.config, "--handler", "exec"], &[], "");
    assert_eq!(asked.code, 2, "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn w_again_ends_commands_with_their_children_and_gives_their_jobs_back() {
    let scene = Scene::new("stop", PLAIN).await;
    let mut screen = scene.screen();
    start_work(&mut screen);
    let pids = scene.pids(2).await;
    assert_eq!(alive(&pids).len(), 2);
    screen.wait("it runs", |t| t.contains("started"));
    screen.press("w");
    scene.until(1, "the job is given back", READY).await;
    assert_eq!(alive(&pids), Vec::<&String>::new());
    assert_eq!(scene.number(RUNNING).await, 0);
    screen.press("q");
    assert_eq!(screen.end().0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn q_leaves_no_command_that_heeds_nothing_and_no_lease() {
    let scene = Scene::new("quit", STUBBORN).await;
    let mut screen = scene.screen();
    start_work(&mut screen);
    let pids = scene.pids(2).await;
    screen.press("q");
    let (code, took) = screen.end();
    assert_eq!(code, 0);
    assert!(took < Duration::from_secs(8), "{took:?}");
    screen.wait_given_back();
    assert_eq!(alive(&pids), Vec::<&String>::new());
    assert_eq!((scene.number(RUNNING).await, scene.number(READY).await), (0, 1));
}

/// The program under a shell, as somebody runs it.
fn under_a_shell(scene: &Scene, script: &str) -> Screen {
    let env = [("CONN", scene.db.conninfo()), ("CONFIG", scene.config.as_str())];
    let screen = Screen::shell(script, &env, WIDE);
    screen.wait_for("no worker alive");
    screen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_terminal_leaves_no_command_and_no_lease() {
    let scene = Scene::new("lost", STUBBORN).await;
    let mut screen = under_a_shell(&scene, "\"$PGWAKE\" \"$CONN\" --config \"$CONFIG\"; true");
    start_work(&mut screen);
    let pids = scene.pids(2).await;
    let shell = screen.pid().to_string();
    assert!(Command::new("kill").args(["-KILL", &shell]).status().unwrap().success());
    scene.until(1, "the job is given back", READY).await;
    wait_until("no command is left", DEADLINE, async || alive(&pids).is_empty().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_program_is_stopped_no_command_runs_and_afterwards_it_goes_on() {
    let scene = Scene::new("rest", STUBBORN).await;
    let script = "set -m; \"$PGWAKE\" \"$CONN\" --config \"$CONFIG\"; echo STOPPED; read x; fg >/dev/null";
    let mut screen = under_a_shell(&scene, script);
    start_work(&mut screen);
    let pids = scene.pids(2).await;
    screen.wait("it runs", |t| t.contains("started"));
    screen.press("\u{1a}");
    screen.wait_for("STOPPED");
    wait_until("no command is left", DEADLINE, async || alive(&pids).is_empty().then_some(())).await;
    assert_eq!((scene.number(RUNNING).await, scene.number(READY).await), (0, 1));
    screen.press("\n");
    scene.until(1, "it works again", RUNNING).await;
    screen.wait_for("Vital signs");
    let both = scene.pids(4).await;
    screen.press("q");
    screen.end();
    assert_eq!(alive(&both), Vec::<&String>::new());
}
