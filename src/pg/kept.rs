//! Statements that a session runs again and again, planned once.
//!
//! Parsing and planning a claim takes several times as long as carrying it out. Prepared by the protocol,
//! statements of all clients of this driver bear the same names, and behind a transaction pooler one
//! client would run what another has prepared. So they are prepared by SQL, under names that nobody else
//! has: behind a pooler the server does not know the name (26000), nothing was done, and from then on the
//! session prepares, runs and forgets the statement in one message.
//!
//! A plan that is kept must be right for a table that was empty when it was made and holds a million rows
//! now. Ledger statements have one good plan, by index in nested loops; the others are switched off for
//! the one transaction that makes or runs it (`SET LOCAL`, so a pooler's next client sees nothing of it).
//! JIT goes by the estimated cost, which then says nothing. Manual: "PREPARE", "Planner Method
//! Configuration", "Multiple Statements in a Simple Query".

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::{SimpleQueryMessage, SimpleQueryRow};

use super::error::{Error, sqlstate};
use super::session::Session;
use crate::text::quote_literal;

const ONE_PLAN: &str = "set local jit = off; set local enable_seqscan = off; set local enable_bitmapscan = off; \
    set local enable_sort = off; set local enable_hashjoin = off; set local enable_mergejoin = off; \
    set local plan_cache_mode = force_generic_plan; ";

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// `int8`.
    Int(i64),
    /// `float8`.
    Float(f64),
    /// `text`.
    Text(&'a str),
    /// `text[]`.
    Texts(&'a [&'a str]),
    /// `float8[]`.
    Floats(&'a [f64]),
    /// `int4[]`.
    Ints(&'a [i32]),
}

impl Arg<'_> {
    fn type_name(&self) -> &'static str {
        match self {
            Self::Int(_) => "int8",
            Self::Float(_) => "float8",
            Self::Text(_) => "text",
            Self::Texts(_) => "text[]",
            Self::Floats(_) => "float8[]",
            Self::Ints(_) => "int4[]",
        }
    }

    fn literal(&self) -> String {
        match self {
            Self::Int(v) => format!("'{v}'"),
            Self::Float(v) => format!("'{}'", float(*v)),
            Self::Text(v) => quote_literal(v),
            Self::Texts(v) => {
                let mut array = String::with_capacity(v.len() * 40 + 2);
                array.push('{');
                for (i, text) in v.iter().enumerate() {
                    if i > 0 {
                        array.push(',');
                    }
                    array.push('"');
                    for c in text.chars() {
                        if matches!(c, '"' | '\\') {
                            array.push('\\');
                        }
                        array.push(c);
                    }
                    array.push('"');
                }
                array.push('}');
                quote_literal(&array)
            }
            Self::Floats(v) => array(v.iter().map(|f| float(*f))),
            Self::Ints(v) => array(v.iter().map(ToString::to_string)),
        }
    }
}

/// As the server reads it; Rust writes the infinities in another way.
fn float(v: f64) -> String {
    if v.is_infinite() { if v > 0.0 { "Infinity" } else { "-Infinity" }.to_owned() } else { format!("{v}") }
}

fn array(items: impl Iterator<Item = String>) -> String {
    format!("'{{{}}}'", items.collect::<Vec<_>>().join(","))
}

/// A row as text.
#[derive(Debug)]
pub struct Line(SimpleQueryRow);

impl Line {
    /// A column; `None` for null.
    pub fn cell(&self, i: usize) -> Option<&str> {
        self.0.get(i)
    }

    /// A column that holds a number; `None` for null, and for anything else.
    pub fn number<T: std::str::FromStr>(&self, i: usize) -> Option<T> {
        self.cell(i)?.parse().ok()
    }

    /// Whether a boolean that was cast to text is true.
    pub fn is_true(&self, i: usize) -> bool {
        self.cell(i) == Some("true")
    }
}

/// Names of the statements that a session has prepared, by their texts.
#[derive(Debug, Default)]
pub(super) struct Kept {
    names: Mutex<HashMap<String, String>>,
    refused: AtomicBool,
}

