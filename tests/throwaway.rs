//! The throwaway server: it starts, it can be mistreated, and nothing of it is left.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use pgwake::demo::{Halt, Options, Server};
use rustix::process::{Pid, test_kill_process};
use support::{DEADLINE, backend_pid, connect, database, wait_until};

fn start() -> Server {
    Server::start(Options::default()).expect("a throwaway server")
}

fn lives(pid: u32) -> bool {
    // A zombie has a number, but no life in it.
    let zombie = fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'));
    !zombie && test_kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()).is_ok()
}

async fn ask(client: &tokio_postgres::Client, sql: &str) -> String {
    client.query_one(&format!("SELECT ({sql})::text"), &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn every_test_gets_a_fresh_database_on_one_server() {
    let (one, other) = (database().await, database().await);
    assert_ne!(one.name, other.name);
    one.connect().await.batch_execute("CREATE TABLE mine ()").await.unwrap();
    assert_eq!(
        ask(&other.connect().await, "SELECT count(*) FROM pg_class WHERE relname = 'mine'").await,
        "0"
    );
    assert_eq!(ask(&one.connect().await, "current_setting('server_encoding')").await, "UTF8");
}

#[tokio::test]
async fn it_answers_on_its_socket_and_on_nothing_else() {
    let server = start();
    let client = connect(&server.conninfo("postgres")).await;
    assert_eq!(ask(&client, "current_setting('listen_addresses')").await, "");
    let version = ask(&client, "current_setting('server_version')").await;
    assert!(version.starts_with(server.binaries().version()), "{version}");
    assert!(server.tcp_conninfo("postgres").is_none());
    assert!(std::net::TcpStream::connect(("127.0.0.1", server.port())).is_err());
}

#[test]
fn its_folder_is_closed_to_everybody_else() {
    let server = start();
    for dir in [server.folder().to_owned(), server.socket_dir(), server.folder().join("data")] {
        let mode = fs::metadata(&dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", dir.display());
    }
    let socket = server.socket_dir().join(format!(".s.PGSQL.{}", server.port()));
    assert!(socket.exists() && socket.as_os_str().len() <= 103);
}

#[tokio::test]
async fn over_tcp_it_asks_for_a_password() {
    let server = Server::start(Options { tcp: true, ..Options::default() }).unwrap();
    let conninfo = server.tcp_conninfo("postgres").unwrap();
    assert_eq!(ask(&connect(&conninfo).await, "current_setting('listen_addresses')").await, "127.0.0.1");
    let wrong = format!("host=127.0.0.1 port={} user=postgres password=wrong", server.port());
    let refused = tokio_postgres::connect(&wrong, tokio_postgres::NoTls).await.err().unwrap();
    assert_eq!(refused.code().unwrap().code(), "28P01");
}

#[test]
fn a_port_that_was_taken_meanwhile_is_told_and_the_server_can_start_later() {
    let mut server = Server::start(Options { tcp: true, ..Options::default() }).unwrap();
    server.stop_only(Halt::Fast).unwrap();
    let thief = std::net::TcpListener::bind(("127.0.0.1", server.port())).unwrap();
    let line = server.start_again().unwrap_err().to_string();
    assert!(line.contains("could not create any TCP/IP sockets"), "{line}");
    assert!(server.pid().is_none());
    drop(thief);
    server.start_again().unwrap();
}

#[tokio::test]
async fn two_servers_live_side_by_side() {
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(start);
        let other = scope.spawn(start);
        (one.join().unwrap(), other.join().unwrap())
    });
    assert_ne!(one.folder(), other.folder());
    for (server, its) in [(&one, "one"), (&other, "other")] {
        let client = connect(&server.conninfo("postgres")).await;
        client.batch_execute(&format!("CREATE DATABASE {its}")).await.unwrap();
        assert_eq!(ask(&client, "SELECT count(*) FROM pg_database").await, "4");
    }
    one.stop().unwrap();
    connect(&other.conninfo("other")).await;
}

#[tokio::test]
async fn it_starts_again_with_its_data_after_a_stop_and_after_a_crash() {
    let mut server = start();
    let conninfo = server.conninfo("postgres");
    connect(&conninfo).await.batch_execute("CREATE TABLE kept AS SELECT 1 AS n").await.unwrap();
    let first = server.pid();
    server.restart_fast().unwrap();
    assert_ne!(server.pid(), first);
    connect(&conninfo).await.batch_execute("INSERT INTO kept VALUES (2)").await.unwrap();
    server.restart_immediate().unwrap();
    assert_eq!(ask(&connect(&conninfo).await, "SELECT sum(n) FROM kept").await, "3");
    let log = fs::read_to_string(server.log_path()).unwrap();
    assert!(log.contains("was not properly shut down"), "the second stop was a crash");

    server.stop_only(Halt::Fast).unwrap();
    assert!(server.pid().is_none());
    assert!(tokio_postgres::connect(&conninfo, tokio_postgres::NoTls).await.is_err());
    server.stop_only(Halt::Fast).unwrap();
    server.start_again().unwrap();
    assert!(server.start_again().is_err(), "it runs already");
    connect(&conninfo).await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_frozen_backend_says_nothing_until_it_is_thawed() {
    let server = start();
    let client = connect(&server.conninfo("postgres")).await;
    let watcher = connect(&server.conninfo("postgres")).await;
    let pid = backend_pid(&client).await;
    server.freeze_backend(pid).unwrap();
    let stopped =
        async || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") T ").then_some(());
    wait_until("the backend is stopped", DEADLINE, stopped).await;
    let answer = tokio::spawn(async move { ask(&client, "SELECT 42").await });
    assert_eq!(ask(&watcher, "SELECT 1").await, "1", "the others go on");
    assert!(!answer.is_finished());
    server.thaw_backend(pid).unwrap();
    assert_eq!(tokio::time::timeout(DEADLINE, answer).await.unwrap().unwrap(), "42");
}

#[tokio::test]
async fn a_frozen_backend_does_not_hold_up_the_stop() {
    let server = start();
    let client = connect(&server.conninfo("postgres")).await;
    let pid = backend_pid(&client).await;
    server.freeze_backend(pid).unwrap();
    let begin = std::time::Instant::now();
    server.stop().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert!(!lives(pid));
}

#[test]
fn only_its_own_backends_can_be_frozen() {
    let server = start();
    let line = server.freeze_backend(std::process::id()).unwrap_err().to_string();
    assert!(line.contains("not a backend"), "{line}");
    assert!(server.freeze_backend(server.pid().unwrap()).is_err(), "nor the postmaster");
}

#[test]
#[cfg(target_os = "linux")]
fn as_root_it_runs_as_somebody_else_with_nothing_of_roots() {
    let server = start();
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid().unwrap())).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(field("Uid:").iter().all(|uid| uid != "0"), "{status}");
    if rustix::process::geteuid().is_root() {
        assert!(field("Groups:").is_empty(), "{status}");
    }
}

