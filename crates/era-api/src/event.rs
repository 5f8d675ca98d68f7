//! Live changes, as server-sent events and as a list.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Something that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Event {
    /// Where it stands: the journal's number of its input, a dot, and its place there. The `id`
    /// of a server-sent event; going on after it misses nothing.
    pub id: String,
    /// When.
    pub at: Timestamp,
    /// What, as the journal calls it, such as `promised` or `running`.
    pub event: String,
    /// About which job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u64>,
    /// Whose job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// In a sentence.
    pub sentence: String,
}
