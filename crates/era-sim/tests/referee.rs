//! Independent simulators as referees: on the same jobs and the same machine, every job starts
//! (and ends) in the same second as it did there.
//!
//! Their answers stand beside the project and are not part of it; where they are absent, these
//! tests are skipped, and the small referee of the repository (`small`) is what is compared.

#![allow(clippy::unwrap_used)] // a referee's file that does not read as it should fails its test

mod beside;
mod small;

use std::collections::BTreeMap;

use beside::shared;

use era_core::placement::Scorer;
use era_core::settings::Backfill;
use era_sim::run::{
    Like, Machines, Setup, StatedDurations, TraceRun, UtilisationWeights, policy_named, run,
};
use era_sim::trace::{Trace, TraceJob};

/// The rows of a CSV file beside the project.
fn rows(file: &str) -> Option<Vec<BTreeMap<String, String>>> {
    Some(parse(&std::fs::read_to_string(shared(file)?).unwrap()))
}

/// The rows of a table, by column name.
fn parse(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| {
        let fields = line.splitn(header.len(), ',').map(str::to_owned);
        header.iter().map(|name| (*name).to_owned()).zip(fields).collect()
    };
    lines.map(row).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> i64 {
    row[column].parse().unwrap()
}

fn philly() -> Option<Trace> {
    let mut trace = Trace::default();
    for row in rows("referee/inputs/phillymg3k.csv")? {
        let group = trace.groups.number(&row["group"]);
        trace.jobs.push(TraceJob {
            id: row["job"].as_str().into(),
            submit_s: number(&row, "submit_s"),
            duration_s: number(&row, "duration_s"),
            stated_s: Some(number(&row, "est_bucket_s")),
            gpu_milli: number(&row, "gpus") as u32 * 1000,
            group: Some(group),
            ..TraceJob::default()
        });
    }
    Some(trace)
}

fn kth() -> Option<Trace> {
    let mut trace = Trace::default();
    for row in rows("referee/inputs/kth5k.csv")? {
        let user = trace.users.number(&row["user"]);
        trace.jobs.push(TraceJob {
            id: row["job"].as_str().into(),
            submit_s: number(&row, "submit_s"),
            duration_s: number(&row, "duration_s"),
            stated_s: Some(number(&row, "est_s")),
            gpu_milli: number(&row, "procs") as u32 * 1000,
            user: Some(user),
            ..TraceJob::default()
        });
    }
    Some(trace)
}

fn setup(
    gpus: u32,
    policy: &str,
    backfill: Backfill,
    estimates: StatedDurations,
    like: Like,
) -> Setup {
    Setup {
        machines: Machines::Pool { gpus },
        policy: policy_named(policy).unwrap(),
        backfill,
        estimates,
        scorer: Scorer::Consolidate,
        preempt: false,
        ageing: false,
        like,
        ratios: UtilisationWeights::default(),
    }
}

/// Compares starts and ends with those in a file, job by job.
fn compare(file: &str, columns: (&str, &str, &str), trace: &Trace, ran: &TraceRun) {
    if let Some(rows) = rows(file) {
        assert_same(file, &rows, columns, trace, ran);
    }
}

fn assert_same(
    file: &str,
    rows: &[BTreeMap<String, String>],
    columns: (&str, &str, &str),
    trace: &Trace,
    ran: &TraceRun,
) {
    assert_eq!(rows.len(), trace.jobs.len());
    let places: BTreeMap<&str, usize> =
        trace.jobs.iter().enumerate().map(|(index, job)| (&*job.id, index)).collect();
    let mut differences = Vec::new();
    for row in rows {
        let index = places[row[columns.0].as_str()];
        let theirs = (Some(number(row, columns.1)), Some(number(row, columns.2)));
        let ours = (ran.jobs[index].start_s, ran.jobs[index].end_s);
        if theirs != ours {
            differences.push((trace.jobs[index].submit_s, row[columns.0].clone(), theirs, ours));
        }
    }
    differences.sort();
    assert!(
        differences.is_empty(),
        "{file}: {} of {} jobs differ (submission, job, theirs, ours): {:?}",
        differences.len(),
        rows.len(),
        &differences[..differences.len().min(5)]
    );
}

const SWF: (&str, &str, &str) = ("job", "start_s", "finish_s");
const TIRESIAS: (&str, &str, &str) = ("job_id", "start_time", "end_time");

fn pyss(
    trace: Option<Trace>,
    gpus: u32,
    backfill: Backfill,
    estimates: StatedDurations,
    file: &str,
) {
    let Some(trace) = trace else { return };
    let setup = setup(gpus, "fifo", backfill, estimates, Like::Pyss);
    let ran = run(&trace, &setup, &|_| ()).unwrap();
    compare(file, SWF, &trace, &ran);
}

#[test]
fn first_come_first_served_is_as_in_pyss() {
    for (estimates, file) in [
        (StatedDurations::Exact, "referee/pyss-phillymg3k/fcfs-exact.csv"),
        (StatedDurations::Bucket, "referee/pyss-phillymg3k/fcfs-bucket.csv"),
    ] {
        pyss(philly(), 384, Backfill::None, estimates, file);
    }
    pyss(kth(), 100, Backfill::None, StatedDurations::Stated, "referee/pyss-kth5k/fcfs.csv");
}

#[test]
fn easy_backfilling_is_as_in_pyss() {
    for (estimates, file) in [
        (StatedDurations::Exact, "referee/pyss-phillymg3k/easy-exact.csv"),
        (StatedDurations::Bucket, "referee/pyss-phillymg3k/easy-bucket.csv"),
    ] {
        pyss(philly(), 384, Backfill::Easy, estimates, file);
    }
    pyss(kth(), 100, Backfill::Easy, StatedDurations::Stated, "referee/pyss-kth5k/easy.csv");
}

#[test]
fn conservative_backfilling_is_as_in_pyss() {
    for (estimates, file) in [
        (StatedDurations::Exact, "referee/pyss-phillymg3k/conservative-exact.csv"),
        (StatedDurations::Bucket, "referee/pyss-phillymg3k/conservative-bucket.csv"),
    ] {
        pyss(philly(), 384, Backfill::Conservative, estimates, file);
    }
}

#[test]
fn shortest_job_first_is_as_in_accasim() {
    let Some(trace) = philly() else { return };
    let setup = setup(384, "sjf", Backfill::None, StatedDurations::Exact, Like::Accasim);
    let ran = run(&trace, &setup, &|_| ()).unwrap();
    compare("referee/accasim-phillymg3k/sjf.csv", SWF, &trace, &ran);
}

#[test]
fn fifo_is_as_in_tiresias() {
    let Some(trace) = philly() else { return };
    let setup = setup(384, "fifo", Backfill::None, StatedDurations::Exact, Like::Tiresias);
    let ran = run(&trace, &setup, &|_| ()).unwrap();
    compare("referee/tiresias-phillymg3k/fifo.csv", TIRESIAS, &trace, &ran);
}

#[test]
fn shortest_remaining_time_first_is_as_in_tiresias() {
    let Some(trace) = philly() else { return };
    let setup = setup(384, "srtf", Backfill::None, StatedDurations::Exact, Like::Tiresias);
    let setup = Setup { preempt: true, ..setup };
    let ran = run(&trace, &setup, &|_| ()).unwrap();
    compare("referee/tiresias-phillymg3k/shortest.csv", TIRESIAS, &trace, &ran);
}

#[test]
fn least_attained_service_is_as_in_tiresias() {
    let Some(trace) = philly() else { return };
    let setup = setup(384, "las", Backfill::None, StatedDurations::Exact, Like::Tiresias);
    let setup = Setup { preempt: true, ..setup };
    let ran = run(&trace, &setup, &|_| ()).unwrap();
    compare("referee/tiresias-phillymg3k/dlas-gpu.csv", TIRESIAS, &trace, &ran);
}

#[test]
fn consolidated_placement_is_as_in_helios() {
    for policy in ["fifo", "sjf"] {
        let file = format!("referee/helios-phillymg3k/{policy}.csv");
        let (Some(mut trace), Some(rows)) = (philly(), rows(&file)) else { return };
        // Jobs that were submitted in the same second came in this order.
        let ranks: BTreeMap<String, i64> =
            rows.iter().map(|row| (row["job"].clone(), number(row, "arrival_rank"))).collect();
        trace.jobs.sort_by_key(|job| ranks[&*job.id]);
        let setup = setup(384, policy, Backfill::None, StatedDurations::Exact, Like::Helios);
        let setup = Setup { machines: Machines::nodes(384, 8).unwrap(), ..setup };
        let ran = run(&trace, &setup, &|_| ()).unwrap();
        compare(&file, SWF, &trace, &ran);
    }
}
