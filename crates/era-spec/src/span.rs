//! Lengths of time as people write them: `2h30m`, `90s`, `1.5 hours`, and as Slurm reads them:
//! `90` (minutes), `30:00`, `12:00:00`, `2-12:00:00`. What is printed reads back.

use std::fmt;
use std::str::FromStr;

/// The longest: a year.
const SECONDS_MAX: u64 = 366 * 86_400;

/// A length of time in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanSpec {
    pub seconds: u64,
}

/// What is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSpan {
    /// Nobody knows what it means.
    #[error("`{0}` is no length of time: write for example 2h30m, 45m, 90s, 1.5h or 2-12:00:00")]
    NotRead(String),
    /// Less than none.
    #[error("`{0}` must not be negative: a job needs at least a second")]
    Negative(String),
    #[error("`{0}` is no time at all: a job needs at least a second")]
    Nothing(String),
    /// More than [`SpanSpec`] holds.
    #[error("`{0}` is longer than a year")]
    TooLong(String),
}

impl FromStr for SpanSpec {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<SpanSpec, BadSpan> {
        let said = || text.chars().take(40).collect::<String>();
        let plain = text.trim().to_ascii_lowercase();
        if plain.len() > 40 {
            return Err(BadSpan::NotRead(said()));
        }
        let millis = clock(&plain).or_else(|| units(&plain));
        let positive = plain.strip_prefix('-').filter(|rest| rest.parse::<SpanSpec>().is_ok());
        let millis = millis.ok_or_else(|| match positive {
            Some(_) => BadSpan::Negative(said()),
            None => BadSpan::NotRead(said()),
        })?;
        match millis.div_ceil(1000) {
            0 => Err(BadSpan::Nothing(said())),
            seconds if seconds > u128::from(SECONDS_MAX) => Err(BadSpan::TooLong(said())),
            seconds => Ok(SpanSpec { seconds: u64::try_from(seconds).unwrap_or(SECONDS_MAX) }),
        }
    }
}

fn number(text: &str) -> Option<u128> {
    let digits = !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// As Slurm reads it: minutes, `m:s`, `h:m:s`, `d-h`, `d-h:m`, `d-h:m:s`. In milliseconds.
fn clock(text: &str) -> Option<u128> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(number(days)?), rest),
        None => (None, text),
    };
    let fields: Vec<u128> = rest.split(':').map(number).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match (days, fields.as_slice()) {
        (None, [minutes]) => (0, *minutes, 0),
        (None, [minutes, seconds]) => (0, *minutes, *seconds),
        (Some(_), [hours]) => (*hours, 0, 0),
        (Some(_), [hours, minutes]) => (*hours, *minutes, 0),
        (_, [hours, minutes, seconds]) => (*hours, *minutes, *seconds),
        _ => return None,
    };
    Some((((days.unwrap_or(0) * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
}

/// Numbers with units, one after the other. In milliseconds.
fn units(text: &str) -> Option<u128> {
    let mut rest = text.trim_start();
    let mut millis = 0u128;
    let mut any = false;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (amount, after) = rest.split_at(digits);
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        millis += thousandths(amount)? * unit_seconds(unit)?;
        rest = after.trim_start_matches([' ', ',']);
        any = true;
    }
    any.then_some(millis)
}

fn unit_seconds(unit: &str) -> Option<u128> {
    Some(match unit {
        "s" | "sec" | "secs" | "second" | "seconds" => 1,
        "m" | "min" | "mins" | "minute" | "minutes" => 60,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600,
        "d" | "day" | "days" => 86_400,
        "w" | "week" | "weeks" => 604_800,
        _ => return None,
    })
}

/// `1.5` as 1500.
fn thousandths(text: &str) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if part.len() > 3 {
        return None;
    }
    Some(number(whole)? * 1000 + number(&format!("{part:0<3}"))?)
}

impl fmt::Display for SpanSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.seconds;
        if rest == 0 {
            return f.write_str("0s");
        }
        for (unit, size) in [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)] {
            if rest >= size {
                write!(f, "{}{unit}", rest / size)?;
                rest %= size;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("2h30m", 9_000),
            ("2h 30m", 9_000),
            ("90", 5_400),
            ("90s", 90),
            ("90min", 5_400),
            ("1.5h", 5_400),
            ("2 hours", 7_200),
            ("1 day, 2 hours", 93_600),
            ("1w", 604_800),
            ("2-12:00:00", 216_000),
            ("2-12", 216_000),
            ("2-12:30", 217_800),
            ("12:00:00", 43_200),
            ("30:00", 1_800),
            ("0.5s", 1),
            ("1H", 3_600),
        ] {
            assert_eq!(text.parse(), Ok(SpanSpec { seconds }), "{text}");
        }
    }

    #[test]
    fn what_is_no_length_of_time_is_refused() {
        for bad in [
            "",
            "h",
            "2x",
            "-5m",
            "1..5h",
            "5 m x",
            "2h30",
            "1:2:3:4",
            "1-",
            "0",
            "0s",
            "400d",
            "99999999999",
            "1.2345h",
            "٣h",
        ] {
            assert!(bad.parse::<SpanSpec>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(seconds in 1..=SECONDS_MAX) {
            let span = SpanSpec { seconds };
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,50}") {
            let _ = text.parse::<SpanSpec>();
        }
    }
}
