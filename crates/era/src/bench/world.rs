//! The cluster and the bids that every benchmark measures on: seeded, the same each time.

use era_core::bid::{Bid, Request, Shape, Window};
use era_core::cluster::Pool;
use era_core::forecast::{Curve, Forecast, Series};
use era_core::input::{NewJob, NewNode, Terms};
use era_core::resources::{Capacity, Gpu, Resources};
use era_core::settings::Settings;
use era_core::units::{GroupId, Milli, Money, Span, Time, UserId};
use era_core::{Command, Output, Reply, State};
use era_drive::{Engine, SiteBuilder, name};

use era_sim::seeded::Seeded;

/// When every benchmark starts: a slot boundary.
pub(super) const NOW: Time = Time::from_s(1_800_000_000);
/// How many users bid, ten to a group.
const USERS: u32 = 100;

/// What a benchmark runs on.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub(super) nodes: usize,
    pub(super) reservations: usize,
    pub(super) horizon: Span,
    /// Share of the GPU time of the horizon that is promised.
    pub(super) load: f64,
}

/// Carries out a command at [`NOW`].
pub(super) fn send(engine: &mut Engine, command: Command) -> Output {
    engine.send(NOW, command, None, &mut ())
}

/// What goes with so many GPUs on a node: four cores and 32 GiB each.
pub(super) fn with_gpus(gpus: u32) -> Resources {
    Resources {
        cpu: gpus * 4000,
        memory: gpus * 32 * 1024,
        gpu: gpus * 1000,
        ..Resources::default()
    }
}

/// A gang of so many GPUs: part of a node, or whole nodes of eight.
pub(super) fn request(gpus: u32, duration: Span, window: Window) -> Request {
    Request::new(Shape::gang(gpus.div_ceil(8)), with_gpus(gpus.min(8)), duration, window)
}

/// A bid of the measured kind: 1 to 64 GPUs by powers of two, 10 min to 24 h log-uniform, in a
/// window of up to `window_max` somewhere in the horizon.
pub(super) fn random_bid(seeded: &mut Seeded, horizon: Span, window_max: Span) -> Bid {
    let gpus = 1 << seeded.range(0, 7);
    let duration = log_uniform(seeded, 10.0, 24.0 * 60.0);
    let least = duration.0.min(horizon.0);
    let window = seeded.range(least, window_max.0.min(horizon.0).max(least + 1));
    let earliest = NOW + Span(seeded.range(0, (horizon.0 - window).max(1)));
    let window = Window { earliest, deadline: earliest + Span(window) };
    let user = random_user(seeded);
    Bid::single(user, request(gpus, duration, window), Money::credits(10_000_000))
}

pub(super) fn random_user(seeded: &mut Seeded) -> UserId {
    UserId(seeded.range(0, i64::from(USERS)) as u32)
}

/// Whole seconds between two numbers of minutes.
pub(super) fn log_uniform(seeded: &mut Seeded, from_min: f64, to_min: f64) -> Span {
    let ratio = (to_min / from_min).ln();
    Span::from_s((from_min * 60.0 * (seeded.unit() * ratio).exp()) as i64)
}

/// An empty cluster of nodes of eight GPUs in one pool, with a forecast of busy and idle hours.
#[allow(clippy::expect_used)] // the site is our own
pub(super) fn cluster(scale: Scale) -> Engine {
    let mut site = SiteBuilder {
        settings: Settings { horizon: scale.horizon, ..Settings::default() },
        pools: vec![Pool::new(name("gpu"))],
        nodes: (0..scale.nodes).map(node).collect(),
        forecast: Some(forecast(scale)),
        ..SiteBuilder::default()
    };
    for number in 0..USERS {
        site.user(UserId(number), GroupId(number / 10), Money::MOST);
    }
    let mut engine = Engine::of(&site, NOW, &mut ()).expect("the site is as it may be");
    for number in 0..USERS {
        for _ in 1..50 {
            let user = UserId(number);
            send(&mut engine, Command::Grant { user, amount: Money::MOST });
        }
    }
    engine
}

