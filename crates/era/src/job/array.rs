//! Arrays as people write them: `0-99`, `0-99:2`, `0-99%10`, `1,3,5`. What is printed reads back.

use std::fmt::Write;

use era_api::job::Array;

/// The largest array.
const COUNT_MAX: u32 = 100_000;

/// What is no array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadArray {
    #[error("`{0}` is no array: write for example 0-99, 0-99:2 or 0-99%10 (at most 10 at a time)")]
    NotRead(String),
    #[error("the indices `{0}` are not evenly spaced: submit them as several arrays")]
    Uneven(String),
    #[error("`{0}` makes more than {COUNT_MAX} jobs")]
    TooMany(String),
}

/// The array that a text means.
pub(crate) fn read(text: &str) -> Result<Array, BadArray> {
    let said = || text.chars().take(60).collect::<String>();
    let not_read = || BadArray::NotRead(said());
    let (indices, limit) = match text.trim().split_once('%') {
        Some((indices, limit)) => (indices, Some(number(limit).ok_or_else(not_read)?)),
        None => (text.trim(), None),
    };
    if limit == Some(0) {
        return Err(not_read());
    }
    let (from, to, step) = if indices.contains(',') {
        list(indices).ok_or_else(not_read)?.ok_or_else(|| BadArray::Uneven(said()))?
    } else {
        range(indices).ok_or_else(not_read)?
    };
    let array = Array { from, to, step, limit };
    match array.count() {
        None => Err(not_read()),
        Some(count) if count > COUNT_MAX => Err(BadArray::TooMany(said())),
        Some(_) => Ok(array),
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

/// `Some(None)` where the indices are numbers, but not evenly spaced.
#[allow(clippy::option_option)] // two ways of being no array, with a sentence each
fn list(text: &str) -> Option<Option<(u32, u32, u32)>> {
    let indices: Vec<u32> = text.split(',').map(number).collect::<Option<_>>()?;
    let (from, to) = (*indices.first()?, *indices.last()?);
    let step = indices.get(1)?.checked_sub(from);
    let even = |step: u32| indices.windows(2).all(|w| w[1].checked_sub(w[0]) == Some(step));
    Some(step.filter(|step| *step > 0 && even(*step)).map(|step| (from, to, step)))
}

/// An array as [`read`] understands it.
pub(crate) fn show(array: &Array) -> String {
    let mut text = format!("{}-{}", array.from, array.to);
    // A `String` takes whatever is written to it.
    if array.step != 1 {
        let _ = write!(text, ":{}", array.step);
    }
    if let Some(limit) = array.limit {
        let _ = write!(text, "%{limit}");
    }
    text
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
        ] {
            assert_eq!(read(text), Ok(Array { from, to, step, limit }), "{text}");
        }
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for bad in ["", "a", "9-1", "0-9:0", "0-9%0", "0-9%", "1,", "-1-5", "0-9999999", "1 2"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert!(matches!(read("1,2,4"), Err(BadArray::Uneven(_))));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(
            from in 0u32..1000,
            more in 0u32..1000,
            step in 1u32..50,
            limit in proptest::option::of(1u32..100),
        ) {
            let array = Array { from, to: from + more, step, limit };
            prop_assert_eq!(read(&show(&array)), Ok(array));
        }
    }
}
