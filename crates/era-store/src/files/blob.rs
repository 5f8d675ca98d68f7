//! Where a content lies on the disk, and how it gets there whole.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{ContentHash, Files, FilesError};

/// How much is read or written at a time.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

impl Files {
    /// Where a content lies. Never changed once it is there.
    pub fn blob_path(&self, hash: ContentHash) -> PathBuf {
        let text = hash.to_string();
        self.folder().join("blobs").join(&text[..2]).join(&text[2..])
    }

    /// Opens a content, to read.
    pub fn open_blob(&self, hash: ContentHash) -> Result<File, FilesError> {
        let path = self.blob_path(hash);
        File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FilesError::UnknownBlob(hash),
            _ => FilesError::of(&path)(error),
        })
    }
}

/// Puts a whole, synced file under its name: renamed, read-only, and the folder synced, so that a
/// crash leaves either nothing or all of it.
pub(super) fn settle(from: &Path, to: &Path) -> Result<(), FilesError> {
    make_read_only(from).map_err(FilesError::of(from))?;
    let folder = to.parent().unwrap_or(Path::new("."));
    let made = !folder.exists();
    make_folder(folder, UNLISTED).map_err(FilesError::of(folder))?;
    fs::rename(from, to).map_err(FilesError::of(to))?;
    sync_folder(folder)?;
    if made { folder.parent().map_or(Ok(()), sync_folder) } else { Ok(()) }
}

/// For a folder through which everybody may reach what they know the name of, and in which only
/// the server's user sees what is there. A content is named by its hash, so whoever can name it
/// had it: jobs without a mount namespace reach their inputs so, and nobody else's.
pub(super) const UNLISTED: u32 = 0o711;
/// For a folder that is the server's user's alone.
pub(super) const CLOSED: u32 = 0o700;

fn make_folder(folder: &Path, mode: u32) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode);
    #[cfg(not(unix))]
    let _ = mode;
    builder.recursive(true).create(folder)
}

/// Makes a folder of the store's, and closes one that an older version left open to see, with the
/// folders in it.
pub(super) fn open_folder(folder: &Path, mode: u32) -> io::Result<()> {
    make_folder(folder, mode)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if fs::metadata(folder)?.permissions().mode() & 0o777 & !mode == 0 {
            return Ok(());
        }
        let inside = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
        // The folder itself last: how it is says how they are.
        for path in inside.filter(|path| path.is_dir()).chain([folder.to_owned()]) {
            // What is somebody else's stays as it is.
            let _ = fs::set_permissions(&path, fs::Permissions::from_mode(mode));
        }
    }
    Ok(())
}

fn sync_folder(folder: &Path) -> Result<(), FilesError> {
    File::open(folder).and_then(|opened| opened.sync_all()).map_err(FilesError::of(folder))
}

#[cfg(unix)]
fn make_read_only(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o444))
}

#[cfg(not(unix))]
fn make_read_only(path: &Path) -> io::Result<()> {
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_readonly(true);
    fs::set_permissions(path, permissions)
}

/// The hash of a file, read piece by piece.
pub(super) fn hash_file(path: &Path) -> Result<ContentHash, FilesError> {
    let read = || {
        let mut file = File::open(path)?;
        let mut hasher = blake3::Hasher::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match file.read(&mut chunk)? {
                0 => return Ok(hasher.finalize().into()),
                count => hasher.update(&chunk[..count]),
            };
        }
    };
    read().map_err(FilesError::of(path))
}
