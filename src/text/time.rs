//! Times as people write them in flags and files.

use std::time::Duration;

/// `500ms`, `30s`, `2m`, `1h`; a bare number is seconds.
///
/// # Errors
/// One sentence.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number
        .parse()
        .map_err(|_| "a time needs a number and a unit, as in 500ms, 30s or 2m".to_owned())?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err("the unit of a time is ms, s, m or h".to_owned()),
    };
    if !(0.001..=604_800.0).contains(&seconds) {
        return Err("a time lies between 1ms and a week".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// The same back, in the largest unit that leaves a whole number.
pub fn time_text(time: Duration) -> String {
    let ms = time.as_millis();
    match ms {
        0 => "0s".to_owned(),
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
        for bad in ["", "x", "5 days", "0s", "-1s", "1e9h", "NaN", "1..2s"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_time_is_written_as_it_is_read() {
        for text in ["500ms", "1s", "90s", "2m", "60s", "1h", "36h"] {
            assert_eq!(time_text(parse_time(text).unwrap()), text);
        }
    }
}
