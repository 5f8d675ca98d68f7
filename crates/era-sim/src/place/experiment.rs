//! The experiment itself: an empty cluster on the core's calendar, pods placed one by one, and
//! what was allocated when so much demand had arrived.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use era_core::bid::{Constraints, Request, Shape, Window};
use era_core::calendar::{
    BookingHolder, Calendar, Layer, Load, Market, NodeCalendar, PoolCalendar, Seat,
};
use era_core::cluster::{Cluster, Eligibility, Health, Node, Pool, Purpose};
use era_core::forecast::Forecast;
use era_core::market::MarketRules;
use era_core::placement::{Choice, Gang, Scorer, Typical};
use era_core::resources::{Capacity, Gpu, WHOLE_GPU};
use era_core::settings::Settings;
use era_core::units::{JobId, Name, NodeId, Span, Time};

use super::comparator::Comparing;
use super::draw::{draw, shuffled};
use super::typical::{Learned, Weighing, learn};
use super::{ListedNode, PlacementPolicy, Pod};
use crate::BadInput;
use crate::seeded::Seeded;

/// The demand at which what is allocated is looked at, in percent of the GPU capacity.
pub const DEMANDS: [u32; 5] = [95, 100, 110, 120, 130];
/// How often typical work is learned anew from arrivals; sooner at first.
const RELEARN_AFTER: usize = 500;

const NOW: Time = Time(0);
/// Pods never leave; the calendar only has to reach a little further than one slot.
const DURATION: Span = Span::from_days(1);
const END: Time = Time(NOW.0 + DURATION.0);

/// What is tried.
#[derive(Clone, Debug)]
pub struct PlacementExperiment {
    pub nodes: Vec<ListedNode>,
    /// The pods to draw from.
    pub pods: Vec<Pod>,
    pub policy: PlacementPolicy,
    /// Where typical work is learned from, for the rules that use it.
    pub learned: Learned,
}

/// What one seed gave.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementOutcome {
    /// Percent of the GPU capacity that was allocated, at each of [`DEMANDS`]: the mean over the
    /// arrivals at which the demand was that many percent, rounded, or the first one beyond.
    pub allocated: [f64; DEMANDS.len()],
    /// How many pods arrived.
    pub arrivals: usize,
    /// How many of them fitted nowhere.
    pub dropped: usize,
    /// How long it took.
    pub wall_s: f64,
}

/// Mean and spread over seeds, of one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub mean: f64,
    pub deviation: f64,
    pub min: f64,
    pub max: f64,
}

impl Summary {
    /// Of at least one figure.
    pub fn of(figures: &[f64]) -> Summary {
        let count = figures.len().max(1) as f64;
        let mean = figures.iter().sum::<f64>() / count;
        let variance = figures.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let fold = |f: fn(f64, f64) -> f64| figures.iter().copied().reduce(f).unwrap_or(mean);
        Summary { mean, deviation: variance.sqrt(), min: fold(f64::min), max: fold(f64::max) }
    }
}

/// Runs the experiment once for each seed, on all cores. `progress` hears of each percent of
/// demand that has arrived: 130 times a seed.
pub fn run_seeds(
    experiment: &PlacementExperiment,
    seeds: &[u64],
    progress: &(dyn Fn() + Sync),
) -> Result<Vec<PlacementOutcome>, BadInput> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((*seed, experiment.run(*seed, progress)));
        }
        done
    };
    let mut outcomes: BTreeMap<u64, Result<PlacementOutcome, BadInput>> =
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..cores.min(seeds.len())).map(|_| scope.spawn(work)).collect();
            let done = threads.into_iter().flat_map(|thread| match thread.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            done.collect()
        });
    let lost = || BadInput::new("each seed may be given once");
    seeds.iter().map(|seed| outcomes.remove(seed).ok_or_else(lost)?).collect()
}

