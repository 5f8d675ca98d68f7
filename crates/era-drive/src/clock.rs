//! Time that goes on: never backwards, whatever the machine's clock is set to.
//!
//! Limits, promises and bills go by time that passes. Where the machine's clock is set back, time
//! goes on a little slower than it passes until the other has caught up. Both clocks are read by
//! whoever asks.

use std::time::Duration;

use era_core::units::Time;

/// How far time has come, and when that was by a clock that never steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Come {
    to: Time,
    at: Duration,
}

impl Come {
    /// How far it comes without the machine's clock: slower by a tenth, so that the other catches
    /// up.
    fn by(self, up: Duration) -> Time {
        let passed = up.saturating_sub(self.at).as_millis();
        let ms = i64::try_from(passed).unwrap_or(i64::MAX);
        Time(self.to.0.saturating_add(ms - ms / 10)).min(Time::LATEST)
    }
}

/// The time that was told so far.
#[derive(Clone, Debug, Default)]
pub struct ForwardTime(Option<Come>);

impl ForwardTime {
    /// Nothing was told yet.
    pub const fn new() -> ForwardTime {
        ForwardTime(None)
    }

    /// The time, where the machine's clock says `machine` and the one that never steps says `up`.
    /// As long as the machine's clock is behind, what passes since is added to what was told last.
    pub fn now(&mut self, machine: Time, up: Duration) -> Time {
        match self.0.map(|come| come.by(up)) {
            Some(ahead) if ahead > machine => ahead,
            _ => {
                self.0 = Some(Come { to: machine, at: up });
                machine
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn time_goes_on_a_little_slower_than_it_passes_until_the_machine_has_caught_up() {
        let mut time = ForwardTime::new();
        assert_eq!(time.now(Time::from_s(1060), 5 * S), Time::from_s(1060));
        // Set back by a minute.
        assert_eq!(time.now(Time::from_s(1000), 5 * S), Time::from_s(1060));
        assert_eq!(time.now(Time::from_s(1100), 105 * S), Time::from_s(1150));
        // Level after ten.
        assert_eq!(time.now(Time::from_s(1600), 605 * S), Time::from_s(1600));
        assert_eq!(time.now(Time::from_s(1601), 606 * S), Time::from_s(1601));
    }

    #[test]
    fn a_clock_that_is_set_ahead_is_believed() {
        let mut time = ForwardTime::new();
        assert_eq!(time.now(Time::from_s(1000), S), Time::from_s(1000));
        assert_eq!(time.now(Time::from_s(9000), S), Time::from_s(9000));
    }

    proptest! {
        #[test]
        fn time_never_runs_backwards_nor_stands_still_nor_falls_behind_the_machine(
            steps in prop::collection::vec((0u64..100_000, -200_000i64..200_000), 1..60),
        ) {
            let (mut time, mut up, mut set) = (ForwardTime::new(), 0, 0);
            let mut last: Option<(Time, u64)> = None;
            for (passed, stepped) in steps {
                (up, set) = (up + passed, set + stepped);
                let machine = Time(10_000_000_000 + up as i64 + set);
                let now = time.now(machine, Duration::from_millis(up));
                prop_assert!(now >= machine);
                if let Some((before, then)) = last {
                    // At nine tenths of what passed at least, to the millisecond.
                    let passed = (up - then) as i64;
                    prop_assert!(now.0 >= before.0 + passed - passed / 10 - 1, "{before:?} {now:?}");
                }
                last = Some((now, up));
            }
        }
    }
}
