//! A scheduling pass: goes through the queues and starts what may start.
//!
//! 1. Rank what waits, level by level; whoever's patience is over goes first.
//! 2. Let queues that preempt make room for what they rank higher ([`preempt`](super::preempt)).
//! 3. Start jobs in order, within each queue's share. What does not fit keeps a place in the
//!    calendar, as the backfill rule says, and what comes later goes around it.
//! 4. Let queues that borrow use what others left.
//! 5. Let elastic jobs grow into what is still free.
//!
//! Enforced limits decide what may run ahead of a promise; predictions only rank.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use super::Step;
use super::backfill::{Wanted, book_shadow, earliest_place, eligible_pools, hole_is_free, shadow};
use super::order::{Order, Turn, service_order};
use crate::bid::{Request, Shape};
use crate::calendar::PoolCalendar;
use crate::cluster::Purpose;
use crate::job::{Job, Plan};
use crate::ledger::Account;
use crate::market::fixed_price;
use crate::placement::Gang;
use crate::queue::Queue;
use crate::reason::WaitReason;
use crate::resources::{PerResource, Resource};
use crate::settings::Backfill;
use crate::state::{Running, State};
use crate::units::{JobId, Milli, Money, Span, Time};
use crate::usage::unit_ms;
use crate::waiting::ArrayBook;

