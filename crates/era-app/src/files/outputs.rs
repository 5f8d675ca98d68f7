//! What a job left in its outputs and checkpoints: listed and read, never followed outside.
//!
//! The folder belongs to the job, which may be running and may be hostile: a link to
//! `/etc/shadow`, a folder that becomes a link between the look and the open, a pipe that never
//! ends. So every path is opened beneath the folder by the kernel, and only plain files are read.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::Path;

use era_api::data::OutputFile;
use era_store::files::{DEPTH_MAX, FilesError, check_path};
use jiff::Timestamp;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::{AppError, Kind};

/// Most files of one job that are listed.
pub const OUTPUTS_MAX: usize = 200_000;

/// The files below a folder, by path. No folder means no files.
pub fn list(folder: &Path) -> Result<Vec<OutputFile>, AppError> {
    let mut found = Vec::new();
    let mut note = |path, about: &Stat| {
        if found.len() == OUTPUTS_MAX {
            let detail = format!("there are more than {OUTPUTS_MAX} output files");
            let status = Kind::Invalid;
            return Err(AppError::new(status, "too_many_files", detail));
        }
        found.push(OutputFile {
            path,
            bytes: u64::try_from(about.st_size).unwrap_or(0),
            changed: Timestamp::from_second(about.st_mtime).unwrap_or(Timestamp::UNIX_EPOCH),
            executable: about.st_mode & 0o100 != 0,
        });
        Ok(())
    };
    if let Some(root) = open_root(folder)? {
        walk(&root, "", 1, &mut note)?;
    }
    found.sort_unstable_by(|a: &OutputFile, b| a.path.cmp(&b.path));
    Ok(found)
}

/// How many files there are below a folder, however many, and their bytes.
pub fn size(folder: &Path) -> Result<(u64, u64), AppError> {
    let (mut files, mut bytes) = (0, 0_u64);
    let mut note = |_, about: &Stat| {
        files += 1;
        bytes = bytes.saturating_add(u64::try_from(about.st_size).unwrap_or(0));
        Ok(())
    };
    if let Some(root) = open_root(folder)? {
        walk(&root, "", 1, &mut note)?;
    }
    Ok((files, bytes))
}

/// Whether there is anything in a folder.
pub fn any(folder: &Path) -> bool {
    let Ok(Some(root)) = open_root(folder) else { return false };
    let Ok(entries) = Dir::read_from(&root) else { return false };
    entries.flatten().any(|entry| !matches!(entry.file_name().to_bytes(), b"." | b".."))
}

/// Opens a file below a folder, to read.
pub fn open(folder: &Path, path: &str) -> Result<File, AppError> {
    check_path(path).map_err(FilesError::from)?;
    let unknown = || FilesError::UnknownFile(path.to_owned());
    let root = open_root(folder)?.ok_or_else(unknown)?;
    let file = match open_beneath(&root, path) {
        Ok(file) => file,
        // A link that leads out or in circles is as good as no file.
        Err(
            Errno::NOENT | Errno::NOTDIR | Errno::XDEV | Errno::LOOP | Errno::NXIO | Errno::ACCESS,
        ) => return Err(unknown().into()),
        Err(error) => return Err(unreadable(error)),
    };
    let file = File::from(file);
    let about = file.metadata().map_err(|error| unreadable(error.into_errno()))?;
    if about.is_file() { Ok(file) } else { Err(unknown().into()) }
}

/// What is the same for as long as a file has not changed, as far as its system tells.
pub fn tag(file: &File) -> String {
    use std::os::unix::fs::MetadataExt;
    match file.metadata() {
        Ok(about) => format!(
            "{:x}-{:x}-{:x}.{:x}",
            about.ino(),
            about.len(),
            about.mtime(),
            about.mtime_nsec()
        ),
        Err(_) => "unknown".to_owned(),
    }
}

fn open_root(folder: &Path) -> Result<Option<OwnedFd>, AppError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::empty()) {
        Ok(root) => Ok(Some(root)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(unreadable(error)),
    }
}

