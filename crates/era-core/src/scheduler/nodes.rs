//! Machines come, go, break, change and are announced to be away.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::replan::Effort;
use super::{Step, tasks};
use crate::calendar::{Booking, BookingHolder, NodeCalendar};
use crate::cluster::{Domain, Health, Node, Pool, WINDOWS_MAX};
use crate::event::Event;
use crate::input::NewNode;
use crate::job::{Attempt, Part, StopReason, Task};
use crate::market::RATE_MAX;
use crate::output::{Effect, Reply};
use crate::refusal::Refusal;
use crate::resources::{Capacity, DEVICE_KINDS_MAX, GPUS_PER_NODE_MAX};
use crate::units::{JobId, Milli, Money, Name, NodeId, Time};

/// Most nodes that join in one command.
const JOIN_MAX: usize = 16_384;

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
                stop_at: None,
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
    pub(super) fn follow(&mut self, nodes: Vec<NodeId>) {
        self.state.calendar.follow(&self.state.cluster);
        self.state.freed = true;
        self.events.push(Event::NodesChanged { nodes });
    }

    pub(super) fn leave(&mut self, node: NodeId) -> Result<(), Refusal> {
        self.state.cluster.node(node)?;
        let trial = self.vacated(node, Time::MIN, Time::MAX)?;
        self.adopt(trial);
        self.state.edit_node(node, |n| n.stop_at = None);
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
            let step = Step::new(&mut state);
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
        let mut step = Step::new(&mut trial);
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
            .node(node)
            .into_iter()
            .flat_map(|node_calendar| node_calendar.bookings())
            .filter(|b| b.from < to && from < b.to)
            .filter_map(|b| match b.holder {
                BookingHolder::Job { job, .. } => Some(job),
                BookingHolder::Hold { .. } => Some(JobId(0)),
                BookingHolder::Maintenance => None,
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
        self.set_health(node, Health::Lost, None);
        // A task there may go on until its lease lapses; nothing replaces it before that.
        let lease = self.state.settings.lease.max(self.state.settings.grace);
        let fence = self.state.now + lease;
        for (job, part) in self.runs_on(node) {
            let Ok(running) = self.state.job(job) else { continue };
            let ranks = ranks_on(&running.parts[part], node);
            self.hardware_lost_under(job, part, &ranks, Task::CutOff(fence), "its node was lost");
        }
        for (holder, _) in self.promises_on(node) {
            self.relocate(holder, Effort::Whatever { why: "a node was lost" });
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
        let Some(job) = self.job(id) else { return };
        let failing = job.is_failing(index);
        let part = &job.parts[index];
        let (Some(run), Some(lapses)) = (part.run(), lost.lapses()) else { return };
        // A guard ends a task with its plan, cut off or not.
        let until = lapses.min(run.plan.to).max(self.state.now);
        let hit = self.edit_run(id, index, |run| lose(run, ranks, lost, until));
        let hit = hit.unwrap_or_default();
        let gang_hit = hit.iter().any(|rank| (*rank as usize) < run.tasks.len());
        let stopping = run.is_stopping();
        // A gang that is failing has lost a peer, promised or not.
        if (gang_hit && !stopping) || (failing && !hit.is_empty()) {
            return self.gang_lost(id, index, until, StopReason::Lost, reason);
        }
        self.tell_stops(id, index, &hit);
        if !hit.is_empty() && !stopping {
            self.tell_size(id, index);
        }
        let late = self.part(id, index).and_then(Part::gone_by);
        if part.next().is_some_and(|next| late.is_some_and(|late| next.from < late)) {
            let (part, attempt) = (index as u16, part.attempt + 1);
            let next = BookingHolder::Job { job: id, part, attempt, rank: 0 };
            self.relocate(next, Effort::Whatever { why: "a node was lost" });
        }
    }

    /// Tells these ranks to stop: those that are cut off, for when word reaches them again.
    fn tell_stops(&mut self, id: JobId, index: usize, ranks: &[u32]) {
        let Some(job) = self.job(id) else { return };
        let mut effects = Vec::new();
        tasks::outstanding(&job, index, &job.parts[index], &mut effects);
        effects.retain(|e| matches!(e, Effect::Stop { task, .. } if ranks.contains(&task.rank)));
        self.effects.append(&mut effects);
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
                hit.contains(&BookingHolder::Job { job, part: part as u16, attempt, rank: *rank })
            });
            let lost = Task::Evicted(until);
            self.hardware_lost_under(job, part, &ranks, lost, "its node lost capacity");
        }
        for (holder, _) in self.promises_on(id) {
            let same = |h: &BookingHolder| match (h, &holder) {
                (
                    BookingHolder::Job { job, part, attempt, .. },
                    BookingHolder::Job { job: j, part: p, attempt: a, .. },
                ) => (job, part, attempt) == (j, p, a),
                (
                    BookingHolder::Hold { hold, part, .. },
                    BookingHolder::Hold { hold: h, part: p, .. },
                ) => (hold, part) == (h, p),
                _ => false,
            };
            if hit.iter().any(same) {
                self.relocate(holder, Effort::Whatever { why: "a node was lost" });
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
    fn no_longer_fit(&self, id: NodeId, changed: &Arc<Node>) -> BTreeSet<BookingHolder> {
        let Some(node_calendar) = self.state.calendar.node(id) else { return BTreeSet::new() };
        let mut trial = NodeCalendar::new(changed.clone());
        let mut hit = BTreeSet::new();
        for booking in
            node_calendar.bookings().iter().filter(|b| b.holder != BookingHolder::Maintenance)
        {
            let missing_gpu = booking.take.gpus >> changed.capacity.gpus.len().min(63) != 0
                && changed.capacity.gpus.len() < 64;
            // Columns of devices shift with the GPUs and the kinds: such a booking starts anew.
            let (old, new) = (&node_calendar.node.capacity, &changed.capacity);
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
}

/// Hardware under these ranks is lost: they are gone by `until`. Returns those that this befell.
fn lose(run: &mut Attempt, ranks: &[u32], lost: Task, until: Time) -> Vec<u32> {
    let mut hit = Vec::new();
    for (rank, task) in run.tasks_mut().filter(|(rank, _)| ranks.contains(rank)) {
        let after = match (*task, lost) {
            // No word may have reached it before its node was lost.
            (Task::Evicted(by), _) => Task::Evicted(by.max(until)),
            (Task::CutOff(by), Task::Evicted(_)) => Task::Evicted(by),
            (Task::Exited(_) | Task::Lost | Task::CutOff(_), _) => *task,
            (_, Task::Evicted(_)) => Task::Evicted(until),
            (_, _) => Task::CutOff(until),
        };
        if after != *task {
            hit.push(rank);
        }
        *task = after;
    }
    for extra in run.extras.iter_mut().filter(|e| hit.contains(&e.rank)) {
        extra.stop_until = extra.task.lapses();
    }
    hit
}

/// The ranks of a run that sit on a node, growth included.
pub(super) fn ranks_on(part: &Part, node: NodeId) -> Vec<u32> {
    let seats = part.plan().into_iter().flat_map(|p| &p.seats).zip(0u32..);
    let extras = part.extras().iter().map(|e| (&e.seat, e.rank));
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
