//! What time it is: the one place where the server asks.
//!
//! Only the driver's time enters the journal, and there it never runs backwards; whoever wants to
//! know what a bid would get now asks this clock too. Where the machine's clock is set back, this
//! one goes on, a little slower, until the other has caught up: limits, promises and bills go by
//! time that passes.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use era_core::units::{Span, Time};

/// Something that tells the time. It may step back.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Time;
}

/// The machine's clock, which may be set at any time.
fn machine() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // A clock beyond the year 9999 is wrong; the core would refuse every input of it.
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).min(Time::LATEST)
}

/// How far time has come, and when that was: as long as the machine's clock is behind, what goes
/// by since then is added to it.
#[derive(Clone, Copy, Debug)]
struct Come {
    to: Time,
    at: Instant,
}

impl Come {
    /// How far it comes after so long without the machine's clock: slower by a tenth, so that the
    /// other catches up.
    fn after(self, passed: Duration) -> Time {
        let ms = i64::try_from(passed.as_millis()).unwrap_or(i64::MAX);
        Time(self.to.0.saturating_add(ms - ms / 10)).min(Time::LATEST)
    }
}

/// Time as it goes on: never backwards.
#[derive(Debug)]
struct Forward(Mutex<Option<Come>>);

impl Forward {
    fn now(&self, machine: Time) -> Time {
        // What is kept is whole at every moment.
        let mut come = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *come {
            Some(last) if last.after(last.at.elapsed()) > machine => last.after(last.at.elapsed()),
            _ => {
                *come = Some(Come { to: machine, at: Instant::now() });
                machine
            }
        }
    }
}

/// The clock of this process. It never runs backwards.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

static FORWARD: Forward = Forward(Mutex::new(None));

impl SystemClock {
    /// Makes it go on from here at least, as after a restart on a clock that was set back
    /// meanwhile.
    pub fn not_before(self, to: Time) {
        FORWARD.now(to);
    }

    /// How far it is ahead of the machine's clock, by which those go who were told a time.
    pub fn ahead(self) -> Span {
        let machine = machine();
        Span(FORWARD.now(machine).0 - machine.0)
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        FORWARD.now(machine())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_a_little_slower_than_it_passes_until_the_machine_has_caught_up() {
        let come = Come { to: Time(1_000_000), at: Instant::now() };
        assert_eq!(come.after(Duration::ZERO), Time(1_000_000));
        assert_eq!(come.after(Duration::from_secs(100)), Time(1_090_000));
        // A minute ahead: level after ten.
        assert!(come.after(Duration::from_secs(600)) == Time(1_000_000 - 60_000 + 600_000));
    }

    #[test]
    fn a_clock_that_was_ahead_goes_on_from_there() {
        let forward = Forward(Mutex::new(None));
        let (day, hour) = (Time(86_400_000), Span::from_h(1));
        assert_eq!(forward.now(day), day);
        assert_eq!(forward.now(day + hour), day + hour, "set ahead");
        let first = forward.now(day);
        assert!(first >= day + hour, "set back");
        std::thread::sleep(Duration::from_millis(50));
        let passed = forward.now(day).0 - first.0;
        assert!((40..5_000).contains(&passed), "{passed}");
        assert_eq!(forward.now(day + Span::from_h(2)), day + Span::from_h(2), "it has caught up");
    }
}
