//! Published estimates of how long jobs really take.
//!
//! Learning happens outside; what is published here is a frozen table that the core evaluates.
//! Whoever is not in it is taken at his word. Estimates rank and inform; they never decide what
//! may run ahead of a promise: enforced limits do.

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

/// A published table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Estimates {
    /// By user.
    #[serde(with = "crate::units::numbered")]
    pub users: BTreeMap<UserId, Ratio>,
}

impl Estimates {
    /// Refuses what is not an estimate.
    pub fn check(&self) -> Result<(), Refusal> {
        let ordered = |r: &Ratio| r.low <= r.middle && r.middle <= r.high && r.high.0 <= 1_000_000;
        if self.users.values().all(ordered) {
            return Ok(());
        }
        Err(Refusal::BadSetting {
            field: "estimates".into(),
            problem: "give low <= middle <= high, at most 1000 times what is stated".into(),
        })
    }

    /// The ratio of a user.
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
