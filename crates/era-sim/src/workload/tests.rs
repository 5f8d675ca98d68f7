//! What is promised of generated workloads.

use std::collections::BTreeMap;

use super::{PhillySpec, paper, philly, philly_names};
use crate::beside::shared;
use crate::trace::{self, TraceJob};

const SPEC: PhillySpec = PhillySpec { seed: 1, jobs: 60_000, gpus: 300, load_milli: 900 };

fn jobs(spec: PhillySpec) -> Vec<TraceJob> {
    philly(spec).expect("a good specification").collect()
}

/// Work offered between the first and the last submission, as a share of what the GPUs can do.
fn load(jobs: &[TraceJob], gpus: u32) -> f64 {
    let work: f64 = jobs.iter().map(|j| f64::from(j.gpu_milli) / 1e3 * j.duration_s as f64).sum();
    let span = jobs[jobs.len() - 1].submit_s - jobs[0].submit_s;
    work / (span as f64 * f64::from(gpus))
}

fn bytes(spec: PhillySpec) -> Vec<u8> {
    let (users, groups) = philly_names();
    let mut bytes = Vec::new();
    trace::write(&mut bytes, jobs(spec), &users, &groups).expect("memory");
    bytes
}

/// FNV-1a: a short name for many bytes.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn the_papers_day_has_six_classes_in_their_windows() {
    let trace = paper(7);
    assert_eq!(trace.jobs.len(), 8700);
    let mut classes: BTreeMap<(u32, i64), usize> = BTreeMap::new();
    for job in &trace.jobs {
        *classes.entry((job.gpu_milli / 1000, job.duration_s / 60)).or_default() += 1;
        assert!((0..20 * 3600).contains(&job.submit_s));
        assert_eq!(job.deadline_s, Some(job.submit_s + 3 * job.duration_s));
        assert_eq!(job.stated_s, Some(job.duration_s));
    }
    let expected = [(5, 10), (8, 60), (10, 20), (20, 15), (40, 10), (100, 130)];
    assert!(classes.iter().map(|(class, jobs)| (*class, *jobs)).eq(expected.map(|c| (c, 1450))));
    let value: i64 = trace.jobs.iter().filter_map(|job| job.value).sum();
    // 1,450 × (10 × (50 + 200 + 300 + 400 + 480) + 13,000) credits
    assert_eq!(value, 39_585_000 * 1_000_000);
}

#[test]
fn the_papers_jobs_come_by_arrival_then_class_then_number() {
    let trace = paper(7);
    // The id is class and number, written so that text order is their order.
    assert!(trace.jobs.is_sorted_by_key(|job| (job.submit_s, job.id.clone())));
    let last_hour = trace.jobs.iter().filter(|job| job.submit_s >= 19 * 3600).count();
    assert!((350..520).contains(&last_hour), "a twentieth of 8,700, not {last_hour}");
    assert_eq!(paper(7), trace);
    assert_ne!(paper(8).jobs, trace.jobs);
}

#[test]
fn the_offered_load_is_the_one_asked_for() {
    for (seed, n, gpus, load_milli) in [
        (1, 2, 8, 900),
        (2, 50, 64, 500),
        (3, 1000, 8, 1200),
        (4, 20_000, 2816, 900),
        (5, 20_000, 16, 50),
    ] {
        let jobs = jobs(PhillySpec { seed, jobs: n, gpus, load_milli });
        assert_eq!(jobs.len() as u64, n);
        let off = load(&jobs, gpus) / (f64::from(load_milli) / 1000.0) - 1.0;
        assert!(off.abs() < 0.02, "{n} jobs on {gpus} GPUs: {off}");
    }
}

#[test]
fn jobs_come_in_order_and_fit_the_cluster() {
    for gpus in [1, 3, 8, 300] {
        let jobs = jobs(PhillySpec { gpus, jobs: 5000, ..SPEC });
        assert!(jobs.is_sorted_by_key(|job| job.submit_s));
        assert_eq!(jobs[0].submit_s, 0);
        assert!(jobs.iter().all(|job| (1000..=gpus * 1000).contains(&job.gpu_milli)));
    }
}

