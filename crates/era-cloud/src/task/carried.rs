//! The checkpoints of a job that is over, copied for the one that is handed in in its place.
//!
//! They belong to a task that may be hostile, and as root we read and write where it could not. So
//! every entry is opened beneath the folder that holds it, no link is followed, only plain files
//! of the job's own user are read, and the copy is made where no task can reach it. What may be
//! copied has the limit that a task has on its disk: a file of holes costs nothing here either, but
//! one with a thousand names counts a thousand times.

use std::ffi::CStr;
use std::fs::{File, FileTimes};
use std::io::{self, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;

/// Most files, folders and links.
const ENTRIES_MAX: u64 = 1_000_000;
/// Most folders within each other.
const DEPTH_MAX: usize = 64;
/// What keeps two tasks of one gang from copying the same at once.
const LOCK: &str = "checkpoints.lock";

/// Why checkpoints could not be carried over.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotCarried {
    /// There are more of them than a task may have.
    #[error("too much")]
    TooMuch,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Errno> for NotCarried {
    fn from(error: Errno) -> NotCarried {
        NotCarried::Io(error.into())
    }
}

/// Makes the folder `to` a copy of `from`, which is given to `owner`; once for all tasks of a job.
/// Meanwhile it is called `part`. Where `from` is not there, neither is `to` afterwards.
pub(super) fn carry(
    from: &Path,
    to: &Path,
    part: &Path,
    owner: Option<u32>,
    bytes_max: u64,
) -> Result<(), NotCarried> {
    let is_there = || std::fs::symlink_metadata(to).is_ok();
    // Whoever finds it need not wait for a turn, which a task may keep from others of its own.
    if is_there() {
        return Ok(());
    }
    let _turn = turn(to)?;
    if is_there() {
        return Ok(());
    }
    let Some(from) = open_root(from)? else { return Ok(()) };
    remove(part)?;
    std::fs::DirBuilder::new().mode(0o700).create(part)?;
    let mut carrying = Carrying { owner, bytes_left: bytes_max, entries_left: ENTRIES_MAX };
    let carried = open_root(part)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
    let carried = carried.map_err(NotCarried::from).and_then(|made| {
        carrying.folder(&from, &made, 1)?;
        let about = rustix::fs::fstat(&from)?;
        carrying.give(File::from(made), &about, 0o700)?;
        match std::fs::rename(part, to) {
            // Where there are no locks another task may have been first.
            Err(_) if is_there() => remove(part),
            renamed => renamed,
        }?;
        Ok(())
    });
    if carried.is_err() {
        // What is wrong is told; what stays of it is removed with the job's folder.
        let _ = remove(part);
    }
    carried
}

/// Ours for as long as it is open. A file system without locks costs a second copy.
fn turn(to: &Path) -> io::Result<File> {
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = File::options();
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, no_link);
    let file = options.create(true).truncate(false).write(true).open(to.with_file_name(LOCK))?;
    if let Err(error) = file.lock() {
        tracing::debug!(%error, "there are no locks here");
    }
    Ok(file)
}

fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn open_root(folder: &Path) -> Result<Option<OwnedFd>, NotCarried> {
    match rustix::fs::open(folder, FOLDER, Mode::empty()) {
        Ok(root) => Ok(Some(root)),
        // What is no folder holds no checkpoints.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// One copy on its way.
struct Carrying {
    owner: Option<u32>,
    bytes_left: u64,
    entries_left: u64,
}

impl Carrying {
    fn folder(&mut self, from: &OwnedFd, to: &OwnedFd, depth: usize) -> Result<(), NotCarried> {
        if depth > DEPTH_MAX {
            return Err(NotCarried::TooMuch);
        }
        for entry in Dir::read_from(from)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.entries_left = self.entries_left.checked_sub(1).ok_or(NotCarried::TooMuch)?;
            match self.entry(from, to, name, depth) {
                // It went while we looked.
                Err(NotCarried::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
                carried => carried?,
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        name: &CStr,
        depth: usize,
    ) -> Result<(), NotCarried> {
        let about = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(about.st_mode) {
            FileType::Directory => {
                let inner = rustix::fs::openat(from, name, FOLDER, Mode::empty())?;
                rustix::fs::mkdirat(to, name, Mode::RWXU)?;
                let made = rustix::fs::openat(to, name, FOLDER, Mode::empty())?;
                self.folder(&inner, &made, depth + 1)?;
                self.give(File::from(made), &about, 0o777)
            }
            FileType::RegularFile => self.file(from, to, name),
            // Nobody but a task ever follows it.
            FileType::Symlink => {
                let leads_to = rustix::fs::readlinkat(from, name, Vec::new())?;
                rustix::fs::symlinkat(leads_to, to, name)?;
                let owner = self.owner.map(rustix::fs::Uid::from_raw);
                let group = self.owner.map(rustix::fs::Gid::from_raw);
                Ok(rustix::fs::chownat(to, name, owner, group, AtFlags::SYMLINK_NOFOLLOW)?)
            }
            _ => Ok(()),
        }
    }

    fn file(&mut self, from: &OwnedFd, to: &OwnedFd, name: &CStr) -> Result<(), NotCarried> {
        // Not to wait for a writer, should it be a pipe by now.
        let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let source = rustix::fs::openat(from, name, read | OFlags::CLOEXEC, Mode::empty())?;
        let about = rustix::fs::fstat(&source)?;
        let source = File::from(source);
        let is_file = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
        // Another name for a file of somebody else is no way to read it.
        let is_theirs =
            self.owner.is_none_or(|owner| source.metadata().is_ok_and(|it| it.uid() == owner));
        if !is_file || !is_theirs {
            return Ok(());
        }
        let write = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let made = rustix::fs::openat(to, name, write, Mode::RUSR | Mode::WUSR)?;
        let made = File::from(made);
        self.data(&source, &made)?;
        self.give(made, &about, 0o777)
    }

    /// Copies what a file holds, and leaves its holes where they are.
    fn data(&mut self, from: &File, to: &File) -> Result<(), NotCarried> {
        let size = from.metadata()?.len();
        let mut at = 0;
        while at < size {
            let (begin, end) = match next_data(from, at) {
                Ok(found) => found,
                // All that is left is a hole.
                Err(Errno::NXIO) => break,
                // A file system that knows no holes.
                Err(Errno::INVAL | Errno::OPNOTSUPP) => (at, size),
                Err(error) => return Err(error.into()),
            };
            let (begin, end) = (begin.max(at), end.min(size));
            if begin >= end {
                break;
            }
            let length = end - begin;
            self.bytes_left = self.bytes_left.checked_sub(length).ok_or(NotCarried::TooMuch)?;
            let (mut source, mut target) = (from, to);
            source.seek(io::SeekFrom::Start(begin))?;
            target.seek(io::SeekFrom::Start(begin))?;
            io::copy(&mut io::Read::take(source, length), &mut target)?;
            at = end;
        }
        to.set_len(size)?;
        Ok(())
    }

    /// Gives a copy to its owner as it was, but for what would lend rights to others.
    #[allow(clippy::useless_conversion)] // how wide these numbers are is the platform's
    fn give(&self, made: File, about: &Stat, modes: u32) -> Result<(), NotCarried> {
        if self.owner.is_some() {
            fchown(made.as_fd(), self.owner, self.owner)?;
        }
        let mode = u32::from(about.st_mode) & modes;
        made.set_permissions(std::fs::Permissions::from_mode(mode))?;
        // Which checkpoint is the newest is often read off their times.
        let since = std::time::Duration::from_secs(u64::try_from(about.st_mtime).unwrap_or(0))
            + std::time::Duration::from_nanos(u64::try_from(about.st_mtime_nsec).unwrap_or(0));
        let changed = std::time::UNIX_EPOCH.checked_add(since);
        let times = changed.map(|at| FileTimes::new().set_modified(at)).unwrap_or_default();
        Ok(made.set_times(times)?)
    }
}

/// Where data begins at or after a place of a file, and where it ends.
fn next_data(file: &File, at: u64) -> Result<(u64, u64), Errno> {
    let begin = rustix::fs::seek(file, SeekFrom::Data(at))?;
    let end = rustix::fs::seek(file, SeekFrom::Hole(begin))?;
    Ok((begin, end))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, symlink};
    use std::path::PathBuf;

    use super::*;

    struct Bed {
        root: tempfile::TempDir,
    }

    impl Bed {
        fn new() -> Bed {
            let bed = Bed { root: tempfile::tempdir().expect("a folder") };
            std::fs::create_dir_all(bed.before()).expect("made");
            std::fs::create_dir(bed.root.path().join("8")).expect("made");
            bed
        }

        fn before(&self) -> PathBuf {
            self.root.path().join("7/checkpoints")
        }

        fn after(&self) -> PathBuf {
            self.root.path().join("8/checkpoints")
        }

        fn carry(&self, bytes_max: u64) -> Result<(), NotCarried> {
            let part = self.after().with_extension("part");
            let carried = carry(&self.before(), &self.after(), &part, None, bytes_max);
            assert!(!part.exists(), "what is half made does not stay");
            carried
        }
    }

    fn text(path: &Path) -> String {
        std::fs::read_to_string(path).expect("read")
    }

    #[test]
    fn files_come_with_their_folders_links_modes_and_times_once() {
        let bed = Bed::new();
        let old = std::time::UNIX_EPOCH + std::time::Duration::new(1_700_000_000, 5000);
        std::fs::create_dir_all(bed.before().join("step-100/deep")).expect("made");
        let model = bed.before().join("step-100/deep/model");
        std::fs::write(&model, "weights").expect("written");
        std::fs::set_permissions(&model, std::fs::Permissions::from_mode(0o4750)).expect("mode");
        let file = File::options().write(true).open(&model).expect("open");
        file.set_times(FileTimes::new().set_modified(old)).expect("times");
        symlink("step-100", bed.before().join("latest")).expect("linked");
        symlink("/etc/shadow", bed.before().join("leak")).expect("linked");
        bed.carry(1 << 20).expect("carried");
        let about = std::fs::metadata(bed.after().join("latest/deep/model")).expect("there");
        assert_eq!(text(&bed.after().join("latest/deep/model")), "weights");
        assert_eq!(about.mode() & 0o7777, 0o750, "and no right of its owner's");
        assert_eq!(about.modified().expect("times"), old);
        let leak = std::fs::read_link(bed.after().join("leak")).expect("a link still");
        assert_eq!(leak, Path::new("/etc/shadow"));
        let mode = std::fs::metadata(bed.after()).expect("there").mode();
        assert_eq!(mode & 0o7777, 0o700);
        // What the job made of them since stays, whichever of its tasks begins next.
        std::fs::write(bed.after().join("latest/deep/model"), "better").expect("written");
        bed.carry(1 << 20).expect("carried");
        assert_eq!(text(&bed.after().join("latest/deep/model")), "better");
        assert_eq!(text(&model), "weights", "and what is kept of the job before, too");
    }

    #[test]
    fn what_is_no_file_is_not_carried_and_never_waited_for() {
        let bed = Bed::new();
        let _socket =
            std::os::unix::net::UnixListener::bind(bed.before().join("s")).expect("bound");
        let pipe = bed.before().join("pipe");
        let kind = FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, Mode::RUSR | Mode::WUSR, 0)
            .expect("made");
        std::fs::write(bed.before().join("model"), "weights").expect("written");
        bed.carry(1 << 20).expect("carried");
        let names = std::fs::read_dir(bed.after()).expect("listed");
        let names: Vec<_> = names.map(|entry| entry.expect("an entry").file_name()).collect();
        assert_eq!(names, ["model"]);
    }

    #[test]
    fn checkpoints_that_lead_elsewhere_are_none() {
        let bed = Bed::new();
        std::fs::remove_dir(bed.before()).expect("removed");
        bed.carry(1 << 20).expect("nothing to carry");
        assert!(!bed.after().exists());
        let elsewhere = bed.root.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).expect("made");
        std::fs::write(elsewhere.join("secret"), "x").expect("written");
        symlink(&elsewhere, bed.before()).expect("linked");
        bed.carry(1 << 20).expect("nothing to carry");
        assert!(!bed.after().exists());
    }

    #[test]
    fn holes_stay_holes_and_take_no_room() {
        let bed = Bed::new();
        let sparse = File::create(bed.before().join("sparse")).expect("made");
        sparse.set_len(1 << 40).expect("as large as a disk");
        sparse.write_all_at(b"here", 1 << 30).expect("written");
        bed.carry(1 << 20).expect("carried");
        let copy = File::open(bed.after().join("sparse")).expect("there");
        let about = copy.metadata().expect("about");
        assert_eq!(about.len(), 1 << 40);
        assert!(about.blocks() * 512 < 1 << 20, "{}", about.blocks());
        let mut found = [0; 4];
        copy.read_exact_at(&mut found, 1 << 30).expect("read");
        assert_eq!(&found, b"here");
    }

    #[test]
    fn more_than_a_task_may_have_is_not_carried_and_nothing_of_it_stays() {
        let bed = Bed::new();
        std::fs::write(bed.before().join("model"), vec![1; 1 << 16]).expect("written");
        for name in 0..15 {
            let other = bed.before().join(name.to_string());
            std::fs::hard_link(bed.before().join("model"), other).expect("linked");
        }
        assert!(matches!(bed.carry((16 << 16) - 1), Err(NotCarried::TooMuch)));
        assert!(!bed.after().exists());
        bed.carry(16 << 16).expect("carried");
        let mut deep = bed.before();
        for _ in 0..=DEPTH_MAX {
            deep.push("d");
        }
        std::fs::create_dir_all(deep).expect("made");
        std::fs::remove_dir_all(bed.after()).expect("removed");
        assert!(matches!(bed.carry(1 << 30), Err(NotCarried::TooMuch)));
    }
}