impl PlacementExperiment {
    /// One seed: the order of arrival, and the order of nodes among equals.
    #[expect(clippy::disallowed_methods, reason = "how long the run took is part of its report")]
    pub fn run(&self, seed: u64, progress: &dyn Fn()) -> Result<PlacementOutcome, BadInput> {
        let start = Instant::now();
        let mut seeded = Seeded::new(seed);
        let order = shuffled(self.nodes.len(), &mut seeded);
        let mut world = World::new(self, &order)?;
        let last = DEMANDS[DEMANDS.len() - 1];
        let arrivals = draw(&self.pods, world.capacity * u64::from(last) / 100, &mut seeded);
        let mut placer = Placer::new(self, &world, seeded.next());
        let mut curve = Curve::default();
        let mut dropped = 0;
        for (number, index) in arrivals.iter().enumerate() {
            placer.hear(number, &arrivals[..number], &self.pods);
            let ask = &world.asks[*index];
            let seat = placer.choose(&world, ask);
            let gpu = u64::from(ask.each.gpu);
            curve.arrived += gpu;
            match seat {
                Some(seat) => {
                    curve.allocated += gpu;
                    world.book(number, seat, *index);
                }
                None => dropped += 1,
            }
            curve.look(world.capacity, progress);
        }
        let wall_s = start.elapsed().as_secs_f64();
        Ok(PlacementOutcome { allocated: curve.means(), arrivals: arrivals.len(), dropped, wall_s })
    }
}

/// The cluster, and the pods as requests.
struct World {
    calendar: Calendar,
    pool: Name,
    asks: Vec<Request>,
    /// GPU thousandths of all nodes.
    capacity: u64,
}

impl World {
    fn new(experiment: &PlacementExperiment, order: &[usize]) -> Result<World, BadInput> {
        let refused = |refusal: era_core::Refusal| BadInput::new(refusal.to_string());
        let pool = Name::new("gpu").map_err(|error| BadInput::new(error.to_string()))?;
        let choices = Choices::of(&experiment.pods)?;
        let mut cluster = Cluster::default();
        let kind = Pool::new(pool.clone());
        cluster.put_pool(kind).map_err(refused)?;
        let rows = order.iter().map(|index| &experiment.nodes[*index]);
        let nodes: Vec<Node> = rows.map(|row| node(row, &pool, &choices)).collect();
        let gpus: usize = nodes.iter().map(|node| node.capacity.gpus.len()).sum();
        cluster.add_nodes(nodes).map_err(refused)?;
        let market = Arc::new(Market::new(MarketRules::default(), Arc::new(Forecast::default())));
        let slot = Span::from_s(3600);
        let mut calendar = Calendar::new(slot, slot, NOW, market);
        calendar.follow(&cluster);
        let asks = experiment.pods.iter().map(|pod| request(pod, &choices)).collect();
        Ok(World { calendar, pool, asks, capacity: gpus as u64 * u64::from(WHOLE_GPU) })
    }

    fn pool(&self) -> Option<&PoolCalendar> {
        self.calendar.pool(&self.pool).map(|pool| &**pool)
    }

    fn book(&mut self, number: usize, seat: Seat, index: usize) {
        let holder = BookingHolder::Job { job: JobId(number as u64), part: 0, attempt: 1, rank: 0 };
        self.calendar.book(holder, seat, &self.asks[index].each, Layer::Firm, NOW, END);
    }
}

/// Sets of several models that pods name. The core's requests name one model; a set becomes a
/// label of the nodes whose model is in it.
struct Choices(BTreeMap<BTreeSet<Name>, Name>);

impl Choices {
    fn of(pods: &[Pod]) -> Result<Choices, BadInput> {
        let sets: BTreeSet<&BTreeSet<Name>> =
            pods.iter().map(|pod| &pod.models).filter(|models| models.len() > 1).collect();
        let label = |number: usize| {
            Name::new(&format!("models-{number}")).map_err(|e| BadInput::new(e.to_string()))
        };
        let named = sets.into_iter().enumerate();
        named
            .map(|(number, set)| Ok((set.clone(), label(number)?)))
            .collect::<Result<_, _>>()
            .map(Choices)
    }
}

fn node(row: &ListedNode, pool: &Name, choices: &Choices) -> Node {
    let gpu = Gpu { model: row.model.clone(), memory: 0 };
    let labels = choices.0.iter().filter(|(models, _)| models.contains(&row.model));
    Node {
        id: NodeId(0),
        name: row.name.clone(),
        pool: pool.clone(),
        capacity: Capacity {
            cpu: row.cpu,
            memory: row.memory,
            gpus: vec![gpu; row.gpus as usize],
            devices: BTreeMap::new(),
        },
        labels: labels.map(|(_, label)| (label.clone(), label.clone())).collect(),
        rack: None,
        domain: None,
        health: Health::Up,
        maintenance: Vec::new(),
        stop_at: None,
        kept: None,
        closed: false,
    }
}

fn request(pod: &Pod, choices: &Choices) -> Request {
    let label = choices.0.get(&pod.models);
    let labels = label.map(|label| (label.clone(), label.clone()));
    Request {
        constraints: Constraints { labels: labels.into_iter().collect(), ..Constraints::default() },
        ..Request::new(
            Shape::gang(1),
            pod.resources(),
            DURATION,
            Window { earliest: NOW, deadline: END },
        )
    }
}

