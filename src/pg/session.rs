//! One session: connect with every time limit set, drive it on a task of its own, and know why it ended.

use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::Stream;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Row};

use super::conninfo::{Conninfo, Host, SslMode};
use super::error::{Error, connect_hint, loss_of};
use super::kept::Kept;
use super::tls;
use crate::model::Loss;
use crate::text::clean;

/// What a session is for: its application_name says so in `pg_stat_activity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The read-only session of the sampler.
    Stats,
    /// The listen session.
    Listen,
    /// Claims and finishes.
    Work,
    /// Deleting what was done long ago.
    Prune,
    /// Actions by a person.
    Operator,
    /// Short commands: enqueue, migrate, status.
    Command,
}

impl Purpose {
    fn suffix(self) -> &'static str {
        match self {
            Self::Stats => "stats",
            Self::Listen => "listen",
            Self::Work => "work",
            Self::Prune => "prune",
            Self::Operator => "operator",
            Self::Command => "command",
        }
    }
}

/// Keepalive and TCP_USER_TIMEOUT: a peer that vanished is found out within about a minute even on a
/// session that only waits, instead of the operating system's two hours.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(45);

/// What a session is told about messages that no statement asked for.
pub(super) type OnNotify = Box<dyn FnMut(&str) + Send>;

/// A live session. Dropping it closes the connection.
pub struct Session {
    pub(super) client: Client,
    pub(super) kept: Box<Kept>,
    pid: i32,
    ended: watch::Receiver<Option<Loss>>,
    // Dropped with the session, which tells the task that drives the socket.
    _held: oneshot::Sender<()>,
}

impl Session {
    /// Connects, tries hosts in order, and applies the session's settings with SET (poolers refuse
    /// unknown start-up options, so only user, database and application_name go there).
    ///
    /// # Errors
    /// [`Error::Connect`] with the address, the server's reason, and what to do about it.
    pub async fn connect(conninfo: &Conninfo, purpose: Purpose) -> Result<Self, Error> {
        Self::connect_with(conninfo, purpose, Box::new(|_| ())).await
    }

    pub(super) async fn connect_with(
        conninfo: &Conninfo,
        purpose: Purpose,
        on_notify: OnNotify,
    ) -> Result<Self, Error> {
        let failed =
            |loss: Loss| Error::Connect { address: conninfo.address(), hint: connect_hint(&loss), loss };
        let config = config(conninfo, purpose);
        // The driver's limit is per host and does not cover the handshake: this one covers everything.
        let limit = conninfo.connect_timeout * u32::try_from(conninfo.hosts.len()).unwrap_or(1);
        let opened = timeout(limit, open(&config, conninfo)).await;
        let (client, stream) = match opened {
            Ok(Ok(pair)) => pair,
            Ok(Err(OpenError::Tls(e))) => return Err(e),
            Ok(Err(OpenError::Driver(e))) => return Err(failed(loss_of(&e))),
            Err(_) => {
                let message = format!("no answer within {:.0} s", limit.as_secs_f64());
                return Err(failed(Loss { sqlstate: None, message }));
            }
        };
        let (tell, ended) = watch::channel(None);
        let (held, let_go) = oneshot::channel();
        tokio::spawn(drive(stream, tell, on_notify, let_go));
        let mut session = Self { client, kept: Box::default(), pid: 0, ended, _held: held };
        session.prepare(purpose).await.map_err(|e| failed(e.loss()))?;
        Ok(session)
    }

    /// Settings that every session of this program has, by SET after the start.
    async fn prepare(&mut self, purpose: Purpose) -> Result<(), Error> {
        // 15 s is the outer bound of any statement of ours; rooms set tighter ones. idle_session_timeout,
        // where it exists (since 14), would end quiet sessions of ours again and again (57P05).
        let common = "set statement_timeout = '15s'; set lock_timeout = '5s'; \
                      set idle_in_transaction_session_timeout = '10s'; \
                      select set_config('idle_session_timeout', '0', false) \
                      where current_setting('idle_session_timeout', true) is not null";
        let sql = match purpose {
            Purpose::Stats => format!("{common}; set default_transaction_read_only = on"),
            // A person waits for the answer: a row that somebody holds is said at once, not waited for.
            Purpose::Operator => format!("{common}; set lock_timeout = '500ms'"),
            // It can wait: never long for a lock, nor for the disk at a commit that would do no harm if it were lost.
            Purpose::Prune => format!(
                "{common}; set statement_timeout = '2s'; set lock_timeout = '100ms'; set synchronous_commit = off"
            ),
            _ => common.to_owned(),
        };
        self.batch(&sql, Duration::from_secs(10)).await?;
        let row = self.one("select pg_backend_pid()", &[], Duration::from_secs(10)).await?;
        self.pid = row.get(0);
        Ok(())
    }

