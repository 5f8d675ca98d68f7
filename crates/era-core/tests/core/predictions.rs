//! Frozen forests, service classes and remembered runs: what they change, and what they must not.

use std::sync::Arc;

use era_core::estimate::feature::Feature;
use era_core::estimate::forest::{DecisionTree, Forest, Split};
use era_core::estimate::service::ServiceClass;
use era_core::estimate::{DurationForests, Estimates};
use era_core::job::StopReason;
use era_core::outlook::Prediction;
use era_core::queue::fixed::Fixed;
use era_core::resources::Resource;
use era_core::units::{JobId, Milli, Span};
use era_core::{Command, Refusal, State, explain};

use crate::bed::{ALICE, BOB, Bed, gang, min};

/// A forest that says one of two numbers by whether a feature is at most another.
pub(crate) fn stump(feature: Feature, at_most: i64, yes: i64, no: i64) -> Forest {
    let split =
        Split { feature: feature as u8, at_most: Fixed::from_int(at_most), yes: -1, no: -2 };
    let leaves = vec![Fixed::from_int(yes), Fixed::from_int(no)];
    Forest { base: Fixed::ZERO, trees: vec![DecisionTree { splits: vec![split], leaves }] }
}

/// Two to the power of this many seconds, whatever is asked.
fn always(log2_s: i64) -> Forest {
    Forest { base: Fixed::from_int(log2_s), trees: Vec::new() }
}

fn forests(middle: Forest) -> Estimates {
    let duration = DurationForests { middle, low: always(0), high: always(20) };
    Estimates { duration: Some(duration), ..Estimates::default() }
}

fn publish(estimates: Estimates) -> Command {
    Command::PublishEstimates { estimates: Arc::new(estimates) }
}

fn predicted(bed: &Bed, job: JobId) -> Prediction {
    bed.state.job(job).unwrap().outlook.prediction.clone().unwrap()
}

/// Whole seconds: a logarithm has six digits, so a long time is known to some milliseconds.
fn seconds(span: Span) -> i64 {
    (span.0 + 500) / 1000
}

/// Runs a job to its end.
fn past_run(bed: &mut Bed, user: era_core::units::UserId, each: &str, minutes: i64) {
    let job = bed.enqueue(user, gang(1, each, 600, (0, 1)), true);
    bed.pass();
    bed.run(job);
    let end = bed.at + Span::from_min(minutes);
    bed.until(end);
    bed.finish(job);
}

#[test]
fn a_prediction_is_made_at_submission_and_kept_with_the_job() {
    let mut bed = Bed::new(1);
    let mut estimates = forests(stump(Feature::Size, 10, 6, 12));
    estimates.used.insert(Resource::Memory, Forest { base: Fixed(250_000), trees: Vec::new() });
    bed.done(publish(estimates));
    let small = bed.enqueue(ALICE, gang(1, "gpu=1", 600, (0, 1)), false);
    let large = bed.enqueue(ALICE, gang(1, "gpu=4", 600, (0, 1)), false);
    let told = predicted(&bed, small);
    assert_eq!([told.low, told.middle, told.high].map(seconds), [1, 64, 1 << 20]);
    assert_eq!(told.used, [None, Some(Milli(250)), None]);
    assert_eq!(seconds(predicted(&bed, large).middle), 4096);
    bed.queue("default", "sjf", |_| ());
    assert_eq!(bed.order("default"), [small, large]);
}

#[test]
fn new_estimates_predict_anew_and_none_take_everyone_at_his_word() {
    let mut bed = Bed::new(1);
    bed.queue("default", "sjf", |_| ());
    let short = bed.enqueue(ALICE, gang(1, "gpu=4", 10, (0, 1)), false);
    let long = bed.enqueue(BOB, gang(1, "gpu=1", 20, (0, 1)), false);
    assert_eq!(bed.order("default"), [short, long]);
    bed.done(publish(forests(stump(Feature::Size, 10, 6, 12))));
    assert_eq!(bed.order("default"), [long, short]);
    bed.done(publish(Estimates::default()));
    assert_eq!(bed.order("default"), [short, long]);
    assert_eq!(bed.state.job(short).unwrap().outlook.prediction, None);
}

#[test]
fn past_runs_of_an_owner_and_size_inform_the_next() {
    let mut bed = Bed::new(1);
    past_run(&mut bed, ALICE, "gpu=1", 1);
    past_run(&mut bed, ALICE, "gpu=4", 64);
    past_run(&mut bed, BOB, "gpu=1", 256);
    let mut feature = |user, each, feature: Feature| {
        let job = bed.enqueue(user, gang(1, each, 600, (0, 1)), false);
        let features = bed.state.features_of(bed.state.job(job).unwrap());
        features.get(feature as u8).0 / 1000
    };
    assert_eq!(feature(ALICE, "gpu=1", Feature::SizedLast), 5_906); // log2 of 60
    assert_eq!(feature(ALICE, "gpu=1", Feature::UserLast), 11_906);
    assert_eq!(feature(ALICE, "gpu=2", Feature::SizedLast), -1_000);
    assert_eq!(feature(ALICE, "gpu=1", Feature::UserCount), 1_000);
    assert_eq!(feature(BOB, "gpu=1", Feature::UserLast), 13_906);
    assert_eq!(feature(BOB, "gpu=1", Feature::SizedInARow), 1_000);
}

