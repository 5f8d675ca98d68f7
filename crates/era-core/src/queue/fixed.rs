//! The number that priorities are made of: fixed point, six digits after the point.
//!
//! Arithmetic here is total. A waiting job must have a priority whatever an administrator's
//! formula meets at run time, so what leaves the range stays at its edge and `x / 0` is `0`.
//! The `checked_` forms say when that would happen; a formula whose *constant* parts need it is
//! refused when it is set. Everything is integer arithmetic: the same bytes on every platform.

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};

use serde::{Deserialize, Serialize};

/// A number in millionths, between about −9.2 and 9.2 million million.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Fixed(pub i64);

/// Millionths in one.
pub const SCALE: i64 = 1_000_000;
/// Digits after the point.
pub const DIGITS: usize = 6;

impl Fixed {
    /// Nothing; also "no" in a condition.
    pub const ZERO: Fixed = Fixed(0);
    /// One; also "yes" in a condition.
    pub const ONE: Fixed = Fixed(SCALE);
    /// The least number.
    pub const MIN: Fixed = Fixed(i64::MIN);
    /// The greatest number.
    pub const MAX: Fixed = Fixed(i64::MAX);

    /// A whole number; one beyond the range stays at its edge.
    pub const fn from_int(whole: i64) -> Fixed {
        Fixed(whole.saturating_mul(SCALE))
    }

    /// `num / den` as a fixed-point number, for inputs that are counted in finer units, such as
    /// seconds out of milliseconds. As with `/`, a ratio to nothing is 0.
    pub fn ratio(num: i64, den: i64) -> Fixed {
        Fixed(num) / Fixed(den)
    }

    /// 1 for yes, 0 for no.
    pub const fn from_bool(yes: bool) -> Fixed {
        if yes { Fixed::ONE } else { Fixed::ZERO }
    }

    /// Whether it counts as "yes" in a condition: everything but 0 does.
    pub const fn is_yes(self) -> bool {
        self.0 != 0
    }

    /// The sum, if it is in range.
    pub fn checked_add(self, other: Fixed) -> Option<Fixed> {
        self.0.checked_add(other.0).map(Fixed)
    }

    /// The difference, if it is in range.
    pub fn checked_sub(self, other: Fixed) -> Option<Fixed> {
        self.0.checked_sub(other.0).map(Fixed)
    }

    /// The product, rounded towards zero, if it is in range.
    pub fn checked_mul(self, other: Fixed) -> Option<Fixed> {
        // Nearly every product fits 64 bits; a 128-bit division costs many times more.
        if let Some(product) = self.0.checked_mul(other.0) {
            return Some(Fixed(product / SCALE));
        }
        let wide = i128::from(self.0) * i128::from(other.0) / i128::from(SCALE);
        i64::try_from(wide).ok().map(Fixed)
    }

    /// The quotient, rounded towards zero, if there is one and it is in range.
    pub fn checked_div(self, other: Fixed) -> Option<Fixed> {
        if let Some(scaled) = self.0.checked_mul(SCALE) {
            return scaled.checked_div(other.0).map(Fixed);
        }
        let wide = (i128::from(self.0) * i128::from(SCALE)).checked_div(i128::from(other.0))?;
        i64::try_from(wide).ok().map(Fixed)
    }

    /// The number without its sign.
    pub fn abs(self) -> Fixed {
        Fixed(self.0.saturating_abs())
    }

    /// The number, but not below `low` nor above `high`; `low` wins where the two contradict.
    pub fn between(self, low: Fixed, high: Fixed) -> Fixed {
        self.min(high).max(low)
    }

    /// The binary logarithm, at most a millionth from the true one; exact for powers of two.
    ///
    /// There is none for zero and below; those get that of the least positive number, so that
    /// a larger argument never has a smaller logarithm.
    pub fn log2(self) -> Fixed {
        let product = log2_q32(self) * SCALE;
        Fixed((product + (1 << 31)) >> 32)
    }

    /// The natural logarithm, at most a millionth from the true one; below one as for `log2`.
    pub fn ln(self) -> Fixed {
        // ln 2, in millionths, times 2^20.
        const LN_2: i128 = 726_817_498_003;
        let product = i128::from(log2_q32(self)) * LN_2;
        let rounded = (product + (1 << 51)) >> 52;
        // At most 30 in size, so it always fits.
        Fixed(i64::try_from(rounded).unwrap_or(i64::MAX))
    }

