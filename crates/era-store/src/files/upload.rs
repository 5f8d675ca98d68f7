//! An upload: a content that comes piece by piece, perhaps over several connections.
//!
//! What has come lies in a file of its own for each account, so nobody can go on with (or learn
//! about) another's upload; its length is the offset to go on from. Memory holds one piece.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use era_core::units::UserId;

use super::blob::{CHUNK_BYTES, hash_file, settle};
use super::{ContentHash, Files, FilesError, blocking, locked};

/// Most bytes of one content.
pub const BLOB_BYTES_MAX: u64 = 1 << 40;
/// Most unfinished uploads of an account.
pub const UPLOADS_MAX: usize = 256;

/// How the files of uploads begin whose hash is not known before.
pub(super) const UNNAMED: &str = "new-";

/// An upload in progress. Whatever was written stays for a later one to go on from, unless it is
/// finished or proves to be damaged.
pub struct Upload {
    files: Files,
    account: UserId,
    /// Absent where the hash is what comes out.
    hash: Option<ContentHash>,
    limit: u64,
    /// What else the account had when it began.
    used: u64,
    offset: u64,
    piece: Vec<u8>,
    /// Absent while it is away writing, and after a failure.
    sink: Option<Sink>,
}

/// The file of an upload, and the hash of all that is in it where that is known.
struct Sink {
    path: PathBuf,
    file: File,
    hasher: Option<blake3::Hasher>,
    /// Goes where the file goes: whoever hangs up leaves a write under way, and nobody else may
    /// begin before that is over. Absent where nobody else can know of the file.
    turn: Option<Turn>,
}