/// The rule at work.
enum Placer {
    Core { scorer: Scorer, typical: Vec<Typical>, learned: Learned },
    Compared(Comparing),
}

fn weighing(scorer: Scorer) -> Weighing {
    if scorer == Scorer::Fgd { Weighing::ByCount } else { Weighing::BySize }
}

impl Placer {
    fn new(experiment: &PlacementExperiment, world: &World, seed: u64) -> Placer {
        match experiment.policy {
            PlacementPolicy::Core(scorer) => {
                let typical = match experiment.learned {
                    Learned::FromList => {
                        learn(experiment.pods.iter().map(|pod| (pod, 1)), weighing(scorer))
                    }
                    Learned::FromArrivals => Settings::default().typical,
                };
                Placer::Core { scorer, typical, learned: experiment.learned }
            }
            PlacementPolicy::Compared(rule) => {
                let node_calendars = world.pool().map_or(&[][..], |pool| &pool.nodes);
                let nodes =
                    || node_calendars.iter().map(|node_calendar| &node_calendar.node.capacity);
                let cpu_max = nodes().map(|node| i64::from(node.cpu)).max().unwrap_or(0);
                let gpu_max = nodes().map(|node| node.gpus.len() as i64).max().unwrap_or(0);
                let largest = (cpu_max, gpu_max * i64::from(WHOLE_GPU));
                Placer::Compared(Comparing::new(rule, node_calendars.len(), largest, seed))
            }
        }
    }

    /// Learns from what has arrived, now and then, where it is to.
    fn hear(&mut self, number: usize, arrived: &[usize], pods: &[Pod]) {
        let Placer::Core { scorer, typical, learned: Learned::FromArrivals } = self else { return };
        let due = number.is_multiple_of(RELEARN_AFTER)
            || (number < RELEARN_AFTER && number.is_power_of_two());
        if number > 0 && due {
            *typical = learn(arrived.iter().map(|index| (&pods[*index], 1)), weighing(*scorer));
        }
    }

    fn choose(&mut self, world: &World, ask: &Request) -> Option<Seat> {
        let pool = world.pool()?;
        let eligible = Eligibility {
            each: &ask.each,
            constraints: &ask.constraints,
            level: 0,
            gpus: u64::from(ask.each.gpu),
            purpose: Purpose::Promise,
        };
        match self {
            Placer::Core { scorer, typical, .. } => {
                let gang = Gang { request: ask, eligible, from: NOW, to: END, soft_to: NOW };
                gang.place(pool, Choice { scorer: *scorer, typical })?.first().copied()
            }
            Placer::Compared(comparing) => {
                let (place, gpus) = comparing.choose(fitting(pool, &eligible), &ask.each)?;
                Some(Seat { node: pool.nodes[place].node.id, gpus })
            }
        }
    }
}

/// The nodes that can take the pod, with their places and what is taken there.
fn fitting<'a>(
    pool: &'a PoolCalendar,
    eligible: &'a Eligibility<'a>,
) -> impl Iterator<Item = (usize, &'a NodeCalendar, Load)> {
    pool.nodes.iter().enumerate().filter_map(move |(place, node_calendar)| {
        let mut taken = Load::zero(0);
        let fits = node_calendar.admits(eligible)
            && node_calendar.room(NOW, END, NOW, eligible.each, 1, &mut taken) > 0;
        fits.then_some((place, &**node_calendar, taken))
    })
}

/// What was allocated as demand arrived.
#[derive(Default)]
struct Curve {
    arrived: u64,
    allocated: u64,
    percent: u64,
    sums: [(f64, u32); DEMANDS.len()],
}

impl Curve {
    /// Looks at the cluster after an arrival.
    fn look(&mut self, capacity: u64, progress: &dyn Fn()) {
        let percent = (self.arrived * 100 + capacity / 2) / capacity;
        for _ in self.percent..percent {
            progress();
        }
        self.percent = percent;
        for (demand, (sum, count)) in DEMANDS.iter().zip(&mut self.sums) {
            // On a small cluster one arrival may lead past a percent.
            let passed = *count == 0 && u64::from(*demand) < percent;
            if u64::from(*demand) == percent || passed {
                *sum += self.allocated as f64 * 100.0 / capacity as f64;
                *count += 1;
            }
        }
    }

    fn means(&self) -> [f64; DEMANDS.len()] {
        self.sums.map(|(sum, count)| sum / f64::from(count.max(1)))
    }
}
