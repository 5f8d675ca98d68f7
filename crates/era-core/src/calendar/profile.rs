//! A step function of time: how much of each of a node's resources is taken, GPU by GPU.
//!
//! Columns are cores, memory, every GPU, every kind of device, in that order. The function is
//! kept canonical (neighbouring rows differ, the last row is zero), so that adding and then
//! removing the same thing gives an equal value, whatever happened in between.

use crate::units::Time;

/// Most columns of a row: cores, memory, GPUs and kinds of devices.
pub const COLUMNS_MAX: usize =
    2 + crate::resources::GPUS_PER_NODE_MAX + crate::resources::DEVICE_KINDS_MAX;

/// The column of cores.
pub const CPU: usize = 0;
/// The column of memory.
pub const MEMORY: usize = 1;
/// The column of the first GPU.
pub const GPU0: usize = 2;

/// What one replica takes on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Take {
    /// Thousandths of a core.
    pub cpu: u32,
    pub memory: u32,
    /// Which GPUs, one bit each.
    pub gpus: u64,
    /// How much of each of them.
    pub gpu_share: u32,
    /// `(column, count)` of devices.
    pub devices: Vec<(usize, u32)>,
}

impl Take {
    /// Every `(column, amount)` that is not zero.
    pub fn columns(&self) -> impl Iterator<Item = (usize, u32)> {
        let mut gpus = self.gpus;
        let gpu_columns = std::iter::from_fn(move || {
            let index = gpus.trailing_zeros() as usize;
            (gpus != 0).then(|| {
                gpus &= gpus - 1;
                (GPU0 + index, self.gpu_share)
            })
        });
        [(CPU, self.cpu), (MEMORY, self.memory)]
            .into_iter()
            .chain(gpu_columns)
            .chain(self.devices.iter().copied())
            .filter(|(_, amount)| *amount > 0)
    }
}

/// What is taken at a time, or at most over a span of time.
#[derive(Clone, Copy)]
pub struct Load {
    columns: [u32; COLUMNS_MAX],
    width: usize,
}

impl Load {
    pub fn zero(width: usize) -> Load {
        Load { columns: [0; COLUMNS_MAX], width }
    }

    /// All zero again, with so many columns.
    pub fn clear(&mut self, width: usize) {
        self.width = width;
        self.columns[..width].fill(0);
    }

    /// Adds a take of the same node, as if it were there the whole time.
    pub fn add(&mut self, take: &Take) {
        let columns = &mut self.columns[..self.width];
        for (column, amount) in take.columns() {
            columns[column] += amount;
        }
    }

    /// Adds the other row's columns.
    pub fn plus(&mut self, other: &[u32]) {
        for (mine, theirs) in self.columns[..self.width].iter_mut().zip(other) {
            *mine += *theirs;
        }
    }

    /// Raises each column to the other row's.
    pub fn raise(&mut self, other: &[u32]) {
        for (mine, theirs) in self.columns[..self.width].iter_mut().zip(other) {
            *mine = (*mine).max(*theirs);
        }
    }
}

impl std::ops::Deref for Load {
    type Target = [u32];
    fn deref(&self) -> &[u32] {
        &self.columns[..self.width]
    }
}

/// The step function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    width: usize,
    times: Vec<Time>,
    /// Row after row; row `i` holds from `times[i]` until `times[i + 1]`.
    rows: Vec<u32>,
}

impl Profile {
    /// Nothing taken, ever.
    pub fn new(width: usize) -> Profile {
        debug_assert!(width <= COLUMNS_MAX);
        Profile { width, times: Vec::new(), rows: Vec::new() }
    }

    /// Whether nothing is taken at any time.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The instants within `(from, to)` at which something begins or ends.
    pub fn changes(&self, from: Time, to: Time) -> impl Iterator<Item = Time> {
        let first = self.times.partition_point(|t| *t <= from);
        self.times[first..].iter().copied().take_while(move |t| *t < to)
    }

    /// The first instant after `time` at which something begins or ends.
    pub(super) fn next_change(&self, time: Time) -> Time {
        let next = self.times.partition_point(|t| *t <= time);
        self.times.get(next).copied().unwrap_or(Time::MAX)
    }

    /// Whether no column ever rises above what it is at `time` after that.
    pub(super) fn only_falls_after(&self, time: Time) -> bool {
        let Some(first) = self.index_at(time) else { return self.times.is_empty() };
        let now = self.row(first);
        let later = self.rows[(first + 1) * self.width..].chunks(self.width);
        later.into_iter().all(|row| row.iter().zip(now).all(|(later, now)| later <= now))
    }

    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    fn row(&self, index: usize) -> &[u32] {
        &self.rows[index * self.width..(index + 1) * self.width]
    }

    /// Index of the row in force at `time`, if any row is.
    fn index_at(&self, time: Time) -> Option<usize> {
        self.times.partition_point(|t| *t <= time).checked_sub(1)
    }

    /// What is taken at an instant, if anything is.
    pub fn at(&self, time: Time) -> Option<&[u32]> {
        self.index_at(time).map(|index| self.row(index))
    }

    /// Makes a step begin at `time`, and returns its index.
    fn split(&mut self, time: Time) -> usize {
        let index = self.times.partition_point(|t| *t < time);
        if self.times.get(index) == Some(&time) {
            return index;
        }
        self.times.insert(index, time);
        let at = index * self.width;
        if index == 0 {
            self.rows.splice(0..0, std::iter::repeat_n(0, self.width));
        } else {
            let end = self.rows.len();
            self.rows.extend_from_within(at - self.width..at);
            self.rows[at..].rotate_right(self.width);
            debug_assert_eq!(self.rows.len(), end + self.width);
        }
        index
    }

