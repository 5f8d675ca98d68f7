//! The supervisor of a node: a small process that outlives the server.
//!
//! A server may be killed, restarted or upgraded while tasks run. The supervisor goes on: it ends
//! tasks whose time is over, keeps how each ended until a server has acknowledged that, and takes
//! orders by task, so that an order given twice changes nothing. They talk over a Unix socket in
//! the supervisor's folder ([`protocol`]).
//!
//! ```text
//!   server ──socket── supervisor ──socket── keeper ── task and all its descendants
//!                        └─── two pipes, or a terminal ┘
//! ```
//!
//! Each task has a [`keeper`](keep) as its parent; keepers are used again. If the supervisor dies,
//! its keepers see their sockets close and end their tasks, and what is left even so is swept when
//! the next supervisor starts, before it says anything. So a task that a supervisor does not know
//! is certainly gone.
//!
//! The supervisor does not know jobs, prices or users' rights, and asks nobody: it has no thread a
//! task, no clock but the steady one for deadlines, and one loop over everything that it waits for.

mod connection;
mod emptied;
mod ended;
mod faults;
mod keeper;
pub mod protocol;
mod roster;
mod slot;
mod socket;
mod supervise;
mod sweep;
#[cfg_attr(target_os = "linux", path = "on_linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod system;
mod task;
mod terminal;
#[cfg(test)]
pub(crate) mod tests;
mod trail;

pub use keeper::keep;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use crate::clock::MachineClock;
use crate::isolate::{Isolation, TASK_ROOT};
use crate::limits::cgroups::Cgroups;
use crate::task::SupervisorSettings;
use supervise::{Supervisor, SupervisorFiles};

/// Longest path of a socket that systems accept: 103 bytes on macOS, a few more on Linux.
const SOCKET_PATH_MAX: usize = 100;

/// What is said where there are no control groups.
pub const LIMITS_WITHOUT_LINUX: &str = "this system has no control groups: processor time is not \
    limited, and memory is sampled and enforced by a kill, as is the number of processes";
const ORPHANS_WITHOUT_LINUX: &str = "this system gives orphans to nobody: a process that leaves \
    its session and its parent at once may outlive its task";
/// Most open files that macOS lets a process ask for, whatever it says that it may have.
const OPEN_FILES_MAX: u64 = 10_240;

/// Why a supervisor cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    /// Another one runs on this folder.
    #[error("another supervisor runs on {0}: talk to that one")]
    Taken(PathBuf),
    /// The path of its socket would be too long.
    #[error("{0} is too long a path for a socket: choose a shorter data folder")]
    LongPath(PathBuf),
    #[error("could not {what}: {source}")]
    Io {
        /// What was to be done.
        what: &'static str,
        /// Why it could not.
        source: io::Error,
    },
}

fn doing(what: &'static str) -> impl FnOnce(io::Error) -> ShimError {
    move |source| ShimError::Io { what, source }
}

/// The socket of the supervisor on a folder.
pub fn socket(folder: &Path) -> Result<PathBuf, ShimError> {
    let path = folder.join("socket");
    if path.as_os_str().len() > SOCKET_PATH_MAX {
        return Err(ShimError::LongPath(path));
    }
    Ok(path)
}

