//! In which order the nodes that fit are filled, and how many replicas each of them gets.
//!
//! It compares candidates by what was found out about them; it looks at no node itself.

use super::Scorer;
use super::score::Left;

/// A node that can take `count` replicas.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Its place in the pool.
    pub(super) node: usize,
    pub(super) count: u32,
    /// Open nodes with preemptible work in the way come last, for queue work those open to
    /// promises do.
    pub(super) disturbs: bool,
    /// What is left beside what is taken.
    pub(super) left: Left,
    /// What the scorer makes of it: the smaller the better.
    pub(super) score: i64,
}

/// The nodes in the order in which they are filled, each with how many replicas it gets.
pub(super) fn order(
    mut options: Vec<Candidate>,
    wanted: u32,
    scorer: Scorer,
    spread: bool,
) -> Vec<(usize, u32)> {
    if spread {
        return spread_out(options, wanted);
    }
    match scorer {
        Scorer::FirstFit => options.sort_by_key(|o| (o.disturbs, o.node)),
        Scorer::BestFit | Scorer::Fgd | Scorer::LeastStranded => {
            options.sort_by_key(|o| (o.disturbs, o.score, o.left, o.node));
        }
        Scorer::Consolidate => return consolidate(options, wanted),
    }
    let mut left = wanted;
    let mut order = Vec::new();
    for option in options {
        if left == 0 {
            break;
        }
        let count = option.count.min(left);
        order.push((option.node, count));
        left -= count;
    }
    order
}

/// Largest first, and what is left over on the fullest node that takes all of it.
fn consolidate(mut options: Vec<Candidate>, wanted: u32) -> Vec<(usize, u32)> {
    if let Some(one) = finishing(&options, wanted) {
        return vec![(one, wanted)];
    }
    options.sort_by_key(|o| (o.disturbs, std::cmp::Reverse(o.count), o.left, o.node));
    let mut order = Vec::new();
    let mut left = wanted;
    let mut rest = &options[..];
    while left > 0 && !rest.is_empty() {
        if let Some(last) = finishing(rest, left) {
            order.push((last, left));
            break;
        }
        order.push((rest[0].node, rest[0].count));
        left -= rest[0].count;
        rest = &rest[1..];
    }
    order
}

/// The fullest node that takes all that are left.
fn finishing(options: &[Candidate], left: u32) -> Option<usize> {
    let takes_all = options.iter().filter(|o| o.count >= left);
    takes_all.min_by_key(|o| (o.disturbs, o.left, o.node)).map(|o| o.node)
}

/// One replica a node, emptiest first, and again until all are seated.
fn spread_out(mut options: Vec<Candidate>, wanted: u32) -> Vec<(usize, u32)> {
    options.sort_by_key(|o| (o.disturbs, std::cmp::Reverse(o.left), o.node));
    let mut counts: Vec<(usize, u32, u32)> = options.iter().map(|o| (o.node, 0, o.count)).collect();
    let mut left = wanted;
    while left > 0 {
        let before = left;
        for (_, given, most) in &mut counts {
            if left > 0 && given < most {
                *given += 1;
                left -= 1;
            }
        }
        if left == before {
            break;
        }
    }
    counts.into_iter().filter(|(_, n, _)| *n > 0).map(|(node, n, _)| (node, n)).collect()
}
