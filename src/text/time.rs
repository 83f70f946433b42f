//! Times as people write them in flags and files.

use std::time::Duration;

/// The longest time of [`parse_time`].
const WEEK: f64 = 604_800.0;
/// The longest that [`parse_keep`] keeps anything: ten years.
const LONGEST: f64 = 3650.0 * 86_400.0;

/// `500ms`, `30s`, `2m`, `1h`, `7d`; a bare number is seconds.
///
/// # Errors
/// One sentence.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let seconds = seconds(text)?;
    if !(0.001..=WEEK).contains(&seconds) {
        return Err("a time lies between 1ms and a week".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// How long something is kept: `0` not at all, a time as in `7d`, or `forever`, which is `None`.
///
/// # Errors
/// One sentence.
pub fn parse_keep(text: &str) -> Result<Option<Duration>, String> {
    match (text, seconds(text)) {
        ("forever", _) => Ok(None),
        ("0", _) => Ok(Some(Duration::ZERO)),
        // Without a unit it could be meant in days, and is not deleted after seconds.
        (text, Ok(seconds))
            if (1.0..=LONGEST).contains(&seconds) && text.ends_with(char::is_alphabetic) =>
        {
            Ok(Some(Duration::from_secs_f64(seconds)))
        }
        _ => Err("is \"forever\", \"0\", or a time from 1s to 3650d, as in \"7d\"".to_owned()),
    }
}

/// The same back.
pub fn keep_text(keep: Option<Duration>) -> String {
    match keep {
        None => "forever".to_owned(),
        Some(Duration::ZERO) => "0".to_owned(),
        Some(time) => time_text(time),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number
        .parse()
        .map_err(|_| "a time needs a number and a unit, as in 500ms, 30s or 2m".to_owned())?;
    match unit {
        "ms" => Ok(number / 1000.0),
        "" | "s" => Ok(number),
        "m" | "min" => Ok(number * 60.0),
        "h" => Ok(number * 3600.0),
        "d" => Ok(number * 86_400.0),
        _ => Err("the unit of a time is ms, s, m, h or d".to_owned()),
    }
}

/// The same back, in the largest unit that leaves a whole number.
pub fn time_text(time: Duration) -> String {
    let ms = time.as_millis();
    match ms {
        0 => "0s".to_owned(),
        ms if ms.is_multiple_of(86_400_000) && ms > 86_400_000 => format!("{}d", ms / 86_400_000),
        ms if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        ms if ms.is_multiple_of(60_000) && ms > 60_000 => format!("{}m", ms / 60_000),
        ms if ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_need_a_sane_number_and_unit() {
        assert_eq!(parse_time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_time("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_time("30"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_time("7d"), Ok(Duration::from_secs(604_800)));
        for bad in ["8d", "", "x", "5 days", "0s", "-1s", "1e9h", "NaN", "1..2s"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_time_is_written_as_it_is_read() {
        for text in ["500ms", "1s", "90s", "2m", "60s", "1h", "36h", "24h", "7d"] {
            assert_eq!(time_text(parse_time(text).unwrap()), text);
        }
    }

    #[test]
    fn what_is_kept_is_a_time_or_nothing_or_everything() {
        for (text, keep) in [
            ("forever", None),
            ("0", Some(Duration::ZERO)),
            ("1s", Some(Duration::from_secs(1))),
            ("7d", Some(Duration::from_secs(604_800))),
            ("3650d", Some(Duration::from_secs(315_360_000))),
        ] {
            assert_eq!(parse_keep(text), Ok(keep));
            assert_eq!(keep_text(keep), text);
        }
        for bad in ["off", "never", "", "-1", "7", "0s", "500ms", "3651d", "7 d", "inf", "NaN"] {
            assert!(parse_keep(bad).is_err(), "{bad}");
        }
    }
}
