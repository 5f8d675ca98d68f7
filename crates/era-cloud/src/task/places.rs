//! The folders of a task: where they are, and what is in them before it starts.
//!
//! A job's folder holds `outputs/` and `checkpoints/`, which its attempts share, and below `work/`
//! a working and a temporary folder for each task. The code is copied into the working folder.
//! Inputs are shown, never copied where that can be helped: a folder is mounted read-only (as root)
//! or linked, a file is a second name of the kept one, which only root could write to.
//!
//! Everything is made by us in folders that no task can write to at that time, so no link that a
//! task leaves there leads us astray: all tasks of a user run under one user id and see all of their
//! job's folder. So a working folder is ours alone until all of it is there, and is given to its
//! owner last ([`give`]).

use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::fs::{
    DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown, fchown, lchown,
};
use std::path::{Component, Path, PathBuf};

use super::carried::{self, NotCarried};
use super::environment::TaskFolders;
use crate::executor::{Launch, Staged};
use crate::isolate::{Isolation, Unisolated};

/// Why a task's folders could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum Unready {
    /// A path that leaves the working folder.
    #[error("`{0}` leaves the working folder: use a relative path without `..`")]
    Escapes(String),
    /// An input in a folder that is the task's own, where it could lead anywhere.
    #[error("`{0}` is the job's own folder: show its inputs elsewhere")]
    Kept(String),
    /// Checkpoints that are too many to be carried over.
    #[error(
        "the checkpoints of job {0} are more than a task may have on disk: `era retry --fresh` \
         starts without them"
    )]
    TooManyCheckpoints(String),
    /// A file or folder could not be made.
    #[error("could not make {path} ready: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// The user has no user id.
    #[error(transparent)]
    Unisolated(#[from] Unisolated),
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Unready + '_ {
    move |source| Unready::Io { path: path.into(), source }
}

/// What is kept of a job, as the working folder names it.
const KEPT: [&str; 2] = ["outputs", "checkpoints"];

/// The folders of one task, as they are outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    pub folder: PathBuf,
    /// The working folder.
    pub work: PathBuf,
    /// The temporary folder.
    pub tmp: PathBuf,
    /// What is kept.
    pub outputs: PathBuf,
    /// What is kept between attempts.
    pub checkpoints: PathBuf,
}

impl Places {
    pub fn of(launch: &Launch) -> Places {
        let task = launch.task;
        let name = format!("p{}-a{}-r{}", task.part, task.attempt, task.rank);
        let folder = launch.spec.folder.clone();
        Places {
            work: folder.join("work").join(&name),
            tmp: folder.join("work").join(format!("{name}.tmp")),
            outputs: folder.join("outputs"),
            checkpoints: folder.join("checkpoints"),
            folder,
        }
    }

    /// Where the newest size of a part's gang is written.
    pub fn world(folder: &Path, part: u16, attempt: u32) -> PathBuf {
        folder.join(format!("world-p{part}-a{attempt}"))
    }

    /// As the task sees them, which is elsewhere where its job's folder is mounted at `root`.
    pub fn seen(&self, launch: &Launch, root: Option<&Path>) -> TaskFolders {
        let world = Places::world(&self.folder, launch.task.part, launch.task.attempt);
        let inside = |path: &Path| match (root, path.strip_prefix(&self.folder)) {
            (Some(root), Ok(below)) => root.join(below),
            _ => path.to_owned(),
        };
        TaskFolders {
            work: inside(&self.work),
            tmp: root.map_or_else(|| self.tmp.clone(), |_| "/tmp".into()),
            outputs: inside(&self.outputs),
            checkpoints: inside(&self.checkpoints),
            world: inside(&world),
        }
    }

