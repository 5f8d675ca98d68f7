//! Elastic jobs: growth into free capacity beyond the promise, and back.
//!
//! Growth is queue capacity: it pays what queue work pays, and gives way before anything else is
//! preempted. The promised replicas are never touched.

use std::collections::BTreeMap;

use super::Step;
use super::tasks::{gpu_list, stop_of};
use crate::bid::{REPLICAS_MAX, Topology};
use crate::calendar::{PoolCalendar, Seat};
use crate::cluster::{Node, Purpose};
use crate::event::Event;
use crate::job::{Extra, Part, Plan, StopReason, Task, TaskId};
use crate::ledger::Account;
use crate::output::Effect;
use crate::placement::Gang;
use crate::units::{JobId, NodeId, Time};
use crate::usage::unit_ms;

impl Step<'_> {
    /// Lets every elastic job grow into what is free, oldest first.
    pub(super) fn grow_all(&mut self) {
        let elastic: Vec<(JobId, usize)> = self
            .state
            .elastic
            .iter()
            .filter_map(|id| self.state.jobs.get(id))
            .flat_map(|job| job.parts.iter().enumerate().map(move |(i, p)| (job.id, i, p)))
            .filter(|(_, _, part)| {
                let grown = part.extras().len() as u32;
                part.is_active()
                    && part.stop().is_none()
                    && grown < part.request.shape.growth()
                    && part.tasks().iter().all(|t| *t == Task::Running)
            })
            .map(|(job, index, _)| (job, index))
            .collect();
        for (job, index) in elastic {
            self.grow(job, index);
        }
    }

    fn grow(&mut self, id: JobId, index: usize) {
        let Some(job) = self.job(id) else { return };
        let now = self.state.now;
        let part = &job.parts[index];
        let Some(plan) = part.plan().cloned() else { return };
        let least = self.state.least_run();
        // For a moment it is not worth starting.
        if plan.to.since(now) <= least {
            return;
        }
        let wanted = part.request.shape.growth() - part.extras().len() as u32;
        let request = part.request.clone();
        let Some(pool) = self.state.calendar.pool(&plan.pool) else { return };
        let gang = Gang {
            request: &request,
            eligible: self.state.eligibility(&request, job.user, Purpose::Queue),
            from: now,
            to: now + least,
            soft_to: plan.to,
        };
        let seats = match (request.constraints.same, request.constraints.per_node_max) {
            (None, None) => gang.place_some(pool, wanted, self.state.choice()),
            _ => {
                let all = gang.place_some(pool, REPLICAS_MAX, self.state.choice());
                beside(pool, &job.parts[index], &plan, all, wanted)
            }
        };
        let units = request.each.units(1);
        let Ok(cost) = self.state.queue_price(&plan.pool, &units, plan.to.since(now)) else {
            return;
        };
        let mut grown = Vec::new();
        for seat in seats {
            let affordable = self.state.ledger.balance(Account::Wallet(job.user)) >= cost;
            let (usage, accounts) = (&self.state.usage, &self.state.accounts);
            let hours = unit_ms(&units, plan.to.since(now).0);
            let in_quota = usage.room(accounts, job.user, now, plan.to, units).is_ok()
                && usage.check_period(accounts, job.user, now, hours, cost).is_ok();
            if !affordable || !in_quota {
                break;
            }
            let rank = self.edit_run(id, index, |run| {
                let rank = (run.plan.seats.len() as u32).saturating_add(run.grown);
                run.grown = run.grown.saturating_add(1);
                run.extras.push(Extra {
                    rank,
                    seat,
                    since: now,
                    to: run.plan.to,
                    escrow: cost,
                    task: Task::Launching,
                    stop_until: None,
                });
                rank
            });
            grown.extend(rank.map(|rank| (rank, seat)));
        }
        if grown.is_empty() {
            return;
        }
        let replicas = self.part(id, index).map_or(0, Part::gang_size);
        let attempt = part.attempt;
        for (rank, seat) in grown {
            self.effects.push(Effect::Launch {
                task: TaskId { job: id, part: index as u16, attempt, rank },
                node: seat.node,
                gpus: gpu_list(seat.gpus),
                each: request.each.clone(),
                replicas,
                until: plan.to,
            });
        }
        self.tell_size(id, index);
    }

    /// Tells a gang how many it is now.
    pub(super) fn tell_size(&mut self, id: JobId, index: usize) {
        let Some(part) = self.part(id, index) else { return };
        let (replicas, attempt, part) = (part.gang_size(), part.attempt, index as u16);
        self.events.push(Event::Resized { job: id, part, replicas });
        self.effects.push(Effect::Resize { job: id, part, attempt, replicas });
    }

    /// Tells growth to be gone by `until`.
    pub(super) fn stop_extras(&mut self, id: JobId, index: usize, ranks: &[u32], until: Time) {
        let Some(job) = self.job(id) else { return };
        let part = &job.parts[index];
        let mut stopped = Vec::new();
        for extra in part.extras().iter().filter(|e| ranks.contains(&e.rank)) {
            let told = stop_of(part, extra);
            if told.is_some_and(|stop| stop.until <= until) || extra.task.lapses().is_some() {
                continue;
            }
            let (part, attempt, rank) = (index as u16, part.attempt, extra.rank);
            let task = TaskId { job: id, part, attempt, rank };
            let why = told.map_or(StopReason::Preempted, |stop| stop.why);
            self.effects.push(Effect::Stop { task, node: extra.seat.node, until, why });
            stopped.push(rank);
        }
        if stopped.is_empty() {
            return;
        }
        self.edit_run(id, index, |run| {
            let told = run.extras.iter_mut().filter(|e| stopped.contains(&e.rank));
            told.for_each(|extra| extra.stop_until = Some(until));
        });
        self.tell_size(id, index);
    }

    /// All growth of a part has nothing left to do.
    pub(super) fn stop_extras_now(&mut self, id: JobId, index: usize) {
        let Some(part) = self.part(id, index) else { return };
        let ranks: Vec<u32> = part.extras().iter().map(|e| e.rank).collect();
        let limit = part.plan().map_or(Time::MAX, |p| p.to);
        let until = (self.state.now + self.state.settings.grace).min(limit);
        self.stop_extras(id, index, &ranks, until);
    }

    /// Growth that was told to stop is gone.
    pub(super) fn extras_gone(&mut self, id: JobId, index: u16) {
        let (index, now) = (usize::from(index), self.state.now);
        let Some(part) = self.part(id, index) else { return };
        let active = part.is_active();
        let gone = part.extras().iter().filter(|e| e.stop_until.is_some_and(|t| t <= now));
        for rank in gone.map(|e| e.rank).collect::<Vec<_>>() {
            self.remove_extra(id, index, rank, now);
        }
        if active {
            self.finish_if_quiet(id, index);
        }
    }
}