#[test]
fn a_setting_it_does_not_know_is_told_in_one_line_and_leaves_nothing() {
    let settings = vec![("no_such_setting".to_owned(), "it's".to_owned())];
    let line = Server::start(Options { settings, ..Options::default() }).unwrap_err().to_string();
    assert!(line.contains("no_such_setting") && !line.contains('\n'), "{line}");
    let settings = vec![("shared_buffers".to_owned(), "much".to_owned())];
    let line = Server::start(Options { settings, ..Options::default() }).unwrap_err().to_string();
    assert!(line.contains("shared_buffers"), "{line}");
}

#[test]
fn without_binaries_it_names_the_package_in_one_line() {
    let empty = tempfile::tempdir().unwrap();
    let pg_bin = Some(empty.path().to_owned());
    let line = Server::start(Options { pg_bin, ..Options::default() }).unwrap_err().to_string();
    assert!(line.contains("postgresql") && line.contains("install") && !line.contains('\n'), "{line}");
    assert!(line.contains(empty.path().to_str().unwrap()), "{line}");
}

#[test]
fn stopping_and_dropping_it_leave_nothing() {
    for stop in [|server: Server| server.stop().unwrap(), |server: Server| drop(server)] {
        let server = start();
        let (postmaster, reaper) = (server.pid().unwrap(), server.reaper_pid().unwrap());
        let folder = server.folder().to_owned();
        assert!(lives(postmaster) && lives(reaper) && folder.exists());
        stop(server);
        assert!(!lives(postmaster) && !lives(reaper) && !folder.exists());
    }
}

