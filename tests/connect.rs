//! Connecting: each failure is one line that says where, what and what to do, and never a password; TLS
//! does what its sslmode says.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pgwake::demo::{Options, Server};
use pgwake::pg::{Error, Purpose, Session};
use support::DEADLINE;
use support::ledger::{conninfo, run};

const PASSWORD: &str = "s3cr3t-pa55";

async fn open(text: &str) -> Result<Session, Error> {
    Session::connect(&conninfo(text), Purpose::Command).await
}

/// The one line of a connection that fails.
async fn refused(text: &str) -> String {
    let Err(refused) = open(text).await else { panic!("connected: {text}") };
    assert!(refused.is_session_lost());
    let line = refused.to_string();
    assert!(!line.contains('\n'), "{line}");
    for part in [PASSWORD, "wr0ng-pa55"] {
        assert!(!line.contains(part) && !format!("{refused:?}").contains(part), "{line}");
    }
    line
}

/// A server on the loopback that has TLS, and the folder with the certificates.
struct Secure {
    server: Server,
    folder: tempfile::TempDir,
}

impl Secure {
    fn port(&self) -> u16 {
        self.server.port()
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

fn openssl(folder: &Path, line: &str) {
    let status = Command::new("openssl")
        .args(line.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("openssl, which comes with the server's package on Debian and Ubuntu");
    assert!(status.success(), "openssl {line}");
}

/// Two authorities, and a certificate for `localhost` from the first of them.
fn secure() -> &'static Secure {
    static SECURE: OnceLock<Secure> = OnceLock::new();
    SECURE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let ec = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        for ca in ["ca", "other"] {
            openssl(at, &format!("req -x509 {ec} -subj /CN={ca} -days 2 -keyout {ca}.key -out {ca}.crt"));
        }
        std::fs::write(at.join("san"), "subjectAltName=DNS:localhost\n").unwrap();
        openssl(at, &format!("req -new {ec} -subj /CN=localhost -keyout server.key -out server.csr"));
        openssl(
            at,
            "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile san -out server.crt",
        );
        let files = ["server.crt", "server.key"]
            .map(|name| (name.to_owned(), std::fs::read(at.join(name)).unwrap()))
            .to_vec();
        let options = Options {
            tcp: true,
            password: Some(PASSWORD.to_owned()),
            settings: vec![("ssl".to_owned(), "on".to_owned())],
            files,
            ..Options::default()
        };
        Secure { server: Server::start(options).unwrap(), folder }
    })
}

/// A server on the loopback that has no TLS.
fn plain() -> &'static Server {
    static PLAIN: OnceLock<Server> = OnceLock::new();
    PLAIN.get_or_init(|| {
        let options = Options { tcp: true, password: Some(PASSWORD.to_owned()), ..Options::default() };
        Server::start(options).unwrap()
    })
}

fn to(host: &str, port: u16, more: &str) -> String {
    format!("host={host} port={port} user=postgres password={PASSWORD} dbname=postgres {more}")
}

async fn is_encrypted(session: &Session) -> bool {
    let sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
    session.one(sql, &[], DEADLINE).await.unwrap().get(0)
}

#[tokio::test]
async fn where_nobody_listens_the_address_and_the_options_are_named() {
    // a port that was free a moment ago
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let line = refused(&to("127.0.0.1", port, "")).await;
    assert!(line.contains(&format!("postgres@127.0.0.1:{port}/postgres")), "{line}");
    assert!(line.contains("refused") && line.contains("-h") && line.contains("-p"), "{line}");

    let folder = tempfile::tempdir().unwrap();
    let line = refused(&to(folder.path().to_str().unwrap(), 5432, "")).await;
    assert!(line.contains(folder.path().to_str().unwrap()) && line.contains("-h"), "{line}");

    let line = refused(&to("no-such-host.invalid", 5432, "")).await;
    assert!(line.contains("no-such-host.invalid") && line.contains("check the host name"), "{line}");
}

