//! Predictions about a job, made when it was submitted and kept with it. How they are made is in
//! `estimate`.

use serde::{Deserialize, Serialize};

use crate::resources::PerResource;
use crate::units::{Milli, Span};

/// What was predicted of a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    /// Half of such jobs take at most this.
    pub middle: Span,
    /// One in ten takes at most this.
    pub low: Span,
    /// Nine in ten take at most this.
    pub high: Span,
    /// What it uses of what it asks for: cores, memory and GPUs, where that was learned.
    #[serde(default, skip_serializing_if = "nothing_used")]
    pub used: PerResource<Option<Milli>>,
}

fn nothing_used(used: &PerResource<Option<Milli>>) -> bool {
    used.iter().all(Option::is_none)
}

/// Keeps with a job what it came after, and what was predicted of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobOutlook {
    /// What it came after.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// What was predicted, if there was a forest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Prediction>,
}

impl JobOutlook {
    pub(crate) fn is_blank(&self) -> bool {
        *self == JobOutlook::default()
    }
}

/// How a job came: after its owner's last one, and after his last one of the same size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// Among all of its owner's.
    pub user: Arrival,
    /// Among those of its size.
    pub sized: Arrival,
}

/// How a job came after the last one like it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrival {
    /// So long after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Span>,
    /// As the how-manieth of a burst, from 0.
    #[serde(default)]
    pub in_a_row: u32,
}
