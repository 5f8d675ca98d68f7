//! Control groups, version 2, and version 1 where that is what there is.
//!
//! A [`Slot`] is one group in each hierarchy that we may use. A keeper lives in a slot, and what it
//! starts is born there: moving a process costs the kernel a grace period (about 10 ms on an idle
//! machine), being born in a group costs nothing. Slots are used again, so limits are written only
//! where they differ from those of the task before.

use std::io;
use std::path::{Path, PathBuf};

use super::Amounts;

/// Length of a period in which processor time is given out.
const PERIOD_US: u64 = 100_000;
/// The kernel refuses a smaller quota.
const QUOTA_US_MIN: u64 = 1_000;
/// What a keeper itself may take beside its task.
const KEEPER_BYTES: u64 = 16 << 20;
const KEEPER_PROCESSES: u64 = 1;

/// What a hierarchy limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Version 2, with these controllers.
    Unified {
        cpu: bool,
        memory: bool,
        pids: bool,
    },
    Cpu,
    Memory,
    Pids,
}

/// The hierarchies in which we may make groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroups {
    parents: Vec<(Kind, PathBuf)>,
}

/// A mounted hierarchy and where in it we are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mounted {
    /// The controllers of version 1; empty for version 2.
    controllers: Vec<String>,
    at: PathBuf,
    own: PathBuf,
}

impl Cgroups {
    /// Makes our parent group in every hierarchy that permits it, and says what is missing.
    pub fn set_up(name: &str) -> (Cgroups, Vec<String>) {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let mounted = mounted(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
        let mut found = Cgroups::default();
        let mut refused = None;
        for hierarchy in &mounted {
            match parent_in(hierarchy, name) {
                Ok(parent) => found.parents.extend(parent),
                Err(error) => refused = Some(error),
            }
        }
        (found.clone(), found.notes(refused))
    }

    fn notes(&self, refused: Option<io::Error>) -> Vec<String> {
        let missing: Vec<&str> = [
            (self.limits_cpu(), "processor time is not limited"),
            (self.limits_memory(), "memory is sampled and enforced by a kill"),
            (self.limits_processes(), "the number of processes is sampled and enforced by a kill"),
        ]
        .iter()
        .filter_map(|(there, what)| (!there).then_some(*what))
        .collect();
        if missing.is_empty() {
            return Vec::new();
        }
        let why = refused.map_or_else(|| "not all controllers are there".into(), |e| e.to_string());
        vec![format!("control groups cannot be used in full ({why}): {}", missing.join("; "))]
    }

    /// Whether the kernel limits processor time.
    pub fn limits_cpu(&self) -> bool {
        self.any(|kind| matches!(kind, Kind::Cpu | Kind::Unified { cpu: true, .. }))
    }

    /// Whether the kernel limits memory.
    pub fn limits_memory(&self) -> bool {
        self.any(|kind| matches!(kind, Kind::Memory | Kind::Unified { memory: true, .. }))
    }

    /// Whether the kernel limits the number of processes.
    pub fn limits_processes(&self) -> bool {
        self.any(|kind| matches!(kind, Kind::Pids | Kind::Unified { pids: true, .. }))
    }

    fn any(&self, is: impl Fn(&Kind) -> bool) -> bool {
        self.parents.iter().any(|(kind, _)| is(kind))
    }

    /// Our parent groups: what a later start must sweep.
    pub fn parents(&self) -> impl Iterator<Item = &Path> {
        self.parents.iter().map(|(_, path)| path.as_path())
    }

    /// Removes our parent groups, once no slot is left in them.
    pub fn remove(&self) {
        for path in self.parents() {
            // What cannot be removed is in nobody's way.
            let _ = std::fs::remove_dir(path);
        }
    }

    /// Makes a slot.
    pub fn slot(&self, number: u64) -> io::Result<Slot> {
        let mut slot = Slot { groups: Vec::new(), set: None };
        for (kind, parent) in &self.parents {
            let path = parent.join(format!("k{number}"));
            std::fs::create_dir(&path)?;
            slot.groups.push((*kind, path));
        }
        Ok(slot)
    }
}

/// The groups of one keeper.
#[derive(Debug)]
pub struct Slot {
    groups: Vec<(Kind, PathBuf)>,
    set: Option<Amounts>,
}

impl Slot {
    pub fn paths(&self) -> Vec<PathBuf> {
        self.groups.iter().map(|(_, path)| path.clone()).collect()
    }

