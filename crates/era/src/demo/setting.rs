//! Where the story plays: a small cluster, three users, and what is expected of the day.

use era_core::accounts::{Group, User};
use era_core::bid::{Request, Shape, Window};
use era_core::cluster::Pool;
use era_core::forecast::{Curve, Forecast, Series};
use era_core::input::NewNode;
use era_core::resources::{Capacity, Gpu, Resources};
use era_core::settings::Settings;
use era_core::units::{GroupId, Milli, Money, Span, Time, UserId};

use super::tell::USERS;
use super::world::name;
use era_drive::SiteBuilder;
use era_sim::seeded::Seeded;

/// Monday, 16 November 2026.
const DAY: Time = Time::from_s(1_794_787_200);
/// What each user begins with.
pub(super) const WALLET: Money = Money::credits(3_000);

/// A time of the day; hours may go on into the next.
pub(super) fn at(hour: i64, minute: i64) -> Time {
    DAY + Span::from_h(hour) + Span::from_min(minute)
}

/// Pools, nodes, users and the forecast; the rules as they come, but for a horizon that is enough
/// for a day.
pub(super) fn site(random: &mut Seeded) -> anyhow::Result<SiteBuilder> {
    let mut nodes = Vec::new();
    for (node, rack) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")] {
        nodes.push(new_node(node, "gpu", rack, 8)?);
    }
    nodes.push(new_node("cpu1", "cpu", "b", 0)?);
    let group = |id| Group { level: 1, ..Group::new(GroupId(id)) };
    let user = |index: u32| {
        let user = User::new(UserId(index + 1), GroupId(index / 2 + 1));
        (User { level: 1, ..user }, WALLET)
    };
    Ok(SiteBuilder {
        settings: Settings { horizon: Span::from_days(2), ..Settings::default() },
        pools: vec![Pool::new(name("gpu")?), Pool::new(name("cpu")?)],
        nodes,
        groups: vec![group(1), group(2)],
        users: (0..USERS.len() as u32).map(user).collect(),
        forecast: Some(expected(random)?),
        ..SiteBuilder::default()
    })
}

fn new_node(node: &str, pool: &str, rack: &str, gpus: usize) -> anyhow::Result<NewNode> {
    let gpus = vec![Gpu { model: name("h100")?, memory: 81_920 }; gpus];
    let capacity = Capacity { cpu: 64_000, memory: 512 * 1024, gpus, devices: Default::default() };
    let rack = Some(name(rack)?);
    Ok(NewNode { rack, ..NewNode::new(name(node)?, name(pool)?, capacity) })
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
    Request::new(
        Shape::gang(replicas),
        Resources {
            cpu: gpus * 4_000,
            memory: gpus * 32 * 1024,
            gpu: gpus * 1_000,
            ..Resources::default()
        },
        duration,
        Window { earliest, deadline },
    )
}
