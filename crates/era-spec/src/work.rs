//! What is run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

layered! {
    /// What is run: a command in an environment, with its code and data.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Work {
        /// The command and its arguments.
        pub command: Vec<String>,
        /// The code: the hash of an uploaded tree, which becomes the working folder.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub code: Option<String>,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub env: BTreeMap<String, String>,
        /// Names of secrets that it finds in its environment, with the values that they have when it
        /// starts.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub secrets: Vec<String>,
        /// Data sets that it sees, read-only.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub inputs: Vec<WorkInput>,
        /// The image that it runs in, where the executor has images.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub image: Option<String>,
        /// Whether each replica has a terminal of its own, to which one can attach, rather than an
        /// output and no input. Where tasks are plain processes of the server's own machine.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub terminal: bool,
    }
}

/// A data set as a job sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkInput {
    /// Its name, or `owner/name`.
    pub data: String,
    /// Where it appears in the working folder; `inputs/NAME` where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// `NAME`, or `NAME:PLACE`.
impl From<&str> for WorkInput {
    fn from(text: &str) -> WorkInput {
        let (data, path) = match text.split_once(':') {
            Some((data, place)) => (data, Some(place.to_owned())),
            None => (text, None),
        };
        WorkInput { data: data.to_owned(), path }
    }
}
