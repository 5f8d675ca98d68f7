//! Fewer points that show the same curve.

use super::Point;

/// At most `most` of the points, in their order: the first, the last, and of each of equal runs in
/// between the lowest and the highest. So every peak and every dip stays where it was, which an
/// average would flatten. With room for fewer than four, the last ones.
pub fn thin(points: &[Point], most: usize) -> Vec<Point> {
    let count = points.len();
    if count <= most {
        return points.to_vec();
    }
    if most < 4 {
        return points[count - most..].to_vec();
    }
    let inner = &points[1..count - 1];
    let runs = (most - 2) / 2;
    let mut kept = vec![points[0]];
    for run in 0..runs {
        let run = &inner[run * inner.len() / runs..(run + 1) * inner.len() / runs];
        let by_value = |a: &usize, b: &usize| run[*a].value.total_cmp(&run[*b].value);
        let low = (0..run.len()).min_by(by_value);
        let high = (0..run.len()).max_by(by_value);
        if let (Some(low), Some(high)) = (low, high) {
            kept.push(run[low.min(high)]);
            if low != high {
                kept.push(run[low.max(high)]);
            }
        }
    }
    kept.push(points[count - 1]);
    kept
}

#[cfg(test)]
mod tests {
    use era_core::units::Time;
    use proptest::prelude::*;

    use super::*;

    fn points(values: &[f64]) -> Vec<Point> {
        let point =
            |(n, value): (u64, &f64)| Point { number: n, step: n, at: Time(0), value: *value };
        (0..).zip(values).map(point).collect()
    }

    #[test]
    fn few_points_stay_as_they_are() {
        let few = points(&[3.0, 1.0, 2.0]);
        assert_eq!(thin(&few, 3), few);
        assert_eq!(thin(&few, 2), few[1..]);
        assert_eq!(thin(&few, 0), []);
    }

    proptest! {
        #[test]
        fn a_thinned_curve_keeps_its_ends_its_extremes_and_its_order(
            values in proptest::collection::vec(-1e9..1e9_f64, 1..400),
            most in 4..50_usize,
        ) {
            let all = points(&values);
            let kept = thin(&all, most);
            prop_assert!(kept.len() <= most);
            prop_assert!(kept.windows(2).all(|w| w[0].number < w[1].number));
            prop_assert!(kept.iter().all(|p| all[p.number as usize] == *p));
            prop_assert_eq!(kept.first(), all.first());
            prop_assert_eq!(kept.last(), all.last());
            let extremes = |points: &[Point]| {
                let values = || points.iter().map(|p| p.value);
                (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max))
            };
            prop_assert_eq!(extremes(&kept), extremes(&all));
        }
    }
}