/// Runs the supervisor of a folder until it is asked to leave. `keeper_arguments` make the running
/// program call [`keep`].
pub fn run(
    folder: &Path,
    keeper_arguments: &[String],
    clock: MachineClock,
) -> Result<(), ShimError> {
    // A session of its own: what ends the server's terminal or group does not end it. It fails for
    // the leader of a group, which has no terminal to lose either.
    let _ = rustix::process::setsid();
    std::fs::create_dir_all(folder).map_err(doing("make the supervisor's folder"))?;
    let folder = folder.canonicalize().map_err(doing("find the supervisor's folder"))?;
    let socket = socket(&folder)?;
    let _lock = lock(&folder)?;
    let mut settings = SupervisorSettings::read(&folder).map_err(doing("read settings.json"))?;
    settings.portable |= system::PORTABLE;
    let mark = sweep::mark(&folder).map_err(doing("make a mark for tasks"))?;
    let swept = if settings.portable {
        sweep::sweep_portably(&folder, &mark, &clock)
    } else {
        system::adopt_orphans().map_err(doing("adopt orphans"))?;
        sweep::sweep(&folder, &mark, &clock)
    };
    swept.map_err(doing("end what an earlier supervisor left"))?;

    let (cgroups, mut notes) = if settings.portable {
        (Cgroups::default(), vec![LIMITS_WITHOUT_LINUX.into(), ORPHANS_WITHOUT_LINUX.into()])
    } else if settings.cgroups {
        Cgroups::set_up(&format!("era-{}", &mark[..8]))
    } else {
        let note = "control groups are switched off: memory is sampled and enforced by a kill";
        (Cgroups::default(), vec![note.into()])
    };
    sweep::remember(&folder, cgroups.parents()).map_err(doing("remember control groups"))?;
    let (isolation, more) = if !settings.isolation {
        (Isolation::NONE, vec!["isolation is switched off: tasks run as the server does".into()])
    } else if settings.portable {
        Isolation::without_mounts(settings.first_uid)
    } else {
        Isolation::probe(settings.first_uid, Path::new(TASK_ROOT))
    };
    notes.extend(more);

    let open_files = more_files().map_err(doing("raise the limit of open files"))?;
    let roster = match settings.portable {
        true => roster::Roster::new(&folder),
        false => roster::Roster::default(),
    };
    let node = keeper::NodeContext {
        program: program(&folder, &settings).map_err(doing("find our own program"))?,
        settings,
        isolation,
        mark,
        groups: Vec::new(),
        spare: spares(&folder).map_err(doing("make a place for spare folders"))?,
        groups_limit_processes: cgroups.limits_processes(),
        open_files,
    };
    let ended = ended::EndedTasks::open(&folder).map_err(doing("read how tasks ended"))?;
    let socket = socket::SupervisorSocket::open(socket).map_err(doing("listen on the socket"))?;
    let own = SupervisorFiles { socket, roster, ended };
    let mut supervisor = Supervisor::new(own, node, cgroups, notes, keeper_arguments, clock);
    supervisor.run().map_err(doing("go on"))?;
    supervisor.close();
    Ok(())
}

/// One supervisor a folder. The lock goes with the process.
fn lock(folder: &Path) -> Result<File, ShimError> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join("lock"))
        .map_err(doing("open the lock"))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(ShimError::Taken(folder.into())),
        Err(errno) => Err(doing("lock the folder")(errno.into())),
    }
}

/// An empty folder that only we see, in which folders are put aside.
fn spares(folder: &Path) -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let path = folder.join("spare");
    match std::fs::remove_dir_all(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}

/// A keeper and its task have three channels, so many tasks need many files. Returns what was the limit, which
/// tasks get.
fn more_files() -> io::Result<Option<u64>> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current;
    limit.current = limit.maximum;
    if setrlimit(Resource::Nofile, limit).is_err() {
        limit.current = Some(limit.maximum.map_or(OPEN_FILES_MAX, |most| most.min(OPEN_FILES_MAX)));
        setrlimit(Resource::Nofile, limit)?;
    }
    Ok(before)
}

/// What keepers are started from: the program that we are, even if its file is replaced meanwhile.
/// Where the system has no name for that, a second name of the file in our folder; on another disk
/// it is the file itself, and after an upgrade keepers are started from the new one.
fn program(folder: &Path, settings: &SupervisorSettings) -> io::Result<PathBuf> {
    if let Some(program) = system::PROGRAM.filter(|_| !settings.portable) {
        return Ok(program.into());
    }
    let (running, own) = (std::env::current_exe()?, folder.join("program"));
    let _ = std::fs::remove_file(&own);
    Ok(std::fs::hard_link(&running, &own).map_or(running, |()| own))
}
