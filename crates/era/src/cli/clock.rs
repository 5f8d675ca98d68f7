//! The reader's clock and zone.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Now, in the reader's zone.
pub(crate) fn now() -> Zoned {
    Timestamp::now().to_zoned(zone())
}

/// The system's zone. Where it is one file, that file is read: looking its name up walks through
/// all zones of the world, which takes longer than the rest of a command.
pub(crate) fn zone() -> TimeZone {
    #[cfg(unix)]
    if std::env::var_os("TZ").is_none() {
        let file = std::fs::read("/etc/localtime").ok();
        if let Some(zone) = file.and_then(|bytes| TimeZone::tzif("local", &bytes).ok()) {
            return zone;
        }
    }
    TimeZone::system()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_to_the_zone_tells_the_same_time() {
        let now = Timestamp::now();
        let (short, long) = (zone().to_offset(now), TimeZone::system().to_offset(now));
        assert_eq!(short, long);
    }
}
