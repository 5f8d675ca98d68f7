//! From sums to measures: pure functions.

use std::collections::BTreeMap;

use era_api::Credits;
use era_api::report::{Measure, Measures, Ratios, Report, Simulated, Stages, is_reproduced};

use era_store::tables::{HOUR_MS, NodeSpan, NodeUse};

use super::{Counterfactual, MachineUsage, Replays, ReportPeriod};
use crate::wire::stamp;

/// Thousandths of a GPU times milliseconds in a GPU-hour.
const GPU_HOUR: i128 = 1000 * 3_600_000;

/// What was counted in a period, by name.
#[derive(Clone, Debug, Default)]
pub struct MeasureSums(pub BTreeMap<String, i64>);

impl MeasureSums {
    fn of(&self, what: &str) -> i64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    fn count(&self, what: &str) -> u64 {
        self.of(what).max(0).unsigned_abs()
    }

    /// A mean in seconds: a sum divided by a count and by what makes a second.
    fn mean_s(&self, sum: &str, count: &str, second: f64) -> Option<f64> {
        let count = self.of(count);
        (count > 0).then(|| self.of(sum) as f64 / count as f64 / second)
    }
}

/// The five measures of what was counted.
///
/// Starts are those that were asked for: a refused submission is one that did not succeed.
pub fn measures(sums: &MeasureSums, utilisation: Option<f64>) -> Measures {
    let asked = sums.of("starts") + sums.of("refusals");
    let stage = |what: &str| sums.mean_s(what, "stage/n", 1000.0);
    Measures {
        jobs: sums.count("jobs"),
        start_up: Stages {
            quote_s: sums.mean_s("stage/quote_us", "stage/quote_n", 1_000_000.0),
            accept_s: sums.mean_s("stage/accept_ms", "stage/accept_n", 1000.0),
            queue_s: stage("stage/queue_ms"),
            prepare_s: stage("stage/prepare_ms"),
            start_s: stage("stage/start_ms"),
            total_s: stage("stage/total_ms"),
        },
        start_first: share(sums.of("starts_first"), asked),
        start_second: share(sums.of("starts_second"), asked),
        system_faults: sums.count("system_faults"),
        refusals: sums.count("refusals"),
        run_success: share(sums.of("runs_ok"), sums.of("runs")),
        utilisation,
        unit_cost: unit_cost(total(sums, "paid/"), total(sums, "gpu_ms/")),
        unit_cost_by_model: by_model(sums),
    }
}

fn total(sums: &MeasureSums, beginning: &str) -> i128 {
    let of = sums.0.iter().filter(|(what, _)| what.starts_with(beginning));
    of.map(|(_, amount)| i128::from(*amount)).sum()
}

fn by_model(sums: &MeasureSums) -> Vec<(String, Credits)> {
    let models = sums.0.iter().filter_map(|(what, ms)| Some((what.strip_prefix("gpu_ms/")?, ms)));
    let cost = |(model, ms): (&str, &i64)| {
        let paid = sums.of(&format!("paid/{model}"));
        Some((model.to_owned(), unit_cost(paid.into(), (*ms).into())?))
    };
    models.filter_map(cost).collect()
}

/// Credits for a GPU-hour.
fn unit_cost(paid: i128, gpu_ms: i128) -> Option<Credits> {
    let micro = (gpu_ms > 0).then(|| paid * GPU_HOUR / gpu_ms)?;
    i64::try_from(micro).ok().map(Credits)
}

fn share(part: i64, whole: i64) -> Option<f64> {
    (whole > 0).then(|| part.max(0) as f64 / whole as f64)
}

