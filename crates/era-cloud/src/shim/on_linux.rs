//! What only Linux gives to a supervisor and its keepers; on other systems `elsewhere` stands here.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Pid, PidfdFlags};

/// Whether tasks are followed by means that every Unix has.
pub(super) const PORTABLE: bool = false;
/// Files that are received are not for children.
pub(super) const RECEIVE: RecvFlags = RecvFlags::CMSG_CLOEXEC;
/// A supervisor outlives whoever it writes to.
pub(super) const SEND: SendFlags = SendFlags::NOSIGNAL;
/// Our program, even if its file has been replaced since.
pub(super) const PROGRAM: Option<&str> = Some("/proc/self/exe");

/// Orphans among those below us become our children, whatever they do.
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// What we start gains no privileges from the file that it is started from.
pub(super) fn gain_nothing() -> io::Result<()> {
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// What can be read once a child has ended; it is still to be reaped.
pub(super) fn ending(child: Pid) -> io::Result<OwnedFd> {
    Ok(rustix::process::pidfd_open(child, PidfdFlags::empty())?)
}
