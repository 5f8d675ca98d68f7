//! The two calls of this crate that the compiler cannot vouch for (decision 0014).
//!
//! Both are one system call on values that are known beforehand: no allocation, no lock, nothing
//! of ours that another thread could hold. Everything else that isolates a task is safe code.
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Signal;
use rustix::thread::UnshareFlags;

/// Lets a child die with the thread that starts it: the last line of defence if a keeper is killed
/// before it can end what it keeps. The kernel forgets this on a change of user, so it is done
/// here, after the standard library has changed it.
pub(crate) fn die_with_parent(command: &mut Command) {
    let closure = || Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. The closure captures
    // nothing and makes a single `prctl` system call, which rustix issues directly; turning its
    // error number into an `io::Error` does not allocate.
    unsafe { command.pre_exec(closure) };
}

/// Moves the calling thread into a mount namespace of its own.
pub(crate) fn own_mounts() -> rustix::io::Result<()> {
    // SAFETY: the danger that rustix names is of `UnshareFlags::FILES`, which takes descriptors
    // away from other threads. `NEWNS` touches no descriptor.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }
}