    /// Sets the limits of the next task. An error means that this slot cannot be used for it.
    pub fn limit(&mut self, amounts: Amounts) -> io::Result<()> {
        if self.set == Some(amounts) {
            return Ok(());
        }
        self.set = None;
        for (kind, path) in &self.groups {
            for (file, value) in files(*kind, amounts) {
                match write(&path.join(file), &value) {
                    // Swap is not accounted for everywhere.
                    Err(error)
                        if file == "memory.swap.max" && error.kind() == io::ErrorKind::NotFound => {
                    }
                    done => done?,
                }
            }
        }
        self.set = Some(amounts);
        Ok(())
    }

    /// How often the kernel has killed for want of memory here.
    pub fn oom_kills(&self) -> u64 {
        let file = |(kind, path): &(Kind, PathBuf)| match kind {
            Kind::Memory => Some(path.join("memory.oom_control")),
            Kind::Unified { memory: true, .. } => Some(path.join("memory.events")),
            _ => None,
        };
        let text = self.groups.iter().find_map(file).map(std::fs::read_to_string);
        match text {
            Some(Ok(text)) => counter(&text, "oom_kill").unwrap_or(0),
            _ => 0,
        }
    }

    /// Kills whatever is in it, and says whether nothing is left.
    pub fn kill_all(&self) -> bool {
        self.groups.iter().map(|(_, path)| kill_in(path)).fold(true, |all, empty| all & empty)
    }

    /// Removes the groups. They must be empty.
    pub fn remove(&self) {
        for (_, path) in &self.groups {
            // What is not empty yet is swept at the next start.
            let _ = std::fs::remove_dir(path);
        }
    }
}

/// Moves the calling process into a group; what it starts from then on is in it too.
pub fn admit_self(group: &Path) -> io::Result<()> {
    write(&group.join("cgroup.procs"), "0")
}

/// Kills whatever is in a group or below it, and says whether nothing is left there.
pub fn kill_in(group: &Path) -> bool {
    let mut empty = true;
    if let Ok(below) = std::fs::read_dir(group) {
        for entry in below.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
            empty &= kill_in(&entry.path());
        }
    }
    let members = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    for pid in members.lines().filter_map(|line| line.parse().ok()) {
        empty = false;
        if let Some(pid) = rustix::process::Pid::from_raw(pid) {
            // It may be gone already.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
    empty
}

/// Which file gets which value.
fn files(kind: Kind, amounts: Amounts) -> Vec<(&'static str, String)> {
    let quota = (u64::from(amounts.cpu_milli) * PERIOD_US / 1000).max(QUOTA_US_MIN);
    let memory = amounts.memory_bytes.saturating_add(KEEPER_BYTES);
    let unlimited = amounts.memory_bytes == 0;
    let processes = (u64::from(amounts.processes) + KEEPER_PROCESSES).to_string();
    match kind {
        Kind::Cpu if amounts.cpu_milli == 0 => vec![("cpu.cfs_quota_us", "-1".into())],
        Kind::Cpu => vec![
            ("cpu.cfs_period_us", PERIOD_US.to_string()),
            ("cpu.cfs_quota_us", quota.to_string()),
        ],
        Kind::Memory if unlimited => vec![("memory.limit_in_bytes", "-1".into())],
        Kind::Memory => vec![("memory.limit_in_bytes", memory.to_string())],
        Kind::Pids => vec![("pids.max", processes)],
        Kind::Unified { cpu, memory: limits_memory, pids } => {
            let mut files = Vec::new();
            if cpu && amounts.cpu_milli > 0 {
                files.push(("cpu.max", format!("{quota} {PERIOD_US}")));
            } else if cpu {
                files.push(("cpu.max", format!("max {PERIOD_US}")));
            }
            if limits_memory && !unlimited {
                files.push(("memory.max", memory.to_string()));
                files.push(("memory.swap.max", "0".into()));
            } else if limits_memory {
                files.push(("memory.max", "max".into()));
            }
            if pids {
                files.push(("pids.max", processes));
            }
            files
        }
    }
}

/// The hierarchies of this machine, from `/proc/self/mountinfo` and `/proc/self/cgroup`.
fn mounted(mountinfo: &str, own: &str) -> Vec<Mounted> {
    let own_path = |controller: &str| {
        own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (number, names, path) = (fields.next()?, fields.next()?, fields.next()?);
            let found = match controller {
                "" => number == "0" && names.is_empty(),
                _ => names.split(',').any(|name| name == controller),
            };
            found.then(|| path.trim_start_matches('/').to_owned())
        })
    };
    let hierarchy = |line: &str| {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let (file_system, _source, options) = (kind.next()?, kind.next()?, kind.next()?);
        let at = PathBuf::from(place.split(' ').nth(4)?);
        let controllers: Vec<String> = match file_system {
            "cgroup2" => Vec::new(),
            "cgroup" => options
                .split(',')
                .filter(|name| ["cpu", "memory", "pids"].contains(name))
                .map(str::to_owned)
                .collect(),
            _ => return None,
        };
        if file_system == "cgroup" && controllers.is_empty() {
            return None;
        }
        let own = own_path(controllers.first().map_or("", String::as_str))?;
        Some(Mounted { own: at.join(own), controllers, at })
    };
    mountinfo.lines().filter_map(hierarchy).collect()
}

