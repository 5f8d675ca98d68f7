//! Frozen trees: what a booster learned elsewhere, as integers that are only ever evaluated.
//!
//! A forest arrives with an input, so it is checked like any other: how many trees and splits it
//! has, that every feature is known, and that every branch leads further down, so that a walk
//! always ends in a leaf. How it was trained, and what its numbers stand for, is not known here.

use serde::{Deserialize, Serialize};

use super::feature::{FEATURES, Features};
use crate::queue::fixed::Fixed;

/// Most trees of a forest.
pub const TREES_MAX: usize = 1024;
/// Most splits of a tree.
pub const SPLITS_MAX: usize = 255;
/// Most splits on a way from the root to a leaf.
pub const DEPTH_MAX: usize = 16;
/// Most splits of a forest.
pub const FOREST_SPLITS_MAX: usize = 65_536;
/// The largest leaf, either way: a sum of as many as there may be stays in range.
pub const LEAF_MAX: Fixed = Fixed::from_int(1_000_000);

/// A sum of trees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forest {
    /// What it says before any tree is asked.
    pub base: Fixed,
    /// What each adds.
    pub trees: Vec<DecisionTree>,
}

/// One tree. The root is the first split, or the only leaf where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionTree {
    /// Splits, each before those that it leads to.
    pub splits: Vec<Split>,
    pub leaves: Vec<Fixed>,
}

/// A question, and where its answers lead. Written as `[feature, at_most, yes, no]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u8, Fixed, i16, i16)", into = "(u8, Fixed, i16, i16)")]
pub struct Split {
    /// The number of a feature.
    pub feature: u8,
    /// Is it at most this?
    pub at_most: Fixed,
    /// If so: the number of a split, or of a leaf counted down from -1.
    pub yes: i16,
    pub no: i16,
}

impl From<(u8, Fixed, i16, i16)> for Split {
    fn from((feature, at_most, yes, no): (u8, Fixed, i16, i16)) -> Split {
        Split { feature, at_most, yes, no }
    }
}

impl From<Split> for (u8, Fixed, i16, i16) {
    fn from(split: Split) -> (u8, Fixed, i16, i16) {
        (split.feature, split.at_most, split.yes, split.no)
    }
}

/// Why a forest is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadForest {
    /// It has too many trees.
    #[error("give at most {TREES_MAX} trees")]
    Trees,
    /// It has too many splits in one tree, or in all.
    #[error("give at most {SPLITS_MAX} splits a tree and {FOREST_SPLITS_MAX} in all")]
    Splits,
    /// It asks for what nobody knows.
    #[error("tree {tree} asks for feature {feature}: there are {FEATURES}")]
    Feature { tree: usize, feature: u8 },
    /// A branch leads back, or nowhere.
    #[error("a branch of split {split} of tree {tree} leads back or nowhere: lead further down")]
    Branch { tree: usize, split: usize },
    /// A way to a leaf is too long.
    #[error("tree {tree} is deeper than {DEPTH_MAX} splits")]
    Depth { tree: usize },
    /// A leaf is out of range, or there is none.
    #[error("tree {tree} needs leaves between -1000000 and 1000000")]
    Leaf { tree: usize },
}

impl Forest {
    /// Refuses what could not be evaluated, or not in bounded time.
    pub fn check(&self) -> Result<(), BadForest> {
        if self.trees.len() > TREES_MAX {
            return Err(BadForest::Trees);
        }
        let splits: usize = self.trees.iter().map(|tree| tree.splits.len()).sum();
        if splits > FOREST_SPLITS_MAX {
            return Err(BadForest::Splits);
        }
        if self.base.abs() > LEAF_MAX {
            return Err(BadForest::Leaf { tree: 0 });
        }
        self.trees.iter().enumerate().try_for_each(|(number, tree)| tree.check(number))
    }

    /// What it says of something.
    pub fn value(&self, features: &Features) -> Fixed {
        self.trees.iter().fold(self.base, |sum, tree| sum + tree.value(features))
    }
}

impl DecisionTree {
    fn check(&self, tree: usize) -> Result<(), BadForest> {
        if self.splits.len() > SPLITS_MAX {
            return Err(BadForest::Splits);
        }
        let in_range = |leaf: &Fixed| leaf.abs() <= LEAF_MAX;
        // A tree of so many splits has one leaf more.
        if self.leaves.len() != self.splits.len() + 1 || !self.leaves.iter().all(in_range) {
            return Err(BadForest::Leaf { tree });
        }
        let mut depths = vec![1; self.splits.len()];
        for (index, split) in self.splits.iter().enumerate() {
            if usize::from(split.feature) >= FEATURES {
                return Err(BadForest::Feature { tree, feature: split.feature });
            }
            if depths[index] > DEPTH_MAX {
                return Err(BadForest::Depth { tree });
            }
            for branch in [split.yes, split.no] {
                match step_to(branch) {
                    Branch::Leaf(leaf) if leaf < self.leaves.len() => {}
                    Branch::Split(next) if next > index && next < self.splits.len() => {
                        depths[next] = depths[next].max(depths[index] + 1);
                    }
                    _ => return Err(BadForest::Branch { tree, split: index }),
                }
            }
        }
        Ok(())
    }

