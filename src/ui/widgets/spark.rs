//! A row of block characters that keeps its gaps.

const BLOCKS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// One character per column. `full` is the threshold: a figure near it looks high, one far below looks
/// low, whatever its neighbours do, and only one above it fills its cell. A column without a value
/// stays empty.
pub(in crate::ui) fn spark(columns: &[Option<f64>], full: f64) -> String {
    let full = if full > 0.0 { full } else { 1.0 };
    columns
        .iter()
        .map(|v| match v {
            None => " ",
            Some(v) if *v > full => BLOCKS[7],
            Some(v) => BLOCKS[(((v / full).max(0.0) * 6.0).round() as usize).min(6)],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_empty_and_a_zero_is_not() {
        assert_eq!(spark(&[Some(0.0), None, Some(5.0), Some(10.0), Some(99.0)], 10.0), "▁ ▄▇█");
    }

    #[test]
    fn a_scale_of_nothing_draws_the_ground() {
        assert_eq!(spark(&[Some(0.0), Some(0.0)], 0.0), "▁▁");
    }
}