/// What a replay found, as measures. It knows no stages, and no faults but those of the record.
fn replayed(found: &Counterfactual, with: &Measures, utilisation: Option<f64>) -> Measures {
    // As in the record, what was never sent out has not failed to start.
    let asked = i64::try_from(found.started + found.refusals).unwrap_or(i64::MAX);
    let started = i64::try_from(found.started).unwrap_or(i64::MAX);
    let runs = i64::try_from(found.runs).unwrap_or(i64::MAX);
    let runs_ok = i64::try_from(found.runs_ok).unwrap_or(i64::MAX);
    let of_model = |(paid, gpu_ms): &(i64, u128)| {
        (i128::from(*paid), i128::try_from(*gpu_ms).unwrap_or(i128::MAX))
    };
    let all = found.by_model.values().map(of_model);
    let (paid, gpu_ms) = all.fold((0, 0), |sum: (i128, i128), one| (sum.0 + one.0, sum.1 + one.1));
    let by_model = found.by_model.iter().filter_map(|(model, sums)| {
        let (paid, gpu_ms) = of_model(sums);
        Some((model.clone(), unit_cost(paid, gpu_ms)?))
    });
    // All but waiting takes as long as it did.
    let recorded = with.start_up.total_s.unwrap_or(0.0) - with.start_up.queue_s.unwrap_or(0.0);
    Measures {
        jobs: found.jobs,
        start_up: Stages {
            queue_s: found.wait_s,
            prepare_s: with.start_up.prepare_s,
            start_s: with.start_up.start_s,
            total_s: found.wait_s.map(|wait| wait + recorded),
            ..Stages::default()
        },
        start_first: share(started, asked),
        start_second: share(started, asked),
        system_faults: with.system_faults,
        refusals: found.refusals,
        run_success: share(runs_ok, runs),
        utilisation,
        unit_cost: unit_cost(paid, gpu_ms),
        unit_cost_by_model: by_model.collect(),
    }
}

/// `with` divided by `without`, where both are known and the latter is not nought; and the measures
/// of which that is withheld, since the rules that were in force, replayed, do not come to the same.
fn ratios(with: &Measures, again: &Measures, without: &Measures) -> (Ratios, Vec<Measure>) {
    let (mut ratios, mut withheld) = (Ratios::default(), Vec::new());
    for measure in Measure::ALL {
        let (Some(ours), Some(theirs)) = (measure.of(with), measure.of(without)) else { continue };
        if measure.of(again).is_none_or(|again| !is_reproduced(ours, again)) {
            withheld.push(measure);
        } else if theirs > 0.0 {
            *measure.ratio(&mut ratios) = Some(ours / theirs);
        }
    }
    (ratios, withheld)
}

/// The whole report. The machines are those that were there, whatever was done with them.
pub fn report(
    period: ReportPeriod,
    (with, simulated): (Measures, Option<Simulated>),
    replays: Option<Replays>,
    machines: &[NodeSpan],
) -> Report {
    let measured = |found: &Counterfactual| {
        let utilisation = given_out(found, period, machines.to_vec());
        replayed(found, &with, utilisation)
    };
    let (from, to) = (stamp(period.from), stamp(period.to));
    let (replayed, without) =
        replays.map(|found| (measured(&found.with), measured(&found.without))).unzip();
    let compared = replayed.as_ref().zip(without.as_ref());
    let compared = compared.map(|(again, without)| ratios(&with, again, without));
    let (ratio, withheld) = compared.unzip();
    let withheld = withheld.unwrap_or_default();
    Report { from, to, with, simulated, replayed, without, ratio, withheld }
}

