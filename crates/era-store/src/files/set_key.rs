//! What a data set is called, and who may see it, as values.

use std::fmt;
use std::str::FromStr;

use super::FilesError;
use crate::StoreError;

/// Who may see a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataSetVisibility {
    /// Its owner, and those it is shared with.
    Private,
    /// The owner's group.
    Group,
    Public,
}

impl DataSetVisibility {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            DataSetVisibility::Private => "private",
            DataSetVisibility::Group => "group",
            DataSetVisibility::Public => "public",
        }
    }

    pub(super) fn read(text: &str) -> Result<DataSetVisibility, FilesError> {
        match text {
            "private" => Ok(DataSetVisibility::Private),
            "group" => Ok(DataSetVisibility::Group),
            "public" => Ok(DataSetVisibility::Public),
            other => Err(FilesError::Store(StoreError::Damaged {
                what: "a data set".to_owned(),
                problem: format!("its visibility is `{other}`"),
            })),
        }
    }
}

/// Which data set: the owner's name and its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSetKey {
    /// The owner's name.
    pub owner: String,
    pub name: String,
}

impl fmt::Display for DataSetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

impl FromStr for DataSetKey {
    type Err = FilesError;

    fn from_str(text: &str) -> Result<DataSetKey, FilesError> {
        let unknown = || FilesError::UnknownData(text.escape_debug().to_string());
        let (owner, name) = text.split_once('/').ok_or_else(unknown)?;
        Ok(DataSetKey { owner: owner.to_owned(), name: name.to_owned() })
    }
}
