//! `era images watch`: a folder is built, pushed and published whenever what is in it changes.
//!
//! A change is one of contents, names or modes: what was only touched is not built again, and an
//! older file that is copied over a newer one is. What fails is tried again after a while, since a
//! registry that is away comes back without anybody touching a file.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use blake3::Hash;

use super::{About, Source};
use crate::cli::connection::Common;
use crate::cli::data::local;
use crate::cli::look;
use crate::clock::instant;

/// How often a folder is looked at for changes, and for how long it must be still before it is
/// built: from one look to the next.
const LOOK: Duration = Duration::from_millis(500);
/// How long it is until what failed is tried again, at first and at most.
const AGAIN_MIN: Duration = Duration::from_secs(2);
const AGAIN_MAX: Duration = Duration::from_secs(120);

/// Builds, pushes and publishes now and at every change, until it is interrupted.
pub(super) fn watch(source: &Source, about: &About, common: &Common) -> anyhow::Result<()> {
    let client = common.client()?;
    let name = source.name()?;
    let name = name.split(':').next().unwrap_or_default().to_owned();
    glance(&source.folder, &source.dockerfile)?;
    let (mut course, mut seen) = (Course::default(), FolderStamp::default());
    loop {
        // A file that went away under our eyes is a change like any other: the next look sees it.
        let tree = seen.look(&source.folder, &source.dockerfile);
        if let Some(tree) = tree.filter(|tree| course.is_due(*tree)) {
            let published = source
                .build(&client, true)
                .and_then(|built| Ok(client.publish_image(&about.entry(name.clone(), built))?));
            match published {
                Ok(image) => {
                    look::print(common.output, &image, |image| {
                        let built = image.digest.as_deref().unwrap_or(&image.reference);
                        format!("Published {built} as {}.\n", image.name)
                    })?;
                    course.succeeded(tree);
                }
                Err(error) => {
                    let wait = course.failed(tree, instant()).as_secs();
                    let again = format!("trying again in {wait} s, or at the next change");
                    look::note(&format!("{}\n{again}", crate::cli::told(&error)));
                }
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// What was built last, and what could not be.
#[derive(Debug, Default)]
struct Course {
    built: Option<Hash>,
    failed: Option<Failed>,
}

#[derive(Debug)]
struct Failed {
    tree: Hash,
    again: Instant,
    wait: Duration,
}

impl Course {
    fn is_due(&self, tree: Hash) -> bool {
        match &self.failed {
            Some(failed) if failed.tree == tree => instant() >= failed.again,
            _ => self.built != Some(tree),
        }
    }

    fn succeeded(&mut self, tree: Hash) {
        *self = Course { built: Some(tree), failed: None };
    }

    /// It is tried again after this long.
    fn failed(&mut self, tree: Hash, now: Instant) -> Duration {
        let before = self.failed.take().filter(|failed| failed.tree == tree);
        let wait = before.map_or(AGAIN_MIN, |failed| (failed.wait * 2).min(AGAIN_MAX));
        self.failed = Some(Failed { tree, again: now + wait, wait });
        wait
    }
}

/// A folder as it was seen last: a glance at every look, and its contents once it is still.
#[derive(Debug, Default)]
struct FolderStamp {
    glance: Option<Hash>,
    tree: Option<Hash>,
}

impl FolderStamp {
    /// The hash of all that is in a folder; `None` while it changes.
    fn look(&mut self, folder: &Path, dockerfile: &str) -> Option<Hash> {
        let now = glance(folder, dockerfile).ok();
        if now.is_none() || now != self.glance {
            *self = FolderStamp { glance: now, tree: None };
            return None;
        }
        if self.tree.is_none() {
            self.tree = contents(folder, dockerfile).ok();
        }
        self.tree
    }
}

/// What can be told of files without reading them. The time at which a file's place on the disk was
/// last written cannot be set back, as `cp -p` sets back the time of its contents.
fn glance(folder: &Path, dockerfile: &str) -> anyhow::Result<Hash> {
    let mut hasher = blake3::Hasher::new();
    for file in local::files(folder, local::Kind::Image(dockerfile))? {
        let about = file.file.metadata().with_context(|| file.file.display().to_string())?;
        hasher
            .update(format!("{:?} {:?} {}", file.path, about.modified()?, about.len()).as_bytes());
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let (at, part) = (about.ctime(), about.ctime_nsec());
            let more = format!(" {at} {part} {} {}", about.ino(), about.mode());
            hasher.update(more.as_bytes());
        }
        hasher.update(b"\n");
    }
    Ok(hasher.finalize())
}

/// The hash of all that is sent: names, modes and contents.
fn contents(folder: &Path, dockerfile: &str) -> anyhow::Result<Hash> {
    let files = local::files(folder, local::Kind::Image(dockerfile))?;
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let mut one = blake3::Hasher::new();
        let mut reader =
            std::fs::File::open(&file.file).with_context(|| file.file.display().to_string())?;
        std::io::copy(&mut reader, &mut one)?;
        let line = format!("{:?} {} {}\n", file.path, file.executable, one.finalize());
        hasher.update(line.as_bytes());
    }
    Ok(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two looks: one that sees a change, and one that finds it still.
    fn seen(seen: &mut FolderStamp, folder: &Path) -> Option<Hash> {
        let mut look = || seen.look(folder, "Dockerfile");
        look().or_else(look)
    }

    #[test]
    fn an_older_file_that_is_copied_over_a_newer_one_is_a_change_and_a_touch_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("Dockerfile"), tempfile::NamedTempFile::new());
        let other = other.unwrap();
        let set = |path: &Path, seconds: u64| {
            let at = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            std::fs::File::options().append(true).open(path).unwrap().set_modified(at).unwrap();
        };
        std::fs::write(&file, "FROM a").unwrap();
        set(&file, 2_000);
        let mut looked = FolderStamp::default();
        assert_eq!(looked.look(folder.path(), "Dockerfile"), None, "it may still change");
        let first = seen(&mut looked, folder.path()).unwrap();
        // What `cp -p` does: as long, and older.
        std::fs::write(other.path(), "FROM b").unwrap();
        std::fs::copy(other.path(), &file).unwrap();
        set(&file, 2_000);
        let second = seen(&mut looked, folder.path()).unwrap();
        assert_ne!(first, second);
        set(&file, 3_000);
        assert_eq!(seen(&mut looked, folder.path()), Some(second));
        std::fs::remove_file(&file).unwrap();
        assert_ne!(seen(&mut looked, folder.path()), Some(second));
    }

    #[test]
    fn what_failed_is_tried_again_later_and_later_until_it_changes_or_works() {
        let [one, two] = ["one", "two"].map(|text| blake3::hash(text.as_bytes()));
        let mut course = Course::default();
        let long_ago = instant().checked_sub(Duration::from_secs(3_600)).unwrap();
        assert!(course.is_due(one));
        assert_eq!(course.failed(one, instant()), AGAIN_MIN);
        assert!(!course.is_due(one) && course.is_due(two));
        assert_eq!(course.failed(one, long_ago), AGAIN_MIN * 2);
        assert!(course.is_due(one), "its time has come");
        let last = (0..20).map(|_| course.failed(one, long_ago)).last();
        assert_eq!(last, Some(AGAIN_MAX));
        assert_eq!(course.failed(two, long_ago), AGAIN_MIN, "another one begins anew");
        course.succeeded(one);
        assert!(!course.is_due(one) && course.is_due(two));
    }
}
