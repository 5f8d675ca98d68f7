//! Where the story plays: a small cluster, three users, and what is expected of the day.

use std::sync::Arc;

use era_core::Command;
use era_core::accounts::{Group, User};
use era_core::bid::{Constraints, Request, Shape, Window};
use era_core::cluster::{Pool, Rates};
use era_core::forecast::{Curve, Forecast, Series};
use era_core::input::NewNode;
use era_core::quota::Quota;
use era_core::resources::{Capacity, Gpu, Resources};
use era_core::units::{GroupId, Milli, Money, Span, Time, UserId};

use super::tell::USERS;
use super::world::{World, name};
use era_sim::seeded::Seeded;

/// Monday, 16 November 2026.
const DAY: Time = Time::from_s(1_794_787_200);
/// What each user begins with.
pub(super) const WALLET: Money = Money::credits(3_000);

/// A time of the day; hours may go on into the next.
pub(super) fn at(hour: i64, minute: i64) -> Time {
    DAY + Span::from_h(hour) + Span::from_min(minute)
}

/// Pools, nodes, users and the forecast.
pub(super) fn furnish(world: &mut World, random: &mut Seeded) -> anyhow::Result<()> {
    for pool in ["gpu", "cpu"] {
        let pool = Pool {
            name: name(pool)?,
            rates: Rates::default(),
            closed_share: Milli(0),
            level_caps: Default::default(),
        };
        world.set_up(Command::PutPool { pool })?;
    }
    let mut nodes = Vec::new();
    for (node, rack) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")] {
        nodes.push(new_node(node, "gpu", rack, 8)?);
    }
    nodes.push(new_node("cpu1", "cpu", "b", 0)?);
    world.set_up(Command::Join { nodes })?;
    let quota = Quota::default();
    for (index, _) in USERS.iter().enumerate() {
        let (id, group) = (UserId(index as u32 + 1), GroupId(index as u32 / 2 + 1));
        world.set_up(Command::PutGroup { group: Group { id: group, level: 1, quota } })?;
        let user = User { id, group, level: 1, group_admin: false, quota };
        world.set_up(Command::PutUser { user })?;
        world.set_up(Command::Grant { user: id, amount: WALLET })?;
    }
    let forecast = Arc::new(expected(random)?);
    world.set_up(Command::PublishForecast { forecast })
}

fn new_node(node: &str, pool: &str, rack: &str, gpus: usize) -> anyhow::Result<NewNode> {
    let gpu = Gpu { model: name("h100")?, memory: 81_920 };
    let capacity = Capacity {
        cpu: 64_000,
        memory: 512 * 1024,
        gpus: vec![gpu; gpus],
        devices: Default::default(),
    };
    Ok(NewNode {
        name: name(node)?,
        pool: name(pool)?,
        capacity,
        labels: Default::default(),
        rack: Some(name(rack)?),
        domain: None,
    })
}

/// What the cheapest of the expected demand would pay from 08:00 on, hour by hour, in thousandths
/// of the base rate: a busy afternoon, and nobody at night.
const EXPECTED: [i64; 15] =
    [600, 700, 850, 1_000, 1_100, 1_600, 2_000, 2_200, 1_800, 1_300, 950, 800, 700, 600, 550];

/// The forecast: a curve an hour, each with a little more demand than there are GPUs. The few
/// that want one most would pay three times as much as the many who want one least.
fn expected(random: &mut Seeded) -> anyhow::Result<Forecast> {
    let mut curves = Vec::new();
    for (hour, least) in (8..).zip(EXPECTED) {
        let least = least * random.range(92, 109) / 100;
        let parts = [(300, 8), (200, 8), (140, 8), (100, 12)];
        let parts = parts.map(|(percent, gpus)| {
            let density = u32::try_from(least * percent / 100).unwrap_or(u32::MAX);
            (Milli(density), gpus * 1000)
        });
        curves.push((at(hour, 0), Curve::from_parts(parts)));
    }
    curves.push((at(8 + EXPECTED.len() as i64, 0), Curve::default()));
    let series = [Series::default(), Series::default(), Series::from_curves(curves)];
    Ok(Forecast { pools: [(name("gpu")?, series)].into() })
}

/// Like replicas of so many GPUs, with the cores and memory that go with them.
pub(super) fn gang(
    replicas: u32,
    gpus: u32,
    duration: Span,
    (earliest, deadline): (Time, Time),
) -> Request {
    Request {
        shape: Shape::gang(replicas),
        each: Resources {
            cpu: gpus * 4_000,
            memory: gpus * 32 * 1024,
            gpu: gpus * 1_000,
            ..Resources::default()
        },
        duration,
        window: Window { earliest, deadline },
        constraints: Constraints::default(),
        after: Vec::new(),
    }
}
