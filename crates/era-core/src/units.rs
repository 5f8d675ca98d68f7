//! Typed quantities: ids, names, time, money and the fixed-point ratios that prices are made of.
//!
//! Everything is an integer. Arithmetic that could leave the range is checked and returns `None`
//! or saturates where a comment says why that is right; nothing here wraps.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($inner:ty) $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

ids! {
    /// A machine. Numbered by the core in the order of joining, never reused.
    NodeId(u32) "n";
    /// Who bids, waits and pays. Chosen by whoever keeps the accounts.
    UserId(u32) "u";
    /// A set of users that shares a quota.
    GroupId(u32) "g";
    /// What a user wants run. Numbered by the core in the order of acceptance.
    JobId(u64) "j";
    /// A binding quote.
    HoldId(u64) "h";
}

/// Where the folders of all jobs are, below the folder that files are kept under.
pub const JOBS_FOLDER: &str = "jobs";

impl JobId {
    /// The job's own folder, below the folder that files are kept under. `outputs/`,
    /// `checkpoints/`, `logs/` and `work/` are in it.
    pub fn folder(self, below: &Path) -> PathBuf {
        below.join(JOBS_FOLDER).join(self.0.to_string())
    }
}

/// A short name that a person chose: a pool, a domain, a queue, a label, a GPU model.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

/// Longest accepted [`Name`].
pub const NAME_LEN_MAX: usize = 63;

/// Why a text is no [`Name`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error(
    "`{given}` is not a name: use 1 to 63 characters out of a-z, A-Z, 0-9, `.`, `_`, `-`, `/`, \
     the first a letter or digit"
)]
pub struct BadName {
    given: String,
}