    /// Makes them, copies the code, shows the inputs. What it returns is still to be mounted
    /// read-only: from a kept folder, to a path in the working folder. That one is still to be
    /// given to its owner, once nothing more is done in it. A spare folder of the same owner
    /// becomes the temporary one.
    pub fn prepare(
        &self,
        launch: &Launch,
        isolation: &Isolation,
        spare: Option<&Path>,
    ) -> Result<Vec<(PathBuf, PathBuf)>, Unready> {
        let owner = isolation.uid(launch.spec.user)?;
        make(&self.folder, 0o755, None)?;
        let work = self.folder.join("work");
        make(&work, 0o755, None)?;
        self.carry_checkpoints(launch, owner)?;
        for own in [&self.outputs, &self.checkpoints] {
            make_own(own, owner)?;
        }
        if !spare.is_some_and(|spare| self.take_spare(spare)) {
            make_own(&self.tmp, owner)?;
        }
        self.make_closed(owner).map_err(at(&self.work))?;
        for file in launch.spec.code.iter().filter(|file| !hides(&file.to)) {
            let to = self.inside(&file.to, owner)?;
            copy(&file.from, &to, file.executable, owner).map_err(at(&to))?;
        }
        let mut mounts = Vec::new();
        for input in &launch.spec.inputs {
            if hides(&input.to) {
                return Err(Unready::Kept(input.to.clone()));
            }
            // The folders that lead to an input are not the task's, so it cannot rename them.
            let to = self.inside(&input.to, None)?;
            if let Some(mount) = show(input, &to, isolation).map_err(at(&to))? {
                mounts.push(mount);
            }
        }
        Ok(mounts)
    }

    /// Brings the checkpoints of the job in whose place this one was handed in, unless an earlier
    /// task of it has.
    fn carry_checkpoints(&self, launch: &Launch, owner: Option<u32>) -> Result<(), Unready> {
        let Some(before) = &launch.spec.checkpoints_of else { return Ok(()) };
        let from = before.join(KEPT[1]);
        let task = self.work.file_name().unwrap_or_default().to_string_lossy();
        let part = self.folder.join(format!("{}.{task}", KEPT[1]));
        let bytes_max = launch.spec.limits.disk_bytes;
        carried::carry(&from, &self.checkpoints, &part, owner, bytes_max).map_err(|why| match why {
            NotCarried::TooMuch => {
                let job = before.file_name().unwrap_or_default();
                Unready::TooManyCheckpoints(job.to_string_lossy().into_owned())
            }
            NotCarried::Io(source) => Unready::Io { path: self.checkpoints.clone(), source },
        })
    }

    /// Makes the working folder so that nobody but us can change it, with nothing in it but the
    /// links to what is kept.
    fn make_closed(&self, owner: Option<u32>) -> io::Result<()> {
        match std::fs::DirBuilder::new().mode(0o700).create(&self.work) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Whoever still has it open can do nothing in it from here on, so what we find is
                // what stays.
                close(&self.work, owner)?;
                if self.holds_the_links() {
                    return Ok(());
                }
                // Half made and begun again, or not as it was put aside.
                std::fs::remove_dir_all(&self.work)?;
                std::fs::DirBuilder::new().mode(0o700).create(&self.work)?;
            }
            made => made?,
        }
        KEPT.iter().try_for_each(|kept| symlink(linked(kept), self.work.join(kept)))
    }

    /// Whether the working folder holds the links to what is kept, and nothing else.
    fn holds_the_links(&self) -> bool {
        let leads = |kept: &&str| {
            std::fs::read_link(self.work.join(kept)).is_ok_and(|to| to == linked(kept))
        };
        holds_only(&self.work, &KEPT) && KEPT.iter().all(leads)
    }

    /// Makes a spare folder the temporary one, and says whether that could be done.
    fn take_spare(&self, spare: &Path) -> bool {
        // Its owner may have closed it.
        std::fs::set_permissions(spare, std::fs::Permissions::from_mode(0o700)).is_ok()
            && std::fs::rename(spare, &self.tmp).is_ok()
    }

    /// Puts the temporary folder of a task that is gone aside as `spare`, for the next task of the
    /// same user, if nothing is in it, and says whether that was done. A file system may take long
    /// to make a folder where others were just deleted (ext4 without a journal looks at each of the
    /// last minutes), and tasks may be many.
    pub fn put_aside(&self, spare: &Path) -> bool {
        holds_only(&self.tmp, &[]) && std::fs::rename(&self.tmp, spare).is_ok()
    }

    /// Removes what nobody needs once all of the task is gone.
    pub fn tidy(&self) {
        if let Err(error) = std::fs::remove_dir_all(&self.tmp)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.tmp.display(), %error, "a temporary folder stays");
        }
    }

    /// Whether the job's folder is as it was made ready for a task without code or inputs, but for
    /// the temporary folder, which is gone.
    pub fn is_untouched(&self) -> bool {
        let work = self.folder.join("work");
        let Some(name) = self.work.file_name().and_then(std::ffi::OsStr::to_str) else {
            return false;
        };
        holds_only(&self.folder, &["work", KEPT[0], KEPT[1]])
            && holds_only(&work, &[name])
            && self.holds_the_links()
            && [&self.outputs, &self.checkpoints].into_iter().all(|kept| holds_only(kept, &[]))
            && [&self.work, &self.outputs, &self.checkpoints].into_iter().all(|own| {
                // Its owner may have opened it to others, or closed it.
                let about = std::fs::symlink_metadata(own);
                about.is_ok_and(|it| it.is_dir() && it.permissions().mode() & 0o7777 == 0o700)
            })
    }

    /// A path in the working folder, whose parents are made.
    fn inside(&self, to: &str, owner: Option<u32>) -> Result<PathBuf, Unready> {
        let mut path = self.work.clone();
        let mut parts = steps(to);
        let mut next = parts.next();
        if next.is_none() {
            return Err(Unready::Escapes(to.into()));
        }
        while let Some(part) = next {
            let Component::Normal(name) = part else { return Err(Unready::Escapes(to.into())) };
            path.push(name);
            next = parts.next();
            if next.is_some() {
                make(&path, 0o755, owner)?;
            }
        }
        Ok(path)
    }
}