#[tokio::test]
async fn a_host_that_accepts_and_never_answers_is_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let begin = Instant::now();
    let line = refused(&to("127.0.0.1", port, "connect_timeout=2")).await;
    assert!(line.contains("no answer within 2 s"), "{line}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn the_second_host_is_tried_when_the_first_is_not_there() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text =
        to("127.0.0.1,127.0.0.1", 1, "").replace("port=1", &format!("port={gone},{}", plain().port()));
    let session = open(&text).await.unwrap_or_else(|e| panic!("{e}"));
    assert!(session.pid() > 0);
}

#[tokio::test]
async fn a_wrong_or_missing_password_is_told_without_showing_one() {
    let text = to("127.0.0.1", plain().port(), "");
    assert!(open(&text).await.is_ok());
    let wrong = text.replace(PASSWORD, "wr0ng-pa55");
    let line = refused(&wrong).await;
    assert!(line.contains("28P01") && line.contains("PGPASSWORD"), "{line}");
    assert!(line.contains(&format!("postgres@127.0.0.1:{}/postgres", plain().port())), "{line}");
    let uri = format!("postgresql://postgres:wr0ng-pa55@127.0.0.1:{}/postgres", plain().port());
    assert!(refused(&uri).await.contains("28P01"));
    let none = text.replace(&format!("password={PASSWORD}"), "");
    let line = refused(&none).await;
    assert!(line.contains("PGPASSWORD"), "{line}");
}

#[tokio::test]
async fn a_missing_database_or_role_is_named_with_what_to_do() {
    let text = to("127.0.0.1", plain().port(), "");
    let line = refused(&text.replace("dbname=postgres", "dbname=nowhere")).await;
    assert!(line.contains("3D000") && line.contains("\"nowhere\"") && line.contains("-d"), "{line}");
    let line = refused(&plain().conninfo("postgres").replace("user=postgres", "user=nobody_here")).await;
    assert!(line.contains("nobody_here") && line.contains("check the user name"), "{line}");
}

#[tokio::test]
async fn a_full_server_is_told_as_such() {
    let settings = vec![
        ("max_connections".to_owned(), "4".to_owned()),
        ("superuser_reserved_connections".to_owned(), "3".to_owned()),
    ];
    let server = Server::start(Options { settings, ..Options::default() }).unwrap();
    let admin = support::connect(&server.conninfo("postgres")).await;
    run(&admin, "create role common login").await;
    let common = server.conninfo("postgres").replace("user=postgres", "user=common");
    let line = refused(&common).await;
    assert!(line.contains("53300") && line.contains("connection slot"), "{line}");
}

#[tokio::test]
async fn disable_never_encrypts_and_prefer_and_require_do() {
    for (mode, encrypted) in [("disable", false), ("prefer", true), ("require", true)] {
        let session = open(&to("127.0.0.1", secure().port(), &format!("sslmode={mode}"))).await;
        let session = session.unwrap_or_else(|e| panic!("{mode}: {e}"));
        assert_eq!(is_encrypted(&session).await, encrypted, "{mode}");
    }
    let session = open(&to("127.0.0.1", secure().port(), "")).await.unwrap();
    assert!(is_encrypted(&session).await, "prefer is the default");
    // a socket has none, whatever is asked for, as in libpq
    let text = secure().server.conninfo("postgres") + " sslmode=require";
    assert!(!is_encrypted(&open(&text).await.unwrap()).await);
}

#[tokio::test]
async fn without_tls_on_the_server_prefer_goes_plain_and_the_others_refuse() {
    for mode in ["disable", "prefer"] {
        let session = open(&to("127.0.0.1", plain().port(), &format!("sslmode={mode}"))).await.unwrap();
        assert!(!is_encrypted(&session).await);
    }
    let root = format!("sslrootcert={}", secure().file("ca.crt"));
    for mode in [
        "sslmode=require".into(),
        format!("sslmode=verify-ca {root}"),
        format!("sslmode=verify-full {root}"),
    ] {
        let line = refused(&to("localhost", plain().port(), &mode)).await;
        assert!(line.contains("TLS") && line.contains("sslmode"), "{mode}: {line}");
    }
}

