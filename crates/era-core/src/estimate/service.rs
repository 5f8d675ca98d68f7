//! How much longer it pays to serve a job: the Gittins index, as a published table.
//!
//! A job whose length is not known has a learned distribution instead. Having run for so long, it
//! is worth what it would cost to have it done: over the best horizon, the time expected to be
//! spent on it divided by the chance that it ends within. That is its index, in time a completion;
//! whoever has the least is served first, which is best for the mean completion time wherever
//! work can be stopped. What cannot be stopped has only one horizon, its end: the mean.
//!
//! Jobs fall into classes by their predicted duration. [`ServiceClass::of`] makes a class out of
//! durations; whoever publishes calls it. The core only looks up.

use serde::{Deserialize, Serialize};

use crate::bid::DURATION_MAX;
use crate::queue::fixed::Fixed;
use crate::units::Span;

/// Most classes.
pub const CLASSES_MAX: usize = 64;
/// Most steps of a class.
pub const STEPS_MAX: usize = 256;

/// What was learned about jobs that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceClass {
    /// Jobs are in the first class whose bound their prediction does not exceed: the binary
    /// logarithm of seconds. The last class takes all others.
    pub up_to: Fixed,
    /// How long they take on average.
    pub mean: Span,
    /// The index from a run time on, until the next step.
    pub steps: Vec<ServiceStep>,
}

/// From this run time on, this index. Written as `[ran, index]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Span, Span)", into = "(Span, Span)")]
pub struct ServiceStep {
    /// How long a job has run.
    pub ran: Span,
    /// Its index: expected time for a completion.
    pub index: Span,
}

impl From<(Span, Span)> for ServiceStep {
    fn from((ran, index): (Span, Span)) -> ServiceStep {
        ServiceStep { ran, index }
    }
}

impl From<ServiceStep> for (Span, Span) {
    fn from(step: ServiceStep) -> (Span, Span) {
        (step.ran, step.index)
    }
}

impl ServiceClass {
    /// The class of jobs that took equally likely durations, given in rising order; nothing of
    /// none.
    pub fn of(up_to: Fixed, durations: &[Span]) -> Option<ServiceClass> {
        let ms: Vec<i64> = durations.iter().map(|d| d.0.clamp(1, DURATION_MAX.0)).collect();
        if ms.is_empty() || ms.windows(2).any(|w| w[0] > w[1]) {
            return None;
        }
        let count = i64::try_from(ms.len()).ok()?;
        let mean = Span(ms.iter().sum::<i64>() / count);
        let mut steps: Vec<ServiceStep> = Vec::new();
        // Between two durations nothing is learned, so the index stays what it was.
        for (rest, ran) in std::iter::once(0).chain(ms.iter().copied()).enumerate() {
            let left = &ms[rest..];
            if steps.last().is_some_and(|step| step.ran.0 == ran) {
                steps.pop();
            }
            if steps.len() < STEPS_MAX {
                steps.push(ServiceStep { ran: Span(ran), index: Span(index(left, ran)) });
            }
        }
        Some(ServiceClass { up_to, mean, steps })
    }

    /// The index of a job that has run for so long.
    pub fn index(&self, ran: Span) -> Span {
        let at = self.steps.partition_point(|step| step.ran <= ran);
        self.steps.get(at.saturating_sub(1)).map_or(self.mean, |step| step.index)
    }

    /// The run times at which the index changes.
    pub fn turns(&self) -> impl Iterator<Item = Span> {
        self.steps.iter().skip(1).map(|step| step.ran)
    }

    pub(super) fn is_sound(&self) -> bool {
        let spans = self.steps.iter().flat_map(|step| [step.ran, step.index]);
        (1..=STEPS_MAX).contains(&self.steps.len())
            && self.steps[0].ran == Span::ZERO
            && self.steps.windows(2).all(|w| w[0].ran < w[1].ran)
            && (Span(1)..=DURATION_MAX).contains(&self.mean)
            && spans.into_iter().all(|span| (Span::ZERO..=DURATION_MAX).contains(&span))
    }
}

/// The least expected time for a completion over all horizons, for what has run for `ran` and
/// takes one of these durations. What outlived all that is known is taken to last as long again:
/// so it is with heavy tails.
fn index(left: &[i64], ran: i64) -> i64 {
    let mut best = i64::MAX;
    let mut ended = 0;
    for (done, duration) in (1..).zip(left) {
        let after = duration - ran;
        ended += after;
        let spent = ended + after * (left.len() as i64 - done);
        best = best.min(spent / done);
    }
    let longest = DURATION_MAX.0;
    if left.is_empty() { ran.clamp(1, longest) } else { best.clamp(1, longest) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn class(seconds: &[i64]) -> ServiceClass {
        let durations: Vec<Span> = seconds.iter().map(|s| Span::from_s(*s)).collect();
        ServiceClass::of(Fixed::MAX, &durations).unwrap()
    }

    #[test]
    fn what_surely_takes_so_long_has_what_is_left_of_it() {
        let sure = class(&[100, 100, 100]);
        assert_eq!(sure.index(Span::ZERO), Span::from_s(100));
        assert_eq!(sure.mean, Span::from_s(100));
        // Longer than ever seen: as long again.
        assert_eq!(sure.index(Span::from_s(100)), Span::from_s(100));
    }

    #[test]
    fn a_chance_to_end_soon_is_worth_a_short_try() {
        // Half take a second: a second each for half a completion. The rest are no bargain then.
        let mixed = class(&[1, 1000]);
        assert_eq!(mixed.index(Span::ZERO), Span::from_s(2));
        assert_eq!(mixed.index(Span::from_s(1)), Span::from_s(999));
        assert_eq!(mixed.index(Span::from_s(500)), Span::from_s(999));
        assert_eq!(mixed.turns().collect::<Vec<_>>(), [Span::from_s(1), Span::from_s(1000)]);
    }

    #[test]
    fn disorder_and_nothing_make_no_class() {
        assert_eq!(ServiceClass::of(Fixed::ZERO, &[]), None);
        assert_eq!(ServiceClass::of(Fixed::ZERO, &[Span(2), Span(1)]), None);
    }

    proptest! {
        /// The index by its definition, horizon by horizon.
        #[test]
        fn the_index_is_the_best_over_all_horizons(
            mut seconds in prop::collection::vec(1_i64..100_000, 1..40),
            ran in 0_i64..100_000,
        ) {
            seconds.sort_unstable();
            let class = class(&seconds);
            prop_assert!(class.is_sound());
            let step = class.steps.iter().rev().find(|s| s.ran <= Span::from_s(ran)).unwrap();
            let at = step.ran.0;
            let left: Vec<i64> =
                seconds.iter().map(|s| s * 1000).filter(|ms| *ms > at).collect();
            let over = |horizon: i64| {
                let spent: i64 = left.iter().map(|ms| (ms - at).min(horizon)).sum();
                let ended = left.iter().filter(|ms| **ms - at <= horizon).count() as i64;
                spent / ended
            };
            let naive = left.iter().map(|ms| over(ms - at)).min().unwrap_or(at);
            prop_assert_eq!(class.index(Span::from_s(ran)), Span(naive));
        }
    }
}
