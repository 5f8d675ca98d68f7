//! Dependencies as people write them: `12`, `12:ok`, `12:any`, by comma; and as Slurm does:
//! `afterok:12:13,afterany:14`.

use serde::{Deserialize, Serialize};

/// A job that must be over first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = After)]
pub struct AfterSpec {
    /// Which; the first job of an array stands for all of it.
    pub job: u64,
    /// How it must have ended.
    #[serde(default)]
    pub when: AfterWhen,
}

/// How a job must have ended for another to follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AfterWhen {
    #[default]
    Ok,
    /// In any way.
    Any,
}

/// Most dependencies of a job.
const COUNT_MAX: usize = 64;

/// What is no dependency.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAfter {
    /// Nobody knows what it means.
    #[error("`{0}` is no dependency: write for example 12, 12:ok or 12:any")]
    NotRead(String),
    /// Slurm has it, and ERA has not.
    #[error(
        "`{0}` is a kind of dependency that ERA does not have: a job follows others that succeeded \
         (afterok) or that ended in any way (afterany)"
    )]
    NotKnown(String),
    /// One of several, whichever.
    #[error(
        "`{0}`: a job follows all that it names, not any one of them: write commas instead of ?"
    )]
    NotAnyOne(String),
    /// More than a job may wait for.
    #[error("a job follows at most {COUNT_MAX} others")]
    TooMany,
}

/// The dependencies that a text means.
pub fn read(text: &str) -> Result<Vec<AfterSpec>, BadAfter> {
    let mut all = Vec::new();
    for item in text.split(',') {
        one(item.trim(), &mut all)?;
        if all.len() > COUNT_MAX {
            return Err(BadAfter::TooMany);
        }
    }
    Ok(all)
}

fn one(item: &str, all: &mut Vec<AfterSpec>) -> Result<(), BadAfter> {
    let said = || item.chars().take(40).collect::<String>();
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = digits.then(|| text.parse::<u64>().ok()).flatten();
        number.ok_or_else(|| BadAfter::NotRead(said()))
    };
    if item.contains('?') {
        return Err(BadAfter::NotAnyOne(said()));
    }
    let (head, rest) = item.split_once(':').unwrap_or((item, ""));
    if head.starts_with("after") || head == "singleton" {
        let when = match head {
            "afterok" => AfterWhen::Ok,
            "afterany" => AfterWhen::Any,
            _ => return Err(BadAfter::NotKnown(said())),
        };
        for job in rest.split(':') {
            all.push(AfterSpec { job: number(job)?, when });
        }
        return Ok(());
    }
    let when = match rest {
        "" if !item.contains(':') => AfterWhen::Ok,
        "ok" => AfterWhen::Ok,
        "any" => AfterWhen::Any,
        _ => return Err(BadAfter::NotRead(said())),
    };
    all.push(AfterSpec { job: number(head)?, when });
    Ok(())
}

/// A dependency as [`read`] understands it.
#[cfg(test)]
fn show(after: AfterSpec) -> String {
    let when = match after.when {
        AfterWhen::Ok => "ok",
        AfterWhen::Any => "any",
    };
    format!("{}:{when}", after.job)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dependencies_are_read_in_both_forms() {
        let (ok, any) = (AfterWhen::Ok, AfterWhen::Any);
        for (text, expected) in [
            ("12", vec![(12, ok)]),
            ("12:ok", vec![(12, ok)]),
            ("12:any,13", vec![(12, any), (13, ok)]),
            ("afterok:12:13,afterany:14", vec![(12, ok), (13, ok), (14, any)]),
        ] {
            let expected =
                expected.into_iter().map(|(job, when)| AfterSpec { job, when }).collect();
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_dependency_is_refused() {
        for bad in ["", "x", "12:", "12:maybe", "afterok:", "afternotok:3", "singleton", "1,,2"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        for kind in ["after:3", "afternotok:3", "aftercorr:3", "afterburstbuffer:3", "singleton"] {
            assert!(matches!(read(kind), Err(BadAfter::NotKnown(_))), "{kind}");
        }
        assert!(matches!(read("afterok:1?afterok:2"), Err(BadAfter::NotAnyOne(_))));
        assert_eq!(read(&vec!["1"; 65].join(",")), Err(BadAfter::TooMany));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(job in any::<u64>(), any_end in any::<bool>()) {
            let when = if any_end { AfterWhen::Any } else { AfterWhen::Ok };
            let after = AfterSpec { job, when };
            prop_assert_eq!(read(&show(after)), Ok(vec![after]));
        }
    }
}
