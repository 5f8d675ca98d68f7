//! Which paths a tree may have.
//!
//! A path comes from a stranger and ends up under a folder on some machine, perhaps one whose
//! file system merges `A` and `a`. So a path is relative, plain and short, and no two paths of a
//! tree can get in each other's way on any machine. File systems are not known here.

use std::collections::{BTreeMap, BTreeSet};

/// Most bytes of a path.
pub const PATH_BYTES_MAX: usize = 1024;
/// Most bytes of one part of a path.
pub(super) const PART_BYTES_MAX: usize = 255;
/// Most parts of a path.
pub const DEPTH_MAX: usize = 32;

/// Why a path is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// Nothing at all.
    #[error("a path is empty: name a file, such as `images/1.png`")]
    Empty,
    /// It begins with `/`.
    #[error("`{0}` is absolute: use a path relative to the folder")]
    Absolute(String),
    /// It has an empty part, `.` or `..`.
    #[error("`{0}` has an empty part, `.` or `..`: write it without them")]
    NotPlain(String),
    /// It has a character that some system takes for something else.
    #[error("`{0}` has a control character or a `\\`: rename the file")]
    Character(String),
    /// It is too long or too deep.
    #[error(
        "`{0}` is too long or too deep: at most {PATH_BYTES_MAX} bytes, {PART_BYTES_MAX} for each \
         part and {DEPTH_MAX} parts"
    )]
    Long(String),
    /// The same path twice, or two that differ only by case.
    #[error(
        "`{0}` and `{1}` would be one file where upper and lower case are the same: rename one"
    )]
    Merged(String, String),
    /// A file where another path needs a folder.
    #[error("`{0}` is a file, so `{1}` cannot be in it: rename one")]
    Inside(String, String),
}

pub fn check_path(path: &str) -> Result<(), BadPath> {
    let shown = || path.chars().take(120).flat_map(char::escape_debug).collect::<String>();
    if path.is_empty() {
        return Err(BadPath::Empty);
    }
    if path.chars().any(|c| c.is_control() || c == '\\' || is_invisible(c)) {
        return Err(BadPath::Character(shown()));
    }
    if path.starts_with('/') {
        return Err(BadPath::Absolute(shown()));
    }
    let parts = || path.split('/');
    if parts().any(|part| matches!(part, "" | "." | "..")) {
        return Err(BadPath::NotPlain(shown()));
    }
    let long = path.len() > PATH_BYTES_MAX
        || parts().count() > DEPTH_MAX
        || parts().any(|part| part.len() > PART_BYTES_MAX);
    if long { Err(BadPath::Long(shown())) } else { Ok(()) }
}

/// Characters that turn text around or cannot be seen: a name must look like what it is.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Checks that the paths of a tree do not get in each other's way.
pub(super) fn check_together<'a>(paths: impl Iterator<Item = &'a str>) -> Result<(), BadPath> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for path in paths {
        check_path(path)?;
        if let Some(before) = seen.insert(path.to_lowercase(), path) {
            return Err(BadPath::Merged(before.to_owned(), path.to_owned()));
        }
    }
    let mut folders_seen: BTreeSet<&str> = BTreeSet::new();
    for (folded, path) in &seen {
        for (at, _) in folded.match_indices('/') {
            // Folders repeat from file to file: each is looked up once.
            if folders_seen.insert(&folded[..at])
                && let Some(file) = seen.get(&folded[..at])
            {
                return Err(BadPath::Inside((*file).to_owned(), (*path).to_owned()));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hostile_paths_are_refused() {
        let long = "a".repeat(256);
        let longer = vec!["a".repeat(200); 6].join("/");
        let deep = vec!["a"; 33].join("/");
        let hostile = [
            "",
            "/",
            "/etc/passwd",
            ".",
            "..",
            "../a",
            "a/../b",
            "a/./b",
            "a//b",
            "a/",
            "a\\b",
            "a\0b",
            "a\nb",
            "\u{7f}",
            "a\u{202e}gnp.exe",
            "..\\..\\a",
            &long,
            &longer,
            &deep,
        ];
        for path in hostile {
            assert!(check_path(path).is_err(), "{path:?}");
        }
        // Letters of any script are told as they are; what would disturb a line is not.
        let told = check_path("/数据/a\u{1b}").unwrap_err().to_string();
        assert!(told.contains("`/数据/a\\u{1b}`"), "{told}");
        for path in ["a", "a/b.txt", "…/ü", "...", "a b", ".hidden", "2026-11-20T06:00.log", "-rf"]
        {
            check_path(path).unwrap();
        }
    }

    #[test]
    fn paths_that_some_client_would_merge_are_refused() {
        let check = |paths: &[&str]| check_together(paths.iter().copied());
        assert!(matches!(check(&["a", "a"]), Err(BadPath::Merged(..))));
        assert!(matches!(check(&["Read.me", "read.ME"]), Err(BadPath::Merged(..))));
        assert!(matches!(check(&["a", "a/b"]), Err(BadPath::Inside(..))));
        assert!(matches!(check(&["A", "a-", "a/b"]), Err(BadPath::Inside(..))));
        check(&["a/b", "a/c", "ab", "a-"]).unwrap();
    }

    proptest! {
        /// What is accepted stays below any folder that it is joined to.
        #[test]
        fn what_is_accepted_stays_below_its_folder(path in "[./a\\\\:b\u{0}-\u{20}]{0,12}") {
            if check_path(&path).is_ok() {
                let joined = std::path::Path::new("/root").join(&path);
                prop_assert!(joined.starts_with("/root"));
                let plain = |c: std::path::Component<'_>| {
                    !matches!(c, std::path::Component::ParentDir | std::path::Component::CurDir)
                };
                prop_assert!(joined.components().all(plain));
            }
        }
    }
}