/// Makes our group in a hierarchy: beside where we are, or at the top.
fn parent_in(hierarchy: &Mounted, name: &str) -> io::Result<Vec<(Kind, PathBuf)>> {
    if !hierarchy.controllers.is_empty() {
        let at = [&hierarchy.own, &hierarchy.at];
        let path = first_that(at.into_iter(), |base| make(&base.join(name)))?;
        let kinds = hierarchy.controllers.iter().filter_map(|controller| match &**controller {
            "cpu" => Some(Kind::Cpu),
            "memory" => Some(Kind::Memory),
            "pids" => Some(Kind::Pids),
            _ => None,
        });
        // Controllers that are mounted together share their groups: one entry makes the slot.
        let mut kinds = kinds.map(|kind| (kind, path.clone()));
        return Ok(kinds.next().into_iter().collect());
    }
    first_that([&hierarchy.own, &hierarchy.at].into_iter(), |base| {
        let offered = std::fs::read_to_string(base.join("cgroup.controllers"))?;
        let wanted: Vec<&str> = offered
            .split_whitespace()
            .filter(|name| ["cpu", "memory", "pids"].contains(name))
            .collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let enable: Vec<String> = wanted.iter().map(|name| format!("+{name}")).collect();
        write(&base.join("cgroup.subtree_control"), &enable.join(" "))?;
        let path = make(&base.join(name))?;
        write(&path.join("cgroup.subtree_control"), &enable.join(" "))?;
        let has = |name| wanted.contains(&name);
        let kind = Kind::Unified { cpu: has("cpu"), memory: has("memory"), pids: has("pids") };
        Ok(vec![(kind, path)])
    })
}

