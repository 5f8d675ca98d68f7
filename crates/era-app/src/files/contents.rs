//! Contents by their hash, and trees of them.

use std::fs::File;

use era_api::data::{BlobList, NewTree, TreeMade};
use era_store::files::{ContentHash, FilesError, Upload};

use super::{Service, wire};
use crate::auth::Caller;
use crate::error::{AppError, Kind};

/// Most hashes of one question.
const HASHES_MAX: usize = 10_000;

/// Which contents must be sent: those that are not there, or not known to be the caller's.
pub async fn missing(
    service: &Service,
    caller: &Caller,
    list: &BlobList,
) -> Result<BlobList, AppError> {
    if list.hashes.len() > HASHES_MAX {
        let detail = format!("ask about at most {HASHES_MAX} files at a time");
        return Err(AppError::new(Kind::Invalid, "too_many", detail));
    }
    let hashes =
        list.hashes.iter().map(|hash| hash.parse()).collect::<Result<Vec<ContentHash>, _>>()?;
    let missing = service.files.missing(&service.changer(caller)?, &hashes).await?;
    Ok(BlobList { hashes: missing.iter().map(ToString::to_string).collect() })
}

/// How much of a content is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentState {
    /// All of it: so many bytes.
    All(u64),
    /// So much of the caller's upload, which goes on from here.
    UpTo(u64),
}

/// How much of a content is there for the caller.
pub async fn there(
    service: &Service,
    caller: &Caller,
    hash: &str,
) -> Result<ContentState, AppError> {
    let hash: ContentHash = hash.parse()?;
    match service.files.readable_blob(&service.viewer(caller), hash).await {
        Ok(bytes) => Ok(ContentState::All(bytes)),
        Err(FilesError::UnknownBlob(_)) => {
            Ok(ContentState::UpTo(service.files.uploaded(caller.user, hash).await?))
        }
        Err(other) => Err(other.into()),
    }
}

/// Takes a content, or the rest of it from an offset on; what is there up to it stays.
pub async fn take(
    service: &Service,
    caller: &Caller,
    hash: ContentHash,
    offset: u64,
) -> Result<Upload, AppError> {
    let quota = service.quota(caller.user).await?;
    Ok(service.files.upload(caller.user, hash, offset, quota).await?)
}

/// A content that the caller can reach: through an own upload, a data set or a job.
pub async fn open(service: &Service, caller: &Caller, hash: ContentHash) -> Result<File, AppError> {
    service.files.readable_blob(&service.viewer(caller), hash).await?;
    Ok(service.files.open_blob(hash)?)
}

/// Puts a tree, such as a job's code. Its contents must be there. The same tree again is the same.
pub async fn put_tree(
    service: &Service,
    caller: &Caller,
    tree: NewTree,
) -> Result<TreeMade, AppError> {
    let viewer = service.changer(caller)?;
    let tree = wire::tree(tree)?;
    let hash = service.files.put_tree(&viewer, &tree).await?.to_string();
    Ok(TreeMade { hash, bytes: tree.bytes() })
}

/// A tree that the caller put, or that a data set or job has that the caller may see.
pub async fn tree(service: &Service, caller: &Caller, hash: &str) -> Result<NewTree, AppError> {
    let hash: ContentHash = hash.parse()?;
    let tree = service.files.tree(&service.viewer(caller), hash).await?;
    Ok(NewTree { files: tree.files().iter().map(wire::file_entry).collect() })
}
