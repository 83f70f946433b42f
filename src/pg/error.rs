//! Server and client errors, told apart by what can be done about them.

use std::error::Error as _;
use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::model::{Loss, Trouble};
use crate::text::clean;

/// SQLSTATEs that are told apart. Source: the manual's appendix "PostgreSQL Error Codes".
pub mod sqlstate {
    /// The role may not do it.
    pub const INSUFFICIENT_PRIVILEGE: &str = "42501";
    /// statement_timeout, or a cancel request.
    pub const QUERY_CANCELED: &str = "57014";
    /// lock_timeout, or NOWAIT.
    pub const LOCK_NOT_AVAILABLE: &str = "55P03";
    /// No such table.
    pub const UNDEFINED_TABLE: &str = "42P01";
    /// No such schema.
    pub const INVALID_SCHEMA: &str = "3F000";
    /// No such column.
    pub const UNDEFINED_COLUMN: &str = "42703";
    /// No such function.
    pub const UNDEFINED_FUNCTION: &str = "42883";
    /// A write on a read-only session or standby.
    pub const READ_ONLY: &str = "25006";
    /// Wrong password.
    pub const INVALID_PASSWORD: &str = "28P01";
    /// pg_hba refuses.
    pub const INVALID_AUTHORIZATION: &str = "28000";
    /// No such database.
    pub const INVALID_CATALOG: &str = "3D000";
    /// Serialization failure.
    pub const SERIALIZATION_FAILURE: &str = "40001";
    /// Deadlock.
    pub const DEADLOCK: &str = "40P01";
    /// No prepared statement of that name.
    pub const NO_SUCH_STATEMENT: &str = "26000";
}

/// What can go wrong between this program and a server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No session could be opened.
    #[error("cannot connect to {address}: {loss}{hint}")]
    Connect {
        /// Where.
        address: String,
        /// Why.
        loss: Loss,
        /// What to do, with its separator, or empty.
        hint: String,
    },
    /// TLS material could not be read.
    #[error("TLS: {0}")]
    Tls(String),
    /// The server or the session refused a statement.
    #[error("{0}")]
    Statement(Loss),
    /// A value of a row is not of the kind that was expected.
    #[error("{0}")]
    Value(String),
    /// Nothing came back in time; the session is not to be used again.
    #[error("no answer within {:.1} s", .0.as_secs_f64())]
    Deadline(Duration),
}

impl Error {
    /// As a loss, for events.
    pub fn loss(&self) -> Loss {
        match self {
            Self::Connect { loss, .. } | Self::Statement(loss) => loss.clone(),
            other => Loss { sqlstate: None, message: other.to_string() },
        }
    }

    /// The same once more, for a second figure of the statement that failed.
    #[must_use]
    pub fn again(&self) -> Self {
        match self {
            Self::Deadline(d) => Self::Deadline(*d),
            other => Self::Statement(other.loss()),
        }
    }

    /// As the trouble of a reading.
    pub fn trouble(&self) -> Trouble {
        match self {
            Self::Statement(loss) => trouble_of(loss),
            Self::Deadline(_) => Trouble::TimedOut,
            other => Trouble::Failed { sqlstate: None, text: other.to_string() },
        }
    }

    /// The SQLSTATE, when the server had a word to say.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Connect { loss, .. } | Self::Statement(loss) => loss.sqlstate.as_deref(),
            _ => None,
        }
    }

    /// Whether the session itself is gone or not to be trusted, as against a refused statement.
    pub fn is_session_lost(&self) -> bool {
        match self {
            Self::Statement(loss) => match loss.sqlstate.as_deref() {
                None => true,
                // Class 08 connection exception, 57P0x shutdown, crash, starting up, idle timeouts; 25P03
                // idle-in-transaction timeout.
                Some(code) => code.starts_with("08") || code.starts_with("57P0") || code == "25P03",
            },
            Self::Value(_) => false,
            _ => true,
        }
    }

    /// Whether the data of one row may be what was refused: class 22 data exception, 23 integrity constraint
    /// violation, P0 an exception that a function raised. Manual: "PostgreSQL Error Codes".
    pub fn is_about_a_row(&self) -> bool {
        self.sqlstate().is_some_and(|code| ["22", "23", "P0"].iter().any(|class| code.starts_with(class)))
    }

    /// Whether trying the very same again may succeed: deadlock and serialization failure.
    pub fn is_retryable(&self) -> bool {
        matches!(self.sqlstate(), Some(sqlstate::DEADLOCK | sqlstate::SERIALIZATION_FAILURE))
    }
}