/// Utilisation by the formula, of what a replay gave out of the machines that were there.
fn given_out(found: &Counterfactual, period: ReportPeriod, spans: Vec<NodeSpan>) -> Option<f64> {
    let hour = period.from.0.div_euclid(HOUR_MS);
    let hours =
        found.given.iter().map(|(node, sums)| NodeUse { hour, node: *node, unit_ms: *sums });
    let usage = MachineUsage { period, hours: hours.collect(), open: Vec::new(), spans };
    usage.over(period).map(|shares| shares.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_core::units::{NodeId, Time};

    fn sums() -> MeasureSums {
        let sums = [
            ("jobs", 12),
            ("refusals", 2),
            ("starts", 8),
            ("starts_first", 7),
            ("starts_second", 8),
            ("system_faults", 1),
            ("runs", 5),
            ("runs_ok", 4),
            ("stage/n", 8),
            ("stage/queue_ms", 16_000),
            ("stage/prepare_ms", 800),
            ("stage/start_ms", 400),
            ("stage/total_ms", 17_200),
            ("stage/quote_n", 4),
            ("stage/quote_us", 2000),
            ("paid/h100", 6_000_000),
            ("gpu_ms/h100", 7_200_000_000),
            ("paid/a10", 1_000_000),
            ("gpu_ms/a10", 3_600_000_000),
        ];
        MeasureSums(sums.map(|(what, amount)| (what.to_owned(), amount)).into())
    }

    #[test]
    fn the_five_measures_follow_from_what_was_counted() {
        let found = measures(&sums(), Some(0.5));
        assert_eq!((found.jobs, found.refusals, found.system_faults), (12, 2, 1));
        assert_eq!((found.start_first, found.start_second), (Some(0.7), Some(0.8)));
        assert_eq!(found.run_success, Some(0.8));
        assert_eq!(found.start_up.queue_s, Some(2.0));
        assert_eq!(found.start_up.quote_s, Some(0.0005));
        assert_eq!(found.start_up.accept_s, None, "nobody said when it arrived");
        let models = [("a10", 1_000_000), ("h100", 3_000_000)];
        let models = models.map(|(model, micro)| (model.to_owned(), Credits(micro)));
        assert_eq!(found.unit_cost_by_model, models);
        assert_eq!(found.unit_cost, Some(Credits(2_333_333)));
    }

    #[test]
    fn a_period_in_which_nothing_happened_has_no_shares() {
        let found = measures(&MeasureSums::default(), None);
        assert_eq!(found, Measures::default());
    }

    #[test]
    fn ratios_stand_only_where_both_sides_are_known_and_the_replay_reproduces_the_record() {
        let with = measures(&sums(), Some(0.6));
        let found = Counterfactual {
            jobs: 6,
            refusals: 8,
            started: 6,
            wait_s: Some(4.0),
            runs: 4,
            runs_ok: 2,
            given: [(NodeId(1), [900 * 3_600_000, 0, 0])].into(),
            by_model: [
                ("h100".to_owned(), (12_000_000, 7_200_000_000)),
                ("a10".to_owned(), (2_000_000, 3_600_000_000)),
            ]
            .into(),
        };
        let period = ReportPeriod { from: Time(0), to: Time(3_600_000) };
        let machine =
            NodeSpan { node: NodeId(1), since: Time(0), until: None, units: [3000, 0, 0] };
        let again = Counterfactual {
            refusals: 3,
            started: 8,
            wait_s: Some(2.1),
            runs: 5,
            runs_ok: 4,
            given: [(NodeId(1), [1800 * 3_600_000, 0, 0])].into(),
            by_model: [
                ("h100".to_owned(), (6_000_000, 7_200_000_000)),
                ("a10".to_owned(), (1_000_000, 3_600_000_000)),
            ]
            .into(),
            ..found.clone()
        };
        let told = |again: &Counterfactual| {
            let replays = Replays { with: again.clone(), without: found.clone() };
            report(period, (with.clone(), None), Some(replays), std::slice::from_ref(&machine))
        };
        let near = told(&again);
        let waited = near.replayed.unwrap().start_up.queue_s;
        assert_eq!(waited, Some(2.1), "of what was 2.0");
        let ratio = near.ratio.unwrap();
        assert_eq!(near.withheld, []);
        assert_eq!(ratio.utilisation, Some(2.0));
        assert_eq!(ratio.run_success, Some(0.8 / 0.5));
        assert!((ratio.unit_cost.unwrap() - 0.5).abs() < 1e-6);
        let models = [("a10", 2_000_000), ("h100", 6_000_000)];
        let models = models.map(|(model, micro)| (model.to_owned(), Credits(micro)));
        assert_eq!(near.without.unwrap().unit_cost_by_model, models);
        assert!(ratio.start_up.unwrap() < 1.0);
        // What does not reproduce the record says nothing of what would have been.
        let far = told(&Counterfactual { wait_s: Some(603.9), runs_ok: 2, ..again });
        assert_eq!(far.withheld, [Measure::StartUp, Measure::RunSuccess]);
        let ratio = far.ratio.unwrap();
        assert_eq!((ratio.start_up, ratio.run_success), (None, None));
        assert_eq!(ratio.utilisation, Some(2.0));
        let unasked = report(period, (with, None), None, &[]);
        assert_eq!((unasked.ratio, unasked.withheld), (None, Vec::new()));
    }
}
