//! Namespaces of System V's shared memory where there are none: on systems other than Linux.

use std::io;

/// Refused.
pub(crate) fn anew() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// What a task leaves there stays, as it does without root.
pub(crate) fn is_used() -> bool {
    false
}
