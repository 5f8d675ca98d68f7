//! The whole state of the core, and the bookkeeping that keeps its derived parts true.
//!
//! What decides is small: the cluster, the accounts, the jobs, the holds, the rules. The calendar,
//! the timers and the lists of who waits follow from it and are rebuilt when a state is loaded.
//! Every map shares structure, so a clone is a snapshot and costs next to nothing.

mod books;
mod charges;
mod differences;
mod lines;

use std::sync::Arc;

pub(crate) use books::layer_of;
pub(crate) use charges::{Ending, Settlement};
use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

use crate::accounts::Accounts;
use crate::bid::Request;
use crate::calendar::{Calendar, Market};
use crate::cluster::{Cluster, Eligibility, Purpose};
use crate::estimate::Estimates;
use crate::estimate::feature::{Features, Subject};
use crate::estimate::history::DurationHistories;
use crate::forecast::Forecast;
use crate::job::{Hold, Job};
use crate::ledger::Ledger;
use crate::market::MarketRules;
use crate::output::Reply;
use crate::placement::Choice;
use crate::queue::fair::FairShares;
use crate::queue::{Policies, PolicyRule, Queue};
use crate::quota::QuotaPeriod;
use crate::quota::steps::Steps;
use crate::refusal::Refusal;
use crate::resources::{PerResource, Resource};
use crate::settings::Settings;
use crate::starts::Starts;
use crate::timer::{Timer, timer_of_node};
use crate::units::{GroupId, HoldId, JobId, Milli, Name, Span, Time, UserId};
use crate::usage::Usage;
use crate::waiting::{ArrayBook, WaitingJobs};

/// The version of the core. A journal segment names it: a binary replays segments of its own.
pub const CORE_VERSION: u32 = 4;

/// Everything that the core knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Image", into = "Image")]
pub struct State {
    pub(crate) seq: u64,
    pub(crate) now: Time,
    pub(crate) settings: Arc<Settings>,
    pub(crate) cluster: Cluster,
    pub(crate) accounts: Accounts,
    pub(crate) ledger: Ledger,
    pub(crate) usage: Usage,
    pub(crate) jobs: OrdMap<JobId, Arc<Job>>,
    /// By their first jobs.
    pub(crate) arrays: OrdMap<JobId, ArrayBook>,
    pub(crate) holds: OrdMap<HoldId, Arc<Hold>>,
    pub(crate) queues: Arc<Vec<Queue>>,
    pub(crate) policies: Arc<Policies>,
    pub(crate) shares: FairShares,
    /// How long each user's jobs took, as a ratio to what he stated: a moving mean.
    pub(crate) errors: OrdMap<UserId, Milli>,
    pub(crate) estimates: Arc<Estimates>,
    /// What is remembered of past runs.
    pub(crate) histories: DurationHistories,
    pub(crate) keys: OrdMap<(UserId, Name), Arc<UsedKey>>,
    pub(crate) next_job: u64,
    pub(crate) next_hold: u64,
    /// The next turn in a line of least-attained service.
    pub(crate) next_turn: i64,
    /// When what is no longer needed was looked for last.
    pub(crate) swept: Time,
    /// Whether capacity came free since the last pass: conservative holes may move up then.
    pub(crate) freed: bool,
    /// When the last pass was.
    pub(crate) passed: Time,
    /// Whether anything has happened since then that may let a job start or grow.
    pub(crate) opened: bool,

