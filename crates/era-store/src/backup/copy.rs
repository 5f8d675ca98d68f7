//! Files from one folder to another, hashed on the way.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use era_core::units::JOBS_FOLDER;

use super::BackupError;
use crate::StoreError;

/// How much is read at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// How deep the folders of jobs are followed.
const DEPTH_MAX: usize = 64;

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) hash: String,
    pub(super) bytes: u64,
    /// Relative, with `/` between its parts.
    pub(super) path: String,
}

pub(super) fn file_error(path: &Path) -> impl Fn(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::File { path: path.clone(), source }
}

/// Makes a folder that only its owner can read, or takes one that has nothing in it.
pub(super) fn make_empty(folder: &Path) -> Result<(), BackupError> {
    fs::create_dir_all(folder).map_err(file_error(folder))?;
    let mut entries = fs::read_dir(folder).map_err(file_error(folder))?;
    if entries.next().is_some() {
        return Err(BackupError::NotEmpty(folder.to_owned()));
    }
    // Passwords and tokens are in it as hashes, and users' secrets with their key.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(folder, private).map_err(file_error(folder))?;
    }
    Ok(())
}

/// Writes a file and waits until it is on the disk.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(file_error(path))
}

/// A file that is there already.
pub(super) fn listed(data: &Path, path: &str) -> Result<Listed, StoreError> {
    let full = data.join(path);
    let (hash, bytes) = hashed(&full, &mut io::sink()).map_err(file_error(&full))?;
    Ok(Listed { hash, bytes, path: path.to_owned() })
}

/// A content that never changes: linked where the disk allows, copied otherwise. Its name is its
/// hash. `None` where it is not there.
pub(super) fn linked(
    from: &Path,
    to: &Path,
    path: &str,
    hash: &str,
) -> Result<Option<Listed>, StoreError> {
    let (source, target) = (from.join(path), to.join(path));
    let bytes = match fs::metadata(&source) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(file_error(&source)(error)),
    };
    make_parent(&target)?;
    if fs::hard_link(&source, &target).is_err() {
        copy(&source, &target)?;
    }
    Ok(Some(Listed { hash: hash.to_owned(), bytes, path: path.to_owned() }))
}

/// A folder with all that is in it. Links are left out: they may lead anywhere.
pub(super) fn copied(
    from: &Path,
    to: &Path,
    folder: &Path,
    list: &mut Vec<Listed>,
) -> Result<(), BackupError> {
    let mut waiting: Vec<(PathBuf, usize)> = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = waiting.pop() {
        let here = from.join(&folder);
        let entries = match fs::read_dir(&here) {
            Ok(entries) => entries,
            // A job may clean up after itself while it is looked at.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(file_error(&here)(error).into()),
        };
        let mut entries: Vec<fs::DirEntry> =
            entries.collect::<Result<_, _>>().map_err(file_error(&here))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = folder.join(entry.file_name());
            let kind = entry.file_type().map_err(file_error(&here))?;
            let Some(text) = path.to_str().filter(|text| !text.contains('\n')) else {
                tracing::warn!(path = %path.display(), "left out of the backup: an odd name");
                continue;
            };
            if is_handed_over(&path) {
                continue;
            }
            if kind.is_dir() && depth < DEPTH_MAX {
                waiting.push((path.clone(), depth + 1));
            } else if kind.is_file() {
                list.extend(copied_file(from, to, text)?);
            }
        }
    }
    Ok(())
}

/// Whether a file has the secrets of a task that runs: it goes with its task, and what is kept of
/// them is sealed.
fn is_handed_over(path: &Path) -> bool {
    let parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap_or_default()).collect();
    match parts[..] {
        [JOBS_FOLDER, _, name] => name.starts_with("secrets-p"),
        [JOBS_FOLDER, _, "guard", _, name] => name == "secrets",
        _ => false,
    }
}

/// A file that may be gone.
pub(super) fn copied_file(
    from: &Path,
    to: &Path,
    path: &str,
) -> Result<Option<Listed>, StoreError> {
    let (source, target) = (from.join(path), to.join(path));
    make_parent(&target)?;
    match copy(&source, &target) {
        Ok((hash, bytes)) => Ok(Some(Listed { hash, bytes, path: path.to_owned() })),
        Err(StoreError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub(super) fn make_parent(path: &Path) -> Result<(), StoreError> {
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(file_error(parent))
}

/// Copies a file and waits until it is on the disk; says its hash and size.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(String, u64), StoreError> {
    // Opened first, so that nothing is made where there is nothing to copy.
    let source = File::open(from).map_err(file_error(from))?;
    // What is private is so from its first byte.
    let mut target = create_private(to).map_err(file_error(to))?;
    let copied = hash_of(source, &mut target).map_err(file_error(from))?;
    let permissions = fs::metadata(from).map_err(file_error(from))?.permissions();
    target.sync_all().map_err(file_error(to))?;
    fs::set_permissions(to, permissions).map_err(file_error(to))?;
    Ok(copied)
}

fn create_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The hash and size of a file, which is also written to somewhere.
pub(super) fn hashed(path: &Path, to: &mut dyn Write) -> io::Result<(String, u64)> {
    hash_of(File::open(path)?, to)
}

fn hash_of(mut file: File, to: &mut dyn Write) -> io::Result<(String, u64)> {
    let mut hasher = blake3::Hasher::new();
    let (mut buffer, mut bytes) = (vec![0; CHUNK_BYTES], 0);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((hasher.finalize().to_hex().to_string(), bytes));
        }
        hasher.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
        bytes += read as u64;
    }
}
