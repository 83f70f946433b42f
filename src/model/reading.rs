//! A number together with how far it can be trusted and how old it is.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// How far a known value can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// The value is what the server had at that moment.
    Exact,
    /// A count that stopped at its cap; the truth is this or more.
    AtLeast,
    /// Derived from counters or statistics.
    Estimate,
}

/// Why the newest attempt to read a figure gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// Nothing has been asked yet.
    NotYet,
    /// SQLSTATE class 42501: the role may not see it.
    NoPrivilege,
    /// The statement ran into its own time limit (57014).
    TimedOut,
    /// The statement ran into its lock limit (55P03): somebody holds the table.
    Locked,
    /// The thing to read does not exist here (42P01, 3F000 …).
    Missing,
    /// The figure has no meaning on this server or profile, with the reason.
    NotHere(String),
    /// No session to ask on.
    Disconnected,
    /// Any other server or client error: SQLSTATE when there is one, and the cleaned text.
    Failed {
        /// Five characters, as in the manual's appendix "PostgreSQL Error Codes".
        sqlstate: Option<String>,
        /// One cleaned line.
        text: String,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotYet => f.write_str("not read yet"),
            Self::NoPrivilege => f.write_str("no privilege"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Locked => f.write_str("locked"),
            Self::Missing => f.write_str("missing"),
            Self::NotHere(why) => f.write_str(why),
            Self::Disconnected => f.write_str("disconnected"),
            Self::Failed { sqlstate: Some(code), text } => write!(f, "{code} {text}"),
            Self::Failed { sqlstate: None, text } => f.write_str(text),
        }
    }
}

/// A value with its quality and the server time it was taken, or the reason there is none.
///
/// A reading whose newest attempt failed keeps the last value: [`Reading::value`] is still there,
/// [`Reading::trouble`] says why it is old, and [`Reading::at`] how old. Unknown is never zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(serialize = "T: Serialize", deserialize = "T: Deserialize<'de>"))]
pub struct Reading<T> {
    #[serde(with = "maybe")]
    value: Option<T>,
    quality: Quality,
    at: Option<DateTime<Utc>>,
    trouble: Option<Trouble>,
}

impl<T> Reading<T> {
    /// A value that is exactly what the server had.
    pub fn exact(value: T, at: DateTime<Utc>) -> Self {
        Self { value: Some(value), quality: Quality::Exact, at: Some(at), trouble: None }
    }

    /// A count that stopped at its cap.
    pub fn at_least(value: T, at: DateTime<Utc>) -> Self {
        Self { value: Some(value), quality: Quality::AtLeast, at: Some(at), trouble: None }
    }

    /// A value derived from counters or statistics.
    pub fn estimate(value: T, at: DateTime<Utc>) -> Self {
        Self { value: Some(value), quality: Quality::Estimate, at: Some(at), trouble: None }
    }

    /// No value, and why.
    pub fn unknown(trouble: Trouble) -> Self {
        Self { value: None, quality: Quality::Exact, at: None, trouble: Some(trouble) }
    }

    /// This reading, or when it failed the value of `last` kept with the new reason.
    pub fn or_last(self, last: &Self) -> Self
    where
        T: Clone,
    {
        match self {
            Self { value: None, trouble, .. } => {
                Self { value: last.value.clone(), quality: last.quality, at: last.at, trouble }
            }
            current => current,
        }
    }

    /// The value, current or kept from before; see [`Reading::is_current`].
    pub fn value(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// The value only when the newest attempt gave it.
    pub fn current(&self) -> Option<&T> {
        if self.trouble.is_none() { self.value.as_ref() } else { None }
    }

    /// Whether the newest attempt succeeded.
    pub fn is_current(&self) -> bool {
        self.trouble.is_none() && self.value.is_some()
    }

    /// How far the value can be trusted; meaningless without a value.
    pub fn quality(&self) -> Quality {
        self.quality
    }

    /// Server time at which the value was taken.
    pub fn at(&self) -> Option<DateTime<Utc>> {
        self.at
    }

    /// Why the newest attempt gave nothing.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// The same reading with another value derived from it.
    pub fn map<U>(&self, f: impl FnOnce(&T) -> U) -> Reading<U> {
        Reading {
            value: self.value.as_ref().map(f),
            quality: self.quality,
            at: self.at,
            trouble: self.trouble.clone(),
        }
    }
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self::unknown(Trouble::NotYet)
    }
}

/// A value that may be missing, as a list of none or one: a known "there is none" (the age of the oldest
/// ready job when nothing is ready) must come back from a recording as known, and a plain null could be
/// either.
mod maybe {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        value: &Option<T>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_slice().serialize(s)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<T>, D::Error> {
        Ok(Vec::deserialize(d)?.pop())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    #[test]
    fn a_failed_reading_keeps_the_last_value_with_its_own_time_and_the_new_reason() {
        let last = Reading::at_least(7u64, at(1));
        let kept = Reading::unknown(Trouble::TimedOut).or_last(&last);
        assert_eq!(kept.value(), Some(&7));
        assert_eq!(kept.current(), None);
        assert_eq!(kept.at(), Some(at(1)));
        assert_eq!(kept.quality(), Quality::AtLeast);
        assert_eq!(kept.trouble(), Some(&Trouble::TimedOut));
    }

    #[test]
    fn unknown_without_a_past_stays_unknown() {
        let kept = Reading::<u64>::unknown(Trouble::NoPrivilege).or_last(&Reading::default());
        assert_eq!(kept.value(), None);
        assert_eq!(kept.trouble(), Some(&Trouble::NoPrivilege));
    }

    #[test]
    fn a_good_reading_replaces_the_last_one() {
        let fresh = Reading::exact(3u64, at(9)).or_last(&Reading::exact(1, at(1)));
        assert_eq!(fresh.current(), Some(&3));
    }

    #[test]
    fn a_known_nothing_comes_back_from_a_recording_as_known() {
        for reading in [
            Reading::exact(None, at(1)),
            Reading::exact(Some(0.4), at(1)),
            Reading::unknown(Trouble::NoPrivilege),
            Reading::unknown(Trouble::TimedOut).or_last(&Reading::exact(None, at(1))),
        ] {
            let text = serde_json::to_string::<Reading<Option<f64>>>(&reading).unwrap();
            assert_eq!(serde_json::from_str::<Reading<Option<f64>>>(&text).unwrap(), reading, "{text}");
        }
    }
}
