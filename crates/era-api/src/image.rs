//! Images: what a job's environment is made of, where the executor has images.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// An image of the catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Image {
    /// Its name in the catalogue.
    pub name: String,
    /// The full reference.
    pub reference: String,
    /// Such as `pytorch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework: Option<String>,
    /// The framework's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version of Python.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Whether it is made for GPUs.
    #[serde(default)]
    pub gpu: bool,
    /// How many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Who published it.
    pub published_by: String,
    pub published: Timestamp,
}

/// An image that is to be published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewImage {
    /// Its name in the catalogue.
    pub name: String,
    /// The full reference.
    pub reference: String,
    /// Such as `pytorch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework: Option<String>,
    /// The framework's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version of Python.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Whether it is made for GPUs.
    #[serde(default)]
    pub gpu: bool,
    /// How many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl NewImage {
    /// The reference by which it means the same for ever, where its digest is known.
    pub fn exact(&self) -> String {
        let Some(digest) = &self.digest else { return self.reference.clone() };
        let name = match self.reference.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => name,
            _ => self.reference.as_str(),
        };
        match self.reference.contains('@') {
            true => self.reference.clone(),
            false => format!("{name}@{digest}"),
        }
    }
}

/// An image that is to be built, and sent to the site's registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BuildImage {
    /// What it is called in the registry, below the account's own name: `torch` or `torch:2.9`.
    pub name: String,
    /// The files that it is built from: a tree that was sent before.
    pub code: String,
    /// The Dockerfile's path among them; `Dockerfile` where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dockerfile: Option<String>,
    /// What its `ARG` lines read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// Send it to the registry once it is built.
    #[serde(default)]
    pub push: bool,
}

/// An image that was built and is to be sent to the site's registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PushImage {
    /// The name that it was built under.
    pub name: String,
}

/// A line of what a build or a push says, one JSON object each. The last one is `done` or
/// `failed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageNews {
    /// A line of output.
    Line(String),
    /// All of it was done.
    Done(BuiltImage),
    /// It could not be done: why.
    Failed(String),
}

/// An image that was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BuiltImage {
    /// The full reference, by which it can be published and used.
    pub reference: String,
    /// Its digest, once it is in the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// How many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_with_a_digest_means_the_same_whatever_becomes_of_its_tag() {
        for (reference, digest, exact) in [
            ("r:5000/a/b:1", Some("sha256:00"), "r:5000/a/b@sha256:00"),
            ("r:5000/a/b", Some("sha256:00"), "r:5000/a/b@sha256:00"),
            ("a@sha256:11", Some("sha256:00"), "a@sha256:11"),
            ("r:5000/a:1", None, "r:5000/a:1"),
        ] {
            let new = serde_json::json!({ "name": "n", "reference": reference, "digest": digest });
            let new: NewImage = serde_json::from_value(new).unwrap();
            assert_eq!(new.exact(), exact);
        }
    }
}