    /// Takes leave, and waits until the socket is closed (a second at most, if the server is frozen).
    pub async fn close(self) {
        let mut ended = self.ended();
        drop(self);
        let _ = ended.wait_for(Option::is_some).await;
    }

    /// Adds a name to application_name, so that `pg_stat_activity` shows whose session it is. The server
    /// cuts it at 63 bytes.
    ///
    /// # Errors
    /// As [`Session::query`].
    pub async fn label(&self, name: &str) -> Result<(), Error> {
        self.query(
            "select set_config('application_name', current_setting('application_name') || ' ' || $1, false)",
            &[(&name, Type::TEXT)],
            Duration::from_secs(10),
        )
        .await
        .map(drop)
    }

    /// Backend pid at the start of the session.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The driver's client, for a library that wants it whole.
    pub fn client_mut(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Why the session ended, once it has.
    pub fn ended(&self) -> watch::Receiver<Option<Loss>> {
        self.ended.clone()
    }

    /// The reason the session ended, waiting for it.
    pub async fn wait_ended(&self) -> Loss {
        let mut ended = self.ended.clone();
        let loss = match ended.wait_for(Option::is_some).await {
            Ok(loss) => loss.clone(),
            Err(_) => None,
        };
        loss.unwrap_or_else(closed)
    }

    /// Runs one statement unnamed (nothing is prepared by name: poolers may object) with a deadline.
    ///
    /// # Errors
    /// The server's refusal, the session's end with its real reason, or the deadline.
    pub async fn query(
        &self,
        sql: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
        deadline: Duration,
    ) -> Result<Vec<Row>, Error> {
        let run = timeout(deadline, self.client.query_typed(sql, params)).await;
        match run {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(e)) => Err(self.reason(e)),
            Err(_) => Err(Error::Deadline(deadline)),
        }
    }

    /// Like [`Session::query`] with the deadline of a probe, which stands well above the session's own
    /// statement_timeout: it ends the wait for a server that answers nothing at all.
    ///
    /// # Errors
    /// As [`Session::query`].
    pub async fn rows(&self, sql: &str, params: &[(&(dyn ToSql + Sync), Type)]) -> Result<Vec<Row>, Error> {
        self.query(sql, params, PROBE_DEADLINE).await
    }

    /// Like [`Session::query`], for a statement that returns exactly one row.
    ///
    /// # Errors
    /// As [`Session::query`]; also when no row came.
    pub async fn one(
        &self,
        sql: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
        deadline: Duration,
    ) -> Result<Row, Error> {
        let rows = self.query(sql, params, deadline).await?;
        rows.into_iter().next().ok_or_else(|| {
            Error::Statement(Loss { sqlstate: Some("02000".into()), message: "no row came back".into() })
        })
    }

    /// Runs statements without parameters in the simple protocol.
    ///
    /// # Errors
    /// As [`Session::query`].
    pub async fn batch(&self, sql: &str, deadline: Duration) -> Result<(), Error> {
        match timeout(deadline, self.client.batch_execute(sql)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(e)) => Err(self.reason(e)),
            Err(_) => Err(Error::Deadline(deadline)),
        }
    }

    /// A driver error; when it only says "closed", the reason the session really ended.
    pub fn reason(&self, e: tokio_postgres::Error) -> Error {
        if e.is_closed()
            && let Some(loss) = self.ended.borrow().clone()
        {
            return Error::Statement(loss);
        }
        e.into()
    }
}

/// The loss of a session that ended without a reason.
pub(crate) fn closed() -> Loss {
    Loss { sqlstate: None, message: "the server closed the connection".to_owned() }
}