fn first_that<'a, T>(
    bases: impl Iterator<Item = &'a PathBuf>,
    works: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let mut refused = io::Error::from(io::ErrorKind::NotFound);
    for base in bases {
        match works(base) {
            Ok(made) => return Ok(made),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn make(path: &Path) -> io::Result<PathBuf> {
    match std::fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(path.into()),
    }
}

/// Control files take a value in one write, and are never made.
fn write(path: &Path, value: &str) -> io::Result<()> {
    use std::io::Write as _;
    std::fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

fn counter(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMOUNTS: Amounts = Amounts { cpu_milli: 1500, memory_bytes: 1 << 30, processes: 64 };

    #[test]
    fn a_machine_of_either_version_is_understood() {
        let v1 = "30 29 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                  31 29 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                  32 29 0:28 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n";
        let found = mounted(v1, "4:memory:/outer/inner\n2:cpu,cpuacct:/\n1:devices:/\n");
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].own, Path::new("/sys/fs/cgroup/memory/outer/inner"));
        assert_eq!(found[1].controllers, ["cpu"]);

        let v2 = "30 29 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let found = mounted(v2, "0::/system.slice/era.service\n");
        assert!(found[0].controllers.is_empty());
        assert_eq!(found[0].own, Path::new("/sys/fs/cgroup/system.slice/era.service"));
    }

    #[test]
    fn both_versions_are_told_the_same_limits() {
        let unified = Kind::Unified { cpu: true, memory: true, pids: true };
        let told = |kind| files(kind, AMOUNTS);
        let memory = ((1 << 30) + KEEPER_BYTES).to_string();
        assert_eq!(
            told(unified),
            [
                ("cpu.max", "150000 100000".to_owned()),
                ("memory.max", memory.clone()),
                ("memory.swap.max", "0".to_owned()),
                ("pids.max", "65".to_owned()),
            ]
        );
        assert_eq!(told(Kind::Cpu)[1], ("cpu.cfs_quota_us", "150000".to_owned()));
        assert_eq!(told(Kind::Memory), [("memory.limit_in_bytes", memory)]);
        assert_eq!(told(Kind::Pids), [("pids.max", "65".to_owned())]);
    }

    #[test]
    fn a_job_that_asks_for_no_memory_or_processor_is_not_strangled() {
        let free = Amounts { cpu_milli: 0, memory_bytes: 0, processes: 64 };
        assert_eq!(files(Kind::Memory, free), [("memory.limit_in_bytes", "-1".to_owned())]);
        assert_eq!(files(Kind::Cpu, free), [("cpu.cfs_quota_us", "-1".to_owned())]);
    }

    #[test]
    fn a_slot_of_version_two_is_made_limited_and_read() {
        let top = tempfile::tempdir().expect("a folder");
        let at = top.path().to_owned();
        std::fs::write(at.join("cgroup.controllers"), "cpuset cpu io memory pids").expect("write");
        std::fs::write(at.join("cgroup.subtree_control"), "").expect("write");
        std::fs::create_dir(at.join("era-x")).expect("make");
        std::fs::write(at.join("era-x/cgroup.subtree_control"), "").expect("write");
        let hierarchy = Mounted { controllers: Vec::new(), own: at.join("gone"), at: at.clone() };
        let parents = parent_in(&hierarchy, "era-x").expect("permitted");
        let enabled = std::fs::read_to_string(at.join("era-x/cgroup.subtree_control"));
        assert_eq!(enabled.expect("read"), "+cpu +memory +pids");

        let groups = Cgroups { parents };
        assert!(groups.limits_cpu() && groups.limits_memory() && groups.limits_processes());
        let mut slot = groups.slot(3).expect("made");
        let path = at.join("era-x/k3");
        for file in ["cpu.max", "memory.max", "pids.max"] {
            std::fs::write(path.join(file), "").expect("write");
        }
        slot.limit(AMOUNTS).expect("limited");
        assert_eq!(std::fs::read_to_string(path.join("pids.max")).expect("read"), "65");
        std::fs::write(path.join("memory.events"), "low 0\noom 2\noom_kill 1\n").expect("write");
        assert_eq!(slot.oom_kills(), 1);
    }

    #[test]
    fn what_is_missing_is_said_once() {
        let notes = Cgroups::default().notes(Some(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("permission denied") && notes[0].contains("memory"), "{notes:?}");
    }
}
