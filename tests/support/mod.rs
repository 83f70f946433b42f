//! What the database tests share: one throwaway server for the whole test binary, a fresh database for
//! each test, and a way to wait for a state without sleeping for luck.
//!
//! The server is a static, and statics are never dropped: when the test binary ends, in whatever way,
//! the server's reaper stops it and removes its folder.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, missing_docs)]

pub mod ears;
pub mod ledger;
pub mod listening;
pub mod proxy;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pgwake::demo::{Options, Server};
use tokio_postgres::{Client, NoTls};

/// Long enough for two busy cores; a test that passes never waits for it.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// The server of this test binary. Tests that stop or crash a server start their own.
pub fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let settings = vec![("max_connections".to_owned(), "200".to_owned())];
        Server::start(Options { settings, ..Options::default() }).expect("a throwaway server")
    })
}

/// A database that no other test knows.
pub struct Db {
    pub name: String,
    conninfo: String,
}

/// Makes a fresh database on the server of this test binary.
pub async fn database() -> Db {
    database_on(server()).await
}

/// Makes a fresh database on a server of the test's own.
pub async fn database_on(server: &Server) -> Db {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let admin = connect(&server.conninfo("postgres")).await;
    admin.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a fresh database");
    Db { conninfo: server.conninfo(&name), name }
}

impl Db {
    /// Connects to it, in key=value form.
    pub fn conninfo(&self) -> &str {
        &self.conninfo
    }

    /// A session of its own.
    pub async fn connect(&self) -> Client {
        connect(&self.conninfo).await
    }
}

/// A session whose connection runs in a task of its own.
pub async fn connect(conninfo: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(conninfo, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

/// The backend pid of a session.
pub async fn backend_pid(client: &Client) -> u32 {
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    u32::try_from(pid).unwrap()
}

/// Asks again and again until the answer is there; fails the test, with `what`, when it takes too long.
pub async fn wait_until<T>(what: &str, deadline: Duration, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + deadline;
    loop {
        if let Some(answer) = probe().await {
            return answer;
        }
        assert!(Instant::now() < end, "not within {deadline:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
