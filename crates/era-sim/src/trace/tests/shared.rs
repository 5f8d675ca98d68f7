//! Recorded traces, where they stand beside the project: all of them are read to the last job.

use std::path::{Path, PathBuf};

use super::read;

/// The folder of recorded traces: `ERA_SHARED`, or `shared` beside the project.
fn shared() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("ERA_SHARED").map_or(beside, PathBuf::from);
    folder.join("traces").is_dir().then_some(folder)
}

#[test]
fn recorded_traces_are_read_to_the_last_job() {
    let Some(shared) = shared() else {
        #[allow(clippy::print_stderr)] // the reader of the test's output should know
        {
            eprintln!("skipped: no recorded traces beside the project, and ERA_SHARED is not set");
        }
        return;
    };
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
        let trace = read(&shared.join(file), None).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((trace.jobs.len(), trace.skipped), (jobs, 0), "{file}");
        assert!(trace.jobs.is_sorted_by_key(|job| job.submit_s), "{file}");
        assert_eq!(trace.jobs[0].submit_s, 0, "{file}");
        assert!(trace.jobs.iter().all(|job| job.duration_s > 0), "{file}");
    }
    // What is the same workload in two formats is the same trace.
    let table = read(&shared.join("referee/inputs/kth5k.csv"), None).expect("it was just read");
    let swf = read(&shared.join("referee/inputs/kth5k.swf"), None).expect("it was just read");
    for (a, b) in table.jobs.iter().zip(&swf.jobs) {
        let facts =
            |j: &super::super::TraceJob| (j.submit_s, j.duration_s, j.gpu_milli, j.stated_s);
        assert_eq!(facts(a), facts(b), "{}", a.id);
    }
}
