//! A random house: pools, nodes, domains, accounts, queues, rules, forecasts.

use std::collections::BTreeMap;
use std::sync::Arc;

use era_core::Command;
use era_core::accounts::{Group, User};
use era_core::cluster::{Domain, DomainKeep, NodeReservation, Pool, Rates};
use era_core::estimate::feature::Feature;
use era_core::estimate::service::ServiceClass;
use era_core::estimate::{DurationForests, Estimates, Ratio};
use era_core::forecast::{Curve, Forecast, Series};
use era_core::input::NewNode;
use era_core::market::{MarketRules, MechanismChoice};
use era_core::placement::Scorer;
use era_core::queue::fixed::Fixed;
use era_core::queue::formula::Formula;
use era_core::queue::{PolicyRule, Queue};
use era_core::quota::Quota;
use era_core::resources::{Capacity, Gpu};
use era_core::settings::{Backfill, Settings};
use era_core::units::{GroupId, Milli, Money, Name, Span, UserId};

use super::dice::Dice;
use crate::bed::{T0, name};
use crate::predictions::stump;

/// The names that worlds are made of.
pub const POOLS: [&str; 3] = ["main", "spare", "late"];
pub const DOMAINS: [&str; 3] = ["east", "west", "south"];
pub const QUEUES: [&str; 5] = ["default", "short", "fair", "ranked", "least"];
pub const POLICIES: [&str; 6] = ["fifo", "sjf", "srtf", "las", "fair-share", "priority"];
/// The users that exist from the start; others come later or never.
pub const USERS: u32 = 4;
/// The groups that exist from the start.
pub const GROUPS: u32 = 2;

pub fn settings(dice: &mut Dice) -> Settings {
    let s = Span::from_s;
    Settings {
        slot: dice.one_of(&[s(60), s(10), s(7), s(300)]),
        horizon: dice.one_of(&[s(7200), s(1800), s(21_600)]),
        grace: dice.one_of(&[s(30), s(5), Span::ZERO, s(90)]),
        lease: dice.one_of(&[s(30), s(10), Span::ZERO, s(120)]),
        run_min: dice.one_of(&[s(300), s(30), Span::ZERO]),
        hold_for: dice.one_of(&[s(60), s(10), s(600)]),
        holds_max: dice.within(1, 4) as u32,
        refund_unused: dice.one_of(&[Milli(800), Milli(0), Milli(1000)]),
        refund_broken: dice.one_of(&[Milli(1000), Milli(500)]),
        queue_density: dice.one_of(&[Milli(500), Milli(0), Milli(3000)]),
        extend_by: dice.one_of(&[s(600), s(20)]),
        backfill: dice.one_of(&[Backfill::Easy, Backfill::None, Backfill::Conservative]),
        pass_depth: dice.one_of(&[100_000, 2]),
        scorer: dice.one_of(&[
            Scorer::Consolidate,
            Scorer::FirstFit,
            Scorer::BestFit,
            Scorer::Fgd,
            Scorer::LeastStranded,
        ]),
        patience: dice.one_of(&[s(3600), s(60), s(86_400)]),
        fair_half_life: dice.one_of(&[s(3600), s(1)]),
        period: dice.one_of(&[s(86_400), s(600)]),
        remember: dice.one_of(&[s(86_400), s(60), s(1)]),
        remember_max: dice.one_of(&[100_000, 1, 8]),
        ..Settings::default()
    }
}

pub fn market(dice: &mut Dice) -> MarketRules {
    let mechanism = dice.one_of(&[
        MechanismChoice::BasicEcon,
        MechanismChoice::FirstFit { density: Milli(1000) },
        MechanismChoice::OnDemand { density: Milli(700) },
        MechanismChoice::Surge { low: Milli(500), high: Milli(5000) },
    ]);
    MarketRules {
        mechanism,
        floor: dice.one_of(&[Milli(500), Milli(0)]),
        ceiling: dice.one_of(&[Milli(100_000), Milli(2000)]),
    }
}

