//! The interface of a mechanism, the paper's mechanism, and the two that fix their price.

use crate::forecast::Curve;
use crate::resources::Resource;
use crate::units::Milli;

/// What a mechanism may know: one resource of one pool in one price slot. No bid, no value; and no
/// time, so that slots alike cost the same.
#[derive(Clone, Copy, Debug)]
pub struct SlotView<'a> {
    pub resource: Resource,
    /// Units that could be promised in it.
    pub capacity: u64,
    /// Demand that is still expected for it.
    pub expected: &'a Curve,
}

/// The price of the next unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marginal {
    /// Times the base rate, before floor and ceiling.
    pub density: Milli,
    /// How many units in a row cost the same; at least 1.
    pub room: u64,
}

/// Which starts a mechanism offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartRule {
    /// Now, and every slot boundary of the window.
    Any,
    /// Now or never.
    NowOnly,
}

/// Turns a slot and what is taken of it into a price.
pub trait Mechanism: Send + Sync {
    /// The price of the next unit when `taken` units of the slot are promised. `None` beyond the
    /// capacity: the ceiling applies there. Must not fall as `taken` rises.
    fn marginal(&self, slot: &SlotView<'_>, taken: u64) -> Option<Marginal>;

    /// Which starts it offers.
    fn starts(&self) -> StartRule {
        StartRule::Any
    }
}

/// The paper's Basic-Econ.
pub(super) struct BasicEcon;

impl Mechanism for BasicEcon {
    fn marginal(&self, slot: &SlotView<'_>, taken: u64) -> Option<Marginal> {
        // The next unit leaves `left` units; its price is the highest density d for which
        // demand(d) + taken + 1 > capacity, that is, demand(d) > left.
        let left = slot.capacity.checked_sub(taken)?.checked_sub(1)?;
        let steps = slot.expected.steps();
        let index = steps.partition_point(|s| s.quantity <= left);
        let density = steps.get(index).map_or(Milli(0), |s| s.density);
        // It stays so until what is left no longer exceeds the next denser demand.
        let denser = index.checked_sub(1).map_or(0, |i| steps[i].quantity);
        Some(Marginal { density, room: left - denser + 1 })
    }
}

/// A fixed price.
pub(super) struct Fixed {
    pub(super) density: Milli,
    pub(super) starts: StartRule,
}

impl Mechanism for Fixed {
    fn marginal(&self, slot: &SlotView<'_>, taken: u64) -> Option<Marginal> {
        let room = slot.capacity.checked_sub(taken).filter(|room| *room > 0)?;
        Some(Marginal { density: self.density, room })
    }

    fn starts(&self) -> StartRule {
        self.starts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn basic_econ_is_the_papers_definition(
            parts in proptest::collection::vec((1u32..20, 1u64..15), 0..6),
            capacity in 0u64..40, taken in 0u64..40,
        ) {
            let curve = Curve::from_parts(parts.iter().map(|(d, q)| (Milli(*d), *q)));
            let slot = SlotView { resource: Resource::Gpu, capacity, expected: &curve };
            // The highest p with demand(p) + promised + 1 > capacity, searched one by one.
            let plain = (0..30u32).rev().find(|p| curve.demand(Milli(*p)) + taken + 1 > capacity);
            match BasicEcon.marginal(&slot, taken) {
                None => prop_assert!(taken + 1 > capacity),
                Some(m) => {
                    prop_assert_eq!(m.density, Milli(plain.unwrap_or(0)));
                    // `room` units cost the same, the next one does not cost less.
                    for i in 0..m.room {
                        prop_assert_eq!(BasicEcon.marginal(&slot, taken + i).unwrap().density, m.density);
                    }
                    if let Some(next) = BasicEcon.marginal(&slot, taken + m.room) {
                        prop_assert!(next.density > m.density);
                    }
                }
            }
        }
    }
}
