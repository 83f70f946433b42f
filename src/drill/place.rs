//! Where drills run: on a throwaway server, or in scratch databases on a server that was named.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::bench::setup;
use super::{DrillError, Trial};
use crate::demo::{self, Server, ServerError};
use crate::ledger;
use crate::pg::{Conninfo, Error, Options, Purpose, Session};

/// The server's major version that the statements are written for.
const OLDEST: i32 = 13;
/// Sessions of ours end quickly; those of a superuser that looks around may take a moment.
const DROP_WITHIN: Duration = Duration::from_secs(30);

/// A server to run drills on.
#[derive(Clone)]
pub(super) enum Place {
    /// Ours, to break as we like; nothing of it is left.
    Own(Arc<Mutex<Server>>),
    /// Somebody's: only what the drill creates there is touched.
    Given(Conninfo),
}

impl Place {
    /// Starts a server, or sees whether the one that was named will do.
    pub(super) async fn open(trial: &Trial<'_>) -> Result<Self, DrillError> {
        if let Some(conninfo) = &trial.on {
            check(conninfo).await?;
            return Ok(Self::Given(conninfo.clone()));
        }
        let options = demo::Options { pg_bin: trial.pg_bin.clone(), ..demo::Options::default() };
        let start = move || Server::start(options);
        let server = tokio::task::spawn_blocking(start).await.map_err(setup)??;
        Ok(Self::Own(Arc::new(Mutex::new(server))))
    }

    /// Whether the server itself may be broken.
    pub(super) fn is_own(&self) -> bool {
        matches!(self, Self::Own(_))
    }

    /// Creates a database for one drill. Not to be interrupted: a server goes on creating for whom it
    /// started to.
    pub(super) async fn create(&self, drill: &str) -> Result<Conninfo, DrillError> {
        let admin = self.admin()?;
        let session = Session::connect(&admin, Purpose::Command).await.map_err(setup)?;
        let name = match self {
            Self::Own(_) => format!("drill_{}", drill.replace('-', "_")),
            Self::Given(_) => format!("pgwake_drill_{:012x}", fastrand::u64(..1 << 48)),
        };
        let failed = |e: Error| setup(format!("cannot create a scratch database: {e}"));
        ledger::create_database(&session, &name).await.map_err(failed)?;
        let scratch = admin.with_dbname(&name);
        if !self.is_own()
            && let Err(e) = ledger::close_to_others(&session, &name).await
        {
            self.remove(&scratch).await?;
            return Err(setup(e));
        }
        Ok(scratch)
    }

    /// Drops it again, with whatever still works there.
    pub(super) async fn remove(&self, scratch: &Conninfo) -> Result<(), DrillError> {
        let Self::Given(admin) = self else { return Ok(()) };
        let end = Instant::now() + DROP_WITHIN;
        let dropped = async || {
            let session = Session::connect(admin, Purpose::Command).await?;
            ledger::drop_database(&session, &scratch.dbname).await
        };
        loop {
            match dropped().await {
                Ok(()) => return Ok(()),
                Err(_) if Instant::now() < end => sleep(Duration::from_millis(200)).await,
                Err(e) => {
                    return Err(DrillError::Left { name: scratch.dbname.clone(), why: e.to_string() });
                }
            }
        }
    }

    /// Does something to the server, on a thread that may wait.
    pub(super) async fn server<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Server) -> Result<T, ServerError> + Send + 'static,
    ) -> Result<T, DrillError> {
        let Self::Own(server) = self else { return Err(setup("this server is not the drill's own")) };
        let server = server.clone();
        let run = move || f(&mut server.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(tokio::task::spawn_blocking(run).await.map_err(setup)??)
    }

    fn admin(&self) -> Result<Conninfo, DrillError> {
        match self {
            Self::Own(server) => {
                let text = server.lock().unwrap_or_else(PoisonError::into_inner).conninfo("postgres");
                let options = Options { conninfo: Some(text), ..Options::default() };
                Conninfo::resolve(&options, &|_| None).map_err(setup)
            }
            Self::Given(conninfo) => Ok(conninfo.clone()),
        }
    }
}

/// Refuses a server on which drills cannot work, before anything is created on it.
async fn check(conninfo: &Conninfo) -> Result<(), DrillError> {
    let connect = async || Session::connect(conninfo, Purpose::Command).await;
    let refused = |why: String| DrillError::Refused { address: conninfo.address(), why };
    let unreachable = |e: Error| DrillError::Unreachable(e.to_string());
    let (one, other) = (connect().await.map_err(unreachable)?, connect().await.map_err(unreachable)?);
    let broken = |e: Error| refused(e.to_string());
    let host = ledger::host(&one).await.map_err(broken)?;
    if host.version / 10_000 < OLDEST {
        return Err(refused(format!("it is older than PostgreSQL {OLDEST}")));
    }
    if host.is_standby {
        return Err(refused("it is a standby; name its primary".to_owned()));
    }
    if !host.may_create {
        let role = crate::text::clean(&conninfo.user);
        return Err(refused(format!(
            "role {role} may not create databases; drills work in a database of their own: connect as a \
             role with CREATEDB"
        )));
    }
    if ledger::are_pooled(&one, &other).await.map_err(broken)? {
        return Err(refused(
            "a pooler in between shares sessions between transactions, and LISTEN is lost in it; name the \
             server itself"
                .to_owned(),
        ));
    }
    Ok(())
}
