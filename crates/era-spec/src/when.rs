//! Points in time as people write them, in the reader's zone: `now+2h`, `18:00`, `tomorrow 6am`,
//! `friday noon`, `2026-11-20`, `2026-11-20T06:00`. What is shown reads back. A day alone is its
//! beginning, and for a deadline its end. Where the past is asked for, the same words mean the last such time, and `2h ago` and `yesterday` are words, too.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};

use crate::span::SpanSpec;

/// What is no point in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTime {
    /// Nobody knows what it means.
    #[error(
        "`{0}` is no point in time: write for example now+2h, 18:00, tomorrow 6am, friday noon or 2026-11-20T06:00"
    )]
    NotRead(String),
    /// The same, of the past.
    #[error(
        "`{0}` is no point in the past: write for example 2h ago, 09:00, yesterday 6pm, monday or 2026-11-20T06:00"
    )]
    NotPast(String),
    /// No calendar has it.
    #[error("`{0}` lies outside the times that can be told")]
    OutOfRange(String),
}

/// Which of the times that a word may mean is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tense {
    /// The next one; a day is its beginning.
    Ahead,
    /// The next one; a day is its end.
    Until,
    /// The last one.
    Back,
}

/// The point in time that a text means to somebody at `now`. A time of day without a date is the
/// next one of it; a day without a time is its beginning.
pub fn read(text: &str, now: &Zoned) -> Result<Timestamp, BadTime> {
    read_in(text, now, Tense::Ahead)
}

/// The point in time by which something has to be over: a day without a time is its end.
pub fn read_deadline(text: &str, now: &Zoned) -> Result<Timestamp, BadTime> {
    read_in(text, now, Tense::Until)
}

/// The point in the past that a text means to somebody at `now`: a time of day without a date is
/// the last one of it, and a span alone is so long ago.
pub fn read_past(text: &str, now: &Zoned) -> Result<Timestamp, BadTime> {
    read_in(text, now, Tense::Back)
}

fn read_in(text: &str, now: &Zoned, tense: Tense) -> Result<Timestamp, BadTime> {
    let said = || text.chars().take(60).collect::<String>();
    let not_read = || match tense {
        Tense::Ahead | Tense::Until => BadTime::NotRead(said()),
        Tense::Back => BadTime::NotPast(said()),
    };
    let out_of_range = |_| BadTime::OutOfRange(said());
    let plain = text.trim();
    if plain.len() > 60 {
        return Err(not_read());
    }
    // An exact instant: with `Z` or an offset.
    if let Ok(at) = plain.parse::<Timestamp>() {
        return Ok(at);
    }
    let plain = plain.to_ascii_lowercase();
    let (away, sign) = match tense {
        Tense::Ahead | Tense::Until => (ahead(&plain), 1),
        Tense::Back => (ago(&plain), -1),
    };
    if let Some(away) = away {
        let span: SpanSpec = if away.is_empty() {
            return Ok(now.timestamp());
        } else {
            away.parse().map_err(|_| not_read())?
        };
        let seconds = i64::try_from(span.seconds).map_err(|_| not_read())?;
        return now.timestamp().checked_add((sign * seconds).seconds()).map_err(out_of_range);
    }
    let civil = civil(&plain, now, tense).ok_or_else(not_read)?.map_err(out_of_range)?;
    let zoned = now.time_zone().to_zoned(civil).map_err(out_of_range)?;
    Ok(zoned.timestamp())
}

/// What follows `now-` or `-`, stands before `ago`, or is a span of its own; empty for `now`.
fn ago(text: &str) -> Option<&str> {
    if let Some(span) = text.strip_suffix("ago") {
        return Some(span.trim()).filter(|span| !span.is_empty());
    }
    if let Some(rest) = text.strip_prefix("now").map(str::trim).or(text.strip_prefix('-')) {
        let span = rest.strip_prefix('-').unwrap_or(rest).trim();
        return Some(span).filter(|span| !span.is_empty() || text == "now");
    }
    // `9:00` is a time of day and `90` is nothing: a span says its unit.
    let spelt =
        text.ends_with(|c: char| c.is_ascii_alphabetic()) && text.parse::<SpanSpec>().is_ok();
    spelt.then_some(text)
}

/// What follows `now+`, `+` or `in`; empty for `now`.
fn ahead(text: &str) -> Option<&str> {
    let rest = match text.strip_prefix("now") {
        Some(rest) => rest.trim(),
        None => match text.strip_prefix("in ") {
            Some(rest) => return Some(rest.trim()),
            None if text.starts_with('+') => text,
            None => return None,
        },
    };
    if rest.is_empty() { Some("") } else { rest.strip_prefix('+').filter(|span| !span.is_empty()) }
}