impl Step<'_> {
    pub(super) fn pass(&mut self) {
        let queues = self.state.queues.clone();
        let mut claims = BTreeMap::new();
        for queue in queues.iter().filter(|q| q.preempts) {
            claims.append(&mut self.preempt(queue));
        }
        if !self.state.waiting.is_empty() {
            self.serve(&queues, claims);
        }
        self.state.freed = false;
        self.grow_all();
        self.passed();
    }

    /// Goes through what waits, in the order of service.
    fn serve(&mut self, queues: &[Queue], claims: BTreeMap<JobId, Plan>) {
        let mut pass = Pass::new(self.state, queues);
        pass.claims = claims;
        self.book_holes(&mut pass, queues);
        let mut order = Order::new(self.state, queues);
        let mut deferred = BinaryHeap::new();
        while let Some(turn) = order.next(self.state) {
            if pass.is_over() {
                break;
            }
            let queue = &queues[turn.queue()];
            let tried = self.try_job(&mut pass, queue, &turn, Share::Own);
            let ends_its_kind = self.ends_its_kind(&pass, &turn, tried);
            if ends_its_kind {
                order.pass_over_alike();
            }
            if tried == Tried::BeyondShare && queue.borrows {
                deferred.push(Reverse((turn, ends_its_kind)));
            }
        }
        while let Some(Reverse((turn, stands_for_its_kind))) = deferred.pop() {
            let tried = self.try_job(&mut pass, &queues[turn.queue()], &turn, Share::Borrowed);
            if stands_for_its_kind && tried == Tried::Started {
                let next = order.next_alike(self.state, &turn);
                deferred.extend(next.map(|next| Reverse((next, true))));
            }
        }
        self.remove_shadows(pass);
    }

    /// Whether this job's result holds for all jobs of its kind in this pass. Capacity, quotas and
    /// shares only shrink during a pass, so a job of the same kind fares no better, unless a place
    /// is kept for it or was made for it.
    fn ends_its_kind(&self, pass: &Pass, turn: &Turn, tried: Tried) -> bool {
        let own_places = match self.state.settings.backfill {
            _ if !pass.claims.is_empty() => true,
            Backfill::Conservative => true,
            // Each of several jobs may be the first that waits in another pool; an array's keep
            // one place together.
            Backfill::Easy => {
                let alike_are_hopeless = pass.knows_misfits_like(turn.kind.example());
                !turn.kind.is_of_array() && pass.headed.len() > 1 && !alike_are_hopeless
            }
            Backfill::None => false,
        };
        tried != Tried::Started && !own_places
    }

    /// Starts a job if it may and can; otherwise keeps a place for it as the rules say.
    fn try_job(&mut self, pass: &mut Pass, queue: &Queue, turn: &Turn, of: Share) -> Tried {
        let (index, id) = (turn.queue(), turn.rank.job);
        let aged = of == Share::Own && turn.rank.is_aged();
        let Some(job) = self.state.jobs.get(&id).cloned() else { return Tried::NotNow };
        self.drop_shadow(pass, id);
        // Where every waiting job keeps a hole, none may be passed over.
        let each_keeps_a_hole = self.state.settings.backfill == Backfill::Conservative;
        if !each_keeps_a_hole && !pass.claims.contains_key(&id) && pass.hopeless(&job) {
            return Tried::NotNow;
        }
        match admission(self.state, queue, &job, &pass.running[index]) {
            Err(WaitReason::ShareUsed { .. }) if of == Share::Borrowed || aged => {}
            Err(WaitReason::ShareUsed { .. }) => {
                if !queue.borrows {
                    self.give_up_hole(&job);
                }
                return Tried::BeyondShare;
            }
            Err(_) => {
                self.give_up_hole(&job);
                return Tried::NotNow;
            }
            Ok(()) => {}
        }
        let mut room = self.room_now(pass, &job);
        // Only now that something could start do those ahead of it need their places kept.
        if room.is_some() && self.keep_heads(pass) {
            room = self.room_now(pass, &job);
        }
        if let Some(plan) = room {
            if affordable(self.state, &job, &plan).is_some() {
                pass.count(index, &job);
                self.start_queued(&job, plan);
                return Tried::Started;
            }
            self.give_up_hole(&job);
            return Tried::NotNow;
        }
        pass.failed(self.state, &job);
        // What ranks higher than what runs makes room by preemption. It needs no place kept but
        // the one that others are leaving for it right now.
        let preempts = queue.preempts && job.queue().is_some_and(|q| q.preemptible);
        if let Some(plan) = pass.claims.remove(&id) {
            self.add_shadow(pass, &job, plan);
        } else if !preempts || aged {
            self.keep_place(pass, &job, aged);
        }
        Tried::NotNow
    }

    /// Seats for a job that starts at once, around promises and the places kept for others: in a
    /// pool that its owner can pay for, if there is one.
    fn room_now(&self, pass: &Pass, job: &Job) -> Option<Plan> {
        let part = job.first_part();
        let now = self.state.now;
        let to = now + part.remaining();
        let preemptible = job.queue().is_some_and(|q| q.preemptible);
        // Preemptible work may run ahead of a promise, though not for a moment only.
        let least = self.state.least_run();
        let firm_to = if preemptible { to.min(now + least) } else { to };
        let mut too_dear = None;
        for (index, pool) in self.state.calendar.pools().iter().enumerate() {
            if !pass.open[index] || !might_fit(pool, now, &part.request) {
                continue;
            }
            let gang = Gang {
                request: &part.request,
                eligible: self.state.eligibility(&part.request, job.user, Purpose::Queue),
                from: now,
                to: firm_to,
                soft_to: to,
            };
            let named = part.request.constraints.pool.as_ref();
            if named.is_some_and(|name| *name != pool.pool.name) {
                continue;
            }
            if let Some(seats) = gang.place(pool, self.state.choice()) {
                let pool_name = pool.pool.name.clone();
                let gpus_per_node = pool.gpus_per_node;
                let plan = Plan { pool: pool_name, from: now, to, seats, gpus_per_node };
                if affordable(self.state, job, &plan).is_some() {
                    return Some(plan);
                }
                too_dear.get_or_insert(plan);
            }
        }
        too_dear
    }

    fn start_queued(&mut self, job: &Job, plan: Plan) {
        let (now, units) = (self.state.now, job.first_part().request.units());
        let span = plan.to.since(plan.from);
        let Ok(cost) = self.state.queue_price(&plan.pool, &units, span) else { return };
        let turn = self.begin_turn(job);
        self.edit_part(job.id, 0, |part| {
            if let Some(turn) = turn {
                (part.position.turn, part.position.came) = (turn, None);
            }
            part.begin(plan, cost, now);
        });
        self.launch(job.id, 0);
    }

    /// What does not fit now keeps a place, so that what comes later does not push it back.
    fn keep_place(&mut self, pass: &mut Pass, job: &Arc<Job>, aged: bool) {
        match self.state.settings.backfill {
            Backfill::None => {
                // Nobody waits behind what no time would bring.
                if earliest_place(
                    self.state,
                    &self.state.calendar,
                    job,
                    Wanted::by(self.state, job),
                )
                .is_some()
                {
                    let pools: Vec<usize> = eligible_pools(self.state, job);
                    pools.iter().for_each(|p| pass.open[*p] = false);
                }
            }
            Backfill::Easy if pass.headed.contains(&false) => pass.heads.push(job.clone()),
            Backfill::Easy => {}
            Backfill::Conservative => self.keep_hole(pass, job, aged),
        }
    }

    /// Keeps a place for the first that waits in each pool; says whether it kept any.
    fn keep_heads(&mut self, pass: &mut Pass) -> bool {
        let mut kept = false;
        for job in std::mem::take(&mut pass.heads) {
            let pools: Vec<usize> = eligible_pools(self.state, &job);
            if pools.iter().all(|p| pass.headed[*p]) {
                continue;
            }
            let place = earliest_place(
                self.state,
                &self.state.calendar,
                &job,
                Wanted::by(self.state, &job),
            );
            let Some(plan) = place else { continue };
            let pool = |p: &&usize| self.state.calendar.pools()[**p].pool.name == plan.pool;
            if let Some(at) = pools.iter().find(pool).filter(|p| !pass.headed[**p]) {
                pass.headed[*at] = true;
                kept = true;
                self.add_shadow(pass, &job, plan);
            }
        }
        kept
    }

    /// Conservative backfilling: a hole once found is kept, and only moves up when something
    /// came free, or elsewhere when it is no longer there.
    fn keep_hole(&mut self, pass: &mut Pass, job: &Arc<Job>, aged: bool) {
        let kept = job.first_part().hole().cloned();
        let still_there = kept.as_ref().is_some_and(|hole| hole_is_free(self.state, job, hole));
        let plan = match kept {
            Some(hole) if still_there && !self.state.freed && !aged => Some(hole),
            _ => earliest_place(self.state, &self.state.calendar, job, Wanted::by(self.state, job)),
        };
        if plan.as_ref() != job.first_part().hole() {
            self.edit_part(job.id, 0, |part| part.keep_hole(plan.clone()));
        }
        if let Some(plan) = plan {
            self.add_shadow(pass, job, plan);
        }
    }

    /// A job does not start, and not for want of room alone. If its place is free already, it
    /// waits for something else that no time need bring, and lets the others have the place.
    fn give_up_hole(&mut self, job: &Arc<Job>) {
        let Some(hole) = job.first_part().hole().cloned() else { return };
        let now = self.state.now;
        let at_once = Plan { from: now, to: now + hole.to.since(hole.from), ..hole };
        if hole_is_free(self.state, job, &at_once) {
            self.edit_part(job.id, 0, |part| part.keep_hole(None));
        }
    }

    /// Books the holes that waiting jobs keep from earlier passes, for as long as this one lasts.
    /// Not where somebody's patience is over: then places are given anew in the order of service,
    /// since behind a steady stream of holes one could wait for ever.
    fn book_holes(&mut self, pass: &mut Pass, queues: &[Queue]) {
        if self.state.settings.backfill != Backfill::Conservative {
            return;
        }
        let order = service_order(self.state, queues);
        if order.first().is_some_and(|(_, rank)| rank.is_aged()) {
            return;
        }
        for (_, rank) in order {
            let Some(job) = self.state.jobs.get(&rank.job).cloned() else { continue };
            if let Some(hole) = job.first_part().hole().cloned()
                && hole_is_free(self.state, &job, &hole)
            {
                self.add_shadow(pass, &job, hole);
            }
        }
    }

    fn add_shadow(&mut self, pass: &mut Pass, job: &Job, plan: Plan) {
        book_shadow(&mut self.state.calendar, job.id, &job.first_part().request, &plan);
        pass.shadows.insert(job.id, plan);
    }

    fn drop_shadow(&mut self, pass: &mut Pass, job: JobId) {
        let Some(plan) = pass.shadows.remove(&job) else { return };
        for (rank, seat) in plan.seats.iter().enumerate() {
            self.state.calendar.unbook(shadow(job, rank), seat.node);
        }
    }

    fn remove_shadows(&mut self, mut pass: Pass) {
        while let Some((job, _)) = pass.shadows.first_key_value() {
            let job = *job;
            self.drop_shadow(&mut pass, job);
        }
    }
}

