//! Between the wire and the store: files, trees, data sets and what can be wrong with them.

use axum::http::StatusCode;
use era_api::data as api;
use era_store::StoreError;
use era_store::files::{DataSet, Edit, FilesError, Hash, Tree, TreeFile, Visibility};
use jiff::Timestamp;
use serde_json::json;

use crate::http::Failure;

/// A file as the store has it.
pub fn tree_file(entry: api::FileEntry) -> Result<TreeFile, Failure> {
    let api::FileEntry { path, bytes, hash, executable } = entry;
    Ok(TreeFile { path, hash: hash.parse::<Hash>()?, bytes, executable })
}

/// A file as the wire has it.
pub fn file_entry(file: &TreeFile) -> api::FileEntry {
    api::FileEntry {
        path: file.path.clone(),
        bytes: file.bytes,
        hash: file.hash.to_string(),
        executable: file.executable,
    }
}

/// A tree as the store has it.
pub fn tree(tree: api::Tree) -> Result<Tree, Failure> {
    let files = tree.files.into_iter().map(tree_file).collect::<Result<_, _>>()?;
    Ok(Tree::new(files)?)
}

/// An edit as the store has it.
pub fn edit(edit: api::FilesEdit) -> Result<Edit, Failure> {
    let api::FilesEdit { put, remove, replace } = edit;
    let put = put.into_iter().map(tree_file).collect::<Result<_, _>>()?;
    Ok(Edit { put, remove, replace })
}

/// Who may see, as the store has it.
pub fn visibility(visibility: api::Visibility) -> Visibility {
    match visibility {
        api::Visibility::Private => Visibility::Private,
        api::Visibility::Group => Visibility::Group,
        api::Visibility::Public => Visibility::Public,
    }
}

/// A data set as the wire has it.
pub fn data_set(set: DataSet) -> api::DataSet {
    let time = |ms| Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH);
    api::DataSet {
        name: set.key.name,
        owner: set.key.owner,
        visibility: match set.visibility {
            Visibility::Private => api::Visibility::Private,
            Visibility::Group => api::Visibility::Group,
            Visibility::Public => api::Visibility::Public,
        },
        shared_with: set.shared_with,
        files: set.files,
        bytes: set.bytes,
        tree: set.tree.map(|tree| tree.to_string()),
        created: time(set.created),
        changed: time(set.changed),
    }
}

/// The server is going down.
pub fn stopped() -> Failure {
    FilesError::Stopped.into()
}

/// A file that was opened cannot be read.
pub fn unreadable(source: std::io::Error) -> Failure {
    let path = std::path::PathBuf::from("an open file");
    FilesError::Store(StoreError::File { path, source }).into()
}

impl From<FilesError> for Failure {
    fn from(error: FilesError) -> Failure {
        use FilesError as E;
        let (status, code, field) = match &error {
            E::BadHash(_) => (StatusCode::UNPROCESSABLE_ENTITY, "bad_hash", Some("hash")),
            E::Path(_) => (StatusCode::UNPROCESSABLE_ENTITY, "bad_path", Some("path")),
            E::BadName(_) => (StatusCode::UNPROCESSABLE_ENTITY, "bad_name", Some("name")),
            E::TooManyFiles(_) => (StatusCode::UNPROCESSABLE_ENTITY, "too_many_files", None),
            E::TooManyShares(_) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "too_many_shares", Some("shared_with"))
            }
            E::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", None),
            E::Busy => (StatusCode::CONFLICT, "upload_busy", None),
            E::TooManyUploads(_) => (StatusCode::TOO_MANY_REQUESTS, "too_many_uploads", None),
            E::Offset { .. } => (StatusCode::CONFLICT, "wrong_offset", Some("offset")),
            E::Mismatch { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "hash_mismatch", Some("hash")),
            E::Quota { .. } => (StatusCode::INSUFFICIENT_STORAGE, "storage_quota", None),
            E::DiskFull => (StatusCode::INSUFFICIENT_STORAGE, "disk_full", None),
            E::Missing(_) => (StatusCode::UNPROCESSABLE_ENTITY, "files_missing", Some("files")),
            E::WrongSize { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "wrong_size", Some("files")),
            E::UnknownBlob(_) => (StatusCode::NOT_FOUND, "unknown_blob", None),
            E::UnknownTree(_) => (StatusCode::NOT_FOUND, "unknown_tree", None),
            E::UnknownData(_) => (StatusCode::NOT_FOUND, "unknown_data_set", None),
            E::UnknownFile(_) => (StatusCode::NOT_FOUND, "unknown_file", Some("path")),
            E::Taken(_) => (StatusCode::CONFLICT, "name_taken", Some("name")),
            E::NotYours(_) => (StatusCode::FORBIDDEN, "not_yours", None),
            E::Stopped => (StatusCode::SERVICE_UNAVAILABLE, "stopping", None),
            E::Store(cause) => {
                // What the system says may name paths: it goes to the log, not to the caller.
                tracing::error!(%cause, "the files cannot be read or written");
                let detail = "the server could not read or write its files: see its log";
                return Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "store", detail);
            }
        };
        let mut failure = Failure::new(status, code, error.to_string());
        let limits = match &error {
            E::TooLarge { bytes, limit } => Some(json!({ "bytes": bytes, "limit": limit })),
            E::Quota { used, limit } => Some(json!({ "used": used, "limit": limit })),
            _ => None,
        };
        if let Some(serde_json::Value::Object(limits)) = limits {
            failure.0.parameters = limits;
        }
        match field {
            Some(field) => failure.about(field),
            None => failure,
        }
    }
}
