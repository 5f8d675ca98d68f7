//! The referee that stands in the repository, so that a clone alone compares something: made-up
//! jobs, and a plain simulation of them in another language, `referee.py`, whose answer is
//! `referee.csv`.

use std::collections::BTreeMap;
use std::process::Command;

use era_core::settings::Backfill;
use era_sim::run::{Like, Machines, Setup, StatedDurations, run};
use era_sim::trace::{Trace, TraceJob};

use super::{assert_same, beside, number, parse, setup};

const GPUS: u32 = 64;

fn table() -> (Vec<BTreeMap<String, String>>, Trace) {
    let rows = parse(include_str!("referee.csv"));
    let job = |row: &BTreeMap<String, String>| TraceJob {
        id: row["job"].as_str().into(),
        submit_s: number(row, "submit_s"),
        duration_s: number(row, "duration_s"),
        stated_s: Some(number(row, "stated_s")),
        gpu_milli: number(row, "gpus") as u32 * 1000,
        ..TraceJob::default()
    };
    let jobs = rows.iter().map(job).collect();
    (rows, Trace { jobs, ..Trace::default() })
}

/// Every job starts and ends when the referee says.
fn agrees(rule: &str, setup: &Setup) {
    let (rows, trace) = table();
    let ran = run(&trace, setup, &|_| ()).unwrap();
    let (start, end) = (format!("{rule} start"), format!("{rule} end"));
    assert_same(rule, &rows, ("job", &start, &end), &trace, &ran);
}

#[test]
fn its_answer_is_what_its_script_prints() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/small/referee.py");
    let Ok(printed) = Command::new("python3").arg(script).output() else {
        return beside::skipped::skipped("there is no python3 here");
    };
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    assert!(printed.stdout == include_bytes!("referee.csv"), "make it anew: python3 {script}");
}

#[test]
fn the_head_of_the_line_goes_first() {
    for (policy, estimates) in [("fifo", StatedDurations::Exact), ("sjf", StatedDurations::Stated)]
    {
        agrees(policy, &setup(GPUS, policy, Backfill::None, estimates, Like::Accasim));
    }
}

#[test]
fn the_fullest_node_with_room_is_taken() {
    for policy in ["fifo", "sjf"] {
        let setup = setup(GPUS, policy, Backfill::None, StatedDurations::Exact, Like::Helios);
        let machines = Machines::nodes(GPUS, 8).unwrap();
        agrees(&format!("nodes-{policy}"), &Setup { machines, ..setup });
    }
}

#[test]
fn whoever_has_least_left_to_do_runs() {
    let setup = setup(GPUS, "srtf", Backfill::None, StatedDurations::Exact, Like::Tiresias);
    agrees("srtf", &Setup { preempt: true, ..setup });
}

#[test]
fn gaps_are_filled() {
    for (name, backfill) in [("easy", Backfill::Easy), ("conservative", Backfill::Conservative)] {
        for (known, estimates) in
            [("exact", StatedDurations::Exact), ("stated", StatedDurations::Stated)]
        {
            let setup = setup(GPUS, "fifo", backfill, estimates, Like::Pyss);
            agrees(&format!("{name}-{known}"), &setup);
        }
    }
}
