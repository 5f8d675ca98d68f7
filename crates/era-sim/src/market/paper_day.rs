//! The day of the paper's first experiment: six classes of jobs, one of them wide and cheap.

use crate::seeded::Seeded;
use crate::trace::{Trace, TraceJob};

/// Width, minutes, credits for each unit and minute.
const CLASSES: [(u32, i64, i64); 6] =
    [(5, 10, 10), (10, 20, 10), (20, 15, 10), (40, 10, 10), (8, 60, 10), (100, 130, 1)];
const OF_EACH: usize = 1450;
/// Arrivals come on the minute, since the paper's time is slots of a minute.
const ARRIVAL_MINUTES: i64 = 20 * 60;

/// A day of it, by arrival, then by class.
pub(super) fn paper(seed: u64) -> Trace {
    let mut seeded = Seeded::new(seed);
    let mut trace = Trace::default();
    for (units, minutes, worth) in CLASSES {
        for number in 1..=OF_EACH {
            let submit_s = seeded.range(0, ARRIVAL_MINUTES) * 60;
            trace.jobs.push(TraceJob {
                id: format!("{units}x{minutes}-{number}").into(),
                submit_s,
                duration_s: minutes * 60,
                gpu_milli: units * 1000,
                deadline_s: Some(submit_s + 3 * minutes * 60),
                value: Some(worth * i64::from(units) * minutes * 1_000_000),
                ..TraceJob::default()
            });
        }
    }
    trace.jobs.sort_by_key(|job| job.submit_s);
    trace
}
