//! Inputs at the edges of every number: refused or carried out, never half-done, never a panic.

use proptest::prelude::*;

use era_core::accounts::Actor;
use era_core::bid::{Alternative, Bid, Constraints, Request, Shape, Value, ValueStep, Window};
use era_core::input::{Array, NewJob, Terms};
use era_core::job::{After, Overrun, QueueTerms, TaskId, When};
use era_core::refusal::QuotaScope;
use era_core::resources::{Capacity, Gpu, Resources};
use era_core::units::{HoldId, JobId, Milli, Money, NodeId, Span, Time, UserId};
use era_core::{Command, Input, Reply, step};

use super::dice::{Dice, story};
use super::rig::Rig;
use super::world;
use crate::bed::name;

/// A number that few expect.
fn edge(dice: &mut Dice) -> i64 {
    let now = crate::bed::T0.0;
    let edges =
        [0, 1, -1, i64::MAX, i64::MIN, i64::MAX - 1, now, 253_402_300_799_000, 1 << 53, 1 << 40];
    dice.one_of(&edges)
}

/// The same for counts.
fn count(dice: &mut Dice) -> u32 {
    dice.one_of(&[1, 0, u32::MAX, u32::MAX - 1, 16_384, 16_385, 1000, 999, 1 << 31])
}

fn request(dice: &mut Dice) -> Request {
    let shape = match dice.below(3) {
        0 => Shape::Replicas { min: count(dice), max: count(dice) },
        1 => Shape::Gpus { total: count(dice) },
        _ => Shape::gang(1),
    };
    let each = Resources {
        cpu: count(dice),
        memory: count(dice),
        gpu: count(dice),
        gpu_model: dice.once_in(3).then(|| name("h100")),
        gpu_memory: dice.once_in(3).then(|| count(dice)),
        devices: if dice.once_in(3) { [(name("nic"), count(dice))].into() } else { [].into() },
    };
    let window = Window { earliest: Time(edge(dice)), deadline: Time(edge(dice)) };
    let per_node_max = dice.once_in(3).then(|| count(dice));
    let constraints = Constraints { per_node_max, ..Constraints::default() };
    let after = if dice.once_in(4) { vec![255] } else { vec![] };
    Request { shape, each, duration: Span(edge(dice)), window, constraints, after }
}

fn bid(dice: &mut Dice, user: UserId) -> Bid {
    let value = match dice.once_in(2) {
        true => {
            let step = ValueStep { by: Time(edge(dice)), worth: Money(edge(dice)) };
            Value::Steps(vec![step; dice.below(20)])
        }
        false => Value::Flat(Money(edge(dice))),
    };
    let all_of = (0..dice.below(3)).map(|_| request(dice)).collect();
    Bid { user, one_of: vec![Alternative { all_of }; dice.below(3)], value }
}

