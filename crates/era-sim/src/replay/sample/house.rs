//! The house of the sampled journal.

use std::collections::BTreeMap;

use era_core::accounts::{Group, User};
use era_core::cluster::{Domain, Pool};
use era_core::input::NewNode;
use era_core::queue::Queue;
use era_core::resources::{Capacity, Gpu};
use era_core::settings::Settings;
use era_core::units::{GroupId, Milli, Money, Span, UserId};
use era_drive::{SiteBuilder, name};

pub(super) const USERS: u32 = 9;
const GROUPS: u32 = 3;
/// Each with the policy that orders it.
pub(super) const QUEUES: [(&str, &str); 3] =
    [("default", "fifo"), ("short", "sjf"), ("ranked", "priority")];

pub(super) fn settings() -> Settings {
    Settings {
        horizon: Span::from_days(2),
        remember: Span::from_h(2),
        patience: Span::from_h(12),
        // Most of a sample is what happens, and not what time alone brings.
        pass_every: Span::from_h(1),
        ..Settings::default()
    }
}

pub(super) fn site() -> SiteBuilder {
    let mut nodes: Vec<NewNode> =
        (0..6).map(|i| node(&format!("a{i}"), "main", 8, "h100")).collect();
    nodes.extend((0..4).map(|i| node(&format!("b{i}"), "spare", 4, "a100")));
    let group = |id| Group { level: id as u8, ..Group::new(GroupId(id)) };
    let user = |id| User {
        level: (id % 3) as u8,
        group_admin: id <= GROUPS,
        ..User::new(UserId(id), GroupId(1 + id % GROUPS))
    };
    let queue = |(queue, policy)| {
        let level = u8::from(queue == "default");
        Queue { level, preempts: queue == "ranked", ..Queue::new(name(queue), name(policy)) }
    };
    let main = Pool { closed_share: Milli(100), ..Pool::new(name("main")) };
    SiteBuilder {
        settings: settings(),
        pools: vec![main, Pool::new(name("spare"))],
        domains: vec![Domain { name: name("east"), keep: None }],
        nodes,
        groups: (1..=GROUPS).map(group).collect(),
        users: (1..=USERS).map(|id| (user(id), Money::credits(100_000))).collect(),
        queues: QUEUES.map(queue).into(),
        ..SiteBuilder::default()
    }
}

pub(super) fn node(called: &str, pool: &str, gpus: usize, model: &str) -> NewNode {
    NewNode {
        domain: (pool == "main").then(|| name("east")),
        ..NewNode::new(
            name(called),
            name(pool),
            Capacity {
                cpu: 64_000,
                memory: 512 * 1024,
                gpus: vec![Gpu { model: name(model), memory: 81_920 }; gpus],
                devices: BTreeMap::new(),
            },
        )
    }
}
