//! How much disk a task's folders take.
//!
//! A walk is bounded: it gives up after [`ENTRIES_MAX`] entries and says what it has counted, and
//! whoever walks again waits in proportion to how long the last walk took, so that a folder of a
//! million files costs no more than a small part of one core. Links are counted, not followed.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::MachineClock;

/// No walk looks at more entries than this.
pub const ENTRIES_MAX: usize = 200_000;
/// A walk takes at most this share of the time: one part in so many.
const SHARE: u32 = 50;
/// Walks of one task are at least so far apart.
const APART_MIN: Duration = Duration::from_secs(2);

/// What a walk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walked {
    /// Bytes on disk.
    pub bytes: u64,
    /// Whether it gave up before the end, so that there are more.
    pub gave_up: bool,
    /// How long to wait before the next walk.
    pub rest: Duration,
}

/// Adds up what is on disk below these folders. A file with several names counts once, and where
/// an owner is given, what belongs to others (inputs, which are linked) does not count.
pub fn walk(
    folders: &[PathBuf],
    owner: Option<u32>,
    entries_max: usize,
    clock: &MachineClock,
) -> Walked {
    let begun = clock.steady();
    let mut next: Vec<PathBuf> = folders.to_vec();
    let (mut bytes, mut entries, mut gave_up) = (0u64, 0usize, false);
    let mut linked = BTreeSet::new();
    'walk: while let Some(folder) = next.pop() {
        // A folder may go, or be closed to us, while we look.
        let Ok(inside) = std::fs::read_dir(&folder) else { continue };
        for entry in inside.flatten() {
            entries += 1;
            if entries > entries_max {
                gave_up = true;
                break 'walk;
            }
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() {
                next.push(entry.path());
            }
            if owner.is_some_and(|owner| owner != about.uid()) {
                continue;
            }
            if about.nlink() < 2 || about.is_dir() || linked.insert((about.dev(), about.ino())) {
                bytes = bytes.saturating_add(about.blocks().saturating_mul(512));
            }
        }
    }
    let rest = (clock.steady().saturating_duration_since(begun) * SHARE).max(APART_MIN);
    Walked { bytes, gave_up, rest }
}

/// The folders of a task that count: what it writes, not what it was given.
pub fn counted(places: &crate::task::Places) -> Vec<PathBuf> {
    let of = |path: &Path| path.to_owned();
    vec![of(&places.work), of(&places.tmp), of(&places.outputs), of(&places.checkpoints)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(folder: &Path, entries_max: usize) -> Walked {
        super::walk(&[folder.into()], None, entries_max, &MachineClock::system())
    }

    #[test]
    fn bytes_on_disk_are_added_up_and_a_second_name_is_free() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join("a/b");
        std::fs::create_dir_all(&deep).expect("make");
        std::fs::write(deep.join("file"), vec![1u8; 1 << 20]).expect("write");
        let once = walk(folder.path(), ENTRIES_MAX).bytes;
        std::fs::hard_link(deep.join("file"), deep.join("again")).expect("link");
        let walked = walk(folder.path(), ENTRIES_MAX);
        assert!((1 << 20..2 << 20).contains(&once), "{once}");
        assert_eq!((walked.bytes, walked.gave_up), (once, false));
    }

    #[test]
    fn a_walk_is_bounded_and_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        for n in 0..20 {
            std::fs::write(folder.path().join(n.to_string()), "x").expect("write");
        }
        assert!(walk(folder.path(), 10).gave_up);
    }

    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink("/", folder.path().join("root")).expect("link");
        assert!(walk(folder.path(), 100).bytes < 1 << 20);
    }
}
