//! Machines come, go, break and are announced to be away; what was promised on them moves, is
//! re-planned, or is refunded as broken.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Step, tasks};
use crate::bid::Request;
use crate::calendar::{Booking, Holder, Lane, PoolCalendar};
use crate::cluster::{Domain, Health, Node, Pool, Purpose, WINDOWS_MAX};
use crate::input::NewNode;
use crate::job::{Hold, Job, Outcome, Part, Phase, Plan, Stop, StopReason, Task};
use crate::market::RATE_MAX;
use crate::output::{Effect, Event, News, Reply};
use crate::refusal::Refusal;
use crate::resources::{Capacity, DEVICE_KINDS_MAX, GPUS_PER_NODE_MAX};
use crate::search::Search;
use crate::starts::Starts;
use crate::units::{HoldId, JobId, Milli, Money, Name, NodeId, Span, Time, UserId};

/// Most nodes that join in one command.
const JOIN_MAX: usize = 16_384;

/// Whether a promise may be given another start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// Only other nodes, at the start that was told.
    SameStart,
    /// Another start within the window, or broken: hardware was lost.
    Whatever,
}

impl Step<'_> {
    pub(super) fn join(&mut self, nodes: Vec<NewNode>) -> Result<Reply, Refusal> {
        if nodes.is_empty() || nodes.len() > JOIN_MAX {
            return Err(Refusal::TooMany {
                what: "nodes".into(),
                given: nodes.len(),
                most: JOIN_MAX,
            });
        }
        let mut cluster = self.state.cluster.clone();
        let mut joining = Vec::with_capacity(nodes.len());
        for new in nodes {
            check_capacity(&new.capacity)?;
            joining.push(Node {
                id: NodeId(0),
                name: new.name,
                pool: new.pool,
                capacity: new.capacity,
                labels: new.labels,
                rack: new.rack,
                domain: new.domain,
                health: Health::Up,
                maintenance: Vec::new(),
                kept: None,
                closed: false,
            });
        }
        let ids = cluster.add_nodes(joining)?;
        self.state.cluster = cluster;
        self.follow(ids.clone());
        Ok(Reply::Joined { nodes: ids })
    }

    /// The calendar takes over what changed about nodes.
    fn follow(&mut self, nodes: Vec<NodeId>) {
        self.state.calendar.follow(&self.state.cluster);
        self.state.freed = true;
        self.events.push(Event::NodesChanged { nodes });
    }

    fn set_health(&mut self, node: NodeId, health: Health) {
        self.state.cluster.edit_node(node, |n| n.health = health);
        self.follow(vec![node]);
    }

    pub(super) fn drain(&mut self, node: NodeId) -> Result<(), Refusal> {
        self.state.cluster.node(node)?;
        self.set_health(node, Health::Draining);
        for (holder, _) in self.promises_on(node) {
            self.relocate(holder, Effort::SameStart);
        }
        Ok(())
    }

    pub(super) fn resume(&mut self, node: NodeId) -> Result<(), Refusal> {
        self.state.cluster.node(node)?;
        self.set_health(node, Health::Up);
        Ok(())
    }

    pub(super) fn leave(&mut self, node: NodeId) -> Result<(), Refusal> {
        self.state.cluster.node(node)?;
        let trial = self.vacated(node, Time::MIN, Time::MAX)?;
        self.adopt(trial);
        self.state.cluster.remove_node(node);
        self.follow(vec![node]);
        Ok(())
    }

    pub(super) fn set_maintenance(
        &mut self,
        node: NodeId,
        windows: Vec<(Time, Time)>,
    ) -> Result<(), Refusal> {
        self.state.cluster.node(node)?;
        let now = self.state.now;
        let ordered = windows.windows(2).all(|w| w[0].1 <= w[1].0);
        let sane = windows.iter().all(|(from, to)| from < to && *to > now && *to <= Time::LATEST);
        if windows.len() > WINDOWS_MAX || !ordered || !sane {
            return Err(Refusal::BadSetting {
                field: "maintenance".into(),
                problem: format!(
                    "give at most {WINDOWS_MAX} windows in order that do not overlap and end in \
                     the future"
                ),
            });
        }
        let mut trial = (self.state.clone(), Vec::new());
        for (from, to) in &windows {
            let (state, mut events) = trial;
            let mut state = state;
            let step = Step { state: &mut state, events: Vec::new(), effects: Vec::new() };
            let (next, more) = step.vacated(node, *from, *to)?;
            events.extend(more);
            trial = (next, events);
        }
        self.adopt(trial);
        self.state.cluster.edit_node(node, |n| n.maintenance = windows);
        self.follow(vec![node]);
        Ok(())
    }

    /// A state in which nothing is promised on a node during `[from, to)`; refused where
    /// something runs there then, or fits nowhere else.
    fn vacated(
        &self,
        node: NodeId,
        from: Time,
        to: Time,
    ) -> Result<(crate::state::State, Vec<Event>), Refusal> {
        let mut trial = self.state.clone();
        let health = trial.cluster.node(node)?.health;
        let mut step = Step { state: &mut trial, events: Vec::new(), effects: Vec::new() };
        step.state.cluster.edit_node(node, |n| n.health = Health::Draining);
        step.state.calendar.follow(&step.state.cluster);
        for (holder, plan) in step.promises_on(node) {
            if plan.from < to && from < plan.to {
                step.relocate(holder, Effort::SameStart);
            }
        }
        let events = step.events;
        let stuck: BTreeSet<JobId> = trial
            .calendar
            .lane(node)
            .into_iter()
            .flat_map(|lane| lane.bookings())
            .filter(|b| b.from < to && from < b.to)
            .filter_map(|b| match b.holder {
                Holder::Job { job, .. } => Some(job),
                Holder::Hold { .. } => Some(JobId(0)),
                Holder::Maintenance => None,
            })
            .collect();
        if !stuck.is_empty() {
            let jobs = stuck.into_iter().filter(|j| *j != JobId(0)).collect();
            return Err(Refusal::NodeBusy { node, jobs });
        }
        trial.cluster.edit_node(node, |n| n.health = health);
        trial.calendar.follow(&trial.cluster);
        Ok((trial, events))
    }

    fn adopt(&mut self, (trial, events): (crate::state::State, Vec<Event>)) {
        *self.state = trial;
        self.events.extend(events);
    }

    pub(super) fn lost(&mut self, node: NodeId) -> Result<(), Refusal> {
        if self.state.cluster.node(node)?.health == Health::Lost {
            return Ok(());
        }
        self.set_health(node, Health::Lost);
        // A task there may go on until its lease lapses; nothing replaces it before that.
        let lease = self.state.settings.lease.max(self.state.settings.grace);
        let fence = self.state.now + lease;
        for (job, part) in self.runs_on(node) {
            let Ok(running) = self.state.job(job) else { continue };
            let ranks = ranks_on(&running.parts[part], node);
            self.hardware_lost_under(job, part, &ranks, Task::CutOff(fence), "its node was lost");
        }
        for (holder, _) in self.promises_on(node) {
            self.relocate(holder, Effort::Whatever);
        }
        Ok(())
    }

    /// Hardware under these ranks of a run is lost: they are cut off until their lease lapses, or
    /// evicted, as `lost` says, and a promised rank takes its gang with it.
    fn hardware_lost_under(
        &mut self,
        id: JobId,
        index: usize,
        ranks: &[u32],
        lost: Task,
        reason: &str,
    ) {
        let Some(mut job) = self.job(id) else { return };
        let part = &mut job.parts[index];
        let (Some(ends), Some(lapses)) = (part.plan.as_ref().map(|p| p.to), lost.lapses()) else {
            return;
        };
        // A guard ends a task with its plan, cut off or not.
        let until = lapses.min(ends).max(self.state.now);
        let lose = |task: &mut Task| {
            let after = match (*task, lost) {
                // No word may have reached it before its node was lost.
                (Task::Evicted(by), _) => Task::Evicted(by.max(until)),
                (Task::CutOff(by), Task::Evicted(_)) => Task::Evicted(by),
                (Task::Launching | Task::Running, Task::Evicted(_)) => Task::Evicted(until),
                (Task::Launching | Task::Running, _) => Task::CutOff(until),
                (known, _) => known,
            };
            let hit = after != *task;
            *task = after;
            after.lapses().filter(|_| hit)
        };
        let mut hit: Vec<u32> = Vec::new();
        let mut gang_hit = false;
        for (rank, task) in (0u32..).zip(&mut part.tasks).filter(|(r, _)| ranks.contains(r)) {
            if lose(task).is_some() {
                hit.push(rank);
                gang_hit = true;
            }
        }
        for extra in part.extras.iter_mut().filter(|e| ranks.contains(&e.rank)) {
            if let Some(until) = lose(&mut extra.task) {
                extra.stop_until = Some(until);
                hit.push(extra.rank);
            }
        }
        for extra in job.parts[index].extras.iter().filter(|e| hit.contains(&e.rank)) {
            let (part, attempt, rank) = (index as u16, job.parts[index].attempt, extra.rank);
            let holder = Holder::Job { job: id, part, attempt, rank };
            self.state.calendar.unbook(holder, extra.seat.node);
            self.state.seat_extra(id, index, &job.parts[index], extra);
        }
        let stopping = job.parts[index].stop.is_some();
        if gang_hit && !stopping {
            self.state.put_job(job);
            return self.gang_lost(id, index, until, reason);
        }
        self.state.reseat_run(&job, index);
        self.tell_stops(&job, index, &hit);
        if !hit.is_empty() && !stopping {
            self.tell_size(&job, index);
        }
        let (part, attempt) = (index as u16, job.parts[index].attempt + 1);
        let next_holder = Holder::Job { job: id, part, attempt, rank: 0 };
        let next = job.parts[index].next.clone();
        let late = job.parts[index].gone_by();
        self.state.put_job(job);
        if next.is_some_and(|next| late.is_some_and(|late| next.from < late)) {
            self.relocate(next_holder, Effort::Whatever);
        }
    }

    /// Tells these ranks to stop: those that are cut off, for when word reaches them again.
    fn tell_stops(&mut self, job: &Job, index: usize, ranks: &[u32]) {
        let mut effects = Vec::new();
        tasks::outstanding(job, index, &job.parts[index], &mut effects);
        effects.retain(|e| matches!(e, Effect::Stop { task, .. } if ranks.contains(&task.rank)));
        self.effects.append(&mut effects);
    }

    /// A running gang is lost: the rest of it is stopped until `fence`, and it goes on after
    /// that: a promise at once and within its window, queue work in its queue.
    pub(super) fn gang_lost(&mut self, id: JobId, index: usize, fence: Time, reason: &str) {
        let Some(mut job) = self.job(id) else { return };
        let is_promise = job.promise().is_some();
        // Its guard ends it with its plan.
        let ends = job.parts[index].plan.as_ref().map_or(fence, |p| p.to);
        let fence = fence.min(ends).max(self.state.now);
        self.close_books(&job, index);
        job.parts[index].stop = Some(Stop { why: StopReason::Lost, until: fence });
        self.state.reseat_run(&job, index);
        if is_promise {
            let request = job.parts[index].request.clone();
            let remaining = Request { duration: job.parts[index].remaining(), ..request };
            let gone = job.parts[index].gone_by().unwrap_or(fence);
            let next = self.replan(&job, index, &remaining, gone);
            if let Some(next) = &next {
                let attempt = job.parts[index].attempt + 1;
                self.state.seat_plan(&job, index, &remaining, next, attempt);
                let (plan, part) = (next.clone(), index as u16);
                self.events.push(Event::Replanned { job: id, part, plan });
                let user = job.user;
                self.effects.push(Effect::Notify { user, job: id, news: News::Replanned });
            } else {
                self.events.push(Event::Broken { job: id, reason: reason.to_owned() });
            }
            job.parts[index].next = next;
            job.parts[index].cleared = false;
        }
        self.open_books(&job, index);
        self.stop_part_until(&mut job, index, StopReason::Lost, fence);
        self.finish_if_quiet(job, index);
    }

    /// Takes a part's plan out of quotas, prices and caps.
    fn close_books(&mut self, job: &Job, index: usize) {
        self.keep_books(job, index, true);
    }

    /// Counts a part's plan (the next one where there is one) in quotas, prices and caps.
    fn open_books(&mut self, job: &Job, index: usize) {
        self.keep_books(job, index, false);
    }

    fn keep_books(&mut self, job: &Job, index: usize, close: bool) {
        let part = &job.parts[index];
        let Some(plan) = part.next.as_ref().or(part.plan.as_ref()) else { return };
        if close {
            self.state.release_plan(job.user, job.group, &part.request, plan);
        } else {
            self.state.commit_plan(job.user, job.group, &part.request, plan);
        }
        if job.promise().is_some() {
            self.state.count_promise(job.user, &part.request, plan, close);
        }
    }

    /// Gives a part's run another end, on the seats that it has.
    pub(super) fn retime(&mut self, job: &mut Job, index: usize, to: Time) {
        self.close_books(job, index);
        let attempt = job.parts[index].attempt_of_plan();
        if let Some(plan) = &mut job.parts[index].plan {
            self.state.unseat_plan(job.id, index, plan, attempt);
            plan.to = to;
        }
        let request = job.parts[index].request.clone();
        if let Some(plan) = job.parts[index].plan.clone() {
            self.state.seat_plan(job, index, &request, &plan, attempt);
        }
        self.open_books(job, index);
    }

    /// The earliest room for what is left of a promise, from `from` on, within its window and
    /// between the parts that it has to keep order with.
    fn replan(&self, job: &Job, index: usize, request: &Request, from: Time) -> Option<Plan> {
        let user = job.user;
        // Prices, and so promises, reach no further than the horizon.
        let deadline = request.window.deadline.min(self.state.now + self.state.settings.horizon);
        let deadline = job.starts_after(index).map_or(deadline, |start| start.min(deadline));
        let latest = deadline - request.duration;
        let from = from.max(request.window.earliest).max(self.state.now);
        let from = job.finished_before(index).map_or(from, |finish| finish.max(from));
        let mut best: Option<(Time, &Arc<PoolCalendar>)> = None;
        for pool in self.state.calendar.pools() {
            let search = self.search(pool, user, request);
            if let Some(start) = search.earliest(from, latest)
                && best.is_none_or(|(b, _)| start < b)
            {
                best = Some((start, pool));
            }
        }
        let (start, pool) = best?;
        self.seats_at(pool, user, request, start)
    }

    fn search<'a>(
        &'a self,
        pool: &'a PoolCalendar,
        user: UserId,
        request: &'a Request,
    ) -> Search<'a> {
        static ALL: Starts = Starts::All;
        Search {
            calendar: &self.state.calendar,
            pool,
            request,
            eligible: self.state.eligibility(request, user, Purpose::Promise),
            now: self.state.now,
            soft_to: self.state.soft_to(self.state.now),
            with_soft: false,
            allowed: &ALL,
        }
    }

    fn seats_at(
        &self,
        pool: &PoolCalendar,
        user: UserId,
        request: &Request,
        start: Time,
    ) -> Option<Plan> {
        let named = request.constraints.pool.as_ref();
        if named.is_some_and(|name| *name != pool.pool.name) {
            return None;
        }
        let gang = self.search(pool, user, request).gang(start);
        Some(Plan {
            pool: pool.pool.name.clone(),
            from: start,
            to: start + request.duration,
            seats: gang.place(pool, self.state.choice())?,
            gpus_per_node: pool.gpus_per_node,
        })
    }

    /// Jobs with active parts on a node.
    fn runs_on(&self, node: NodeId) -> Vec<(JobId, usize)> {
        let mut runs = Vec::new();
        for id in &self.state.active {
            let Ok(job) = self.state.job(*id) else { continue };
            for (index, part) in job.parts.iter().enumerate() {
                let seats = part.plan.iter().flat_map(|p| &p.seats);
                let mut used = seats.chain(part.extras.iter().map(|e| &e.seat));
                if part.is_active() && used.any(|s| s.node == node) {
                    runs.push((*id, index));
                }
            }
        }
        runs
    }

    /// Promises and holds on a node that have not begun, with their plans.
    fn promises_on(&self, node: NodeId) -> Vec<(Holder, Plan)> {
        let Some(lane) = self.state.calendar.lane(node) else { return Vec::new() };
        let mut found: Vec<(Holder, Plan)> = Vec::new();
        for booking in lane.bookings() {
            let holder = match booking.holder {
                Holder::Job { job, part, attempt, .. } => {
                    Holder::Job { job, part, attempt, rank: 0 }
                }
                Holder::Hold { hold, part, .. } => Holder::Hold { hold, part, rank: 0 },
                Holder::Maintenance => continue,
            };
            if found.iter().any(|(seen, _)| *seen == holder) {
                continue;
            }
            if let Some((_, plan)) = self.coming(holder) {
                found.push((holder, plan));
            }
        }
        found
    }

    /// The request and plan of a holder, if it has not begun.
    fn coming(&self, holder: Holder) -> Option<(Request, Plan)> {
        match holder {
            Holder::Job { job, part, attempt, .. } => {
                let job = self.state.jobs.get(&job)?;
                let part = job.parts.get(usize::from(part))?;
                let booked = part.phase == Phase::Booked && attempt == part.attempt + 1;
                let next = part.next.as_ref().filter(|_| attempt == part.attempt + 1);
                let plan = if booked { part.plan.as_ref() } else { next }?;
                let duration = plan.to.since(plan.from);
                Some((Request { duration, ..part.request.clone() }, plan.clone()))
            }
            Holder::Hold { hold, part, .. } => {
                let hold = self.state.holds.get(&hold)?;
                let (plan, _) = hold.parts.get(usize::from(part))?;
                Some((hold.requests()[usize::from(part)].clone(), plan.clone()))
            }
            Holder::Maintenance => None,
        }
    }

    /// Seats something that has not begun elsewhere. One that is broken takes the other parts of
    /// its job, or its hold, with it: those are no longer to come.
    fn relocate(&mut self, holder: Holder, effort: Effort) {
        let Some((request, plan)) = self.coming(holder) else { return };
        match holder {
            Holder::Job { job, part, .. } => {
                self.relocate_job(job, usize::from(part), &request, &plan, effort);
            }
            Holder::Hold { hold, part, .. } => {
                self.relocate_hold(hold, usize::from(part), &request, &plan, effort);
            }
            Holder::Maintenance => {}
        }
    }

    fn relocate_job(
        &mut self,
        id: JobId,
        index: usize,
        request: &Request,
        plan: &Plan,
        effort: Effort,
    ) {
        let Some(mut job) = self.job(id) else { return };
        let attempt = job.parts[index].attempt + 1;
        self.close_books(&job, index);
        self.state.unseat_plan(id, index, plan, attempt);
        let pool = self.state.calendar.pool(&plan.pool).cloned();
        // Not before the old attempt is certainly gone.
        let gone = job.parts[index].gone_by().unwrap_or(self.state.now);
        let pool = pool.filter(|_| plan.from >= gone);
        let same = pool.and_then(|pool| self.seats_at(&pool, job.user, request, plan.from));
        let (new, replanned) = match (same, effort) {
            (Some(new), _) => (Some(new), false),
            (None, Effort::SameStart) => (Some(plan.clone()), false),
            (None, Effort::Whatever) => (self.replan(&job, index, request, gone), true),
        };
        if let Some(new) = &new {
            self.state.seat_plan(&job, index, request, new, attempt);
            self.tell_moves(&job, index, plan, new, replanned);
        }
        let part = &mut job.parts[index];
        let was_next = part.next.is_some();
        match (&new, was_next) {
            (_, true) => (part.next, part.cleared) = (new.clone(), false),
            (Some(_), false) => (part.plan, part.cleared) = (new.clone(), false),
            // The books are closed again when the part is: they must show what it had.
            (None, false) => {}
        }
        self.open_books(&job, index);
        if new.is_some() || was_next {
            if new.is_none() {
                let reason = "hardware was lost and no room was left in the window".to_owned();
                self.events.push(Event::Broken { job: id, reason });
            }
            self.state.put_job(job);
            return;
        }
        self.state.seat_plan(&job, index, request, plan, attempt);
        let reason = "a node was lost and no room was left in the window".to_owned();
        self.events.push(Event::Broken { job: id, reason: reason.clone() });
        self.finish(job, index, Outcome::Broken { reason });
    }

    fn tell_moves(&mut self, job: &Job, index: usize, old: &Plan, new: &Plan, replanned: bool) {
        let part = index as u16;
        if replanned {
            let plan = new.clone();
            self.events.push(Event::Replanned { job: job.id, part, plan });
            let (user, job) = (job.user, job.id);
            self.effects.push(Effect::Notify { user, job, news: News::Replanned });
            return;
        }
        for (rank, (from, to)) in old.seats.iter().zip(&new.seats).enumerate() {
            if from != to {
                let rank = rank as u32;
                let (from, to) = (*from, *to);
                self.events.push(Event::Moved { job: job.id, part, rank, from, to });
            }
        }
    }

    fn relocate_hold(
        &mut self,
        id: HoldId,
        index: usize,
        request: &Request,
        plan: &Plan,
        effort: Effort,
    ) {
        let Some(hold) = self.state.holds.get(&id).cloned() else { return };
        let user = hold.bid.user;
        self.state.unseat_hold(id, index, plan);
        let pool = self.state.calendar.pool(&plan.pool).cloned();
        let new = pool.and_then(|pool| self.seats_at(&pool, user, request, plan.from));
        match (new, effort) {
            (Some(new), _) => {
                self.state.seat_hold(id, index, request, &new);
                for (rank, (from, to)) in plan.seats.iter().zip(&new.seats).enumerate() {
                    if from != to {
                        let (part, rank, to) = (index as u16, rank as u32, *to);
                        self.events.push(Event::HoldMoved { hold: id, part, rank, to });
                    }
                }
                let mut hold = Hold::clone(&hold);
                hold.parts[index].0 = new;
                hold.cleared.remove(&(index as u16));
                self.state.put_hold(hold);
            }
            (None, effort) => {
                self.state.seat_hold(id, index, request, plan);
                if effort == Effort::Whatever {
                    self.end_hold(id);
                }
            }
        }
    }

    pub(super) fn set_capacity(&mut self, id: NodeId, capacity: Capacity) -> Result<(), Refusal> {
        let node = self.state.cluster.node(id)?.clone();
        check_capacity(&capacity)?;
        let changed = Arc::new(Node { capacity: capacity.clone(), ..Node::clone(&node) });
        let hit = self.no_longer_fit(id, &changed);
        self.state.cluster.edit_node(id, |n| n.health = Health::Draining);
        self.state.calendar.follow(&self.state.cluster);
        let until = self.state.now + self.state.settings.grace;
        for (job, part) in self.runs_on(id) {
            let Ok(running) = self.state.job(job) else { continue };
            let attempt = running.parts[part].attempt;
            let mut ranks = ranks_on(&running.parts[part], id);
            ranks.retain(|rank| {
                hit.contains(&Holder::Job { job, part: part as u16, attempt, rank: *rank })
            });
            let lost = Task::Evicted(until);
            self.hardware_lost_under(job, part, &ranks, lost, "its node lost capacity");
        }
        for (holder, _) in self.promises_on(id) {
            let same = |h: &Holder| match (h, &holder) {
                (
                    Holder::Job { job, part, attempt, .. },
                    Holder::Job { job: j, part: p, attempt: a, .. },
                ) => (job, part, attempt) == (j, p, a),
                (Holder::Hold { hold, part, .. }, Holder::Hold { hold: h, part: p, .. }) => {
                    (hold, part) == (h, p)
                }
                _ => false,
            };
            if hit.iter().any(same) {
                self.relocate(holder, Effort::Whatever);
            }
        }
        self.state.cluster.edit_node(id, |n| {
            n.health = node.health;
            n.capacity = capacity;
        });
        self.events.push(Event::NodesChanged { nodes: vec![id] });
        self.state.freed = true;
        self.state.derive();
        Ok(())
    }

    /// Who no longer fits on a node that changed: the oldest bookings stay.
    fn no_longer_fit(&self, id: NodeId, changed: &Arc<Node>) -> BTreeSet<Holder> {
        let Some(lane) = self.state.calendar.lane(id) else { return BTreeSet::new() };
        let mut trial = Lane::new(changed.clone());
        let mut hit = BTreeSet::new();
        for booking in lane.bookings().iter().filter(|b| b.holder != Holder::Maintenance) {
            let missing_gpu = booking.take.gpus >> changed.capacity.gpus.len().min(63) != 0
                && changed.capacity.gpus.len() < 64;
            // Columns of devices shift with the GPUs and the kinds: such a booking starts anew.
            let (old, new) = (&lane.node.capacity, &changed.capacity);
            let shifted = !booking.take.devices.is_empty()
                && (new.gpus.len() != old.gpus.len() || !new.devices.keys().eq(old.devices.keys()));
            if missing_gpu || shifted {
                hit.insert(booking.holder);
                continue;
            }
            trial.add(Booking::clone(booking));
            let taken = trial.peak(booking.from, booking.to, booking.to);
            if !trial.within_capacity(&taken) {
                trial.remove(booking.holder);
                hit.insert(booking.holder);
            }
        }
        hit
    }

    pub(super) fn set_domain(&mut self, node: NodeId, domain: Option<Name>) -> Result<(), Refusal> {
        self.state.cluster.node(node)?;
        if let Some(name) = &domain {
            self.state.cluster.domain(name)?;
        }
        self.state.cluster.edit_node(node, |n| n.domain = domain);
        self.follow(vec![node]);
        Ok(())
    }

    pub(super) fn put_pool(&mut self, pool: Pool) -> Result<(), Refusal> {
        let bad = |field: &str, problem: String| {
            Err(Refusal::BadSetting { field: field.into(), problem })
        };
        for rate in [pool.rates.cpu, pool.rates.memory, pool.rates.gpu] {
            if rate < Money::ZERO || rate > RATE_MAX {
                return bad("rates", format!("give 0 to {RATE_MAX} an hour"));
            }
        }
        if pool.closed_share > Milli::ONE {
            return bad("closed_share", "give at most 1000 thousandths".into());
        }
        if pool.level_caps.values().any(|cap| *cap > Milli::ONE) {
            return bad("level_caps", "give at most 1000 thousandths".into());
        }
        let name = pool.name.clone();
        self.state.cluster.put_pool(pool)?;
        self.state.derive();
        self.changed("pool", Some(name));
        Ok(())
    }

    pub(super) fn put_domain(&mut self, domain: Domain) -> Result<(), Refusal> {
        if domain.keep.is_some_and(|k| k.share > Milli::ONE) {
            return Err(Refusal::BadSetting {
                field: "keep.share".into(),
                problem: "give at most 1000 thousandths".into(),
            });
        }
        let name = domain.name.clone();
        self.state.cluster.put_domain(domain)?;
        self.state.calendar.follow(&self.state.cluster);
        self.changed("domain", Some(name));
        Ok(())
    }

    pub(super) fn remove_domain(&mut self, name: &Name) -> Result<(), Refusal> {
        self.state.cluster.remove_domain(name)?;
        self.changed("domain", Some(name.clone()));
        Ok(())
    }

    /// Tells whatever preemptible is in the way of a promise to be gone when it starts.
    pub(super) fn clear_seats(&mut self, id: JobId, index: u16) {
        let Some(mut job) = self.job(id) else { return };
        let part: &mut Part = &mut job.parts[usize::from(index)];
        let coming = if part.phase == Phase::Booked { &part.plan } else { &part.next };
        let Some(plan) = coming.clone().filter(|_| !part.cleared) else { return };
        part.cleared = true;
        let booked = part.phase == Phase::Booked;
        self.state.put_job(job);
        if booked {
            self.sit_beside(id, usize::from(index));
        }
        let moved = self.state.jobs.get(&id).map(|j| &j.parts[usize::from(index)]);
        let moved = moved.and_then(|p| if booked { p.plan.clone() } else { p.next.clone() });
        self.clear_plan(&moved.unwrap_or(plan));
    }

    /// The same for a hold: its capacity is set aside, and must be there when it is accepted.
    pub(super) fn clear_held(&mut self, id: HoldId, index: u16) {
        let Some(mut hold) = self.state.holds.get(&id).map(|h| Hold::clone(h)) else { return };
        let Some((plan, _)) = hold.parts.get(usize::from(index)).cloned() else { return };
        hold.cleared.insert(index);
        self.state.put_hold(hold);
        self.clear_plan(&plan);
    }

    fn clear_plan(&mut self, plan: &Plan) {
        let nodes: BTreeSet<NodeId> = plan.seats.iter().map(|s| s.node).collect();
        for node in nodes {
            self.clear_node(node, plan.from);
        }
    }

    /// Makes soft bookings on a node give way until what is booked at `at` fits: growth first,
    /// then the latest started.
    fn clear_node(&mut self, node: NodeId, at: Time) {
        let mut leaving: Vec<Holder> = Vec::new();
        loop {
            let Some(lane) = self.state.calendar.lane(node) else { return };
            let mut trial = Lane::clone(lane);
            for holder in &leaving {
                trial.remove(*holder);
            }
            let after = at + Span(1);
            if trial.within_capacity(&trial.peak(at, after, after)) {
                break;
            }
            let in_the_way = trial
                .bookings()
                .iter()
                .filter(|b| b.layer == crate::calendar::Layer::Soft && b.from <= at && at < b.to);
            let Some(victim) =
                in_the_way.max_by_key(|b| (self.is_growth(b.holder), b.from, b.holder))
            else {
                break;
            };
            leaving.push(victim.holder);
        }
        self.spare(node, at, &mut leaving);
        for holder in leaving {
            let Holder::Job { job, part, rank, .. } = holder else { continue };
            if self.is_growth(holder) {
                self.stop_extras(job, usize::from(part), &[rank], at);
            } else if let Some(mut preempted) = self.job(job) {
                let index = usize::from(part);
                // Whatever stops anyway is to be gone in time, too.
                if preempted.parts[index].stop.is_none_or(|stop| stop.until > at) {
                    let why = preempted.parts[index].stop.map_or(StopReason::Preempted, |s| s.why);
                    self.stop_part_until(&mut preempted, index, why, at);
                    self.state.put_job(preempted);
                }
            }
        }
    }

    pub(super) fn is_growth(&self, holder: Holder) -> bool {
        let Holder::Job { job, part, rank, .. } = holder else { return false };
        let part = self.state.jobs.get(&job).and_then(|j| j.parts.get(usize::from(part)));
        part.is_some_and(|p| p.extras.iter().any(|e| e.rank == rank))
    }
}

/// The ranks of a run that sit on a node, growth included.
fn ranks_on(part: &Part, node: NodeId) -> Vec<u32> {
    let seats = part.plan.iter().flat_map(|p| &p.seats).zip(0u32..);
    let extras = part.extras.iter().map(|e| (&e.seat, e.rank));
    seats.chain(extras).filter(|(seat, _)| seat.node == node).map(|(_, rank)| rank).collect()
}

fn check_capacity(capacity: &Capacity) -> Result<(), Refusal> {
    let bad = |problem: String| Err(Refusal::BadSetting { field: "capacity".into(), problem });
    if capacity.gpus.len() > GPUS_PER_NODE_MAX {
        return bad(format!("a node has at most {GPUS_PER_NODE_MAX} GPUs"));
    }
    if capacity.devices.len() > DEVICE_KINDS_MAX {
        return bad(format!("a node has at most {DEVICE_KINDS_MAX} kinds of devices"));
    }
    let limit = 1 << 30;
    if capacity.cpu > limit
        || capacity.memory > limit
        || capacity.devices.values().any(|n| *n > limit)
    {
        return bad("at most 1000000 cores, 1Pi of memory and 2^30 of a device".into());
    }
    Ok(())
}
