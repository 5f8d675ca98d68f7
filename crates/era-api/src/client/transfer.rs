//! Many files at once: hashed and sent side by side, only what the server lacks, and gone on with
//! after a cut; brought back the same way, verified, and in their place only when whole.
//!
//! Which files belong together, and how progress is shown, is the caller's.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::files::{UploadState, data_file_path, kept_path};
use super::{Client, ClientError};
use crate::data::{FileEntry, JobFolder, OutputFile};

/// Files that are on their way at a time.
const SIDE_BY_SIDE: usize = 8;
/// Hashes of one question.
const ASKED_AT_ONCE: usize = 5000;
/// From this size on it is worth asking whether a part is there already.
const WORTH_RESUMING: u64 = 4 << 20;
/// How often a transfer goes on after a cut that brought nothing new.
const CUTS_MAX: u32 = 6;

/// Told of every byte that has been dealt with.
pub type OnBytes<'a> = &'a (dyn Fn(u64) + Sync);

/// Why files could not be transferred.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A file here.
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What came is not what the server has said.
    #[error("{}: what came is damaged: bring it again", path.display())]
    Damaged { path: PathBuf },
    /// A path that must not be written here.
    #[error("`{path}` cannot be a file on this machine: rename it on the server")]
    BadPath { path: String },
}

impl TransferError {
    fn of(path: &Path) -> impl Fn(io::Error) -> TransferError + use<> {
        let path = path.to_owned();
        move |source| TransferError::File { path: path.clone(), source }
    }
}

/// A file here that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalFile {
    /// Where it is.
    pub file: PathBuf,
    /// What it is called there.
    pub path: String,
    /// How many bytes.
    pub bytes: u64,
    /// Whether it may be executed.
    pub executable: bool,
}

/// A file there that is to be brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// Where it is read.
    from: String,
    /// Its path below the folder that it goes to.
    pub path: String,
    /// How many bytes.
    pub bytes: u64,
    /// Its hash, where it is known.
    hash: Option<String>,
    /// Whether it may be executed.
    executable: bool,
}

impl RemoteFile {
    /// A file of a data set.
    pub fn of_data(owner: &str, name: &str, file: &FileEntry) -> RemoteFile {
        RemoteFile {
            from: data_file_path(owner, name, &file.path),
            path: file.path.clone(),
            bytes: file.bytes,
            hash: Some(file.hash.clone()),
            executable: file.executable,
        }
    }

    pub fn of_job(job: u64, kept: JobFolder, file: &OutputFile) -> RemoteFile {
        RemoteFile {
            from: kept_path(job, kept, &file.path),
            path: file.path.clone(),
            bytes: file.bytes,
            hash: None,
            executable: file.executable,
        }
    }
}

/// The hashes of files, in the same order.
pub fn hash(files: &[LocalFile], progress: OnBytes<'_>) -> Result<Vec<FileEntry>, TransferError> {
    let entries: Vec<Mutex<Option<FileEntry>>> = files.iter().map(|_| Mutex::default()).collect();
    side_by_side(files, |at, local| {
        let entry = hash_one(local, progress)?;
        if let Ok(mut place) = entries[at].lock() {
            *place = Some(entry);
        }
        Ok(())
    })?;
    Ok(entries.into_iter().filter_map(|entry| entry.into_inner().ok().flatten()).collect())
}

fn hash_one(local: &LocalFile, progress: OnBytes<'_>) -> Result<FileEntry, TransferError> {
    let failed = TransferError::of(&local.file);
    let mut file = File::open(&local.file).map_err(&failed)?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        let count = file.read(&mut piece).map_err(&failed)?;
        if count == 0 {
            break;
        }
        hasher.update(&piece[..count]);
        bytes += count as u64;
        progress(count as u64);
    }
    let hash = hasher.finalize().to_hex().to_string();
    Ok(FileEntry { path: local.path.clone(), bytes, hash, executable: local.executable })
}

impl Client {
    /// Which of these files the server lacks; each content once.
    pub fn lacking(&self, entries: &[FileEntry]) -> Result<Vec<usize>, TransferError> {
        let mut first: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
        for (at, entry) in entries.iter().enumerate() {
            first.entry(entry.hash.as_str()).or_insert(at);
        }
        let hashes: Vec<String> = first.keys().map(|hash| (*hash).to_owned()).collect();
        let mut lacking = Vec::new();
        for some in hashes.chunks(ASKED_AT_ONCE) {
            let missing = self.missing_blobs(some.to_vec())?;
            lacking.extend(missing.iter().filter_map(|hash| first.get(hash.as_str()).copied()));
        }
        lacking.sort_unstable();
        Ok(lacking)
    }

    /// Sends the contents of files.
    pub fn send_files(
        &self,
        files: &[(&LocalFile, &FileEntry)],
        progress: OnBytes<'_>,
    ) -> Result<(), TransferError> {
        side_by_side(files, |_, (local, entry)| self.send_one(local, entry, progress))
    }