/// Not to wait for a writer, should it be a pipe.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Links that stay below the folder are followed, such as `latest` to `checkpoint-100`.
#[cfg(target_os = "linux")]
fn open_beneath(root: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    loop {
        match rustix::fs::openat2(root, path, FILE, Mode::empty(), resolve) {
            // The kernel saw something being renamed meanwhile and asks to try again.
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS | Errno::PERM) => return open_without_links(root, path),
            other => return other,
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(root: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    open_without_links(root, path)
}

/// Part by part, following no link at all: for systems that cannot confine a path, macOS among them.
fn open_without_links(root: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    let mut folder = rustix::io::dup(root)?;
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    for part in folders.split('/').filter(|part| !part.is_empty()) {
        folder = open_folder(&folder, part)?;
    }
    rustix::fs::openat(&folder, name, FILE | OFlags::NOFOLLOW, Mode::empty())
}

fn open_folder(parent: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

fn walk(
    folder: &OwnedFd,
    path: &str,
    depth: usize,
    note: &mut impl FnMut(String, &Stat) -> Result<(), AppError>,
) -> Result<(), AppError> {
    for entry in Dir::read_from(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // A name that no path may have cannot be asked for, so it is not listed either.
        let Ok(name) = entry.file_name().to_str() else { continue };
        if matches!(name, "." | "..") {
            continue;
        }
        let full = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
        if check_path(&full).is_err() {
            continue;
        }
        // It may be gone by now.
        let Ok(about) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        match FileType::from_raw_mode(about.st_mode) {
            FileType::RegularFile => note(full, &about)?,
            FileType::Directory if depth < DEPTH_MAX => {
                if let Ok(inner) = open_folder(folder, name) {
                    walk(&inner, &full, depth + 1, note)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

trait IntoErrno {
    fn into_errno(self) -> Errno;
}

impl IntoErrno for std::io::Error {
    fn into_errno(self) -> Errno {
        Errno::from_io_error(&self).unwrap_or(Errno::IO)
    }
}

fn unreadable(error: Errno) -> AppError {
    let error = std::io::Error::from(error);
    if error.kind() == ErrorKind::StorageFull {
        return FilesError::DiskFull.into();
    }
    tracing::error!(%error, "outputs cannot be read");
    let detail = "the outputs cannot be read: see the server's log";
    AppError::new(Kind::Internal, "store", detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    fn read(folder: &Path, path: &str) -> Option<String> {
        let mut text = String::new();
        open(folder, path).ok()?.read_to_string(&mut text).unwrap();
        Some(text)
    }

    #[test]
    fn links_never_lead_out() {
        let root = tempfile::tempdir().unwrap();
        let outputs = root.path().join("outputs");
        fs::create_dir_all(outputs.join("step-1")).unwrap();
        fs::create_dir(root.path().join("other")).unwrap();
        fs::write(root.path().join("secret"), "secret").unwrap();
        fs::write(root.path().join("other/secret"), "secret").unwrap();
        fs::write(outputs.join("step-1/model"), "weights").unwrap();
        symlink("../secret", outputs.join("up")).unwrap();
        symlink(root.path().join("secret"), outputs.join("absolute")).unwrap();
        symlink("../other", outputs.join("folder")).unwrap();
        symlink("step-1", outputs.join("latest")).unwrap();
        symlink("loop", outputs.join("loop")).unwrap();
        symlink("/proc/self/environ", outputs.join("magic")).unwrap();
        let leading_out = [
            "up",
            "absolute",
            "folder/secret",
            "loop",
            "magic",
            "../secret",
            "step-1/../../secret",
        ];
        for path in leading_out {
            assert_eq!(read(&outputs, path), None, "{path}");
        }
        assert_eq!(read(&outputs, "step-1/model").as_deref(), Some("weights"));
        let listed: Vec<String> = list(&outputs).unwrap().into_iter().map(|f| f.path).collect();
        assert_eq!(listed, ["step-1/model"]);
        #[cfg(target_os = "linux")]
        assert_eq!(read(&outputs, "latest/model").as_deref(), Some("weights"));
        let root = open_root(&outputs).unwrap().unwrap();
        assert!(open_without_links(&root, "step-1/model").is_ok());
        for link in leading_out[..5].iter().chain(&["latest/model"]) {
            assert!(open_without_links(&root, link).is_err(), "{link}");
        }
    }

    #[test]
    fn outputs_that_are_themselves_a_link_are_not_opened() {
        let root = tempfile::tempdir().unwrap();
        symlink("/etc", root.path().join("outputs")).unwrap();
        assert!(list(&root.path().join("outputs")).is_err());
        assert!(open(&root.path().join("outputs"), "passwd").is_err());
    }

    #[test]
    fn a_pipe_and_a_folder_are_no_files() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("folder")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(root.path().join("pipe")).status();
        assert!(made.unwrap().success());
        assert!(open(root.path(), "pipe").is_err());
        assert!(open(root.path(), "folder").is_err());
        assert!(list(root.path()).unwrap().is_empty());
    }

    #[test]
    fn no_folder_means_no_files() {
        assert!(list(Path::new("/nowhere/outputs")).unwrap().is_empty());
        assert_eq!(size(Path::new("/nowhere/outputs")).unwrap(), (0, 0));
    }
}
