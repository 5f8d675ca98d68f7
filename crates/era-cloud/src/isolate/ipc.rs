//! Shared memory, semaphores and queues of System V: a namespace of them a keeper.
//!
//! They outlive who made them, and limits on memory and disk do not see them go. A namespace for
//! each task would be plainest, but the kernel takes milliseconds to be rid of one, and tasks may
//! be a thousand a second. So a keeper has one, and enters another if its task left something.

use rustix::thread::UnshareFlags;

/// What there is of each kind, below a line of titles.
const LISTS: [&str; 3] = ["/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg"];

/// Enters a namespace in which there is nothing.
pub(crate) fn anew() -> rustix::io::Result<()> {
    super::mounts::own(UnshareFlags::NEWIPC)
}

/// Whether there is anything in the namespace that we are in.
pub(crate) fn is_used() -> bool {
    let any = |list: &&str| std::fs::read(list).is_ok_and(|text| lines(&text) > 1);
    LISTS.iter().any(any)
}

fn lines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}
