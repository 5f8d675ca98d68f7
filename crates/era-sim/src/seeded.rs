//! A small seeded generator (SplitMix64): the same numbers on every machine.

/// The generator.
pub struct Seeded(u64);

impl Seeded {
    pub fn new(seed: u64) -> Seeded {
        Seeded(seed)
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)] // it never ends, so it is no iterator to collect
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `[from, to)`.
    pub fn range(&mut self, from: i64, to: i64) -> i64 {
        let width = to.abs_diff(from).max(1);
        from + ((u128::from(self.next()) * u128::from(width)) >> 64) as i64
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.range(0, from.len() as i64) as usize]
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
