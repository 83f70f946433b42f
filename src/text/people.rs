//! Ages, counts and rates for people: short, fixed in their precision, never a false zero.

/// `0.4s`, `12.0s`, `4m12s`, `2h13m`, `3d04h`. Negative ages (clocks) read as `0.0s`.
pub fn age(seconds: f64) -> String {
    let s = if seconds.is_finite() { seconds.max(0.0) } else { return "∞".to_owned() };
    if s < 99.95 {
        format!("{s:.1}s")
    } else if s < 3600.0 {
        format!("{}m{:02}s", (s / 60.0) as u64, s as u64 % 60)
    } else if s < 86_400.0 {
        format!("{}h{:02}m", (s / 3600.0) as u64, (s as u64 % 3600) / 60)
    } else {
        format!("{}d{:02}h", (s / 86_400.0) as u64, (s as u64 % 86_400) / 3600)
    }
}

/// `2s ago`, `4m ago`, `3h ago`, `2d ago`: one unit, whole.
pub fn ago(seconds: f64) -> String {
    let s = if seconds.is_finite() { seconds.max(0.0) as u64 } else { return "never".to_owned() };
    match s {
        0..=99 => format!("{s}s ago"),
        100..=5_999 => format!("{}m ago", s / 60),
        6_000..=172_799 => format!("{}h ago", s / 3600),
        _ => format!("{}d ago", s / 86_400),
    }
}

/// `1,204`; from a million on `1.2M`, from ten thousand million on `12G`.
pub fn count(n: u64) -> String {
    if n >= 10_000_000_000 {
        return format!("{:.0}G", n as f64 / 1e9);
    }
    if n >= 1_000_000 {
        return format!("{:.1}M", n as f64 / 1e6);
    }
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `0/s`, `0.3/s`, `412/s`, `12.3k/s`.
pub fn rate(per_second: f64) -> String {
    let r = per_second.max(0.0);
    if r == 0.0 {
        "0/s".to_owned()
    } else if r < 9.95 {
        format!("{r:.1}/s")
    } else if r < 9_999.5 {
        format!("{}/s", count(r.round() as u64))
    } else {
        format!("{:.1}k/s", r / 1e3)
    }
}

/// A share of 0–1 with as many digits as it takes to see that it is not nothing: `98.2%`, `0.95%`,
/// `0.0012%`, `0%` only for exactly nothing.
pub fn percent(share: f64) -> String {
    let p = share * 100.0;
    if p == 0.0 {
        "0%".to_owned()
    } else if p >= 9.995 {
        format!("{p:.1}%")
    } else if p >= 0.1 {
        format!("{p:.2}%")
    } else if p >= 0.0001 {
        format!("{p:.4}%")
    } else {
        "<0.0001%".to_owned()
    }
}

/// `12 B`, `3.4 kB`, `1.2 MB`, `1.2 GB`.
pub fn bytes_count(n: u64) -> String {
    match n {
        0..=999 => format!("{n} B"),
        1_000..=999_999 => format!("{:.1} kB", n as f64 / 1e3),
        1_000_000..=999_999_999 => format!("{:.1} MB", n as f64 / 1e6),
        _ => format!("{:.1} GB", n as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_change_their_unit_at_the_right_moment() {
        let cases = [
            (-3.0, "0.0s"),
            (0.44, "0.4s"),
            (12.0, "12.0s"),
            (252.0, "4m12s"),
            (7_980.0, "2h13m"),
            (273_600.0, "3d04h"),
            (f64::INFINITY, "∞"),
        ];
        for (seconds, want) in cases {
            assert_eq!(age(seconds), want);
        }
    }

    #[test]
    fn counts_have_thousands_separators() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_204), "1,204");
        assert_eq!(count(123_456), "123,456");
        assert_eq!(count(1_234_567), "1.2M");
    }

    #[test]
    fn a_small_share_never_reads_as_nothing() {
        assert_eq!(percent(0.0), "0%");
        assert_eq!(percent(0.0095), "0.95%");
        assert_eq!(percent(0.000012), "0.0012%");
        assert_eq!(percent(0.000_000_1), "<0.0001%");
        assert_eq!(percent(0.982), "98.2%");
    }

    #[test]
    fn rates_keep_a_digit_while_they_are_small() {
        assert_eq!(rate(0.0), "0/s");
        assert_eq!(rate(0.3), "0.3/s");
        assert_eq!(rate(412.2), "412/s");
        assert_eq!(rate(12_345.0), "12.3k/s");
    }
}
