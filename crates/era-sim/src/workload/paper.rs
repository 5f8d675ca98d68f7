//! The first experiment of ERA's paper (WWW '17), with the parameters that the paper leaves open
//! fixed once: six classes of jobs on one resource, far more than there is room for.
//!
//! It knows the jobs only; capacity, day and prices belong to whoever runs it.

use crate::seeded::Seeded;
use crate::trace::{Trace, TraceJob};

const JOBS_PER_CLASS: usize = 1450;
/// Arrivals come on the minute, since the paper's time is slots of a minute.
const ARRIVAL_MINUTES: i64 = 20 * 60;
const WINDOW_DURATIONS: i64 = 3;
const MICRO: i64 = 1_000_000;

struct Class {
    units: u32,
    minutes: i64,
    /// Credits for each unit and minute.
    worth: i64,
}

const CLASSES: [Class; 6] = [
    Class { units: 5, minutes: 10, worth: 10 },
    Class { units: 10, minutes: 20, worth: 10 },
    Class { units: 20, minutes: 15, worth: 10 },
    Class { units: 40, minutes: 10, worth: 10 },
    Class { units: 8, minutes: 60, worth: 10 },
    Class { units: 100, minutes: 130, worth: 1 },
];

/// One day of it: 8,700 jobs by arrival, then by class, then by number. Units are whole GPUs, the
/// class is the group, durations are stated as they are.
pub fn paper(seed: u64) -> Trace {
    let mut seeded = Seeded::new(seed);
    let mut trace = Trace::default();
    for (number, class) in (1..).zip(&CLASSES) {
        let group = trace.groups.number(&format!("{}x{}", class.units, class.minutes));
        for job in 1..=JOBS_PER_CLASS {
            let id = format!("c{number}-{job:04}");
            let arrival_s = seeded.range(0, ARRIVAL_MINUTES) * 60;
            trace.jobs.push(class.job(id.into(), arrival_s, group));
        }
    }
    // Stable, and made class by class: so ties are by class, then by number.
    trace.jobs.sort_by_key(|job| job.submit_s);
    trace
}

impl Class {
    fn job(&self, id: Box<str>, arrival_s: i64, group: u32) -> TraceJob {
        let duration_s = self.minutes * 60;
        TraceJob {
            id,
            submit_s: arrival_s,
            duration_s,
            stated_s: Some(duration_s),
            gpu_milli: self.units * 1000,
            group: Some(group),
            deadline_s: Some(arrival_s + WINDOW_DURATIONS * duration_s),
            value: Some(self.worth * i64::from(self.units) * self.minutes * MICRO),
            ..TraceJob::default()
        }
    }
}
