//! What an administrator may set, with defaults that a new site can live with.

use serde::{Deserialize, Serialize};

use crate::placement::{Scorer, Typical};
use crate::refusal::Refusal;
use crate::resources::Resources;
use crate::units::{Milli, Span};

/// Most ended jobs that a house may have remembered.
const REMEMBER_MOST: u32 = 1_000_000;

/// The rules of the house.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Length of a price slot.
    pub slot: Span,
    /// How far ahead bids reach.
    pub horizon: Span,
    /// From the stop signal to the end, for whatever is stopped.
    pub grace: Span,
    /// How long a task on a node that was lost may still run before its lease lapses.
    pub lease: Span,
    /// Preemptible work is not started for less than this.
    pub run_min: Span,
    /// How long a hold binds.
    pub hold_for: Span,
    /// How many holds a user may have at a time.
    pub holds_max: u32,
    /// Refund of unused time.
    pub refund_unused: Milli,
    /// Refund of a broken promise.
    pub refund_broken: Milli,
    /// What queue work pays, times the base rate.
    pub queue_density: Milli,
    /// By how much a job that overruns is extended at a time.
    pub extend_by: Span,
    /// How work that fits around what waits ahead of it may start.
    pub backfill: Backfill,
    /// How many waiting jobs a pass looks at in each queue.
    pub pass_depth: u32,
    /// How long nothing need happen before a pass is due all the same while anything waits.
    pub pass_every: Span,
    /// How nodes are chosen.
    pub scorer: Scorer,
    /// Typical work, for fragmentation.
    pub typical: Vec<Typical>,
    /// After this long a waiting job goes ahead of all that are not so old.
    pub patience: Span,
    /// Half-life of past use in fair shares.
    pub fair_half_life: Span,
    /// The period of quotas.
    pub period: Span,
    /// How long ended jobs and used keys are remembered.
    pub remember: Span,
    /// How many ended jobs, and how many used keys, are remembered at most: the oldest go first.
    pub remember_max: u32,
}

/// How work may start around what waits ahead of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backfill {
    /// Strictly in order.
    None,
    /// Anything that does not delay the first that waits.
    #[default]
    Easy,
    /// Anything that does not delay any that waits ahead.
    Conservative,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            slot: Span::from_min(1),
            horizon: Span::from_days(30),
            grace: Span::from_s(30),
            lease: Span::from_s(30),
            run_min: Span::from_min(5),
            hold_for: Span::from_s(60),
            holds_max: 4,
            refund_unused: Milli(800),
            refund_broken: Milli::ONE,
            queue_density: Milli(500),
            extend_by: Span::from_min(10),
            backfill: Backfill::Easy,
            pass_depth: 100_000,
            pass_every: Span::from_s(10),
            scorer: Scorer::Consolidate,
            typical: default_typical(),
            patience: Span::from_days(1),
            fair_half_life: Span::from_days(7),
            period: Span::from_days(30),
            remember: Span::from_days(1),
            remember_max: 100_000,
        }
    }
}

/// One, two, four and eight GPUs, and half of one: the sizes that most clusters see most.
fn default_typical() -> Vec<Typical> {
    [(1000, 50), (2000, 15), (4000, 15), (8000, 15), (500, 5)]
        .map(|(gpu, weight)| Typical { each: Resources { gpu, ..Resources::default() }, weight })
        .to_vec()
}

impl Settings {
    /// Refuses what is out of range.
    pub fn check(&self) -> Result<(), Refusal> {
        let bad = |field: &str, problem: &str| {
            Err(Refusal::BadSetting { field: field.into(), problem: problem.into() })
        };
        let day = Span::from_days(1);
        if self.slot < Span::from_s(1) || self.slot > day {
            return bad("slot", "give 1s to 1d");
        }
        if self.horizon < self.slot || self.horizon > Span::from_days(366) {
            return bad("horizon", "give one slot to 366d");
        }
        if self.horizon.0 / self.slot.0 > 1 << 20 {
            return bad("horizon", "at most 1048576 slots: raise `slot` or lower `horizon`");
        }
        for (field, span) in [
            ("grace", self.grace),
            ("lease", self.lease),
            ("run_min", self.run_min),
            ("hold_for", self.hold_for),
        ] {
            if span < Span::ZERO || span > day {
                return bad(field, "give 0s to 1d");
            }
        }
        for (field, span) in [
            ("extend_by", self.extend_by),
            ("pass_every", self.pass_every),
            ("patience", self.patience),
            ("fair_half_life", self.fair_half_life),
            ("period", self.period),
            ("remember", self.remember),
        ] {
            if span < Span::from_s(1) || span > Span::from_days(3660) {
                return bad(field, "give 1s to 3660d");
            }
        }
        for (field, share) in
            [("refund_unused", self.refund_unused), ("refund_broken", self.refund_broken)]
        {
            if share > Milli::ONE {
                return bad(field, "give at most 1000 thousandths");
            }
        }
        if self.queue_density > crate::market::DENSITY_MAX {
            return bad("queue_density", "give at most 1000 times the base rate");
        }
        if self.remember_max == 0 || self.remember_max > REMEMBER_MOST {
            return bad("remember_max", "give 1 to 1000000 jobs");
        }
        if self.typical.len() > 64 {
            return bad("typical", "give at most 64 kinds of work");
        }
        Ok(())
    }
}