/// Of whose share a job is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    /// Of its queue's own.
    Own,
    /// Of what others left.
    Borrowed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tried {
    Started,
    BeyondShare,
    NotNow,
}

/// What a queue's running jobs hold.
pub(crate) fn running_of(state: &State, queue: &Queue) -> Running {
    state.running.get(&queue.name).copied().unwrap_or_default()
}

/// The book of a job's array.
pub(super) fn array_of<'a>(state: &'a State, job: &Job) -> Option<&'a ArrayBook> {
    job.array.and_then(|member| state.arrays.get(&member.first))
}

/// Whether a job may start as far as its queue, its quotas and its own times go.
pub(crate) fn admission(
    state: &State,
    queue: &Queue,
    job: &Job,
    running: &Running,
) -> Result<(), WaitReason> {
    let now = state.now;
    if let Some(until) = job.first_part().not_before().filter(|until| *until > now) {
        return Err(WaitReason::NotBefore { until });
    }
    if let Some(before) = job.after.first() {
        return Err(WaitReason::After { job: before.job, when: before.when });
    }
    limits(state, queue, job, running)?;
    let (hours, cost) = (unpaid_hours(job), cheapest_run(state, job));
    let period = state.usage.check_period(&state.accounts, job.user, now, hours, cost);
    period.map_err(|refusal| WaitReason::Quota { refusal })?;
    share_left(state, queue, job, running)
}

