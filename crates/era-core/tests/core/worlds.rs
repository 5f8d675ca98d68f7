//! Random worlds: clusters, markets, histories and bids, small enough that an oracle can look at
//! every unit, and odd enough that nothing falls on round numbers.

#![allow(unreachable_pub)]

use std::collections::BTreeMap;
use std::sync::Arc;

use era_core::bid::{Bid, Constraints, Request, Shape, Topology, Value, ValueStep, Window};
use era_core::cluster::{Domain, DomainKeep, NodeReservation, Pool, Rates};
use era_core::forecast::{Curve, Forecast, Series};
use era_core::input::{NewJob, NewNode, Terms};
use era_core::job::{Job, Overrun, Part, QueueTerms, TaskId};
use era_core::market::{MarketRules, MechanismChoice};
use era_core::placement::Scorer;
use era_core::resources::{Capacity, Gpu, Resources};
use era_core::settings::Settings;
use era_core::units::{JobId, Milli, Money, NodeId, Span, Time, UserId};
use era_core::{Command, Reply, State};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

use crate::bed::{ALICE, BOB, Bed, T0, name, new_job};

/// A cluster and its market, before anything is promised.
#[derive(Clone, Debug)]
pub struct World {
    pub settings: Settings,
    pub market: MarketRules,
    pub pools: Vec<Pool>,
    pub nodes: Vec<NewNode>,
    pub domain: Domain,
    pub forecast: Forecast,
}

/// A bid with times as distances from when it is made.
#[derive(Clone, Debug)]
pub struct Ask {
    pub user: UserId,
    pub shape: Shape,
    pub each: Resources,
    pub duration: Span,
    /// From now to the window's start.
    pub earliest: Span,
    /// How much longer than the duration the window is.
    pub slack: Span,
    pub constraints: Constraints,
    pub worth: Worth,
}

/// What it is worth.
#[derive(Clone, Debug)]
pub enum Worth {
    Flat(Money),
    /// `(share of the slack in thousandths, worth)`.
    Steps(Vec<(u16, Money)>),
}

/// Something that happens.
#[derive(Clone, Debug)]
pub enum Act {
    Submit(Ask),
    Hold(Ask),
    Accept,
    Enqueue(Ask, bool),
    Pass,
    Wait(Span),
    Exit(usize),
    Cancel(usize),
    Drain(usize),
    Resume(usize),
    Lose(usize),
    Maintain(usize, Vec<(Span, Span)>),
}

fn span_s(range: std::ops::Range<i64>) -> impl Strategy<Value = Span> {
    prop_oneof![
        2 => (range.start / 60..range.end / 60 + 1).prop_map(|m| Span::from_min(m.max(1))),
        1 => (range.start * 1000..range.end * 1000).prop_map(|ms| Span(ms.max(1))),
    ]
}

fn market() -> impl Strategy<Value = MarketRules> {
    let density = || (0u32..4000).prop_map(Milli);
    let mechanism = prop_oneof![
        4 => Just(MechanismChoice::BasicEcon),
        1 => density().prop_map(|density| MechanismChoice::FirstFit { density }),
        1 => density().prop_map(|density| MechanismChoice::OnDemand { density }),
        2 => (1u32..1000, 0u32..5000)
            .prop_map(|(low, more)| MechanismChoice::Surge { low: Milli(low), high: Milli(low + more) }),
    ];
    (mechanism, prop_oneof![Just(0u32), 1u32..700], 700u32..6000).prop_map(
        |(mechanism, floor, ceiling)| MarketRules {
            mechanism,
            floor: Milli(floor),
            ceiling: Milli(ceiling),
        },
    )
}

fn settings() -> impl Strategy<Value = Settings> {
    let scorer = prop_oneof![
        Just(Scorer::FirstFit),
        Just(Scorer::BestFit),
        Just(Scorer::Consolidate),
        Just(Scorer::Fgd),
        Just(Scorer::LeastStranded)
    ];
    let slot = prop_oneof![4 => Just(60), 1 => Just(45), 1 => Just(300)];
    (slot, 60i64..240, 1i64..90, scorer).prop_map(|(slot, horizon_min, grace_s, scorer)| Settings {
        slot: Span::from_s(slot),
        horizon: Span::from_min(horizon_min),
        grace: Span::from_s(grace_s),
        run_min: Span::from_min(1),
        holds_max: 16,
        scorer,
        ..Settings::default()
    })
}