    /// The square root, rounded down; 0 for what is negative.
    pub fn sqrt(self) -> Fixed {
        if self.0 <= 0 {
            return Fixed::ZERO;
        }
        // √(raw / scale) in millionths is √(raw · scale).
        if let Some(scaled) = self.0.checked_mul(SCALE) {
            return Fixed(scaled.isqrt());
        }
        let root = (i128::from(self.0) * i128::from(SCALE)).isqrt();
        Fixed(i64::try_from(root).unwrap_or(i64::MAX))
    }
}

/// Steps of the table of logarithms. Straight lines between 1,024 of them stay within 0.2
/// millionths of the curve and, unlike a series, can never fall where the curve rises.
const LOG2_STEPS: usize = 1024;

/// `log2(1 + i / 1024)`, times 2^32.
static LOG2: [u64; LOG2_STEPS + 1] = log2_table();

const fn log2_table() -> [u64; LOG2_STEPS + 1] {
    let mut table = [1 << 32; LOG2_STEPS + 1];
    let mut i = 0;
    while i < LOG2_STEPS {
        table[i] = log2_bits((1 << 63) + ((i as u64) << 53));
        i += 1;
    }
    table
}

/// The binary logarithm of a mantissa in [1, 2) (times 2^63), times 2^32, bit by bit: squaring
/// doubles a logarithm, and a square of two or more shows its next bit.
const fn log2_bits(mut mantissa: u64) -> u64 {
    let mut bits = 0;
    let mut left = 32;
    while left > 0 {
        let square = (mantissa as u128) * (mantissa as u128);
        let carry = (square >> 127) as u64;
        mantissa = (square >> (63 + carry)) as u64;
        bits = (bits << 1) | carry;
        left -= 1;
    }
    bits
}

/// The binary logarithm times 2^32.
fn log2_q32(x: Fixed) -> i64 {
    // That of the scale itself, by the same table, so that powers of two come out exact.
    const LOG2_SCALE: i64 = raw_log2_q32(SCALE.unsigned_abs(), &log2_table());
    raw_log2_q32(x.0.max(1).unsigned_abs(), &LOG2) - LOG2_SCALE
}

/// The binary logarithm of a positive integer, times 2^32.
const fn raw_log2_q32(raw: u64, table: &[u64; LOG2_STEPS + 1]) -> i64 {
    let zeros = raw.leading_zeros();
    // The digits after the leading one: ten bits choose the step, 32 the place within it.
    let fraction = (raw << zeros) << 1;
    let step = (fraction >> 54) as usize;
    let place = (fraction >> 22) & 0xFFFF_FFFF;
    let rise = table[step + 1] - table[step];
    let part = table[step] + ((rise * place) >> 32);
    ((63 - zeros as i64) << 32) + part as i64
}

/// The edge of the range on the side of a result that left it.
fn edge(negative: bool) -> Fixed {
    if negative { Fixed::MIN } else { Fixed::MAX }
}

impl Add for Fixed {
    type Output = Fixed;
    fn add(self, other: Fixed) -> Fixed {
        Fixed(self.0.saturating_add(other.0))
    }
}

impl Sub for Fixed {
    type Output = Fixed;
    fn sub(self, other: Fixed) -> Fixed {
        Fixed(self.0.saturating_sub(other.0))
    }
}

impl Mul for Fixed {
    type Output = Fixed;
    fn mul(self, other: Fixed) -> Fixed {
        self.checked_mul(other).unwrap_or_else(|| edge((self.0 < 0) != (other.0 < 0)))
    }
}

impl Div for Fixed {
    type Output = Fixed;
    /// `x / 0` is 0: a priority must always exist, and "no part of nothing" neither lifts a job
    /// above all others nor sinks it below them.
    fn div(self, other: Fixed) -> Fixed {
        if other == Fixed::ZERO {
            return Fixed::ZERO;
        }
        self.checked_div(other).unwrap_or_else(|| edge((self.0 < 0) != (other.0 < 0)))
    }
}