pub fn capacity(dice: &mut Dice) -> Capacity {
    let gpus = dice.one_of(&[2usize, 1, 4, 8, 0]);
    let model = dice.one_of(&["h100", "a100"]);
    let gpu = Gpu { model: name(model), memory: dice.one_of(&[81_920, 40_960]) };
    let nics = dice.below(3) as u32;
    Capacity {
        cpu: dice.one_of(&[16_000, 4_000]),
        memory: dice.one_of(&[64 * 1024, 16 * 1024]),
        gpus: vec![gpu; gpus],
        devices: if nics == 0 { BTreeMap::new() } else { BTreeMap::from([(name("nic"), nics)]) },
    }
}

pub fn pool(dice: &mut Dice, of: &str) -> Pool {
    let mut level_caps = BTreeMap::new();
    if dice.once_in(3) {
        level_caps.insert(dice.below(3) as u8, dice.one_of(&[Milli(500), Milli(1000), Milli(0)]));
    }
    Pool {
        name: name(of),
        rates: dice.one_of(&[
            Rates::default(),
            Rates { cpu: Money::ZERO, memory: Money::ZERO, gpu: Money::credits(1) },
        ]),
        closed_share: dice.one_of(&[Milli(0), Milli(300), Milli(500)]),
        level_caps,
    }
}

pub fn domain(dice: &mut Dice, of: &str) -> Domain {
    let keep = dice.once_in(2).then(|| DomainKeep {
        share: dice.one_of(&[Milli(500), Milli(1000)]),
        keep: NodeReservation {
            gpus_min: dice.one_of(&[2000, 0, 4000]),
            level_min: dice.one_of(&[2, 0, 9]),
        },
    });
    Domain { name: name(of), keep }
}

pub fn node(dice: &mut Dice, called: &str) -> NewNode {
    let mut labels = BTreeMap::new();
    if dice.once_in(2) {
        labels.insert(name("zone"), name(dice.one_of(&["a", "b"])));
    }
    NewNode {
        name: name(called),
        pool: name(dice.one_of(&POOLS[..2])),
        capacity: capacity(dice),
        labels,
        rack: dice.once_in(2).then(|| name(dice.one_of(&["r1", "r2"]))),
        domain: dice.once_in(3).then(|| name(dice.one_of(&DOMAINS[..2]))),
    }
}

pub fn quota(dice: &mut Dice) -> Quota {
    let mut quota = Quota::UNLIMITED;
    match dice.below(8) {
        5 => quota.concurrent[2] = Some(dice.one_of(&[4000, 1000, 0])),
        6 => quota.hours[2] = Some(dice.one_of(&[8000, 500])),
        7 => quota.credits = Some(dice.one_of(&[Money::credits(50), Money::ZERO])),
        _ => {}
    }
    quota
}

pub fn queue(dice: &mut Dice, index: usize) -> Queue {
    let policy = POLICIES[(index + dice.below(POLICIES.len())) % POLICIES.len()];
    Queue {
        level: dice.below(3) as u8,
        share: dice.one_of(&[Milli(1000), Milli(500), Milli(100)]),
        borrows: !dice.once_in(3),
        preempts: dice.once_in(2),
        ages: !dice.once_in(4),
        waiting_max: dice.one_of(&[1000, 3]),
        running_max: dice.one_of(&[1000, 2]),
        gpus_max: dice.once_in(4).then_some(4000),
        ..Queue::new(name(QUEUES[index]), name(policy))
    }
}

pub fn rule(dice: &mut Dice) -> PolicyRule {
    match dice.below(6) {
        0 => PolicyRule::Fifo,
        1 => PolicyRule::Sjf,
        2 => PolicyRule::Srtf,
        3 => PolicyRule::Las { limits: vec![10, 100 + dice.below(1000) as u64] },
        4 => dice.one_of(&[PolicyRule::FairShare, PolicyRule::Gittins]),
        _ => {
            let sources = [
                "priority + wait",
                "user_level / (gpus - gpus) + 1e9 * error",
                "0 - stated * debt + free_gpus",
            ];
            let formula = Formula::parse(dice.one_of(&sources));
            formula.map_or(PolicyRule::Fifo, |formula| PolicyRule::Priority { formula })
        }
    }
}

