//! A small gradient booster over binned columns.
//!
//! Each tree is grown on what the trees before it got wrong, on a seeded part of rows and columns,
//! so the same rows and seed give the same forest everywhere. Losses are the square, for means,
//! and the pinball, for quantiles. Thresholds are values of the core's own fixed-point features,
//! so freezing changes nothing but the last digit of the leaves.

use era_core::estimate::feature::Features;
use era_core::estimate::forest::{DecisionTree, Forest, Split};
use era_core::queue::fixed::{Fixed, SCALE};

use super::table::Table;
use crate::seeded::Seeded;

/// What a forest is to hit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    Square,
    /// The value that this share of all stays below.
    Quantile(f64),
}

/// How a forest is grown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Boost {
    /// How many trees.
    pub trees: usize,
    /// Most splits on a way to a leaf.
    pub depth: usize,
    /// How much of what is left to learn a tree takes on.
    pub rate: f64,
    /// Least rows in a leaf.
    pub least: usize,
    /// The part of all rows that a tree sees.
    pub rows: f64,
    /// The part of all columns that a tree sees.
    pub columns: f64,
    /// Which rows and columns these are.
    pub seed: u64,
}

impl Default for Boost {
    fn default() -> Boost {
        Boost { trees: 80, depth: 5, rate: 0.1, least: 20, rows: 0.6, columns: 0.5, seed: 1 }
    }
}

/// A forest as it was grown.
#[derive(Clone, Debug, PartialEq)]
pub struct Grown {
    base: f64,
    trees: Vec<GrownTree>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct GrownTree {
    splits: Vec<GrownSplit>,
    leaves: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct GrownSplit {
    feature: u8,
    at_most: Fixed,
    column: usize,
    bin: u8,
    /// A split, or a leaf counted down from -1, as in the core.
    yes: i16,
    no: i16,
}

impl Boost {
    /// Grows a forest that says of each row what it should.
    pub fn grow(&self, table: &Table, targets: &[f64], loss: Loss) -> Grown {
        let rows = table.rows.min(targets.len());
        let base = loss.centre(&mut targets[..rows].to_vec());
        let mut said = vec![base; rows];
        let mut seeded = Seeded::new(self.seed);
        let mut trees = Vec::with_capacity(self.trees);
        for _ in 0..self.trees {
            let mut sample: Vec<u32> =
                (0..rows as u32).filter(|_| seeded.unit() < self.rows).collect();
            let columns: Vec<usize> =
                (0..table.columns.len()).filter(|_| seeded.unit() < self.columns).collect();
            let missed: Vec<f64> = targets.iter().zip(&said).map(|(y, said)| y - said).collect();
            let pulls: Vec<f64> = missed.iter().map(|missed| loss.pull(*missed)).collect();
            let mut growth = Growth {
                boost: self,
                table,
                loss,
                columns,
                missed,
                pulls,
                tree: GrownTree::default(),
            };
            growth.grow(&mut sample, 0);
            let tree = growth.tree;
            for (row, said) in said.iter_mut().enumerate() {
                *said += tree.value(|split| table.columns[split.column].bins[row] <= split.bin);
            }
            trees.push(tree);
        }
        Grown { base, trees }
    }
}

impl Loss {
    /// Which way, and how much, a miss pulls.
    fn pull(self, missed: f64) -> f64 {
        match self {
            Loss::Square => missed,
            Loss::Quantile(share) => share - f64::from(u8::from(missed < 0.0)),
        }
    }

    /// What best says all of these at once.
    fn centre(self, values: &mut [f64]) -> f64 {
        if values.is_empty() {
            return 0.0;
        }
        match self {
            Loss::Square => values.iter().sum::<f64>() / values.len() as f64,
            Loss::Quantile(share) => {
                let at = ((values.len() - 1) as f64 * share).round() as usize;
                *values.select_nth_unstable_by(at, f64::total_cmp).1
            }
        }
    }
}

/// A tree under way.
struct Growth<'a> {
    boost: &'a Boost,
    table: &'a Table,
    loss: Loss,
    columns: Vec<usize>,
    missed: Vec<f64>,
    pulls: Vec<f64>,
    tree: GrownTree,
}

impl Growth<'_> {
    /// Grows the tree of these rows, and says where it begins.
    fn grow(&mut self, rows: &mut [u32], depth: usize) -> i16 {
        let best = if depth < self.boost.depth { self.best(rows) } else { None };
        let Some((column, bin)) = best else { return self.leaf(rows) };
        let at = self.tree.splits.len();
        let cut = &self.table.columns[column];
        let at_most = cut.edges[usize::from(bin)];
        let split = GrownSplit { feature: cut.feature, at_most, column, bin, yes: 0, no: 0 };
        self.tree.splits.push(split);
        let below = partition(rows, |row| cut.bins[row as usize] <= bin);
        let (yes, no) = rows.split_at_mut(below);
        self.tree.splits[at].yes = self.grow(yes, depth + 1);
        self.tree.splits[at].no = self.grow(no, depth + 1);
        at as i16
    }

