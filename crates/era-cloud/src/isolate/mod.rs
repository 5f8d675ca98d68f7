//! What keeps one user's task away from everything that is not its own.
//!
//! As root a task runs under a user id of its user, may gain no privileges, and sees the file
//! system through a mount namespace of its own: its job's folder at [`TASK_ROOT`], a `/tmp` and a
//! `/dev/shm` that nobody else sees, its inputs read-only, and nothing of ERA's own folder. The
//! network is as it is. Without root, or where namespaces are not permitted, less of this holds;
//! [`Isolation::probe`] finds out how much, and says so in words.
//!
//! A keeper (see [`crate::shim`]) enters the namespace, starts the task there and leaves it again,
//! so all of it is ordinary code with ordinary errors and nothing happens between fork and exec
//! but what `before_exec` holds. What a task may use up is not known here; see
//! [`crate::limits`].

pub(crate) mod before_exec;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use era_core::units::UserId;
use rustix::mount::{MountFlags, MountPropagationFlags};
use serde::{Deserialize, Serialize};

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

/// Why a task could not be isolated.
#[derive(Debug, thiserror::Error)]
pub enum Unisolated {
    /// There is no user id for this user.
    #[error("user {0} has no user id of its own: lower the first user id in the node's settings")]
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

fn step(what: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> Unisolated {
    let what = what.into();
    move |errno| Unisolated::Step { what, source: errno.into() }
}

impl Isolation {
    /// Nothing but a working folder of its own.
    pub const NONE: Isolation = Isolation { first_uid: None, namespaces: false };

    /// Finds out what is permitted here, and what is to be said about it. It enters and leaves a
    /// namespace for a try, so the caller must have one thread only.
    pub fn probe(first_uid: u32, task_root: &Path) -> (Isolation, Vec<String>) {
        if !rustix::process::geteuid().is_root() {
            let note = "not root: tasks run as the server's own user, and see what it sees";
            return (Isolation::NONE, vec![note.into()]);
        }
        let tried = std::fs::create_dir_all(task_root)
            .map_err(|source| Unisolated::Step { what: "make /run/era".into(), source })
            .and_then(|()| Away::from_home())
            .and_then(|away| away.back());
        let namespaces = tried.is_ok();
        let notes = tried.err().map(|why| {
            format!(
                "mount namespaces are not permitted ({why}): user ids and file permissions alone \
                 keep tasks apart"
            )
        });
        (Isolation { first_uid: Some(first_uid), namespaces }, notes.into_iter().collect())
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

/// What a task sees that others do not. Paths are those outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View<'a> {
    /// The job's folder, seen at the task root.
    pub folder: &'a Path,
    /// Where that is.
    pub root: &'a Path,
    /// What `/tmp` is.
    pub tmp: &'a Path,
    /// Folders or files to see read-only: from outside, to a path inside that exists.
    pub read_only: &'a [(PathBuf, PathBuf)],
    /// Folders to see nothing of.
    pub hidden: &'a [PathBuf],
    /// Most bytes of `/dev/shm`.
    pub shm_bytes: u64,
}

/// A stay in a mount namespace made for one task. The task keeps it after we are [`Away::back`].
#[derive(Debug)]
pub struct Away {
    home: File,
}

impl Away {
    /// Enters a new namespace that nothing propagates out of.
    pub fn from_home() -> Result<Away, Unisolated> {
        let home = File::open("/proc/thread-self/ns/mnt")
            .map_err(|source| Unisolated::Step { what: "find our mounts".into(), source })?;
        before_exec::own_mounts().map_err(step("make a mount namespace"))?;
        let away = Away { home };
        rustix::mount::mount_change(
            "/",
            MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
        )
        .map_err(step("keep mounts private"))?;
        Ok(away)
    }

    /// Arranges what the task sees.
    pub fn arrange(&self, view: &View<'_>) -> Result<(), Unisolated> {
        let quiet = MountFlags::NOSUID | MountFlags::NODEV;
        bind(view.folder, view.root)?;
        for (from, to) in view.read_only {
            bind(from, to)?;
            rustix::mount::mount_remount(to, MountFlags::BIND | MountFlags::RDONLY | quiet, c"")
                .map_err(step(format!("make {} read-only", to.display())))?;
        }
        // From here on what is outside may be covered, so sources were used up before.
        bind(view.tmp, Path::new("/tmp"))?;
        let size = std::ffi::CString::new(format!("size={},mode=1777", view.shm_bytes))
            .unwrap_or_default();
        match rustix::mount::mount(c"shm", c"/dev/shm", c"tmpfs", quiet, &*size) {
            // No shared memory to keep private.
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(errno) => return Err(step("make a private /dev/shm")(errno)),
        }
        for hidden in view.hidden {
            let nothing = MountFlags::RDONLY | MountFlags::NOEXEC | quiet;
            match rustix::mount::mount(c"hidden", hidden, c"tmpfs", nothing, c"size=4k,mode=0") {
                // It was under `/tmp`, say, and is out of sight already.
                Ok(()) | Err(rustix::io::Errno::NOENT) => {}
                Err(errno) => return Err(step(format!("hide {}", hidden.display()))(errno)),
            }
        }
        Ok(())
    }

    /// Goes back to where the keeper came from.
    pub fn back(self) -> Result<(), Unisolated> {
        rustix::thread::move_into_link_name_space(self.home.as_fd(), None)
            .map_err(step("leave a task's mount namespace"))
    }
}

fn bind(from: &Path, to: &Path) -> Result<(), Unisolated> {
    rustix::mount::mount_bind(from, to).map_err(step(format!(
        "show {} at {}",
        from.display(),
        to.display()
    )))
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