impl Drop for Sink {
    fn drop(&mut self) {
        // Nobody can go on with it. Where it has got its name it is not here any more.
        if self.turn.is_none() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The right to write to an upload.
struct Turn {
    files: Files,
    key: (UserId, ContentHash),
}

impl Drop for Turn {
    fn drop(&mut self) {
        locked(&self.files.0.writing).remove(&self.key);
    }
}

impl Files {
    /// How many bytes of an account's upload are there.
    pub async fn uploaded(&self, account: UserId, hash: ContentHash) -> Result<u64, FilesError> {
        let path = self.upload_path(account, hash);
        blocking(move || length(&path)).await
    }

    /// Goes on with an upload at an offset, up to which everything must be there; what is there
    /// beyond it is sent anew. `quota` is what the account may keep in all.
    pub async fn upload(
        &self,
        account: UserId,
        hash: ContentHash,
        offset: u64,
        quota: Option<u64>,
    ) -> Result<Upload, FilesError> {
        let key = (account, hash);
        if !locked(&self.0.writing).insert(key) {
            return Err(FilesError::Busy);
        }
        let turn = Turn { files: self.clone(), key };
        let path = self.upload_path(account, hash);
        let mut upload = self.open_upload(account, path, offset, quota, Some(turn)).await?;
        upload.hash = Some(hash);
        Ok(upload)
    }

    /// An upload of a content whose hash is not known before. It cannot be gone on with later.
    pub async fn upload_unnamed(
        &self,
        account: UserId,
        quota: Option<u64>,
    ) -> Result<Upload, FilesError> {
        let number = self.0.unnamed.fetch_add(1, Ordering::Relaxed);
        let name = format!("{UNNAMED}{}-{number}", std::process::id());
        let path = self.folder().join("uploads").join(account.0.to_string()).join(name);
        self.open_upload(account, path, 0, quota, None).await
    }

    async fn open_upload(
        &self,
        account: UserId,
        path: PathBuf,
        offset: u64,
        quota: Option<u64>,
        turn: Option<Turn>,
    ) -> Result<Upload, FilesError> {
        let limit = quota.unwrap_or(u64::MAX);
        let used = self.used_beside(account, &path, limit).await?;
        if used >= limit {
            return Err(FilesError::Quota { used, limit });
        }
        let sink = blocking(move || Sink::open(path, offset, turn)).await?;
        Ok(Upload {
            files: self.clone(),
            account,
            hash: None,
            limit,
            used,
            offset,
            piece: Vec::new(),
            sink: Some(sink),
        })
    }

    /// How many bytes an account keeps, with all that has come of its other uploads; nothing is
    /// counted for one that may keep anything.
    async fn used_beside(
        &self,
        account: UserId,
        path: &Path,
        limit: u64,
    ) -> Result<u64, FilesError> {
        if limit == u64::MAX {
            return Ok(0);
        }
        let path = path.to_owned();
        let unfinished = blocking(move || beside(&path)).await?;
        Ok(self.used(account).await?.saturating_add(unfinished))
    }

    fn upload_path(&self, account: UserId, hash: ContentHash) -> PathBuf {
        self.folder().join("uploads").join(account.0.to_string()).join(hash.to_string())
    }

    /// Whether nobody writes to this upload; the collector asks.
    pub(super) fn is_idle(&self, account: UserId, hash: ContentHash) -> bool {
        !locked(&self.0.writing).contains(&(account, hash))
    }
}

impl Upload {
    /// Where it stands.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Takes the next bytes. Returns at once while a piece is not full.
    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<(), FilesError> {
        let after = self.offset.saturating_add(bytes.len() as u64);
        if after > BLOB_BYTES_MAX {
            return Err(FilesError::TooLarge { bytes: after, limit: BLOB_BYTES_MAX });
        }
        if self.used.saturating_add(after) > self.limit {
            return Err(FilesError::Quota { used: self.used, limit: self.limit });
        }
        while !bytes.is_empty() {
            let fits = (CHUNK_BYTES - self.piece.len()).min(bytes.len());
            let (now, later) = bytes.split_at(fits);
            self.piece.extend_from_slice(now);
            self.offset += now.len() as u64;
            bytes = later;
            if self.piece.len() == CHUNK_BYTES {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Writes out what is in memory, so that a later upload goes on from here.
    pub async fn flush(&mut self) -> Result<(), FilesError> {
        if self.piece.is_empty() {
            return Ok(());
        }
        self.check_quota(self.sink.as_ref()).await?;
        let piece = std::mem::take(&mut self.piece);
        let mut sink = self.sink.take().ok_or(FilesError::Stopped)?;
        let (sink, mut piece) = blocking(move || {
            sink.take(&piece)?;
            Ok((sink, piece))
        })
        .await?;
        piece.clear();
        (self.sink, self.piece) = (Some(sink), piece);
        Ok(())
    }

    /// Whether there is room for what has come of this one, beside what else came meanwhile.
    async fn check_quota(&self, sink: Option<&Sink>) -> Result<(), FilesError> {
        let limit = self.limit;
        let path = &sink.ok_or(FilesError::Stopped)?.path;
        let used = self.files.used_beside(self.account, path, limit).await?;
        match used.saturating_add(self.offset) > limit {
            true => Err(FilesError::Quota { used, limit }),
            false => Ok(()),
        }
    }

    /// All of it has come: verified, synced, under its name, and the account's to use. Goes on to
    /// its end even if nobody waits for it any more.
    pub async fn finish(self) -> Result<ContentHash, FilesError> {
        tokio::spawn(self.settle()).await.map_err(|_| FilesError::Stopped)?
    }

    async fn settle(mut self) -> Result<ContentHash, FilesError> {
        let files = self.files.clone();
        let (wanted, account, bytes) = (self.hash, self.account, self.offset);
        let piece = std::mem::take(&mut self.piece);
        let sink = self.sink.take().ok_or(FilesError::Stopped)?;
        let (sink, hash) = blocking(move || sink.verified(&piece, wanted)).await?;
        // Here all of it lies where others' checks find it: of two that have room for one only,
        // not both are told yes.
        self.check_quota(Some(&sink)).await?;
        let to = files.blob_path(hash);
        // From here until the row is there the collector must not look at this content.
        let _naming = files.0.naming.read().await;
        let _turn = blocking(move || sink.settle(&to)).await?;
        let new = files.0.publisher.publish(hash, bytes, account, files.now()).await?;
        if new {
            files.uses_more(account, bytes);
        }
        Ok(hash)
    }
}

impl Sink {
    fn open(path: PathBuf, offset: u64, turn: Option<Turn>) -> Result<Sink, FilesError> {
        let have = length(&path)?;
        if offset > have {
            return Err(FilesError::Offset { have, asked: offset });
        }
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(FilesError::of(folder))?;
        if have == 0 && !path.exists() {
            let unfinished = fs::read_dir(folder).map_err(FilesError::of(folder))?.count();
            if unfinished >= UPLOADS_MAX {
                return Err(FilesError::TooManyUploads(unfinished));
            }
        }
        let open = || {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create(true).truncate(false).open(&path)?;
            file.set_len(offset)?;
            file.seek(SeekFrom::Start(offset))?;
            Ok(file)
        };
        let file = open().map_err(FilesError::of(&path))?;
        // What is there already is hashed at the end, once, and not at every resumption.
        let hasher = (offset == 0).then(blake3::Hasher::new);
        Ok(Sink { path, file, hasher, turn })
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), FilesError> {
        self.file.write_all(piece).map_err(FilesError::of(&self.path))?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(piece);
        }
        Ok(())
    }

    fn verified(
        mut self,
        piece: &[u8],
        wanted: Option<ContentHash>,
    ) -> Result<(Sink, ContentHash), FilesError> {
        self.take(piece)?;
        let found = match &self.hasher {
            Some(hasher) => hasher.finalize().into(),
            None => hash_file(&self.path)?,
        };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            fs::remove_file(&self.path).map_err(FilesError::of(&self.path))?;
            return Err(FilesError::Mismatch { wanted, found });
        }
        self.file.sync_all().map_err(FilesError::of(&self.path))?;
        Ok((self, found))
    }

    /// Puts it under its name; its turn is over once that is known.
    fn settle(mut self, to: &Path) -> Result<Option<Turn>, FilesError> {
        match to.exists() {
            true => fs::remove_file(&self.path).map_err(FilesError::of(&self.path))?,
            false => settle(&self.path, to)?,
        }
        Ok(self.turn.take())
    }
}

fn length(path: &Path) -> Result<u64, FilesError> {
    match fs::metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(FilesError::of(path)(error)),
    }
}

/// How much lies beside an upload: in those of the same account that are not finished.
fn beside(path: &Path) -> Result<u64, FilesError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(FilesError::of(folder)(error)),
    };
    let mut bytes = 0_u64;
    for entry in entries {
        let entry = entry.map_err(FilesError::of(folder))?;
        if entry.path() != path {
            // It may be finished by now.
            bytes = bytes.saturating_add(length(&entry.path())?);
        }
    }
    Ok(bytes)
}
