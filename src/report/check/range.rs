//! The ranges of the Monitoring Plugins Development Guidelines ("Threshold and Ranges").

use std::fmt;

/// `[@]start:end`: an alert when a value is outside, both ends included; with `@`, when it is inside. Without a start it is
/// 0, `~` is minus infinity, without an end it is infinity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    start: f64,
    end: f64,
    inside: bool,
}

impl Range {
    /// From 0 to this.
    pub fn up_to(end: f64) -> Self {
        Self { start: 0.0, end, inside: false }
    }

    /// Reads one.
    ///
    /// # Errors
    /// One line that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (inside, rest) = text.strip_prefix('@').map_or((false, text), |rest| (true, rest));
        let number = |part: &str| {
            let n = part.parse::<f64>().ok().filter(|n| n.is_finite());
            n.ok_or_else(|| format!("{part:?} is not a number; ranges are 10, 10:, ~:10, 10:20 and @10:20"))
        };
        let (start, end) = match rest.split_once(':') {
            None => (0.0, number(rest)?),
            Some((start, end)) => {
                let start = match start {
                    "~" => f64::NEG_INFINITY,
                    "" => 0.0,
                    n => number(n)?,
                };
                (start, if end.is_empty() { f64::INFINITY } else { number(end)? })
            }
        };
        if start > end {
            return Err(format!("{text:?} begins above its end"));
        }
        Ok(Self { start, end, inside })
    }

    /// Whether the value is one to alert on.
    pub fn alerts(&self, value: f64) -> bool {
        ((self.start..=self.end).contains(&value)) == self.inside
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.inside {
            f.write_str("@")?;
        }
        match self.start {
            s if s == f64::NEG_INFINITY => f.write_str("~:")?,
            s if s != 0.0 || self.end.is_infinite() => write!(f, "{s}:")?,
            _ => {}
        }
        if self.end.is_finite() { write!(f, "{}", self.end) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_alert_as_the_guidelines_table_says() {
        // range, values that alert, values that do not
        for (text, bad, good) in [
            ("10", [-0.1, 10.1], [0.0, 10.0]),
            ("10:", [-1.0, 9.9], [10.0, 1e9]),
            ("~:10", [10.1, 11.0], [-1e9, 10.0]),
            ("10:20", [9.9, 20.1], [10.0, 20.0]),
            ("@10:20", [10.0, 20.0], [9.9, 20.1]),
        ] {
            let range = Range::parse(text).unwrap();
            assert!(bad.iter().all(|v| range.alerts(*v)), "{text}");
            assert!(!good.iter().any(|v| range.alerts(*v)), "{text}");
            assert_eq!(range.to_string(), text);
        }
        assert_eq!(Range::parse(":5"), Range::parse("5"));
    }

    #[test]
    fn what_is_no_range_is_refused_in_one_line() {
        for text in ["", "x", "1:x", "20:10", "nan", "inf", "@", "1:2:3", "10 "] {
            let why = Range::parse(text).unwrap_err();
            assert!(!why.contains('\n'), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_the_same(a in -1e6..1e6f64, b in 0.0..1e6f64, inside: bool) {
            let range = Range { start: a, end: a + b, inside };
            prop_assert_eq!(Range::parse(&range.to_string()).unwrap(), range);
        }
    }
}
