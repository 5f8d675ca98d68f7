//! Queues and the policies that order them.
//!
//! A policy is a named rule with versions; a queue names the policy that orders it. Publishing a
//! new version, or going back to an old one, takes effect at the next scheduling pass.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::formula::Formula;
use crate::refusal::Refusal;
use crate::units::{Milli, Name};

/// Most queues, and most policies.
pub const QUEUES_MAX: usize = 256;
/// Most versions of a policy that are kept.
pub const VERSIONS_MAX: usize = 1000;
/// Most limits of least-attained service.
pub const LAS_LIMITS_MAX: usize = 16;

/// Who goes first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PolicyRule {
    Fifo,
    /// The shortest, by its expected duration.
    Sjf,
    /// The one with least left to run.
    Srtf,
    /// The one that received least GPU time so far, in classes: below the first limit, below the
    /// second, and so on; in a class, those that run before those that wait, then the oldest.
    Las {
        /// Rising limits in GPU-seconds.
        limits: Vec<u64>,
    },
    /// The one that costs least service for a completion, as far as the published distribution
    /// of durations tells, given how long it has run: its Gittins index times its size. Where
    /// jobs are stopped for others, those within a factor of four are alike: what runs goes on.
    Gittins,
    /// The one whose owner used least of late.
    FairShare,
    /// The one with the highest value of the administrator's formula.
    Priority {
        formula: Formula,
    },
}

impl PolicyRule {
    /// Refuses what is out of range.
    pub fn check(&self) -> Result<(), Refusal> {
        match self {
            PolicyRule::Las { limits }
                if limits.is_empty()
                    || limits.len() > LAS_LIMITS_MAX
                    || limits.windows(2).any(|w| w[0] >= w[1])
                    || limits.iter().any(|l| *l > 1 << 40) =>
            {
                Err(Refusal::BadSetting {
                    field: "limits".into(),
                    problem: "give 1 to 16 rising limits in GPU-seconds".into(),
                })
            }
            _ => Ok(()),
        }
    }
}

/// A policy and its versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Versions {
    /// Number of the version in force.
    current: u32,
    /// By number, from 1.
    rules: BTreeMap<u32, Arc<PolicyRule>>,
}

/// All policies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Policies(BTreeMap<Name, Versions>);

impl Default for Policies {
    /// One of each kind, under its own name.
    fn default() -> Policies {
        let mut policies = Policies(BTreeMap::new());
        let limits = vec![3_250, 7_200];
        let rules = [
            ("fifo", Some(PolicyRule::Fifo)),
            ("sjf", Some(PolicyRule::Sjf)),
            ("srtf", Some(PolicyRule::Srtf)),
            ("las", Some(PolicyRule::Las { limits })),
            ("gittins", Some(PolicyRule::Gittins)),
            ("fair-share", Some(PolicyRule::FairShare)),
            (
                "priority",
                Formula::parse(
                    "10 * user_level + 10 * group_level + priority + wait / 3600 - debt",
                )
                .ok()
                .map(|formula| PolicyRule::Priority { formula }),
            ),
        ];
        for (name, rule) in rules {
            if let (Ok(name), Some(rule)) = (Name::new(name), rule) {
                let rules = BTreeMap::from([(1, Arc::new(rule))]);
                policies.0.insert(name, Versions { current: 1, rules });
            }
        }
        policies
    }
}

impl Policies {
    /// The rule in force under a name.
    pub fn current(&self, name: &Name) -> Result<&Arc<PolicyRule>, Refusal> {
        let versions = self.versions(name)?;
        versions.rules.get(&versions.current).ok_or_else(|| self.unknown(name))
    }

    /// The number of the version in force, and all that are kept.
    pub fn history(&self, name: &Name) -> Result<(u32, &BTreeMap<u32, Arc<PolicyRule>>), Refusal> {
        let versions = self.versions(name)?;
        Ok((versions.current, &versions.rules))
    }

    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.0.keys()
    }

    fn versions(&self, name: &Name) -> Result<&Versions, Refusal> {
        self.0.get(name).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &Name) -> Refusal {
        Refusal::Unknown {
            kind: "policy".into(),
            name: name.clone(),
            known: self.0.keys().cloned().collect(),
        }
    }

    /// Adds a version and puts it in force; the oldest is forgotten where there are too many.
    pub fn publish(&mut self, name: Name, rule: PolicyRule) -> Result<u32, Refusal> {
        rule.check()?;
        if !self.0.contains_key(&name) && self.0.len() >= QUEUES_MAX {
            return Err(Refusal::Limit { what: "policies".into(), limit: QUEUES_MAX });
        }
        let versions =
            self.0.entry(name).or_insert(Versions { current: 0, rules: BTreeMap::new() });
        let number = versions.rules.keys().next_back().map_or(1, |last| last + 1);
        versions.rules.insert(number, Arc::new(rule));
        versions.current = number;
        while versions.rules.len() > VERSIONS_MAX {
            versions.rules.pop_first();
        }
        Ok(number)
    }

    /// Puts an older version in force again.
    pub fn roll_back(&mut self, name: &Name, version: u32) -> Result<(), Refusal> {
        let kept: Vec<u32> = self.versions(name)?.rules.keys().copied().collect();
        match self.0.get_mut(name) {
            Some(versions) if kept.contains(&version) => versions.current = version,
            _ => {
                return Err(Refusal::BadSetting {
                    field: "version".into(),
                    problem: format!("{name} has no version {version}: kept are {kept:?}"),
                });
            }
        }
        Ok(())
    }
}

/// Where jobs without a promise wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    pub name: Name,
    /// Its level: lower ones are served first.
    pub level: u8,
    /// What orders it.
    pub policy: Name,
    /// The part of the cluster that it may use while others wait.
    pub share: Milli,
    /// Whether it may use more than that while nobody else wants it.
    pub borrows: bool,
    /// Whether jobs that it ranks higher may preempt those that allow it.
    pub preempts: bool,
    /// Whether a job that has waited for the settings' patience goes ahead of all others.
    pub ages: bool,
    /// Most jobs that may wait.
    pub waiting_max: u32,
    /// Most jobs that may run.
    pub running_max: u32,
    /// Most GPUs, in thousandths, that its jobs may hold at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus_max: Option<u64>,
}

impl Queue {
    /// A queue with all of the cluster and no limits to speak of.
    pub fn new(name: Name, policy: Name) -> Queue {
        Queue {
            name,
            level: 0,
            policy,
            share: Milli::ONE,
            borrows: true,
            preempts: false,
            ages: true,
            waiting_max: 1_000_000,
            running_max: 1_000_000,
            gpus_max: None,
        }
    }
}