#[test]
fn days_and_weeks_are_seen_in_the_submissions() {
    let (mut hours, mut days) = ([0u32; 24], [0u32; 7]);
    let jobs = jobs(SPEC);
    let weeks = jobs[jobs.len() - 1].submit_s / (7 * 86_400);
    assert!(weeks >= 8, "too short to see weeks: {weeks}");
    for job in jobs.iter().filter(|job| job.submit_s < weeks * 7 * 86_400) {
        hours[(job.submit_s / 3600 % 24) as usize] += 1;
        days[(job.submit_s / 86_400 % 7) as usize] += 1;
    }
    let afternoon: u32 = hours[12..16].iter().sum();
    let evening: u32 = hours[19..23].iter().sum();
    assert!(afternoon * 10 > evening * 14, "{hours:?}");
    let midweek = (days[1] + days[2] + days[3]) / 3;
    let weekend = (days[5] + days[6]) / 2;
    assert!(weekend * 10 < midweek * 7, "{days:?}");
}

#[test]
fn jobs_come_in_bursts() {
    let jobs = jobs(SPEC);
    let mut hourly: BTreeMap<i64, f64> = BTreeMap::new();
    for job in &jobs {
        *hourly.entry(job.submit_s / 3600).or_default() += 1.0;
    }
    let n = (jobs[jobs.len() - 1].submit_s / 3600 + 1) as f64;
    let mean = jobs.len() as f64 / n;
    let variance = hourly.values().map(|count| count * count).sum::<f64>() / n - mean * mean;
    // Independent arrivals would give 1; the log gives 154.
    assert!((20.0..800.0).contains(&(variance / mean)), "{}", variance / mean);
}

#[test]
fn users_repeat_jobs_that_are_much_alike() {
    let jobs = jobs(SPEC);
    let (mut again, mut alike) = (0, 0);
    for pair in jobs.windows(2).filter(|pair| pair[0].user == pair[1].user) {
        again += 1;
        let (a, b) = (pair[0].duration_s, pair[1].duration_s);
        alike += i32::from(pair[0].gpu_milli == pair[1].gpu_milli && a.max(b) * 2 < a.min(b) * 3);
    }
    assert!(again * 2 > jobs.len() as i32, "most jobs follow one of the same user: {again}");
    assert!(alike * 2 > again, "and most of those are alike: {alike} of {again}");
}