    fn value(&self, features: &Features) -> Fixed {
        let leaf = |leaf: usize| self.leaves.get(leaf).copied().unwrap_or(Fixed::ZERO);
        let mut at = 0;
        // Every branch of a tree that was checked leads further down.
        while let Some(split) = self.splits.get(at) {
            let yes = features.get(split.feature) <= split.at_most;
            match step_to(if yes { split.yes } else { split.no }) {
                Branch::Split(next) if next > at => at = next,
                Branch::Split(_) => return Fixed::ZERO,
                Branch::Leaf(index) => return leaf(index),
            }
        }
        leaf(0)
    }
}

enum Branch {
    Split(usize),
    Leaf(usize),
}

fn step_to(branch: i16) -> Branch {
    match usize::try_from(branch) {
        Ok(split) => Branch::Split(split),
        Err(_) => Branch::Leaf(usize::from((!branch).unsigned_abs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::feature::Feature;

    /// Is the size at most 3? If so 1; if not, is the hour at most 12? Then 2, else 4.
    fn small() -> DecisionTree {
        let split = |feature: Feature, at_most, yes, no| Split {
            feature: feature as u8,
            at_most: Fixed::from_int(at_most),
            yes,
            no,
        };
        DecisionTree {
            splits: vec![split(Feature::Size, 3, -1, 1), split(Feature::Hour, 12, -2, -3)],
            leaves: [1, 2, 4].map(Fixed::from_int).to_vec(),
        }
    }

    fn value(size: i64, hour: i64) -> Fixed {
        let mut features = Features::default();
        features.set(Feature::Size, Fixed::from_int(size));
        features.set(Feature::Hour, Fixed::from_int(hour));
        let forest = Forest { base: Fixed::from_int(10), trees: vec![small(), small()] };
        forest.check().unwrap();
        forest.value(&features)
    }

    #[test]
    fn a_forest_adds_up_the_leaves_that_its_questions_lead_to() {
        assert_eq!(value(3, 20), Fixed::from_int(12));
        assert_eq!(value(4, 12), Fixed::from_int(14));
        assert_eq!(value(4, 13), Fixed::from_int(18));
    }

    #[test]
    fn what_would_never_end_or_lead_nowhere_is_refused() {
        let refused = |change: &dyn Fn(&mut DecisionTree)| {
            let mut tree = small();
            change(&mut tree);
            Forest { base: Fixed::ZERO, trees: vec![tree] }.check().unwrap_err()
        };
        let branch = |split| BadForest::Branch { tree: 0, split };
        assert_eq!(refused(&|t| t.splits[1].yes = 0), branch(1));
        assert_eq!(refused(&|t| t.splits[1].yes = 1), branch(1));
        assert_eq!(refused(&|t| t.splits[0].no = 2), branch(0));
        assert_eq!(refused(&|t| t.splits[0].yes = -4), branch(0));
        assert_eq!(refused(&|t| t.splits[0].yes = i16::MIN), branch(0));
        let feature = FEATURES as u8;
        let unknown = BadForest::Feature { tree: 0, feature };
        assert_eq!(refused(&|t| t.splits[0].feature = feature), unknown);
        let leaf = BadForest::Leaf { tree: 0 };
        assert_eq!(refused(&|t| t.leaves.clear()), leaf);
        assert_eq!(refused(&|t| t.leaves[1] = Fixed::MIN), leaf);
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let chain = |splits: i16| {
            let split = |n: i16| Split {
                feature: 0,
                at_most: Fixed::ZERO,
                yes: -1 - n,
                no: if n + 1 < splits { n + 1 } else { -1 - splits },
            };
            let leaves = vec![Fixed::ONE; splits as usize + 1];
            DecisionTree { splits: (0..splits).map(split).collect(), leaves }
        };
        let check = |trees| Forest { base: Fixed::ZERO, trees }.check();
        assert_eq!(check(vec![chain(16)]), Ok(()));
        assert_eq!(check(vec![chain(17)]), Err(BadForest::Depth { tree: 0 }));
        assert_eq!(check(vec![chain(256)]), Err(BadForest::Splits));
        assert_eq!(check(vec![chain(16); 1024]), Ok(()));
        assert_eq!(check(vec![chain(1); 1025]), Err(BadForest::Trees));
        let bushy = DecisionTree {
            splits: (0..127)
                .map(|n: i16| {
                    let child = |c: i16| if c < 127 { c } else { -1 - (c - 127) };
                    Split {
                        feature: 0,
                        at_most: Fixed::ZERO,
                        yes: child(2 * n + 1),
                        no: child(2 * n + 2),
                    }
                })
                .collect(),
            leaves: vec![Fixed::ONE; 128],
        };
        assert_eq!(check(vec![bushy.clone(); 516]), Ok(()));
        assert_eq!(check(vec![bushy; 517]), Err(BadForest::Splits));
    }

    #[test]
    fn a_split_is_written_as_four_numbers() {
        let split = Split { feature: 3, at_most: Fixed(1_500_000), yes: -1, no: 2 };
        let text = serde_json::to_string(&split).unwrap();
        assert_eq!(text, "[3,1500000,-1,2]");
        assert_eq!(serde_json::from_str::<Split>(&text).unwrap(), split);
    }
}
