//! Random requests, bids and jobs: every shape, a few of them impossible.

use std::collections::BTreeMap;

use era_core::bid::{
    Alternative, Attributes, Bid, Constraints, Request, Shape, Topology, Value, ValueStep, Window,
};
use era_core::input::{Array, NewJob, Terms};
use era_core::job::{After, Overrun, QueueTerms, When};
use era_core::resources::Resources;
use era_core::units::{HoldId, JobId, Money, Span, Time, UserId};

use super::dice::Dice;
use super::world::{DOMAINS, Habits, POOLS, QUEUES, USERS, some_name};
use crate::bed::name;

/// A user, who seldom does not exist.
pub fn some_user(dice: &mut Dice) -> UserId {
    if dice.once_in(30) { UserId(99) } else { UserId(1 + dice.below(USERS as usize) as u32) }
}

pub fn request(dice: &mut Dice, now: Time) -> Request {
    let s = Span::from_s;
    let mut each = Resources {
        gpu: dice.one_of(&[1000, 0, 500, 2000, 1000, 4000, 300, 8000]),
        cpu: dice.one_of(&[1000, 0, 4000, 500]),
        memory: dice.one_of(&[1024, 0, 8192]),
        ..Resources::default()
    };
    let shape = match dice.below(8) {
        0..=3 => Shape::gang(dice.one_of(&[1, 1, 2, 3])),
        4 | 5 => {
            let min = dice.within(1, 2) as u32;
            Shape::Replicas { min, max: min + dice.within(1, 3) as u32 }
        }
        6 => {
            each.gpu = 1000;
            Shape::Gpus { total: dice.within(1, 6) as u32 }
        }
        _ => Shape::gang(dice.one_of(&[4, 8])),
    };
    let duration = dice.one_of(&[s(60), s(600), s(45), s(1800), s(17), Span(1), s(3600)]);
    let earliest = match dice.below(4) {
        0 | 1 => now,
        2 => now + Span(dice.within(0, 600_000)),
        _ => Time((now.0 - 60_000).max(0)),
    };
    let slack = dice.one_of(&[s(7200), s(0), s(60), s(600)]);
    let deadline = earliest.max(now) + duration + slack;
    let window = Window { earliest, deadline };
    let constraints = constraints(dice, &mut each);
    Request { shape, each, duration, window, constraints, after: Vec::new() }
}

/// What most nodes can run, though not much of it at a time, and not soon over.
fn plain(dice: &mut Dice, now: Time) -> Request {
    let s = Span::from_s;
    let each = Resources {
        gpu: dice.one_of(&[1000, 2000, 4000]),
        cpu: 500,
        memory: 1024,
        ..Resources::default()
    };
    let duration = dice.one_of(&[s(600), s(1800), s(3600)]);
    let window = Window { earliest: now, deadline: now + duration };
    let (constraints, after) = (Constraints::default(), Vec::new());
    Request {
        shape: Shape::gang(dice.one_of(&[1, 1, 1, 2])),
        each,
        duration,
        window,
        constraints,
        after,
    }
}

fn constraints(dice: &mut Dice, each: &mut Resources) -> Constraints {
    let mut constraints = Constraints::default();
    match dice.below(24) {
        12 | 13 => constraints.pool = Some(some_name(dice, &POOLS)),
        14 => constraints.domain = Some(some_name(dice, &DOMAINS)),
        15 => constraints.labels = BTreeMap::from([(name("zone"), name("a"))]),
        16 => constraints.same = Some(Topology::Node),
        17 => constraints.same = Some(Topology::Rack),
        18 => constraints.same = Some(Topology::Domain),
        19 => constraints.per_node_max = Some(1),
        20 => constraints.spread = true,
        21 => each.devices = BTreeMap::from([(name("nic"), 1)]),
        22 if each.gpu > 0 => each.gpu_model = Some(some_name(dice, &["h100", "a100"])),
        23 if each.gpu > 0 => each.gpu_memory = Some(50_000),
        _ => {}
    }
    constraints
}