    fn leaf(&mut self, rows: &[u32]) -> i16 {
        let mut missed: Vec<f64> = rows.iter().map(|row| self.missed[*row as usize]).collect();
        self.tree.leaves.push(self.boost.rate * self.loss.centre(&mut missed));
        -(self.tree.leaves.len() as i16)
    }

    /// The column and bin after which to cut so that pulls on each side agree best, if any cut
    /// is worth it.
    fn best(&self, rows: &[u32]) -> Option<(usize, u8)> {
        let least = self.boost.least;
        if rows.len() < 2 * least {
            return None;
        }
        let all: f64 = rows.iter().map(|row| self.pulls[*row as usize]).sum();
        let alone = all * all / rows.len() as f64;
        let mut best = None;
        let mut most = alone + 1e-9 * alone.abs().max(1.0);
        for column in self.columns.iter().copied() {
            let cut = &self.table.columns[column];
            let mut sums = [(0.0, 0_usize); 256];
            for row in rows {
                let bin = &mut sums[usize::from(cut.bins[*row as usize])];
                bin.0 += self.pulls[*row as usize];
                bin.1 += 1;
            }
            let (mut sum, mut count) = (0.0, 0);
            for (bin, (more, rows_more)) in sums[..cut.edges.len()].iter().enumerate() {
                sum += more;
                count += rows_more;
                let rest = rows.len() - count;
                if *rows_more == 0 || count < least || rest < least {
                    continue;
                }
                let gain = sum * sum / count as f64 + (all - sum) * (all - sum) / rest as f64;
                if gain > most {
                    most = gain;
                    best = Some((column, bin as u8));
                }
            }
        }
        best
    }
}

/// Puts those for which it holds first, and says how many they are.
fn partition(rows: &mut [u32], holds: impl Fn(u32) -> bool) -> usize {
    let mut first = 0;
    for at in 0..rows.len() {
        if holds(rows[at]) {
            rows.swap(first, at);
            first += 1;
        }
    }
    first
}

impl GrownTree {
    fn value(&self, yes: impl Fn(&GrownSplit) -> bool) -> f64 {
        let mut at = 0_i16;
        while let Some(split) = usize::try_from(at).ok().and_then(|at| self.splits.get(at)) {
            at = if yes(split) { split.yes } else { split.no };
        }
        let leaf = if at < 0 { !at as usize } else { 0 };
        self.leaves.get(leaf).copied().unwrap_or(0.0)
    }
}

impl Grown {
    /// What it says, in floating point.
    pub fn value(&self, features: &Features) -> f64 {
        let tree =
            |tree: &GrownTree| tree.value(|split| features.get(split.feature) <= split.at_most);
        self.base + self.trees.iter().map(tree).sum::<f64>()
    }

    /// Adds to all that it says.
    pub fn shift(&mut self, by: f64) {
        self.base += by;
    }

    /// The same for the core.
    pub fn freeze(&self) -> Forest {
        let fixed = |value: f64| Fixed((value * SCALE as f64).round() as i64);
        let split =
            |s: &GrownSplit| Split { feature: s.feature, at_most: s.at_most, yes: s.yes, no: s.no };
        let tree = |tree: &GrownTree| DecisionTree {
            splits: tree.splits.iter().map(split).collect(),
            leaves: tree.leaves.iter().map(|leaf| fixed(*leaf)).collect(),
        };
        Forest { base: fixed(self.base), trees: self.trees.iter().map(tree).collect() }
    }
}

