//! The placement experiment: small clusters with known answers, and the published figures.

mod beside;

use beside::shared;
use era_core::units::Name;
use era_sim::place::{
    DEMANDS, Learned, ListedNode, PlacementExperiment, PlacementPolicy, Pod, Summary, read_nodes,
    read_pods, run_seeds,
};

fn name(text: &str) -> Name {
    Name::new(text).unwrap_or_else(|error| panic!("{error}"))
}

fn node(number: usize, cores: u32, gpus: u32, model: &str) -> ListedNode {
    ListedNode {
        name: name(&format!("node-{number}")),
        cpu: cores * 1000,
        memory: 1 << 20,
        gpus,
        model: name(model),
    }
}

fn pod(cores: u32, gpu: u32, models: &[&str]) -> Pod {
    let models = models.iter().map(|model| name(model)).collect();
    Pod { cpu: cores * 1000, memory: 1024, gpu, models }
}

fn experiment(nodes: Vec<ListedNode>, pods: Vec<Pod>, policy: &str) -> PlacementExperiment {
    let policy = PlacementPolicy::named(policy).unwrap_or_else(|| panic!("no policy {policy}"));
    PlacementExperiment { nodes, pods, policy, learned: Learned::FromList }
}

/// What is allocated at 130 % of demand, in percent, and how many pods were dropped.
fn at_the_end(experiment: &PlacementExperiment, seed: u64) -> (f64, usize) {
    let outcome = experiment.run(seed, &|| ()).unwrap_or_else(|error| panic!("{error}"));
    (outcome.allocated[DEMANDS.len() - 1], outcome.dropped)
}

#[test]
fn of_pods_that_cannot_share_a_gpu_each_gpu_holds_one_under_every_policy() {
    for (policy, _) in PlacementPolicy::ALL {
        let nodes = vec![node(0, 64, 2, "a"), node(1, 64, 2, "a")];
        let tried = experiment(nodes, vec![pod(1, 600, &[])], policy);
        let arrivals = 9; // 130 % of four GPUs is 5.2, and 0.6 each
        assert_eq!(at_the_end(&tried, 3), (60.0, arrivals - 4), "{policy}");
    }
}

#[test]
fn pods_that_name_models_go_there_and_nowhere_else() {
    let nodes = || vec![node(0, 64, 1, "a"), node(1, 64, 1, "b"), node(2, 64, 2, "c")];
    for (policy, _) in PlacementPolicy::ALL {
        for (models, percent) in [(&["a"][..], 25.0), (&["a", "c"], 75.0), (&["x"], 0.0)] {
            let tried = experiment(nodes(), vec![pod(1, 1000, models)], policy);
            assert_eq!(at_the_end(&tried, 1).0, percent, "{policy} of {models:?}");
        }
    }
}

/// Half of the nodes have just the cores that their GPUs need, the others have many more.
fn uneven(count: usize, policy: &str) -> PlacementExperiment {
    let nodes = (0..count).map(|i| node(i, 16 + 240 * (i as u32 % 2), 8, "a")).collect();
    experiment(nodes, vec![pod(2, 1000, &[]), pod(2, 1000, &[]), pod(8, 0, &[])], policy)
}

#[test]
fn least_stranded_keeps_work_without_gpus_away_from_where_its_cores_are_needed() {
    let mean =
        |policy: &str| (0..8).map(|seed| at_the_end(&uneven(8, policy), seed).0).sum::<f64>() / 8.0;
    assert_eq!(mean("least-stranded"), 100.0);
    assert!(mean("random") < 95.0, "{}", mean("random"));
    assert!(mean("first-fit") < 95.0, "{}", mean("first-fit"));
}

#[test]
fn what_is_learned_from_arrivals_alone_does_nearly_as_well_there() {
    let mut tried = uneven(64, "least-stranded");
    tried.learned = Learned::FromArrivals;
    // The first few arrivals may still go wrong: nothing is known yet.
    let (allocated, _) = at_the_end(&tried, 5);
    assert!(allocated > 97.0, "{allocated}");
}