fn config(conninfo: &Conninfo, purpose: Purpose) -> Config {
    let mut config = Config::new();
    for (host, port) in &conninfo.hosts {
        match host {
            Host::Tcp(name) => config.host(name),
            Host::Socket(dir) => config.host_path(dir),
        };
        config.port(*port);
    }
    config
        .user(&conninfo.user)
        .dbname(&conninfo.dbname)
        .application_name(format!("{}/{}", conninfo.application_name, purpose.suffix()))
        .connect_timeout(conninfo.connect_timeout)
        .keepalives(true)
        .keepalives_idle(KEEPALIVE_IDLE)
        .keepalives_interval(KEEPALIVE_INTERVAL)
        .keepalives_retries(KEEPALIVE_RETRIES)
        .tcp_user_timeout(TCP_USER_TIMEOUT)
        .ssl_mode(match conninfo.sslmode {
            SslMode::Disable => tokio_postgres::config::SslMode::Disable,
            SslMode::Prefer => tokio_postgres::config::SslMode::Prefer,
            _ => tokio_postgres::config::SslMode::Require,
        });
    if let Some(password) = &conninfo.password {
        config.password(password.reveal());
    }
    config
}

type Messages = Pin<Box<dyn Stream<Item = Result<AsyncMessage, tokio_postgres::Error>> + Send>>;

enum OpenError {
    Tls(Error),
    Driver(tokio_postgres::Error),
}

/// Opens the connection; the TLS and the plain one have different types, so both become one stream.
async fn open(config: &Config, conninfo: &Conninfo) -> Result<(Client, Messages), OpenError> {
    let sockets_only = conninfo.hosts.iter().all(|(h, _)| matches!(h, Host::Socket(_)));
    if conninfo.sslmode == SslMode::Disable || sockets_only {
        // As in libpq, sslmode is ignored on unix sockets.
        let mut plain = config.clone();
        plain.ssl_mode(tokio_postgres::config::SslMode::Disable);
        let (client, mut connection) = plain.connect(NoTls).await.map_err(OpenError::Driver)?;
        let stream = futures_util::stream::poll_fn(move |cx| connection.poll_message(cx));
        Ok((client, Box::pin(stream)))
    } else {
        let tls = tls::connector(conninfo).map_err(OpenError::Tls)?;
        let (client, mut connection) = config.connect(tls).await.map_err(OpenError::Driver)?;
        let stream = futures_util::stream::poll_fn(move |cx| connection.poll_message(cx));
        Ok((client, Box::pin(stream)))
    }
}

/// How long a probe of [`Session::rows`] is waited for.
const PROBE_DEADLINE: Duration = Duration::from_secs(10);
/// How long a session that was dropped may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// Reads the socket for as long as the session lives, whoever waits for what, and keeps the reason of
/// its end.
async fn drive(
    mut stream: Messages,
    tell: watch::Sender<Option<Loss>>,
    on_notify: OnNotify,
    let_go: oneshot::Receiver<()>,
) {
    let read = read(&mut stream, on_notify);
    tokio::pin!(read);
    let last = tokio::select! {
        last = &mut read => last,
        // The driver takes leave only when every answer has come; a peer that is frozen gives none, and
        // its socket would be held for as long as that lasts.
        _ = let_go => timeout(GOODBYE, &mut read).await.unwrap_or(None),
    };
    let _ = tell.send(Some(last.unwrap_or_else(closed)));
}

async fn read(stream: &mut Messages, mut on_notify: OnNotify) -> Option<Loss> {
    while let Some(message) = stream.next().await {
        match message {
            Ok(AsyncMessage::Notification(n)) => on_notify(n.channel()),
            Ok(AsyncMessage::Notice(n)) => {
                tracing::debug!(code = n.code().code(), message = %clean(n.message()), "server notice");
            }
            Ok(_) => {}
            Err(e) => return Some(loss_of(&e)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_session_has_keepalive_and_a_user_timeout_of_minutes() {
        let options = super::super::Options {
            conninfo: Some("host=db.example,/run/pg port=1,2 user=u dbname=d".into()),
            ..super::super::Options::default()
        };
        let conninfo = Conninfo::resolve(&options, &|_| None).unwrap();
        for purpose in [
            Purpose::Listen,
            Purpose::Work,
            Purpose::Prune,
            Purpose::Stats,
            Purpose::Operator,
            Purpose::Command,
        ] {
            let config = config(&conninfo, purpose);
            assert!(config.get_keepalives());
            let found_out = config.get_keepalives_idle()
                + config.get_keepalives_interval().unwrap() * config.get_keepalives_retries().unwrap();
            assert!(found_out <= Duration::from_secs(120), "{found_out:?}");
            assert!(*config.get_tcp_user_timeout().unwrap() <= Duration::from_secs(120));
            let name = config.get_application_name().unwrap();
            assert_eq!(name, format!("pgwake/{}", purpose.suffix()));
            assert_eq!(config.get_ports(), [1, 2]);
        }
    }
}