impl Name {
    /// Checks and wraps a name.
    pub fn new(text: &str) -> Result<Name, BadName> {
        let first_ok = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        let rest_ok = text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/'));
        if first_ok && rest_ok && text.len() <= NAME_LEN_MAX {
            Ok(Name(text.into()))
        } else {
            Err(BadName { given: text.chars().take(80).collect() })
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = BadName;
    fn try_from(text: String) -> Result<Name, BadName> {
        Name::new(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0.to_string()
    }
}

impl std::str::FromStr for Name {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Name, BadName> {
        Name::new(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// What people call a thing that has a number to be found by, such as a job: in any script.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Title(Arc<str>);

/// Most characters of a [`Title`], of at most four bytes each.
pub const TITLE_CHARS_MAX: usize = 63;

/// Why a text is no [`Title`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error(
    "`{given}` cannot be shown as a name: use 1 to 63 characters of any script, without blanks at \
     the ends, line breaks, control characters and changes of direction"
)]
pub struct BadTitle {
    given: String,
}

impl Title {
    /// Checks and wraps a title.
    pub fn new(text: &str) -> Result<Title, BadTitle> {
        let plain = text.trim() == text && !text.chars().any(disturbs);
        let is_seen = text.chars().any(|c| !is_unseen(c));
        if plain && is_seen && text.chars().count() <= TITLE_CHARS_MAX {
            Ok(Title(text.into()))
        } else {
            let given = text.chars().take(TITLE_CHARS_MAX).filter(|c| !disturbs(*c));
            Err(BadTitle { given: given.collect() })
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Characters that change what stands around them: controls, line and paragraph separators,
/// overrides and isolates of direction, and marks of annotations and of byte order.
fn disturbs(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}')
}

/// Blanks and joiners, which nobody can tell from nothing where they stand alone.
fn is_unseen(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

impl TryFrom<String> for Title {
    type Error = BadTitle;
    fn try_from(text: String) -> Result<Title, BadTitle> {
        Title::new(&text)
    }
}

impl From<Title> for String {
    fn from(title: Title) -> String {
        title.0.to_string()
    }
}

// Every name is a title: what was written when jobs had names is read as before.
impl From<Name> for Title {
    fn from(name: Name) -> Title {
        Title(name.0)
    }
}

impl fmt::Display for Title {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Title {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Maps with numbers as keys, for types that stand inside a tagged enum. JSON writes such keys
/// as texts, and there nobody turns them back into numbers.
pub(crate) mod numbered {
    use std::collections::BTreeMap;

    use serde::de::{Deserialize, Deserializer, Error};
    use serde::{Serialize, Serializer};

    pub(crate) fn serialize<K, V, S>(map: &BTreeMap<K, V>, to: S) -> Result<S::Ok, S::Error>
    where
        K: Copy + Into<u64>,
        V: Serialize,
        S: Serializer,
    {
        to.collect_map(map.iter().map(|(key, value)| ((*key).into().to_string(), value)))
    }

    pub(crate) fn deserialize<'de, K, V, D>(from: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Ord + TryFrom<u64>,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        let texts = BTreeMap::<String, V>::deserialize(from)?;
        let number = |text: &str| K::try_from(text.parse::<u64>().ok()?).ok();
        let entry = |(text, value): (String, V)| match number(&text) {
            Some(key) => Ok((key, value)),
            None => Err(D::Error::custom(format!("`{text}` is no number in range"))),
        };
        texts.into_iter().map(entry).collect()
    }
}

impl From<UserId> for u64 {
    fn from(user: UserId) -> u64 {
        user.0.into()
    }
}

impl TryFrom<u64> for UserId {
    type Error = std::num::TryFromIntError;
    fn try_from(number: u64) -> Result<UserId, Self::Error> {
        u32::try_from(number).map(UserId)
    }
}

/// An instant: milliseconds since the Unix epoch, UTC.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub i64);

/// A length of time in milliseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(pub i64);

impl Time {
    /// Before everything. Not a valid input.
    pub const MIN: Time = Time(i64::MIN);
    /// After everything: "without end".
    pub const MAX: Time = Time(i64::MAX);
    /// The latest instant that is accepted from outside (the year 9999); far enough from the
    /// edge of the range that adding any accepted span cannot leave it.
    pub const LATEST: Time = Time(253_402_300_799_000);

    /// An instant from whole seconds since the epoch.
    pub const fn from_s(s: i64) -> Time {
        Time(s * 1000)
    }

    /// The span from `earlier` to here; negative if it is later.
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The start of the slot that holds this instant, for slots of `len` counted from the epoch.
    pub fn floor_to(self, len: Span) -> Time {
        Time(self.0.div_euclid(len.0) * len.0)
    }

    /// The first slot boundary that is not before this instant.
    pub fn ceil_to(self, len: Span) -> Time {
        Time((self.0 + len.0 - 1).div_euclid(len.0) * len.0)
    }
}

// Saturation is right for instants: `Time::MAX` means "without end", and stays that.
impl std::ops::Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl std::ops::Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// From whole seconds.
    pub const fn from_s(s: i64) -> Span {
        Span(s * 1000)
    }
    /// From whole minutes.
    pub const fn from_min(min: i64) -> Span {
        Span(min * 60_000)
    }
    /// From whole hours.
    pub const fn from_h(h: i64) -> Span {
        Span(h * 3_600_000)
    }
    /// From whole days.
    pub const fn from_days(days: i64) -> Span {
        Span(days * 86_400_000)
    }
    /// Whole milliseconds.
    pub const fn ms(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Span {
    /// As people write it: `2d`, `1h30m`, `45s`, `1.250s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let ms = self.0.unsigned_abs();
        let (days, h, min, s, ms) =
            (ms / 86_400_000, ms / 3_600_000 % 24, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
        for (n, unit) in [(days, "d"), (h, "h"), (min, "m")] {
            if n > 0 {
                write!(f, "{n}{unit}")?;
            }
        }
        match (s, ms) {
            (0, 0) if days + h + min > 0 => Ok(()),
            (s, 0) => write!(f, "{s}s"),
            (s, ms) => write!(f, "{s}.{ms:03}s"),
        }
    }
}

impl fmt::Display for Time {
    /// UTC, as `2026-11-15T08:10:00Z`, with milliseconds where there are any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::MAX {
            return f.write_str("never");
        }
        // Days to civil date, after Howard Hinnant's public-domain algorithm.
        let days = self.0.div_euclid(86_400_000);
        let ms = self.0.rem_euclid(86_400_000);
        let z = days + 719_468;
        let era = z.div_euclid(146_097);
        let doe = z.rem_euclid(146_097);
        let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
        let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        let mp = (5 * doy + 2) / 153;
        let day = doy - (153 * mp + 2) / 5 + 1;
        let month = if mp < 10 { mp + 3 } else { mp - 9 };
        let year = yoe + era * 400 + i64::from(month <= 2);
        let (h, min, s) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{h:02}:{min:02}:{s:02}")?;
        if ms % 1000 != 0 {
            write!(f, ".{:03}", ms % 1000)?;
        }
        f.write_str("Z")
    }
}

/// An amount of credits, in integer micro-credits.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Money(pub i64);

impl Money {
    /// Nothing.
    pub const ZERO: Money = Money(0);
    /// The largest amount that is accepted from outside: a billion credits. Thousands of such
    /// amounts can be added before the range of the type is left, and addition is checked anyway.
    pub const MOST: Money = Money(1_000_000_000_000_000);

    /// From whole credits.
    pub const fn credits(credits: i64) -> Money {
        Money(credits * 1_000_000)
    }

    /// Checked sum.
    pub fn plus(self, other: Money) -> Option<Money> {
        self.0.checked_add(other.0).map(Money)
    }

    /// Checked difference.
    pub fn minus(self, other: Money) -> Option<Money> {
        self.0.checked_sub(other.0).map(Money)
    }

    /// `self × num / den`, rounded towards zero. `num` at most `den`, so the result fits.
    pub fn part(self, num: i64, den: i64) -> Money {
        debug_assert!(0 <= num && num <= den && den > 0);
        let scaled = i128::from(self.0) * i128::from(num) / i128::from(den);
        Money(i64::try_from(scaled).unwrap_or(self.0))
    }

    /// From a 128-bit count of micro-credits, if it is in range.
    pub fn from_wide(micro: u128) -> Option<Money> {
        i64::try_from(micro).ok().map(Money).filter(|m| *m <= Money::MOST)
    }
}

impl fmt::Display for Money {
    /// Credits with at least two digits after the point, and no more than are needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let micro = self.0.unsigned_abs();
        let mut digits = format!("{:06}", micro % 1_000_000);
        while digits.len() > 2 && digits.ends_with('0') {
            digits.pop();
        }
        write!(f, "{sign}{}.{digits}", micro / 1_000_000)
    }
}

/// A ratio in thousandths: a share of a pool, a refund rule, a price density.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Milli(pub u32);

impl Milli {
    /// Exactly one.
    pub const ONE: Milli = Milli(1000);

    /// This share of `whole`, rounded down.
    pub fn of(self, whole: u64) -> u64 {
        let part = u128::from(whole) * u128::from(self.0) / 1000;
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Milli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = format!("{:03}", self.0 % 1000);
        while digits.ends_with('0') {
            digits.pop();
        }
        let dot = if digits.is_empty() { "" } else { "." };
        write!(f, "{}{dot}{digits}", self.0 / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_people_write_them() {
        for (ms, text) in [
            (0, "0s"),
            (45_000, "45s"),
            (1_250, "1.250s"),
            (5_400_000, "1h30m"),
            (172_800_000, "2d"),
            (90_061_000, "1d1h1m1s"),
            (-60_000, "-1m"),
        ] {
            assert_eq!(Span(ms).to_string(), text);
        }
    }

    #[test]
    fn instants_read_as_utc() {
        assert_eq!(Time(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(Time(1_793_347_200_123).to_string(), "2026-10-30T08:00:00.123Z");
        assert_eq!(Time::from_s(951_782_400).to_string(), "2000-02-29T00:00:00Z");
        assert_eq!(Time::LATEST.to_string(), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn money_shows_what_it_is_and_no_more() {
        for (micro, text) in
            [(0, "0.00"), (1_500_000, "1.50"), (1, "0.000001"), (-2_000_000, "-2.00")]
        {
            assert_eq!(Money(micro).to_string(), text);
        }
    }

    #[test]
    fn slots_round_towards_the_right_side() {
        let minute = Span::from_min(1);
        assert_eq!(Time(59_999).floor_to(minute), Time(0));
        assert_eq!(Time(1).ceil_to(minute), Time(60_000));
        assert_eq!(Time(60_000).ceil_to(minute), Time(60_000));
        assert_eq!(Time(-1).floor_to(minute), Time(-60_000));
    }

    #[test]
    fn a_name_with_control_characters_is_refused() {
        for bad in ["", "-a", "a b", "a\n", "é", &"x".repeat(64)] {
            assert!(Name::new(bad).is_err(), "{bad:?}");
        }
        assert!(Name::new("h100-sxm.80g").is_ok());
    }

    #[test]
    fn a_title_is_of_any_script_and_disturbs_nothing_around_it() {
        let long = "猫".repeat(TITLE_CHARS_MAX);
        let good = [
            "train-7",
            "ResNet 实验 3",
            "تجربة",
            "नेटवर्क",
            "👩🏽‍🔬 run",
            "Zoë’s best",
            "می‌خواهم",
            "-x",
            &long,
        ];
        for title in good {
            assert_eq!(Title::new(title).unwrap().as_str(), title);
        }
        for bad in [
            "",
            " ",
            "a ",
            " a",
            "a\nb",
            "a\u{1b}[31m",
            "a\u{202e}b",
            "a\u{2067}b",
            "a\u{2028}b",
            "\u{200b}\u{200d}",
            "\u{3164}",
            "a\u{feff}",
            "a\u{9b}b",
            &format!("{long}x"),
        ] {
            let refused = Title::new(bad).unwrap_err().to_string();
            assert!(!refused.chars().any(disturbs), "{bad:?}: {refused:?}");
        }
    }
}
