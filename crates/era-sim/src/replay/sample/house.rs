//! The house of the sampled journal.

use std::collections::BTreeMap;

use era_core::Command;
use era_core::accounts::{Group, User};
use era_core::cluster::{Domain, Pool, Rates};
use era_core::input::NewNode;
use era_core::queue::Queue;
use era_core::quota::Quota;
use era_core::resources::{Capacity, Gpu};
use era_core::settings::Settings;
use era_core::units::{GroupId, Milli, Money, Name, Span, UserId};

pub(super) const USERS: u32 = 9;
const GROUPS: u32 = 3;
/// Each with the policy that orders it.
pub(super) const QUEUES: [(&str, &str); 3] =
    [("default", "fifo"), ("short", "sjf"), ("ranked", "priority")];

pub(super) fn name(text: &str) -> Name {
    Name::new(text).unwrap_or_else(|_| unreachable!("a name of our own"))
}

pub(super) fn settings() -> Settings {
    Settings {
        horizon: Span::from_days(2),
        remember: Span::from_h(2),
        patience: Span::from_h(12),
        ..Settings::default()
    }
}

/// The commands that build it.
pub(super) fn build() -> Vec<Command> {
    let mut commands = vec![
        Command::PutPool { pool: pool("main", Milli(100)) },
        Command::PutPool { pool: pool("spare", Milli(0)) },
        Command::PutDomain { domain: Domain { name: name("east"), keep: None } },
    ];
    let mut nodes: Vec<NewNode> =
        (0..6).map(|i| node(&format!("a{i}"), "main", 8, "h100")).collect();
    nodes.extend((0..4).map(|i| node(&format!("b{i}"), "spare", 4, "a100")));
    commands.push(Command::Join { nodes });
    for id in 1..=GROUPS {
        let group = Group { id: GroupId(id), level: id as u8, quota: Quota::UNLIMITED };
        commands.push(Command::PutGroup { group });
    }
    for id in 1..=USERS {
        let user = User {
            id: UserId(id),
            group: GroupId(1 + id % GROUPS),
            level: (id % 3) as u8,
            group_admin: id <= GROUPS,
            quota: Quota::UNLIMITED,
        };
        commands.push(Command::PutUser { user });
        commands.push(Command::Grant { user: UserId(id), amount: Money::credits(100_000) });
    }
    for (queue, policy) in QUEUES {
        let level = u8::from(queue == "default");
        let queue =
            Queue { level, preempts: queue == "ranked", ..Queue::new(name(queue), name(policy)) };
        commands.push(Command::PutQueue { queue });
    }
    commands
}

fn pool(of: &str, closed_share: Milli) -> Pool {
    Pool { name: name(of), rates: Rates::default(), closed_share, level_caps: BTreeMap::new() }
}

pub(super) fn node(called: &str, pool: &str, gpus: usize, model: &str) -> NewNode {
    NewNode {
        name: name(called),
        pool: name(pool),
        capacity: Capacity {
            cpu: 64_000,
            memory: 512 * 1024,
            gpus: vec![Gpu { model: name(model), memory: 81_920 }; gpus],
            devices: BTreeMap::new(),
        },
        labels: BTreeMap::new(),
        rack: None,
        domain: (pool == "main").then(|| name("east")),
    }
}
