//! Recorded traces, where they stand beside the project: all of them are read to the last job.

use super::read;
use crate::beside::shared;

#[test]
fn recorded_traces_are_read_to_the_last_job() {
    let counts = [
        ("traces/philly.csv.gz", 82_247),
        ("traces/chronus-slo.csv.gz", 30_940),
        ("traces/kth-sp2-cpu.csv.gz", 28_481),
        ("referee/inputs/phillymg3k.csv", 3_000),
        ("referee/inputs/phillymg3k-exact.swf", 3_000),
        ("referee/inputs/phillymg3k-bucket.swf", 3_000),
        ("referee/inputs/kth5k.csv", 5_000),
        ("referee/inputs/kth5k.swf", 5_000),
    ];
    for (file, jobs) in counts {
        let Some(path) = shared(file) else { return };
        let trace = read(&path, None).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((trace.jobs.len(), trace.skipped), (jobs, 0), "{file}");
        assert!(trace.jobs.is_sorted_by_key(|job| job.submit_s), "{file}");
        assert_eq!(trace.jobs[0].submit_s, 0, "{file}");
        assert!(trace.jobs.iter().all(|job| job.duration_s > 0), "{file}");
    }
    // What is the same workload in two formats is the same trace.
    let again = |file| read(&shared(file).expect("it is there"), None).expect("it was just read");
    let (table, swf) = (again("referee/inputs/kth5k.csv"), again("referee/inputs/kth5k.swf"));
    for (a, b) in table.jobs.iter().zip(&swf.jobs) {
        let facts =
            |j: &super::super::TraceJob| (j.submit_s, j.duration_s, j.gpu_milli, j.stated_s);
        assert_eq!(facts(a), facts(b), "{}", a.id);
    }
}
