//! What is written is read back as the same values.

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::{collection, option};

use super::super::{MeasuredUse, NameTable, Status, Trace, TraceJob, write, write_with_use};
use super::{Folder, gzip, read};

/// Names that tempt a table: commas, quotes, line ends, spaces, other scripts.
const NAMES: [&str; 6] = ["ada", "b,c", "d \"e\"", "f\ng", " h ", "王"];

fn job() -> impl Strategy<Value = TraceJob> {
    let time = 0i64..2_000_000_000;
    let status = prop_oneof![
        Just(Status::Unknown),
        Just(Status::Completed),
        Just(Status::Failed),
        Just(Status::Cancelled)
    ];
    let sizes = (any::<u32>(), any::<u32>(), any::<u32>());
    let owners = (option::of(0..NAMES.len() as u32), option::of(0..NAMES.len() as u32));
    let worth = (option::of(0i64..1_000_000), option::of(0..=i64::MAX));
    let known = || option::of(any::<u32>());
    let used = (known(), known(), known());
    (
        ("[a-z,\" ]{1,6}", time.clone(), 1i64..9_999_999, option::of(1..=9_999_999i64)),
        sizes,
        owners,
        (status, used),
        worth,
    )
        .prop_map(
            |((id, submit_s, duration_s, stated_s), sizes, owners, (status, used), worth)| {
                TraceJob {
                    id: id.into(),
                    submit_s,
                    duration_s,
                    stated_s,
                    gpu_milli: sizes.0,
                    cpu_milli: sizes.1,
                    memory_mib: sizes.2,
                    user: owners.0,
                    group: owners.1,
                    status,
                    deadline_s: worth.0.map(|slack| submit_s + slack),
                    value: worth.1,
                    used: MeasuredUse { cpu_milli: used.0, memory_mib: used.1, gpu_milli: used.2 },
                }
            },
        )
}

/// A trace's jobs with names instead of numbers, which depend on who comes first.
fn named(trace: &Trace) -> Vec<(TraceJob, Option<&str>, Option<&str>)> {
    trace
        .jobs
        .iter()
        .map(|job| {
            let user = job.user.and_then(|n| trace.users.name(n));
            let group = job.group.and_then(|n| trace.groups.name(n));
            (TraceJob { user: None, group: None, ..job.clone() }, user, group)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn what_is_written_is_read_back_as_it_was(mut jobs in collection::vec(job(), 1..20)) {
        jobs.sort_by_key(|job| job.submit_s);
        let mut trace = Trace { jobs, ..Trace::default() };
        for name in NAMES {
            trace.users.number(name);
            trace.groups.number(name);
        }
        let mut bytes = Vec::new();
        write_with_use(&mut bytes, &trace.jobs, &trace.users, &trace.groups).expect("memory");
        let folder = Folder::new();
        let back = read(&folder.put("a.csv.gz", gzip(&bytes)), None).expect("we wrote it");
        assert_eq!(named(&back), named(&trace));
        let mut again = Vec::new();
        write_with_use(&mut again, &back.jobs, &back.users, &back.groups).expect("memory");
        assert!(again == bytes, "a second round changes no byte");
    }
}

#[test]
fn a_number_without_a_name_is_not_written() {
    let job = TraceJob { id: "a".into(), user: Some(3), ..TraceJob::default() };
    let written = write(&mut Vec::new(), [job], &NameTable::default(), &NameTable::default());
    assert!(written.is_err_and(|error| error.to_string().contains("number 3")));
}