#[tokio::test]
async fn after_sigkill_nothing_is_left() {
    let (mut holder, held) = Held::by("a_server_is_held_until_the_end");
    let client = connect(&held.conninfo).await;
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_until("the reaper cleans up", DEADLINE, async || held.is_gone().then_some(())).await;
    assert!(client.is_closed());
}

#[tokio::test]
async fn after_sigkill_a_frozen_backend_does_not_keep_it_alive() {
    let (mut holder, held) = Held::by("a_server_is_held_until_the_end");
    let client = connect(&held.conninfo).await;
    let pid = backend_pid(&client).await;
    let target = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(target, rustix::process::Signal::STOP).unwrap();
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_until("the reaper cleans up", DEADLINE, async || held.is_gone().then_some(())).await;
    wait_until("the backend is gone", DEADLINE, async || (!lives(pid)).then_some(())).await;
}

#[tokio::test]
async fn sigkill_while_the_cluster_is_being_made_leaves_nothing() {
    let temp = tempfile::tempdir_in("/tmp").unwrap();
    // another user has to be able to work there, if we are root
    fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let entries = || fs::read_dir(temp.path()).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
    let mut holder = helper("a_server_is_held_until_the_end").env("TMPDIR", temp.path()).spawn().unwrap();
    let at_work = async || entries().iter().any(|e| e.join("data/base").exists()).then_some(());
    wait_until("initdb is at work", DEADLINE, at_work).await;
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_until("the reaper cleans up", DEADLINE, async || entries().is_empty().then_some(())).await;
}

#[tokio::test]
async fn an_exit_without_destructors_leaves_nothing() {
    let (mut holder, held) = Held::by("a_server_is_held_until_the_end");
    // the end of its input is its sign to leave by `process::exit`
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    wait_until("the reaper cleans up", DEADLINE, async || held.is_gone().then_some(())).await;
}

#[tokio::test]
async fn the_reaper_is_deaf_to_the_signals_of_a_terminal() {
    use rustix::process::{Signal, kill_process};
    let (mut holder, held) = Held::by("a_server_is_held_until_the_end");
    let reaper = Pid::from_raw(i32::try_from(held.reaper).unwrap()).unwrap();
    for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
        kill_process(reaper, signal).unwrap();
    }
    assert!(lives(held.reaper));
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_until("the reaper cleans up", DEADLINE, async || held.is_gone().then_some(())).await;
}

/// One of the helpers below, to run in a process of its own.
fn helper(name: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture"]).env(HELPER, "yes");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// What another process holds.
struct Held {
    postmaster: u32,
    reaper: u32,
    folder: PathBuf,
    conninfo: String,
}

impl Held {
    /// Runs one of the helpers below in a process of its own.
    fn by(helper: &str) -> (std::process::Child, Self) {
        let mut holder = self::helper(helper).spawn().unwrap();
        let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
        let line = lines.map(Result::unwrap).find(|l| l.contains("held\t")).expect("the helper's line");
        let mut words = line.split('\t').skip(1);
        let mut next = || words.next().unwrap().to_owned();
        let held = Self {
            postmaster: next().parse().unwrap(),
            reaper: next().parse().unwrap(),
            folder: next().into(),
            conninfo: next(),
        };
        assert!(lives(held.postmaster) && lives(held.reaper) && held.folder.exists());
        (holder, held)
    }

    fn is_gone(&self) -> bool {
        !self.folder.exists() && !lives(self.postmaster) && !lives(self.reaper)
    }
}

const HELPER: &str = "PGWAKE_TEST_HELPER";

#[test]
#[ignore = "a helper that other tests run in a process of its own"]
fn a_server_is_held_until_the_end() {
    if env::var_os(HELPER).is_none() {
        return;
    }
    let server = start();
    let (postmaster, reaper) = (server.pid().unwrap(), server.reaper_pid().unwrap());
    let (folder, conninfo) = (server.folder().display(), server.conninfo("postgres"));
    println!("held\t{postmaster}\t{reaper}\t{folder}\t{conninfo}");
    std::io::stdin().lines().for_each(drop);
    std::process::exit(0);
}
