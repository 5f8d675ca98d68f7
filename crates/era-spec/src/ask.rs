//! What a job needs, when it may run and where.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Cores and memory of a replica with GPUs, where nothing is said.
const BESIDE_GPUS: (&str, &str) = ("4", "4Gi");
/// The same of one without.
const WITHOUT_GPUS: (&str, &str) = ("1", "1Gi");
/// How long a job may run where nothing is said.
const DURATION_S: u64 = 3600;

layered! {
    /// What a job needs, when it may run and where: the part of it that is priced.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
    #[serde(deny_unknown_fields)]
    pub struct Ask {
        /// What each replica needs. Without a word on cores and memory: 4 cores and 4 GiB beside
        /// GPUs, else a core and 1 GiB.
        #[serde(default, deserialize_with = "crate::reading::resources")]
        pub resources: ResourcesSpec,
        /// How many replicas start together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub replicas: Option<Replicas>,
        /// A total of GPUs instead of replicas, split over nodes; `resources` go with each GPU.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub gpus: Option<u32>,
        /// How long it runs at most, in seconds; an hour where nothing is said. A text such as
        /// `2h30m` is read too.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "crate::reading::seconds"
        )]
        pub duration_s: Option<u64>,
        /// Not before; now where nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub earliest: Option<Timestamp>,
        /// Finished by; the horizon where nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub deadline: Option<Timestamp>,
        /// Where it may run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub constraints: Option<ConstraintsSpec>,
    }
}

impl Ask {
    /// Says what was left open.
    pub fn complete(&mut self) {
        if self.gpus.is_some() {
            // A total is made of whole GPUs.
            self.unsaid("gpu", "1");
        }
        let (cpu, memory) = match self.resources.contains_key("gpu") {
            true => BESIDE_GPUS,
            false => WITHOUT_GPUS,
        };
        self.unsaid("cpu", cpu);
        self.unsaid("memory", memory);
        self.duration_s.get_or_insert(DURATION_S);
    }

    fn unsaid(&mut self, name: &str, amount: &str) {
        self.resources.entry(name.to_owned()).or_insert_with(|| amount.into());
    }

    /// Whether all of the job is one task, now and later.
    pub fn is_one_task(&self) -> bool {
        let one = [None, Some(Replicas::Fixed(1)), Some(Replicas::Range { min: 1, max: 1 })];
        self.gpus.is_none() && one.contains(&self.replicas)
    }
}

/// Resources of one replica, as Kubernetes writes them: `{"cpu": "4", "memory": "16Gi",
/// "gpu": "1", "gpu.model": "h100", "gpu.memory": "40Gi"}`. Numbers are read too.
pub type ResourcesSpec = BTreeMap<String, Quantity>;

/// An amount: a string such as `16Gi`, or a plain number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged, expecting = "an amount such as 2 or \"16Gi\"")]
pub enum Quantity {
    Text(String),
    /// As a number.
    Number(f64),
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Text(text) => f.write_str(text),
            Quantity::Number(number) => write!(f, "{number}"),
        }
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Quantity {
        Quantity::Text(text.to_owned())
    }
}

impl From<String> for Quantity {
    fn from(text: String) -> Quantity {
        Quantity::Text(text)
    }
}

/// A fixed number of replicas, or a range: `min` are promised, `max` is the limit of growth. A text
/// such as `2..8` is read too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum Replicas {
    Fixed(u32),
    /// An elastic job.
    Range {
        min: u32,
        max: u32,
    },
}

/// What is no number of replicas.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReplicas {
    /// Nobody knows what it means.
    #[error("`{0}` is no number of replicas: write 4, or 2..8 for a job that may grow")]
    NotRead(String),
    /// Fewer than none.
    #[error("`{0}` must not be negative: write 4, or 2..8 for a job that may grow")]
    Negative(String),
}

/// `4`, or `2..8`.
impl FromStr for Replicas {
    type Err = BadReplicas;

    fn from_str(text: &str) -> Result<Replicas, BadReplicas> {
        if text.trim().starts_with('-') {
            return Err(BadReplicas::Negative(text.to_owned()));
        }
        let bad = || BadReplicas::NotRead(text.to_owned());
        let number = |text: &str| text.trim().parse().ok().filter(|n| *n > 0).ok_or_else(bad);
        match text.split_once("..") {
            Some((min, max)) => {
                let (min, max) = (number(min)?, number(max)?);
                if min <= max { Ok(Replicas::Range { min, max }) } else { Err(bad()) }
            }
            None => number(text).map(Replicas::Fixed),
        }
    }
}

layered! {
    /// Where a job may run. Empty means anywhere.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
    #[serde(default, deny_unknown_fields)]
    #[schema(as = Constraints)]
    pub struct ConstraintsSpec {
        /// Only in this pool.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub pool: Option<String>,
        /// Only in this domain.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub domain: Option<String>,
        /// Only on nodes with these labels.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub labels: BTreeMap<String, String>,
        /// All replicas on one `node`, in one `rack` or in one `domain`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub same: Option<TopologySpec>,
        /// At most so many replicas on a node.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub per_node_max: Option<u32>,
        /// Spread replicas over nodes rather than pack them.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub spread: bool,
    }
}

/// How near to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Topology)]
pub enum TopologySpec {
    Node,
    Rack,
    Domain,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(resources: &[(&str, &str)], gpus: Option<u32>) -> BTreeMap<String, String> {
        let resources = resources.iter().map(|(name, text)| ((*name).to_owned(), (*text).into()));
        let mut ask = Ask { resources: resources.collect(), gpus, ..Ask::default() };
        ask.complete();
        ask.resources.iter().map(|(name, amount)| (name.clone(), amount.to_string())).collect()
    }

    fn amounts(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(name, amount)| ((*name).to_owned(), (*amount).to_owned())).collect()
    }

    #[test]
    fn a_job_without_a_word_on_resources_gets_a_core_and_an_hour() {
        assert_eq!(completed(&[], None), amounts(&[("cpu", "1"), ("memory", "1Gi")]));
        let mut ask = Ask::default();
        ask.complete();
        assert_eq!(ask.duration_s, Some(3600));
        let complete = ask.clone();
        ask.complete();
        assert_eq!(ask, complete, "there is nothing left to say");
    }

    #[test]
    fn gpus_bring_cores_and_memory_and_what_was_said_counts() {
        let gpu = [("cpu", "4"), ("gpu", "2"), ("memory", "4Gi")];
        assert_eq!(completed(&[("gpu", "2")], None), amounts(&gpu));
        let said = [("cpu", "8"), ("gpu", "2"), ("memory", "64Gi")];
        assert_eq!(completed(&said, None), amounts(&said));
        let total = [("cpu", "4"), ("gpu", "1"), ("memory", "4Gi")];
        assert_eq!(completed(&[], Some(6)), amounts(&total), "a total is of whole GPUs");
    }
}
