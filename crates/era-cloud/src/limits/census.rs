//! All processes, on any Unix, as the `sysinfo` crate finds them.
//!
//! Where there is `/proc`, [`super::tree`] reads less of it and is done sooner. This is for systems
//! without, and for trying what runs there.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use sysinfo::{Pid, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind};

/// How often a system is asked that does not say who is there.
const TRIES: u32 = 10;

/// Looks at all processes again and again.
pub(crate) struct Census {
    system: System,
}

/// One process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted<'a> {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    /// Its session: that of its parent, unless it has made one of its own.
    pub(crate) session: i32,
    /// When it began, in seconds since 1970: a number may be another process's by and by.
    pub(crate) started_s: u64,
    pub(crate) user: Option<u32>,
    /// Whether it is dead and only waits to be noticed.
    pub(crate) zombie: bool,
    /// Bytes that it holds in memory, shared ones included.
    pub(crate) resident_bytes: u64,
    /// What it has used itself.
    pub(crate) cpu_ms: u64,
    /// Bytes that it has read and written.
    pub(crate) disk_bytes: (u64, u64),
    /// Its environment, as far as it may be seen: on macOS not that of the system's own programs.
    pub(crate) env: &'a [OsString],
}

impl Census {
    pub(crate) fn new() -> io::Result<Census> {
        Ok(Census { system: System::new().map_err(io::Error::other)? })
    }

    /// Everybody who is there now. An empty answer is never given: it would be taken for the end
    /// of all tasks.
    pub(crate) fn count(&mut self) -> io::Result<Vec<Counted<'_>>> {
        let kind = ProcessRefreshKind::nothing()
            .without_tasks()
            .with_memory()
            .with_cpu()
            .with_disk_usage()
            .with_user(UpdateKind::OnlyIfNotSet)
            .with_environ(UpdateKind::OnlyIfNotSet);
        let own = Pid::from_u32(std::process::id());
        for _ in 0..TRIES {
            self.system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
            // A list that grew while it was made may come to nothing.
            if self.system.process(own).is_some() {
                return Ok(self.system.processes().values().filter_map(counted).collect());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(io::Error::other("the system does not say which processes there are"))
    }
}

fn counted(process: &sysinfo::Process) -> Option<Counted<'_>> {
    let number = |pid: Pid| i32::try_from(pid.as_u32()).ok();
    let disk = process.disk_usage();
    Some(Counted {
        pid: number(process.pid())?,
        parent: process.parent().and_then(number).unwrap_or(0),
        session: process.session_id().and_then(number).unwrap_or(0),
        started_s: process.start_time(),
        user: process.user_id().map(|user| **user),
        zombie: process.status() == ProcessStatus::Zombie,
        resident_bytes: process.memory(),
        cpu_ms: process.accumulated_cpu_time(),
        disk_bytes: (disk.total_read_bytes, disk.total_written_bytes),
        env: process.environ(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a container it may be 0, its first process being outside: rustix takes that for
    /// impossible.
    fn own_session() -> i32 {
        if !cfg!(target_os = "linux") {
            return rustix::process::getsid(None).expect("one").as_raw_pid();
        }
        let stat = std::fs::read_to_string("/proc/self/stat").expect("our line");
        let (_, fields) = stat.rsplit_once(") ").expect("a name");
        fields.split(' ').nth(3).expect("a session").parse().expect("a number")
    }

    #[test]
    fn we_are_there_with_what_we_have() {
        let mut census = Census::new().expect("a census");
        let own = i32::try_from(std::process::id()).expect("small");
        let parent = i32::try_from(std::os::unix::process::parent_id()).expect("small");
        for _ in 0..2 {
            let all = census.count().expect("counted");
            let we = all.iter().find(|counted| counted.pid == own).expect("we are there");
            assert_eq!((we.parent, we.zombie), (parent, false));
            assert_eq!(we.session, own_session());
            assert_eq!(we.user, Some(rustix::process::geteuid().as_raw()));
            assert!(we.resident_bytes > 1 << 20 && we.started_s > 1_600_000_000);
            assert!(we.env.iter().any(|pair| pair.to_string_lossy().starts_with("PATH=")));
            let threads = all.iter().filter(|counted| counted.pid == own).count();
            assert_eq!(threads, 1, "a thread is no process");
        }
    }

    #[test]
    fn who_has_ended_is_no_longer_there_and_a_zombie_is_told_apart() {
        let mut census = Census::new().expect("a census");
        let mut child = std::process::Command::new("true").spawn().expect("started");
        let pid = i32::try_from(child.id()).expect("small");
        let find = |census: &mut Census| {
            let all = census.count().expect("counted");
            all.iter().find(|counted| counted.pid == pid).map(|counted| counted.zombie)
        };
        while find(&mut census) == Some(false) {}
        assert_eq!(find(&mut census), Some(true));
        child.wait().expect("reaped");
        assert_eq!(find(&mut census), None);
    }
}