    // Derived.
    pub(crate) calendar: Calendar,
    pub(crate) timers: OrdSet<(Time, Timer)>,
    /// Jobs that have ended and are remembered, and when they did.
    pub(crate) ended: OrdSet<(Time, JobId)>,
    /// Used keys, and when they were.
    pub(crate) key_ages: OrdSet<(Time, UserId, Name)>,
    /// Those that stand in the line of their queue.
    pub(crate) waiting: OrdMap<Name, WaitingJobs>,
    /// How many of each queue wait for other jobs.
    pub(crate) held: OrdMap<Name, usize>,
    /// Earliest starts of those in a line that the last pass came too early for.
    pub(crate) not_before: OrdSet<(Time, JobId)>,
    /// For whom they wait: the earlier job, or first job of an array, and the one that waits.
    pub(crate) followers: OrdSet<(JobId, JobId)>,
    pub(crate) active: OrdSet<JobId>,
    /// Those of them that may grow.
    pub(crate) elastic: OrdSet<JobId>,
    /// Those of them that are to move on to the line of the next class of service, and when.
    pub(crate) lines: OrdSet<(Time, JobId)>,
    /// What the running jobs of each queue hold.
    pub(crate) running: OrdMap<Name, Running>,
    /// What each capped level has promised itself in each pool, over time.
    pub(crate) level_use: OrdMap<(Name, u8), Arc<Steps>>,
}

/// What the jobs of a queue hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) jobs: u32,
    pub(crate) units: PerResource<u64>,
}

/// A snapshot for readers: it shares structure with the state it was taken of.
pub type Snapshot = State;

/// An idempotency key that was used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct UsedKey {
    pub(crate) at: Time,
    /// Of the request that used it.
    pub(crate) fingerprint: u64,
    pub(crate) reply: Reply,
}

/// What is stored of a state.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Image {
    core_version: u32,
    seq: u64,
    now: Time,
    settings: Arc<Settings>,
    market: MarketRules,
    forecast: Arc<Forecast>,
    cluster: Cluster,
    accounts: Accounts,
    ledger: Ledger,
    usage: Usage,
    jobs: Vec<Arc<Job>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    arrays: Vec<ArrayBook>,
    holds: Vec<Arc<Hold>>,
    queues: Arc<Vec<Queue>>,
    policies: Arc<Policies>,
    shares: FairShares,
    errors: OrdMap<UserId, Milli>,
    estimates: Arc<Estimates>,
    histories: DurationHistories,
    keys: Vec<((UserId, Name), Arc<UsedKey>)>,
    next_job: u64,
    next_hold: u64,
    next_turn: i64,
    swept: Time,
    freed: bool,
    #[serde(default)]
    passed: Time,
    #[serde(default = "yes")]
    opened: bool,
}

/// Of a state that was stored without it: one pass too many does no harm.
fn yes() -> bool {
    true
}

impl From<State> for Image {
    fn from(state: State) -> Image {
        let market = state.calendar.market();
        Image {
            core_version: CORE_VERSION,
            seq: state.seq,
            now: state.now,
            market: market.rules.clone(),
            forecast: market.forecast.clone(),
            settings: state.settings,
            cluster: state.cluster,
            accounts: state.accounts,
            ledger: state.ledger,
            usage: state.usage,
            jobs: state.jobs.values().cloned().collect(),
            arrays: state.arrays.values().copied().collect(),
            holds: state.holds.values().cloned().collect(),
            queues: state.queues,
            policies: state.policies,
            shares: state.shares,
            errors: state.errors,
            estimates: state.estimates,
            histories: state.histories,
            keys: state.keys.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            next_job: state.next_job,
            next_hold: state.next_hold,
            next_turn: state.next_turn,
            swept: state.swept,
            freed: state.freed,
            passed: state.passed,
            opened: state.opened,
        }
    }
}

/// Why a stored state cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the state was written by core version {found}, this is version {CORE_VERSION}: migrate it"
)]
pub struct WrongVersion {
    found: u32,
}

