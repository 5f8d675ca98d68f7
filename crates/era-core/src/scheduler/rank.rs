//! The order of a queue: its policy, and age ahead of everything.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::attained::{class_of, turn_of};
use crate::job::Job;
use crate::queue::fair::{debt, dominant_share};
use crate::queue::fixed::Fixed;
use crate::queue::formula::{Formula, Inputs, Var};
use crate::queue::{PolicyRule, Queue};
use crate::resources::{PerResource, Resource};
use crate::state::State;
use crate::units::{JobId, Span, Time, UserId};
use crate::waiting::Place;

/// What orders a job in its queue: smaller goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// False for those whose patience is over: they go first, oldest before all.
    young: bool,
    key: i64,
    /// The policy's, among those of the same key.
    turn: (bool, i64),
    /// The longest wait among equals.
    pub(super) since: Time,
    /// The oldest among those.
    pub(crate) job: JobId,
}

impl Rank {
    /// The rank where the oldest goes first: age and policy agree.
    pub(super) fn by_age(state: &State, queue: &Queue, place: Place) -> Rank {
        let Place { since, job } = place;
        Rank { young: !is_aged(state, queue, since), key: 0, turn: (false, 0), since, job }
    }

    /// Where it stands among those that wait.
    pub(super) fn place(&self) -> Place {
        Place { since: self.since, job: self.job }
    }

    pub(crate) fn is_aged(&self) -> bool {
        !self.young
    }
}

/// What is the same for all jobs of a ranking, or for all jobs of a user. It is looked up once, so
/// that whoever is ranked later, while others start, is ranked as if it had been at first.
pub(super) struct Context<'a> {
    queue: &'a Queue,
    rule: Arc<PolicyRule>,
    /// Whether those of a kind are served oldest first.
    oldest_of_kind_first: bool,
    free: PerResource<u64>,
    total_use: (u128, u64),
    /// What runs of each user have used so far: it counts before it is settled.
    running_use: BTreeMap<UserId, u64>,
    users: BTreeMap<UserId, Owner>,
}

#[derive(Clone, Copy)]
struct Owner {
    user_level: u8,
    group_level: u8,
    used: u64,
    debt: Fixed,
    error: Fixed,
}

/// Whether a job's patience is over.
fn is_aged(state: &State, queue: &Queue, since: Time) -> bool {
    queue.ages && state.now.since(since) >= state.settings.patience
}

/// The waiting jobs of a queue, first to be served first.
pub(crate) fn ranked(state: &State, queue: &Queue) -> Vec<Rank> {
    ranked_by(state, queue, &state.rule_of(queue))
}

/// The same under any rule.
pub(crate) fn ranked_by(state: &State, queue: &Queue, rule: &Arc<PolicyRule>) -> Vec<Rank> {
    let Some(line) = state.waiting.get(&queue.name) else { return Vec::new() };
    let mut context = Context::new(state, queue, rule.clone());
    let mut ranks = Vec::with_capacity(line.len());
    for (place, first) in line.firsts() {
        let places = line.places(*place, first);
        ranks.extend(places.map(|place| context.rank(state, first.kind.example(), place)));
    }
    ranks.sort_unstable();
    ranks
}

/// Any jobs, as this queue would order them.
pub(super) fn rank_jobs<'a>(
    state: &State,
    queue: &Queue,
    jobs: impl Iterator<Item = &'a Arc<Job>>,
) -> Vec<Rank> {
    let mut context = Context::new(state, queue, state.rule_of(queue));
    let mut ranks: Vec<Rank> = jobs.map(|job| context.rank(state, job, Place::of(job))).collect();
    ranks.sort_unstable();
    ranks
}

