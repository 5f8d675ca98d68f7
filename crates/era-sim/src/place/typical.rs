//! Typical work, learned from pods: what `Settings::typical` of a site would be after them.
//!
//! The core is told; it learns nothing itself. Neither does this module know where pods went.

use std::collections::BTreeMap;

use era_core::placement::Typical;

use super::Pod;

/// Most kinds of typical work that the core takes.
const KINDS_MAX: usize = 64;

/// Where typical work is learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// From the whole list, before the first pod arrives: what is published assumes that.
    FromList,
    /// From the pods that have arrived so far. Until there are some, the core's defaults hold.
    FromArrivals,
}

/// How much a kind of work counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighing {
    /// By how many pods are of it; the most common kinds, until they are 95 % of all pods.
    ByCount,
    /// By their number times the fourth root of the GPUs that each asks for: large pods are few
    /// but fit in few places, so they deserve more attention than their number says.
    BySize,
}

/// Typical work of so many pods of each kind.
pub fn learn<'a>(
    counts: impl IntoIterator<Item = (&'a Pod, u32)>,
    weighing: Weighing,
) -> Vec<Typical> {
    let mut kinds: BTreeMap<&Pod, u32> = BTreeMap::new();
    for (pod, count) in counts {
        *kinds.entry(pod).or_default() += count;
    }
    let all: u64 = kinds.values().map(|count| u64::from(*count)).sum();
    let mut kinds: Vec<(u32, &Pod)> =
        kinds.into_iter().map(|(pod, count)| (weight(pod, count, weighing), pod)).collect();
    kinds.sort_by(|a, b| b.cmp(a));
    kinds.truncate(KINDS_MAX);
    if weighing == Weighing::ByCount {
        let mut sum = 0;
        let enough = kinds.iter().take_while(|(count, _)| {
            let more = sum * 100 < all * 95;
            sum += u64::from(*count);
            more
        });
        let enough = enough.count();
        kinds.truncate(enough);
    }
    kinds.into_iter().map(|(weight, pod)| Typical { each: pod.resources(), weight }).collect()
}

fn weight(pod: &Pod, count: u32, weighing: Weighing) -> u32 {
    match weighing {
        Weighing::ByCount => count,
        Weighing::BySize if pod.gpu == 0 => count.saturating_mul(100),
        Weighing::BySize => {
            let gpus = f64::from(pod.gpu) / 1000.0;
            (f64::from(count) * 100.0 * gpus.sqrt().sqrt()) as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(gpu: u32) -> Pod {
        Pod { cpu: 1000, memory: 1024, gpu, models: Default::default() }
    }

    #[test]
    fn the_commonest_kinds_are_typical_until_they_are_95_percent() {
        let (one, two, rare) = (pod(1000), pod(2000), pod(500));
        let counts = [(&one, 80), (&rare, 1), (&two, 18), (&one, 1)];
        let typical = learn(counts, Weighing::ByCount);
        let kinds: Vec<_> = typical.iter().map(|t| (t.each.gpu, t.weight)).collect();
        assert_eq!(kinds, [(1000, 81), (2000, 18)]);
    }

    #[test]
    fn by_size_a_pod_of_sixteen_gpus_counts_as_two_of_one() {
        let (one, large) = (pod(1000), pod(16_000));
        let typical = learn([(&one, 10), (&large, 4)], Weighing::BySize);
        let kinds: Vec<_> = typical.iter().map(|t| (t.each.gpu, t.weight)).collect();
        assert_eq!(kinds, [(1000, 1000), (16_000, 800)]);
    }

    #[test]
    fn no_more_kinds_than_the_core_takes() {
        let pods: Vec<Pod> = (1..=100).map(pod).collect();
        assert_eq!(learn(pods.iter().map(|p| (p, 1)), Weighing::BySize).len(), KINDS_MAX);
    }
}