pub fn forecast(dice: &mut Dice) -> Forecast {
    let mut series = || {
        let mut curve = || {
            let parts = [1u32, 2, 5].map(|d| (Milli(d * 700), dice.below(6000) as u64));
            Curve::from_parts(parts)
        };
        let (first, second) = (curve(), curve());
        Series::from_curves([(T0, first), (T0 + Span::from_min(40), second)])
    };
    let pools = [(name(POOLS[0]), [series(), series(), series()])];
    Forecast { pools: BTreeMap::from(pools) }
}

pub fn estimates(dice: &mut Dice) -> Estimates {
    let ratio = |m| Ratio { middle: Milli(m), low: Milli(m / 2), high: Milli(m * 2) };
    let users = (1..=USERS).map(|u| (UserId(u), ratio(dice.one_of(&[1000, 100, 0, 3000]))));
    let users = users.collect();
    if dice.one_of(&[false, true]) {
        return Estimates { users, ..Default::default() };
    }
    // Forests and classes that tell jobs apart by size and by what their owners did before.
    let mut forest = |say: [i64; 2]| {
        let feature = dice.one_of(&[Feature::Size, Feature::SizedLast, Feature::UserInARow]);
        stump(feature, dice.one_of(&[0, 5, 11]), say[0], say[1])
    };
    let (low, middle, high) = (forest([1, 4]), forest([4, 14]), forest([9, 40]));
    let class = |up_to, minutes: &[i64]| {
        let durations: Vec<Span> = minutes.iter().map(|m| Span::from_min(*m)).collect();
        ServiceClass::of(Fixed::from_int(up_to), &durations)
    };
    let service = [class(8, &[1, 2, 50]), class(20, &[30, 90])].into_iter().flatten().collect();
    let duration = Some(DurationForests { middle, low, high });
    Estimates { users, duration, service, ..Default::default() }
}

pub fn user(dice: &mut Dice, id: u32) -> User {
    User {
        id: UserId(id),
        group: GroupId(1 + id % GROUPS),
        level: dice.below(3) as u8,
        group_admin: id == 2,
        quota: quota(dice),
    }
}

/// What a house is used for.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// How many queues it has: where there are few, jobs meet in them.
    pub queues: usize,
    /// Whether jobs come faster than they end, most of them for queues.
    pub is_crowded: bool,
}

pub fn habits(dice: &mut Dice) -> Habits {
    Habits { queues: 1 + dice.below(QUEUES.len()), is_crowded: dice.once_in(2) }
}

/// The commands that build a house.
pub fn build(dice: &mut Dice, habits: Habits) -> Vec<Command> {
    let mut commands = Vec::new();
    for of in &POOLS[..2] {
        commands.push(Command::PutPool { pool: pool(dice, of) });
    }
    for of in &DOMAINS[..2] {
        commands.push(Command::PutDomain { domain: domain(dice, of) });
    }
    let nodes = (0..2 + dice.below(4)).map(|i| node(dice, &format!("node{i}"))).collect();
    commands.push(Command::Join { nodes });
    for id in 1..=GROUPS {
        let group = Group { id: GroupId(id), level: id as u8, quota: Quota::UNLIMITED };
        commands.push(Command::PutGroup { group });
    }
    for id in 1..=USERS {
        commands.push(Command::PutUser { user: user(dice, id) });
        let amount = if id == 3 { Money(700_000) } else { Money::credits(100_000) };
        commands.push(Command::Grant { user: UserId(id), amount });
    }
    for index in 0..habits.queues {
        commands.push(Command::PutQueue { queue: queue(dice, index) });
    }
    if dice.once_in(2) {
        commands.push(Command::PublishForecast { forecast: Arc::new(forecast(dice)) });
    }
    commands
}

/// A name of something that may not exist.
pub fn some_name(dice: &mut Dice, of: &[&str]) -> Name {
    if dice.once_in(20) { name("nowhere") } else { name(dice.one_of(of)) }
}
