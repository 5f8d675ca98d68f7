//! Times in what a server says. It does not know who reads it, so it writes UTC: as
//! `2026-11-16T15:26:45.182Z`, as `2026-11-16 15:26:45`, and for a while on one day as
//! `2026-11-16 15:26–15:28:45`. Its readers have a clock of their own.

use era_spec::when;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// A sentence with its times as somebody at `now` says them; all else stays as it is.
pub(crate) fn local(sentence: &str, now: &Zoned) -> String {
    let mut text = String::new();
    let mut rest = sentence;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, found) = rest.split_at(at);
        text += before;
        // Within a word it is a name's, and quoted it is what somebody typed.
        let free = !text.ends_with(|c| is_in_word(c) || c == '`');
        if let Some((shown, after)) = free.then(|| shown(found, now)).flatten() {
            text += &shown;
            rest = after;
        } else {
            let end = found.find(|c| !is_in_word(c)).unwrap_or(found.len());
            text += &found[..end];
            rest = &found[end..];
        }
    }
    text + rest
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || "-_./:".contains(c)
}

/// The stamp that a text begins with, as its reader says it, and what is behind it.
fn shown<'a>(text: &'a str, now: &Zoned) -> Option<(String, &'a str)> {
    let (day, rest) = split_shaped(text, "0000-00-00")?;
    let day: Date = day.parse().ok()?;
    let (from, to, rest) = if let Some(rest) = rest.strip_prefix('T') {
        let (from, rest) = instant(day, rest)?;
        // Nobody is told more than minutes.
        let rest = rest.strip_prefix('.').map_or(rest, |rest| rest.trim_start_matches(is_digit));
        (from, None, rest.strip_prefix('Z')?)
    } else {
        let (from, rest) = instant(day, rest.strip_prefix(' ')?)?;
        match rest.strip_prefix('–').and_then(|rest| instant(day, rest)) {
            Some((to, rest)) => (from, Some(to), rest),
            None => (from, None, rest),
        }
    };
    // A full stop or a colon is the sentence's, unless something goes on behind it.
    let behind = rest.trim_start_matches(['.', ':']);
    if behind.starts_with(|c: char| c.is_alphanumeric() || "-_/+".contains(c)) {
        return None;
    }
    let from = when::show(from, now);
    let Some(to) = to.map(|to| when::show(to, now)) else { return Some((from, rest)) };
    let both = match (from.split_once(' '), to.split_once(' ')) {
        (Some((day, _)), Some((same, end))) if day == same => format!("{from}–{end}"),
        // One day of UTC may be two of the reader's.
        _ => format!("{from} – {to}"),
    };
    Some((both, rest))
}

/// The time of day that a text begins with, on a day of UTC, and what is behind it.
fn instant(day: Date, text: &str) -> Option<(Timestamp, &str)> {
    let (time, rest) = split_shaped(text, "00:00:00").or_else(|| split_shaped(text, "00:00"))?;
    let time: Time = time.parse().ok()?;
    Some((TimeZone::UTC.to_timestamp(day.to_datetime(time)).ok()?, rest))
}

/// A text cut behind what has this shape, in which a 0 stands for any digit.
fn split_shaped<'a>(text: &'a str, shape: &str) -> Option<(&'a str, &'a str)> {
    let (head, rest) = text.split_at_checked(shape.len())?;
    let fits = |(c, like): (char, char)| if like == '0' { is_digit(c) } else { c == like };
    head.chars().zip(shape.chars()).all(fits).then_some((head, rest))
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn in_shanghai(sentence: &str) -> String {
        local(sentence, &"2026-11-16T23:30:00+08:00[Asia/Shanghai]".parse().unwrap())
    }

    #[test]
    fn every_stamp_of_a_server_is_told_in_the_readers_zone() {
        for (told, expected) in [
            ("It ended at 2026-11-16T15:26:46.182Z.", "It ended at today 23:26."),
            (
                "promised for 0.05 credits: 2026-11-16 15:26:45–15:28:45 on vm",
                "promised for 0.05 credits: today 23:26–23:28 on vm",
            ),
            (
                "sent to vm, until 2026-11-16 15:28:45 at most",
                "sent to vm, until today 23:28 at most",
            ),
            (
                "told to stop by 2026-11-16 15:27: it was cancelled",
                "told to stop by today 23:27: it was cancelled",
            ),
            (
                "the deadline 2020-01-01T00:00:00Z has passed (it is 2026-11-16T15:26:46Z): \
                 give a later one",
                "the deadline 2020-01-01 08:00 has passed (it is today 23:26): give a later one",
            ),
            (
                "window [2026-11-16T15:00:00Z, 2026-11-16T16:30:00Z) is empty",
                "window [today 23:00, tomorrow 00:30) is empty",
            ),
            (
                "2026-11-16 15:00–17:00 on a; then 2026-11-16 23:00 – 2026-11-17 01:00 on b",
                "today 23:00 – tomorrow 01:00 on a; then tomorrow 07:00 – tomorrow 09:00 on b",
            ),
        ] {
            assert_eq!(in_shanghai(told), expected);
        }
    }

    #[test]
    fn nothing_else_in_a_sentence_changes() {
        for told in [
            "",
            "no node could hold 8 GPUs: 4 at 10.0.0.7:7632",
            "`2026-11-16 15:26` is no cursor",
            "`2026-11-16T15:26:46Z` is not a name",
            "run/2026-11-16 15:26 and x2026-11-16T15:26:46Z",
            "12026-11-16 15:26, 2026-11-16 15:26+08:00, 2026-11-16 15:26:46.5",
            "2026-11-16T15:26:46 and 2026-11-16T15:26:46Zulu",
            "2026-13-16 15:26, 2026-11-16 25:00, 2026-11-16 and 15:26",
            "2026-11-16 15:2–",
        ] {
            assert_eq!(in_shanghai(told), told);
        }
    }

    #[test]
    fn an_hour_that_comes_twice_is_told_with_its_offset() {
        let now: Zoned = "2026-10-25T00:00:00+02:00[Europe/Berlin]".parse().unwrap();
        let told = local("2026-10-25 00:30–02:00 on vm", &now);
        assert_eq!(told, "2026-10-25T02:30+02:00 – today 03:00 on vm");
    }

    proptest! {
        #[test]
        fn no_sentence_makes_it_panic(told in "(\\PC|[0-9TZ:–-]|2026-11-16[T ]15:26){0,30}") {
            let _ = in_shanghai(&told);
        }
    }
}
