//! Days and weeks: how busy each hour is, and the time at which a share of all work has come.
//!
//! Time 0 is a Monday, 00:00. The weights are those of the Philly log: its hours turned to the
//! office's time zone, its days smoothed.

const HOUR_S: u64 = 3600;
const WEEK_HOURS: usize = 168;

/// Submissions in each hour of a day, from midnight.
const HOURS: [u64; 24] = [
    193, 197, 195, 189, 218, 215, 236, 218, 213, 240, 196, 211, 297, 334, 279, 260, 205, 176, 182,
    166, 155, 142, 158, 189,
];

/// Submissions on each day of a week, from Monday.
const DAYS: [u64; 7] = [90, 110, 130, 125, 110, 55, 60];

/// How much has come by each hour of a week, in weighted seconds.
pub(super) struct Cycle {
    until: [u64; WEEK_HOURS + 1],
}

impl Cycle {
    pub(super) fn new() -> Cycle {
        let mut until = [0; WEEK_HOURS + 1];
        for hour in 0..WEEK_HOURS {
            until[hour + 1] = until[hour] + weight(hour) * HOUR_S;
        }
        Cycle { until }
    }

    /// How much has come by this second.
    pub(super) fn by(&self, second: u64) -> u128 {
        let week_s = WEEK_HOURS as u64 * HOUR_S;
        let (weeks, rest) = (second / week_s, second % week_s);
        let hour = (rest / HOUR_S) as usize;
        let this_week = self.until[hour] + weight(hour) * (rest % HOUR_S);
        u128::from(weeks) * u128::from(self.until[WEEK_HOURS]) + u128::from(this_week)
    }

    /// The last second by which no more than this much has come.
    pub(super) fn when(&self, much: u128) -> u64 {
        let week = u128::from(self.until[WEEK_HOURS]);
        let (weeks, rest) = ((much / week) as u64, (much % week) as u64);
        let hour = self.until.partition_point(|until| *until <= rest) - 1;
        let second = (rest - self.until[hour]) / weight(hour);
        (weeks * WEEK_HOURS as u64 + hour as u64) * HOUR_S + second
    }
}

fn weight(hour_of_week: usize) -> u64 {
    HOURS[hour_of_week % 24] * DAYS[hour_of_week / 24 % 7]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_and_by_undo_each_other() {
        let cycle = Cycle::new();
        for second in [0, 1, 3599, 3600, 86_400, 604_799, 604_800, 604_801, 40_000_000] {
            assert_eq!(cycle.when(cycle.by(second)), second);
        }
    }
}