/// Gives a working folder that was made ready to the user that its task runs as: the last that is
/// done to it before the task starts.
pub(crate) fn give(work: &Path, owner: Option<u32>) -> io::Result<()> {
    if owner.is_some() { lchown(work, owner, owner) } else { Ok(()) }
}

/// The steps of a path, without those that lead nowhere.
fn steps(to: &str) -> impl Iterator<Item = Component<'_>> {
    Path::new(to).components().filter(|part| *part != Component::CurDir)
}

/// Whether a path stands in the place of a kept folder, which it would hide.
fn hides(to: &str) -> bool {
    let first = steps(to).next();
    KEPT.iter().any(|kept| first == Some(Component::Normal(kept.as_ref())))
}

/// Where the link of a working folder to what is kept leads.
fn linked(kept: &str) -> PathBuf {
    Path::new("../..").join(kept)
}

/// Makes a folder ours alone, if its tasks have an owner of their own.
fn close(folder: &Path, owner: Option<u32>) -> io::Result<()> {
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW;
    let flags = flags.bits().cast_signed();
    let folder = std::fs::File::options().read(true).custom_flags(flags).open(folder)?;
    if owner.is_some() {
        fchown(&folder, Some(0), Some(0))?;
    }
    folder.set_permissions(std::fs::Permissions::from_mode(0o700))
}

/// Whether these are in a folder, and nothing else.
fn holds_only(folder: &Path, names: &[&str]) -> bool {
    let Ok(inside) = std::fs::read_dir(folder) else { return false };
    let mut found = 0;
    for entry in inside {
        match entry {
            Ok(entry) if names.iter().any(|name| entry.file_name() == *name) => found += 1,
            _ => return false,
        }
    }
    found == names.len()
}

/// Makes a folder that is its owner's alone. One that is there and still ours was half made: whoever
/// made it was killed before it was given away.
fn make_own(path: &Path, owner: Option<u32>) -> Result<(), Unready> {
    make(path, 0o700, owner)?;
    let half_made = || std::fs::symlink_metadata(path).is_ok_and(|about| about.uid() == 0);
    if owner.is_some() && half_made() {
        lchown(path, owner, owner).map_err(at(path))?;
    }
    Ok(())
}

