//! What a scorer makes of a node: one number, the smaller the better, for one replica of a gang.
//!
//! It does not know the other nodes, nor how many replicas there are; who comes first among
//! equals, and how a gang is spread, is for the order of candidates to say.

use std::collections::BTreeMap;

use super::fragmentation::{Free, Measure, Workload, is_anywhere};
use super::{Choice, Scorer};
use crate::calendar::{Load, NodeCalendar, PoolCalendar};
use crate::resources::{Capacity, Resources, WHOLE_GPU};

/// GPU thousandths, cores and memory left on a node.
pub(super) type Left = (u32, u32, u32);

/// The scores of one decision.
pub(super) struct Scores<'a> {
    each: &'a Resources,
    rule: Rule<'a>,
    /// Many nodes are in the same state, above all the empty ones: each state is looked at once.
    known: BTreeMap<(Free, Option<&'a Capacity>), i64>,
}

enum Rule<'a> {
    /// All are alike.
    None,
    /// What is left, each resource as a share of what the largest node has of it.
    Left { cpu_max: i64, gpu_max: i64 },
    /// How much less useful the free GPUs become.
    Gradient(Workload<'a>),
}

/// The measure that a scorer goes by, where it goes by one.
fn measure(scorer: Scorer) -> Option<Measure> {
    match scorer {
        Scorer::Fgd => Some(Measure::Fragmentation),
        Scorer::LeastStranded => Some(Measure::Stranding),
        Scorer::FirstFit | Scorer::BestFit | Scorer::Consolidate => None,
    }
}

impl<'a> Scores<'a> {
    pub(super) fn new(pool: &PoolCalendar, each: &'a Resources, choice: Choice<'a>) -> Scores<'a> {
        let rule = match (choice.scorer, measure(choice.scorer)) {
            (_, Some(measure)) => Rule::Gradient(Workload::new(choice.typical, measure)),
            (Scorer::BestFit, None) => {
                let cpu_max = pool.nodes.iter().map(|l| l.node.capacity.cpu).max().unwrap_or(0);
                let gpu_max = i64::from(pool.gpus_per_node * WHOLE_GPU);
                Rule::Left { cpu_max: i64::from(cpu_max).max(1), gpu_max: gpu_max.max(1) }
            }
            _ => Rule::None,
        };
        Scores { each, rule, known: BTreeMap::new() }
    }

    /// Whether a node's score follows from what is left there in all.
    pub(super) fn goes_by_sums(&self) -> bool {
        !matches!(self.rule, Rule::Gradient(_))
    }

    /// The score of a node by what is left there in all.
    pub(super) fn of_left(&self, left: Left) -> i64 {
        match &self.rule {
            Rule::None | Rule::Gradient(_) => 0,
            // The sum of two shares, brought to one denominator.
            Rule::Left { cpu_max, gpu_max } => {
                i64::from(left.0) * cpu_max + i64::from(left.1) * gpu_max
            }
        }
    }

    /// The score of a node that can take a replica beside `taken`.
    pub(super) fn of(&mut self, node_calendar: &'a NodeCalendar, taken: &Load, left: Left) -> i64 {
        match &self.rule {
            Rule::None | Rule::Left { .. } => self.of_left(left),
            Rule::Gradient(workload) => {
                let free = Free::beside(taken, node_calendar);
                let anywhere = workload.is_anywhere() && is_anywhere(self.each);
                let node = (!anywhere).then_some(&node_calendar.node.capacity);
                let known = self.known.entry((free, node));
                *known.or_insert_with(|| workload.gradient(node_calendar, &free, self.each))
            }
        }
    }
}

/// Chooses the GPUs of replicas on the nodes that were chosen.
pub(super) struct Seating<'a>(Option<Workload<'a>>);

impl<'a> Seating<'a> {
    pub(super) fn new(choice: Choice<'a>) -> Seating<'a> {
        Seating(measure(choice.scorer).map(|measure| Workload::new(choice.typical, measure)))
    }

    /// GPUs for one replica beside `taken`, by the same rule that chose the node.
    pub(super) fn gpus(
        &self,
        node_calendar: &NodeCalendar,
        taken: &[u32],
        each: &Resources,
    ) -> Option<u64> {
        match &self.0 {
            Some(workload) => workload.gpus(node_calendar, taken, each),
            None => node_calendar.choose_gpus(taken, each),
        }
    }
}
