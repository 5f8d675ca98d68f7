//! What is remembered of past runs: a few numbers for each owner, and for each of his sizes and
//! names.
//!
//! Enough to tell a job from its owner's habits, and bounded: only so many are remembered, and
//! those that nobody came back to are forgotten first. It knows durations and arrivals, not jobs.

use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

use crate::outlook::Arrival;
use crate::queue::fixed::Fixed;
use crate::units::{GroupId, Span, Time, UserId};

/// Most histories that are kept.
pub const HISTORIES_MAX: usize = 100_000;
/// How many of the last durations are kept one by one.
pub const RECENT: usize = 3;
/// Submissions that follow one another within this belong to one burst.
pub const BURST: Span = Span::from_min(10);

/// Whose history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    User(UserId),
    /// A user's jobs of a size: a power of two.
    Sized(UserId, u8),
    /// A user's jobs of a name, by its hash.
    Named(UserId, u32),
    Group(GroupId),
}

/// What is remembered of some jobs. Durations are binary logarithms of seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DurationHistory {
    /// When it was last touched, counted in events of all histories.
    touched: u64,
    /// When the last one was submitted.
    submitted: Option<Time>,
    /// How many came in the last burst.
    in_a_row: u32,
    /// How many ended.
    pub ended: u32,
    /// The last durations, the newest first.
    pub recent: Vec<Fixed>,
    /// A moving mean of durations.
    pub mean: Fixed,
    /// A moving mean of their distances from it.
    pub deviation: Fixed,
}

impl DurationHistory {
    fn note_end(&mut self, duration: Fixed) {
        self.recent.insert(0, duration);
        self.recent.truncate(RECENT);
        self.ended = self.ended.saturating_add(1);
        // A plain mean of the first eight, then one that forgets.
        let weight = i64::from(self.ended.min(8));
        let off = Fixed(duration.0 - self.mean.0);
        self.mean = Fixed(self.mean.0 + off.0 / weight);
        self.deviation = Fixed(self.deviation.0 + (off.abs().0 - self.deviation.0) / weight);
    }

    fn arrive(&mut self, at: Time) -> Arrival {
        let gap = self.submitted.map(|last| Span(at.since(last).0.max(0)));
        let goes_on = gap.is_some_and(|gap| gap <= BURST);
        self.in_a_row = if goes_on { self.in_a_row.saturating_add(1) } else { 0 };
        self.submitted = Some(at);
        Arrival { gap, in_a_row: self.in_a_row }
    }
}

/// All histories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(Whose, DurationHistory)>", into = "Vec<(Whose, DurationHistory)>")]
pub struct DurationHistories {
    by_owner: OrdMap<Whose, DurationHistory>,
    /// The same, the longest untouched first.
    by_age: OrdSet<(u64, Whose)>,
}

impl From<Vec<(Whose, DurationHistory)>> for DurationHistories {
    fn from(list: Vec<(Whose, DurationHistory)>) -> DurationHistories {
        let by_age = list.iter().map(|(whose, history)| (history.touched, *whose)).collect();
        DurationHistories { by_owner: list.into_iter().collect(), by_age }
    }
}

impl From<DurationHistories> for Vec<(Whose, DurationHistory)> {
    fn from(histories: DurationHistories) -> Vec<(Whose, DurationHistory)> {
        histories.by_owner.into_iter().collect()
    }
}

impl DurationHistories {
    /// What is remembered of somebody.
    pub fn of(&self, whose: Whose) -> Option<&DurationHistory> {
        self.by_owner.get(&whose)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_owner.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.by_owner.is_empty()
    }

    /// A job of somebody was submitted.
    pub fn note_arrival(&mut self, whose: Whose, at: Time) -> Arrival {
        self.touch(whose, |history| history.arrive(at))
    }

    /// A run of somebody ended.
    pub fn note_end(&mut self, whose: Whose, took: Span) {
        let duration = log2_s(took);
        self.touch(whose, |history| history.note_end(duration));
    }