fn node(index: usize) -> NewNode {
    let gpus = vec![Gpu { model: name("h100"), memory: 81_920 }; 8];
    let capacity = Capacity { cpu: 64_000, memory: 512 * 1024, gpus, devices: Default::default() };
    let rack = Some(name(&format!("r{}", index / 16)));
    NewNode { rack, ..NewNode::new(name(&format!("n{index}")), name("gpu"), capacity) }
}

/// Demand by the hour: it follows the day, and is worth between half and eight times base rate.
fn forecast(scale: Scale) -> Forecast {
    let hours = scale.horizon.0 / 3_600_000 + 48;
    let per_unit = [4000u64, 32 * 1024, 1000];
    let series = per_unit.map(|unit| {
        let capacity = scale.nodes as u64 * 8 * unit;
        Series::from_curves((0..hours).map(|hour| {
            let time = Time(NOW.0.div_euclid(3_600_000) * 3_600_000 + hour * 3_600_000);
            let hour_of_day = (time.0 / 3_600_000).rem_euclid(24);
            // Between 10 % and 70 % of the capacity, highest at 15:00.
            let swing =
                30 * (12 - (hour_of_day - 15).abs().min(24 - (hour_of_day - 15).abs())) / 12;
            let busy = capacity * (10 + 2 * swing as u64 + (hour * 7 % 11) as u64) / 100;
            let parts = [(8000, 5), (4000, 10), (2000, 20), (1000, 35), (700, 30)];
            (time, Curve::from_parts(parts.map(|(d, share)| (Milli(d), busy * share / 100))))
        }))
    });
    Forecast { pools: [(name("gpu"), series)].into() }
}

pub(super) fn submit(bid: Bid) -> Command {
    Command::Submit { key: None, job: NewJob::new(bid.user, Terms::bid(bid)) }
}

/// A cluster with so many live reservations, spread over the horizon, their durations scaled so
/// that they fill the wanted share of it.
pub(super) fn loaded(scale: Scale, seed: u64) -> Engine {
    let mut engine = cluster(scale);
    let mut seeded = Seeded::new(seed);
    let kinds: Vec<(u32, f64)> = (0..scale.reservations)
        .map(|_| (1u32 << seeded.range(0, 7), log_uniform(&mut seeded, 10.0, 1440.0).0 as f64))
        .collect();
    let longest = scale.horizon.0 as f64 / 3.0;
    let target = scale.load * scale.nodes as f64 * 8.0 * scale.horizon.0 as f64;
    let total = |factor: f64| -> f64 {
        kinds.iter().map(|(gpus, ms)| f64::from(*gpus) * (ms * factor).min(longest)).sum()
    };
    // What reaches beyond the horizon's end cannot be placed, so the factor is found, not set.
    let (mut low, mut high) = (1e-6, 1e6);
    for _ in 0..100 {
        let middle: f64 = f64::sqrt(low * high);
        if total(middle) < target { low = middle } else { high = middle }
    }
    for (gpus, ms) in kinds {
        let duration = Span::from_s(((ms * low).min(longest) / 1000.0).max(1.0) as i64);
        for attempt in 0..20 {
            let slack = Span::from_h(2 << attempt.min(5));
            let latest = (scale.horizon.0 - duration.0 - slack.0).max(1);
            let earliest = NOW + Span(seeded.range(0, latest));
            let deadline = earliest + Span(duration.0 + slack.0);
            let request = request(gpus, duration, Window { earliest, deadline });
            let bid = Bid::single(random_user(&mut seeded), request, Money::MOST);
            if matches!(send(&mut engine, submit(bid)).reply, Reply::Accepted { .. }) {
                break;
            }
        }
    }
    engine
}

/// The share of the horizon's GPU time that is promised.
pub(super) fn load_of(state: &State, scale: Scale) -> f64 {
    let promised: f64 = state
        .jobs()
        .flat_map(|job| &job.parts)
        .filter_map(|part| part.plan().map(|plan| (part, plan)))
        .map(|(part, plan)| {
            part.request.units()[2] as f64 / 1000.0 * plan.to.since(plan.from).0 as f64
        })
        .sum();
    promised / (scale.nodes as f64 * 8.0 * scale.horizon.0 as f64)
}
