//! What time it is: the one place where the server asks.
//!
//! Only the driver's time enters the journal, and there it never runs backwards; whoever wants to
//! know what a bid would get now asks this clock too.

use std::time::{SystemTime, UNIX_EPOCH};

use era_core::units::Time;

/// Something that tells the time. It may step back.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Time;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // A clock beyond the year 9999 is wrong; the core would refuse every input of it.
        Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).min(Time::LATEST)
    }
}
