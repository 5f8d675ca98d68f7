//! The clocks of a machine: the wall clock, which stamps are by, and the steady one, by which a
//! process without a runtime waits and measures.
//!
//! Whoever begins a process makes one clock and hands it down. What waits within a runtime goes by
//! the runtime's clock (`tokio::time`). That the wall clock may be set back is not mended here:
//! the scheduler does that with what it is told.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use era_core::units::Time;

/// What both clocks of a machine say at one moment.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// The wall clock. It may step.
    pub wall: Time,
    /// The steady one.
    pub steady: Instant,
}

/// The clocks of a machine, as they were handed in. A clone is the same clock.
#[derive(Clone)]
pub struct MachineClock(Arc<dyn Fn() -> ClockReading + Send + Sync>);

impl std::fmt::Debug for MachineClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MachineClock").field(&(self.0)()).finish()
    }
}

impl MachineClock {
    /// The clocks of this machine, which may be set at any time.
    #[expect(clippy::disallowed_methods, reason = "here a process gets the clock it hands down")]
    pub fn system() -> MachineClock {
        MachineClock::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            // A clock beyond the year 9999 is wrong; the core would refuse every input of it.
            let ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
            ClockReading { wall: Time(ms).min(Time::LATEST), steady: Instant::now() }
        })
    }

    /// Clocks that say what this says.
    pub fn new(read: impl Fn() -> ClockReading + Send + Sync + 'static) -> MachineClock {
        MachineClock(Arc::new(read))
    }

    /// The time by the wall clock.
    pub fn now(&self) -> Time {
        (self.0)().wall
    }

    /// The instant by the steady one.
    pub fn steady(&self) -> Instant {
        (self.0)().steady
    }
}
