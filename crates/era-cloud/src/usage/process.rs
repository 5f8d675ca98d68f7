//! What the system says of processes: one pass over all of them, then tree by tree.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;

use super::{UsageReading, Watched};
use crate::limits::census::Counted;

/// Every process there is, at one moment.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    by_pid: HashMap<u32, Stat>,
    children: HashMap<u32, Vec<u32>>,
}

/// What is used of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    pid: u32,
    parent: u32,
    group: u32,
    session: u32,
    /// Its own and that of children which it waited for, in microseconds.
    cpu_us: u64,
    resident_bytes: u64,
    /// What it read and wrote, where that was told with the rest.
    disk_bytes: Option<(u64, u64)>,
}

impl Processes {
    pub(crate) fn now() -> Processes {
        let mut all = Processes::default();
        let Ok(entries) = fs::read_dir("/proc") else { return all };
        let units = Units::of_this_machine();
        for entry in entries.flatten() {
            let is_process = entry.file_name().to_str().is_some_and(|n| n.parse::<u32>().is_ok());
            // One that ended since it was listed is not there.
            let stat = is_process.then(|| fs::read(entry.path().join("stat")).ok()).flatten();
            if let Some(stat) =
                stat.and_then(|text| parse_stat(&String::from_utf8_lossy(&text), units))
            {
                all.add(stat);
            }
        }
        all
    }

    /// The same where there is no `/proc`. What children used that have ended is not told there.
    pub(crate) fn counted(counted: &[Counted<'_>]) -> Processes {
        let mut all = Processes::default();
        let number = |pid: i32| u32::try_from(pid).ok();
        for process in counted {
            let (Some(pid), Some(parent)) = (number(process.pid), number(process.parent)) else {
                continue;
            };
            all.add(Stat {
                pid,
                parent,
                group: 0,
                session: 0,
                cpu_us: process.cpu_ms.saturating_mul(1000),
                resident_bytes: process.resident_bytes,
                disk_bytes: Some(process.disk_bytes),
            });
        }
        all
    }

    fn add(&mut self, stat: Stat) {
        self.children.entry(stat.parent).or_default().push(stat.pid);
        self.by_pid.insert(stat.pid, stat);
    }

    /// The processes of each task, in one pass over all. A process belongs to one task: the first
    /// that claims it.
    pub(super) fn trees(&self, watched: &[Watched]) -> Vec<Vec<u32>> {
        let mut claimed_by = HashMap::new();
        for (n, task) in watched.iter().enumerate() {
            for pid in &task.processes {
                claimed_by.entry(*pid).or_insert(n);
            }
        }
        let mut trees = vec![Vec::new(); watched.len()];
        let mut pids: Vec<&Stat> = self.by_pid.values().collect();
        pids.sort_unstable_by_key(|stat| stat.pid);
        for stat in pids {
            let claims = [stat.pid, stat.session, stat.group];
            if let Some(n) = claims.iter().find_map(|pid| claimed_by.get(pid)) {
                trees[*n].push(stat.pid);
            }
        }
        let mut taken: HashSet<u32> = trees.iter().flatten().copied().collect();
        for tree in &mut trees {
            let mut next = 0;
            while next < tree.len() {
                let below = self.children.get(&tree[next]).map_or(&[][..], Vec::as_slice);
                tree.extend(below.iter().filter(|pid| taken.insert(**pid)));
                next += 1;
            }
        }
        trees
    }

    /// What a tree uses, as far as its group did not say.
    pub(super) fn look(
        &self,
        tree: &[u32],
        memory_limit: Option<u64>,
        group: UsageReading,
    ) -> UsageReading {
        let stats = || tree.iter().filter_map(|pid| self.by_pid.get(pid));
        let mut seen = UsageReading::default();
        if tree.is_empty() {
            return seen;
        }
        if group.cpu_us.is_none() {
            seen.cpu_us = Some(stats().map(|stat| stat.cpu_us).sum());
        }
        if group.memory_bytes.is_none() {
            let resident = stats().map(|stat| stat.resident_bytes).sum();
            seen.memory_bytes = Some(memory(tree, resident, memory_limit));
        }
        if group.disk_read_bytes.is_none() {
            let disk = |stat: &Stat| stat.disk_bytes.or_else(|| disk(stat.pid));
            let io: Vec<(u64, u64)> = stats().filter_map(disk).collect();
            if !io.is_empty() {
                seen.disk_read_bytes = Some(io.iter().map(|(read, _)| read).sum());
                seen.disk_written_bytes = Some(io.iter().map(|(_, written)| written).sum());
            }
        }
        seen
    }
}

/// Pages that processes share count in each of them, which is often too much and never too
/// little. So only where the sum is over the limit is each page divided among those who share it.
fn memory(tree: &[u32], resident: u64, limit: Option<u64>) -> u64 {
    if tree.len() < 2 || limit.is_none_or(|limit| resident <= limit) {
        return resident;
    }
    let exact = |pid: &u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        Some(kib(&text, "Pss:")? << 10)
    };
    let parts: Option<Vec<u64>> = tree.iter().map(exact).collect();
    // Where one cannot be looked into, or has just ended, the sum stands until the next look.
    parts.map_or(resident, |parts| parts.iter().sum())
}

fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Read and written bytes of a process and of children that it waited for.
fn disk(pid: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    Some((field("read_bytes:")?, field("write_bytes:")?))
}

/// Received and sent bytes of a tree that has a network of its own.
pub(super) fn own_network(tree: &[u32]) -> Option<(u64, u64)> {
    let space = |pid: &str| Some(fs::metadata(format!("/proc/{pid}/ns/net")).ok()?.ino());
    let first = tree.first()?.to_string();
    if space(&first)? == space("self")? {
        return None;
    }
    Some(parse_net_dev(&fs::read_to_string(format!("/proc/{first}/net/dev")).ok()?))
}

fn parse_net_dev(text: &str) -> (u64, u64) {
    let mut total = (0_u64, 0_u64);
    for line in text.lines().skip(2) {
        let Some((name, counts)) = line.split_once(':') else { continue };
        let counts: Vec<u64> =
            counts.split_ascii_whitespace().map_while(|n| n.parse().ok()).collect();
        if name.trim() != "lo" && counts.len() > 8 {
            total = (total.0.saturating_add(counts[0]), total.1.saturating_add(counts[8]));
        }
    }
    total
}

/// What the kernel counts in.
#[derive(Clone, Copy)]
struct Units {
    ticks_per_s: u64,
    page_bytes: u64,
}

impl Units {
    fn of_this_machine() -> Units {
        Units {
            ticks_per_s: rustix::param::clock_ticks_per_second().max(1),
            page_bytes: rustix::param::page_size() as u64,
        }
    }
}

/// The name of a process stands in brackets and may hold anything, brackets included.
fn parse_stat(text: &str, units: Units) -> Option<Stat> {
    let (pid, rest) = text.split_once(" (")?;
    let fields: Vec<&str> = rest.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
    let number = |n: usize| fields.get(n)?.parse::<i64>().ok();
    let positive = |n: usize| Some(number(n)?.max(0).cast_unsigned());
    // Counted from the state, which is field 3 of the manual.
    let ticks = positive(11)? + positive(12)? + positive(13)? + positive(14)?;
    Some(Stat {
        pid: pid.parse().ok()?,
        parent: u32::try_from(positive(1)?).ok()?,
        group: u32::try_from(positive(2)?).ok()?,
        session: u32::try_from(positive(3)?).ok()?,
        cpu_us: ticks.saturating_mul(1_000_000) / units.ticks_per_s,
        resident_bytes: positive(21)?.saturating_mul(units.page_bytes),
        disk_bytes: None,
    })
}

#[cfg(test)]
mod tests {
    use era_core::job::TaskId;
    use era_core::units::JobId;

    use super::*;

    fn process(pid: u32, parent: u32, session: u32) -> Stat {
        Stat {
            pid,
            parent,
            group: session,
            session,
            cpu_us: 0,
            resident_bytes: 0,
            disk_bytes: None,
        }
    }

    fn watched(pid: u32) -> Watched {
        Watched {
            task: TaskId { job: JobId(u64::from(pid)), part: 0, attempt: 1, rank: 0 },
            processes: vec![pid],
            groups: Vec::new(),
            memory_limit: None,
            gpus: Vec::new(),
        }
    }

    #[test]
    fn a_name_with_brackets_and_spaces_hides_nothing() {
        let line =
            "42 (a) R 1 (x) S 7 40 41 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 99 1000 55 1 1";
        let units = Units { ticks_per_s: 100, page_bytes: 4096 };
        let stat = parse_stat(line, units).unwrap();
        assert_eq!((stat.pid, stat.parent, stat.group, stat.session), (42, 7, 40, 41));
        assert_eq!((stat.cpu_us, stat.resident_bytes), (1_000_000, 55 * 4096));
        for bad in ["", "1", "1 (x)", "1 (x) S 1", "x (x) S 1 1 1"] {
            assert_eq!(parse_stat(bad, units), None);
        }
    }

    #[test]
    fn a_tree_is_what_is_below_and_what_stayed_in_the_session() {
        let mut all = Processes::default();
        for (pid, parent, session) in [
            (1, 0, 1),
            (10, 1, 10),  // the task
            (11, 10, 10), // its child
            (12, 11, 12), // a grandchild with a session of its own
            (13, 1, 10),  // whose parent is gone, in the session
            (14, 13, 14), // below that
            (20, 1, 20),  // another task
            (21, 20, 20),
            (30, 1, 30), // nobody's
        ] {
            all.add(process(pid, parent, session));
        }
        let mut trees = all.trees(&[watched(10), watched(20), watched(99)]);
        trees.iter_mut().for_each(|tree| tree.sort_unstable());
        assert_eq!(trees, [vec![10, 11, 12, 13, 14], vec![20, 21], vec![]]);
    }

    #[test]
    fn the_loopback_is_no_network() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 9 0 0 0 0 0 0 0 9 0\n  eth0: 5 0 0 0 0 0 0 0 7 0\n";
        assert_eq!(parse_net_dev(text), (5, 7));
    }
}
