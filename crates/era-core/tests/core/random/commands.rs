//! A random command, of every kind, about what there is and what there is not.

use std::sync::Arc;

use era_core::Command;
use era_core::accounts::{Actor, Group};
use era_core::cluster::Health;
use era_core::input::{NodeChange, Threshold};
use era_core::job::TaskId;
use era_core::refusal::QuotaScope;
use era_core::units::{GroupId, HoldId, JobId, Money, NodeId, Span, UserId};

use super::bids::{bid, job, some_user};
use super::dice::Dice;
use super::rig::Rig;
use super::world::{self, DOMAINS, GROUPS, POLICIES, POOLS, QUEUES, USERS, some_name};
use crate::bed::name;

/// A command that fits the moment.
pub fn command(dice: &mut Dice, rig: &Rig) -> Command {
    let kind = dice.below(100);
    if rig.habits.is_crowded {
        // Much is submitted and tried, and little ends.
        match kind {
            0..=24 => return submit(dice, rig),
            25..=49 => return Command::Pass,
            50..=64 => return report(dice, rig),
            _ => {}
        }
    }
    match kind {
        0..=9 => Command::Tick,
        10..=34 => submit(dice, rig),
        35..=39 => {
            let key = key(dice);
            let user = some_user(dice);
            Command::Hold { key, bid: bid(dice, user, rig.now()) }
        }
        40..=64 => report(dice, rig),
        65..=74 => Command::Pass,
        75..=82 => change(dice, rig),
        83..=92 => cluster(dice, rig),
        _ => house(dice, rig),
    }
}

fn key(dice: &mut Dice) -> Option<era_core::units::Name> {
    dice.once_in(6).then(|| name(dice.one_of(&["k1", "k2", "k3"])))
}

fn submit(dice: &mut Dice, rig: &Rig) -> Command {
    let key = key(dice);
    if key.is_some()
        && dice.once_in(2)
        && let Some(Command::Submit { job, .. }) = &rig.last_submit
    {
        return Command::Submit { key, job: job.clone() };
    }
    let holds: Vec<(HoldId, UserId)> =
        rig.bed.state.holds().map(|hold| (hold.id, hold.bid.user)).collect();
    let open = rig.bed.state.jobs().filter(|job| job.ended.is_none() || job.array.is_some());
    let open: Vec<JobId> =
        open.map(|job| job.array.map_or(job.id, |member| member.first)).collect();
    Command::Submit { key, job: job(dice, rig.now(), rig.habits, &holds, &open) }
}

fn some_job(dice: &mut Dice, rig: &Rig) -> (JobId, Option<UserId>) {
    let jobs: Vec<(JobId, UserId)> =
        rig.bed.state.jobs().filter(|j| j.ended.is_none()).map(|j| (j.id, j.user)).collect();
    match dice.any_of(&jobs) {
        Some((id, user)) if !dice.once_in(12) => (id, Some(user)),
        _ => (JobId(dice.below(40) as u64), None),
    }
}

fn actor(dice: &mut Dice, owner: Option<UserId>) -> Actor {
    match (dice.below(8), owner) {
        (0..=4, Some(owner)) => Actor::User(owner),
        (5, _) => Actor::Administrator,
        _ => Actor::User(some_user(dice)),
    }
}

fn change(dice: &mut Dice, rig: &Rig) -> Command {
    let (job, owner) = some_job(dice, rig);
    let by = actor(dice, owner);
    match dice.below(8) {
        0 => Command::Cancel { job, by },
        1 => Command::CancelArray { job, by },
        2 => Command::Release { job, by },
        3 | 4 => {
            let span = dice.one_of(&[60, 1, 600, 0, 3600]);
            let most = dice.one_of(&[Money::credits(1000), Money::ZERO]);
            Command::Extend { job, by, span: Span::from_s(span), most }
        }
        5 | 6 => Command::Edit {
            job,
            by,
            priority: dice.once_in(2).then_some(7),
            limit: dice.once_in(2).then(|| Span::from_s(dice.one_of(&[300, 10, 0, 7200]))),
            queue: dice.once_in(2).then(|| some_name(dice, &QUEUES)),
        },
        _ => {
            let hold = HoldId(1 + dice.below(12) as u64);
            let owner = rig.bed.state.hold(hold).map(|h| h.bid.user).ok();
            Command::DropHold { hold, by: actor(dice, owner) }
        }
    }
}

fn report(dice: &mut Dice, rig: &Rig) -> Command {
    let live = rig.executor.reachable(&rig.bed.state);
    let unconfirmed: Vec<TaskId> =
        live.iter().filter(|t| !rig.executor.live[t].confirmed).copied().collect();
    let kind = dice.below(16);
    let task = match kind {
        0..=8 => dice.any_of(&unconfirmed).or_else(|| dice.any_of(&live)),
        9..=14 => dice.any_of(&live),
        _ => dice.any_of(&rig.executor.launched),
    };
    let nobody = TaskId { job: JobId(7), part: 1, attempt: 1, rank: 9 };
    let task = task.unwrap_or(nobody);
    // Executors know when it was, say nothing, or lie. By the clock, so that no throw is added.
    let now = rig.bed.state.now();
    let lag =
        [None, Some(-600_000), Some(-1), Some(60_000)][now.0.unsigned_abs() as usize / 1000 % 4];
    let at = lag.map(|ms| now + Span(ms));
    match kind {
        0..=8 if !unconfirmed.is_empty() => Command::Started { task },
        0..=6 => Command::Exited { task, code: 0, at },
        7..=10 => Command::Exited { task, code: dice.one_of(&[0, 0, 0, 1, -9]), at },
        11 => Command::TaskLost { task, reason: name("gone") },
        12 => Command::Checkpointed { task, done: Span::from_s(dice.within(-1, 700)) },
        13 => Command::UsageCrossed { task, threshold: Threshold::GpusIdle },
        14 => Command::Started { task },
        _ => Command::Exited { task, code: dice.one_of(&[0, 1]), at },
    }
}

