//! Between the wire and the store: files, trees, data sets and what can be wrong with them.

use era_api::data as api;
use era_store::StoreError;
use era_store::files::{DataSet, Edit, FilesError, Hash, Tree, TreeFile, Visibility};
use jiff::Timestamp;

use crate::error::AppError;

/// A file as the store has it.
pub fn tree_file(entry: api::FileEntry) -> Result<TreeFile, AppError> {
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
pub fn tree(tree: api::Tree) -> Result<Tree, AppError> {
    let files = tree.files.into_iter().map(tree_file).collect::<Result<_, _>>()?;
    Ok(Tree::new(files)?)
}

/// An edit as the store has it.
pub fn edit(edit: api::FilesEdit) -> Result<Edit, AppError> {
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
pub fn stopped() -> AppError {
    FilesError::Stopped.into()
}

/// A file that was opened cannot be read.
pub fn unreadable(source: std::io::Error) -> AppError {
    let path = std::path::PathBuf::from("an open file");
    FilesError::Store(StoreError::File { path, source }).into()
}