#[cfg(test)]
mod tests {
    use era_core::estimate::feature::Feature;

    use super::super::table::Cut;
    use super::*;

    /// Rows whose target is a step in one feature and a slope in another, with noise of ±1.
    fn rows(count: usize) -> (Vec<Features>, Vec<f64>) {
        let mut seeded = Seeded::new(7);
        let row = |_| {
            let (size, hour) = (seeded.range(0, 16), seeded.range(0, 24));
            let noise = 2.0 * seeded.unit() - 1.0;
            let mut features = Features::default();
            features.set(Feature::Size, Fixed::from_int(size));
            features.set(Feature::Hour, Fixed::from_int(hour));
            let target = if size > 7 { 6.0 } else { 0.0 } + hour as f64 / 4.0 + noise;
            (features, target)
        };
        (0..count).map(row).unzip()
    }

    fn grown(loss: Loss) -> (Grown, Vec<Features>, Vec<f64>) {
        let (features, targets) = rows(4_000);
        let table = Table::new(&features.iter().collect::<Vec<_>>(), &[], Cut::Coarse);
        // Every tree sees both of the two columns.
        let boost = Boost { columns: 1.0, ..Boost::default() };
        let grown = boost.grow(&table, &targets, loss);
        (grown, features, targets)
    }

    #[test]
    fn a_mean_is_learned_down_to_the_noise() {
        let (grown, features, targets) = grown(Loss::Square);
        let squares = features.iter().zip(&targets).map(|(f, y)| (grown.value(f) - y).powi(2));
        let error = squares.sum::<f64>() / targets.len() as f64;
        // Noise evenly between -1 and 1 has variance 1/3.
        assert!(error < 0.36, "{error}");
    }

    #[test]
    fn a_quantile_has_its_share_of_rows_below() {
        for share in [0.1, 0.5, 0.9] {
            let (grown, features, targets) = grown(Loss::Quantile(share));
            let below = features.iter().zip(&targets).filter(|(f, y)| **y <= grown.value(f));
            let found = below.count() as f64 / targets.len() as f64;
            assert!((found - share).abs() < 0.03, "{share}: {found}");
        }
    }

    #[test]
    fn frozen_trees_say_what_the_grown_ones_said() {
        let (grown, features, _) = grown(Loss::Quantile(0.5));
        let forest = grown.freeze();
        forest.check().unwrap();
        // Half a millionth for the base, and for each leaf.
        let slack = 0.5e-6 * (forest.trees.len() + 1) as f64 + 1e-9;
        for row in &features {
            let frozen = forest.value(row).0 as f64 / SCALE as f64;
            assert!((frozen - grown.value(row)).abs() <= slack);
        }
    }

    #[test]
    fn the_same_seed_grows_the_same_forest_and_another_one_another() {
        let (features, targets) = rows(500);
        let table = Table::new(&features.iter().collect::<Vec<_>>(), &[], Cut::Coarse);
        let grow = |seed| Boost { seed, ..Boost::default() }.grow(&table, &targets, Loss::Square);
        assert_eq!(grow(1), grow(1));
        assert_ne!(grow(1), grow(2));
    }

    #[test]
    fn a_withheld_feature_is_never_asked_for() {
        let (features, targets) = rows(500);
        let hour = Feature::Hour as u8;
        let table = Table::new(&features.iter().collect::<Vec<_>>(), &[hour], Cut::Coarse);
        let forest = Boost { columns: 1.0, ..Boost::default() }
            .grow(&table, &targets, Loss::Square)
            .freeze();
        let mut splits = forest.trees.iter().flat_map(|tree| &tree.splits).peekable();
        assert!(splits.peek().is_some());
        assert!(splits.all(|split| split.feature == Feature::Size as u8));
    }

    #[test]
    fn nothing_is_learned_from_nothing() {
        let grown = Boost::default().grow(&Table::new(&[], &[], Cut::Coarse), &[], Loss::Square);
        assert_eq!(grown.value(&Features::default()), 0.0);
        grown.freeze().check().unwrap();
    }
}