fn pool(of: &'static str) -> impl Strategy<Value = Pool> {
    let rate = |most: i64| prop_oneof![1 => Just(1_000_000i64), 2 => 0..most];
    let closed = prop_oneof![3 => Just(0u32), 1 => Just(340)];
    (rate(3_000_000), rate(100_000), rate(9_000_000), closed).prop_map(
        move |(cpu, memory, gpu, closed)| Pool {
            name: name(of),
            rates: Rates { cpu: Money(cpu), memory: Money(memory), gpu: Money(gpu) },
            closed_share: Milli(closed),
            level_caps: BTreeMap::new(),
        },
    )
}

fn node() -> impl Strategy<Value = NewNode> {
    let gpus = vec(prop_oneof![3 => Just(("h100", 800)), 1 => Just(("a100", 400))], 0..5);
    let place = (weighted(0.5, 0..2u8), weighted(0.5, 0..2u8), weighted(0.4, Just(())));
    (any::<bool>(), 4u32..20, 8u32..64, gpus, place, prop_oneof![3 => Just(0u32), 1 => 1u32..3])
        .prop_map(|(second, cpu, memory, gpus, (label, rack, domain), devices)| NewNode {
            name: name("node"),
            pool: name(if second { "b" } else { "a" }),
            capacity: Capacity {
                cpu: cpu * 50,
                memory,
                gpus: gpus
                    .into_iter()
                    .map(|(model, memory)| Gpu { model: name(model), memory })
                    .collect(),
                devices: (devices > 0).then(|| (name("fpga"), devices)).into_iter().collect(),
            },
            labels: label.map(|l| (name("zone"), name(&format!("z{l}")))).into_iter().collect(),
            rack: rack.map(|r| name(&format!("r{r}"))),
            domain: domain.map(|()| name("d")),
        })
}

/// A series of a few curves that begin anywhere, mostly between slot boundaries.
fn series(most: u64) -> impl Strategy<Value = Series> {
    let curve = vec((0u32..5000, 1..most.max(2)), 0..4)
        .prop_map(|parts| Curve::from_parts(parts.into_iter().map(|(d, q)| (Milli(d), q))));
    vec((1i64..4_000_000, curve), 0..6).prop_map(|runs| {
        let mut at = T0.0 - 600_000;
        Series::from_curves(runs.into_iter().map(|(gap, curve)| {
            at += gap;
            (Time(at), curve)
        }))
    })
}

pub fn world() -> impl Strategy<Value = World> {
    let per_pool = || [series(1500), series(90), series(12_000)];
    let keep = weighted(0.3, (0u32..1000, 0u64..4000, 0u8..3)).prop_map(|keep| {
        keep.map(|(share, gpus_min, level_min)| DomainKeep {
            share: Milli(share),
            keep: NodeReservation { gpus_min, level_min },
        })
    });
    let pools = (pool("a"), pool("b"), any::<bool>(), any::<bool>());
    (settings(), market(), pools, vec(node(), 1..7), keep, per_pool(), per_pool()).prop_map(
        |(settings, market, (a, b, two, alike), mut nodes, keep, of_a, of_b)| {
            for (index, node) in nodes.iter_mut().enumerate() {
                node.name = name(&format!("node{index}"));
                if !two {
                    node.pool = name("a");
                }
            }
            let mut forecast = Forecast::default();
            let mut pools = vec![a];
            forecast.pools.insert(name("a"), of_a.clone());
            if two {
                let rates = if alike { pools[0].rates } else { b.rates };
                pools.push(Pool { rates, ..b });
                forecast.pools.insert(name("b"), if alike { of_a } else { of_b });
            }
            let domain = Domain { name: name("d"), keep };
            World { settings, market, pools, nodes, domain, forecast }
        },
    )
}