/// Those of the seats that keep what the gang demands: near enough to its first replica, and not
/// too many on a node.
fn beside(
    pool: &PoolCalendar,
    part: &Part,
    plan: &Plan,
    seats: Vec<Seat>,
    wanted: u32,
) -> Vec<Seat> {
    let constraints = &part.request.constraints;
    let node = |id: NodeId| pool.nodes.iter().map(|l| &l.node).find(|n| n.id == id);
    let Some(home) = plan.seats.first().and_then(|seat| node(seat.node)) else { return Vec::new() };
    let near = |n: &Node| match constraints.same {
        None => true,
        Some(_) if n.id == home.id => true,
        Some(Topology::Node) => false,
        Some(Topology::Rack) => n.rack.is_some() && n.rack == home.rack,
        Some(Topology::Domain) => n.domain.is_some() && n.domain == home.domain,
    };
    let mut taken: BTreeMap<NodeId, u32> = BTreeMap::new();
    for seat in plan.seats.iter().chain(part.extras().iter().map(|e| &e.seat)) {
        *taken.entry(seat.node).or_default() += 1;
    }
    let most = constraints.per_node_max.unwrap_or(u32::MAX);
    let mut chosen = Vec::new();
    for seat in seats {
        let count = taken.entry(seat.node).or_default();
        let fits = *count < most && node(seat.node).is_some_and(|n| near(n));
        if fits && chosen.len() < wanted as usize {
            *count += 1;
            chosen.push(seat);
        }
    }
    chosen
}