/// Whether one more job may run beside those that do: in its array, in its queue, and under its
/// owner's quotas.
pub(super) fn limits(
    state: &State,
    queue: &Queue,
    job: &Job,
    running: &Running,
) -> Result<(), WaitReason> {
    if let Some(book) = array_of(state, job).filter(|book| book.is_full()) {
        return Err(WaitReason::ArrayFull { running: book.running });
    }
    if running.jobs >= queue.running_max {
        return Err(WaitReason::QueueFull { running: running.jobs });
    }
    let units = job.first_part().request.units();
    if let Some(most) = queue.gpus_max.filter(|most| running.units[2] + units[2] > *most) {
        return Err(WaitReason::QueueGpus { held: running.units[2], most });
    }
    let (from, to) = (state.now, state.now + job.first_part().remaining());
    let room = state.usage.room(&state.accounts, job.user, from, to, units);
    room.map_err(|refusal| WaitReason::Quota { refusal })
}

/// Whether a job fits what is left of its queue's share.
pub(super) fn share_left(
    state: &State,
    queue: &Queue,
    job: &Job,
    running: &Running,
) -> Result<(), WaitReason> {
    let units = job.first_part().request.units();
    let is_over = |r: &Resource| {
        let total: u64 = state.cluster.nodes().map(|n| n.capacity.amount(*r)).sum();
        let r = *r as usize;
        units[r] > 0 && running.units[r] + units[r] > queue.share.of(total)
    };
    if queue.share < Milli::ONE && Resource::ALL.iter().any(is_over) {
        return Err(WaitReason::ShareUsed { share: queue.share });
    }
    Ok(())
}

/// The hours that are set aside for a job when it starts.
pub(super) fn unpaid_hours(job: &Job) -> PerResource<u128> {
    unit_ms(&job.first_part().request.units(), job.first_part().remaining().0)
}

/// What is set aside for a job that starts by this plan, if its owner has as much and may spend it.
pub(super) fn affordable(state: &State, job: &Job, plan: &Plan) -> Option<Money> {
    let (units, span) = (job.first_part().request.units(), plan.to.since(plan.from));
    let cost = state.queue_price(&plan.pool, &units, span).ok()?;
    let balance = state.ledger.balance(Account::Wallet(job.user));
    let spend = state.usage.check_period(&state.accounts, job.user, state.now, [0; 3], cost);
    (balance >= cost && spend.is_ok()).then_some(cost)
}

/// What running until its limit costs a waiting job where it is cheapest; nothing where no quota
/// of credits asks for it.
pub(super) fn cheapest_run(state: &State, job: &Job) -> Money {
    let quotas = state.accounts.quotas(job.user);
    if !quotas.is_ok_and(|quotas| quotas.iter().any(|(_, quota)| quota.credits.is_some())) {
        return Money::ZERO;
    }
    let (units, span) = (job.first_part().request.units(), job.first_part().remaining());
    let density = state.settings.queue_density;
    let pools = eligible_pools(state, job).into_iter().map(|p| &state.calendar.pools()[p].pool);
    let costs = pools.filter_map(|pool| fixed_price(&pool.rates, &units, span.0, density));
    costs.min().unwrap_or(Money::ZERO)
}

