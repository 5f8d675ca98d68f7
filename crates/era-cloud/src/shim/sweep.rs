//! What a supervisor ends before it begins: whatever is left of the tasks of one that died.
//!
//! Keepers end their tasks when their supervisor is gone, so there is rarely anything. But a
//! supervisor and its keepers may be killed together, and a lost task is told to be gone for
//! certain, so this is made certain here: nothing may be in the control groups that were ours, and
//! no process may carry our mark. Where there are no such groups, nothing may be in the session of
//! an earlier keeper either.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::roster;
use crate::clock::MachineClock;
use crate::limits::census::Census;
use crate::limits::cgroups;
use crate::task::MARK;

/// How long what was killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a keeper may take to end what it keeps, once its supervisor is gone. Only it has seen
/// who belongs to its task.
const KEEPER_PATIENCE: Duration = Duration::from_secs(5);

/// The mark of a supervisor's folder: what its tasks carry in their environment.
pub(super) fn mark(folder: &Path) -> io::Result<String> {
    use std::io::Read as _;
    let path = folder.join("mark");
    match std::fs::read_to_string(&path) {
        Ok(mark) if mark.len() == 32 => return Ok(mark),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut random = [0u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    let mark: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::write(path, &mark)?;
    Ok(mark)
}

/// Remembers which control groups are ours, for the next sweep.
pub(super) fn remember<'a>(
    folder: &Path,
    groups: impl Iterator<Item = &'a Path>,
) -> io::Result<()> {
    let text: String = groups.map(|path| format!("{}\n", path.display())).collect();
    std::fs::write(folder.join("cgroups"), text)
}

/// The same on any Unix.
pub(super) fn sweep_portably(folder: &Path, mark: &str, clock: &MachineClock) -> io::Result<()> {
    let (earlier, mark) = (roster::earlier(folder), format!("{MARK}={mark}").into());
    // Where that is not told, a mark has to do.
    let booted_s = sysinfo::System::boot_time().unwrap_or(u64::MAX);
    let (mut census, begun) = (Census::new()?, clock.steady());
    loop {
        let (keepers, others) = roster::left(&earlier, &mark, booted_s, &census.count()?);
        if keepers.is_empty() && others.is_empty() {
            return Ok(());
        }
        let waited = clock.steady().saturating_duration_since(begun);
        if waited > PATIENCE {
            return Err(unkillable());
        }
        if keepers.is_empty() || waited > KEEPER_PATIENCE {
            for pid in keepers.into_iter().chain(others).filter_map(Pid::from_raw) {
                // It may be gone, which is what we want.
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn unkillable() -> io::Error {
    io::Error::other(
        "processes of earlier tasks cannot be killed: look for processes in state D, then start \
         again",
    )
}

/// Ends all that is left, and returns once nothing is.
pub(super) fn sweep(folder: &Path, mark: &str, clock: &MachineClock) -> io::Result<()> {
    let text = std::fs::read_to_string(folder.join("cgroups")).unwrap_or_default();
    let groups: Vec<PathBuf> = text.lines().map(PathBuf::from).collect();
    let begun = clock.steady();
    loop {
        let in_groups = groups.iter().map(|path| cgroups::kill_in(path)).any(|empty| !empty);
        let marked = kill_marked(mark);
        if !in_groups && !marked {
            break;
        }
        if clock.steady().saturating_duration_since(begun) > PATIENCE {
            return Err(unkillable());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    for group in &groups {
        let Ok(slots) = std::fs::read_dir(group) else { continue };
        for slot in slots.flatten().filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir())) {
            // What cannot be removed is in nobody's way.
            let _ = std::fs::remove_dir(slot.path());
        }
    }
    Ok(())
}

/// Kills processes that carry the mark, and says whether there were any.
fn kill_marked(mark: &str) -> bool {
    let wanted = format!("{MARK}={mark}");
    let Ok(folder) = std::fs::read_dir("/proc") else { return false };
    let mut any = false;
    for pid in folder.flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok()) {
        // Those that we may not read are not ours.
        let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { continue };
        let marked = environment.split(|byte| *byte == 0).any(|pair| pair == wanted.as_bytes());
        if marked && let Some(pid) = Pid::from_raw(pid) {
            any = true;
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_carries_our_mark_is_ended_and_nothing_else() {
        only_what_is_marked_is_ended(sweep);
        only_what_is_marked_is_ended(sweep_portably);
    }

    fn only_what_is_marked_is_ended(sweep: fn(&Path, &str, &MachineClock) -> io::Result<()>) {
        let folder = tempfile::tempdir().expect("a folder");
        let mark = mark(folder.path()).expect("a mark");
        assert_eq!(super::mark(folder.path()).expect("the same"), mark);
        let start = |mark: &str| {
            let mut command = std::process::Command::new("sleep");
            command.arg("100").env(MARK, mark).spawn().expect("sleep")
        };
        let (mut ours, mut other) = (start(&mark), start("another"));
        // A test is the parent and has to reap; a zombie has no environment.
        let reaper = std::thread::spawn(move || ours.wait().expect("reaped"));
        sweep(folder.path(), &mark, &MachineClock::system()).expect("swept");
        assert!(!reaper.join().expect("joined").success());
        assert_eq!(other.try_wait().expect("asked"), None);
        other.kill().expect("killed");
        other.wait().expect("reaped");
    }
}
