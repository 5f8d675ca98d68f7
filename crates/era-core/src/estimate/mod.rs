//! Published estimates of how long jobs take and what they use.
//!
//! Learning happens outside; what is published here is frozen, and the core evaluates it: forests
//! over what a job states and over its owner's past runs, a table of ratios for those who have no
//! forest, and otherwise what is stated. A prediction is made when a job is submitted, and kept
//! with it. Estimates rank and inform; they never decide what may run ahead of a promise: enforced
//! limits do.

pub mod feature;
pub mod forest;
pub mod history;
pub mod service;

use feature::{Features, Subject};
use forest::Forest;
use history::{exp2_s, log2_s};
use service::{CLASSES_MAX, ServiceClass};

use crate::bid::DURATION_MAX;
use crate::job::Job;
use crate::outlook::Prediction;
use crate::queue::fixed::Fixed;
use crate::resources::Resource;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::units::{Milli, Span, UserId};

/// How long a user's jobs take, as a ratio to what he states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// Half of them take at most this.
    pub middle: Milli,
    /// One in ten takes at most this.
    pub low: Milli,
    /// Nine in ten take at most this.
    pub high: Milli,
}

impl Ratio {
    /// Exactly what is stated.
    pub const STATED: Ratio = Ratio { middle: Milli::ONE, low: Milli::ONE, high: Milli::ONE };
}

/// What was published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Estimates {
    /// By user, where there is no forest.
    #[serde(with = "crate::units::numbered")]
    pub users: BTreeMap<UserId, Ratio>,
    /// How long jobs take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<DurationForests>,
    /// What jobs use of what they ask for: shares, by the resource's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub used: BTreeMap<Resource, Forest>,
    /// What is known about jobs of about the same prediction, the shortest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub service: Vec<ServiceClass>,
}

/// Forests that say the binary logarithm of a job's seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DurationForests {
    /// Half of all jobs take at most this.
    pub middle: Forest,
    /// One in ten takes at most this.
    pub low: Forest,
    /// Nine in ten take at most this.
    pub high: Forest,
}

impl Estimates {
    /// Refuses what is not an estimate.
    pub fn check(&self) -> Result<(), Refusal> {
        let bad = |problem: String| Refusal::BadSetting { field: "estimates".into(), problem };
        let ordered = |r: &Ratio| r.low <= r.middle && r.middle <= r.high && r.high.0 <= 1_000_000;
        if !self.users.values().all(ordered) {
            let problem = "give low <= middle <= high, at most 1000 times what is stated";
            return Err(bad(problem.into()));
        }
        let durations = self.duration.iter().flat_map(|d| [&d.middle, &d.low, &d.high]);
        for forest in durations.chain(self.used.values()) {
            forest.check().map_err(|problem| bad(problem.to_string()))?;
        }
        let rising = self.service.windows(2).all(|w| w[0].up_to < w[1].up_to);
        let sound = self.service.iter().all(ServiceClass::is_sound);
        if self.service.len() > CLASSES_MAX || !rising || !sound {
            let problem = format!(
                "give at most {CLASSES_MAX} classes with rising bounds, each with a mean and up to \
                 {} steps from 0 on, none longer than a year",
                service::STEPS_MAX
            );
            return Err(bad(problem));
        }
        Ok(())
    }

    /// What is to be expected of a job, if there are forests to ask.
    pub fn predict(&self, features: &Features) -> Option<Prediction> {
        let forests = self.duration.as_ref()?;
        let span = |forest: &Forest| exp2_s(forest.value(features), DURATION_MAX);
        let middle = span(&forests.middle);
        // Learned one by one, the three may cross.
        let (low, high) = (span(&forests.low).min(middle), span(&forests.high).max(middle));
        let used = Resource::ALL.map(|resource| {
            let share = self.used.get(&resource)?.value(features).between(Fixed::ZERO, Fixed::ONE);
            Some(Milli(u32::try_from(share.0 / 1000).unwrap_or(0)))
        });
        Some(Prediction { middle, low, high, used })
    }

    /// How long a job is expected to take, as far as ranking goes: its own limit has no say, or
    /// whoever states less would come first for that alone.
    pub fn ranked(&self, job: &Job) -> Span {
        match &job.outlook.prediction {
            Some(prediction) => prediction.middle,
            None => self.expected(job.user, job.first_part().request.duration),
        }
    }

    /// How long a job is expected to take, and the least that it may: never longer than its limit.
    pub fn expected_of(&self, job: &Job) -> (Span, Span) {
        let stated = job.first_part().request.duration;
        match &job.outlook.prediction {
            Some(prediction) => (prediction.middle.min(stated), prediction.low.min(stated)),
            None => (self.expected(job.user, stated), self.spread(job.user, stated).0),
        }
    }

    pub fn class_of(&self, job: &Job) -> Option<&ServiceClass> {
        let last = self.service.len().checked_sub(1)?;
        let expected = log2_s(self.ranked(job));
        self.service.get(self.service.partition_point(|class| class.up_to < expected).min(last))
    }

    pub fn of(&self, user: UserId) -> Ratio {
        self.users.get(&user).copied().unwrap_or(Ratio::STATED)
    }

    /// How long a run that was stated to take `stated` is expected to take: never longer than its
    /// limit allows, never nothing.
    pub fn expected(&self, user: UserId, stated: Span) -> Span {
        scale(stated, self.of(user).middle)
    }

    /// The span that eight runs in ten fall into.
    pub fn spread(&self, user: UserId, stated: Span) -> (Span, Span) {
        let ratio = self.of(user);
        (scale(stated, ratio.low), scale(stated, ratio.high))
    }
}

fn scale(stated: Span, ratio: Milli) -> Span {
    let whole = u64::try_from(stated.0).unwrap_or(0);
    Span(i64::try_from(ratio.of(whole)).unwrap_or(i64::MAX).clamp(1, stated.0.max(1)))
}

impl<'a> From<&'a Job> for Subject<'a> {
    fn from(job: &'a Job) -> Subject<'a> {
        Subject {
            user: job.user,
            group: job.group,
            name: job.name.as_ref(),
            attributes: &job.attributes,
            priority: job.priority,
            request: &job.first_part().request,
            submitted: job.submitted,
            arrivals: job.outlook.arrivals,
        }
    }
}
