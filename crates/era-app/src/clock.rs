//! What time it is: the one place where the server asks.
//!
//! Only the driver's time enters the journal, and there it never runs backwards; whoever wants to
//! know what a bid would get now asks this clock too. Where the machine's clock is set back,
//! [`ForwardTime`] says what time it is until that one has caught up.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use era_core::units::{Span, Time};
use era_drive::ForwardTime;

/// Something that tells the time.
pub trait Clock: Send + Sync {
    /// The time now. It may step back.
    fn now(&self) -> Time;

    /// How long it has been running, also while this process was paused or the machine suspended.
    /// It never steps, and means nothing to another machine.
    fn up(&self) -> Duration;

    /// How far the time is ahead of the machine's clock, by which those go who were told a time.
    fn ahead(&self) -> Span {
        Span::ZERO
    }
}

/// The machine's clock, which may be set at any time.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the time")]
pub(crate) fn machine() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // A clock beyond the year 9999 is wrong; the core would refuse every input of it.
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).min(Time::LATEST)
}

/// The clock of this process. It never runs backwards.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// One for the process: whoever asks next hears no earlier time.
static FORWARD: Mutex<ForwardTime> = Mutex::new(ForwardTime::new());

fn forward(machine: Time) -> Time {
    // What is kept is whole at every moment.
    FORWARD.lock().unwrap_or_else(PoisonError::into_inner).now(machine, SystemClock.up())
}

impl SystemClock {
    /// Makes it go on from here at least, as after a restart on a clock that was set back
    /// meanwhile.
    pub fn not_before(self, to: Time) {
        forward(to);
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        forward(machine())
    }

    fn up(&self) -> Duration {
        #[cfg(target_os = "linux")]
        let clock = rustix::time::ClockId::Boottime;
        // On macOS this one goes on during sleep, by its manual.
        #[cfg(not(target_os = "linux"))]
        let clock = rustix::time::ClockId::Monotonic;
        // Neither is ever before the start.
        Duration::try_from(rustix::time::clock_gettime(clock)).unwrap_or_default()
    }

    fn ahead(&self) -> Span {
        let machine = machine();
        Span(forward(machine).0 - machine.0)
    }
}
