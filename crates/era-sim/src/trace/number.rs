//! Numbers as traces write them, read exactly: decimals become integers of a smaller unit without
//! a detour through floating point.

/// No time in a trace is longer: three centuries, in seconds.
pub(super) const SECONDS_MAX: i64 = 10_000_000_000;

/// A decimal number in units of `10^-digits`, rounded to the nearest (halves away from zero).
/// `None` where the text is no plain decimal number or far out of range.
pub(super) fn decimal(text: &str, digits: u32) -> Option<i64> {
    let text = text.trim();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut total: i64 = 0;
    for digit in whole.bytes() {
        total = push(total, digit)?;
    }
    let fraction = fraction.as_bytes();
    for place in 0..digits as usize {
        total = push(total, fraction.get(place).copied().unwrap_or(b'0'))?;
    }
    let beyond = fraction.get(digits as usize..).unwrap_or_default();
    let all_digits = beyond.iter().all(u8::is_ascii_digit);
    if !all_digits || whole.len() + fraction.len() == 0 {
        return None;
    }
    if beyond.first().is_some_and(|digit| *digit >= b'5') {
        total = total.checked_add(1)?;
    }
    Some(if negative { -total } else { total })
}

fn push(total: i64, digit: u8) -> Option<i64> {
    let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
    total.checked_mul(10)?.checked_add(digit)
}

/// Memory in MiB from GiB, as exactly as MiB go. `None` as for [`decimal`].
pub(super) fn mib_of_gib(text: &str) -> Option<i64> {
    // A MiB is 0.0009765625 GiB: ten places tell every MiB from every other.
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = decimal(if whole.is_empty() { "0" } else { whole }, 0)?;
    let negative = text.trim_start().starts_with('-');
    if fraction.starts_with(['-', '+']) {
        return None;
    }
    let places = decimal(&format!("0.{}", fraction.trim_end()), 10)?;
    let mib = whole.abs().checked_mul(1024)?;
    let mib = mib.checked_add((places * 1024 + 5_000_000_000) / 10_000_000_000)?;
    Some(if negative { -mib } else { mib })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_and_round_to_the_nearest() {
        let cases = [
            ("12", 0, Some(12)),
            ("12.0", 0, Some(12)),
            ("12.5", 0, Some(13)),
            ("0.5", 3, Some(500)),
            ("29.296875", 3, Some(29_297)),
            (" 7 ", 0, Some(7)),
            ("-1", 0, Some(-1)),
            (".25", 2, Some(25)),
            ("", 0, None),
            (".", 0, None),
            ("-", 0, None),
            ("1e5", 0, None),
            ("1.x", 0, None),
            ("1.2.3", 3, None),
            ("nan", 0, None),
            ("99999999999999999999", 0, None),
        ];
        for (text, digits, expected) in cases {
            assert_eq!(decimal(text, digits), expected, "{text:?}");
        }
    }

    #[test]
    fn memory_in_gib_keeps_every_mib() {
        for mib in [0, 1, 2, 511, 1023, 1024, 1025, 4_000_000] {
            let places = (mib % 1024) * 9_765_625;
            assert_eq!(mib_of_gib(&format!("{}.{places:010}", mib / 1024)), Some(mib));
        }
        assert_eq!(mib_of_gib("29.296875"), Some(30_000));
        assert_eq!(mib_of_gib("-2"), Some(-2048));
        assert_eq!(mib_of_gib("x"), None);
        assert_eq!(mib_of_gib("1.-5"), None);
    }
}
