//! Who belongs to a task, where the kernel does not give orphans to its keeper: whoever descends
//! from the keeper, was seen to do so before, is in the keeper's session or one that the task has
//! made, or says in its environment that it is of the task.
//!
//! One that leaves its session and its parent between two looks, and whose environment is cleared
//! or cannot be seen, is not found (decision 0022). On Linux a keeper adopts every orphan, and
//! nothing of this is needed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::clock::MachineClock;
use crate::executor::Launch;
use crate::limits::census::{Census, Counted};
use crate::limits::tree::Process;

/// How soon after the start of a task it is first looked at, and how seldom in the end.
const FIRST: Duration = Duration::from_millis(5);
const SELDOM: Duration = Duration::from_secs(1);

/// What is known of those who belong to a task.
#[derive(Debug)]
pub(super) struct Trail {
    keeper: i32,
    /// What all of them find in their environment.
    words: Vec<OsString>,
    /// Those who were there at the last look, and when each began.
    known: BTreeMap<i32, u64>,
    /// The keeper's session, and those that the task has made.
    sessions: BTreeSet<i32>,
}

impl Trail {
    /// Nobody yet, of a task whose keeper has this number.
    pub(super) fn new(keeper: u32, launch: &Launch, mark: &str) -> Trail {
        // No process has the other number.
        let keeper = i32::try_from(keeper).unwrap_or(-1);
        let words = crate::task::words(launch.task, mark).into_iter().map(OsString::from);
        let sessions = BTreeSet::from([keeper]);
        Trail { keeper, words: words.collect(), known: BTreeMap::new(), sessions }
    }

    /// Those among all who belong to the task.
    pub(super) fn follow(&mut self, all: &[Counted<'_>]) -> Vec<Process> {
        let mut children = BTreeMap::<i32, Vec<&Counted<'_>>>::new();
        for process in all {
            children.entry(process.parent).or_default().push(process);
        }
        let certain = |process: &&Counted<'_>| self.is_certain(process);
        let mut ours: Vec<&Counted<'_>> = all.iter().filter(certain).collect();
        let mut seen: BTreeSet<i32> = ours.iter().map(|process| process.pid).collect();
        // Neither the keeper nor whoever looks.
        seen.extend([self.keeper, i32::try_from(std::process::id()).unwrap_or(0)]);
        let of_keeper = children.get(&self.keeper).into_iter().flatten();
        ours.extend(of_keeper.filter(|process| seen.insert(process.pid)));
        let mut next = 0;
        while next < ours.len() {
            let below = children.get(&ours[next].pid).into_iter().flatten();
            ours.extend(below.filter(|process| seen.insert(process.pid)));
            next += 1;
        }
        self.known = ours.iter().map(|process| (process.pid, process.started_s)).collect();
        let made = ours.iter().filter(|process| process.session == process.pid);
        self.sessions.extend(made.map(|process| process.pid));
        // One that is empty may be somebody else's by and by.
        let used: BTreeSet<i32> = ours.iter().map(|process| process.session).collect();
        self.sessions.retain(|session| *session == self.keeper || used.contains(session));
        ours.into_iter().map(as_process).collect()
    }

    /// Those who belonged to the task at the last look.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.known.keys().filter_map(|pid| u32::try_from(*pid).ok()).collect()
    }

