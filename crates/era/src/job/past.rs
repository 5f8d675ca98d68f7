//! Flags that name a point in the past.

use era_spec::when;
use jiff::{Timestamp, Zoned};

/// The point in the past that a flag is given, where it is.
pub(crate) fn flag_past(
    flag: &'static str,
    text: Option<&str>,
    now: &Zoned,
) -> Result<Option<Timestamp>, BadPast> {
    let read = |text| when::read_past(text, now).map_err(|what| BadPast { flag, what });
    text.map(read).transpose()
}

/// A flag whose value is no point in the past.
#[derive(Debug, thiserror::Error)]
#[error("{flag}: {what}")]
pub(crate) struct BadPast {
    flag: &'static str,
    what: when::BadTime,
}
