//! The machine's clock for commands that people run and for what measures: the one place of this
//! program that reads it. What runs for long (a server, a worker, a supervisor) is handed its clock
//! where it starts. The reader's zone is not known here.

use std::time::Instant;

use jiff::Timestamp;

/// The time.
#[expect(clippy::disallowed_methods, reason = "a command reads the clock of its machine")]
pub(crate) fn timestamp() -> Timestamp {
    Timestamp::now()
}

/// An instant, from which it is measured or waited.
#[expect(clippy::disallowed_methods, reason = "a command measures and waits in real time")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// The clock of this machine, for what is started here and runs for long.
#[cfg(unix)]
#[expect(clippy::disallowed_methods, reason = "here a server, worker or supervisor gets its clock")]
pub(crate) fn machine() -> era_cloud::clock::MachineClock {
    era_cloud::clock::MachineClock::system()
}
