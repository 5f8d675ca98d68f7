//! What keeps one user's task away from everything that is not its own.
//!
//! As root a task runs under a user id of its user, may gain no privileges, and sees the file
//! system through a mount namespace of its own: its job's folder at [`TASK_ROOT`], a `/tmp`, a
//! `/var/tmp` and a `/dev/shm` that nobody else sees, its inputs read-only, no GPU but its own, and
//! nothing of ERA's own folder. Shared memory, semaphores and queues of System V are its own too.
//! The network is as it is. Without root, or where namespaces are not permitted, less of this
//! holds; [`Isolation::probe`] finds out how much, and says so in words.
//!
//! A keeper (see [`crate::shim`]) enters the namespace, starts the task there and leaves it again,
//! so all of it is ordinary code with ordinary errors, and between keeper and program stands only
//! what `birth` holds, or the standard library (`spawn`). What a task may use up is not known here;
//! see [`crate::limits`].

#[cfg_attr(not(target_os = "linux"), path = "no_birth.rs")]
mod birth;
pub(crate) mod devices;
#[cfg_attr(not(target_os = "linux"), path = "no_ipc.rs")]
pub(crate) mod ipc;
#[cfg_attr(not(target_os = "linux"), path = "no_mounts.rs")]
mod mounts;
mod spawn;

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use era_core::units::UserId;
use serde::{Deserialize, Serialize};

pub use mounts::MountNamespace;
#[cfg(not(target_os = "linux"))]
pub(crate) use mounts::ipc;

/// Where a task in a namespace of its own sees its job's folder, on every machine alike.
pub const TASK_ROOT: &str = "/run/era";

/// How much isolation this machine gives us the right to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// User 0 of ERA runs as this user id, and the others count on from it; `None` where tasks
    /// run as whoever runs the server.
    pub first_uid: Option<u32>,
    /// Whether tasks get a mount namespace of their own.
    pub namespaces: bool,
}

/// What a task sees that others do not. Paths are those outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View<'a> {
    /// The job's folder, seen at the task root.
    pub folder: &'a Path,
    /// Where that is.
    pub root: &'a Path,
    /// What `/tmp`, `/var/tmp` and `/run/lock` are, where others may leave files.
    pub tmp: &'a Path,
    /// Folders or files to see read-only: from outside, to a path inside that exists.
    pub read_only: &'a [(PathBuf, PathBuf)],
    /// Folders to see nothing of.
    pub hidden: &'a [PathBuf],
    /// Devices that cannot be opened.
    pub closed: &'a [PathBuf],
    /// Most bytes of `/dev/shm`.
    pub shm_bytes: u64,
}

/// A program that is to be started, and as what.
#[derive(Debug)]
pub(crate) struct Birth<'a> {
    /// The program and its arguments.
    pub(crate) command: &'a [String],
    /// All of its environment.
    pub(crate) env: &'a std::collections::BTreeMap<String, String>,
    /// Its working folder.
    pub(crate) folder: &'a Path,
    /// Its user and group; ours where there is none.
    pub(crate) uid: Option<u32>,
    /// Whether its standard input is a terminal, which becomes its own.
    pub(crate) terminal: bool,
    /// Its standard input.
    pub(crate) input: BorrowedFd<'a>,
    /// Its standard output.
    pub(crate) output: BorrowedFd<'a>,
    /// Its standard error.
    pub(crate) error: BorrowedFd<'a>,
}

/// Why a task could not be isolated.
#[derive(Debug, thiserror::Error)]
pub enum Unisolated {
    /// There is no user id for this user.
    #[error("no user id is left for this account: lower the first user id in the node's settings")]
    NoUserId(UserId),
    /// A step failed.
    #[error("could not {what}: {source}")]
    Step {
        /// What was to be done.
        what: String,
        /// Why it could not.
        source: io::Error,
    },
}

impl Isolation {
    /// Nothing but a working folder of its own.
    pub const NONE: Isolation = Isolation { first_uid: None, namespaces: false };

    /// What there is without namespaces: as root user ids, else nothing; and what is to be said
    /// about it.
    pub fn without_mounts(first_uid: u32) -> (Isolation, Vec<String>) {
        if !rustix::process::geteuid().is_root() {
            let note = "not root: tasks run as the server's own user, and see what it sees";
            return (Isolation::NONE, vec![note.into()]);
        }
        let note = "tasks see the same files as everybody: user ids and file permissions alone \
                    keep them apart";
        (Isolation { first_uid: Some(first_uid), namespaces: false }, vec![note.into()])
    }

    /// The user id that a user's tasks run under; `None` where they run as the server does.
    pub fn uid(&self, user: UserId) -> Result<Option<u32>, Unisolated> {
        let Some(first) = self.first_uid else { return Ok(None) };
        // The largest number means "no change" to the kernel, and 0 would be root.
        match first.checked_add(user.0) {
            Some(uid) if uid != u32::MAX && uid != 0 => Ok(Some(uid)),
            _ => Err(Unisolated::NoUserId(user)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_count_on_from_the_first_user_id() {
        let isolation = Isolation { first_uid: Some(100_000), namespaces: false };
        assert_eq!(isolation.uid(UserId(0)).ok(), Some(Some(100_000)));
        assert_eq!(isolation.uid(UserId(7)).ok(), Some(Some(100_007)));
        assert_eq!(Isolation::NONE.uid(UserId(7)).ok(), Some(None));
    }

    #[test]
    fn nobody_runs_as_root_or_as_nobody_knows_whom() {
        let isolation = Isolation { first_uid: Some(100_000), namespaces: false };
        for user in [u32::MAX, u32::MAX - 100_000, u32::MAX - 99_999] {
            assert!(isolation.uid(UserId(user)).is_err(), "{user}");
        }
        let from_zero = Isolation { first_uid: Some(0), namespaces: false };
        assert!(from_zero.uid(UserId(0)).is_err());
    }
}
