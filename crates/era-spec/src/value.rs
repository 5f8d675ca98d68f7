//! What a job is worth.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Credits;

/// What a bid is worth: one amount, or steps that fall with the time of finishing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[schema(as = Value)]
pub enum ValueSpec {
    /// The same whenever it finishes within its window.
    Flat(Credits),
    /// Falls in steps; nothing after the last.
    Steps(Vec<ValueStepSpec>),
}

/// One step of a falling value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ValueStep)]
pub struct ValueStepSpec {
    pub by: Timestamp,
    pub worth: Credits,
}