impl<'a> Context<'a> {
    /// Looks up what the rule asks for, and nothing else.
    pub(super) fn new(state: &State, queue: &'a Queue, rule: Arc<PolicyRule>) -> Context<'a> {
        let formula = match &*rule {
            PolicyRule::Priority { formula } => Some(formula),
            _ => None,
        };
        let asks = |vars: &[Var]| formula.is_some_and(|f| vars.iter().any(|var| f.asks(*var)));
        let needs_free = asks(&[Var::FreeGpus, Var::FreeCpus, Var::FreeMemory]);
        let needs_use = asks(&[Var::Debt]) || matches!(*rule, PolicyRule::FairShare);
        let half_life = state.settings.fair_half_life;
        let running_use = if needs_use { running_use(state) } else { BTreeMap::new() };
        let (settled, users) =
            if needs_use { state.shares.total(state.now, half_life) } else { (0, 0) };
        let running: u128 = running_use.values().map(|used| u128::from(*used)).sum();
        let is_new = |user: &&UserId| !state.shares.knows(**user);
        let newcomers = running_use.keys().filter(is_new).count() as u64;
        let oldest_of_kind_first = formula.is_none_or(Formula::never_falls_with_wait);
        Context {
            queue,
            oldest_of_kind_first,
            free: if needs_free { free_now(state) } else { [0; 3] },
            total_use: (settled + running, users + newcomers),
            running_use,
            users: BTreeMap::new(),
            rule,
        }
    }

    /// Whether those of a kind are served oldest first. Otherwise each instant since which some of
    /// them wait has a rank of its own.
    pub(super) fn oldest_of_kind_first(&self) -> bool {
        self.oldest_of_kind_first
    }

    /// The rank of a job at a place, by itself or another one of its kind.
    pub(super) fn rank(&mut self, state: &State, job: &Job, place: Place) -> Rank {
        let (now, Place { since, job: id }) = (state.now, place);
        let aged = is_aged(state, self.queue, since);
        let key = if aged { 0 } else { self.key(state, job, since) };
        let turn = match *self.rule {
            PolicyRule::Las { .. } if !aged => turn_of(job, now),
            // Those that run before those that wait.
            PolicyRule::Gittins if !aged => (!job.first_part().is_active(), 0),
            _ => (false, 0),
        };
        Rank { young: !aged, key, turn, since, job: id }
    }

    fn key(&mut self, state: &State, job: &Job, since: Time) -> i64 {
        let now = state.now;
        match &*self.rule {
            PolicyRule::Fifo => 0,
            PolicyRule::Sjf => state.estimates.ranked(job).0,
            PolicyRule::Gittins => self.service_index(state, job),
            PolicyRule::Srtf => remaining(state, job, now),
            PolicyRule::Las { limits } => i64::from(class_of(limits, job, self.queue, now)),
            PolicyRule::FairShare => i64::try_from(self.owner(state, job).used).unwrap_or(i64::MAX),
            PolicyRule::Priority { formula } => {
                let formula = formula.clone();
                let inputs = self.inputs(state, job, since);
                // The highest value goes first.
                formula.eval(&inputs).0.saturating_neg()
            }
        }
    }

    /// Expected time for a completion, times its size: what serving it costs. What cannot be
    /// stopped runs to its end, so its mean counts. Where nothing was learned, what a job has had
    /// is taken for what it has left, as under least-attained service.
    fn service_index(&self, state: &State, job: &Job) -> i64 {
        let part = job.first_part();
        let ran = part.progress(state.now);
        let stops = self.queue.preempts && job.queue().is_some_and(|q| q.preemptible);
        let index = match state.estimates.class_of(job) {
            Some(class) if stops => class.index(ran),
            Some(class) => Span((class.mean.0 - ran.0).max(1)),
            None => ran.max(Span::from_min(1)),
        };
        let [cpu, _, gpu] = part.request.units();
        let size = i64::try_from(if gpu > 0 { gpu } else { cpu }).unwrap_or(i64::MAX);
        let cost = index.0.saturating_mul(size);
        // What was learned is not so exact that it pays to stop a job for less than a factor of
        // four: those alike go on in turn.
        if stops { i64::from(cost.max(1).ilog2() / 2) } else { cost }
    }

    fn owner(&mut self, state: &State, job: &Job) -> Owner {
        let total = self.total_use;
        let running = self.running_use.get(&job.user).copied();
        *self.users.entry(job.user).or_insert_with(|| {
            let half_life = state.settings.fair_half_life;
            let error = state.errors.get(&job.user).map_or(1000, |e| e.0);
            let settled = state.shares.of(job.user, state.now, half_life);
            let used = settled.saturating_add(running.unwrap_or(0));
            Owner {
                user_level: state.accounts.user(job.user).map_or(0, |u| u.level),
                group_level: state.accounts.group(job.group).map_or(0, |g| g.level),
                used,
                debt: debt(used, total),
                error: Fixed::ratio(i64::from(error), 1000),
            }
        })
    }

    fn inputs<'j>(&mut self, state: &State, job: &'j Job, since: Time) -> Inputs<'j> {
        let now = state.now;
        let owner = self.owner(state, job);
        let part = job.first_part();
        let units = part.request.units();
        let seconds = |ms: i64| Fixed::ratio(ms, 1000);
        let wide = |n: u64, per: i64| Fixed::ratio(i64::try_from(n).unwrap_or(i64::MAX), per);
        let stated = part.request.duration;
        let attributes = &job.attributes;
        let mut inputs = Inputs {
            field: attributes.field.as_ref(),
            framework: attributes.framework.as_ref(),
            network: attributes.network.as_ref(),
            ..Inputs::default()
        };
        for (var, value) in [
            (Var::UserLevel, Fixed::from(u32::from(owner.user_level))),
            (Var::GroupLevel, Fixed::from(u32::from(owner.group_level))),
            (Var::Priority, Fixed::from(job.priority)),
            (Var::Wait, seconds(now.since(since).0)),
            (Var::Gpus, wide(units[2], 1000)),
            (Var::Cpus, wide(units[0], 1000)),
            (Var::Memory, wide(units[1], 1024)),
            (Var::Replicas, Fixed::from(part.request.shape.promised())),
            (Var::Stated, seconds(stated.0)),
            (Var::Predicted, seconds(state.estimates.ranked(job).0)),
            (Var::Remaining, seconds(remaining(state, job, now))),
            (Var::Attained, wide(part.attained(now), 1_000_000)),
            (Var::Error, owner.error),
            (Var::Debt, owner.debt),
            (Var::FreeGpus, wide(self.free[2], 1000)),
            (Var::FreeCpus, wide(self.free[0], 1000)),
            (Var::FreeMemory, wide(self.free[1], 1024)),
            (Var::Parameters, wide(attributes.parameters_k.unwrap_or(0), 1000)),
            (Var::Data, wide(attributes.data_mib.unwrap_or(0), 1024)),
            (Var::Attempts, Fixed::from(part.attempt)),
        ] {
            inputs.set(var, value);
        }
        inputs
    }
}

