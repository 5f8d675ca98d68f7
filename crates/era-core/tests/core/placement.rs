//! Where things go: gangs, shares of GPUs, filters, topology, and what each scorer prefers.

use era_core::bid::{Alternative, Request, Shape, Topology};
use era_core::cluster::Domain;
use era_core::input::NewNode;
use era_core::market::MarketRules;
use era_core::placement::{Scorer, Typical};
use era_core::resources::{Gpu, Resources};
use era_core::settings::Settings;
use era_core::units::JobId;
use era_core::{Command, Refusal, Reply, quote};

use crate::bed::{ALICE, Bed, bid, gang, name, node};
use crate::verbs::n;

fn ask(count: u32, each: &str) -> Request {
    gang(count, each, 60, (0, 60))
}

/// How much of a gang the pool could hold at most, empty.
fn most(bed: &mut Bed, request: Request) -> u64 {
    match refusal(bed, request) {
        Refusal::GangNeverFits { most, .. } => most,
        other => panic!("{other}"),
    }
}

fn refusal(bed: &mut Bed, request: Request) -> Refusal {
    match bed.submit(bid(request)) {
        Reply::Refused { refusal, .. } => refusal,
        reply => panic!("should have been refused: {reply:?}"),
    }
}

/// A bench of nodes that were changed before they joined.
fn with_nodes(count: usize, edit: impl Fn(usize, &mut NewNode)) -> Bed {
    let mut bed = Bed::new(0);
    for domain in ["east", "west"] {
        let domain = Domain { name: name(domain), keep: None };
        bed.done(Command::PutDomain { domain });
    }
    let mut nodes: Vec<NewNode> = (0..count).map(node).collect();
    nodes.iter_mut().enumerate().for_each(|(i, node)| edit(i, node));
    let reply = bed.send(Command::Join { nodes });
    assert!(matches!(reply, Reply::Joined { .. }), "{reply:?}");
    bed
}

#[test]
fn a_gang_is_placed_whole_or_not_at_all() {
    let mut bed = Bed::new(2);
    bed.promise(ask(1, "gpu=5"));
    assert_eq!(refusal(&mut bed, ask(4, "gpu=3")), Refusal::NoRoom, "3 + 2 × 3 of 8 + 3 free");
    let job = bed.promise(ask(3, "gpu=3"));
    assert_eq!(bed.nodes_of(job).len(), 3);
}

#[test]
fn two_halves_share_a_gpu_and_a_third_takes_another() {
    let mut bed = Bed::new(1);
    let jobs = [(); 3].map(|()| bed.promise(ask(1, "gpu=0.5")));
    let seats = jobs.map(|job| bed.gpus_of(job));
    assert_eq!(seats[0], seats[1]);
    assert_ne!(seats[1], seats[2]);
    // Seven GPUs have nothing on them but the half of one: six are whole.
    assert_eq!(refusal(&mut bed, ask(1, "gpu=7")), Refusal::NoRoom);
    bed.promise(ask(1, "gpu=6"));
    let last = bed.promise(ask(1, "gpu=0.5"));
    assert_eq!(bed.gpus_of(last), seats[2]);
    assert_eq!(refusal(&mut bed, ask(1, "gpu=0.1")), Refusal::NoRoom);
}

#[test]
fn what_is_left_of_a_gpu_must_be_left_on_one_gpu() {
    let mut bed = Bed::new(1);
    bed.promise(ask(8, "gpu=0.6"));
    assert_eq!(refusal(&mut bed, ask(1, "gpu=0.5")), Refusal::NoRoom, "eight times 0.4 are free");
    bed.promise(ask(8, "gpu=0.4"));
}

