//! Images: what a job's environment is made of, where the executor has images.

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
    /// Its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Who published it.
    pub published_by: String,
    /// When.
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
    /// Its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}
