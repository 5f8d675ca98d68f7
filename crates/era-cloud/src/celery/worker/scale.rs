//! How many tasks a worker runs at once: between two bounds, by what waits.

use std::str::FromStr;
use std::time::Duration;

/// Most places that a worker may have.
const PLACES_MAX: usize = 2000;
/// How long places stay after they were last needed where nothing is said, as in Celery.
const KEEP_TIME: Duration = Duration::from_secs(30);

/// Two bounds, written `MAX,MIN` as Celery writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    most: usize,
    least: usize,
    keep: Duration,
}

/// Why bounds are none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is no pair of bounds: write MAX,MIN with 1 ≤ MIN ≤ MAX ≤ {PLACES_MAX}, as 50,3")]
pub struct BadScale(String);

impl FromStr for Scale {
    type Err = BadScale;

    fn from_str(text: &str) -> Result<Scale, BadScale> {
        let (most, least) = text.split_once(',').unwrap_or((text, "1"));
        let number = |text: &str| text.trim().parse::<usize>().ok();
        match (number(most), number(least)) {
            (Some(most), Some(least)) if (1..=most).contains(&least) && most <= PLACES_MAX => {
                Ok(Scale { most, least, keep: KEEP_TIME })
            }
            _ => Err(BadScale(text.chars().take(64).collect())),
        }
    }
}

impl Scale {
    /// The fewest places.
    pub fn least(self) -> usize {
        self.least
    }

    /// The most places.
    pub fn most(self) -> usize {
        self.most
    }

    /// The same bounds, with places that stay so long after they were last needed.
    pub fn keeping(self, keep: Duration) -> Scale {
        Scale { keep, ..self }
    }

    /// How many places there should be: as many more as messages wait, and back to what is busy
    /// once that has been enough for a while.
    pub fn next(self, limit: usize, busy: usize, waiting: usize, quiet: Duration) -> usize {
        let wanted = if busy >= limit && waiting > 0 {
            limit.saturating_add(waiting)
        } else if quiet >= self.keep {
            busy
        } else {
            limit
        };
        wanted.clamp(self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale() -> Scale {
        "50,3".parse().expect("bounds")
    }

    #[test]
    fn bounds_are_written_as_celery_writes_them() {
        assert_eq!((scale().most(), scale().least()), (50, 3));
        assert_eq!("8".parse::<Scale>().map(|scale| (scale.most(), scale.least())), Ok((8, 1)));
        for bad in ["", "3,50", "0", "5,0", "x,y", "1,2,3", "99999,1"] {
            assert!(bad.parse::<Scale>().is_err(), "{bad}");
        }
    }

    #[test]
    fn it_grows_by_what_waits_and_never_past_its_bound() {
        assert_eq!(scale().next(3, 3, 10, Duration::ZERO), 13);
        assert_eq!(scale().next(3, 3, 1000, Duration::ZERO), 50);
        assert_eq!(scale().next(3, 2, 10, Duration::ZERO), 3);
    }

    #[test]
    fn it_shrinks_after_a_while_and_never_below_its_bound() {
        assert_eq!(scale().next(20, 5, 0, Duration::from_secs(29)), 20);
        assert_eq!(scale().next(20, 5, 0, Duration::from_secs(30)), 5);
        assert_eq!(scale().next(20, 0, 0, Duration::from_secs(30)), 3);
        let hasty = scale().keeping(Duration::from_secs(2));
        assert_eq!(hasty.next(20, 5, 0, Duration::from_secs(2)), 5);
    }
}