fn some_node(dice: &mut Dice, rig: &Rig, wanted: Option<Health>) -> NodeId {
    let nodes: Vec<NodeId> = rig
        .bed
        .state
        .cluster()
        .nodes()
        .filter(|n| wanted.is_none_or(|health| n.health == health))
        .map(|n| n.id)
        .collect();
    if dice.once_in(20) { NodeId(77) } else { dice.any_of(&nodes).unwrap_or(NodeId(0)) }
}

/// A few changes of one node, of which one may well be refused.
fn edit_node(dice: &mut Dice, rig: &Rig) -> Command {
    let changes = (0..dice.within(1, 3)).map(|_| match dice.below(5) {
        0 => NodeChange::Domain { domain: dice.once_in(2).then(|| some_name(dice, &DOMAINS)) },
        1 => {
            let from = rig.now() + Span(dice.within(-60_000, 60_000) * 30);
            NodeChange::Maintenance {
                windows: vec![(from, from + Span::from_s(dice.within(-5, 900)))],
            }
        }
        2 => NodeChange::Cordon,
        3 => {
            let soon = rig.now() + Span::from_s(dice.within(-60, 900));
            NodeChange::Drain { stop_at: dice.once_in(2).then_some(soon) }
        }
        _ => NodeChange::Resume,
    });
    let changes = changes.collect();
    Command::EditNode { node: some_node(dice, rig, None), changes }
}

fn cluster(dice: &mut Dice, rig: &Rig) -> Command {
    match dice.below(17) {
        16 => edit_node(dice, rig),
        0 | 1 => Command::Resume { node: some_node(dice, rig, Some(Health::Lost)) },
        2 => Command::Resume { node: some_node(dice, rig, None) },
        3 if dice.once_in(2) => Command::Cordon { node: some_node(dice, rig, None) },
        3 => {
            let node = some_node(dice, rig, None);
            let soon = rig.now() + Span::from_s(dice.within(-60, 900));
            Command::Drain { node, stop_at: dice.once_in(2).then_some(soon) }
        }
        4 | 5 => Command::Lost { node: some_node(dice, rig, Some(Health::Up)) },
        6 => {
            let node = some_node(dice, rig, None);
            Command::SetCapacity { node, capacity: world::capacity(dice) }
        }
        7 | 8 => {
            let node = some_node(dice, rig, None);
            let from = rig.now() + Span(dice.within(-60_000, 60_000) * 30);
            let to = from + Span::from_s(dice.within(-5, 900));
            let windows = if dice.once_in(3) { vec![] } else { vec![(from, to)] };
            Command::SetMaintenance { node, windows }
        }
        9 => {
            let domain = dice.once_in(2).then(|| some_name(dice, &DOMAINS));
            Command::SetDomain { node: some_node(dice, rig, None), domain }
        }
        10 => {
            let of = dice.one_of(&POOLS);
            Command::PutPool { pool: world::pool(dice, of) }
        }
        11 => {
            let of = dice.one_of(&DOMAINS);
            Command::PutDomain { domain: world::domain(dice, of) }
        }
        12 => Command::RemoveDomain { name: some_name(dice, &DOMAINS) },
        13 => Command::Leave { node: some_node(dice, rig, None) },
        _ => {
            let called = format!("new{}", dice.below(9));
            Command::Join { nodes: vec![world::node(dice, &called)] }
        }
    }
}

fn house(dice: &mut Dice, rig: &Rig) -> Command {
    let user = some_user(dice);
    match dice.below(16) {
        0 | 1 => Command::SetSettings { settings: world::settings(dice) },
        2 => Command::SetMarket { rules: world::market(dice) },
        3 => Command::PublishForecast { forecast: Arc::new(world::forecast(dice)) },
        4 => Command::PublishEstimates { estimates: Arc::new(world::estimates(dice)) },
        5 => Command::Grant { user, amount: Money(dice.within(-1, 60_000) * 1000) },
        6 => Command::Withdraw { user, amount: Money(dice.within(-1, 60_000) * 1_000_000) },
        7 => {
            let scope = match dice.once_in(2) {
                true => QuotaScope::Group(GroupId(dice.within(1, 3) as u32)),
                false => QuotaScope::User(user),
            };
            let quota = world::quota(dice);
            Command::SetQuota { by: actor(dice, None), scope, quota, reason: None }
        }
        8 => {
            let id = dice.within(1, i64::from(USERS) + 1) as u32;
            let mut user = world::user(dice, id);
            user.group = GroupId(dice.within(1, i64::from(GROUPS)) as u32);
            Command::PutUser { user }
        }
        9 => {
            let id = GroupId(dice.within(1, i64::from(GROUPS) + 1) as u32);
            Command::PutGroup { group: Group { id, level: 2, quota: world::quota(dice) } }
        }
        10 | 11 => {
            let index = dice.below(QUEUES.len());
            Command::PutQueue { queue: world::queue(dice, index) }
        }
        12 => Command::RemoveQueue { name: some_name(dice, &QUEUES) },
        13 => {
            let of = dice.one_of(&POLICIES);
            Command::PublishPolicy { name: name(of), rule: world::rule(dice) }
        }
        14 => {
            let version = dice.below(3) as u32;
            Command::RollBackPolicy { name: some_name(dice, &POLICIES), version }
        }
        _ => {
            let _ = rig;
            Command::Pass
        }
    }
}