    fn send_one(
        &self,
        local: &LocalFile,
        entry: &FileEntry,
        progress: OnBytes<'_>,
    ) -> Result<(), TransferError> {
        let failed = TransferError::of(&local.file);
        let mut offset = match entry.bytes >= WORTH_RESUMING {
            true => match self.blob_state(&entry.hash)? {
                UploadState::Whole => {
                    progress(entry.bytes);
                    return Ok(());
                }
                UploadState::Part(offset) => offset,
            },
            false => 0,
        };
        let mut told = 0;
        let mut cuts = 0;
        loop {
            let mut file = File::open(&local.file).map_err(&failed)?;
            file.seek(SeekFrom::Start(offset)).map_err(&failed)?;
            // What was told before a cut is not told again.
            let skip = told.max(offset) - offset;
            if offset > told {
                progress(offset - told);
                told = offset;
            }
            let mut counted = CountedFile { file, skip, told: &mut told, progress };
            let count = entry.bytes.saturating_sub(offset);
            let error = match self.put_blob(&entry.hash, offset, count, &mut counted) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            cuts += 1;
            if cuts > CUTS_MAX || !is_a_cut(&error) {
                return Err(error.into());
            }
            std::thread::sleep(Duration::from_millis(100 << cuts));
            match self.blob_state(&entry.hash) {
                Ok(UploadState::Whole) => return Ok(()),
                Ok(UploadState::Part(have)) => {
                    // Whatever gets on is not given up.
                    cuts = if have > offset { 1 } else { cuts };
                    offset = have;
                }
                Err(error) if is_a_cut(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Brings files into a folder. What is there already, whole and the same, is left alone.
    pub fn bring_files(
        &self,
        files: &[RemoteFile],
        folder: &Path,
        progress: OnBytes<'_>,
    ) -> Result<(), TransferError> {
        side_by_side(files, |_, remote| self.bring_one(remote, folder, progress))
    }

    fn bring_one(
        &self,
        remote: &RemoteFile,
        folder: &Path,
        progress: OnBytes<'_>,
    ) -> Result<(), TransferError> {
        let to = beneath(folder, &remote.path)?;
        if remote.hash.is_some() && remote.hash == hash_of(&to, remote.bytes) {
            progress(remote.bytes);
            return Ok(());
        }
        let parent = to.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(TransferError::of(parent))?;
        let mut name = to.file_name().unwrap_or_default().to_owned();
        name.push(".era-part");
        let part = to.with_file_name(name);
        let mut cuts = 0;
        let mut told = 0;
        loop {
            let before = part_length(&part, remote);
            match self.bring_rest(remote, &part, &mut told, progress) {
                Ok(()) => break,
                Err(TransferError::Client(error)) if is_a_cut(&error) && cuts < CUTS_MAX => {
                    cuts = if part_length(&part, remote) > before { 1 } else { cuts + 1 };
                    std::thread::sleep(Duration::from_millis(100 << cuts));
                }
                Err(other) => return Err(other),
            }
        }
        if remote.hash.is_some() && remote.hash != hash_of(&part, remote.bytes) {
            fs::remove_file(&part).map_err(TransferError::of(&part))?;
            return Err(TransferError::Damaged { path: to });
        }
        set_executable(&part, remote.executable).map_err(TransferError::of(&part))?;
        fs::rename(&part, &to).map_err(TransferError::of(&to))
    }

    /// Goes on with a file where an earlier try stopped.
    fn bring_rest(
        &self,
        remote: &RemoteFile,
        part: &Path,
        told: &mut u64,
        progress: OnBytes<'_>,
    ) -> Result<(), TransferError> {
        let failed = TransferError::of(part);
        let have = part_length(part, remote);
        if have == remote.bytes && have > 0 {
            progress(have.saturating_sub(*told));
            return Ok(());
        }
        let (begins, mut body) = self.read_from(&remote.from, have)?;
        let mut options = File::options();
        let mut file =
            options.write(true).create(true).truncate(false).open(part).map_err(&failed)?;
        file.set_len(begins).map_err(&failed)?;
        file.seek(SeekFrom::Start(begins)).map_err(&failed)?;
        let mut at = begins;
        let mut piece = vec![0; 256 << 10];
        loop {
            let count = match body.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) => {
                    let url = self.url().to_owned();
                    return Err(ClientError::Broken { url, why: error.to_string() }.into());
                }
            };
            file.write_all(&piece[..count]).map_err(&failed)?;
            at += count as u64;
            if at > *told {
                progress(at - *told);
                *told = at;
            }
        }
        Ok(())
    }
}

/// How much of a file an earlier try has left. Only what can be verified is gone on with.
fn part_length(part: &Path, remote: &RemoteFile) -> u64 {
    let have = fs::metadata(part).map_or(0, |about| about.len());
    if remote.hash.is_none() || have > remote.bytes { 0 } else { have }
}

/// Whether to go on is of use.
fn is_a_cut(error: &ClientError) -> bool {
    match error {
        ClientError::Broken { .. } | ClientError::TimedOut { .. } => true,
        ClientError::Refused(problem) => {
            matches!(
                problem.code.as_str(),
                "broken_off" | "too_slow" | "wrong_offset" | "upload_busy" | "stopping"
            )
        }
        _ => false,
    }
}

/// A file on its way, counted.
struct CountedFile<'a> {
    file: File,
    skip: u64,
    told: &'a mut u64,
    progress: OnBytes<'a>,
}

impl Read for CountedFile<'_> {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(piece)?;
        let known = self.skip.min(count as u64);
        self.skip -= known;
        let new = count as u64 - known;
        *self.told += new;
        (self.progress)(new);
        Ok(count)
    }
}

