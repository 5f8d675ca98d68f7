//! Runs in which things go wrong: machines fail and come back, runs take too long, limits are
//! misjudged, submissions come at once. Afterwards all must have come to its end, no job may have
//! run twice at a time or on a machine that was away, and every invariant of the core holds on
//! the way. The seed of each case stands in its failure.

use std::collections::BTreeMap;

use era_core::check;
use era_core::placement::Scorer;
use era_core::settings::Backfill;
use era_sim::faults::Faults;
use era_sim::measure::measure;
use era_sim::run::{
    Interval, Like, Machines, Options, Setup, StatedDurations, TraceRun, UtilisationWeights,
    policy_named, run_with,
};
use era_sim::trace::Trace;
use era_sim::workload::{PhillySpec, philly, philly_names};

const SEEDS: [u64; 4] = [1, 2, 3, 4];
const GPUS: u32 = 64;

fn workload(seed: u64, jobs: u64) -> Trace {
    let (users, groups) = philly_names();
    let spec = PhillySpec { seed, jobs, gpus: GPUS, load_milli: 800 };
    let jobs = philly(spec).expect("a workload").collect();
    Trace { jobs, users, groups, ..Trace::default() }
}

fn setup(policy: &str, preempt: bool) -> Setup {
    Setup {
        machines: Machines::nodes(GPUS, 8).expect("whole nodes"),
        policy: policy_named(policy).expect("a policy"),
        backfill: Backfill::Easy,
        estimates: StatedDurations::Bucket,
        scorer: Scorer::Consolidate,
        preempt,
        ageing: true,
        like: Like::Era,
        ratios: UtilisationWeights::default(),
    }
}

/// A day or so between two failures of a node, and everything else goes wrong as well.
fn bad_days(seed: u64) -> Faults {
    Faults {
        seed,
        mtbf_s: Some(100_000),
        repair_s: 10_000,
        straggler_share: 0.1,
        straggler_factor: 2.0,
        misjudged: 2.0,
        bursts: 3,
    }
}

/// Runs a trace with faults, and checks every invariant of the core now and then and at the end.
fn run_checked(seed: u64, trace: &Trace, setup: &Setup, faults: Faults) -> TraceRun {
    let options = Options {
        faults: Some(faults),
        checkpoint_every_s: Some(3_600),
        intervals: true,
        ..Options::default()
    };
    let mut seconds = 0u64;
    let total = trace.jobs.len() as u64;
    run_with(trace, setup, &options, &mut |ended, state| {
        seconds += 1;
        if seconds.is_multiple_of(61) || ended == total {
            check(state).unwrap_or_else(|problem| panic!("seed {seed}: {problem}"));
        }
    })
    .unwrap_or_else(|problem| panic!("seed {seed}: {problem}"))
}

/// The attempts of each job, in time: start, end, attempt.
fn attempts(run: &TraceRun) -> BTreeMap<u32, Vec<(i64, i64, u32)>> {
    let mut attempts: BTreeMap<u32, Vec<(i64, i64, u32)>> = BTreeMap::new();
    for Interval { job, attempt, start_s, end_s, .. } in &run.intervals {
        attempts.entry(*job).or_default().push((*start_s, *end_s, *attempt));
    }
    for list in attempts.values_mut() {
        list.sort_unstable();
        list.dedup();
    }
    attempts
}

#[test]
fn after_the_faults_everything_ends_and_nothing_ran_twice() {
    for seed in SEEDS {
        let faults = bad_days(seed);
        for (policy, preempt) in [("fifo", false), ("srtf", true)] {
            let trace = faults.with_bursts(workload(seed, 600));
            let setup = setup(policy, preempt);
            let run = run_checked(seed, &trace, &setup, faults);
            let figures = measure(&trace, &setup, &run);
            assert_eq!(figures.unfinished, 0, "seed {seed}, {policy}");
            assert!(figures.losses > 0 && figures.over_limit > 0, "seed {seed}: {figures:?}");
            for (job, attempts) in attempts(&run) {
                let apart = attempts.windows(2).all(|w| w[0].1 <= w[1].0 && w[0].2 < w[1].2);
                assert!(apart, "seed {seed}, {policy}: job {job} ran twice: {attempts:?}");
            }
        }
    }
}