impl Neg for Fixed {
    type Output = Fixed;
    fn neg(self) -> Fixed {
        Fixed(self.0.saturating_neg())
    }
}

impl From<i32> for Fixed {
    fn from(whole: i32) -> Fixed {
        Fixed::from_int(i64::from(whole))
    }
}

impl From<u32> for Fixed {
    fn from(whole: u32) -> Fixed {
        Fixed::from_int(i64::from(whole))
    }
}

impl From<i64> for Fixed {
    /// What is beyond the range stays at its edge, as in all arithmetic here.
    fn from(whole: i64) -> Fixed {
        Fixed::from_int(whole)
    }
}

impl From<u64> for Fixed {
    /// What is beyond the range stays at its edge, as in all arithmetic here.
    fn from(whole: u64) -> Fixed {
        i64::try_from(whole).map_or(Fixed::MAX, Fixed::from_int)
    }
}

impl fmt::Display for Fixed {
    /// As a formula would write it: `2`, `-0.25`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (raw, scale) = (self.0.unsigned_abs(), SCALE.unsigned_abs());
        let digits = format!("{:06}", raw % scale);
        let digits = digits.trim_end_matches('0');
        let dot = if digits.is_empty() { "" } else { "." };
        write!(f, "{sign}{}{dot}{digits}", raw / scale)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_read_as_a_formula_would_write_them() {
        for (raw, text) in [
            (0, "0"),
            (2_000_000, "2"),
            (-250_000, "-0.25"),
            (1, "0.000001"),
            (i64::MAX, "9223372036854.775807"),
            (i64::MIN, "-9223372036854.775808"),
        ] {
            assert_eq!(Fixed(raw).to_string(), text);
        }
    }

    #[test]
    fn what_leaves_the_range_stays_at_its_edge() {
        let (two, tiny) = (Fixed::from(2), Fixed(1));
        assert_eq!(Fixed::MAX + tiny, Fixed::MAX);
        assert_eq!(Fixed::MIN - tiny, Fixed::MIN);
        assert_eq!(Fixed::MAX * two, Fixed::MAX);
        assert_eq!(Fixed::MIN * two, Fixed::MIN);
        assert_eq!(Fixed::MIN * -two, Fixed::MAX);
        assert_eq!(Fixed::MAX / tiny, Fixed::MAX);
        assert_eq!(Fixed::MAX / -tiny, Fixed::MIN);
        assert_eq!(Fixed::MIN / -Fixed::ONE, Fixed::MAX);
        assert_eq!(-Fixed::MIN, Fixed::MAX);
        assert_eq!(Fixed::MIN.abs(), Fixed::MAX);
        assert_eq!(Fixed::from(i64::MAX), Fixed::MAX);
        assert_eq!(Fixed::from(i64::MIN), Fixed::MIN);
        assert_eq!(Fixed::from(u64::MAX), Fixed::MAX);
    }

    #[test]
    fn a_ratio_to_nothing_is_nothing() {
        for x in [Fixed::MIN, -Fixed::ONE, Fixed::ZERO, Fixed::ONE, Fixed::MAX] {
            assert_eq!(x / Fixed::ZERO, Fixed::ZERO);
            assert_eq!(x.checked_div(Fixed::ZERO), None);
        }
        assert_eq!(Fixed::ratio(1_500, 1_000), Fixed(1_500_000));
        assert_eq!(Fixed::ratio(1_500, 0), Fixed::ZERO);
    }

    /// Raw argument, raw binary logarithm, raw natural logarithm; computed to 30 digits elsewhere.
    const KNOWN_LOGS: &[(i64, i64, i64)] = &[
        (1, -19_931_569, -13_815_511),
        (2, -18_931_569, -13_122_363),
        (999, -9_967_228, -6_908_756),
        (123_456, -3_017_931, -2_091_870),
        (693_147, -528_767, -366_513),
        (999_999, -1, -1),
        (1_000_001, 1, 1),
        (1_414_214, 500_000, 346_574),
        (2_718_282, 1_442_695, 1_000_000),
        (3_000_000, 1_584_963, 1_098_612),
        (10_000_000, 3_321_928, 2_302_585),
        (86_400_000_000, 16_398_744, 11_366_743),
        (123_456_789_012, 16_913_647, 11_723_646),
        (1_000_000_000_000_000, 29_897_353, 20_723_266),
        (i64::MAX, 43_068_431, 29_852_762),
    ];