    fn touch<R>(&mut self, whose: Whose, change: impl FnOnce(&mut DurationHistory) -> R) -> R {
        let newest = self.by_age.get_max().map_or(0, |(touched, _)| *touched);
        let mut history = self.by_owner.get(&whose).cloned().unwrap_or_default();
        self.by_age.remove(&(history.touched, whose));
        history.touched = newest + 1;
        self.by_age.insert((history.touched, whose));
        let result = change(&mut history);
        self.by_owner.insert(whose, history);
        if self.by_owner.len() > HISTORIES_MAX
            && let Some(oldest) = self.by_age.get_min().copied()
        {
            self.by_age.remove(&oldest);
            self.by_owner.remove(&oldest.1);
        }
        result
    }
}

/// The binary logarithm of a time in seconds; of less than one, as of one.
pub fn log2_s(span: Span) -> Fixed {
    Fixed(span.0.saturating_mul(1000)).max(Fixed::ONE).log2()
}

/// The time of which this is the binary logarithm, in milliseconds, up to a bound: the least
/// whose logarithm is no less.
pub fn exp2_s(log: Fixed, most: Span) -> Span {
    // Every logarithm rises with its argument, so it can be searched for, and is inverted exactly.
    let (mut low, mut high) = (1, most.0.max(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if Fixed(middle.saturating_mul(1000)).log2() < log {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Span(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bid::DURATION_MAX;

    const ANN: Whose = Whose::User(UserId(1));

    #[test]
    fn the_last_durations_and_their_moving_mean_are_kept() {
        let mut histories = DurationHistories::default();
        for seconds in [2, 8, 32, 128] {
            histories.note_end(ANN, Span::from_s(seconds));
        }
        let ann = histories.of(ANN).unwrap();
        assert_eq!(ann.recent, [7, 5, 3].map(Fixed::from_int));
        assert_eq!(ann.mean, Fixed::from_int(4));
        assert_eq!(ann.ended, 4);
        assert!(ann.deviation > Fixed::ZERO);
    }

    #[test]
    fn a_burst_is_counted_until_there_is_a_pause() {
        let mut histories = DurationHistories::default();
        let mut arrive =
            |minute: i64| histories.note_arrival(ANN, Time::from_s(minute * 60)).in_a_row;
        assert_eq!([0, 1, 2, 12, 23, 24].map(&mut arrive), [0, 1, 2, 3, 0, 1]);
        let gap = histories.note_arrival(ANN, Time::from_s(25 * 60)).gap;
        assert_eq!(gap, Some(Span::from_min(1)));
    }

    #[test]
    fn those_that_nobody_came_back_to_are_forgotten_first() {
        let mut histories = DurationHistories::default();
        let user = |n: usize| Whose::User(UserId(n as u32));
        for n in 0..HISTORIES_MAX {
            histories.note_end(user(n), Span::from_s(1));
        }
        histories.note_end(user(0), Span::from_s(1));
        histories.note_end(user(HISTORIES_MAX), Span::from_s(1));
        assert_eq!(histories.len(), HISTORIES_MAX);
        assert!(histories.of(user(0)).is_some());
        assert!(histories.of(user(1)).is_none());
    }

    #[test]
    fn histories_read_back_as_they_were_written() {
        let mut histories = DurationHistories::default();
        histories.note_arrival(Whose::Sized(UserId(1), 13), Time(5));
        histories.note_end(Whose::Named(UserId(1), 77), Span::from_s(9));
        histories.note_end(Whose::Group(GroupId(2)), Span::from_s(9));
        let text = serde_json::to_string(&histories).unwrap();
        assert_eq!(serde_json::from_str::<DurationHistories>(&text).unwrap(), histories);
    }

    #[test]
    fn a_logarithm_and_its_inverse_meet() {
        for ms in [1000, 1001, 59_999, 86_400_000, DURATION_MAX.0] {
            let back = exp2_s(log2_s(Span(ms)), DURATION_MAX);
            // Millionths of a logarithm are less than a millionth part of a duration.
            assert!((back.0 - ms).abs() <= 1 + ms / 1_000_000, "{ms} {back:?}");
        }
        assert_eq!(exp2_s(Fixed::MAX, DURATION_MAX), DURATION_MAX);
        assert_eq!(exp2_s(Fixed::MIN, DURATION_MAX), Span(1));
        assert_eq!(log2_s(Span(1)), Fixed::ZERO);
    }
}
