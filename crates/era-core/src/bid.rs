//! What a user states: resources, duration, window and value.
//!
//! A [`Bid`] is *one of* several alternatives; an alternative is *all of* its requests, with an
//! optional order between them. Validation here needs only the bid, the clock and the limits;
//! whether the cluster knows the names in it is [`crate::cluster`]'s to say.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::resources::{PerResource, Resource, Resources, WHOLE_GPU};
use crate::units::{Money, Name, Span, Time, UserId};

/// Most alternatives in a bid.
pub const ALTERNATIVES_MAX: usize = 8;
/// Most requests in an alternative.
pub const REQUESTS_MAX: usize = 16;
/// Most replicas in a request.
pub const REPLICAS_MAX: u32 = 16_384;
/// Most steps in a value.
pub const VALUE_STEPS_MAX: usize = 16;
/// Longest accepted duration.
pub const DURATION_MAX: Span = Span::from_days(366);

/// Resources, duration, window and value, stated by a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bid {
    pub user: UserId,
    /// Alternatives; exactly one of them is accepted.
    pub one_of: Vec<Alternative>,
    /// What it is worth.
    pub value: Value,
}

/// Requests that are accepted together or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    pub all_of: Vec<Request>,
}

/// One gang for one length of time somewhere in a window.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// How many replicas, or how many GPUs in all.
    pub shape: Shape,
    /// What each replica needs; for [`Shape::Gpus`], what goes with each GPU.
    pub each: Resources,
    pub duration: Span,
    pub window: Window,
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// Requests of the same alternative (by index, smaller than this one's) that must have
    /// finished before this one starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u8>,
}

/// Like replicas of a gang: `count` times `each`.
#[derive(Clone, Debug)]
pub struct Block {
    /// What each needs.
    pub each: Resources,
    pub count: u32,
}

impl Request {
    /// A request that may run anywhere and follows no other.
    pub fn new(shape: Shape, each: Resources, duration: Span, window: Window) -> Request {
        let (constraints, after) = (Constraints::default(), Vec::new());
        Request { shape, each, duration, window, constraints, after }
    }
}

/// How a request is divided over nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Like replicas: `min` are promised, up to `max` may grow into free capacity.
    Replicas {
        min: u32,
        /// Upper limit of growth; equal to `min` for a rigid gang.
        max: u32,
    },
    /// A total of GPUs, split over nodes by consolidation: whole nodes, and one part of a node.
    Gpus { total: u32 },
}

impl Shape {
    /// A rigid gang.
    pub const fn gang(n: u32) -> Shape {
        Shape::Replicas { min: n, max: n }
    }

    /// How many times `each` is promised.
    pub const fn promised(self) -> u32 {
        match self {
            Shape::Replicas { min, .. } => min,
            Shape::Gpus { total } => total,
        }
    }

    /// How many replicas may be added beyond the promise.
    pub const fn growth(self) -> u32 {
        match self {
            Shape::Replicas { min, max } => max - min,
            Shape::Gpus { .. } => 0,
        }
    }
}

/// `[earliest, deadline)`: the run must lie within.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    pub earliest: Time,
    pub deadline: Time,
}

/// Where a request may be placed. Empty means anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Constraints {
    /// Only in this pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<Name>,
    /// Only in this domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<Name>,
    /// Only on nodes that carry all these labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<Name, Name>,
    /// All replicas on one node, in one rack or in one domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same: Option<Topology>,
    /// At most so many replicas on a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_node_max: Option<u32>,
    /// Spread replicas over nodes rather than pack them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub spread: bool,
}

impl Constraints {
    /// Whether nothing is said about which nodes will do.
    pub fn is_anywhere(&self) -> bool {
        self.pool.is_none() && self.domain.is_none() && self.labels.is_empty()
    }

    /// Whether any node will do.
    pub fn is_empty(&self) -> bool {
        *self == Constraints::default()
    }
}