/// Does something with each of many, some at a time; the first failure stops the rest.
fn side_by_side<T: Sync>(
    items: &[T],
    work: impl Fn(usize, &T) -> Result<(), TransferError> + Sync,
) -> Result<(), TransferError> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let failure: Mutex<Option<TransferError>> = Mutex::new(None);
    let threads = SIDE_BY_SIDE.min(items.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { return };
                    if let Err(error) = work(at, item) {
                        stop.store(true, Ordering::Relaxed);
                        if let Ok(mut failure) = failure.lock() {
                            failure.get_or_insert(error);
                        }
                    }
                }
            });
        }
    });
    match failure.into_inner() {
        Ok(Some(error)) => Err(error),
        Ok(None) => Ok(()),
        // A thread that panicked has said so already.
        Err(poisoned) => poisoned.into_inner().map_or(Ok(()), Err),
    }
}

/// A path that a server named, below a folder of ours: the server need not be trusted with more.
fn beneath(folder: &Path, path: &str) -> Result<PathBuf, TransferError> {
    let bad = || TransferError::BadPath { path: path.escape_debug().to_string() };
    let odd = |c: char| c.is_control() || c == '\\' || (cfg!(windows) && "<>:\"|?*".contains(c));
    if path.chars().any(odd) || path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(bad());
    }
    let mut to = folder.to_owned();
    for part in path.split('/') {
        to.push(part);
        // A link that lies in the way would lead what comes to another place.
        if fs::symlink_metadata(&to).is_ok_and(|about| about.is_symlink()) {
            return Err(bad());
        }
    }
    Ok(to)
}

/// The hash of a file of this size; `None` if it is not there or of another size.
fn hash_of(path: &Path, bytes: u64) -> Option<String> {
    let about = fs::metadata(path).ok()?;
    if about.len() != bytes || !about.is_file() {
        return None;
    }
    let local = LocalFile { file: path.to_owned(), path: String::new(), bytes, executable: false };
    hash_one(&local, &|_| ()).ok().map(|entry| entry.hash)
}

#[cfg(unix)]
fn set_executable(path: &Path, executable: bool) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path)?.permissions().mode();
    // Whoever may read it may run it, as the reader's umask has it.
    let mode = if executable { mode | (mode & 0o444) >> 2 } else { mode & !0o111 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_executable(_: &Path, _: bool) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_cannot_write_outside_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["../a", "/etc/passwd", "a/../../b", "a\\..\\b", "", "a//b", "a\nb"] {
            assert!(beneath(folder.path(), path).is_err(), "{path}");
        }
        assert_eq!(beneath(folder.path(), "a/b").unwrap(), folder.path().join("a/b"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/tmp", folder.path().join("out")).unwrap();
            assert!(beneath(folder.path(), "out/x").is_err());
        }
    }

    #[test]
    fn the_first_failure_stops_the_rest_and_is_told() {
        let done = AtomicUsize::new(0);
        let items: Vec<usize> = (0..1000).collect();
        let outcome = side_by_side(&items, |_, item| {
            done.fetch_add(1, Ordering::Relaxed);
            match item {
                3 => Err(TransferError::BadPath { path: "x".to_owned() }),
                _ => {
                    std::thread::sleep(Duration::from_millis(1));
                    Ok(())
                }
            }
        });
        assert!(matches!(outcome, Err(TransferError::BadPath { .. })));
        assert!(done.load(Ordering::Relaxed) < 1000);
    }

    #[test]
    fn hashes_come_in_the_order_of_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let locals: Vec<LocalFile> = (0..50)
            .map(|n| {
                let file = folder.path().join(n.to_string());
                fs::write(&file, n.to_string()).unwrap();
                LocalFile { file, path: format!("f{n}"), bytes: 0, executable: n % 2 == 0 }
            })
            .collect();
        for (n, entry) in hash(&locals, &|_| ()).unwrap().iter().enumerate() {
            assert_eq!(entry.path, format!("f{n}"));
            assert_eq!(entry.hash, blake3::hash(n.to_string().as_bytes()).to_hex().to_string());
            assert_eq!(entry.executable, n % 2 == 0);
        }
    }
}