    #[test]
    fn logarithms_are_within_a_millionth_of_the_true_ones() {
        for &(raw, log2, ln) in KNOWN_LOGS {
            let x = Fixed(raw);
            assert!((x.log2().0 - log2).abs() <= 1, "log2({x}) = {}", x.log2());
            assert!((x.ln().0 - ln).abs() <= 1, "ln({x}) = {}", x.ln());
        }
    }

    #[test]
    fn logarithms_of_powers_of_two_are_exact() {
        for power in 0..43 {
            assert_eq!(Fixed::from(1_i64 << power).log2(), Fixed::from(power));
        }
        for (raw, power) in [(500_000, -1), (250_000, -2), (15_625, -6)] {
            assert_eq!(Fixed(raw).log2(), Fixed::from(power));
        }
    }

    #[test]
    fn zero_and_below_have_the_least_logarithm_and_no_root() {
        for raw in [i64::MIN, -1, 0] {
            assert_eq!(Fixed(raw).log2(), Fixed(1).log2());
            assert_eq!(Fixed(raw).ln(), Fixed(1).ln());
            assert_eq!(Fixed(raw).sqrt(), Fixed::ZERO);
        }
    }

    #[test]
    fn roots_of_known_squares() {
        for (raw, root) in
            [(4_000_000, 2_000_000), (2_000_000, 1_414_213), (250_000, 500_000), (1, 1_000)]
        {
            assert_eq!(Fixed(raw).sqrt(), Fixed(root));
        }
        assert_eq!(Fixed::MAX.sqrt(), Fixed(3_037_000_499_976));
    }

    /// Raw numbers of every magnitude, not only the huge ones that a plain range would give.
    fn raw() -> impl Strategy<Value = i64> {
        (any::<i64>(), 0_u32..63).prop_map(|(x, shift)| x >> shift)
    }

    fn clip(wide: i128) -> i64 {
        i64::try_from(wide.clamp(i128::from(i64::MIN), i128::from(i64::MAX))).unwrap()
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_wide_integers_clipped(a in raw(), b in raw()) {
            let (wa, wb, scale) = (i128::from(a), i128::from(b), i128::from(SCALE));
            prop_assert_eq!((Fixed(a) + Fixed(b)).0, clip(wa + wb));
            prop_assert_eq!((Fixed(a) - Fixed(b)).0, clip(wa - wb));
            prop_assert_eq!((Fixed(a) * Fixed(b)).0, clip(wa * wb / scale));
            let quotient = if b == 0 { 0 } else { wa * scale / wb };
            prop_assert_eq!((Fixed(a) / Fixed(b)).0, clip(quotient));
        }

        #[test]
        fn a_larger_number_never_has_a_smaller_logarithm_or_root(a in raw(), b in raw()) {
            let (low, high) = (Fixed(a.min(b)), Fixed(a.max(b)));
            prop_assert!(low.log2() <= high.log2());
            prop_assert!(low.ln() <= high.ln());
            prop_assert!(low.sqrt() <= high.sqrt());
        }

        #[test]
        fn neighbours_keep_their_order(a in raw()) {
            let (low, high) = (Fixed(a), Fixed(a.saturating_add(1)));
            prop_assert!(low.log2() <= high.log2());
            prop_assert!(low.ln() <= high.ln());
            prop_assert!(low.sqrt() <= high.sqrt());
        }

        #[test]
        fn doubling_adds_exactly_one_to_the_logarithm(raw in 1..=i64::MAX / 2) {
            prop_assert_eq!(Fixed(raw * 2).log2(), Fixed(raw).log2() + Fixed::ONE);
        }

        #[test]
        fn a_root_is_the_largest_whose_square_fits(raw in 0..=i64::MAX) {
            let root = i128::from(Fixed(raw).sqrt().0);
            let square = i128::from(raw) * i128::from(SCALE);
            prop_assert!(root * root <= square && square < (root + 1) * (root + 1));
        }
    }
}