/// How near to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topology {
    /// The same machine.
    Node,
    /// The same rack.
    Rack,
    /// The same domain.
    Domain,
}

/// What a bid is worth, as a function of when it finishes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// The same whenever it finishes within its window.
    Flat(Money),
    /// Falls in steps: worth `worth` if finished by `by`; nothing after the last step.
    Steps(Vec<ValueStep>),
}

/// One step of a falling value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueStep {
    pub by: Time,
    pub worth: Money,
}

impl Value {
    /// What finishing at `finish` is worth.
    pub fn at(&self, finish: Time) -> Money {
        match self {
            Value::Flat(worth) => *worth,
            Value::Steps(steps) => {
                steps.iter().find(|s| finish <= s.by).map_or(Money::ZERO, |s| s.worth)
            }
        }
    }

    /// The finish times at which the value falls, each with what it is worth until then. The
    /// last one has no end where the value is flat.
    pub fn steps(&self) -> Vec<ValueStep> {
        match self {
            Value::Flat(worth) => vec![ValueStep { by: Time::MAX, worth: *worth }],
            Value::Steps(steps) => steps.clone(),
        }
    }

    /// The most that it can be worth.
    pub fn most(&self) -> Money {
        self.steps().first().map_or(Money::ZERO, |s| s.worth)
    }
}

/// Typed facts about a job that formulas and estimates may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Attributes {
    /// What kind of work, such as `vision` or `language`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Name>,
    /// Such as `pytorch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framework: Option<Name>,
    /// Such as `resnet50`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Name>,
    /// Parameters of the network, in thousands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters_k: Option<u64>,
    /// Size of the data, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_mib: Option<u64>,
}

impl Request {
    /// Amounts of the priced resources that are promised, all replicas together.
    pub fn units(&self) -> PerResource<u64> {
        self.each.units(self.shape.promised())
    }

    /// What it is split into on nodes of `gpus_per_node` GPUs: its replicas, or for a total of
    /// GPUs whole nodes and one part of a node.
    pub fn blocks(&self, gpus_per_node: u32) -> Vec<Block> {
        match self.shape {
            Shape::Replicas { min, .. } => vec![Block { each: self.each.clone(), count: min }],
            Shape::Gpus { total } => {
                // Where nodes have none, one that has a single GPU is asked for, in vain.
                let gpus_per_node = gpus_per_node.max(1);
                let (whole, rest) = (total / gpus_per_node, total % gpus_per_node);
                let mut blocks = Vec::with_capacity(2);
                if whole > 0 {
                    blocks.push(Block { each: self.each.times(gpus_per_node), count: whole });
                }
                if rest > 0 {
                    blocks.push(Block { each: self.each.times(rest), count: 1 });
                }
                blocks
            }
        }
    }

    /// What is wrong with a request whatever the cluster and the clock: amounts and lengths.
    pub fn check_shape(&self) -> Result<(), Refusal> {
        if self.duration <= Span::ZERO || self.duration > DURATION_MAX {
            return Err(Refusal::BadDuration { given: self.duration, most: DURATION_MAX });
        }
        match self.shape {
            Shape::Replicas { min, max } if min == 0 || max < min || max > REPLICAS_MAX => {
                return Err(Refusal::BadReplicas { min, max, most: REPLICAS_MAX });
            }
            Shape::Gpus { total } if total == 0 || total > REPLICAS_MAX => {
                return Err(Refusal::BadReplicas { min: total, max: total, most: REPLICAS_MAX });
            }
            Shape::Gpus { .. } if self.each.gpu != WHOLE_GPU => {
                return Err(Refusal::BadGpuTotal { each: self.each.gpu });
            }
            _ => {}
        }
        if self.each.is_empty() {
            return Err(Refusal::NothingAsked);
        }
        if self.each.gpu > WHOLE_GPU && !self.each.gpu.is_multiple_of(WHOLE_GPU) {
            return Err(Refusal::BrokenGpu { given: self.each.gpu });
        }
        if self.each.gpu == 0 && (self.each.gpu_model.is_some() || self.each.gpu_memory.is_some()) {
            return Err(Refusal::GpuFilterWithoutGpu);
        }
        if self.constraints.per_node_max == Some(0) {
            return Err(Refusal::TooMany {
                what: "replicas on a node".into(),
                given: 0,
                most: REPLICAS_MAX as usize,
            });
        }
        Ok(())
    }

