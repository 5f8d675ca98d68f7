//! Folders of jobs that left nothing behind, put aside for the next jobs of the same user.
//!
//! Making the folders of a job is a large part of what a small task costs, and most tasks of a
//! large array leave nothing but these: half a dozen files for each, which nobody ever looks at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use era_core::units::UserId;

use crate::executor::Launch;
use crate::task::Places;

/// Most folders that are put aside; those of more jobs stay where they are.
const ASIDE_MAX: usize = 256;

/// What was put aside, and for whom.
#[derive(Debug)]
pub(super) struct Emptied {
    place: PathBuf,
    of: BTreeMap<UserId, Vec<PathBuf>>,
    count: usize,
    next: u64,
}

/// Whether this is the first and only task of its job: all folders have the same names then.
fn is_only_task(launch: &Launch) -> bool {
    let task = launch.task;
    launch.spec.alone && (task.part, task.attempt, task.rank) == (0, 1, 0)
}

impl Emptied {
    /// None yet; they will lie in this folder.
    pub(super) fn new(place: &Path) -> Emptied {
        Emptied { place: place.to_owned(), of: BTreeMap::new(), count: 0, next: 0 }
    }

    /// Takes the folder of a job that is over, if nothing is in it that was not there before.
    pub(super) fn take(&mut self, launch: &Launch) {
        if self.count >= ASIDE_MAX || !is_only_task(launch) {
            return;
        }
        let places = Places::of(launch);
        let aside = self.place.join(format!("j{}", self.next));
        // It may lie on another disk, where it stays.
        if places.is_untouched() && std::fs::rename(&places.folder, &aside).is_ok() {
            self.of.entry(launch.spec.user).or_default().push(aside);
            self.count += 1;
            self.next += 1;
        }
    }

    /// Makes one of the same user that of a job that is about to start, if there is one. What is
    /// missing is made by the keeper.
    pub(super) fn give(&mut self, launch: &Launch) {
        let Some(theirs) = self.of.get_mut(&launch.spec.user) else { return };
        // Where checkpoints are to be carried over there must be none yet, not even no file of them.
        let carries = launch.spec.checkpoints_of.is_some();
        if carries || !is_only_task(launch) || launch.spec.folder.exists() {
            return;
        }
        if let Some(aside) = theirs.pop() {
            self.count -= 1;
            if std::fs::rename(&aside, &launch.spec.folder).is_err() {
                // Swept at the next start.
                tracing::warn!(path = %aside.display(), "a spare folder could not be used");
            }
        }
        if theirs.is_empty() {
            self.of.remove(&launch.spec.user);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::Arc;

    use super::*;
    use crate::isolate::Isolation;
    use crate::shim::tests::launch;

    struct Bed {
        root: tempfile::TempDir,
        emptied: Emptied,
    }

    impl Bed {
        fn new() -> Bed {
            let root = tempfile::tempdir().expect("a folder");
            let place = root.path().join("spare");
            std::fs::create_dir(&place).expect("made");
            Bed { emptied: Emptied::new(&place), root }
        }

        fn launch(&self, job: u64, user: u32) -> Launch {
            let mut launch = launch(job, &["true"]);
            let spec = Arc::make_mut(&mut launch.spec);
            spec.folder = self.root.path().join(job.to_string());
            spec.user = UserId(user);
            launch
        }

        /// A job that began and does this before it ends.
        fn run(&mut self, launch: &Launch, does: impl FnOnce(&Places)) {
            self.emptied.give(launch);
            let places = Places::of(launch);
            places.prepare(launch, &Isolation::NONE, None).expect("ready");
            does(&places);
            places.tidy();
            self.emptied.take(launch);
        }
    }

    #[test]
    fn a_job_that_left_nothing_gives_its_folder_to_the_next_of_its_user() {
        let mut bed = Bed::new();
        let first = bed.launch(1, 7);
        bed.run(&first, |_| {});
        assert!(!first.spec.folder.exists());
        let other = bed.launch(2, 8);
        bed.emptied.give(&other);
        assert!(!other.spec.folder.exists(), "another user's");
        let second = bed.launch(3, 7);
        bed.emptied.give(&second);
        assert!(second.spec.folder.join("outputs").is_dir());
        let third = bed.launch(4, 7);
        bed.emptied.give(&third);
        assert!(!third.spec.folder.exists(), "there was one only");
        assert_eq!((bed.emptied.count, bed.emptied.of.len()), (0, 0));
    }

    #[test]
    fn whatever_a_job_left_stays_where_it_is() {
        type Does = fn(&Places);
        let left: [(&str, Does); 9] = [
            ("an output", |at| std::fs::write(at.outputs.join("x"), "1").expect("written")),
            ("a checkpoint", |at| std::fs::write(at.checkpoints.join("x"), "1").expect("written")),
            ("a file", |at| std::fs::write(at.work.join("x"), "1").expect("written")),
            ("a log", |at| std::fs::create_dir(at.folder.join("logs")).expect("made")),
            ("a task", |at| std::fs::create_dir(at.folder.join("work/p0-a2-r0")).expect("made")),
            ("another link", |at| {
                let link = at.work.join("outputs");
                std::fs::remove_file(&link).expect("removed");
                std::os::unix::fs::symlink("/etc", link).expect("linked");
            }),
            ("a missing link", |at| std::fs::remove_file(at.work.join("outputs")).expect("gone")),
            ("a missing folder", |at| std::fs::remove_dir(&at.outputs).expect("gone")),
            ("an open folder", |at| {
                let open = std::fs::Permissions::from_mode(0o777);
                std::fs::set_permissions(&at.outputs, open).expect("opened");
            }),
        ];
        let mut bed = Bed::new();
        for (job, (what, does)) in (1..).zip(left) {
            let launch = bed.launch(job, 7);
            bed.run(&launch, does);
            assert!(launch.spec.folder.exists(), "{what}");
            assert_eq!(bed.emptied.count, 0, "{what}");
        }
    }

    #[test]
    fn a_folder_that_others_may_use_is_not_taken() {
        let mut bed = Bed::new();
        let mut of_a_gang = bed.launch(1, 7);
        Arc::make_mut(&mut of_a_gang.spec).alone = false;
        bed.run(&of_a_gang, |_| {});
        let mut again = bed.launch(2, 7);
        again.task.attempt = 2;
        bed.run(&again, |_| {});
        assert!(of_a_gang.spec.folder.exists() && again.spec.folder.exists());
    }

    #[test]
    fn only_so_many_are_put_aside() {
        let mut bed = Bed::new();
        bed.emptied.count = ASIDE_MAX;
        let launch = bed.launch(1, 7);
        bed.run(&launch, |_| {});
        assert!(launch.spec.folder.exists());
    }
}