fn each() -> impl Strategy<Value = Resources> {
    let gpu = prop_oneof![
        2 => Just(0u32), 1 => Just(100), 1 => Just(350), 2 => Just(500), 4 => Just(1000),
        2 => Just(2000), 1 => Just(3000)
    ];
    let filter = (weighted(0.1, any::<bool>()), weighted(0.08, 300u32..900));
    (0u32..4, 0u32..6, gpu, filter, weighted(0.05, 0u32..3)).prop_map(
        |(cpu, memory, gpu, (model, gpu_memory), devices)| Resources {
            cpu: cpu * 37,
            memory: memory + u32::from(cpu == 0 && gpu == 0 && memory == 0),
            gpu,
            gpu_model: model.filter(|_| gpu > 0).map(|h| name(if h { "h100" } else { "a100" })),
            gpu_memory: gpu_memory.filter(|_| gpu > 0),
            devices: devices.map(|n| (name("fpga"), n)).into_iter().collect(),
        },
    )
}

fn constraints() -> impl Strategy<Value = Constraints> {
    let same = prop_oneof![Just(Topology::Node), Just(Topology::Rack), Just(Topology::Domain)];
    (
        weighted(0.1, weighted(0.3, Just(()))),
        weighted(0.05, Just(())),
        weighted(0.08, 0u8..2),
        weighted(0.1, same),
        weighted(0.08, 1u32..3),
        weighted(0.3, Just(())),
    )
        .prop_map(|(pool, domain, label, same, per_node_max, spread)| Constraints {
            pool: pool.map(|second| name(if second.is_some() { "b" } else { "a" })),
            domain: domain.map(|()| name("d")),
            labels: label.map(|l| (name("zone"), name(&format!("z{l}")))).into_iter().collect(),
            same,
            per_node_max,
            spread: spread.is_some(),
        })
}

fn worth() -> impl Strategy<Value = Worth> {
    let money = || (2u32..9, 1i64..10).prop_map(|(e, n)| Money(n * 10i64.pow(e)));
    prop_oneof![
        3 => money().prop_map(Worth::Flat),
        1 => vec((0u16..1100, money()), 1..4).prop_map(Worth::Steps),
    ]
}

/// A bid of one request.
pub fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![4 => any_ask(), 1 => scattered()]
}

/// A bid that leaves every node partly full for a while: others can be had only by moving it.
fn scattered() -> impl Strategy<Value = Ask> {
    let gpu = prop_oneof![Just(500u32), Just(1000), Just(1000), Just(2000)];
    (gpu, 1u32..5, span_s(600..3000), span_s(60..2000)).prop_map(
        |(gpu, replicas, duration, earliest)| Ask {
            user: ALICE,
            shape: Shape::gang(replicas),
            each: Resources { gpu, ..Resources::default() },
            duration,
            earliest,
            slack: Span::from_min(1),
            constraints: Constraints { spread: true, ..Constraints::default() },
            worth: Worth::Flat(Money::credits(1000)),
        },
    )
}

fn any_ask() -> impl Strategy<Value = Ask> {
    let shape = prop_oneof![
        5 => (prop_oneof![3 => 1u32..3, 1 => 3u32..7], prop_oneof![3 => Just(0u32), 1 => 1u32..3])
            .prop_map(|(min, more)| Shape::Replicas { min, max: min + more }),
        1 => (1u32..8).prop_map(|total| Shape::Gpus { total }),
    ];
    let earliest = prop_oneof![2 => Just(Span(-1)), 1 => Just(Span::ZERO), 3 => span_s(0..5000)];
    let slack = prop_oneof![1 => Just(Span::ZERO), 4 => span_s(0..3600), 2 => span_s(0..18_000)];
    let who = prop_oneof![Just(ALICE), Just(BOB)];
    (who, shape, each(), span_s(1..3000), earliest, slack, constraints(), worth()).prop_map(
        |(user, shape, each, duration, earliest, slack, constraints, worth)| {
            let each = match shape {
                Shape::Gpus { .. } => Resources { gpu: 1000, ..each },
                Shape::Replicas { .. } => each,
            };
            Ask { user, shape, each, duration, earliest, slack, constraints, worth }
        },
    )
}