#[test]
fn users_overstate_each_by_a_habit() {
    let mut factors: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for job in jobs(SPEC) {
        let stated = job.stated_s.expect("every job states a duration");
        assert!(stated >= job.duration_s);
        // Where durations are short, round numbers hide the habit.
        if job.duration_s > 3600 {
            let user = job.user.expect("every job has a user");
            factors.entry(user).or_default().push(stated as f64 / job.duration_s as f64);
        }
    }
    let mut medians: Vec<f64> = factors
        .into_values()
        .filter(|factors| factors.len() >= 20)
        .map(|mut factors| {
            factors.sort_by(f64::total_cmp);
            factors[factors.len() / 2]
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let (least, most) = (medians[medians.len() / 10], medians[medians.len() * 9 / 10]);
    assert!(least < 1.8 && most > 3.5, "{least} to {most}");
}

#[test]
fn worth_is_heavy_tailed_and_some_jobs_are_urgent() {
    let jobs = jobs(SPEC);
    let mut densities: Vec<f64> = Vec::new();
    let (mut urgent, mut loose, mut open) = (0, 0, 0);
    for job in &jobs {
        let work = f64::from(job.gpu_milli) / 1e3 * job.duration_s as f64 / 3600.0;
        densities.push(job.value.expect("every job has a value") as f64 / 1e6 / work);
        let stated = job.stated_s.unwrap_or(1);
        match job.deadline_s.map(|deadline| deadline - job.submit_s) {
            None => open += 1,
            Some(after) => {
                assert!(after > stated, "a deadline leaves room for what is stated");
                urgent += i32::from(after <= stated * 8 / 5 + 120);
                loose += i32::from(after >= stated * 10);
            }
        }
    }
    densities.sort_by(f64::total_cmp);
    let at = |share: f64| densities[(densities.len() as f64 * share) as usize];
    assert!(at(0.99) > 15.0 * at(0.5), "{} and {}", at(0.99), at(0.5));
    let part = |count: i32| f64::from(count) / jobs.len() as f64;
    assert!((part(urgent) - 0.25).abs() < 0.02 && (part(open) - 0.10).abs() < 0.02);
    assert!(part(loose) > 0.18);
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let small = PhillySpec { jobs: 2000, ..SPEC };
    let first = bytes(small);
    assert!(first == bytes(small));
    assert!(first != bytes(PhillySpec { seed: 2, ..small }));
    // On every machine: no floating-point number takes part. Whoever changes the generator on
    // purpose changes these too.
    assert_eq!(format!("{:016x}", fingerprint(&first)), "e96c7d4fc29cc8b2");
    let day = paper(1);
    let mut bytes = Vec::new();
    trace::write(&mut bytes, &day.jobs, &day.users, &day.groups).expect("memory");
    assert_eq!(format!("{:016x}", fingerprint(&bytes)), "c79898c938919be6");
}

#[test]
fn what_cannot_be_generated_is_refused_by_its_option() {
    let field = |spec| philly(spec).err().and_then(|error| error.field);
    assert_eq!(field(PhillySpec { jobs: 1, ..SPEC }).as_deref(), Some("jobs"));
    assert_eq!(field(PhillySpec { jobs: 10_000_001, ..SPEC }).as_deref(), Some("jobs"));
    assert_eq!(field(PhillySpec { gpus: 0, ..SPEC }).as_deref(), Some("gpus"));
    assert_eq!(field(PhillySpec { load_milli: 0, ..SPEC }).as_deref(), Some("load"));
}

/// The largest difference between two distributions, of what is at or below a value.
fn distance(a: &mut [i64], b: &mut [i64]) -> f64 {
    a.sort_unstable();
    b.sort_unstable();
    let below = |sorted: &[i64], value| {
        sorted.partition_point(|other| *other <= value) as f64 / sorted.len() as f64
    };
    a.iter().map(|value| (below(a, *value) - below(b, *value)).abs()).fold(0.0, f64::max)
}

#[test]
fn sizes_and_durations_are_those_of_the_recorded_log() {
    let Some(log) = shared("traces/philly.csv.gz") else { return };
    let recorded = trace::read(&log, None).expect("the log is good").jobs;
    let generated = jobs(PhillySpec { seed: 1, jobs: 200_000, gpus: 2816, load_milli: 900 });
    let durations = |jobs: &[TraceJob], gpus: Option<u32>| -> Vec<i64> {
        let of_size = |job: &&TraceJob| gpus.is_none_or(|gpus| job.gpu_milli == gpus * 1000);
        jobs.iter().filter(of_size).map(|job| job.duration_s).collect()
    };
    for (size, most) in
        [(None, 0.03), (Some(1), 0.03), (Some(2), 0.05), (Some(4), 0.05), (Some(8), 0.05)]
    {
        let (mut real, mut ours) = (durations(&recorded, size), durations(&generated, size));
        let apart = distance(&mut real, &mut ours);
        #[allow(clippy::print_stderr)] // how good the fit is
        {
            eprintln!("{size:?} GPUs: {} and {} jobs, {apart:.4} apart", real.len(), ours.len());
        }
        assert!(apart < most, "durations of {size:?} GPUs are {apart} apart");
        let parts =
            (real.len() as f64 / recorded.len() as f64, ours.len() as f64 / generated.len() as f64);
        assert!((parts.0 - parts.1).abs() < 0.015, "{size:?} GPUs: shares {parts:?}");
    }
}
