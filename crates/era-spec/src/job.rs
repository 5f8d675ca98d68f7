//! A job as it is handed in.

use serde::{Deserialize, Serialize};

use crate::{AfterSpec, ArraySpec, Ask, Credits, ValueSpec, Work};

layered! {
    /// A job as it is handed in. With a `value`, a `hold`, `accept_price`, `most` or a deadline it is
    /// a bid; without any of them it waits in a queue.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
    #[schema(as = NewJob)]
    #[serde(deny_unknown_fields)]
    pub struct JobSpec {
        /// What people call it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
        /// What it is done for: spending is told by project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub project: Option<String>,
        /// What is run.
        #[schema(required = true)]
        #[serde(default)]
        pub work: Work,
        /// What it needs, and when.
        #[schema(required = true)]
        #[serde(default)]
        pub ask: Ask,
        /// What it is worth: makes it a bid.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub value: Option<ValueSpec>,
        /// The price that was quoted: the most that it may cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub most: Option<Credits>,
        /// Makes it a bid that takes the price, whatever that is up to `most`. So does a deadline
        /// without a value.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub accept_price: bool,
        /// A held quote that it takes; `ask` is then what was held.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub hold: Option<u64>,
        /// What happens when it needs longer than it said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub overrun: Option<OverrunSpec>,
        /// The queue that it waits in without a promise; `default` where nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub queue: Option<String>,
        /// Whether it may be stopped for others, with grace, and started again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub preemptible: bool,
        /// Whether idle GPUs may be taken back.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub release_when_idle: bool,
        /// The owner's own ranking of his jobs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub priority: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub attributes: Option<AttributesSpec>,
        /// Many of the same: one job for each index. For queues.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub array: Option<ArraySpec>,
        /// Jobs that must be over first. For queues. A text such as `12, 13:any` is read too.
        #[serde(
            default,
            skip_serializing_if = "Vec::is_empty",
            deserialize_with = "crate::reading::afters"
        )]
        pub after: Vec<AfterSpec>,
    }
}

impl JobSpec {
    /// Whether it asks for a promise: it takes a price, or says what it is worth or by when it has
    /// to be over.
    pub fn is_bid(&self) -> bool {
        self.hold.is_some() || self.value.is_some() || self.takes_price()
    }

    /// Whether it is a bid that takes the price: nobody said what it is worth.
    pub fn takes_price(&self) -> bool {
        let said = self.accept_price || self.most.is_some() || self.ask.deadline.is_some();
        said && self.value.is_none() && self.hold.is_none()
    }

    /// Says what was left open.
    pub fn complete(&mut self) {
        self.ask.complete();
        self.priority.get_or_insert(0);
    }
}

/// What happens when a job needs longer than it said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Overrun)]
pub enum OverrunSpec {
    /// It goes on at the market price while there is room and money.
    #[default]
    Extend,
    /// It is told to stop one grace period before its promised end.
    Stop,
}

layered! {
    /// Typed facts about a job that formulas and estimates may use.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
    #[serde(default, deny_unknown_fields)]
    #[schema(as = Attributes)]
    pub struct AttributesSpec {
        /// Such as `vision`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub field: Option<String>,
        /// Such as `pytorch`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub framework: Option<String>,
        /// Such as `resnet50`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub network: Option<String>,
        /// Parameters of the network, in thousands.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub parameters_k: Option<u64>,
        /// Size of the data, in MiB.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub data_mib: Option<u64>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ConstraintsSpec, Overlay};

    fn read(value: serde_json::Value) -> JobSpec {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_on_top_counts_and_the_rest_shows_through() {
        let below = serde_json::json!({
            "name": "below", "queue": "night", "priority": 3, "after": [{"job": 1}],
            "work": {"command": ["true"], "env": {"A": "1", "B": "1"}},
            "ask": {"resources": {"gpu": 1, "cpu": 8}, "constraints": {"pool": "a"}},
        });
        let top = serde_json::json!({
            "name": "top", "priority": 0, "preemptible": true, "after": [{"job": 2}],
            "work": {"command": [], "env": {"B": "2"}},
            "ask": {"resources": {"gpu": 2}, "constraints": {"spread": true}},
        });
        let both = read(top).over(read(below));
        let expected = serde_json::json!({
            "name": "top", "queue": "night", "priority": 0, "preemptible": true,
            "after": [{"job": 1}, {"job": 2}],
            "work": {"command": ["true"], "env": {"A": "1", "B": "2"}},
            "ask": {"resources": {"gpu": 2, "cpu": 8},
                "constraints": {"pool": "a", "spread": true}},
        });
        assert_eq!(both, read(expected));
        let nowhere = ConstraintsSpec::default().over(both.ask.constraints.clone().unwrap());
        assert_eq!(Some(nowhere), both.ask.constraints);
    }

    #[test]
    fn a_price_or_a_deadline_makes_a_bid_and_a_beginning_does_not() {
        let bid = |more: serde_json::Value| {
            let mut given = serde_json::json!({"work": {}, "ask": {}});
            given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let spec = read(given);
            (spec.is_bid(), spec.takes_price())
        };
        assert_eq!(bid(serde_json::json!({})), (false, false));
        assert_eq!(bid(serde_json::json!({"value": 3})), (true, false));
        assert_eq!(bid(serde_json::json!({"value": 3, "most": 2})), (true, false));
        assert_eq!(bid(serde_json::json!({"hold": 3, "accept_price": true})), (true, false));
        for takes in [
            serde_json::json!({"most": 3}),
            serde_json::json!({"accept_price": true}),
            serde_json::json!({"ask": {"deadline": "2026-11-20T06:00:00Z"}}),
        ] {
            assert_eq!(bid(takes), (true, true));
        }
        let later = serde_json::json!({"ask": {"earliest": "2026-11-20T06:00:00Z"}});
        assert_eq!(bid(later), (false, false));
    }
}