    /// Ends all of a task whose keeper is gone, for so long as that may take.
    pub(super) fn end_all(&mut self, patience: Duration, clock: &MachineClock) -> io::Result<()> {
        let (mut census, begun) = (Census::new()?, clock.steady());
        loop {
            let mut living = self.follow(&census.count()?);
            living.retain(|process| !process.zombie);
            if living.is_empty() || clock.steady().saturating_duration_since(begun) > patience {
                return Ok(());
            }
            for pid in living.iter().filter_map(|process| Pid::from_raw(process.pid)) {
                // It may be gone, which is what we want.
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether it is of the task, whoever its parent is.
    fn is_certain(&self, process: &Counted<'_>) -> bool {
        let own = u32::try_from(process.pid) == Ok(std::process::id());
        process.pid != self.keeper
            && !own
            && (self.known.get(&process.pid) == Some(&process.started_s)
                || self.sessions.contains(&process.session)
                || self.words.iter().all(|word| process.env.contains(word)))
    }
}

fn as_process(process: &Counted<'_>) -> Process {
    let group = Pid::from_raw(process.pid).map(|pid| rustix::process::getpgid(Some(pid)));
    Process {
        pid: process.pid,
        parent: process.parent,
        // One that has ended meanwhile has none.
        group: group.and_then(Result::ok).map_or(0, Pid::as_raw_pid),
        // Threads are not told everywhere.
        threads: 1,
        resident_bytes: process.resident_bytes,
        zombie: process.zombie,
    }
}

/// A keeper's own look at its task: often at first, when most programs start others, then seldom.
pub(super) struct Follower {
    census: Census,
    trail: Option<Trail>,
    clock: MachineClock,
    due: Instant,
    pause: Duration,
}

impl Follower {
    pub(super) fn new(clock: MachineClock) -> io::Result<Follower> {
        let due = clock.steady();
        Ok(Follower { census: Census::new()?, trail: None, clock, due, pause: FIRST })
    }

    /// How many processes a user has.
    pub(super) fn count_of(&mut self, uid: u32) -> io::Result<u64> {
        let all = self.census.count()?;
        Ok(all.iter().filter(|process| process.user == Some(uid)).count() as u64)
    }

    /// Another task begins.
    pub(super) fn begin(&mut self, launch: &Launch, mark: &str) {
        self.trail = Some(Trail::new(std::process::id(), launch, mark));
        (self.due, self.pause) = (self.clock.steady() + FIRST, FIRST);
    }

    /// How long it is until the next look.
    pub(super) fn patience(&self) -> Duration {
        self.due.saturating_duration_since(self.clock.steady())
    }

    /// Looks if it is time to.
    pub(super) fn look_if_due(&mut self) {
        if self.due <= self.clock.steady() {
            // What was not seen now is seen at the next look, or by its mark.
            let _ = self.look();
            self.pause = (self.pause * 2).min(SELDOM);
            self.due = self.clock.steady() + self.pause;
        }
    }

    /// Those who belong to the task now.
    pub(super) fn look(&mut self) -> io::Result<Vec<Process>> {
        let all = self.census.count()?;
        Ok(self.trail.as_mut().map_or_else(Vec::new, |trail| trail.follow(&all)))
    }
}

/// What can be read once a child has ended; it is still to be reaped.
pub(super) fn ending(child: Pid) -> io::Result<OwnedFd> {
    let (read, write) = io::pipe()?;
    std::thread::Builder::new().name("wait".into()).spawn(move || {
        let open = write;
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        // Any other answer says that it is gone, too.
        while let Err(rustix::io::Errno::INTR) = rustix::process::waitid(WaitId::Pid(child), ended)
        {
        }
        drop(open);
    })?;
    Ok(read.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::tests::launch;

    const KEEPER: u32 = 1_000_010;

    /// None of these numbers is a process of any machine.
    fn process(pid: i32, parent: i32, session: i32) -> Counted<'static> {
        Counted {
            pid: 1_000_000 + pid,
            parent: 1_000_000 + parent,
            session: 1_000_000 + session,
            started_s: 7,
            user: None,
            zombie: false,
            resident_bytes: 10,
            cpu_ms: 0,
            disk_bytes: (0, 0),
            env: &[],
        }
    }

    fn trail() -> Trail {
        Trail::new(KEEPER, &launch(7, &["true"]), "m")
    }

    fn followed(trail: &mut Trail, all: &[Counted<'_>]) -> Vec<i32> {
        let mut pids: Vec<i32> = trail.follow(all).iter().map(|p| p.pid - 1_000_000).collect();
        pids.sort_unstable();
        pids
    }

    #[test]
    fn descendants_and_whoever_stayed_in_the_session_belong_and_strangers_do_not() {
        let all = [
            process(1, 0, 1),
            process(10, 1, 10),  // the keeper
            process(11, 10, 10), // the task
            process(12, 11, 12), // a child with a session of its own
            process(13, 1, 10),  // an orphan in the session
            process(14, 13, 14), // below that
            process(20, 1, 20),  // another keeper
            process(21, 20, 20),
        ];
        assert_eq!(followed(&mut trail(), &all), [11, 12, 13, 14]);
    }

    #[test]
    fn who_was_seen_once_belongs_whatever_becomes_of_its_parents() {
        let mut trail = trail();
        let (keeper, task) = (process(10, 1, 10), process(11, 10, 10));
        let all = [keeper, task, process(12, 11, 12), process(13, 12, 13)];
        assert_eq!(followed(&mut trail, &all), [11, 12, 13]);
        // Two parents are gone, and one has had a child in its own session.
        let all = [keeper, process(13, 1, 13), process(15, 1, 13), process(16, 1, 12)];
        assert_eq!(followed(&mut trail, &all), [13, 15, 16]);
        assert_eq!(followed(&mut trail, &[keeper]), [0; 0]);
    }

    #[test]
    fn a_number_that_is_another_process_by_now_does_not_belong() {
        let mut trail = trail();
        let keeper = process(10, 1, 10);
        assert_eq!(followed(&mut trail, &[keeper, process(11, 10, 11)]), [11]);
        let other = Counted { started_s: 8, ..process(11, 1, 50) };
        assert_eq!(followed(&mut trail, &[keeper, other]), [0; 0]);
        let session = Counted { started_s: 9, ..process(11, 1, 11) };
        assert_eq!(followed(&mut trail, &[keeper, session]), [0; 0], "nor a session");
    }

    #[test]
    fn who_says_so_belongs_and_who_says_half_of_it_does_not() {
        let words: Vec<OsString> =
            crate::task::words(launch(7, &["true"]).task, "m").map(OsString::from).into();
        let other: Vec<OsString> =
            crate::task::words(launch(8, &["true"]).task, "m").map(OsString::from).into();
        let all = [
            Counted { env: &words, ..process(30, 1, 30) },
            process(31, 30, 31),
            Counted { env: &other, ..process(40, 1, 40) },
            Counted { env: &words[..1], ..process(41, 1, 41) },
        ];
        assert_eq!(followed(&mut trail(), &all), [30, 31]);
    }

    #[test]
    fn neither_the_keeper_nor_whoever_looks_belongs() {
        let own = i32::try_from(std::process::id()).expect("small");
        let mut all = [process(10, 1, 10), process(11, 10, 10)];
        all[1].pid = own;
        assert_eq!(followed(&mut trail(), &all), [0; 0]);
    }

    #[test]
    fn the_end_of_a_child_can_be_waited_for_beside_other_things_and_is_still_to_be_reaped() {
        use rustix::event::{PollFd, PollFlags, Timespec};
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read x; exit 7"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("started");
        let ending = ending(Pid::from_child(&child)).expect("waited for");
        let has_ended = |ms: i64| {
            let mut fds = [PollFd::new(&ending, PollFlags::IN)];
            let left = Timespec { tv_sec: ms / 1000, tv_nsec: ms % 1000 * 1_000_000 };
            rustix::event::poll(&mut fds, Some(&left)).expect("polled") > 0
        };
        assert!(!has_ended(20));
        drop(child.stdin.take());
        assert!(has_ended(60_000));
        assert_eq!(child.wait().expect("reaped").code(), Some(7));
    }
}
