//! What people, machines and administrators of the sampled journal want, at random.

use std::collections::BTreeMap;
use std::sync::Arc;

use era_core::accounts::Actor;
use era_core::bid::{Alternative, Attributes, Bid, Request, Shape, Value, ValueStep, Window};
use era_core::cluster::Health;
use era_core::forecast::{Curve, Forecast, Series};
use era_core::input::{NewJob, Terms};
use era_core::job::{Overrun, QueueTerms};
use era_core::market::{MarketRules, MechanismChoice};
use era_core::queue::PolicyRule;
use era_core::queue::formula::Formula;
use era_core::resources::Resources;
use era_core::settings::Backfill;
use era_core::units::{HoldId, JobId, Milli, Money, NodeId, Span, Time, UserId};
use era_core::{Command, State};

use era_drive::name;

use super::house::{QUEUES, USERS};
use crate::seeded::Seeded;

/// How long until somebody wants something again: shorter by day.
pub(super) fn pause(seeded: &mut Seeded, since: Span) -> Span {
    let hour = since.0 / 3_600_000 % 24;
    let mean_ms = if (8..20).contains(&hour) { 70_000.0 } else { 180_000.0 };
    Span((-mean_ms * (1.0 - seeded.unit()).ln()) as i64 + 1)
}

/// What is wanted now.
pub(super) fn ask(seeded: &mut Seeded, state: &State, now: Time) -> Command {
    match seeded.range(0, 100) {
        0..50 => submit(seeded, state, now),
        50..60 => {
            let user = some_user(seeded);
            Command::Hold { key: None, bid: bid(seeded, user, now) }
        }
        60..78 => change(seeded, state),
        78..88 => machines(seeded, state, now),
        88..94 => rules(seeded, now),
        _ => Command::Grant { user: some_user(seeded), amount: Money::credits(500) },
    }
}

fn some_user(seeded: &mut Seeded) -> UserId {
    UserId(seeded.range(1, i64::from(USERS) + 1) as u32)
}

fn submit(seeded: &mut Seeded, state: &State, now: Time) -> Command {
    let holds: Vec<(HoldId, UserId)> = state.holds().map(|h| (h.id, h.bid.user)).collect();
    let mut user = some_user(seeded);
    let overrun = seeded.pick(&[Overrun::Extend, Overrun::Stop]);
    let release_when_idle = seeded.range(0, 2) == 0;
    let terms = match seeded.range(0, 10) {
        0 | 1 if !holds.is_empty() => {
            let (hold, held_by) = seeded.pick(&holds);
            user = held_by;
            Terms::Hold { hold, overrun, release_when_idle }
        }
        0..5 => {
            let bid = bid(seeded, user, now);
            Terms::Bid { bid, most: None, overrun, release_when_idle }
        }
        _ => {
            let queue = QueueTerms::new(name(seeded.pick(&QUEUES).0));
            let preemptible = seeded.range(0, 2) == 0;
            let queue = QueueTerms { preemptible, release_when_idle, ..queue };
            Terms::Queue { request: request(seeded, now), queue }
        }
    };
    let field = seeded.pick(&["vision", "language", "speech"]);
    let attributes = Attributes { field: Some(name(field)), ..Attributes::default() };
    let priority = seeded.range(-2, 3) as i32;
    let key = (seeded.range(0, 8) == 0).then(|| name(&format!("key-{}", seeded.range(0, 40))));
    let (array, after) = (None, Vec::new());
    let job = NewJob { attributes, priority, array, after, ..NewJob::new(user, terms) };
    Command::Submit { key, job }
}

fn request(seeded: &mut Seeded, now: Time) -> Request {
    let gpu = seeded.pick(&[1000, 1000, 500, 2000, 4000, 8000]);
    let shape = match seeded.range(0, 8) {
        0..5 => Shape::gang(1),
        5 => Shape::gang(2),
        6 => Shape::Replicas { min: 1, max: 3 },
        _ => Shape::Gpus { total: seeded.pick(&[2, 6, 12]) },
    };
    let gpu = if matches!(shape, Shape::Gpus { .. }) { 1000 } else { gpu };
    let duration = Span::from_s(seeded.pick(&[600, 1_800, 3_600, 7_200, 14_400, 28_800]));
    let earliest = now + Span::from_s(seeded.pick(&[0, 0, 0, 1_800]));
    let deadline = earliest + duration + Span::from_s(seeded.pick(&[600, 7_200, 43_200]));
    let each = Resources { cpu: 2_000, memory: 8 * 1024, gpu, ..Resources::default() };
    let window = Window { earliest, deadline };
    Request::new(shape, each, duration, window)
}