/// What each user's runs have used so far, as fair shares count it.
fn running_use(state: &State) -> BTreeMap<UserId, u64> {
    let mut uses = BTreeMap::new();
    for job in state.active.iter().filter_map(|id| state.jobs.get(id)) {
        for part in &job.parts {
            let Some(run) = part.run() else { continue };
            let Some(pool) = state.calendar.pool(&run.plan.pool) else { continue };
            let share = dominant_share(&part.request.units(), &pool.capacity());
            let ran = state.now.since(run.since).0.max(0).unsigned_abs();
            let used: &mut u64 = uses.entry(job.user).or_default();
            *used = used.saturating_add(share.saturating_mul(ran));
        }
    }
    uses
}

/// How long a job is expected to run still.
fn remaining(state: &State, job: &Job, now: Time) -> i64 {
    let part = job.first_part();
    (state.estimates.ranked(job).0 - part.progress(now).0).max(0)
}

/// What nobody uses at this moment, cluster-wide.
pub(crate) fn free_now(state: &State) -> PerResource<u64> {
    let now = state.now;
    let mut free = [0u64; 3];
    for node_calendar in state.calendar.pools().iter().flat_map(|p| &p.nodes) {
        if node_calendar.node.health != crate::cluster::Health::Up {
            continue;
        }
        let at = crate::units::Span(1);
        let taken = node_calendar.peak(now, now + at, now + at);
        let gpus: u64 = taken[crate::calendar::GPU0..]
            .iter()
            .take(node_calendar.node.capacity.gpus.len())
            .map(|used| u64::from(*used))
            .sum();
        let used = [u64::from(taken[0]), u64::from(taken[1]), gpus];
        for resource in Resource::ALL {
            let r = resource as usize;
            free[r] += node_calendar.node.capacity.amount(resource).saturating_sub(used[r]);
        }
    }
    free
}
