//! The reader's clock and zone.

use era_spec::plain::nearest;
use jiff::Zoned;
use jiff::tz::{TimeZone, db};

use super::exit::BadUsage;
use crate::clock::timestamp;

/// Now, in the reader's zone.
pub(crate) fn now() -> Zoned {
    timestamp().to_zoned(zone())
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

/// Refuses a zone that nobody knows: times would be told and understood in another one.
pub(crate) fn check() -> Result<(), BadUsage> {
    match std::env::var("TZ") {
        Ok(named) if TimeZone::try_system().is_err() => Err(BadUsage(no_zone(&named))),
        _ => Ok(()),
    }
}

/// What is wrong with a zone that nobody knows.
fn no_zone(named: &str) -> String {
    let shown: String = named.chars().take(60).collect();
    let known: Vec<String> = db().available().map(|zone| zone.as_str().to_owned()).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    // Of `berlin`, the zone whose city it is.
    let city =
        |zone: &&&str| zone.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(named));
    let meant = known.iter().find(city).copied().or_else(|| nearest(named, &known));
    let hint = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if known.is_empty() => {
            "this machine knows no time zones: install tzdata, or unset TZ".to_owned()
        }
        None => "give one such as Europe/Berlin or UTC, or unset TZ".to_owned(),
    };
    format!("TZ: there is no time zone `{shown}`: {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_zone_is_told_with_the_one_that_was_probably_meant() {
        if TimeZone::get("Europe/Berlin").is_err() {
            return;
        }
        for (named, hint) in [
            ("Europe/Berln", "did you mean `Europe/Berlin`?"),
            ("berlin", "did you mean `Europe/Berlin`?"),
            ("Mars/Base", "give one such as Europe/Berlin or UTC, or unset TZ"),
        ] {
            assert_eq!(no_zone(named), format!("TZ: there is no time zone `{named}`: {hint}"));
        }
    }

    #[test]
    fn the_short_way_to_the_zone_tells_the_same_time() {
        let now = timestamp();
        let (short, long) = (zone().to_offset(now), TimeZone::system().to_offset(now));
        assert_eq!(short, long);
    }
}
