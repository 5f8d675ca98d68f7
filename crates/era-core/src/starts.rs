//! Sets of instants at which something may start.

use crate::units::Time;

/// At which instants of a range something may start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Starts {
    /// At each of them.
    #[default]
    All,
    /// Only in these closed intervals, ascending and apart; at none if there are none.
    Only(Vec<(Time, Time)>),
}

impl Starts {
    /// Whether an instant of the range is one of them.
    pub fn contains(&self, at: Time) -> bool {
        self.touches(at, at)
    }

    /// Whether any instant of `[from, to]` is one of them.
    pub fn touches(&self, from: Time, to: Time) -> bool {
        match self {
            Starts::All => true,
            Starts::Only(intervals) => {
                let first = intervals.partition_point(|(_, last)| *last < from);
                intervals.get(first).is_some_and(|(start, _)| *start <= to)
            }
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        matches!(self, Starts::Only(intervals) if intervals.is_empty())
    }

    /// Those that are in both.
    pub fn and(self, other: Starts) -> Starts {
        let (Starts::Only(a), Starts::Only(b)) = (&self, &other) else {
            return if self == Starts::All { other } else { self };
        };
        let (mut i, mut j, mut both) = (0, 0, Vec::new());
        while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
            let (from, to) = (x.0.max(y.0), x.1.min(y.1));
            if from <= to {
                both.push((from, to));
            }
            if x.1 <= y.1 {
                i += 1;
            } else {
                j += 1;
            }
        }
        Starts::Only(both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(intervals: &[(i64, i64)]) -> Starts {
        Starts::Only(intervals.iter().map(|(a, b)| (Time(*a), Time(*b))).collect())
    }

    #[test]
    fn what_is_in_both_is_what_both_contain() {
        let (a, b) = (only(&[(0, 5), (8, 12), (20, 20)]), only(&[(3, 9), (11, 30)]));
        let both = a.clone().and(b.clone());
        assert_eq!(both, only(&[(3, 5), (8, 9), (11, 12), (20, 20)]));
        for t in -1..35 {
            let t = Time(t);
            assert_eq!(both.contains(t), a.contains(t) && b.contains(t), "{t:?}");
        }
        assert_eq!(Starts::All.and(a.clone()), a);
        assert_eq!(a.clone().and(Starts::All), a);
    }
}
