//! The rules of the house, by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Settings by name. Lengths of time are seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(as = Settings)]
pub struct SettingsView(pub BTreeMap<String, serde_json::Value>);
