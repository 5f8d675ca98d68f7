//! Distributions of durations for the core's service classes.
//!
//! Jobs that still run are not left out: of them it is known that they take longer than they have
//! until now, and leaving them out would make all jobs look short. The estimate is Kaplan and
//! Meier's.

use era_core::estimate::history::log2_s;
use era_core::estimate::service::ServiceClass;
use era_core::queue::fixed::Fixed;
use era_core::units::Span;

/// What is known of a job's duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationKnowledge {
    /// What was predicted when it was submitted.
    pub predicted: Option<Span>,
    /// How long it has run.
    pub ran: Span,
    /// Whether that was all.
    pub ended: bool,
}

/// How many durations stand for a class.
const POINTS: usize = 12;
/// Least jobs of a class.
const LEAST: usize = 120;
/// Most classes.
const CLASSES: usize = 6;

/// Classes of jobs of about the same prediction and of about the same number.
pub fn classes(seen: &[DurationKnowledge]) -> Vec<ServiceClass> {
    let mut known: Vec<(Fixed, DurationKnowledge)> =
        seen.iter().filter_map(|s| Some((log2_s(s.predicted?), *s))).collect();
    known.sort_by_key(|(predicted, _)| *predicted);
    let count = (known.len() / LEAST).min(CLASSES);
    if count < 2 {
        let durations = quantiles(seen.to_vec(), POINTS);
        return ServiceClass::of(Fixed::MAX, &durations).into_iter().collect();
    }
    let mut classes = Vec::new();
    let mut from = 0;
    for place in 1..=count {
        let mut to = known.len() * place / count;
        // Those of one prediction stay together.
        while to > 0 && to < known.len() && known[to].0 == known[to - 1].0 {
            to += 1;
        }
        if to <= from {
            continue;
        }
        let up_to = if to == known.len() { Fixed::MAX } else { known[to - 1].0 };
        let alike = known[from..to].iter().map(|(_, seen)| *seen).collect();
        classes.extend(ServiceClass::of(up_to, &quantiles(alike, POINTS)));
        from = to;
    }
    classes
}

/// Durations that are equally likely, in rising order. None where nothing has ended.
pub fn quantiles(mut seen: Vec<DurationKnowledge>, points: usize) -> Vec<Span> {
    // Of those at the same time, those that ended count as having been there.
    seen.sort_by_key(|s| (s.ran, !s.ended));
    let Some(longest) = seen.iter().rev().find(|s| s.ended).map(|s| s.ran) else {
        return Vec::new();
    };
    let mut durations = Vec::with_capacity(points);
    let mut lasting = 1.0;
    for (place, s) in seen.iter().enumerate() {
        if !s.ended {
            continue;
        }
        lasting *= 1.0 - 1.0 / (seen.len() - place) as f64;
        while durations.len() < points
            && 1.0 - lasting >= (durations.len() as f64 + 0.5) / points as f64
        {
            durations.push(s.ran);
        }
    }
    // What outlives all that ended is taken to last twice as long.
    let beyond = seen.last().map_or(longest, |s| s.ran).max(longest);
    durations.resize(points, Span(beyond.0.saturating_mul(2)));
    durations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(predicted: i64, ran: i64, ended: bool) -> DurationKnowledge {
        let predicted = Some(Span::from_s(predicted));
        DurationKnowledge { predicted, ran: Span::from_s(ran), ended }
    }

    #[test]
    fn quantiles_of_what_ended_are_the_plain_ones() {
        let all: Vec<DurationKnowledge> = (1..=100).map(|s| seen(1, s, true)).collect();
        let points: Vec<i64> = quantiles(all, 4).iter().map(|d| d.0 / 1000).collect();
        assert_eq!(points, [13, 38, 63, 88]);
    }

    #[test]
    fn what_still_runs_makes_durations_longer_and_never_shorter() {
        let ended: Vec<DurationKnowledge> = (1..=100).map(|s| seen(1, s, true)).collect();
        let mut all = ended.clone();
        all.extend((1..=100).map(|s| seen(1, s, false)));
        let (without, with) = (quantiles(ended, 10), quantiles(all, 10));
        assert!(without.iter().zip(&with).all(|(a, b)| a <= b));
        assert!(with[5] > without[5]);
    }

    #[test]
    fn jobs_fall_into_classes_by_their_prediction() {
        let job = |n: i64| if n % 2 == 0 { seen(10, 10, true) } else { seen(1000, 1000, true) };
        let classes = classes(&(0..1000).map(job).collect::<Vec<_>>());
        assert_eq!(classes.len(), 2);
        assert_eq!(classes[0].mean, Span::from_s(10));
        assert_eq!(classes[1].mean, Span::from_s(1000));
        assert!(classes[0].up_to < log2_s(Span::from_s(1000)));
    }

    #[test]
    fn few_jobs_make_one_class_and_none_make_none() {
        assert_eq!(classes(&[seen(1, 5, true), seen(100, 7, true)]).len(), 1);
        assert!(classes(&[seen(1, 5, false)]).is_empty());
    }
}
