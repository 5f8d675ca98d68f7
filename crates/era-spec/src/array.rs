//! Arrays as people write them: `0-99`, `0-99:2`, `0-99%10`, `1,3,5`, `1,2,3-7`. What is printed
//! reads back.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The indices of an array: `from`, `from + step`, … up to `to`. A text such as `0-99%10` is read
/// too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
#[schema(as = Array)]
pub struct ArraySpec {
    /// The first index.
    pub from: u32,
    /// The last index, or less.
    pub to: u32,
    /// From one to the next.
    #[serde(default = "one")]
    pub step: u32,
    /// At most so many run at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// The indices as a map of their fields. Every other form is read in `reading`.
pub(crate) fn read_fields<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ArraySpec, D::Error> {
    ArraySpec::deserialize(deserializer)
}

impl Serialize for ArraySpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ArraySpec::serialize(self, serializer)
    }
}

fn one() -> u32 {
    1
}

impl ArraySpec {
    /// The index of the n-th job, from 0.
    pub fn nth(self, n: u32) -> u32 {
        self.from.saturating_add(n.saturating_mul(self.step))
    }

    /// How many jobs it makes; `None` where it makes none.
    pub fn count(self) -> Option<u32> {
        (self.to >= self.from && self.step > 0).then(|| (self.to - self.from) / self.step + 1)
    }
}

/// The largest array.
const COUNT_MAX: u32 = 100_000;

/// Most ranges that are named to whoever has to submit them one by one.
const RANGES_SHOWN: usize = 4;

/// What is no array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadArray {
    /// Nobody knows what it means.
    #[error("`{0}` is no array: write for example 0-99, 0-99:2 or 0-99%10 (at most 10 at a time)")]
    NotRead(String),
    /// One step does not lead through all of them.
    #[error(
        "the indices `{given}` are not evenly spaced: submit them as several arrays, {several}"
    )]
    Uneven { given: String, several: String },
    /// More jobs than an array may make.
    #[error("`{0}` makes more than {COUNT_MAX} jobs")]
    TooMany(String),
}

impl FromStr for ArraySpec {
    type Err = BadArray;

    fn from_str(text: &str) -> Result<ArraySpec, BadArray> {
        let said = || text.chars().take(60).collect::<String>();
        let not_read = || BadArray::NotRead(said());
        let (indices, limit) = match text.trim().split_once('%') {
            Some((indices, limit)) => (indices, Some(number(limit).ok_or_else(not_read)?)),
            None => (text.trim(), None),
        };
        if limit == Some(0) {
            return Err(not_read());
        }
        let mut ranges = Vec::new();
        let mut count = 0_u32;
        for item in indices.split(',') {
            let (from, to, step) = range(item).ok_or_else(not_read)?;
            let range = ArraySpec { from, to, step, limit };
            count = count.saturating_add(range.count().ok_or_else(not_read)?);
            if count > COUNT_MAX {
                return Err(BadArray::TooMany(said()));
            }
            ranges.push(range);
        }
        match ranges.as_slice() {
            [range] => Ok(*range),
            several => even(several).ok_or_else(|| BadArray::Uneven {
                given: said(),
                several: several
                    .iter()
                    .take(RANGES_SHOWN)
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(" and "),
            }),
        }
    }
}

/// `0-99:2%10`.
impl fmt::Display for ArraySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.from, self.to)?;
        if self.step != 1 {
            write!(f, ":{}", self.step)?;
        }
        self.limit.map_or(Ok(()), |limit| write!(f, "%{limit}"))
    }
}

fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn range(text: &str) -> Option<(u32, u32, u32)> {
    let (range, step) = match text.split_once(':') {
        Some((range, step)) => (range, number(step)?),
        None => (text, 1),
    };
    let (from, to) = match range.split_once('-') {
        Some((from, to)) => (number(from)?, number(to)?),
        None => (number(range)?, number(range)?),
    };
    (step > 0).then_some((from, to, step))
}

/// Several ranges as one, where together they are as evenly spaced as one.
fn even(ranges: &[ArraySpec]) -> Option<ArraySpec> {
    let indices: BTreeSet<u32> =
        ranges.iter().flat_map(|r| (r.from..=r.to).step_by(r.step as usize)).collect();
    let (from, to) = (*indices.first()?, *indices.last()?);
    let apart: BTreeSet<u32> =
        indices.iter().zip(indices.iter().skip(1)).map(|(one, next)| next - one).collect();
    let limit = ranges.first()?.limit;
    match apart.len() {
        0 => Some(ArraySpec { from, to, step: 1, limit }),
        1 => Some(ArraySpec { from, to, step: *apart.first()?, limit }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arrays_are_read_as_slurm_reads_them() {
        for (text, from, to, step, limit) in [
            ("0-99%10", 0, 99, 1, Some(10)),
            ("0-99:2%10", 0, 99, 2, Some(10)),
            ("1-4", 1, 4, 1, None),
            ("7", 7, 7, 1, None),
            ("1,3,5", 1, 5, 2, None),
            ("1,2,3%2", 1, 3, 1, Some(2)),
            ("1,2,3-7", 1, 7, 1, None),
            ("0-4:2,6,8-12:2%3", 0, 12, 2, Some(3)),
            ("3,1,2,2", 1, 3, 1, None),
            ("5,5", 5, 5, 1, None),
        ] {
            assert_eq!(text.parse(), Ok(ArraySpec { from, to, step, limit }), "{text}");
        }
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for bad in [
            "",
            "a",
            "9-1",
            "0-9:0",
            "0-9%0",
            "0-9%",
            "1,",
            "1,,2",
            "1,9-4",
            "-1-5",
            "0-9999999",
            "1 2",
        ] {
            assert!(bad.parse::<ArraySpec>().is_err(), "{bad}");
        }
        for gap in ["1,2,4", "1,2,4-7", "0-8:2,9"] {
            assert!(matches!(gap.parse::<ArraySpec>(), Err(BadArray::Uneven { .. })), "{gap}");
        }
        let told = "1-2,4-7%3".parse::<ArraySpec>().unwrap_err().to_string();
        assert!(told.ends_with("as several arrays, 1-2%3 and 4-7%3"), "{told}");
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(
            from in 0u32..1000,
            more in 0u32..1000,
            step in 1u32..50,
            limit in proptest::option::of(1u32..100),
        ) {
            let array = ArraySpec { from, to: from + more, step, limit };
            prop_assert_eq!(array.to_string().parse(), Ok(array));
        }
    }
}