fn bid(seeded: &mut Seeded, user: UserId, now: Time) -> Bid {
    let first = request(seeded, now);
    let [_, _, gpu] = first.units();
    let hours = first.duration.0 as f64 / 3.6e6;
    let worth = Money((gpu as f64 / 1000.0 * hours * 1e6 * (2.0 + 16.0 * seeded.unit())) as i64);
    let value = match seeded.range(0, 3) {
        0 => Value::Flat(worth),
        _ => Value::Steps(vec![
            ValueStep { by: now + first.duration + Span::from_h(1), worth },
            ValueStep { by: now + first.duration + Span::from_h(12), worth: Money(worth.0 / 3) },
        ]),
    };
    let mut one_of = vec![Alternative { all_of: vec![first.clone()] }];
    match seeded.range(0, 8) {
        0 => one_of.push(Alternative { all_of: vec![request(seeded, now)] }),
        1 => {
            let mut second = request(seeded, now);
            second.after = vec![0];
            second.window.deadline =
                second.window.deadline.max(first.window.deadline + second.duration);
            one_of[0].all_of.push(second);
        }
        _ => {}
    }
    Bid { user, one_of, value }
}

fn change(seeded: &mut Seeded, state: &State) -> Command {
    let jobs: Vec<(JobId, UserId)> =
        state.jobs().filter(|j| j.ended.is_none()).map(|j| (j.id, j.user)).collect();
    if jobs.is_empty() {
        return Command::Tick;
    }
    let (job, owner) = seeded.pick(&jobs);
    let by =
        if seeded.range(0, 6) == 0 { Actor::User(some_user(seeded)) } else { Actor::User(owner) };
    match seeded.range(0, 8) {
        0 | 1 => Command::Cancel { job, by },
        2 => Command::Release { job, by },
        3 | 4 => Command::Extend { job, by, span: Span::from_min(10), most: Money::credits(50) },
        5 => {
            let hold = state.holds().next().map_or(HoldId(1), |hold| hold.id);
            Command::DropHold { hold, by: Actor::Administrator }
        }
        _ => {
            let priority = Some(seeded.range(-5, 6) as i32);
            Command::Edit { job, by, priority, limit: None, queue: None }
        }
    }
}

fn machines(seeded: &mut Seeded, state: &State, now: Time) -> Command {
    let nodes = |up: bool| -> Vec<NodeId> {
        let is_up = |health| health == Health::Up;
        state.cluster().nodes().filter(|n| is_up(n.health) == up).map(|n| n.id).collect()
    };
    let (up, down) = (nodes(true), nodes(false));
    if !down.is_empty() && (seeded.range(0, 2) == 0 || up.len() < 6) {
        return Command::Resume { node: seeded.pick(&down) };
    }
    let node = seeded.pick(&up);
    match seeded.range(0, 6) {
        0 | 1 => Command::Lost { node },
        2 => Command::Drain { node, stop_at: None },
        3 => {
            let from = now + Span::from_h(6);
            Command::SetMaintenance { node, windows: vec![(from, from + Span::from_h(1))] }
        }
        4 => Command::SetMaintenance { node, windows: Vec::new() },
        _ => {
            let called = format!("c{}", seeded.range(0, 6));
            Command::Join { nodes: vec![super::house::node(&called, "spare", 2, "a100")] }
        }
    }
}

fn rules(seeded: &mut Seeded, now: Time) -> Command {
    match seeded.range(0, 6) {
        0 => {
            let sources =
                ["wait / 3600 + priority", "wait / (predicted + 60) - gpus / 8", "priority - debt"];
            let formula = Formula::parse(seeded.pick(&sources));
            let rule = formula.map_or(PolicyRule::Fifo, |formula| PolicyRule::Priority { formula });
            Command::PublishPolicy { name: name("priority"), rule }
        }
        1 => Command::RollBackPolicy { name: name("priority"), version: 1 },
        2 => {
            let backfill = seeded.pick(&[Backfill::Easy, Backfill::Conservative, Backfill::None]);
            let settings = era_core::settings::Settings { backfill, ..super::house::settings() };
            Command::SetSettings { settings }
        }
        3 => {
            let surge = MechanismChoice::Surge { low: Milli(500), high: Milli(4000) };
            let basic = MechanismChoice::BasicEcon;
            let mechanism = if seeded.range(0, 2) == 0 { surge } else { basic };
            Command::SetMarket { rules: MarketRules { mechanism, ..MarketRules::default() } }
        }
        _ => Command::PublishForecast { forecast: Arc::new(forecast(seeded, now)) },
    }
}

fn forecast(seeded: &mut Seeded, now: Time) -> Forecast {
    let mut curve = |scale: i64| {
        Curve::from_parts(
            [400, 900, 2_500]
                .map(|density| (Milli(density), seeded.range(0, scale).unsigned_abs())),
        )
    };
    let mut series = |scale: i64| {
        let hours = (0..4).map(|i| now + Span::from_h(i * 6));
        Series::from_curves(hours.map(|from| (from, curve(scale))))
    };
    let pools = [(name("main"), [series(100_000), series(500_000), series(20_000)])];
    Forecast { pools: BTreeMap::from(pools) }
}
