//! Data sets and files: content by its hash, trees of files by name.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Who may see a data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Its owner, and those it is shared with.
    #[default]
    Private,
    /// The owner's group.
    Group,
    Public,
}

/// A named, versioned tree of files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = DataSet)]
pub struct DataSetView {
    pub name: String,
    pub owner: String,
    /// Who may see it.
    pub visibility: Visibility,
    /// Accounts that may see it beside.
    pub shared_with: Vec<String>,
    /// How many files.
    pub files: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The hash of its tree, once a file is there.
    pub tree: Option<String>,
    /// When it was made.
    pub created: Timestamp,
    /// When a file last changed.
    pub changed: Timestamp,
}

/// A data set that is wanted, or a change of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DataSetEdit {
    /// Who may see it.
    pub visibility: Option<Visibility>,
    /// All accounts that may see it beside.
    pub shared_with: Option<Vec<String>>,
}

/// A file in a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its path, with `/`, relative, without `.` and `..`.
    pub path: String,
    /// How many bytes.
    pub bytes: u64,
    /// The BLAKE3 hash of its content, in hex.
    pub hash: String,
    /// Whether it may be executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// A tree of files, as it is put: its blobs must be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Tree)]
pub struct NewTree {
    /// The files, by path, in order.
    pub files: Vec<FileEntry>,
}

/// A tree that was put.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TreeMade {
    pub hash: String,
    /// How many bytes its files have together.
    pub bytes: u64,
}

/// Which blobs of a list are missing, so that only these are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BlobList {
    pub hashes: Vec<String>,
}

/// How much of a blob is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BlobState {
    pub hash: String,
    /// Bytes that are there: an upload goes on from here.
    pub offset: u64,
    /// Whether it is complete and verified.
    pub complete: bool,
}

/// A change of the files of a data set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FilesEdit {
    /// Files that are put or replaced; their blobs must be there.
    pub put: Vec<FileEntry>,
    /// Paths (or folders, with a `/` at the end) that are removed.
    pub remove: Vec<String>,
    /// Whether everything else is removed.
    pub replace: bool,
}

/// What is kept of a job: a folder of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobFolder {
    /// What it was to make.
    Outputs,
    /// What it goes on from.
    Checkpoints,
}

impl JobFolder {
    /// As folders and addresses are called.
    pub fn as_str(self) -> &'static str {
        match self {
            JobFolder::Outputs => "outputs",
            JobFolder::Checkpoints => "checkpoints",
        }
    }
}

impl std::fmt::Display for JobFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A file that is kept of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OutputFile {
    /// Its path below `outputs/`.
    pub path: String,
    /// How many bytes.
    pub bytes: u64,
    /// When it was last changed.
    pub changed: Timestamp,
    /// Whether it may be executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// A data set that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDataSet {
    pub name: String,
    /// Who may see it.
    #[serde(default)]
    pub visibility: Visibility,
}

/// Which data sets are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct DataSetFilter {
    /// Of this account.
    pub owner: Option<String>,
    /// Whose name has this in it.
    pub search: Option<String>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Most items, up to 1000.
    pub limit: Option<u32>,
}

/// Which files are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct FileFilter {
    /// Whose path begins so.
    pub prefix: Option<String>,
    /// Whose path has this in it.
    pub search: Option<String>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Most items, up to 1000.
    pub limit: Option<u32>,
}
