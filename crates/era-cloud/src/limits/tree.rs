//! Trees of processes: who descends from whom, and how much memory they hold.
//!
//! A keeper adopts every orphan of its task, so the task is always what descends from its keeper,
//! however it forks, and no group or session that it makes hides it.

use std::collections::{BTreeMap, BTreeSet};

/// One process, as `/proc/PID/stat` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    pub threads: u32,
    /// Bytes that it holds in memory, shared ones included.
    pub resident_bytes: u64,
    /// Whether it is dead and only waits to be noticed.
    pub zombie: bool,
}

/// All processes that can be seen now.
pub fn processes() -> Vec<Process> {
    let Ok(folder) = std::fs::read_dir("/proc") else { return Vec::new() };
    let page = rustix::param::page_size() as u64;
    folder
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        // A process may end while we look.
        .filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok())
        .filter_map(|stat| read(&stat, page))
        .collect()
}

/// Reads a line of `/proc/PID/stat`. The name may hold anything, so the fields are counted from
/// its closing parenthesis.
fn read(stat: &str, page: u64) -> Option<Process> {
    let pid = stat.split(' ').next()?.parse().ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse::<i64>().ok();
    Some(Process {
        pid,
        parent: i32::try_from(number(1)?).ok()?,
        group: i32::try_from(number(2)?).ok()?,
        threads: u32::try_from(number(17)?).ok()?,
        resident_bytes: u64::try_from(number(21)?).ok()?.saturating_mul(page),
        zombie: matches!(*fields.first()?, "Z" | "X"),
    })
}

/// How many threads a user has in all.
pub fn threads_of(uid: u32) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let owned = |process: &&Process| {
        std::fs::metadata(format!("/proc/{}", process.pid)).is_ok_and(|about| about.uid() == uid)
    };
    processes().iter().filter(owned).map(|process| u64::from(process.threads)).sum()
}

/// Those that descend from `root`, without itself.
pub fn descendants(root: i32, all: &[Process]) -> Vec<Process> {
    let mut children = BTreeMap::<i32, Vec<&Process>>::new();
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let (mut found, mut seen, mut next) = (Vec::new(), BTreeSet::from([root]), vec![root]);
    while let Some(parent) = next.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if seen.insert(child.pid) {
                found.push(**child);
                next.push(child.pid);
            }
        }
    }
    found
}

/// Bytes that these processes hold, what they share counted once. The exact figure is dear, so it
/// is asked for only where the simple sum is over `worth_asking`.
pub fn memory_bytes(tree: &[Process], worth_asking: u64) -> u64 {
    let simple: u64 = tree.iter().map(|process| process.resident_bytes).sum();
    if simple <= worth_asking {
        return simple;
    }
    tree.iter().map(|process| proportional_bytes(process).unwrap_or(process.resident_bytes)).sum()
}

fn proportional_bytes(process: &Process) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", process.pid)).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process { pid, parent, group: 1, threads: 1, resident_bytes: 10, zombie: false }
    }

    #[test]
    fn grandchildren_descend_and_strangers_do_not() {
        let all = [process(2, 1), process(3, 2), process(4, 3), process(9, 1), process(10, 9)];
        let mut found: Vec<i32> = descendants(2, &all).iter().map(|p| p.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [3, 4]);
    }

    #[test]
    fn a_circle_of_reused_numbers_does_not_hang() {
        let all = [process(2, 3), process(3, 2)];
        assert_eq!(descendants(2, &all).len(), 1);
    }

    #[test]
    fn a_name_that_looks_like_fields_fools_nobody() {
        let rest = "S 7 8 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 100 1000 50 1";
        let read = read(&format!("12 (a) R 1 (b) {rest}"), 4096).expect("a process");
        let expected = Process {
            pid: 12,
            parent: 7,
            group: 8,
            threads: 3,
            resident_bytes: 50 * 4096,
            zombie: false,
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn we_descend_from_our_parent() {
        let me = i32::try_from(std::process::id()).expect("small");
        let parent = i32::try_from(std::os::unix::process::parent_id()).expect("small");
        assert!(descendants(parent, &processes()).iter().any(|p| p.pid == me));
    }
}