fn hostile(dice: &mut Dice) -> Command {
    let user = UserId(dice.one_of(&[1, 0, u32::MAX]));
    let by = dice.one_of(&[Actor::Administrator, Actor::User(user)]);
    let job = JobId(dice.one_of(&[1, 0, u64::MAX]));
    let node = NodeId(dice.one_of(&[0, 1, u32::MAX]));
    let rank = count(dice);
    let task = TaskId { job, part: dice.raw(), attempt: count(dice), rank };
    let array = dice
        .once_in(3)
        .then(|| Array { count: count(dice), running_max: dice.once_in(2).then(|| count(dice)) });
    let after = vec![After { job, when: When::Any }; dice.one_of(&[0, 0, 0, 1, 65])];
    let new = |terms| NewJob {
        user,
        name: None,
        attributes: Default::default(),
        priority: i32::MIN,
        terms,
        array,
        after,
    };
    match dice.below(16) {
        0 | 1 => {
            let bid = bid(dice, user);
            let most = dice.once_in(2).then(|| Money(edge(dice)));
            let overrun = Overrun::Extend;
            let job = new(Terms::Bid { bid, most, overrun, release_when_idle: true });
            Command::Submit { key: None, job }
        }
        2 | 3 => {
            let queue =
                QueueTerms { queue: name("default"), preemptible: true, release_when_idle: true };
            Command::Submit { key: None, job: new(Terms::Queue { request: request(dice), queue }) }
        }
        4 => Command::Hold { key: None, bid: bid(dice, user) },
        5 => Command::Extend { job, by, span: Span(edge(dice)), most: Money(edge(dice)) },
        6 => {
            let limit = Some(Span(edge(dice)));
            Command::Edit { job, by, priority: Some(i32::MAX), limit, queue: None }
        }
        7 => Command::Checkpointed { task, done: Span(edge(dice)) },
        8 => Command::Grant { user, amount: Money(edge(dice)) },
        9 => Command::Withdraw { user, amount: Money(edge(dice)) },
        10 => {
            let windows = (0..dice.below(4)).map(|_| (Time(edge(dice)), Time(edge(dice))));
            Command::SetMaintenance { node, windows: windows.collect() }
        }
        11 => {
            let gpu = Gpu { model: name("h100"), memory: count(dice) };
            let gpus = vec![gpu; dice.one_of(&[1, 0, 64, 65, 255])];
            let (cpu, memory) = (count(dice), count(dice));
            let devices = [(name("nic"), count(dice))].into();
            Command::SetCapacity { node, capacity: Capacity { cpu, memory, gpus, devices } }
        }
        12 => {
            let mut settings = world::settings(dice);
            settings.slot = Span(edge(dice));
            settings.horizon = Span(edge(dice));
            settings.grace = Span(edge(dice));
            settings.patience = Span(edge(dice));
            Command::SetSettings { settings }
        }
        13 => {
            let mut quota = world::quota(dice);
            quota.concurrent = [Some(u64::MAX), Some(0), None];
            quota.hours = [Some(u64::MAX); 3];
            quota.credits = Some(Money(edge(dice)));
            Command::SetQuota { by, scope: QuotaScope::User(user), quota, reason: None }
        }
        14 => {
            let mut pool = world::pool(dice, "main");
            pool.rates.gpu = Money(edge(dice));
            pool.closed_share = Milli(count(dice));
            Command::PutPool { pool }
        }
        _ => Command::DropHold { hold: HoldId(u64::MAX), by },
    }
}

proptest! {
    /// Whatever is refused has changed nothing: the rig compares.
    #[test]
    fn numbers_at_the_edge_never_panic_and_refusals_change_nothing(
        (world, commands) in story(1..60),
    ) {
        let mut rig = Rig::new(&mut Dice::new(&world));
        for faces in &commands {
            let mut dice = Dice::new(faces);
            if dice.once_in(3) {
                rig.play(&faces[1..]);
            }
            rig.send(hostile(&mut dice));
        }
    }

    /// An input out of turn or out of time is refused whole: not even the clock moves.
    #[test]
    fn inputs_out_of_turn_or_out_of_time_change_nothing(
        (world, commands) in story(1..20),
        seq in prop_oneof![Just(0u64), Just(u64::MAX), Just(1)],
        at in prop_oneof![Just(i64::MAX), Just(i64::MIN), Just(-1), Just(253_402_300_799_001)],
    ) {
        let mut rig = Rig::new(&mut Dice::new(&world));
        for faces in &commands {
            rig.play(faces);
        }
        let state = &mut rig.bed.state;
        let before = state.clone();
        let late = Input { seq: state.seq() + 1, at: Time(at), command: Command::Pass };
        let stray = Input { seq, at: state.now(), command: Command::Pass };
        for input in [late, stray] {
            let output = step(state, input);
            let refused = matches!(output.reply, Reply::Refused { .. });
            prop_assert!(refused && output.events.is_empty() && output.effects.is_empty());
            prop_assert_eq!(&*state, &before);
        }
    }
}
