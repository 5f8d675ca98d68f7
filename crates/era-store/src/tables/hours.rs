//! Whole hours since 1970, by which the tables sum what was used and spent.

use era_core::units::Time;

/// An hour, in milliseconds.
pub const HOUR_MS: i64 = 3_600_000;

/// The number of the hour that an instant is in.
pub fn hour_of(at: Time) -> i64 {
    at.0.div_euclid(HOUR_MS)
}

/// A span cut at full hours: each hour with how much of it is in the span.
pub fn hours(from: Time, to: Time) -> impl Iterator<Item = (i64, i64)> {
    let last = if to > from { hour_of(Time(to.0 - 1)) } else { hour_of(from) - 1 };
    (hour_of(from)..=last).map(move |hour| {
        let (begin, end) = (hour * HOUR_MS, (hour + 1) * HOUR_MS);
        (hour, to.0.min(end) - from.0.max(begin))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_cut_at_full_hours_and_nothing_is_lost() {
        let cut = |from, to| hours(Time(from), Time(to)).collect::<Vec<_>>();
        assert_eq!(cut(0, HOUR_MS), [(0, HOUR_MS)]);
        assert_eq!(cut(HOUR_MS - 1, HOUR_MS + 2), [(0, 1), (1, 2)]);
        assert_eq!(cut(5, 5), []);
        assert_eq!(cut(7, 5), []);
        let sum: i64 = cut(1234, 5 * HOUR_MS + 77).iter().map(|(_, ms)| ms).sum();
        assert_eq!(sum, 5 * HOUR_MS + 77 - 1234);
    }
}
