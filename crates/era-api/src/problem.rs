//! Every way in which a request is refused: RFC 9457 problem details.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::quote::CounterOffersView;

/// Why a request was refused, as `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Problem {
    /// The stable code behind `urn:era:`.
    #[serde(rename = "type")]
    pub kind: String,
    /// A few words on the kind.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong and what would be right, in a sentence.
    pub detail: String,
    /// The stable code, for programs.
    pub code: String,
    /// The field that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What the sentence says besides its code, for whoever puts it in words of their own.
    #[serde(default, skip_serializing_if = "crate::Parameters::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>)]
    pub parameters: crate::Parameters,
    /// The request that it answers, as the logs name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// After how many seconds it may be tried again, where waiting helps; also `retry-after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u32>,
    /// What would be possible instead of a refused bid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter_offers: Option<CounterOffersView>,
}

impl Problem {
    /// A problem of this status and code.
    pub fn new(status: u16, code: &str, detail: impl Into<String>) -> Problem {
        Problem {
            kind: format!("urn:era:{code}"),
            title: code.replace('_', " "),
            status,
            detail: detail.into(),
            code: code.to_owned(),
            field: None,
            parameters: crate::Parameters::new(),
            request_id: None,
            retry_after_s: None,
            counter_offers: None,
        }
    }

    /// The same, about this field.
    #[must_use]
    pub fn about(mut self, field: &str) -> Problem {
        self.field = Some(field.to_owned());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |field: &String| {
            self.detail.strip_prefix(field.as_str()).is_some_and(|rest| rest.starts_with(':'))
        };
        match &self.field {
            Some(field) if !names(field) => write!(f, "{field}: {}", self.detail),
            _ => f.write_str(&self.detail),
        }
    }
}

impl std::error::Error for Problem {}