#[test]
fn two_gpus_are_two_whole_ones_on_one_node() {
    let mut bed = Bed::new(2);
    bed.promise(ask(2, "gpu=7"));
    // A GPU is free on each node; a replica of two is not.
    assert_eq!(refusal(&mut bed, ask(1, "gpu=2")), Refusal::NoRoom);
    let job = bed.promise(ask(2, "gpu=1"));
    assert_eq!(bed.gpus_of(job).iter().map(|(_, g)| g.len()).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn cores_and_memory_are_counted_beside_gpus() {
    let mut bed = Bed::new(1);
    bed.promise(ask(1, "cpu=60,memory=1Gi"));
    assert_eq!(refusal(&mut bed, ask(1, "gpu=1,cpu=5")), Refusal::NoRoom);
    bed.promise(ask(1, "gpu=1,cpu=4,memory=511Gi"));
    assert_eq!(refusal(&mut bed, ask(1, "gpu=1,memory=1Mi")), Refusal::NoRoom);
}

#[test]
fn a_model_and_a_memory_choose_gpus_one_by_one() {
    // Node 0 has four of each; node 1 has old ones only.
    let mut bed = with_nodes(2, |index, node| {
        let old = Gpu { model: name("v100"), memory: 32 * 1024 };
        let from = if index == 0 { 4 } else { 0 };
        node.capacity.gpus[from..].fill(old);
    });
    let job = bed.promise(ask(1, "gpu=2,gpu.model=h100"));
    assert_eq!(bed.gpus_of(job), [(0, vec![0, 1])]);
    let job = bed.promise(ask(1, "gpu=2,gpu.memory=40Gi"));
    assert_eq!(bed.gpus_of(job), [(0, vec![2, 3])]);
    assert_eq!(refusal(&mut bed, ask(1, "gpu=0.1,gpu.memory=40Gi")), Refusal::NoRoom);
    bed.promise(ask(1, "gpu=8,gpu.model=v100"));
    let never = refusal(&mut bed, ask(1, "gpu=5,gpu.model=h100"));
    assert!(matches!(never, Refusal::NeverFits { .. }), "{never}");
    let unknown = refusal(&mut bed, ask(1, "gpu=1,gpu.model=b200"));
    assert_eq!(unknown.to_string(), "no gpu.model is called `b200`: known are h100, v100");
}

#[test]
fn labels_and_named_devices_must_be_there() {
    let mut bed = with_nodes(2, |index, node| {
        if index == 1 {
            node.labels.insert(name("disk"), name("nvme"));
            node.capacity.devices.insert(name("fpga"), 2);
        }
    });
    let mut labelled = ask(1, "gpu=1");
    labelled.constraints.labels.insert(name("disk"), name("nvme"));
    let job = bed.promise(labelled.clone());
    assert_eq!(bed.nodes_of(job), [1]);
    labelled.constraints.labels.insert(name("disk"), name("tape"));
    let never = refusal(&mut bed, labelled).to_string();
    assert!(never.contains("lack a label"), "{never}");
    let job = bed.promise(ask(2, "fpga=1"));
    assert_eq!(bed.nodes_of(job), [1, 1]);
    assert_eq!(refusal(&mut bed, ask(1, "fpga=1")), Refusal::NoRoom);
    let never = refusal(&mut bed, ask(1, "fpga=3"));
    assert!(matches!(never, Refusal::NeverFits { .. }), "{never}");
}

#[test]
fn a_gang_that_the_whole_pool_could_not_hold_is_told_what_there_is() {
    let mut bed = with_nodes(7, |index, node| {
        if index == 0 {
            node.domain = Some(name("west"));
        }
    });
    let total = |total: u32| Request { shape: Shape::Gpus { total }, ..ask(1, "gpu=1") };
    for request in [total(80), ask(10, "gpu=8")] {
        let told = refusal(&mut bed, request).to_string();
        assert_eq!(told, "80 GPUs were asked for, and pool main has 56: ask for fewer");
    }
    let mut west = total(80);
    west.constraints.domain = Some(name("west"));
    let told = refusal(&mut bed, west.clone()).to_string();
    assert_eq!(told, "80 GPUs were asked for, and pool main has 8 (in domain west): ask for fewer");
    let told = refusal(&mut bed, ask(8, "gpu=5")).to_string();
    assert_eq!(
        told,
        "8 replicas of gpu: 5 were asked for, and pool main has room, when empty, for 7: ask for fewer"
    );
    // Where one of several could be held, its own reason is told.
    let mut either = bid(total(80));
    either.one_of.push(Alternative { all_of: vec![total(56)] });
    assert!(matches!(bed.submit(either.clone()), Reply::Accepted { .. }));
    let refused = quote(&bed.state, &either, bed.at).unwrap_err().refusal;
    assert_eq!(refused, Refusal::NoRoom);
    // A queue waits for nodes that are still to join.
    bed.enqueue(ALICE, total(80), false);
}

#[test]
fn an_empty_pool_has_room_or_could_never_hold_the_gang() {
    let bed = Bed::new(3);
    let mut fitted = 0;
    for each in ["gpu=0.3", "gpu=1", "gpu=3", "gpu=8", "cpu=20", "memory=300Gi", "gpu=1,cpu=20"] {
        for same in [None, Some(Topology::Node)] {
            for per_node_max in [None, Some(1)] {
                for count in 1..=80 {
                    let mut request = ask(count, each);
                    request.constraints.same = same;
                    request.constraints.per_node_max = per_node_max;
                    match quote(&bed.state, &bid(request.clone()), bed.at) {
                        Ok(_) => fitted += 1,
                        Err(declined) => {
                            let never = matches!(declined.refusal, Refusal::GangNeverFits { .. });
                            assert!(never, "{request:?}: {}", declined.refusal);
                        }
                    }
                }
            }
        }
    }
    assert!(fitted > 100, "{fitted}");
}

#[test]
fn a_pool_that_is_named_is_kept_to() {
    let mut bed = Bed::new(1);
    bed.done(Command::PutPool { pool: crate::bed::pool("spot") });
    let spot = NewNode { pool: name("spot"), ..node(1) };
    bed.send(Command::Join { nodes: vec![spot] });
    let mut request = ask(1, "gpu=8");
    request.constraints.pool = Some(name("spot"));
    let job = bed.promise(request.clone());
    assert_eq!(bed.nodes_of(job), [1]);
    assert_eq!(refusal(&mut bed, request), Refusal::NoRoom, "the other pool is free");
    assert_eq!(most(&mut bed, ask(2, "gpu=8")), 8, "a gang is in one pool");
}

#[test]
fn spreading_takes_a_node_for_each_replica_and_packing_as_few_as_it_can() {
    let mut bed = Bed::new(4);
    let packed = bed.promise(ask(3, "gpu=2"));
    assert_eq!(bed.nodes_of(packed), [0, 0, 0]);
    let mut spread = ask(3, "gpu=2");
    spread.constraints.spread = true;
    let job = bed.promise(spread);
    assert_eq!(bed.nodes_of(job), [1, 2, 3], "the emptiest first");
}

#[test]
fn at_most_so_many_replicas_are_on_a_node() {
    let mut bed = Bed::new(2);
    let mut request = ask(4, "gpu=1");
    request.constraints.per_node_max = Some(2);
    let job = bed.promise(request.clone());
    let mut nodes = bed.nodes_of(job);
    nodes.sort_unstable();
    assert_eq!(nodes, [0, 0, 1, 1]);
    request.shape = Shape::gang(5);
    assert_eq!(most(&mut bed, request), 4);
}

/// Racks a, a, b, b in domains east, west, west, none.
fn racked() -> Bed {
    with_nodes(4, |index, node| {
        node.rack = Some(name(["a", "a", "b", "b"][index]));
        node.domain = [Some("east"), Some("west"), Some("west"), None][index].map(name);
    })
}

#[test]
fn the_same_node_rack_or_domain_is_kept_to_where_it_is_demanded() {
    let together = |count, each: &str, same| {
        let mut request = ask(count, each);
        request.constraints.same = Some(same);
        request
    };
    let mut bed = racked();
    let job = bed.promise(together(2, "gpu=4", Topology::Node));
    assert_eq!(bed.nodes_of(job), [0, 0]);
    assert_eq!(most(&mut bed, together(3, "gpu=3", Topology::Node)), 8);
    // Rack a has one node left, rack b two; the domain west has one of each.
    let job = bed.promise(together(2, "gpu=5", Topology::Rack));
    assert_eq!(bed.nodes_of(job), [2, 3]);
    assert_eq!(refusal(&mut bed, together(2, "gpu=5", Topology::Rack)), Refusal::NoRoom);
    let job = bed.promise(together(3, "gpu=3", Topology::Domain));
    let mut nodes = bed.nodes_of(job);
    nodes.sort_unstable();
    assert_eq!(nodes, [1, 1, 2]);
    assert_eq!(refusal(&mut bed, together(2, "gpu=3", Topology::Domain)), Refusal::NoRoom);
}

#[test]
fn a_gang_that_demands_nothing_still_stays_in_one_rack_where_it_can() {
    let mut bed = racked();
    bed.promise(ask(1, "gpu=1"));
    let job = bed.promise(ask(2, "gpu=8"));
    assert_eq!(bed.nodes_of(job), [2, 3], "rack a has only one whole node left");
}

#[test]
fn a_total_of_gpus_is_whole_nodes_and_one_part() {
    let total = |gpus| {
        let mut request = ask(1, "gpu=1,cpu=2");
        request.shape = Shape::Gpus { total: gpus };
        request
    };
    let sizes = |bed: &Bed, job: JobId| {
        bed.gpus_of(job).iter().map(|(_, gpus)| gpus.len()).collect::<Vec<_>>()
    };
    let mut bed = Bed::new(3);
    let job = bed.promise(total(12));
    assert_eq!(sizes(&bed, job), [8, 4]);
    assert_eq!(bed.nodes_of(job).len(), 2);
    let job = bed.promise(total(4));
    assert_eq!(bed.nodes_of(job), [1], "the part goes where a part is");
    assert_eq!(refusal(&mut bed, total(9)), Refusal::NoRoom);
    let job = bed.promise(total(8));
    assert_eq!(sizes(&bed, job), [8]);
    let mut together = total(12);
    together.constraints.same = Some(Topology::Node);
    assert_eq!(most(&mut bed, together), 8, "no node has twelve");
}

/// Where each scorer puts one GPU when three nodes have 8, 4 and 5 free.
fn chosen_by(scorer: Scorer) -> u32 {
    let settings = Settings { scorer, ..Settings::default() };
    let mut bed = Bed::with(3, settings, MarketRules::default());
    for (node, each) in [(1, "gpu=4"), (2, "gpu=3")] {
        // Everything else is drained for a moment, so that it goes where the test wants it.
        let others: Vec<u32> = (0..3).filter(|o| *o != node).collect();
        others.iter().for_each(|o| bed.done(Command::Drain { node: n(*o), stop_at: None }));
        bed.promise(ask(1, each));
        others.iter().for_each(|o| bed.done(Command::Resume { node: n(*o) }));
    }
    let job = bed.promise(ask(1, "gpu=1"));
    bed.nodes_of(job)[0]
}

#[test]
fn first_fit_takes_the_first_node_and_best_fit_the_one_with_least_left() {
    assert_eq!(chosen_by(Scorer::FirstFit), 0);
    assert_eq!(chosen_by(Scorer::BestFit), 1);
    assert_eq!(chosen_by(Scorer::Consolidate), 1);
}

#[test]
fn fragmentation_gradient_descent_takes_the_node_whose_rest_stays_most_useful() {
    // With 8 free a whole node would be spoilt for work of 8, with 4 free the node for work of
    // 4; of 5 the fifth is of no use to such work, and 4 are left.
    assert_eq!(chosen_by(Scorer::Fgd), 2);
}

#[test]
fn best_fit_fills_the_fullest_nodes_and_consolidation_uses_as_few_as_it_can() {
    let placed = |scorer| {
        let settings = Settings { scorer, ..Settings::default() };
        let mut bed = Bed::with(3, settings, MarketRules::default());
        for node in [1, 2] {
            let others: Vec<u32> = (0..3).filter(|o| *o != node).collect();
            others.iter().for_each(|o| bed.done(Command::Drain { node: n(*o), stop_at: None }));
            bed.promise(ask(1, "gpu=5"));
            others.iter().for_each(|o| bed.done(Command::Resume { node: n(*o) }));
        }
        let job = bed.promise(ask(3, "gpu=2"));
        let mut nodes = bed.nodes_of(job);
        nodes.sort_unstable();
        nodes
    };
    assert_eq!(placed(Scorer::BestFit), [0, 1, 2]);
    assert_eq!(placed(Scorer::Consolidate), [0, 0, 0]);
}

/// A bench of two nodes (8 GPUs, 64 cores each) where `gpu` GPUs with `cpu` cores are typical.
fn with_typical(scorer: Scorer, kinds: &[(&str, &str)]) -> Bed {
    let kind = |(gpu, cpu): &(&str, &str)| Typical {
        each: Resources::parse([("gpu", *gpu), ("cpu", *cpu)]).unwrap(),
        weight: 1,
    };
    let typical = kinds.iter().map(kind).collect();
    let settings = Settings { scorer, typical, ..Settings::default() };
    Bed::with(2, settings, MarketRules::default())
}

#[test]
fn least_stranded_keeps_cores_for_gpus_where_fragmentation_sees_no_difference() {
    let chosen = |scorer| {
        let mut bed = with_typical(scorer, &[("1", "4")]);
        bed.done(Command::Drain { node: n(1), stop_at: None });
        bed.promise(ask(1, "gpu=4,cpu=40"));
        bed.done(Command::Resume { node: n(1) });
        // Node 0 has 4 GPUs and 24 cores left: 16 cores fewer would strand two of the GPUs. Node
        // 1 has 8 GPUs and 64 cores, of which half are enough.
        let job = bed.promise(ask(1, "cpu=16"));
        bed.nodes_of(job)[0]
    };
    assert_eq!(chosen(Scorer::Fgd), 0, "one more replica fits on either");
    assert_eq!(chosen(Scorer::LeastStranded), 1);
}

#[test]
fn a_share_sits_on_the_gpu_for_which_its_node_was_chosen() {
    let seats = |scorer| {
        let mut bed = with_typical(scorer, &[("0.4", "1")]);
        bed.promise(ask(1, "gpu=0.6"));
        let job = bed.promise(ask(1, "gpu=0.2"));
        bed.gpus_of(job)
    };
    // What is left of the first GPU is just what typical work needs; beside it, 0.8 is left.
    assert_eq!(seats(Scorer::BestFit), [(0, vec![0])]);
    assert_eq!(seats(Scorer::Fgd), [(0, vec![1])]);
    assert_eq!(seats(Scorer::LeastStranded), [(0, vec![1])]);
}

#[test]
fn best_fit_weighs_cores_beside_gpus() {
    // Node 0 has 8 GPUs and 4 cores left, node 1 has 7 GPUs and 64 cores: a GPU more, but nearly
    // all of a node's cores fewer.
    let placed = |scorer| {
        let settings = Settings { scorer, ..Settings::default() };
        let mut bed = Bed::with(2, settings, MarketRules::default());
        for (node, each) in [(0, "cpu=60"), (1, "gpu=1")] {
            bed.done(Command::Drain { node: n(1 - node), stop_at: None });
            bed.promise(ask(1, each));
            bed.done(Command::Resume { node: n(1 - node) });
        }
        let job = bed.promise(ask(1, "gpu=1,cpu=1"));
        bed.nodes_of(job)[0]
    };
    assert_eq!(placed(Scorer::BestFit), 0);
    assert_eq!(placed(Scorer::Consolidate), 1, "GPUs before all else");
}
