//! Which keepers there are, in a file, for the sweep of the next supervisor: where orphans go to
//! the system and environments cannot always be seen, the session of a dead keeper is what its task
//! is known by. On Linux control groups and marks are enough, and nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use era_core::units::Time;

use crate::limits::census::Counted;

/// By so much a process may be told to have begun earlier or later than it was.
const SLACK_S: u64 = 2;

/// The keepers of a supervisor, by their numbers among them.
#[derive(Debug, Default)]
pub(super) struct Roster {
    /// Where they are written; nowhere if nobody will ask.
    path: Option<PathBuf>,
    keepers: BTreeMap<u64, Keeper>,
}

/// A keeper of this supervisor or an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keeper {
    pid: i32,
    hired_s: u64,
}

fn path(folder: &Path) -> PathBuf {
    folder.join("keepers")
}

impl Roster {
    /// An empty one, which is written to this folder.
    pub(super) fn new(folder: &Path) -> Roster {
        Roster { path: Some(path(folder)), keepers: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, keeper: u64, pid: u32, now: Time) {
        let now_s = u64::try_from(now.0 / 1000).unwrap_or(0);
        if let (Some(_), Ok(pid)) = (&self.path, i32::try_from(pid)) {
            self.keepers.insert(keeper, Keeper { pid, hired_s: now_s });
            self.write();
        }
    }

    pub(super) fn remove(&mut self, keeper: u64) {
        if self.keepers.remove(&keeper).is_some() {
            self.write();
        }
    }

    fn write(&self) {
        let Some(path) = &self.path else { return };
        let line = |keeper: &Keeper| format!("{} {}\n", keeper.pid, keeper.hired_s);
        let text: String = self.keepers.values().map(line).collect();
        let new = path.with_extension("new");
        let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path));
        if let Err(error) = written {
            // A full disk must not stop supervision, and what carries a mark is found without it.
            tracing::warn!(%error, "the list of keepers could not be written");
        }
    }
}

/// The keepers that an earlier supervisor wrote down.
pub(super) fn earlier(folder: &Path) -> Vec<Keeper> {
    let text = std::fs::read_to_string(path(folder)).unwrap_or_default();
    let keeper = |line: &str| {
        let (pid, hired_s) = line.split_once(' ')?;
        Some(Keeper { pid: pid.parse().ok()?, hired_s: hired_s.parse().ok()? })
    };
    text.lines().filter_map(keeper).collect()
}

/// What is left of an earlier supervisor: its keepers, and all that is of their tasks. The machine
/// was started at `booted_s`.
pub(super) fn left(
    earlier: &[Keeper],
    mark: &OsString,
    booted_s: u64,
    all: &[Counted<'_>],
) -> (Vec<i32>, Vec<i32>) {
    let by_pid: BTreeMap<i32, &Counted<'_>> = all.iter().map(|p| (p.pid, p)).collect();
    let is_it = |keeper: &Keeper, process: &Counted<'_>| {
        process.started_s.abs_diff(keeper.hired_s) <= SLACK_S
    };
    // A number may be another process's since, and after a start of the machine it surely is.
    let sessions: BTreeMap<i32, u64> = earlier
        .iter()
        .filter(|keeper| keeper.hired_s + SLACK_S >= booted_s)
        .filter(|keeper| by_pid.get(&keeper.pid).is_none_or(|process| is_it(keeper, process)))
        .map(|keeper| (keeper.pid, keeper.hired_s))
        .collect();
    let in_session = |process: &Counted<'_>| {
        let hired_s = sessions.get(&process.session);
        hired_s.is_some_and(|hired_s| process.started_s + SLACK_S >= *hired_s)
    };
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let theirs = |process: &&Counted<'_>| {
        process.pid != own
            && !process.zombie
            && (process.env.contains(mark)
                || sessions.contains_key(&process.pid)
                || in_session(process))
    };
    let mut found: Vec<i32> = all.iter().filter(theirs).map(|process| process.pid).collect();
    let mut seen: BTreeSet<i32> = found.iter().copied().chain([own]).collect();
    let mut next = 0;
    while next < found.len() {
        let below = all.iter().filter(|p| p.parent == found[next] && !p.zombie);
        let below: Vec<i32> = below.map(|p| p.pid).filter(|pid| seen.insert(*pid)).collect();
        found.extend(below);
        next += 1;
    }
    found.into_iter().partition(|pid| sessions.contains_key(pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIRED_S: u64 = 1_000;

    /// None of these numbers is a process of any machine.
    const BASE: i32 = 1_000_000;

    fn process(pid: i32, parent: i32, session: i32) -> Counted<'static> {
        Counted {
            pid: BASE + pid,
            parent: BASE + parent,
            session: BASE + session,
            started_s: HIRED_S + 1,
            user: None,
            zombie: false,
            resident_bytes: 10,
            cpu_ms: 0,
            disk_bytes: (0, 0),
            env: &[],
        }
    }

    /// Keepers and others that are left of one with the number 10.
    fn left(booted_s: u64, all: &[Counted<'_>]) -> (Vec<i32>, Vec<i32>) {
        let earlier = [Keeper { pid: BASE + 10, hired_s: HIRED_S }];
        let (keepers, others) = super::left(&earlier, &"MARK=m".into(), booted_s, all);
        let small = |pids: Vec<i32>| pids.into_iter().map(|pid| pid - BASE).collect();
        (small(keepers), small(others))
    }

    #[test]
    fn what_is_written_is_read_by_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(earlier(folder.path()), []);
        let mut roster = Roster::new(folder.path());
        roster.add(1, 77, Time(0));
        roster.add(2, 78, Time(0));
        roster.remove(1);
        let found: Vec<i32> = earlier(folder.path()).iter().map(|keeper| keeper.pid).collect();
        assert_eq!(found, [78]);
        let mut silent = Roster::default();
        silent.add(1, 79, Time(0));
        assert_eq!(earlier(folder.path()).len(), 1);
    }

    #[test]
    fn a_dead_keepers_session_is_left_with_all_below_it() {
        let all = [process(11, 1, 10), process(12, 11, 12), process(13, 1, 13)];
        assert_eq!(left(0, &all), (vec![], vec![11, 12]));
        let all = [process(10, 1, 10), process(11, 10, 10)];
        assert_eq!(left(0, &all), (vec![10], vec![11]), "a keeper is told apart");
    }

    #[test]
    fn whatever_carries_the_mark_is_left() {
        let env = [OsString::from("MARK=m")];
        let all = [Counted { env: &env, ..process(30, 1, 30) }, process(31, 30, 31)];
        assert_eq!(left(u64::MAX, &all), (vec![], vec![30, 31]));
    }

    #[test]
    fn a_number_that_is_another_process_by_now_is_let_be() {
        let later = Counted { started_s: HIRED_S + 9, ..process(10, 1, 10) };
        let member = Counted { started_s: HIRED_S + 9, ..process(11, 10, 10) };
        assert_eq!(left(0, &[later, member]), (vec![], vec![]), "a session of the same number");
        let before = Counted { started_s: HIRED_S - 9, ..process(11, 1, 10) };
        assert_eq!(left(0, &[before]), (vec![], vec![]), "older than the keeper");
        assert_eq!(left(HIRED_S + 9, &[process(11, 1, 10)]), (vec![], vec![]), "another start");
    }
}
