//! What a task sees of the file system: a mount namespace of its own.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::UnshareFlags;

use super::{Isolation, Unisolated, View};

fn step(what: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> Unisolated {
    let what = what.into();
    move |errno| Unisolated::Step { what, source: errno.into() }
}

impl Isolation {
    /// Finds out what is permitted here, and what is to be said about it. It enters and leaves a
    /// namespace for a try, so the caller must have one thread only.
    pub fn probe(first_uid: u32, task_root: &Path) -> (Isolation, Vec<String>) {
        if !rustix::process::geteuid().is_root() {
            return Isolation::without_mounts(first_uid);
        }
        let tried = std::fs::create_dir_all(task_root)
            .map_err(|source| Unisolated::Step { what: "make /run/era".into(), source })
            .and_then(|()| MountNamespace::from_home())
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
}

/// A stay in a mount namespace made for one task. The task keeps it after we are [`MountNamespace::back`].
#[derive(Debug)]
pub struct MountNamespace {
    home: File,
}

impl MountNamespace {
    /// Enters a new namespace that nothing propagates out of.
    pub fn from_home() -> Result<MountNamespace, Unisolated> {
        let home = File::open("/proc/thread-self/ns/mnt")
            .map_err(|source| Unisolated::Step { what: "find our mounts".into(), source })?;
        own(UnshareFlags::NEWNS).map_err(step("make a mount namespace"))?;
        let away = MountNamespace { home };
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
        for shared in ["/var/tmp", "/run/lock"] {
            match rustix::mount::mount_bind("/tmp", shared) {
                Ok(()) | Err(rustix::io::Errno::NOENT) => {}
                Err(errno) => return Err(step(format!("make a private {shared}"))(errno)),
            }
        }
        for device in view.closed {
            close(device)?;
        }
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

/// Makes it impossible to open a device: it is shown in its own place, but by a mount on which no
/// device opens. So it is still the device that a driver's library looks for, and one that it may
/// not use.
fn close(device: &Path) -> Result<(), Unisolated> {
    match rustix::mount::mount_bind(device, device) {
        // It went away, which is as good.
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        bound => bound.map_err(step(format!("cover {}", device.display())))?,
    }
    let flags = MountFlags::BIND | MountFlags::NODEV | MountFlags::NOSUID;
    rustix::mount::mount_remount(device, flags, c"")
        .map_err(step(format!("close {}", device.display())))
}

/// Moves the calling thread into a namespace of its own.
#[allow(unsafe_code)]
pub(super) fn own(kind: UnshareFlags) -> rustix::io::Result<()> {
    debug_assert!(!kind.contains(UnshareFlags::FILES));
    // SAFETY: the danger that rustix names is of `UnshareFlags::FILES`, which takes descriptors
    // away from other threads. Namespaces touch no descriptor.
    unsafe { rustix::thread::unshare_unsafe(kind) }
}
