//! What the control groups of this process allow it, version 1 and 2.
//!
//! A limit of any group above counts too, so each is followed up to where it is mounted. Inside a
//! container a group's path may be one that only the host can see; then the mount itself is the
//! container's group.

use std::path::{Path, PathBuf};

/// What a process may use. `None` where nothing is limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupLimits {
    /// Thousandths of a core.
    pub(super) cpu_milli: Option<u32>,
    pub(super) memory_bytes: Option<u64>,
}

/// The limits of this process, for a file system that begins at `root`.
pub(super) fn of_this_process(root: &Path) -> GroupLimits {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let (groups, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
    let mut limits = GroupLimits::default();
    for mount in mounts.lines().filter_map(parse_mount) {
        let Some(group) = groups.lines().find_map(|line| group_in(line, &mount)) else { continue };
        let top = root.join(mount.at.trim_start_matches('/'));
        for folder in upwards(&top, group, &mount.root) {
            limits.tighten(&folder);
        }
    }
    limits
}

impl GroupLimits {
    fn tighten(&mut self, folder: &Path) {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        let cpu = read("cpu.max").and_then(|text| parse_cpu_max(&text)).or_else(|| {
            let quota = read("cpu.cfs_quota_us")?.trim().parse().ok()?;
            let period = read("cpu.cfs_period_us")?.trim().parse().ok()?;
            share_of_cores(quota, period)
        });
        // Version 1 writes "no limit" as the largest multiple of a page.
        let memory = read("memory.max")
            .or_else(|| read("memory.limit_in_bytes"))
            .and_then(|text| text.trim().parse::<u64>().ok())
            .filter(|bytes| *bytes < 1 << 60);
        self.cpu_milli = least(self.cpu_milli, cpu);
        self.memory_bytes = least(self.memory_bytes, memory);
    }
}

fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// `max 100000` or `150000 100000`.
fn parse_cpu_max(text: &str) -> Option<u32> {
    let (quota, period) = text.trim().split_once(' ')?;
    share_of_cores(quota.parse().ok()?, period.parse().ok()?)
}

fn share_of_cores(quota_us: i64, period_us: i64) -> Option<u32> {
    (quota_us > 0 && period_us > 0)
        .then(|| u32::try_from(quota_us.saturating_mul(1000) / period_us).ok())
        .flatten()
}

/// Where a hierarchy of control groups is mounted.
struct Mount {
    /// Which group the mount shows.
    root: String,
    at: String,
    /// Version 1's controllers; none in version 2.
    controllers: Vec<String>,
}

fn parse_mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(3);
    let (root, at) = (fields.next()?.to_owned(), fields.next()?.to_owned());
    let mut after = after.split(' ');
    let controllers = match after.next()? {
        "cgroup2" => Vec::new(),
        "cgroup" => after.nth(1)?.split(',').map(str::to_owned).collect(),
        _ => return None,
    };
    Some(Mount { root, at, controllers })
}

/// The path of this process's group in the hierarchy of a mount.
fn group_in<'a>(line: &'a str, mount: &Mount) -> Option<&'a str> {
    let mut fields = line.splitn(3, ':');
    let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let same = match mount.controllers.is_empty() {
        true => number == "0" && controllers.is_empty(),
        false => controllers.split(',').any(|c| mount.controllers.iter().any(|m| m == c)),
    };
    same.then_some(path)
}

/// The folders from a group up to the mount.
fn upwards(top: &Path, group: &str, mounted: &str) -> Vec<PathBuf> {
    let below = group.strip_prefix(mounted.trim_end_matches('/')).unwrap_or(group);
    let below = below.trim_start_matches('/');
    let inside = !Path::new(below).components().any(|part| part.as_os_str() == "..");
    let mut folder = top.join(if inside { below } else { "" });
    if !folder.is_dir() {
        folder = top.to_owned();
    }
    folder.ancestors().take_while(|path| path.starts_with(top)).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> GroupLimits {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        of_this_process(root.path())
    }

    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn without_control_groups_nothing_is_limited() {
        assert_eq!(machine(&[]), GroupLimits::default());
    }

    #[test]
    fn in_version_2_the_tightest_group_above_counts() {
        let limits = machine(&[
            ("proc/self/cgroup", "0::/batch/job\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/batch/job/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/batch/job/memory.max", "8589934592\n"),
            ("sys/fs/cgroup/batch/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/batch/memory.max", "4294967296\n"),
            ("sys/fs/cgroup/other/memory.max", "1\n"),
        ]);
        assert_eq!(limits, GroupLimits { cpu_milli: Some(1500), memory_bytes: Some(4 << 30) });
    }

    #[test]
    fn in_a_container_the_mount_is_the_group() {
        let limits = machine(&[
            ("proc/self/cgroup", "0::/../../host/only\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/cpu.max", "400000 100000\n"),
            ("sys/fs/cgroup/memory.max", "max\n"),
        ]);
        assert_eq!(limits, GroupLimits { cpu_milli: Some(4000), memory_bytes: None });
    }

    #[test]
    fn in_version_1_each_controller_has_its_own_group() {
        let limits = machine(&[
            ("proc/self/cgroup", "4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n0::/\n"),
            (
                "proc/self/mountinfo",
                "31 23 0:27 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                 32 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n"),
            ("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "250000\n"),
            ("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(limits, GroupLimits { cpu_milli: Some(2500), memory_bytes: Some(2 << 30) });
    }

    #[test]
    fn no_limit_is_no_limit_in_both_versions() {
        let limits = machine(&[
            ("proc/self/cgroup", "4:memory:/\n"),
            ("proc/self/mountinfo", "31 23 0:27 / /m rw - cgroup cgroup rw,memory\n"),
            ("m/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(limits, GroupLimits::default());
    }
}
