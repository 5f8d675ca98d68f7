//! Figures as a person says them.

use era_core::settings::Backfill;

/// A span of time: its two largest units.
pub fn span_words(seconds: f64) -> String {
    if seconds < 0.05 {
        return "0 s".to_owned();
    }
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as i64;
    let (hours, minutes, rest) = (whole / 3_600, whole / 60 % 60, whole % 60);
    match hours {
        0 => format!("{minutes} min {rest} s"),
        // Days are too coarse to compare two of them.
        1..72 => format!("{hours} h {minutes} min"),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}

/// A part of the whole.
pub fn percent_words(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// A count, its thousands apart.
pub fn count_words(count: u64) -> String {
    let digits = count.to_string();
    let mut words = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            words.push(',');
        }
        words.push(digit);
    }
    words
}

/// What people call a way to backfill, and type it.
pub fn backfill_name(backfill: Backfill) -> &'static str {
    match backfill {
        Backfill::None => "none",
        Backfill::Easy => "easy",
        Backfill::Conservative => "conservative",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_said_in_their_two_largest_units() {
        let cases = [
            (0.0, "0 s"),
            (12.34, "12.3 s"),
            (90.0, "1 min 30 s"),
            (3_600.0, "1 h 0 min"),
            (5_400.4, "1 h 30 min"),
            (90_000.0, "25 h 0 min"),
            (360_000.0, "4 d 4 h"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(span_words(seconds), expected);
        }
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(count_words(7), "7");
        assert_eq!(count_words(1_000), "1,000");
        assert_eq!(count_words(82_247), "82,247");
        assert_eq!(count_words(1_234_567), "1,234,567");
    }
}
