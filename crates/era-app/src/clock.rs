//! What time it is for a server. Whoever starts one makes its clock and hands it in; nothing else
//! reads the time.
//!
//! Only the driver's time enters the journal, and there it never runs backwards; whoever wants to
//! know what a bid would get now asks this clock too. Where the machine's clock is set back,
//! [`ForwardTime`] says what time it is until that one has caught up.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use era_cloud::clock::MachineClock;
use era_core::units::{Span, Time};
use era_drive::ForwardTime;
use era_store::files::MillisClock;

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

    /// The time by the machine's clock: for what is compared with the clocks of others, such as
    /// how long a token is good.
    fn machine(&self) -> Time {
        self.now() - self.ahead()
    }
}

/// A machine's clock as a server goes by it. It never runs backwards.
#[derive(Debug)]
pub struct SystemClock {
    machine: MachineClock,
    /// One for all who ask: whoever asks next hears no earlier time.
    forward: Mutex<ForwardTime>,
}

impl SystemClock {
    /// The clock of a server on the machine whose clock this is.
    pub fn new(machine: MachineClock) -> SystemClock {
        SystemClock { machine, forward: Mutex::new(ForwardTime::new()) }
    }

    /// Makes it go on from here at least, as after a restart on a clock that was set back
    /// meanwhile.
    pub fn not_before(&self, to: Time) {
        self.forward(to);
    }

    fn forward(&self, machine: Time) -> Time {
        // What is kept is whole at every moment.
        self.forward.lock().unwrap_or_else(PoisonError::into_inner).now(machine, self.up())
    }
}

/// The machine's clock as those who keep files go by it.
pub fn millis(clock: Arc<dyn Clock>) -> MillisClock {
    Arc::new(move || clock.machine().0)
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        self.forward(self.machine.now())
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
        let machine = self.machine.now();
        Span(self.forward(machine).0 - machine.0)
    }

    fn machine(&self) -> Time {
        self.machine.now()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use era_cloud::clock::ClockReading;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test hands in the clock of its machine")]
    pub(crate) fn machine() -> MachineClock {
        MachineClock::system()
    }

    /// A clock of this machine.
    pub(crate) fn of_this_machine() -> Arc<SystemClock> {
        Arc::new(SystemClock::new(machine()))
    }

    #[test]
    fn a_machine_that_is_set_back_is_a_time_to_reckon_from_and_no_time_to_go_by() {
        let wall = Arc::new(AtomicI64::new(1_000_000));
        let (told, steady) = (wall.clone(), machine().steady());
        let set = MachineClock::new(move || ClockReading {
            wall: Time(told.load(Ordering::SeqCst)),
            steady,
        });
        let clock = SystemClock::new(set.clone());
        assert_eq!((clock.now(), clock.ahead()), (Time(1_000_000), Span::ZERO));
        wall.store(400_000, Ordering::SeqCst);
        assert!(clock.now() >= Time(1_000_000) && clock.machine() == Time(400_000));
        assert!(clock.ahead() >= Span(600_000));
        let other = SystemClock::new(set);
        assert_eq!(other.now(), Time(400_000), "each server has its own");
        other.not_before(Time(900_000));
        assert!(other.now() >= Time(900_000));
    }
}
