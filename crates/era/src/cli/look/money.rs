//! Credits as people read them. Programs get every digit.

use era_api::Credits;

/// Hundredths of a credit, in millionths.
const HUNDREDTH: u64 = 10_000;
/// Digits behind the point that an amount can have.
const DIGITS_MAX: u32 = 6;

/// How amounts that stand together are shown: all with the same digits behind the point, so that
/// they can be compared and added up. These are two; where even the largest amount is less than a
/// hundredth, as many as show two digits of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Money {
    digits: u32,
}

impl Money {
    pub(crate) fn of(amounts: impl IntoIterator<Item = Credits>) -> Money {
        let largest = amounts.into_iter().map(|amount| amount.0.unsigned_abs()).max().unwrap_or(0);
        let digits = match largest {
            0 | HUNDREDTH.. => 2,
            small => (DIGITS_MAX - small.ilog10() + 1).min(DIGITS_MAX),
        };
        Money { digits }
    }

    /// For what came in, what went out again and what is left: with as many digits more as it takes
    /// until they add up as they are shown.
    pub(crate) fn of_sum(came: Credits, went: Credits, left: Credits) -> Money {
        let Money { digits } = Money::of([came, went, left]);
        let adds_up = |money: &Money| {
            let [came, went, left] = [came, went, left].map(|amount| money.rounded(amount));
            came - went == left
        };
        let mut enough = (digits..=DIGITS_MAX).map(|digits| Money { digits });
        enough.find(adds_up).unwrap_or(Money { digits: DIGITS_MAX })
    }

    /// An amount, rounded to these digits.
    pub(crate) fn show(self, amount: Credits) -> String {
        let rounded = self.rounded(amount);
        let sign = if rounded < 0 { "-" } else { "" };
        let (rounded, whole) = (rounded.unsigned_abs(), 10_u64.pow(self.digits));
        let width = self.digits as usize;
        format!("{sign}{}.{:0width$}", rounded / whole, rounded % whole)
    }

    /// How many of the last digit it is, half of one away from nothing.
    fn rounded(self, amount: Credits) -> i64 {
        let unit = 10_u64.pow(DIGITS_MAX - self.digits);
        let size = (amount.0.unsigned_abs() + unit / 2) / unit;
        size.cast_signed() * amount.0.signum()
    }
}

/// An amount that stands alone.
pub(crate) fn credits(amount: Credits) -> String {
    Money::of([amount]).show(amount)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(amounts: &[i64]) -> Vec<String> {
        let amounts: Vec<Credits> = amounts.iter().copied().map(Credits).collect();
        let money = Money::of(amounts.iter().copied());
        amounts.into_iter().map(|amount| money.show(amount)).collect()
    }

    #[test]
    fn what_is_charged_and_comes_back_leaves_nothing() {
        assert_eq!(shown(&[104_274, 103_681, 593]), ["0.10", "0.10", "0.00"]);
        assert_eq!(shown(&[6_060_000, 4_848_000, 1_212_000]), ["6.06", "4.85", "1.21"]);
    }

    #[test]
    fn a_sum_adds_up_as_it_is_shown() {
        let sum = |came: i64, went: i64| {
            let all = [came, went, came - went].map(Credits);
            let money = Money::of_sum(all[0], all[1], all[2]);
            all.map(|amount| money.show(amount))
        };
        assert_eq!(sum(104_274, 103_681), ["0.10", "0.10", "0.00"]);
        assert_eq!(sum(525_000, 524_800), ["0.525", "0.525", "0.000"]);
        assert_eq!(sum(6_060_000, 4_848_000), ["6.06", "4.85", "1.21"]);
        assert_eq!(sum(4_200, 4_199), ["0.0042", "0.0042", "0.0000"]);
    }

    #[test]
    fn small_amounts_show_two_digits_of_the_largest() {
        assert_eq!(shown(&[593]), ["0.00059"]);
        assert_eq!(shown(&[9_996, 593, 4, 0]), ["0.0100", "0.0006", "0.0000", "0.0000"]);
        assert_eq!(shown(&[4]), ["0.000004"]);
        assert_eq!(shown(&[0]), ["0.00"]);
        assert_eq!(shown(&[-593, 1_250_000]), ["0.00", "1.25"]);
        assert_eq!(shown(&[-1_255_000]), ["-1.26"]);
    }

    proptest! {
        #[test]
        fn what_is_shown_is_less_than_one_of_its_last_digits_away(
            amounts in prop::collection::vec(-1_i64 << 50..1_i64 << 50, 1..5),
            small in prop::collection::vec(-20_000_i64..20_000, 1..5),
        ) {
            for amounts in [amounts, small] {
                let (came, went) = (Credits(amounts[0]), Credits(amounts[amounts.len() - 1]));
                let left = Credits(came.0 - went.0);
                let money = Money::of_sum(came, went, left);
                let read = |amount| money.show(amount).parse::<Credits>().unwrap().0;
                prop_assert_eq!(read(came) - read(went), read(left));
                let texts = shown(&amounts);
                let digits = texts[0].split_once('.').unwrap().1.len();
                prop_assert!((2..=6).contains(&digits));
                for (amount, text) in amounts.iter().zip(&texts) {
                    prop_assert_eq!(text.split_once('.').unwrap().1.len(), digits);
                    let read: Credits = text.parse().unwrap();
                    let unit = 10_i64.pow(6 - u32::try_from(digits).unwrap());
                    prop_assert!((read.0 - amount).abs() * 2 <= unit, "{} as {}", amount, text);
                }
                let most = amounts.iter().map(|amount| amount.abs()).max().unwrap();
                let seen = |text: &String| text.contains(|c| ('1'..='9').contains(&c));
                prop_assert!(most == 0 || texts.iter().any(seen), "{:?}", texts);
            }
        }
    }
}