/// Values of a row by position. The driver's own `get` panics on a NULL or a type that was not expected, and
/// what stands in somebody else's table is not ours to promise: one odd value fails one statement.
pub trait Fields {
    /// The value at `at`, counted from 0.
    ///
    /// # Errors
    /// [`Error::Value`], naming the column.
    fn field<'a, T: FromSql<'a>>(&'a self, at: usize) -> Result<T, Error>;
}

impl Fields for Row {
    fn field<'a, T: FromSql<'a>>(&'a self, at: usize) -> Result<T, Error> {
        self.try_get(at).map_err(|e| {
            let name = self.columns().get(at).map_or("?", |c| c.name());
            let why = e.source().map_or_else(|| e.to_string(), ToString::to_string);
            Error::Value(clean(&format!("the value of column {name} cannot be read: {why}")))
        })
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(e: tokio_postgres::Error) -> Self {
        Self::Statement(loss_of(&e))
    }
}

/// SQLSTATE and text of a driver error, cleaned: server messages quote data. Neither the server nor the
/// driver puts a password into them.
pub fn loss_of(e: &tokio_postgres::Error) -> Loss {
    if let Some(db) = e.as_db_error() {
        return Loss { sqlstate: Some(db.code().code().to_owned()), message: clean(db.message()) };
    }
    let mut message = e.to_string();
    let mut source = e.source();
    while let Some(inner) = source {
        let text = inner.to_string();
        if !message.contains(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        source = inner.source();
    }
    Loss { sqlstate: None, message: clean(&message) }
}

/// A loss as the trouble of a reading.
pub fn trouble_of(loss: &Loss) -> Trouble {
    match loss.sqlstate.as_deref() {
        Some(sqlstate::INSUFFICIENT_PRIVILEGE) => Trouble::NoPrivilege,
        Some(sqlstate::QUERY_CANCELED) => Trouble::TimedOut,
        Some(sqlstate::LOCK_NOT_AVAILABLE) => Trouble::Locked,
        Some(
            sqlstate::UNDEFINED_TABLE
            | sqlstate::INVALID_SCHEMA
            | sqlstate::UNDEFINED_COLUMN
            | sqlstate::UNDEFINED_FUNCTION,
        ) => Trouble::Missing,
        None => Trouble::Disconnected,
        code => Trouble::Failed { sqlstate: code.map(str::to_owned), text: loss.message.clone() },
    }
}

/// What to do about a failed connection, with a leading separator.
pub(super) fn connect_hint(loss: &Loss) -> String {
    let hint = match loss.sqlstate.as_deref() {
        Some(sqlstate::INVALID_PASSWORD) => "check PGPASSWORD or the password in the connection string",
        Some(sqlstate::INVALID_AUTHORIZATION) => "check the user name and the server's pg_hba.conf",
        Some(sqlstate::INVALID_CATALOG) => "name an existing database with -d",
        Some("53300") => {
            "the server has no free connection slot; end idle sessions or raise max_connections"
        }
        Some("57P03") => "the server is starting up or shutting down; try again in a moment",
        None if loss.message.contains("onnection refused") || loss.message.contains("No such file") => {
            "is the server running there? Set the host with -h and the port with -p"
        }
        None if loss.message.contains("lookup") || loss.message.contains("name or service") => {
            "check the host name"
        }
        None if loss.message.contains("password missing") => "set PGPASSWORD",
        None if loss.message.contains("does not support TLS") => {
            "turn ssl on at the server, or set sslmode=prefer"
        }
        None if loss.message.contains("UnknownIssuer") => {
            "sslrootcert must hold the authority that signed the server's certificate"
        }
        None if loss.message.contains("not valid for name") => {
            "connect by a name that the certificate has, or set sslmode=verify-ca"
        }
        _ => return String::new(),
    };
    format!("; {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(code: Option<&str>) -> Error {
        Error::Statement(Loss { sqlstate: code.map(str::to_owned), message: "m".into() })
    }

    #[test]
    fn a_lost_session_is_told_from_a_refused_statement() {
        for code in [None, Some("57P01"), Some("57P03"), Some("08006"), Some("57P05")] {
            assert!(statement(code).is_session_lost(), "{code:?}");
        }
        for code in ["42P01", "55P03", "57014", "40P01"] {
            assert!(!statement(Some(code)).is_session_lost(), "{code}");
        }
        assert!(Error::Deadline(Duration::from_secs(1)).is_session_lost());
    }

    #[test]
    fn deadlocks_and_serialization_failures_are_worth_another_try() {
        assert!(statement(Some("40P01")).is_retryable());
        assert!(statement(Some("40001")).is_retryable());
        assert!(!statement(Some("23505")).is_retryable());
    }

    #[test]
    fn troubles_keep_what_matters() {
        assert_eq!(statement(Some("42501")).trouble(), Trouble::NoPrivilege);
        assert_eq!(statement(Some("57014")).trouble(), Trouble::TimedOut);
        assert_eq!(statement(Some("55P03")).trouble(), Trouble::Locked);
        assert_eq!(statement(Some("42P01")).trouble(), Trouble::Missing);
        assert_eq!(statement(None).trouble(), Trouble::Disconnected);
    }
}