impl TryFrom<Image> for State {
    type Error = WrongVersion;
    fn try_from(image: Image) -> Result<State, WrongVersion> {
        if image.core_version != CORE_VERSION {
            return Err(WrongVersion { found: image.core_version });
        }
        let market = Arc::new(Market::new(image.market, image.forecast));
        let (slot, horizon) = (image.settings.slot, image.settings.horizon);
        let mut state = State {
            seq: image.seq,
            now: image.now,
            calendar: Calendar::new(slot, horizon, image.now, market),
            settings: image.settings,
            cluster: image.cluster,
            accounts: image.accounts,
            ledger: image.ledger,
            usage: image.usage,
            jobs: share(image.jobs).map(|j| (j.id, j)).collect(),
            arrays: image.arrays.into_iter().map(|a| (a.first, a)).collect(),
            holds: image.holds.into_iter().map(|h| (h.id, h)).collect(),
            queues: image.queues,
            policies: image.policies,
            shares: image.shares,
            errors: image.errors,
            estimates: image.estimates,
            histories: image.histories,
            keys: image.keys.into_iter().collect(),
            next_job: image.next_job,
            next_hold: image.next_hold,
            next_turn: image.next_turn,
            swept: image.swept,
            freed: image.freed,
            passed: image.passed,
            opened: image.opened,
            timers: OrdSet::new(),
            ended: OrdSet::new(),
            key_ages: OrdSet::new(),
            waiting: OrdMap::new(),
            held: OrdMap::new(),
            not_before: OrdSet::new(),
            followers: OrdSet::new(),
            active: OrdSet::new(),
            elastic: OrdSet::new(),
            lines: OrdSet::new(),
            running: OrdMap::new(),
            level_use: OrdMap::new(),
        };
        state.derive();
        Ok(state)
    }
}

/// Jobs as they were stored; those of an array have one request in common again.
fn share(jobs: Vec<Arc<Job>>) -> impl Iterator<Item = Arc<Job>> {
    let mut last: Option<Arc<Request>> = None;
    jobs.into_iter().map(move |mut job| {
        if job.array.is_some() {
            let mine = job.first_part().request.clone();
            match &last {
                Some(shared) if **shared == *mine => {
                    Arc::make_mut(&mut job).first_part_mut().request = shared.clone();
                }
                _ => last = Some(mine),
            }
        }
        job
    })
}

impl Default for State {
    fn default() -> State {
        State::new(Settings::default(), MarketRules::default())
    }
}

impl State {
    /// An empty cluster with these rules, and one queue called `default`.
    pub fn new(settings: Settings, market: MarketRules) -> State {
        let market = Arc::new(Market::new(market, Arc::default()));
        let calendar = Calendar::new(settings.slot, settings.horizon, Time(0), market);
        let period = QuotaPeriod::new(settings.period).unwrap_or_default();
        let queues = match (Name::new("default"), Name::new("fifo")) {
            (Ok(name), Ok(policy)) => vec![Queue::new(name, policy)],
            _ => Vec::new(),
        };
        State {
            seq: 0,
            now: Time(0),
            settings: Arc::new(settings),
            cluster: Cluster::default(),
            accounts: Accounts::default(),
            ledger: Ledger::default(),
            usage: Usage::new(period),
            jobs: OrdMap::new(),
            arrays: OrdMap::new(),
            holds: OrdMap::new(),
            queues: Arc::new(queues),
            policies: Arc::default(),
            shares: FairShares::default(),
            errors: OrdMap::new(),
            estimates: Arc::default(),
            histories: DurationHistories::default(),
            keys: OrdMap::new(),
            next_job: 1,
            next_hold: 1,
            next_turn: 1,
            swept: Time(0),
            freed: false,
            passed: Time(0),
            opened: false,
            calendar,
            timers: OrdSet::new(),
            ended: OrdSet::new(),
            key_ages: OrdSet::new(),
            waiting: OrdMap::new(),
            held: OrdMap::new(),
            not_before: OrdSet::new(),
            followers: OrdSet::new(),
            active: OrdSet::new(),
            elastic: OrdSet::new(),
            lines: OrdSet::new(),
            running: OrdMap::new(),
            level_use: OrdMap::new(),
        }
    }

    /// The number of the last input.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The time of the last input.
    pub fn now(&self) -> Time {
        self.now
    }

    /// A snapshot for readers.
    pub fn snapshot(&self) -> Snapshot {
        self.clone()
    }