#[test]
fn hostile_forests_and_tables_are_refused_and_change_nothing() {
    let mut bed = Bed::new(1);
    bed.done(publish(forests(always(5))));
    bed.enqueue(ALICE, gang(1, "gpu=1", 10, (0, 1)), false);
    let before = bed.state.clone();
    let mut loops = stump(Feature::Size, 1, 2, 3);
    loops.trees[0].splits[0].no = 0;
    let mut unknown = stump(Feature::Size, 1, 2, 3);
    unknown.trees[0].splits[0].feature = 200;
    let class = ServiceClass::of(Fixed::ONE, &[Span::from_min(1)]).unwrap();
    let disordered =
        Estimates { service: vec![class.clone(), class.clone()], ..Default::default() };
    let stepless = ServiceClass { steps: Vec::new(), ..class.clone() };
    let stepless = Estimates { service: vec![stepless], ..Default::default() };
    let endless = ServiceClass { mean: Span(i64::MAX), ..class };
    let endless = Estimates { service: vec![endless], ..Default::default() };
    for hostile in [forests(loops), forests(unknown), disordered, stepless, endless] {
        let refusal = bed.refused(publish(hostile));
        assert!(matches!(refusal, Refusal::BadSetting { .. }), "{refusal}");
        assert_eq!(refusal.field(), Some("estimates"));
        assert!(bed.state.same_but_clock(&before));
    }
}

#[test]
fn predictions_and_past_runs_are_stored_with_the_state() {
    let mut bed = Bed::new(1);
    past_run(&mut bed, ALICE, "gpu=1", 1);
    bed.done(publish(forests(stump(Feature::SizedLast, 6, 6, 12))));
    bed.enqueue(ALICE, gang(1, "gpu=1", 60, (0, 1)), false);
    let image = serde_json::to_string(&bed.state).unwrap();
    let back: State = serde_json::from_str(&image).unwrap();
    assert_eq!(back, bed.state);
}

#[test]
fn a_short_prediction_lets_nothing_run_ahead_of_a_promise() {
    let mut bed = Bed::new(1);
    bed.done(publish(forests(always(6))));
    bed.promise(gang(1, "gpu=8", 60, (30, 90)));
    let job = bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 1)), false);
    assert_eq!(seconds(predicted(&bed, job).middle), 64);
    bed.pass();
    assert_eq!(bed.is(job), "waiting");
}

#[test]
fn an_estimated_start_follows_the_predictions_of_those_ahead() {
    let mut bed = Bed::new(1);
    bed.done(publish(forests(always(10))));
    bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 1)), false);
    bed.pass();
    let job = bed.enqueue(BOB, gang(1, "gpu=8", 60, (0, 1)), false);
    let told = explain(&bed.state, job).unwrap();
    let era_core::explain::Explanation::Waiting { start: Some(start), .. } = told else { panic!() };
    assert_eq!(start.earliest, min(0) + Span::from_s(1));
    assert_eq!(start.likely, min(0) + Span::from_s(1024));
    assert_eq!(start.latest, min(60));
}

/// Jobs predicted to take up to 64 s: half take a minute, half two hours. Others: an hour.
fn two_classes() -> Estimates {
    let spans = |minutes: &[i64]| minutes.iter().map(|m| Span::from_min(*m)).collect::<Vec<_>>();
    let class = |up_to, minutes| ServiceClass::of(Fixed::from_int(up_to), &spans(minutes)).unwrap();
    let service = vec![class(6, &[1, 120]), class(30, &[60])];
    Estimates { service, ..forests(stump(Feature::Size, 10, 6, 12)) }
}

#[test]
fn whoever_likely_ends_soon_for_its_size_goes_first() {
    let mut bed = Bed::new(1);
    bed.done(publish(two_classes()));
    bed.queue("default", "gittins", |queue| queue.preempts = true);
    let full = bed.enqueue(ALICE, gang(1, "gpu=8", 300, (0, 1)), true);
    let sure = bed.enqueue(ALICE, gang(1, "gpu=4", 300, (0, 1)), true);
    let gamble = bed.enqueue(BOB, gang(1, "gpu=1", 300, (0, 1)), true);
    // Two minutes for a completion on one GPU, an hour on four, an hour on eight.
    assert_eq!(bed.order("default"), [gamble, sure, full]);
}

#[test]
fn whoever_outlived_its_good_chance_gives_way_to_those_who_have_one() {
    let mut bed = Bed::new(1);
    bed.done(publish(two_classes()));
    bed.queue("default", "gittins", |queue| queue.preempts = true);
    let one = |bed: &mut Bed| bed.enqueue(ALICE, gang(8, "gpu=1", 300, (0, 1)), true);
    let first = one(&mut bed);
    bed.pass();
    bed.run(first);
    // Eight replicas of one GPU are not small: the size is that of all.
    assert_eq!(seconds(predicted(&bed, first).middle), 4096);
    let gamble = bed.enqueue(BOB, gang(1, "gpu=1", 300, (0, 1)), true);
    bed.pass();
    let stops = bed.take_stops();
    assert_eq!(stops.len(), 8);
    assert!(stops.iter().all(|(task, why)| task.job == first && *why == StopReason::Preempted));
    assert_eq!(bed.is(gamble), "waiting", "until the others are gone");
}

#[test]
fn what_cannot_be_stopped_is_ranked_by_its_mean() {
    let mut bed = Bed::new(1);
    bed.done(publish(two_classes()));
    bed.queue("default", "gittins", |_| ());
    let gamble = bed.enqueue(BOB, gang(1, "gpu=1", 300, (0, 1)), false);
    bed.done(publish(Estimates {
        service: two_classes().service,
        ..forests(stump(Feature::User, i64::from(ALICE.0), 12, 6))
    }));
    let sure = bed.enqueue(ALICE, gang(1, "gpu=1", 300, (0, 1)), false);
    let gambles = bed.enqueue(BOB, gang(1, "gpu=1", 300, (0, 1)), false);
    // An hour and a half minute on average, against an hour for certain.
    assert_eq!(bed.order("default"), [sure, gamble, gambles]);
}