#[tokio::test]
async fn verify_full_wants_the_right_authority_and_the_right_name() {
    let with = |mode: &str, root: &str| format!("sslmode={mode} sslrootcert={}", secure().file(root));
    let port = secure().port();
    for (host, mode) in [
        ("localhost", "verify-full"),
        ("localhost", "verify-ca"),
        ("127.0.0.1", "verify-ca"),
        ("127.0.0.1", "require"),
    ] {
        let session = open(&to(host, port, &with(mode, "ca.crt"))).await;
        let session = session.unwrap_or_else(|e| panic!("{mode} to {host}: {e}"));
        assert!(is_encrypted(&session).await, "{mode} to {host}");
    }
    let line = refused(&to("127.0.0.1", port, &with("verify-full", "ca.crt"))).await;
    assert!(line.contains("not valid for name") && line.contains("sslmode=verify-ca"), "{line}");
    assert!(line.contains(&format!("127.0.0.1:{port}")), "{line}");
    // with a root certificate at hand, require checks the chain, too
    for mode in ["verify-full", "verify-ca", "require"] {
        let line = refused(&to("localhost", port, &with(mode, "other.crt"))).await;
        assert!(line.contains("UnknownIssuer"), "{mode}: {line}");
        assert!(line.contains("sslrootcert"), "it says what to do: {line}");
    }
}

#[tokio::test]
async fn a_root_certificate_that_cannot_be_read_is_named() {
    let port = secure().port();
    let line = refused(&to("localhost", port, "sslmode=verify-full")).await;
    assert!(line.contains("sslrootcert"), "{line}");
    let line = refused(&to("localhost", port, "sslmode=verify-full sslrootcert=/nowhere/root.crt")).await;
    assert!(line.contains("/nowhere/root.crt"), "{line}");
    let junk = secure().folder.path().join("junk.crt");
    std::fs::write(&junk, "not a certificate").unwrap();
    let text = to("localhost", port, &format!("sslmode=verify-full sslrootcert={}", junk.display()));
    let line = refused(&text).await;
    assert!(line.contains("junk.crt"), "{line}");
}

#[tokio::test]
async fn every_session_says_what_it_is_for_and_has_its_limits() {
    let text = plain().conninfo("postgres");
    for (purpose, name, read_only) in [
        (Purpose::Stats, "pgwake/stats", "on"),
        (Purpose::Listen, "pgwake/listen", "off"),
        (Purpose::Work, "pgwake/work", "off"),
        (Purpose::Prune, "pgwake/prune", "off"),
        (Purpose::Operator, "pgwake/operator", "off"),
        (Purpose::Command, "pgwake/command", "off"),
    ] {
        let session = Session::connect(&conninfo(&text), purpose).await.unwrap();
        let show =
            "select current_setting('application_name'), current_setting('default_transaction_read_only'),
                           current_setting('statement_timeout'), current_setting('lock_timeout'),
                           current_setting('idle_in_transaction_session_timeout'), pg_backend_pid()";
        let row = session.one(show, &[], DEADLINE).await.unwrap();
        assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), (name, read_only));
        for limit in 2..5 {
            assert_ne!(row.get::<_, &str>(limit), "0", "no limit");
        }
        assert_eq!(row.get::<_, i32>(5), session.pid());
    }
}

#[tokio::test]
async fn a_lost_session_says_why_with_its_sqlstate() {
    let text = plain().conninfo("postgres");
    let session = open(&text).await.unwrap();
    let admin = support::connect(&text).await;
    let kill = format!("select pg_terminate_backend({})", session.pid());
    run(&admin, &kill).await;
    let loss = session.wait_ended().await;
    assert_eq!(loss.sqlstate.as_deref(), Some("57P01"), "{loss}");
    let error = session.query("select 1", &[], DEADLINE).await.unwrap_err();
    assert!(error.is_session_lost());
    assert_eq!(error.sqlstate(), Some("57P01"), "not merely closed: {error}");
}

#[tokio::test]
async fn a_statement_without_an_answer_is_given_up_at_its_deadline() {
    let session = open(&plain().conninfo("postgres")).await.unwrap();
    let begin = Instant::now();
    let error = session.query("select pg_sleep(60)", &[], Duration::from_millis(100)).await.unwrap_err();
    assert!(matches!(error, Error::Deadline(_)), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert!(error.is_session_lost());
}
