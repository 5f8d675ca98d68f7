//! What a supervisor and its keepers make do with on systems other than Linux (decision 0022).

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{RecvFlags, SendFlags};
use rustix::process::Pid;

/// Whether tasks are followed by means that every Unix has.
pub(super) const PORTABLE: bool = true;
/// Files that are received are kept from children one by one.
pub(super) const RECEIVE: RecvFlags = RecvFlags::empty();
/// Our programs ignore the signal of a closed pipe, as all Rust programs do from the start.
pub(super) const SEND: SendFlags = SendFlags::empty();
/// There is no name for the file that we run, should it have been replaced.
pub(super) const PROGRAM: Option<&str> = None;

/// Orphans go to the first process of the system, and are followed there.
pub(super) fn adopt_orphans() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There is no such promise here: a task may start what gains privileges, as its user may.
pub(super) fn gain_nothing() -> io::Result<()> {
    Ok(())
}

/// What can be read once a child has ended; it is still to be reaped.
pub(super) fn ending(child: Pid) -> io::Result<OwnedFd> {
    super::trail::ending(child)
}
