//! Fair shares: what each user used of late, decaying with a half-life.
//!
//! Use is the dominant share of a pool, in millionths, times milliseconds. Decay is exact for
//! whole half-lives and a straight line within one: integers, the same on every machine, and
//! never rising.

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use super::fixed::Fixed;
use crate::resources::PerResource;
use crate::units::{Span, Time, UserId};

/// What one user used, as of an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Used {
    at: Time,
    amount: u64,
}

/// What everybody used of late.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FairShares {
    users: OrdMap<UserId, Used>,
}

/// What is left of `amount` after `passed`.
pub fn decay(amount: u64, passed: Span, half_life: Span) -> u64 {
    if passed.0 <= 0 {
        return amount;
    }
    let whole = passed.0 / half_life.0;
    if whole >= 64 {
        return 0;
    }
    let halved = amount >> whole;
    let within = i128::from(passed.0 % half_life.0);
    let lost = i128::from(halved) * within / (2 * i128::from(half_life.0));
    u64::try_from(i128::from(halved) - lost).unwrap_or(0)
}

/// The largest share of the capacity that the units are of, in millionths.
pub fn dominant_share(units: &PerResource<u64>, capacity: &PerResource<u64>) -> u64 {
    let share = |(u, c): (&u64, &u64)| match u128::from(*u).checked_mul(1_000_000) {
        Some(scaled) if *c > 0 => u64::try_from(scaled / u128::from(*c)).unwrap_or(u64::MAX),
        _ => 0,
    };
    units.iter().zip(capacity).map(share).max().unwrap_or(0)
}

/// A user's part of all use, less an equal part for everybody: above zero for who used more.
pub fn debt(used: u64, (total, users): (u128, u64)) -> Fixed {
    if total == 0 || users == 0 {
        return Fixed::ZERO;
    }
    let part = u128::from(used) * 1_000_000 / total;
    Fixed(i64::try_from(part).unwrap_or(1_000_000)) - Fixed::ratio(1, users.min(1 << 40) as i64)
}

impl FairShares {
    /// Counts use until `at`.
    pub fn add(&mut self, user: UserId, at: Time, amount: u64, half_life: Span) {
        let before = self.of(user, at, half_life);
        self.users.insert(user, Used { at, amount: before.saturating_add(amount) });
    }

    /// What a user used, as of `now`.
    pub fn of(&self, user: UserId, now: Time, half_life: Span) -> u64 {
        self.users.get(&user).map_or(0, |u| decay(u.amount, now.since(u.at), half_life))
    }

    /// Everybody's use as of `now`, summed, and how many there are.
    pub fn total(&self, now: Time, half_life: Span) -> (u128, u64) {
        let sum = self.users.values().map(|u| decay(u.amount, now.since(u.at), half_life));
        (sum.map(u128::from).sum(), self.users.len() as u64)
    }

    /// Whether anything of a user's use is still remembered.
    pub fn knows(&self, user: UserId) -> bool {
        self.users.contains_key(&user)
    }

    /// Forgets users whose use has decayed to nothing.
    pub fn forget(&mut self, now: Time, half_life: Span) {
        let gone: Vec<UserId> = self
            .users
            .iter()
            .filter(|(_, u)| decay(u.amount, now.since(u.at), half_life) == 0)
            .map(|(user, _)| *user)
            .collect();
        for user in gone {
            self.users.remove(&user);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_half_life_halves() {
        assert_eq!(decay(1000, Span(100), Span(100)), 500);
        assert_eq!(decay(1000, Span(50), Span(100)), 750);
        assert_eq!(decay(1000, Span(300), Span(100)), 125);
        assert_eq!(decay(u64::MAX, Span(i64::MAX), Span(1)), 0);
    }

    proptest! {
        #[test]
        fn decay_never_rises(amount: u64, a in 0i64..1_000_000, b in 0i64..1_000_000, h in 1i64..10_000) {
            let (early, late) = (a.min(b), a.max(b));
            prop_assert!(decay(amount, Span(late), Span(h)) <= decay(amount, Span(early), Span(h)));
        }
    }
}
