//! Live changes, as server-sent events and as a list.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Something that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Event)]
pub struct EventView {
    /// Where it stands: the journal's number of its input, a dot, and its place there. The `id`
    /// of a server-sent event; going on after it misses nothing.
    pub id: String,
    pub at: Timestamp,
    /// What, as the journal calls it, such as `promised` or `running`.
    pub event: String,
    /// About which job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// In a sentence.
    pub sentence: String,
    /// What it says besides, for whoever puts it in words of their own: money in millionths of a
    /// credit, instants and spans in milliseconds, machines by name.
    #[serde(default, skip_serializing_if = "crate::Parameters::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>)]
    pub parameters: crate::Parameters,
}

/// Which events are listed. Every field narrows the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct EventFilter {
    /// Of one of these kinds, by comma, such as `promised` or `running`.
    pub event: Option<String>,
    /// About this job.
    pub job: Option<u64>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Most items, up to 1000.
    pub limit: Option<u32>,
}