    /// What is wrong with its times, at `now`, if bids reach `horizon` ahead.
    pub fn check_window(&self, now: Time, horizon: Span) -> Result<(), Refusal> {
        let Window { earliest, deadline } = self.window;
        if earliest < Time(0) || deadline > Time::LATEST || deadline <= earliest {
            return Err(Refusal::BadWindow { earliest, deadline });
        }
        if deadline <= now {
            return Err(Refusal::WindowPast { deadline, now });
        }
        let limit = now + horizon;
        if earliest >= limit {
            return Err(Refusal::BeyondHorizon { earliest, limit });
        }
        let from = earliest.max(now);
        if from + self.duration > deadline.min(limit) {
            return Err(Refusal::WindowTooShort {
                window: deadline.min(limit).since(from),
                duration: self.duration,
            });
        }
        Ok(())
    }
}

impl Bid {
    pub fn single(user: UserId, request: Request, value: Money) -> Bid {
        Bid { user, one_of: vec![Alternative { all_of: vec![request] }], value: Value::Flat(value) }
    }

    /// What is wrong with it whatever the cluster holds.
    pub fn check(&self, now: Time, horizon: Span) -> Result<(), Refusal> {
        if self.one_of.is_empty() || self.one_of.len() > ALTERNATIVES_MAX {
            return Err(Refusal::TooMany {
                what: "alternatives".into(),
                given: self.one_of.len(),
                most: ALTERNATIVES_MAX,
            });
        }
        for alternative in &self.one_of {
            let requests = &alternative.all_of;
            if requests.is_empty() || requests.len() > REQUESTS_MAX {
                return Err(Refusal::TooMany {
                    what: "requests".into(),
                    given: requests.len(),
                    most: REQUESTS_MAX,
                });
            }
            for (index, request) in requests.iter().enumerate() {
                request.check_shape()?;
                request.check_window(now, horizon)?;
                if request.after.iter().any(|earlier| usize::from(*earlier) >= index) {
                    return Err(Refusal::BadOrder { request: index });
                }
            }
        }
        self.check_value()
    }

    fn check_value(&self) -> Result<(), Refusal> {
        let steps = self.value.steps();
        if steps.is_empty() || steps.len() > VALUE_STEPS_MAX {
            return Err(Refusal::TooMany {
                what: "value steps".into(),
                given: steps.len(),
                most: VALUE_STEPS_MAX,
            });
        }
        if let Some(bad) = steps.iter().find(|s| s.worth < Money::ZERO || s.worth > Money::MOST) {
            return Err(Refusal::BadValue { given: bad.worth, most: Money::MOST });
        }
        if steps.windows(2).any(|w| w[1].by <= w[0].by || w[1].worth > w[0].worth) {
            return Err(Refusal::RisingValue);
        }
        Ok(())
    }
}

/// The largest amount in a request's units that any bid may have; keeps prices within 128 bits
/// with room to spare.
pub const UNITS_MAX: u64 = 1 << 30;

/// Whether a request's totals are within [`UNITS_MAX`].
pub fn units_in_range(request: &Request) -> bool {
    let most = match request.shape {
        Shape::Replicas { max, .. } => max,
        Shape::Gpus { total } => total,
    };
    Resource::ALL.iter().all(|r| u64::from(request.each.amount(*r)) * u64::from(most) <= UNITS_MAX)
}
