//! A reading as text: its value with its quality, or the reason there is none.

use chrono::{DateTime, Utc};

use crate::model::{Quality, Reading};
use crate::text::{age, count};
use crate::ui::Role;

/// A reading ready to be drawn.
pub(in crate::ui) struct Shown {
    /// The value with the mark of its quality, or `—`.
    pub value: String,
    /// Why it is old or missing: `no privilege`, `14s old, timed out`.
    pub note: Option<String>,
    /// How it is drawn.
    pub role: Role,
}

/// Shows `reading` at server time `now`; `stale` when the whole sample is old.
pub(in crate::ui) fn show<T>(
    reading: &Reading<T>,
    now: DateTime<Utc>,
    stale: bool,
    text: impl Fn(&T) -> String,
) -> Shown {
    let Some(value) = reading.value() else {
        let note = reading.trouble().map(ToString::to_string);
        return Shown { value: "—".to_owned(), note, role: Role::Unknown };
    };
    let mark = match reading.quality() {
        Quality::Exact => "",
        Quality::AtLeast => "≥",
        Quality::Estimate => "~",
    };
    let value = format!("{mark}{}", text(value));
    let old = || {
        reading.at().map_or_else(
            || "old".to_owned(),
            |at| format!("{} old", age((now - at).num_seconds().max(0) as f64).replace(".0s", "s")),
        )
    };
    match reading.trouble() {
        Some(why) => Shown { value, note: Some(format!("{}, {why}", old())), role: Role::Dim },
        None if stale => Shown { value, note: Some(old()), role: Role::Dim },
        None => Shown { value, note: None, role: Role::Text },
    }
}

/// A count; a round cap reads as `10k`.
pub(in crate::ui) fn count_text(reading: &Reading<u64>) -> impl Fn(&u64) -> String {
    let capped = reading.quality() == Quality::AtLeast;
    move |n| {
        if capped && *n >= 1_000 && n % 1_000 == 0 && *n < 1_000_000 {
            format!("{}k", n / 1_000)
        } else {
            count(*n)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Trouble;

    const AT: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn shown(r: &Reading<u64>) -> (String, Option<String>) {
        let s = show(r, AT + chrono::TimeDelta::seconds(14), false, count_text(r));
        (s.value, s.note)
    }

    #[test]
    fn a_number_is_shown_with_its_quality() {
        assert_eq!(shown(&Reading::exact(1_204, AT)), ("1,204".into(), None));
        assert_eq!(shown(&Reading::at_least(10_000, AT)), ("≥10k".into(), None));
        assert_eq!(shown(&Reading::estimate(1_234_567, AT)), ("~1.2M".into(), None));
    }

    #[test]
    fn what_is_unknown_says_why_and_what_is_old_says_how_old() {
        assert_eq!(
            shown(&Reading::unknown(Trouble::NoPrivilege)),
            ("—".into(), Some("no privilege".into()))
        );
        let kept = Reading::unknown(Trouble::TimedOut).or_last(&Reading::exact(7, AT));
        assert_eq!(shown(&kept), ("7".into(), Some("14s old, timed out".into())));
    }
}