/// Something that happens.
pub fn act() -> impl Strategy<Value = Act> {
    let windows = vec((span_s(0..1800), span_s(1..1200)), 0..3);
    prop_oneof![
        10 => ask().prop_map(Act::Submit),
        2 => ask().prop_map(Act::Hold),
        1 => Just(Act::Accept),
        4 => (ask(), any::<bool>()).prop_map(|(ask, soft)| Act::Enqueue(ask, soft)),
        3 => Just(Act::Pass),
        3 => span_s(1..900).prop_map(Act::Wait),
        1 => (0usize..8).prop_map(Act::Exit),
        1 => (0usize..8).prop_map(Act::Cancel),
        1 => (0usize..8).prop_map(Act::Drain),
        2 => (0usize..8).prop_map(Act::Resume),
        1 => (0usize..8).prop_map(Act::Lose),
        1 => (0usize..8, windows).prop_map(|(node, windows)| Act::Maintain(node, windows)),
    ]
}

impl Ask {
    /// The request, made at `now`.
    pub fn request(&self, now: Time) -> Request {
        let earliest = now + self.earliest;
        Request {
            shape: self.shape,
            each: self.each.clone(),
            duration: self.duration,
            window: Window { earliest, deadline: earliest.max(now) + self.duration + self.slack },
            constraints: self.constraints.clone(),
            after: Vec::new(),
        }
    }

    /// The bid, made at `now`.
    pub fn bid(&self, now: Time) -> Bid {
        let request = self.request(now);
        let mut bid = Bid::single(self.user, request.clone(), Money::ZERO);
        bid.value = match &self.worth {
            Worth::Flat(worth) => Value::Flat(*worth),
            Worth::Steps(steps) => {
                let mut at: Vec<u16> = steps.iter().map(|(share, _)| *share).collect();
                let mut worths: Vec<Money> = steps.iter().map(|(_, worth)| *worth).collect();
                at.sort_unstable();
                at.dedup();
                worths.sort_unstable_by(|a, b| b.cmp(a));
                let first = request.window.deadline - self.slack;
                let by = |share: u16| {
                    first + Span(self.slack.0 * i64::from(share) / 1000 + i64::from(share))
                };
                let step = |(share, worth)| ValueStep { by: by(share), worth };
                Value::Steps(at.into_iter().zip(worths).map(step).collect())
            }
        };
        bid
    }
}

impl World {
    /// The bench that this world stands on.
    pub fn bed(&self) -> Bed {
        let mut bed = Bed::with(0, self.settings.clone(), self.market.clone());
        for pool in &self.pools {
            bed.done(Command::PutPool { pool: pool.clone() });
        }
        bed.done(Command::PutDomain { domain: self.domain.clone() });
        let reply = bed.send(Command::Join { nodes: self.nodes.clone() });
        assert!(matches!(reply, Reply::Joined { .. }), "{reply:?}");
        bed.done(Command::PublishForecast { forecast: Arc::new(self.forecast.clone()) });
        bed
    }
}

/// A world with a history behind it.
pub fn lived_in() -> impl Strategy<Value = (World, Vec<Act>)> {
    (world(), vec(act(), 0..25))
}

/// The bench of a world after its history.
pub fn bed_of((world, acts): &(World, Vec<Act>)) -> Bed {
    let mut bed = world.bed();
    for act in acts {
        bed.act(act);
    }
    bed
}

/// A part of the cases that are asked for: each of these drives a world through a history.
pub fn some_cases(part: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig { cases: (config.cases / part).max(1), ..config }
}

pub fn with_bid(bid: Bid) -> NewJob {
    let user = bid.user;
    let terms = Terms::Bid { bid, most: None, overrun: Overrun::Extend, release_when_idle: false };
    new_job(user, terms)
}

fn pick<T>(from: Vec<T>, index: usize) -> Option<T> {
    let len = from.len().max(1);
    from.into_iter().nth(index % len)
}

/// Whether there is work that can be made to give way. It is kept apart from maintenance and lost
/// nodes here: who gives way to them, and when, is no matter of prices.
fn has_soft_work(state: &State) -> bool {
    let grows = |part: &Part| part.request.shape.growth() > 0;
    state.jobs().filter(|job| job.ended.is_none()).any(|job| {
        job.queue().is_some_and(|queue| queue.preemptible) || job.parts.iter().any(grows)
    })
}