    /// The rules of the house.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// What is promised where and when.
    pub fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// The accounts of users and groups.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What users and groups hold and have used.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The jobs that are remembered.
    pub fn jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.values()
    }

    pub fn job(&self, job: JobId) -> Result<&Arc<Job>, Refusal> {
        self.jobs.get(&job).ok_or(Refusal::UnknownJob { job })
    }

    /// Whether there was ever a job of this number. One that ended long ago is forgotten.
    pub fn had_job(&self, job: JobId) -> bool {
        (1..self.next_job).contains(&job.0)
    }

    /// The holds that bind.
    pub fn holds(&self) -> impl Iterator<Item = &Arc<Hold>> {
        self.holds.values()
    }

    pub fn hold(&self, hold: HoldId) -> Result<&Arc<Hold>, Refusal> {
        self.holds.get(&hold).ok_or(Refusal::UnknownHold { hold })
    }

    /// The queues, lowest level first.
    pub fn queues(&self) -> &[Queue] {
        &self.queues
    }

    pub fn queue(&self, name: &Name) -> Result<&Queue, Refusal> {
        self.queues.iter().find(|q| q.name == *name).ok_or_else(|| Refusal::Unknown {
            kind: "queue".into(),
            name: name.clone(),
            known: self.queues.iter().map(|q| q.name.clone()).collect(),
        })
    }

    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// The jobs that wait in a queue, the longest wait first; those that wait for other jobs are
    /// not among them.
    pub fn waiting(&self, queue: &Name) -> impl Iterator<Item = JobId> {
        let line = self.waiting.get(queue);
        line.into_iter().flat_map(WaitingJobs::all).map(|place| place.job)
    }

    /// How many jobs wait for their turn in a queue.
    pub fn waiting_in_line(&self, queue: &Name) -> usize {
        self.waiting.get(queue).map_or(0, WaitingJobs::len)
    }

    /// Whether two states are the same but for the clock and the count of inputs.
    pub fn same_but_clock(&self, other: &State) -> bool {
        let mut other = other.clone();
        other.seq = self.seq;
        other.now = self.now;
        other.calendar.advance(self.now);
        let mut mine = self.clone();
        mine.calendar.advance(other.now);
        mine == other
    }

    /// The group of a user that is known to exist.
    pub(crate) fn group_of(&self, user: UserId) -> GroupId {
        self.accounts.user(user).map_or(GroupId(0), |u| u.group)
    }

    /// Until when preemptible work is in the way of a promise: it needs its grace to be gone. Who
    /// starts when that is over has cleared its seats by now, and does not do so again for another
    /// that lasts longer; so that instant is not free either.
    pub(crate) fn soft_to(&self, now: Time) -> Time {
        now + self.settings.grace + Span(1)
    }

    /// For less than this, preemptible work is not started ahead of a promise. More than a grace
    /// period, since a promise that starts within one has cleared its seats already.
    pub(crate) fn least_run(&self) -> Span {
        self.settings.run_min.max(Span(self.settings.grace.0 + 1))
    }

    /// How nodes are chosen.
    pub(crate) fn choice(&self) -> Choice<'_> {
        Choice { scorer: self.settings.scorer, typical: &self.settings.typical }
    }

    /// Which nodes a request of a user may use.
    pub(crate) fn eligibility<'a>(
        &self,
        request: &'a Request,
        user: UserId,
        purpose: Purpose,
    ) -> Eligibility<'a> {
        let level = self.accounts.user(user).map_or(0, |u| u.level);
        Eligibility {
            each: &request.each,
            constraints: &request.constraints,
            level,
            gpus: request.units()[Resource::Gpu as usize],
            purpose,
        }
    }

    /// Builds all that follows from the rest.
    pub(crate) fn derive(&mut self) {
        let market = self.calendar.market().clone();
        // A horizon that was shortened still covers what was promised under the longer one.
        let promised = self.jobs.values().filter(|j| j.ended.is_none()).flat_map(|j| &j.parts);
        let last =
            promised.flat_map(|p| p.plan().into_iter().chain(p.next())).map(|plan| plan.to).max();
        let held = self.holds.values().flat_map(|h| &h.parts).map(|(plan, _)| plan.to).max();
        let reach = last.max(held).map_or(Span::ZERO, |to| to.since(self.now));
        let horizon = self.settings.horizon.max(reach);
        self.calendar = Calendar::new(self.settings.slot, horizon, self.now, market);
        self.calendar.follow(&self.cluster);
        self.timers = self.cluster.nodes().filter_map(|node| timer_of_node(node)).collect();
        self.ended = OrdSet::new();
        self.key_ages =
            self.keys.iter().map(|((user, key), used)| (used.at, *user, key.clone())).collect();
        self.waiting = OrdMap::new();
        self.held = OrdMap::new();
        self.not_before = OrdSet::new();
        self.followers = OrdSet::new();
        self.arrays = self.arrays.iter().map(|(id, a)| (*id, a.uncounted())).collect();
        self.active = OrdSet::new();
        self.elastic = OrdSet::new();
        self.lines = OrdSet::new();
        self.running = OrdMap::new();
        self.level_use = OrdMap::new();
        self.book_all();
    }

    /// What a forest may ask about a job at this moment.
    pub fn features_of(&self, job: &Job) -> Features {
        Subject::from(job).features(&self.histories, self.errors.get(&job.user).copied())
    }

    /// The starts in `[from, to]` that the cap on the user's level leaves in a pool.
    pub(crate) fn level_starts(
        &self,
        pool: &Name,
        user: UserId,
        (from, to): (Time, Time),
        duration: Span,
        units: PerResource<u64>,
    ) -> Result<Starts, Refusal> {
        let level = self.accounts.user(user)?.level;
        let Some(share) = self.cluster.pool(pool)?.level_caps.get(&level).copied() else {
            return Ok(Starts::All);
        };
        let resource = self.capped_resource(pool);
        let capacity: u64 = self.cluster.nodes_of(pool).map(|n| n.capacity.amount(resource)).sum();
        let limit = share.of(capacity);
        let refusal = Refusal::LevelShare { level, share, pool: pool.clone() };
        let asked = units[resource as usize];
        if asked > limit {
            return Err(refusal);
        }
        let Some(steps) = self.level_use.get(&(pool.clone(), level)) else {
            return Ok(Starts::All);
        };
        let mut left = Vec::new();
        let blocks = |held: PerResource<u64>| held[resource as usize] + asked > limit;
        steps.starts_clear_of(blocks, (from, to), duration, &mut left);
        if left.is_empty() { Err(refusal) } else { Ok(Starts::Only(left)) }
    }

    /// What a level's cap is counted in: GPUs, or cores where the pool has none.
    fn capped_resource(&self, pool: &Name) -> Resource {
        let has_gpus = self.cluster.nodes_of(pool).any(|n| !n.capacity.gpus.is_empty());
        if has_gpus { Resource::Gpu } else { Resource::Cpu }
    }

    /// The rule that orders a queue.
    pub(crate) fn rule_of(&self, queue: &Queue) -> Arc<PolicyRule> {
        // A queue's policy was there when it was set, and policies are never removed.
        self.policies.current(&queue.policy).map_or(Arc::new(PolicyRule::Fifo), Arc::clone)
    }

    /// When a running job has received the service of its class, or is to be looked at because it came
    /// into it.
    pub(crate) fn line_due(&self, job: &Job) -> Option<Time> {
        let terms = job.queue().filter(|terms| terms.preemptible)?;
        let part = job.first_part();
        let since = part.run().filter(|run| !run.is_stopping())?.since;
        let queue = self.queue(&terms.queue).ok().filter(|queue| queue.preempts)?;
        let rule = self.rule_of(queue);
        let PolicyRule::Las { limits } = &*rule else { return None };
        if let Some(came) = part.position.came {
            return Some(came + Span(1));
        }
        let limit = limits.get(usize::from(part.position.class))?.saturating_mul(1_000_000);
        let left = limit.saturating_sub(part.attained);
        let after = left.div_ceil(part.service_units().max(1));
        Some(since + Span(i64::try_from(after).unwrap_or(i64::MAX / 4)))
    }

    /// A policy or a queue has changed: so have the classes of service.
    pub(crate) fn derive_lines(&mut self) {
        let active = self.active.iter().filter_map(|id| self.jobs.get(id));
        let due = active.filter_map(|job| self.line_due(job).map(|due| (due, job.id)));
        self.lines = due.collect();
    }
}