impl Session {
    /// Runs a statement, planned once in the life of the session. Every column that is read must be text.
    ///
    /// # Errors
    /// As [`Session::query`].
    pub async fn kept(&self, sql: &str, args: &[Arg<'_>], deadline: Duration) -> Result<Vec<Line>, Error> {
        self.kept_under("", sql, args, deadline).await
    }

    /// As [`Session::kept`], waiting no longer than this for a lock.
    ///
    /// # Errors
    /// As [`Session::query`]; 55P03, and nothing done, where a lock was not to be had.
    pub async fn kept_without_waiting(
        &self,
        sql: &str,
        args: &[Arg<'_>],
        deadline: Duration,
        longest: Duration,
    ) -> Result<Vec<Line>, Error> {
        // Zero would mean without end.
        let limit = format!("set local lock_timeout = {}; ", longest.as_millis().max(1));
        self.kept_under(&limit, sql, args, deadline).await
    }

    async fn kept_under(
        &self,
        limit: &str,
        sql: &str,
        args: &[Arg<'_>],
        deadline: Duration,
    ) -> Result<Vec<Line>, Error> {
        if self.kept.refused.load(Ordering::Relaxed) {
            return self.once(limit, "execute", sql, args, deadline).await;
        }
        let known = self.names().get(sql).map(ToOwned::to_owned);
        let is_new = known.is_none();
        let name = known.unwrap_or_else(new_name);
        let mut message = format!("{ONE_PLAN}{limit}");
        if is_new {
            message.push_str(&prepare(&name, sql, args));
        }
        message.push_str(&execute("execute", &name, args));
        match self.simple(&message, deadline).await {
            Ok(lines) => {
                if is_new {
                    self.names().insert(sql.to_owned(), name);
                }
                Ok(lines)
            }
            Err(e) if e.sqlstate() == Some(sqlstate::NO_SUCH_STATEMENT) => {
                tracing::info!(
                    "prepared statements do not stay with this session: a pooler; planned anew each time"
                );
                self.kept.refused.store(true, Ordering::Relaxed);
                self.once(limit, "execute", sql, args, deadline).await
            }
            Err(e) => {
                // What was prepared stays when the rest of the message is taken back, under a name that would be
                // forgotten here: one more with every failure. Where it is not there, nothing is lost.
                if is_new && !e.is_session_lost() {
                    let _ = self.simple(&format!("deallocate {name}"), deadline).await;
                }
                Err(e)
            }
        }
    }

    /// The plan by which [`Session::kept`] runs a statement, for plan checks.
    ///
    /// # Errors
    /// As [`Session::query`].
    pub async fn plan_of_kept(&self, sql: &str, args: &[Arg<'_>]) -> Result<String, Error> {
        let lines = self.once("", "explain execute", sql, args, Duration::from_secs(10)).await?;
        Ok(lines.iter().filter_map(|line| line.cell(0)).collect::<Vec<_>>().join("\n"))
    }

    /// Prepared, run, and forgotten in one message, which a pooler gives to one server session.
    async fn once(
        &self,
        limit: &str,
        how: &str,
        sql: &str,
        args: &[Arg<'_>],
        deadline: Duration,
    ) -> Result<Vec<Line>, Error> {
        let name = new_name();
        let (prepare, execute) = (prepare(&name, sql, args), execute(how, &name, args));
        self.simple(&format!("{ONE_PLAN}{limit}{prepare}{execute}; deallocate {name}"), deadline).await
    }

    async fn simple(&self, message: &str, deadline: Duration) -> Result<Vec<Line>, Error> {
        match timeout(deadline, self.client.simple_query(message)).await {
            Ok(Ok(answer)) => {
                let rows = answer.into_iter().filter_map(|m| match m {
                    SimpleQueryMessage::Row(row) => Some(Line(row)),
                    _ => None,
                });
                Ok(rows.collect())
            }
            Ok(Err(e)) => Err(self.reason(e)),
            Err(_) => Err(Error::Deadline(deadline)),
        }
    }

    fn names(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.kept.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody else's, behind whatever pooler.
fn new_name() -> String {
    format!("pgwake_{:016x}", fastrand::u64(..))
}

fn prepare(name: &str, sql: &str, args: &[Arg<'_>]) -> String {
    let types: Vec<&str> = args.iter().map(Arg::type_name).collect();
    format!("prepare {name} ({}) as {sql}; ", types.join(", "))
}

fn execute(how: &str, name: &str, args: &[Arg<'_>]) -> String {
    let values: Vec<String> = args.iter().map(Arg::literal).collect();
    format!("{how} {name}({})", values.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_survive_quotes_and_backslashes() {
        assert_eq!(
            Arg::Texts(&["a", "it's", r#"say "\""#]).literal(),
            r#"E'{"a","it''s","say \\"\\\\\\""}'"#
        );
        assert_eq!(Arg::Texts(&[]).literal(), "'{}'");
        assert_eq!(Arg::Floats(&[1.5, f64::NEG_INFINITY]).literal(), "'{1.5,-Infinity}'");
        assert_eq!(Arg::Text("o'clock").literal(), "'o''clock'");
    }
}
