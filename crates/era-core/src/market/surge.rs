//! Surge: a price that rises exponentially with utilisation, for a cold start without history.
//!
//! The exponential is a table of 65 densities, made by repeated geometric means in integers, so
//! it is the same on every machine. Between two entries the price is that of the lower one.

use super::mechanism::{Marginal, Mechanism, SlotView};
use crate::units::Milli;

const STEPS: usize = 64;

/// The table.
#[derive(Clone, Debug)]
pub struct Surge {
    densities: [Milli; STEPS + 1],
}

impl Surge {
    /// From `low` when nothing is promised to `high` when everything is.
    pub fn new(low: Milli, high: Milli) -> Surge {
        // Thousandths alone would make visible steps at low densities; the means are taken of
        // squares of millionths.
        const FINE: u64 = 1_000_000;
        let mut fine = [0u64; STEPS + 1];
        fine[0] = u64::from(low.0) * FINE;
        fine[STEPS] = u64::from(high.0) * FINE;
        let mut width = STEPS;
        while width > 1 {
            for left in (0..STEPS).step_by(width) {
                let product = u128::from(fine[left]) * u128::from(fine[left + width]);
                fine[left + width / 2] = product.isqrt() as u64;
            }
            width /= 2;
        }
        Surge { densities: fine.map(|f| Milli((f / FINE) as u32)) }
    }
}

impl Mechanism for Surge {
    fn marginal(&self, slot: &SlotView<'_>, taken: u64) -> Option<Marginal> {
        if taken >= slot.capacity {
            return None;
        }
        let steps = STEPS as u128;
        let (capacity, taken) = (u128::from(slot.capacity), u128::from(taken));
        let step = taken * steps / capacity;
        // The first unit whose step is the next one.
        let next = ((step + 1) * capacity).div_ceil(steps);
        Some(Marginal {
            density: self.densities[step as usize],
            room: ((next - taken) as u64).max(1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::Curve;
    use crate::resources::Resource;

    #[test]
    fn surge_doubles_at_equal_distances() {
        let surge = Surge::new(Milli(500), Milli(8000));
        let curve = Curve::default();
        let slot = SlotView { resource: Resource::Gpu, capacity: 64, expected: &curve };
        let at = |taken| surge.marginal(&slot, taken).unwrap().density;
        assert_eq!([at(0), at(16), at(32), at(48)], [500, 1000, 2000, 4000].map(Milli));
        assert!(surge.marginal(&slot, 64).is_none());
    }

    #[test]
    fn surge_never_falls_and_its_rooms_tile_the_capacity() {
        let surge = Surge::new(Milli(300), Milli(7777));
        let curve = Curve::default();
        for capacity in [1, 3, 63, 64, 65, 1000, 8_000_000] {
            let slot = SlotView { resource: Resource::Gpu, capacity, expected: &curve };
            let (mut taken, mut last) = (0, Milli(0));
            while let Some(m) = surge.marginal(&slot, taken) {
                assert!(m.density >= last, "{capacity} {taken}");
                last = m.density;
                taken += m.room;
            }
            assert_eq!(taken, capacity);
        }
    }
}
