//! The written form of inputs, events and effects: JSON that names its version.
//!
//! A journal keeps lines of these. What an older version wrote is refused here and migrated by
//! whoever upgrades; nothing is guessed.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the written form.
pub const WIRE_VERSION: u32 = 1;

/// Why a line cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It was written by another version.
    #[error("written in version {found}, this reads version {WIRE_VERSION}: migrate it first")]
    Version {
        /// The version it names.
        found: u32,
    },
    /// It is not what it should be.
    #[error("not a line of a journal: {0}")]
    Malformed(#[from] serde_json::Error),
}

#[derive(Serialize)]
struct Written<'a, T> {
    v: u32,
    body: &'a T,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read<T> {
    #[serde(rename = "v")]
    _version: u32,
    body: T,
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

/// Writes something as one line, without its end.
pub fn write<T: Serialize>(body: &T) -> String {
    // Every type of this crate that is written has string keys and finite numbers only, so
    // writing it to memory cannot fail.
    serde_json::to_string(&Written { v: WIRE_VERSION, body }).unwrap_or_default()
}

/// Reads what [`write()`] wrote.
pub fn read<T: DeserializeOwned>(line: &str) -> Result<T, Unreadable> {
    let Version { v: found } = serde_json::from_str(line)?;
    if found != WIRE_VERSION {
        return Err(Unreadable::Version { found });
    }
    Ok(serde_json::from_str::<Read<T>>(line)?.body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;
    use crate::{Command, Input};

    #[test]
    fn what_is_written_reads_back_and_names_its_version() {
        let input = Input { seq: 7, at: Time(1000), command: Command::Tick };
        let line = write(&input);
        assert_eq!(line, r#"{"v":1,"body":{"seq":7,"at":1000,"command":{"type":"tick"}}}"#);
        assert_eq!(read::<Input>(&line).unwrap(), input);
    }

    #[test]
    fn another_version_is_refused_by_its_number() {
        let line = r#"{"v":2,"body":{"something":"else"}}"#;
        let refused = read::<Input>(line).unwrap_err().to_string();
        assert_eq!(refused, "written in version 2, this reads version 1: migrate it first");
        assert!(matches!(read::<Input>("{"), Err(Unreadable::Malformed(_))));
    }
}