/// Makes a folder for someone, unless it is there.
fn make(path: &Path, mode: u32, owner: Option<u32>) -> Result<(), Unready> {
    let builder = |recursive: bool| {
        let mut builder = std::fs::DirBuilder::new();
        builder.mode(mode).recursive(recursive);
        builder
    };
    match builder(false).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // What leads elsewhere is no folder to make anything in.
            let about = std::fs::symlink_metadata(path).map_err(at(path))?;
            let no_folder = || at(path)(io::ErrorKind::NotADirectory.into());
            return about.is_dir().then_some(()).ok_or_else(no_folder);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            builder(true).create(path).map_err(at(path))?;
        }
        Err(error) => return Err(at(path)(error)),
    }
    if owner.is_some() {
        chown(path, owner, owner).map_err(at(path))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path, executable: bool, owner: Option<u32>) -> io::Result<()> {
    std::fs::copy(from, to)?;
    let mode = if executable { 0o755 } else { 0o644 };
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(mode))?;
    chown(to, owner, owner)
}

/// Shows an input at a path. A folder that is to be mounted there is returned.
fn show(
    input: &Staged,
    to: &Path,
    isolation: &Isolation,
) -> io::Result<Option<(PathBuf, PathBuf)>> {
    let folder = std::fs::metadata(&input.from)?.is_dir();
    if folder && isolation.namespaces {
        std::fs::create_dir(to)?;
        return Ok(Some((input.from.clone(), to.to_owned())));
    }
    if folder || isolation.first_uid.is_none() {
        if !folder && input.executable {
            // The kept file is not to be executed by itself, and a link would not change that.
            copy(&input.from, to, true, None)?;
        } else {
            symlink(&input.from, to)?;
        }
        return Ok(None);
    }
    // A second name of the kept file: the task is not its owner, and cannot change it.
    match std::fs::hard_link(&input.from, to) {
        // Something is shown there already: a copy onto it would empty a kept file.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(_) => drop(std::fs::copy(&input.from, to)?),
        Ok(()) => {}
    }
    // A kept file is one for all that show it: who may execute it in one place may not lose that
    // because another shows it too.
    let before = std::fs::symlink_metadata(to)?.permissions().mode() & 0o111;
    let execute = if input.executable { 0o111 } else { before };
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o444 | execute))?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::tests::launch;
    use std::sync::Arc;

    #[test]
    fn an_input_never_goes_where_a_task_may_have_put_a_link() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("from"), "x").expect("written");
        std::fs::create_dir(folder.path().join("elsewhere")).expect("made");
        let mut launch = launch(1, &["true"]);
        let spec = Arc::make_mut(&mut launch.spec);
        spec.folder = folder.path().join("1");
        spec.inputs = vec![crate::executor::Staged {
            from: folder.path().join("from"),
            to: "outputs/d/x".to_owned(),
            executable: false,
        }];
        std::fs::create_dir_all(spec.folder.join("outputs")).expect("made");
        // As an earlier attempt of the same job may have left it.
        symlink(folder.path().join("elsewhere"), spec.folder.join("outputs/d")).expect("linked");
        let refused = Places::of(&launch).prepare(&launch, &Isolation::NONE, None);
        assert!(matches!(refused, Err(Unready::Kept(path)) if path == "outputs/d/x"));
        assert!(!folder.path().join("elsewhere/x").exists());
    }

    #[test]
    fn a_temporary_folder_is_used_again_only_if_nothing_is_left_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let spare = folder.path().join("spare");
        let ready = |job: u64, spare: Option<&Path>| {
            let mut launch = launch(job, &["true"]);
            Arc::make_mut(&mut launch.spec).folder = folder.path().join(job.to_string());
            let places = Places::of(&launch);
            places.prepare(&launch, &Isolation::NONE, spare).expect("ready");
            places
        };
        let first = ready(1, Some(&spare));
        std::fs::set_permissions(&first.tmp, std::fs::Permissions::from_mode(0o000)).expect("mode");
        assert!(first.put_aside(&spare) && spare.is_dir() && !first.tmp.exists());
        let second = ready(2, Some(&spare));
        assert!(!spare.exists(), "it was taken");
        let mode = std::fs::metadata(&second.tmp).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::write(second.tmp.join("secret"), "x").expect("write");
        assert!(!second.put_aside(&spare) && !spare.exists());
        second.tidy();
        assert!(!second.tmp.exists());
    }

    #[test]
    fn a_path_that_begins_with_a_dot_hides_nothing_either() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = folder.path().join("kept");
        std::fs::write(&kept, "x").expect("written");
        for to in ["./outputs/x", "././checkpoints", "outputs/./x"] {
            let mut launch = launch(1, &["true"]);
            let spec = Arc::make_mut(&mut launch.spec);
            spec.folder = folder.path().join("job");
            spec.code = vec![staged(&kept, to)];
            let places = Places::of(&launch);
            places.prepare(&launch, &Isolation::NONE, None).expect("ready");
            assert!(holds_only(&places.outputs, &[]) && holds_only(&places.checkpoints, &[]));
            let spec = Arc::make_mut(&mut launch.spec);
            spec.inputs = std::mem::take(&mut spec.code);
            let refused = places.prepare(&launch, &Isolation::NONE, None);
            assert!(matches!(refused, Err(Unready::Kept(path)) if path == to), "{to}");
        }
    }

    #[test]
    fn nothing_is_shown_inside_what_is_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = folder.path().join("kept");
        std::fs::create_dir(&kept).expect("made");
        std::fs::write(folder.path().join("file"), "x").expect("written");
        let mut launch = launch(1, &["true"]);
        let spec = Arc::make_mut(&mut launch.spec);
        spec.folder = folder.path().join("job");
        spec.inputs = vec![staged(&kept, "set"), staged(&folder.path().join("file"), "set/x")];
        let refused = Places::of(&launch).prepare(&launch, &Isolation::NONE, None);
        assert!(matches!(refused, Err(Unready::Io { .. })), "{refused:?}");
        assert!(holds_only(&kept, &[]), "what is kept stays as it is");
    }

    fn staged(from: &Path, to: &str) -> Staged {
        Staged { from: from.into(), to: to.into(), executable: false }
    }

    #[test]
    fn no_path_leaves_the_working_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = folder.path().join("kept");
        std::fs::write(&kept, "x").expect("write");
        for bad in ["../x", "/etc/x", "a/../../x", "", ".", "a/.."] {
            let mut launch = launch(1, &["true"]);
            let spec = Arc::make_mut(&mut launch.spec);
            spec.folder = folder.path().join("job");
            spec.code = vec![staged(&kept, bad)];
            let done = Places::of(&launch).prepare(&launch, &Isolation::NONE, None);
            assert!(matches!(done, Err(Unready::Escapes(_))), "{bad:?}: {done:?}");
        }
    }

    #[test]
    fn code_is_a_copy_and_inputs_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = folder.path().join("kept");
        std::fs::write(&kept, "print(1)").expect("write");
        let mut launch = launch(1, &["true"]);
        let spec = Arc::make_mut(&mut launch.spec);
        spec.folder = folder.path().join("job");
        spec.code = vec![staged(&kept, "src/main.py")];
        spec.inputs = vec![staged(&kept, "inputs/set/file")];
        let places = Places::of(&launch);
        assert_eq!(places.prepare(&launch, &Isolation::NONE, None).expect("ready"), []);
        std::fs::write(places.work.join("src/main.py"), "changed").expect("ours");
        assert_eq!(std::fs::read_to_string(&kept).expect("read"), "print(1)");
        let input = places.work.join("inputs/set/file");
        assert_eq!(std::fs::read_link(input).expect("a link"), kept);
    }

    #[test]
    fn a_task_in_a_namespace_sees_its_folders_at_a_fixed_place() {
        let launch = launch(1, &["true"]);
        let places = Places::of(&launch);
        let seen = places.seen(&launch, Some(Path::new("/run/era")));
        assert_eq!(seen.outputs, Path::new("/run/era/outputs"));
        assert_eq!(seen.work, Path::new("/run/era/work/p0-a1-r0"));
        assert_eq!(seen.tmp, Path::new("/tmp"));
        assert_eq!(places.seen(&launch, None).outputs, places.outputs);
    }
}