/// A pass under way.
struct Pass {
    running: Vec<Running>,
    /// Whether a pool still takes jobs: strict order closes it at the first that does not fit.
    open: Vec<bool>,
    /// Whether a pool has a first waiting job that others must not delay.
    headed: Vec<bool>,
    /// Those that may be such first ones, in order; their places are looked for when needed.
    heads: Vec<Arc<Job>>,
    /// Whether any node is kept for large jobs or high levels.
    any_kept: bool,
    /// Plain requests that did not fit: whatever asks for no less does not fit either.
    misfits: Vec<Misfit>,
    /// Places that preempted work is leaving for what waits.
    claims: BTreeMap<JobId, Plan>,
    /// Places that are kept in the calendar while the pass lasts.
    shadows: BTreeMap<JobId, Plan>,
}

/// A plain request that did not fit.
#[derive(Clone, Copy, Debug)]
struct Misfit {
    /// Whether it asks for a total of GPUs.
    split: bool,
    cpu: u32,
    memory: u32,
    gpu: u32,
    count: u32,
    duration: Span,
    preemptible: bool,
}

impl Pass {
    fn new(state: &State, queues: &[Queue]) -> Pass {
        let pools = state.calendar.pools();
        Pass {
            running: queues.iter().map(|queue| running_of(state, queue)).collect(),
            open: vec![true; pools.len()],
            headed: vec![false; pools.len()],
            heads: Vec::new(),
            any_kept: pools.iter().any(|pool| pool.any_kept),
            misfits: Vec::new(),
            claims: BTreeMap::new(),
            shadows: BTreeMap::new(),
        }
    }

    /// Whether nothing that waits could start any more.
    fn is_over(&self) -> bool {
        !self.open.contains(&true)
    }

    fn count(&mut self, queue: usize, job: &Job) {
        let units = job.first_part().request.units();
        self.running[queue].jobs += 1;
        self.running[queue].units = [0, 1, 2].map(|r| self.running[queue].units[r] + units[r]);
    }

    /// Whether what a job like this one did not find in this pass is known to be there for none.
    fn knows_misfits_like(&self, job: &Job) -> bool {
        !self.any_kept && Misfit::of(job).is_some()
    }

    /// Whether something no larger has failed in this pass: capacity only shrinks during one.
    /// Where nodes are kept for large jobs or high levels, a larger one may fit where a smaller
    /// one may not go, and nothing can be said.
    fn hopeless(&self, job: &Job) -> bool {
        let misfit = Misfit::of(job).filter(|_| !self.any_kept);
        misfit.is_some_and(|m| self.misfits.iter().any(|failed| failed.is_within(&m)))
    }

    fn failed(&mut self, state: &State, job: &Job) {
        let Some(mut misfit) = Misfit::of(job) else { return };
        let request = &job.first_part().request;
        let pools = state.calendar.pools();
        if !pools.iter().any(|pool| might_fit(pool, state.now, request)) {
            // However short it were.
            misfit.duration = Span::ZERO;
        }
        self.misfits.retain(|failed| !misfit.is_within(failed));
        if self.misfits.len() < 256 {
            self.misfits.push(misfit);
        }
    }
}

impl Misfit {
    fn of(job: &Job) -> Option<Misfit> {
        let request = &job.first_part().request;
        let plain = request.constraints.is_empty()
            && request.each.devices.is_empty()
            && request.each.gpu_model.is_none()
            && request.each.gpu_memory.is_none();
        let (split, count) = match request.shape {
            Shape::Replicas { min, .. } => (false, min),
            Shape::Gpus { total } => (true, total),
        };
        plain.then(|| Misfit {
            split,
            cpu: request.each.cpu,
            memory: request.each.memory,
            gpu: request.each.gpu,
            count,
            duration: job.first_part().remaining(),
            preemptible: job.queue().is_some_and(|q| q.preemptible),
        })
    }

    /// Whether it asks for no more than another one of its kind, in any respect.
    fn is_within(&self, other: &Misfit) -> bool {
        self.split == other.split
            && (self.gpu < 1000) == (other.gpu < 1000)
            && self.preemptible == other.preemptible
            && self.cpu <= other.cpu
            && self.memory <= other.memory
            && self.gpu <= other.gpu
            && self.count <= other.count
            && self.duration <= other.duration
    }
}

/// Whether a pool could hold a request now, if all that is free now stayed free.
fn might_fit(pool: &PoolCalendar, now: Time, request: &Request) -> bool {
    let Some(nodes) = pool.free_now(now) else { return true };
    let split = matches!(request.shape, Shape::Gpus { .. });
    request.blocks(pool.gpus_per_node).iter().all(|block| {
        let mut left = block.count;
        nodes.iter().any(|free| {
            left -= free.count(&block.each, if split { 1 } else { left }).min(left);
            left == 0
        })
    })
}