/// A date and a time of the reader's zone.
fn civil(text: &str, now: &Zoned, tense: Tense) -> Option<Result<DateTime, jiff::Error>> {
    if let Some(time) = time_of_day(text) {
        let today = now.date().to_datetime(time);
        let passed = today <= now.datetime();
        return Some(match (tense, passed) {
            (Tense::Ahead | Tense::Until, true) => today.checked_add(1.day()),
            (Tense::Back, false) => today.checked_sub(1.day()),
            _ => Ok(today),
        });
    }
    let (first, rest) = match text.split_once([' ', 't']) {
        // `today`, `tuesday` and `thursday` hold a `t`, too: a date never begins with a letter.
        _ if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            text.split_once(' ').unwrap_or((text, ""))
        }
        Some((_, "")) => return None,
        Some(split) => split,
        None => (text, ""),
    };
    let rest = rest.trim();
    let rest = rest.strip_prefix("at ").unwrap_or(rest);
    let time = if rest.is_empty() { Some(Time::midnight()) } else { time_of_day(rest) }?;
    // The end of a day is the beginning of the next.
    let days = i32::from(tense == Tense::Until && rest.is_empty());
    let at = |date: Date| date.to_datetime(time).checked_add(days.days());
    let today = now.date();
    let date = match first {
        "today" => Ok(today),
        "tomorrow" => today.tomorrow(),
        "yesterday" => today.yesterday(),
        other => match weekday(other) {
            Some(day) => {
                let to_come = at(today).is_ok_and(|at| at > now.datetime());
                match tense {
                    _ if today.weekday() == day && to_come == (tense != Tense::Back) => Ok(today),
                    Tense::Ahead | Tense::Until => today.nth_weekday(1, day),
                    Tense::Back => today.nth_weekday(-1, day),
                }
            }
            None => Ok(other.parse::<Date>().ok()?),
        },
    };
    Some(date.and_then(at))
}

fn weekday(text: &str) -> Option<Weekday> {
    Some(match text {
        "mon" | "monday" => Weekday::Monday,
        "tue" | "tuesday" => Weekday::Tuesday,
        "wed" | "wednesday" => Weekday::Wednesday,
        "thu" | "thursday" => Weekday::Thursday,
        "fri" | "friday" => Weekday::Friday,
        "sat" | "saturday" => Weekday::Saturday,
        "sun" | "sunday" => Weekday::Sunday,
        _ => return None,
    })
}

/// `18:00`, `18:00:30`, `6am`, `6:30 pm`, `noon`, `midnight`.
fn time_of_day(text: &str) -> Option<Time> {
    match text {
        "noon" => return Some(Time::constant(12, 0, 0, 0)),
        "midnight" => return Some(Time::midnight()),
        _ => {}
    }
    let (digits, half) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(rest), _) => (rest.trim_end(), Some(0)),
        (_, Some(rest)) => (rest.trim_end(), Some(12)),
        _ => (text, None),
    };
    let mut fields = Vec::new();
    for field in digits.split(':') {
        let fits = (1..=2).contains(&field.len()) && field.bytes().all(|b| b.is_ascii_digit());
        fields.push(fits.then(|| field.parse::<i8>().ok()).flatten()?);
    }
    let (hour, minute, second) = match fields.as_slice() {
        // A lone number is an hour only where it says so.
        [hour] if half.is_some() => (*hour, 0, 0),
        [hour, minute] => (*hour, *minute, 0),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return None,
    };
    let hour = match half {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return None,
        None => hour,
    };
    Time::new(hour, minute, second, 0).ok()
}

