//! Between the wire and the store: files, trees, data sets and what can be wrong with them.

use era_api::data as api;
use era_store::StoreError;
use era_store::files::{
    ContentHash, DataSet, DataSetVisibility, Edit, FileTree, FilesError, TreeFile,
};
use jiff::Timestamp;

use crate::error::AppError;

/// A file as the store has it.
pub fn tree_file(entry: api::FileEntry) -> Result<TreeFile, AppError> {
    let api::FileEntry { path, bytes, hash, executable } = entry;
    Ok(TreeFile { path, hash: hash.parse::<ContentHash>()?, bytes, executable })
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
pub fn tree(tree: api::NewTree) -> Result<FileTree, AppError> {
    let files = tree.files.into_iter().map(tree_file).collect::<Result<_, _>>()?;
    Ok(FileTree::new(files)?)
}

/// An edit as the store has it.
pub fn edit(edit: api::FilesEdit) -> Result<Edit, AppError> {
    let api::FilesEdit { put, remove, replace } = edit;
    let put = put.into_iter().map(tree_file).collect::<Result<_, _>>()?;
    Ok(Edit { put, remove, replace })
}

/// Who may see, as the store has it.
pub fn visibility(visibility: api::Visibility) -> DataSetVisibility {
    match visibility {
        api::Visibility::Private => DataSetVisibility::Private,
        api::Visibility::Group => DataSetVisibility::Group,
        api::Visibility::Public => DataSetVisibility::Public,
    }
}

/// A data set as the wire has it.
pub fn data_set(set: DataSet) -> api::DataSetView {
    let time = |ms| Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH);
    api::DataSetView {
        name: set.key.name,
        owner: set.key.owner,
        visibility: match set.visibility {
            DataSetVisibility::Private => api::Visibility::Private,
            DataSetVisibility::Group => api::Visibility::Group,
            DataSetVisibility::Public => api::Visibility::Public,
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
pub fn stopped() -> AppError {
    FilesError::Stopped.into()
}

/// A file that was opened cannot be read.
pub fn unreadable(source: std::io::Error) -> AppError {
    let path = std::path::PathBuf::from("an open file");
    FilesError::Store(StoreError::File { path, source }).into()
}