fn value(dice: &mut Dice, now: Time) -> Value {
    let rich = Money::credits(10_000);
    match dice.below(8) {
        0..=4 => Value::Flat(rich),
        5 => Value::Flat(Money(dice.within(0, 60_000) * 100)),
        _ => {
            let step = |minutes, worth| ValueStep { by: now + Span::from_min(minutes), worth };
            Value::Steps(vec![step(20, rich), step(60, Money::credits(5)), step(600, Money(7))])
        }
    }
}

fn after(dice: &mut Dice, before: &[JobId]) -> Vec<After> {
    let number = dice.one_of(&[1, 1, 2, 3]);
    let known = |dice: &mut Dice| dice.any_of(before).unwrap_or(JobId(1));
    let one = |dice: &mut Dice| After {
        job: if dice.once_in(12) { JobId(dice.below(60) as u64) } else { known(dice) },
        when: dice.one_of(&[When::Ok, When::Any]),
    };
    (0..number).map(|_| one(dice)).collect()
}

pub fn bid(dice: &mut Dice, user: UserId, now: Time) -> Bid {
    let value = value(dice, now);
    let kind = dice.below(8);
    let alternative = |dice: &mut Dice, parts: usize| {
        let mut all_of: Vec<Request> = (0..parts).map(|_| request(dice, now)).collect();
        if parts > 1 && dice.once_in(2) {
            // One after the other, with room for both.
            all_of[1].after = vec![0];
            let before = all_of[0].window.deadline;
            let needed = before + all_of[1].duration;
            all_of[1].window.deadline = all_of[1].window.deadline.max(needed);
        }
        Alternative { all_of }
    };
    let one_of = match kind {
        0..=4 => vec![alternative(dice, 1)],
        5 | 6 => vec![alternative(dice, 2)],
        _ => vec![alternative(dice, 1), alternative(dice, 1)],
    };
    Bid { user, one_of, value }
}

/// A job for some terms; of an array or after others where that is for a queue, and seldom where
/// it is not.
pub fn job(
    dice: &mut Dice,
    now: Time,
    habits: Habits,
    holds: &[(HoldId, UserId)],
    before: &[JobId],
) -> NewJob {
    let user = some_user(dice);
    let overrun = dice.one_of(&[Overrun::Extend, Overrun::Stop]);
    let release_when_idle = dice.once_in(2);
    let priority = dice.below(5) as i32 - 2;
    let kind = dice.below(8);
    let mut owner = user;
    let terms = match (kind, dice.any_of(holds)) {
        (kind, _) if kind < if habits.is_crowded { 7 } else { 3 } => {
            let queue = QueueTerms {
                queue: some_name(dice, &QUEUES[..habits.queues]),
                preemptible: dice.once_in(2),
                release_when_idle,
            };
            let request = match habits.is_crowded && !dice.once_in(4) {
                true => plain(dice, now),
                false => request(dice, now),
            };
            Terms::Queue { request, queue }
        }
        (6 | 7, Some((hold, held_by))) => {
            owner = if dice.once_in(10) { user } else { held_by };
            Terms::Hold { hold, overrun, release_when_idle }
        }
        _ => {
            let bid = bid(dice, user, now);
            Terms::Bid { bid, most: None, overrun, release_when_idle }
        }
    };
    let attributes = Attributes { field: Some(name("vision")), ..Attributes::default() };
    let for_queue = matches!(terms, Terms::Queue { .. });
    let one_in = |dice: &mut Dice, most| dice.once_in(if for_queue { most } else { 20 });
    let array = one_in(dice, 3).then(|| Array {
        count: dice.one_of(&[3, 1, 2, 5, 8, 3, 2, 0]),
        running_max: dice.one_of(&[
            None,
            Some(1),
            Some(2),
            None,
            Some(1),
            Some(2),
            Some(3),
            Some(0),
        ]),
    });
    let after = if one_in(dice, if habits.is_crowded { 9 } else { 3 }) {
        after(dice, before)
    } else {
        Vec::new()
    };
    NewJob { user: owner, name: None, attributes, priority, terms, array, after }
}