/// A point in time as its reader says it, to the minute: `18:00`, `tomorrow 06:00`,
/// `2026-11-20 06:00`. Where a clock shows the same time twice, with the offset.
pub fn show(at: Timestamp, now: &Zoned) -> String {
    let zone: &TimeZone = now.time_zone();
    let zoned = at.to_zoned(zone.clone());
    let civil = zoned.datetime();
    if zone.to_ambiguous_timestamp(civil).is_ambiguous() {
        return zoned.strftime("%Y-%m-%dT%H:%M%:z").to_string();
    }
    let days = now.date().until(civil.date()).map(|span| span.get_days());
    match days {
        Ok(0) => zoned.strftime("today %H:%M").to_string(),
        Ok(1) => zoned.strftime("tomorrow %H:%M").to_string(),
        _ => zoned.strftime("%Y-%m-%d %H:%M").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A Sunday.
    fn now() -> Zoned {
        "2026-11-15T14:30:00+01:00[Europe/Berlin]".parse().unwrap()
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, expected) in [
            ("now", "2026-11-15T14:30:00"),
            ("now+2h", "2026-11-15T16:30:00"),
            ("now + 90", "2026-11-15T16:00:00"),
            ("+30m", "2026-11-15T15:00:00"),
            ("in 2 hours", "2026-11-15T16:30:00"),
            ("18:00", "2026-11-15T18:00:00"),
            ("14:30", "2026-11-16T14:30:00"),
            ("06:00", "2026-11-16T06:00:00"),
            ("6am", "2026-11-16T06:00:00"),
            ("6:30 PM", "2026-11-15T18:30:00"),
            ("12am", "2026-11-16T00:00:00"),
            ("noon", "2026-11-16T12:00:00"),
            ("midnight", "2026-11-16T00:00:00"),
            ("today 18:00", "2026-11-15T18:00:00"),
            ("tomorrow 6am", "2026-11-16T06:00:00"),
            ("tomorrow at 6am", "2026-11-16T06:00:00"),
            ("tomorrow", "2026-11-16T00:00:00"),
            ("friday noon", "2026-11-20T12:00:00"),
            ("sunday 10:00", "2026-11-22T10:00:00"),
            ("sun 18:00", "2026-11-15T18:00:00"),
            ("thursday", "2026-11-19T00:00:00"),
            ("2026-11-20", "2026-11-20T00:00:00"),
            ("2026-11-20T06:00", "2026-11-20T06:00:00"),
            ("2026-11-20 6pm", "2026-11-20T18:00:00"),
            ("2026-07-01 06:00:30", "2026-07-01T06:00:30"),
            ("2026-11-20T05:00:00Z", "2026-11-20T06:00:00"),
            ("2026-11-20T06:00+02:00", "2026-11-20T05:00:00"),
        ] {
            let at = read(text, &now()).map(|at| at.to_zoned(now().time_zone().clone()).datetime());
            assert_eq!(at, Ok(expected.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn a_deadline_on_a_day_is_the_end_of_that_day() {
        for (text, expected) in [
            ("today", "2026-11-16T00:00:00"),
            ("tomorrow", "2026-11-17T00:00:00"),
            ("sunday", "2026-11-16T00:00:00"),
            ("friday", "2026-11-21T00:00:00"),
            ("2026-11-15", "2026-11-16T00:00:00"),
            ("2026-12-31", "2027-01-01T00:00:00"),
            ("today 18:00", "2026-11-15T18:00:00"),
            ("friday noon", "2026-11-20T12:00:00"),
            ("sunday 10:00", "2026-11-22T10:00:00"),
            ("tomorrow 00:00", "2026-11-16T00:00:00"),
            ("midnight", "2026-11-16T00:00:00"),
            ("now+2h", "2026-11-15T16:30:00"),
        ] {
            let at = read_deadline(text, &now());
            let at = at.map(|at| at.to_zoned(now().time_zone().clone()).datetime());
            assert_eq!(at, Ok(expected.parse().unwrap()), "{text}");
        }
        assert!(read_deadline("9999-12-31", &now()).is_err());
    }

    #[test]
    fn times_of_the_past_are_the_last_of_their_kind() {
        for (text, expected) in [
            ("now", "2026-11-15T14:30:00"),
            ("now-2h", "2026-11-15T12:30:00"),
            ("now - 90m", "2026-11-15T13:00:00"),
            ("2h ago", "2026-11-15T12:30:00"),
            ("2 hours ago", "2026-11-15T12:30:00"),
            ("-30m", "2026-11-15T14:00:00"),
            ("24h", "2026-11-14T14:30:00"),
            ("09:00", "2026-11-15T09:00:00"),
            ("14:30", "2026-11-15T14:30:00"),
            ("18:00", "2026-11-14T18:00:00"),
            ("midnight", "2026-11-15T00:00:00"),
            ("yesterday", "2026-11-14T00:00:00"),
            ("yesterday 6pm", "2026-11-14T18:00:00"),
            ("today", "2026-11-15T00:00:00"),
            ("sunday", "2026-11-15T00:00:00"),
            ("sunday 18:00", "2026-11-08T18:00:00"),
            ("monday", "2026-11-09T00:00:00"),
            ("2026-11-01", "2026-11-01T00:00:00"),
        ] {
            let at = read_past(text, &now());
            let at = at.map(|at| at.to_zoned(now().time_zone().clone()).datetime());
            assert_eq!(at, Ok(expected.parse().unwrap()), "{text}");
        }
        for bad in ["", "ago", "now+2h", "90", "-", "soon ago", "now-"] {
            assert!(read_past(bad, &now()).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for bad in [
            "",
            "soon",
            "25:00",
            "13pm",
            "0am",
            "6",
            "tomorrow soon",
            "2026-13-01",
            "now-2h",
            "now+",
            "2026-11-20T",
            "18:00:00:00",
            "99999-01-01",
            "today now",
            "+",
        ] {
            assert!(read(bad, &now()).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_hour_that_comes_twice_is_told_with_its_offset() {
        let autumn: Zoned = "2026-10-25T00:00:00+02:00[Europe/Berlin]".parse().unwrap();
        let second: Timestamp = "2026-10-25T02:30:00+01:00".parse().unwrap();
        assert_eq!(show(second, &autumn), "2026-10-25T02:30+01:00");
        assert_eq!(read(&show(second, &autumn), &autumn), Ok(second));
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(minutes in -600_000_i64..600_000) {
            let at = now().timestamp().checked_add((minutes * 60).seconds()).unwrap();
            prop_assert_eq!(read(&show(at, &now()), &now()), Ok(at));
            prop_assert_eq!(read_deadline(&show(at, &now()), &now()), Ok(at));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,70}") {
            let _ = (read(&text, &now()), read_deadline(&text, &now()), read_past(&text, &now()));
        }
    }
}