#[test]
fn a_seed_gives_the_same_outcome_on_one_thread_and_on_many() {
    let nodes = vec![node(0, 8, 4, "a"), node(1, 64, 4, "a"), node(2, 64, 2, "b")];
    let pods = vec![pod(4, 300, &[]), pod(6, 1000, &["a"]), pod(1, 2000, &[]), pod(5, 0, &[])];
    for (policy, _) in PlacementPolicy::ALL {
        let tried = experiment(nodes.clone(), pods.clone(), policy);
        let together = run_seeds(&tried, &[4, 5, 6], &|| ());
        let together = together.unwrap_or_else(|error| panic!("{error}"));
        for (seed, outcome) in [4, 5, 6].into_iter().zip(together) {
            let end = (outcome.allocated[DEMANDS.len() - 1], outcome.dropped);
            assert_eq!(end, at_the_end(&tried, seed), "{policy}");
        }
    }
}

/// Published means of ten seeds, at each of [`DEMANDS`] (Weng et al., ATC '23).
const PUBLISHED: [(&str, [f64; 5]); 6] = [
    ("random", [85.72, 86.30, 86.88, 87.28, 87.47]),
    ("dot-product", [90.58, 90.62, 90.70, 90.76, 90.85]),
    ("gpu-clustering", [91.60, 91.65, 91.73, 91.80, 91.88]),
    ("gpu-packing", [91.74, 91.78, 91.85, 91.92, 92.00]),
    ("best-fit", [92.82, 92.86, 92.94, 93.00, 93.08]),
    ("fgd", [94.91, 95.23, 95.30, 95.35, 95.39]),
];

/// The published lists, which stand beside the project; `None`, and a word about it, where they
/// do not.
fn published_lists() -> Option<(Vec<ListedNode>, Vec<Pod>)> {
    let folder = shared("placement")?;
    let nodes = read_nodes(&folder.join("openb-nodes.csv"));
    let pods = read_pods(&folder.join("openb-pods-default.csv"));
    Some((nodes.unwrap_or_else(|e| panic!("{e}")), pods.unwrap_or_else(|e| panic!("{e}"))))
}

/// Mean allocation at each of [`DEMANDS`].
fn means(experiment: &PlacementExperiment, seeds: &[u64]) -> [f64; 5] {
    let outcomes = run_seeds(experiment, seeds, &|| ()).unwrap_or_else(|e| panic!("{e}"));
    std::array::from_fn(|i| {
        Summary::of(&outcomes.iter().map(|o| o.allocated[i]).collect::<Vec<_>>()).mean
    })
}

fn compare_with_published(policies: &[&str], seeds: &[u64], tolerance: f64) {
    let Some((nodes, pods)) = published_lists() else { return };
    for (policy, published) in PUBLISHED.iter().filter(|(name, _)| policies.contains(name)) {
        let ours = means(&experiment(nodes.clone(), pods.clone(), policy), seeds);
        for ((demand, ours), published) in DEMANDS.iter().zip(ours).zip(published) {
            let off = (ours - published).abs();
            assert!(off <= tolerance, "{policy} at {demand} %: {ours:.2}, published {published}");
        }
    }
}

/// Two seeds, and the rules that vary least with the seed, so that it takes seconds; the soak
/// below has all of them.
#[test]
fn few_seeds_come_near_the_published_means() {
    compare_with_published(&["dot-product", "best-fit", "fgd"], &[1, 2], 0.6);
}

#[test]
#[ignore = "ten seeds of six rules take minutes: run by make soak-lab"]
fn ten_seeds_give_the_published_means_within_half_a_point() {
    let all = PUBLISHED.map(|(policy, _)| policy);
    compare_with_published(&all, &(1..=10).collect::<Vec<_>>(), 0.5);
}

#[test]
#[ignore = "ten seeds take a minute: run by make soak-lab"]
fn least_stranded_beats_the_published_fgd_without_knowing_the_list() {
    let Some((nodes, pods)) = published_lists() else { return };
    let mut tried = experiment(nodes, pods, "least-stranded");
    tried.learned = Learned::FromArrivals;
    let ours = means(&tried, &(1..=10).collect::<Vec<_>>());
    for ((demand, ours), published) in DEMANDS.iter().zip(ours).zip(PUBLISHED[5].1) {
        assert!(ours > published, "at {demand} %: {ours:.2}, FGD {published}");
    }
    // Measured: 95.66 with a deviation of 0.09 over seeds.
    assert!(ours[4] > 95.5, "{:.2}", ours[4]);
}
