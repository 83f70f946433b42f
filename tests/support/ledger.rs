//! Databases with the schema `pgwake`, sessions of the program itself, and words for its ledgers.

use std::time::Duration;

use pgwake::ledger::{self, Ledger};
use pgwake::pg::{Conninfo, Options, Purpose, Session};
use pgwake::profile::{Profile, builtin};
use tokio_postgres::Client;

use super::{Db, database};

/// A lease that outlasts every test.
pub const LONG: Duration = Duration::from_secs(600);
/// A lease that is over as soon as it is given.
pub const OVER: Duration = Duration::ZERO;

/// As the program would resolve it, with an empty environment.
pub fn conninfo(text: &str) -> Conninfo {
    let options = Options { conninfo: Some(text.to_owned()), ..Options::default() };
    Conninfo::resolve(&options, &|_| None).expect("a connection string")
}

/// A session of the program.
pub async fn session(db: &Db) -> Session {
    session_for(db, Purpose::Work).await
}

/// A session of the program for one purpose.
pub async fn session_for(db: &Db, purpose: Purpose) -> Session {
    Session::connect(&conninfo(db.conninfo()), purpose).await.expect("a session")
}

/// A fresh database with the schema.
pub async fn migrated() -> Db {
    let db = database().await;
    let mut session = session_for(&db, Purpose::Command).await;
    ledger::migrate(&mut session).await.expect("a migration");
    db
}

/// A fresh database with the schema, a session in it, and one of the built-in ledgers.
pub async fn with_ledger(profile: &str) -> (Db, Session, Ledger) {
    let db = migrated().await;
    let session = session(&db).await;
    let ledger = open(&session, profile).await;
    (db, session, ledger)
}

/// One of the built-in ledgers.
pub async fn open(session: &Session, profile: &str) -> Ledger {
    open_profile(session, builtin(profile).expect("a built-in profile").expect("a valid profile")).await
}

/// The ledger of a profile.
pub async fn open_profile(session: &Session, profile: Profile) -> Ledger {
    Ledger::open(session, profile).await.unwrap_or_else(|e| panic!("{e}"))
}

/// One value as text; `None` for null and for no row.
pub async fn ask(client: &Client, sql: &str) -> Option<String> {
    let sql = format!("select (x.v)::text from ({sql}) as x(v)");
    client.query_opt(&sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e:?}")).and_then(|row| row.get(0))
}

/// A number.
pub async fn number(client: &Client, sql: &str) -> i64 {
    ask(client, sql).await.expect("a number").parse().expect("a number")
}

/// Runs statements.
pub async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
}

/// The SQLSTATE of a refusal; panics when the statement was accepted.
pub async fn refusal(client: &Client, sql: &str) -> String {
    match client.batch_execute(sql).await {
        Ok(()) => panic!("accepted: {sql}"),
        Err(e) => e.code().unwrap_or_else(|| panic!("{sql}: {e}")).code().to_owned(),
    }
}