/// Whether work that gives way might have to give way to what hardware does.
fn gives_way_to_hardware(state: &State) -> bool {
    let moves_on = |job: &Arc<Job>| job.parts.iter().any(|part| part.next().is_some());
    state.cluster().nodes().any(|node| !node.maintenance.is_empty()) || state.jobs().any(moves_on)
}

/// All live tasks, by job.
fn live_tasks(state: &State) -> Vec<(JobId, Vec<TaskId>)> {
    let tasks = |job: JobId, index: usize, part: &Part| {
        let live = part.tasks().iter().enumerate().filter(|(_, task)| task.is_live());
        let attempt = part.attempt;
        live.map(move |(rank, _)| TaskId { job, part: index as u16, attempt, rank: rank as u32 })
            .collect::<Vec<_>>()
    };
    let of = |job: &Arc<Job>| {
        let parts = job.parts.iter().enumerate();
        parts.flat_map(|(index, part)| tasks(job.id, index, part)).collect::<Vec<_>>()
    };
    let jobs = state.jobs().filter(|job| job.ended.is_none());
    jobs.map(|job| (job.id, of(job))).filter(|(_, tasks)| !tasks.is_empty()).collect()
}

impl Bed {
    /// Lets something happen.
    pub fn act(&mut self, act: &Act) {
        let node = |bed: &Bed, index: usize| {
            let nodes: Vec<NodeId> = bed.state.cluster().nodes().map(|n| n.id).collect();
            pick(nodes, index).unwrap()
        };
        match act {
            Act::Submit(ask) => {
                let bid = ask.bid(self.at);
                self.send(Command::Submit { key: None, job: with_bid(bid) });
            }
            Act::Hold(ask) => {
                let bid = ask.bid(self.at);
                self.send(Command::Hold { key: None, bid });
            }
            Act::Accept => {
                let hold = self.state.holds().next().map(|h| (h.id, h.bid.user));
                if let Some((hold, user)) = hold {
                    let overrun = Overrun::Stop;
                    let terms = Terms::Hold { hold, overrun, release_when_idle: false };
                    self.send(Command::Submit { key: None, job: new_job(user, terms) });
                }
            }
            Act::Enqueue(ask, preemptible) => {
                let preemptible = *preemptible && !gives_way_to_hardware(&self.state);
                let queue =
                    QueueTerms { queue: name("default"), preemptible, release_when_idle: false };
                let terms = Terms::Queue { request: ask.request(self.at), queue };
                self.send(Command::Submit { key: None, job: new_job(ask.user, terms) });
            }
            Act::Pass => self.pass(),
            Act::Wait(span) => self.until(self.at + *span),
            Act::Exit(index) => {
                if let Some((_, tasks)) = pick(live_tasks(&self.state), *index) {
                    for task in tasks {
                        self.send(Command::Started { task });
                        self.send(Command::Exited { task, code: 0, at: None });
                    }
                }
            }
            Act::Cancel(index) => {
                let jobs = self.state.jobs().filter(|job| job.ended.is_none());
                if let Some(job) = pick(jobs.map(|job| job.id).collect(), *index) {
                    self.send(Command::Cancel {
                        job,
                        by: era_core::accounts::Actor::Administrator,
                    });
                }
            }
            Act::Drain(index) => {
                self.send(Command::Drain { node: node(self, *index), stop_at: None });
            }
            Act::Resume(index) => {
                self.send(Command::Resume { node: node(self, *index) });
            }
            Act::Lose(index) => {
                if !has_soft_work(&self.state) {
                    self.send(Command::Lost { node: node(self, *index) });
                }
            }
            Act::Maintain(index, windows) => {
                if has_soft_work(&self.state) {
                    return;
                }
                let mut at = self.at;
                let windows = windows.iter().map(|(gap, len)| {
                    let from = at + *gap;
                    at = from + *len;
                    (from, at)
                });
                let windows = windows.collect();
                self.send(Command::SetMaintenance { node: node(self, *index), windows });
            }
        }
    }
}