#[test]
fn nothing_runs_on_a_machine_that_is_away() {
    for seed in SEEDS {
        let trace = workload(seed, 400);
        let run = run_checked(seed, &trace, &setup("sjf", false), bad_days(seed));
        assert!(!run.absences.is_empty(), "seed {seed}");
        for absence in &run.absences {
            assert!(absence.to_s < i64::MAX, "seed {seed}: {absence:?} came back");
            let there = run.intervals.iter().filter(|i| i.node == absence.node);
            for i in there {
                let apart = i.end_s <= absence.from_s || absence.to_s <= i.start_s;
                assert!(apart, "seed {seed}: {i:?} during {absence:?}");
            }
        }
    }
}

#[test]
fn no_gpu_is_given_to_two_jobs_at_a_time() {
    for seed in SEEDS {
        let trace = workload(seed, 400);
        let run = run_checked(seed, &trace, &setup("srtf", true), bad_days(seed));
        let mut changes: Vec<(u32, i64, bool, u64)> = Vec::new();
        for i in run.intervals.iter().filter(|i| i.end_s > i.start_s) {
            changes.push((i.node, i.start_s, true, i.gpus));
            changes.push((i.node, i.end_s, false, i.gpus));
        }
        // What ends in a second is gone before what starts in it.
        changes.sort_unstable();
        let mut taken: BTreeMap<u32, u64> = BTreeMap::new();
        for (node, second, starts, gpus) in changes {
            let mask = taken.entry(node).or_default();
            assert!(!starts || *mask & gpus == 0, "seed {seed}: node {node} at {second}");
            *mask ^= gpus;
        }
    }
}

#[test]
fn a_job_does_its_work_and_no_more_than_its_last_checkpoint_is_done_again() {
    for seed in SEEDS {
        let trace = workload(seed, 400);
        let faults = Faults { straggler_share: 0.0, misjudged: 1.0, bursts: 0, ..bad_days(seed) };
        let setup = setup("fifo", false);
        let run = run_checked(seed, &trace, &setup, faults);
        let mut again_s = 0;
        for (job, attempts) in attempts(&run) {
            let ran_s: i64 = attempts.iter().map(|(start, end, _)| end - start).sum();
            let ran = &run.jobs[job as usize];
            let more_s = ran_s - trace.jobs[job as usize].duration_s;
            // Checkpoints are an hour apart.
            let most_s = 3_600 * i64::from(ran.losses);
            assert!((0..=most_s).contains(&more_s), "seed {seed}: job {job}: {more_s} s too much");
            assert!(!ran.over_limit, "seed {seed}: job {job}");
            again_s += more_s;
        }
        assert_eq!(again_s, run.lost_work_s, "seed {seed}");
        let losses: u32 = run.jobs.iter().map(|ran| ran.losses).sum();
        assert!(losses > 0, "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let trace = workload(7, 300);
    let run = |seed| run_checked(seed, &trace, &setup("fifo", false), bad_days(seed));
    let (first, again, other) = (run(7), run(7), run(8));
    assert_eq!(first.jobs, again.jobs);
    assert_eq!(first.absences, again.absences);
    assert_ne!(first.absences, other.absences);
}

#[test]
fn faults_out_of_place_are_refused() {
    let trace = workload(1, 10);
    let options = Options { faults: Some(bad_days(1)), ..Options::default() };
    let refused = |setup: Setup| {
        run_with(&trace, &setup, &options, &mut |_, _| ()).expect_err("refused").to_string()
    };
    let pool = Setup { machines: Machines::Pool { gpus: GPUS }, ..setup("fifo", false) };
    assert!(refused(pool).contains("a pool has no nodes that could fail"));
    let like = Setup { like: Like::Tiresias, ..setup("fifo", false) };
    assert!(refused(like).contains("leave out --like"));
}
