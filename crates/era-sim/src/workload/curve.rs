//! A distribution as a curve through its quantiles, in integers.

use crate::seeded::Seeded;

/// How fine a share is: one in 2^24.
const SHARE_BITS: u32 = 24;

/// A position on a curve: a share of 2^24.
pub(super) type Share = u64;

/// The largest share, exclusive.
pub(super) const WHOLE: Share = 1 << SHARE_BITS;

/// Quantiles as (thousandths, value), from 0 to 1000, neither falling; straight in between.
pub(super) struct Curve(pub(super) &'static [(u64, u64)]);

impl Curve {
    /// The value that this share of all stays below.
    pub(super) fn at(&self, share: Share) -> u64 {
        let place = share * 1000;
        let knot = self.0.partition_point(|(thousandths, _)| (thousandths << SHARE_BITS) <= place);
        let Some((to, high)) = self.0.get(knot) else {
            return self.0.last().map_or(0, |(_, value)| *value);
        };
        let Some((from, low)) = knot.checked_sub(1).and_then(|knot| self.0.get(knot)) else {
            return *high;
        };
        let along = place - (from << SHARE_BITS);
        low + (high - low) * along / ((to - from) << SHARE_BITS)
    }

    /// A value drawn from it.
    pub(super) fn draw(&self, seeded: &mut Seeded) -> u64 {
        self.at(share(seeded))
    }

    /// The mean, times a thousand.
    pub(super) fn mean_milli(&self) -> u64 {
        let pieces = self.0.windows(2).map(|pair| match pair {
            [(from, low), (to, high)] => (to - from) * (low + high),
            _ => 0,
        });
        pieces.sum::<u64>() / 2
    }
}

/// A share drawn evenly.
pub(super) fn share(seeded: &mut Seeded) -> Share {
    seeded.next() >> (64 - SHARE_BITS)
}

/// A share near another: at most `away` thousandths off, turned back at the ends.
pub(super) fn near(seeded: &mut Seeded, base: Share, away: u64) -> Share {
    let reach = (WHOLE * away / 1000) as i64;
    let moved = base as i64 + seeded.range(-reach, reach + 1);
    let turned = if moved < 0 { -moved } else { moved };
    let whole = WHOLE as i64;
    (if turned >= whole { 2 * whole - 1 - turned } else { turned }) as Share
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURVE: Curve = Curve(&[(0, 10), (500, 20), (900, 20), (1000, 120)]);

    #[test]
    fn a_curve_goes_straight_from_knot_to_knot() {
        let at = |thousandths: u64| CURVE.at(WHOLE * thousandths / 1000);
        assert_eq!((at(0), at(500), at(700), at(900)), (10, 20, 20, 20));
        assert!((at(250), at(950)) == (15, 70) || (at(250), at(950)) == (15, 69));
        assert_eq!(CURVE.at(WHOLE - 1), 119);
    }

    #[test]
    fn its_mean_is_that_of_what_is_drawn() {
        assert_eq!(CURVE.mean_milli(), 500 * 15 + 400 * 20 + 100 * 70);
        let mut seeded = Seeded::new(1);
        let sum: u64 = (0..100_000).map(|_| CURVE.draw(&mut seeded)).sum();
        // Values are rounded down, by half of one on the way where the curve is steep.
        assert!((21_900..=22_600).contains(&(sum / 100)), "{}", sum / 100);
    }

    #[test]
    fn what_is_near_stays_on_the_curve() {
        let mut seeded = Seeded::new(2);
        for base in [0, 5, WHOLE / 2, WHOLE - 1] {
            for _ in 0..1000 {
                let share = near(&mut seeded, base, 20);
                assert!(share < WHOLE && share.abs_diff(base) <= WHOLE / 50);
            }
        }
    }
}