    /// Removes the step at `index` if it changes nothing.
    fn merge(&mut self, index: usize) {
        if index >= self.times.len() {
            return;
        }
        let same = if index == 0 {
            self.row(0).iter().all(|v| *v == 0)
        } else {
            self.row(index - 1) == self.row(index)
        };
        if same {
            self.times.remove(index);
            self.rows.drain(index * self.width..(index + 1) * self.width);
        }
    }

    fn change(&mut self, from: Time, to: Time, take: &Take, apply: impl Fn(&mut u32, u32)) {
        if from >= to {
            return;
        }
        let first = self.split(from);
        let last = self.split(to);
        for row in self.rows.chunks_mut(self.width).take(last).skip(first) {
            for (column, amount) in take.columns() {
                apply(&mut row[column], amount);
            }
        }
        // Only the edges can have become equal to their neighbours.
        self.merge(last);
        self.merge(first);
    }

    /// Takes something during `[from, to)`.
    pub fn add(&mut self, from: Time, to: Time, take: &Take) {
        self.change(from, to, take, |mine, amount| *mine += amount);
    }

    /// Gives back what was taken. The caller took it before.
    pub fn remove(&mut self, from: Time, to: Time, take: &Take) {
        self.change(from, to, take, |mine, amount| {
            debug_assert!(*mine >= amount, "gave back more than was taken");
            *mine -= amount;
        });
    }

    /// Raises `row` to the most that is taken at any instant of `[from, to)`.
    pub fn peak_into(&self, from: Time, to: Time, row: &mut Load) {
        let first = self.index_at(from).unwrap_or(0);
        let width = self.width;
        for (time, taken) in
            self.times[first..].iter().zip(self.rows[first * width..].chunks(width))
        {
            if *time >= to {
                break;
            }
            row.raise(taken);
        }
    }

    /// The most that is taken at any instant of `[from, to)`.
    pub fn peak(&self, from: Time, to: Time) -> Load {
        let mut row = Load::zero(self.width);
        self.peak_into(from, to, &mut row);
        row
    }

    /// Forgets what lies wholly before `time`. What is in force then stays as it is.
    pub fn forget_before(&mut self, time: Time) {
        let keep_from = self.index_at(time).unwrap_or(0);
        if keep_from > 0 {
            self.times.drain(..keep_from);
            self.rows.drain(..keep_from * self.width);
        }
    }

    /// The steps that touch `[from, to)`: `(from, to, row)`, the last one possibly without end.
    /// The stretch before the first step, where nothing is taken, is included.
    pub fn steps(
        &self,
        from: Time,
        to: Time,
    ) -> impl Iterator<Item = (Time, Time, Option<&[u32]>)> {
        let first = self.index_at(from);
        let lead = match first {
            Some(_) => None,
            None => Some((Time::MIN, self.times.first().copied().unwrap_or(Time::MAX), None)),
        };
        let rest = (first.unwrap_or(0)..self.times.len())
            .map(move |index| {
                let until = self.times.get(index + 1).copied().unwrap_or(Time::MAX);
                (self.times[index], until, Some(self.row(index)))
            })
            .take_while(move |(start, _, _)| *start < to);
        lead.into_iter().chain(rest)
    }

    /// Whether two functions agree from `time` on.
    pub fn agrees_from(&self, time: Time, other: &Profile) -> bool {
        let (mut a, mut b) = (self.clone(), other.clone());
        a.clip_before(time);
        b.clip_before(time);
        a == b
    }

    /// Makes everything before `time` nothing.
    fn clip_before(&mut self, time: Time) {
        let index = self.split(time);
        self.times.drain(..index);
        self.rows.drain(..index * self.width);
        self.merge(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gpu_take(gpus: u64, cpu: u32) -> Take {
        Take { cpu, memory: 1, gpus, gpu_share: 500, devices: vec![(5, 1)] }
    }

    fn arbitrary_takes() -> impl Strategy<Value = Vec<(i64, i64, Take)>> {
        let one = (0i64..40, 1i64..20, 0u64..8, 0u32..4)
            .prop_map(|(from, len, gpus, cpu)| (from, from + len, gpu_take(gpus, cpu)));
        proptest::collection::vec(one, 0..24)
    }

    proptest! {
        #[test]
        fn the_profile_equals_a_table_of_every_instant(
            takes in arbitrary_takes(), from in 0i64..60, len in 1i64..30,
        ) {
            let mut profile = Profile::new(6);
            let mut table = vec![[0u32; 6]; 100];
            for (a, b, take) in &takes {
                profile.add(Time(*a), Time(*b), take);
                for t in *a..*b {
                    for (column, amount) in take.columns() {
                        table[t as usize][column] += amount;
                    }
                }
            }
            let mut expected = [0u32; 6];
            for row in &table[from as usize..(from + len) as usize] {
                for (e, r) in expected.iter_mut().zip(row) {
                    *e = (*e).max(*r);
                }
            }
            prop_assert_eq!(&*profile.peak(Time(from), Time(from + len)), &expected[..]);
        }

        #[test]
        fn giving_everything_back_in_any_order_leaves_nothing(
            takes in arbitrary_takes(), seed in any::<u64>(),
        ) {
            let mut profile = Profile::new(6);
            for (a, b, take) in &takes {
                profile.add(Time(*a), Time(*b), take);
            }
            let mut order: Vec<usize> = (0..takes.len()).collect();
            order.sort_by_key(|i| (*i as u64 + 1).wrapping_mul(seed | 1));
            for i in order {
                let (a, b, take) = &takes[i];
                profile.remove(Time(*a), Time(*b), take);
            }
            prop_assert_eq!(profile, Profile::new(6));
        }
    }
}
