//! A step function of time: how many units are committed at each instant.
//!
//! It is kept in one canonical form, so that two that say the same are equal, and adding and
//! then removing leaves no trace. It knows no limits and no owners.

use serde::{Deserialize, Serialize};

use crate::resources::PerResource;
use crate::units::{Span, Time};

/// Levels over time; zero before the first step and after the last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<LevelFrom>", into = "Vec<LevelFrom>")]
pub struct Steps(Vec<LevelFrom>);

/// From this instant on, this level.
type LevelFrom = (Time, PerResource<u64>);

const NOTHING: PerResource<u64> = [0; 3];

impl Steps {
    /// Whether it is zero at all times.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first instant at which it is not zero.
    pub fn first(&self) -> Option<Time> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Raises the level over `[from, to)`. False, and nothing is changed, if a level would leave
    /// its range.
    #[must_use]
    pub fn add(&mut self, from: Time, to: Time, units: PerResource<u64>) -> bool {
        self.change(from, to, units, u64::checked_add)
    }

    /// Lowers the level over `[from, to)`. False, and nothing is changed, if less is there.
    #[must_use]
    pub fn remove(&mut self, from: Time, to: Time, units: PerResource<u64>) -> bool {
        self.change(from, to, units, u64::checked_sub)
    }

    /// The highest level of each resource over `[from, to)`; zero if that is empty.
    pub fn peak(&self, from: Time, to: Time) -> PerResource<u64> {
        let mut peak = NOTHING;
        for (_, level) in self.pieces(from, to) {
            for (highest, units) in peak.iter_mut().zip(level) {
                *highest = units.max(*highest);
            }
        }
        peak
    }

    /// Makes everything before an instant zero, to save its space.
    pub fn forget_before(&mut self, at: Time) {
        let level = self.level_at(at);
        let past = self.0.partition_point(|(start, _)| *start <= at);
        if past > 0 {
            let kept = (level != NOTHING).then_some((at, level));
            self.0.splice(..past, kept);
        }
    }

    /// Appends to `out` the closed intervals of starts within `starts` from which `duration`
    /// passes without meeting a level that `blocks`. The intervals are ascending and apart; the
    /// duration is more than zero.
    ///
    /// Blocked over `[b, c)` means: no start after `b - duration` and before `c`.
    pub fn starts_clear_of(
        &self,
        blocks: impl Fn(PerResource<u64>) -> bool,
        (earliest, latest): (Time, Time),
        duration: Span,
        out: &mut Vec<(Time, Time)>,
    ) {
        let mut next = earliest;
        // One past the last instant that a start in question still covers.
        let reach = latest + duration;
        for (piece, level) in self.pieces(earliest, reach) {
            if !blocks(level) {
                continue;
            }
            let last = latest.min(piece.0 - duration);
            if next <= last {
                out.push((next, last));
            }
            next = next.max(piece.1);
        }
        if next <= latest {
            out.push((next, latest));
        }
    }

    /// The pieces of constant level that meet `[from, to)`, cut to it.
    fn pieces(
        &self,
        from: Time,
        to: Time,
    ) -> impl Iterator<Item = ((Time, Time), PerResource<u64>)> {
        let after = self.0.partition_point(|(start, _)| *start <= from);
        let rest = self.0[after..].iter().take_while(move |(start, _)| *start < to).copied();
        let starts = std::iter::once((from, self.level_at(from))).chain(rest.clone());
        let ends = rest.map(|(start, _)| start).chain(std::iter::once(to));
        starts
            .zip(ends)
            .map(|((start, level), end)| ((start, end), level))
            .filter(|((start, end), _)| start < end)
    }

    fn level_at(&self, at: Time) -> PerResource<u64> {
        let after = self.0.partition_point(|(start, _)| *start <= at);
        self.0[..after].last().map_or(NOTHING, |(_, level)| *level)
    }

    fn change(
        &mut self,
        from: Time,
        to: Time,
        units: PerResource<u64>,
        apply: fn(u64, u64) -> Option<u64>,
    ) -> bool {
        if from >= to || units == NOTHING {
            return true;
        }
        let possible = |level: PerResource<u64>| {
            level.iter().zip(units).all(|(have, by)| apply(*have, by).is_some())
        };
        if !self.pieces(from, to).all(|(_, level)| possible(level)) {
            return false;
        }
        let start = self.cut(from);
        let end = self.cut(to);
        for (_, level) in &mut self.0[start..end] {
            for (have, by) in level.iter_mut().zip(units) {
                // In range, as was just found for every piece.
                *have = apply(*have, by).unwrap_or(*have);
            }
        }
        // All between moved alike, so only at the two ends can neighbours have become equal.
        self.join(end);
        self.join(start);
        true
    }

    /// Makes an instant the start of a step, and says which.
    fn cut(&mut self, at: Time) -> usize {
        let index = self.0.partition_point(|(start, _)| *start < at);
        if self.0.get(index).is_none_or(|(start, _)| *start != at) {
            let level = self.level_at(at);
            self.0.insert(index, (at, level));
        }
        index
    }

    /// Drops a step that is none.
    fn join(&mut self, index: usize) {
        let before = index.checked_sub(1).map_or(NOTHING, |left| self.0[left].1);
        if self.0[index].1 == before {
            self.0.remove(index);
        }
    }
}

impl From<Steps> for Vec<LevelFrom> {
    fn from(steps: Steps) -> Vec<LevelFrom> {
        steps.0
    }
}

impl TryFrom<Vec<LevelFrom>> for Steps {
    type Error = &'static str;
    fn try_from(steps: Vec<LevelFrom>) -> Result<Steps, &'static str> {
        let apart = steps.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1);
        let rises = steps.first().is_none_or(|(_, level)| *level != NOTHING);
        let ends = steps.last().is_none_or(|(_, level)| *level == NOTHING);
        if apart && rises && ends {
            Ok(Steps(steps))
        } else {
            Err("steps must ascend in time, differ from their neighbours, and return to zero")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same, kept instant by instant over `0..END`.
    const END: i64 = 24;
    type Naive = [PerResource<u64>; END as usize];

    fn build(pieces: &[(i64, i64, PerResource<u64>)]) -> (Steps, Naive) {
        let (mut steps, mut naive) = (Steps::default(), [NOTHING; END as usize]);
        for &(from, len, units) in pieces {
            let to = (from + len).min(END);
            assert!(steps.add(Time(from), Time(to), units));
            for level in &mut naive[from as usize..to as usize] {
                for (have, by) in level.iter_mut().zip(units) {
                    *have += by;
                }
            }
        }
        (steps, naive)
    }

    fn assert_canonical(steps: &Steps) {
        assert_eq!(Steps::try_from(steps.0.clone()).as_ref(), Ok(steps));
    }

    #[test]
    fn equal_neighbours_are_one_step() {
        let (two, _) = build(&[(0, 5, [1, 0, 0]), (5, 5, [1, 0, 0])]);
        let (one, _) = build(&[(0, 10, [1, 0, 0])]);
        assert_eq!(two, one);
        assert_eq!(serde_json::to_string(&one).unwrap(), "[[0,[1,0,0]],[10,[0,0,0]]]");
    }

    #[test]
    fn what_cannot_be_counted_changes_nothing() {
        let (mut steps, _) = build(&[(0, 5, [1, 0, 0])]);
        let before = steps.clone();
        assert!(!steps.add(Time(-3), Time(3), [u64::MAX, 0, 0]));
        assert!(!steps.remove(Time(0), Time(6), [1, 0, 0]));
        assert!(!steps.remove(Time(0), Time(5), [1, 1, 0]));
        assert_eq!(steps, before);
        assert!(steps.add(Time(9), Time(9), [7; 3]) && steps.add(Time(9), Time(3), [7; 3]));
        assert_eq!(steps, before, "an empty interval holds nothing");
    }

    #[test]
    fn a_commitment_without_end_is_one_step_up() {
        let mut steps = Steps::default();
        assert!(steps.add(Time(3), Time::MAX, [1; 3]));
        assert_eq!(steps.peak(Time(1_000_000), Time::MAX), [1; 3]);
        assert!(steps.remove(Time(3), Time::MAX, [1; 3]) && steps.is_empty());
    }

    #[test]
    fn steps_out_of_form_are_not_read() {
        for bad in [
            "[[0,[0,0,0]]]",
            "[[0,[1,0,0]]]",
            "[[5,[1,0,0]],[5,[0,0,0]]]",
            "[[0,[1,0,0]],[1,[1,0,0]],[2,[0,0,0]]]",
        ] {
            assert!(serde_json::from_str::<Steps>(bad).is_err(), "{bad}");
        }
    }

    fn any_pieces() -> impl Strategy<Value = Vec<(i64, i64, PerResource<u64>)>> {
        prop::collection::vec((0..END, 0..10i64, [0..3u64, 0..3u64, 0..3u64]), 0..8)
    }

    proptest! {
        #[test]
        fn the_peak_is_that_of_every_instant(
            pieces in any_pieces(), from in -3..END, len in 0..END
        ) {
            let (steps, naive) = build(&pieces);
            let mut peak = NOTHING;
            for at in from..(from + len).min(END) {
                let level = naive.get(at as usize).copied().unwrap_or(NOTHING);
                peak = std::array::from_fn(|r| peak[r].max(level[r]));
            }
            prop_assert_eq!(steps.peak(Time(from), Time(from + len)), peak);
        }

        #[test]
        fn what_is_added_and_removed_in_any_order_leaves_no_trace(
            kept in any_pieces(), passing in any_pieces()
        ) {
            let (only_kept, _) = build(&kept);
            let (mut steps, _) = build(&[kept, passing.clone()].concat());
            assert_canonical(&steps);
            for (from, len, units) in passing {
                let to = (from + len).min(END);
                prop_assert!(steps.remove(Time(from), Time(to), units));
                assert_canonical(&steps);
            }
            prop_assert_eq!(steps, only_kept);
        }

        #[test]
        fn forgetting_changes_the_past_only(pieces in any_pieces(), at in -2..END + 2) {
            let (steps, _) = build(&pieces);
            let mut forgot = steps.clone();
            forgot.forget_before(Time(at));
            assert_canonical(&forgot);
            for t in -2..END + 2 {
                let expected = if t < at { NOTHING } else { steps.level_at(Time(t)) };
                prop_assert_eq!(forgot.level_at(Time(t)), expected);
            }
        }

        #[test]
        fn reading_back_gives_the_same(pieces in any_pieces()) {
            let (steps, _) = build(&pieces);
            let json = serde_json::to_string(&steps).unwrap();
            prop_assert_eq!(serde_json::from_str::<Steps>(&json).unwrap(), steps);
        }
    }
}
