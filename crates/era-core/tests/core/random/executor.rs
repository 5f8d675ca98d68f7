//! An executor that does exactly what it is told, and knows the right answer.
//!
//! It keeps what runs on each node: a task runs from its launch until it exits, until its guard
//! ends it at the time that it was told, or, cut off on a lost node where no word reaches it,
//! until its lease lapses. From that it says what no state of the core may contradict: what runs
//! fits, GPU by GPU; one attempt at a time; and what was told and not confirmed is exactly what
//! the core holds to be outstanding.

use std::collections::{BTreeMap, BTreeSet};

use era_core::cluster::Health;
use era_core::job::TaskId;
use era_core::resources::Resources;
use era_core::units::{JobId, NodeId, Time};
use era_core::{Command, Effect, Output, Reply, State, outstanding};

/// A task that runs, or may be running.
#[derive(Clone, Debug)]
pub struct Live {
    pub node: NodeId,
    pub gpus: Vec<u8>,
    pub each: Resources,
    /// When its guard ends it, whatever happens.
    pub until: Time,
    /// When it was told to be gone.
    pub stop: Option<Time>,
    /// When its lease lapses, if its node is cut off.
    pub lapses: Option<Time>,
    pub confirmed: bool,
}

impl Live {
    fn end(&self) -> Time {
        // No word reaches a task that is cut off, and an earlier one may have been on its way.
        let stop = self.lapses.or(self.stop).unwrap_or(self.until);
        stop.min(self.until)
    }
}

/// All that runs, and all that was told and not confirmed.
#[derive(Clone, Debug, Default)]
pub struct Executor {
    pub live: BTreeMap<TaskId, Live>,
    /// Tasks that were launched at any time, for reports that come late.
    pub launched: Vec<TaskId>,
    pending: BTreeMap<TaskId, Effect>,
    /// Nodes that lost capacity: until then, what no longer fits there may still be stopping.
    shrunk: BTreeMap<NodeId, Time>,
}

impl Executor {
    /// Takes note of a step: what it was about, and what came out.
    pub fn follow(
        &mut self,
        before: &State,
        state: &State,
        command: &Command,
        output: &Output,
    ) -> Result<(), String> {
        let now = state.now();
        self.live.retain(|_, live| live.end() > now);
        self.pending
            .retain(|_, effect| !matches!(effect, Effect::Stop { until, .. } if *until <= now));
        self.note_command(before, state, command, &output.reply);
        for effect in &output.effects {
            self.obey(before, state, effect)?;
        }
        self.note_report(command, &output.reply);
        self.live.retain(|_, live| live.end() > now);
        self.attempts_are_single()?;
        self.nodes_hold_what_runs(state)?;
        self.outstanding_is_known(state)
    }

    fn note_command(&mut self, before: &State, state: &State, command: &Command, reply: &Reply) {
        let now = state.now();
        match (command, reply) {
            (Command::Exited { task, .. } | Command::TaskLost { task, .. }, _) => {
                self.live.remove(task);
            }
            (Command::Lost { node }, Reply::Done) => {
                let was = before.cluster().node(*node).map(|n| n.health);
                if was.is_ok_and(|health| health != Health::Lost) {
                    let lapses = now + state.settings().lease;
                    if let Some(until) = self.shrunk.get_mut(node).filter(|until| **until >= now) {
                        *until = lapses.max(*until);
                    }
                    for live in self.live.values_mut().filter(|l| l.node == *node) {
                        live.lapses = Some(lapses.min(live.lapses.unwrap_or(lapses)));
                    }
                }
            }
            (Command::SetCapacity { node, .. }, Reply::Done) => {
                let until = now + state.settings().grace.max(state.settings().lease);
                let until = until.max(self.shrunk.get(node).copied().unwrap_or(until));
                self.shrunk.insert(*node, until);
            }
            _ => {}
        }
    }

    /// Takes note of what was confirmed, after what time alone had brought about.
    fn note_report(&mut self, command: &Command, reply: &Reply) {
        match (command, reply) {
            (Command::Started { task }, Reply::Done) => {
                if let Some(live) = self.live.get_mut(task) {
                    live.confirmed = true;
                }
                if matches!(self.pending.get(task), Some(Effect::Launch { .. })) {
                    self.pending.remove(task);
                }
            }
            (Command::Exited { task, .. } | Command::TaskLost { task, .. }, Reply::Done) => {
                self.pending.remove(task);
            }
            _ => {}
        }
    }

    fn obey(&mut self, before: &State, state: &State, effect: &Effect) -> Result<(), String> {
        let now = state.now();
        match effect {
            Effect::Launch { task, node, gpus, each, until, .. } => {
                // Time passes before the command is carried out, on nodes as they were before.
                let host = before.cluster().node(*node).map_err(|e| e.to_string())?;
                if host.health == Health::Lost {
                    return Err(format!("{task} is launched on the lost {node}"));
                }
                if host.maintenance.iter().any(|(from, to)| *from < *until && now < *to) {
                    return Err(format!("{task} is launched into the maintenance of {node}"));
                }
                let older = |t: &TaskId| {
                    (t.job, t.part) == (task.job, task.part) && t.attempt < task.attempt
                };
                let still = self.live.iter().find(|(t, live)| older(t) && live.end() > now);
                if let Some((old, live)) = still {
                    return Err(format!("{task} starts while {old} may run until {}", live.end()));
                }
                if self.launched.contains(task) {
                    return Err(format!("{task} is launched twice"));
                }
                let lost_now = state.cluster().node(*node).is_ok_and(|n| n.health == Health::Lost);
                let live = Live {
                    node: *node,
                    gpus: gpus.clone(),
                    each: each.clone(),
                    until: *until,
                    stop: None,
                    lapses: lost_now.then(|| now + state.settings().lease),
                    confirmed: false,
                };
                self.live.insert(*task, live);
                self.launched.push(*task);
                self.pending.insert(*task, effect.clone());
            }
            Effect::Stop { task, until, .. } => {
                if !self.launched.contains(task) {
                    return Err(format!("{task} is stopped and was never launched"));
                }
                if let Some(live) = self.live.get_mut(task) {
                    live.stop = Some(*until);
                }
                self.pending.insert(*task, effect.clone());
            }
            Effect::Prolong { task, until: longer, .. } => {
                if let Some(live) = self.live.get_mut(task).filter(|l| l.lapses.is_none()) {
                    live.until = *longer;
                }
                match self.pending.get_mut(task) {
                    Some(Effect::Launch { until, .. }) => *until = *longer,
                    Some(told) => return Err(format!("{task} is prolonged after {told:?}")),
                    None => {}
                }
            }
            Effect::Resize { job, part, attempt, replicas: size } => {
                for (task, told) in &mut self.pending {
                    if (task.job, task.part, task.attempt) == (*job, *part, *attempt)
                        && let Effect::Launch { replicas, .. } = told
                    {
                        *replicas = *size;
                    }
                }
            }
            Effect::Notify { .. } => {}
        }
        Ok(())
    }

    /// Invariant 7: one attempt of a part at a time.
    fn attempts_are_single(&self) -> Result<(), String> {
        let mut attempts: BTreeMap<(JobId, u16), u32> = BTreeMap::new();
        for task in self.live.keys() {
            let first = *attempts.entry((task.job, task.part)).or_insert(task.attempt);
            if first != task.attempt {
                return Err(format!("two attempts of {} part {} run", task.job, task.part));
            }
        }
        Ok(())
    }

    /// Invariant 1, as the machines see it.
    fn nodes_hold_what_runs(&self, state: &State) -> Result<(), String> {
        let now = state.now();
        let nodes: BTreeSet<NodeId> = self.live.values().map(|live| live.node).collect();
        for id in nodes {
            if self.shrunk.get(&id).is_some_and(|until| now <= *until) {
                continue;
            }
            let node =
                state.cluster().node(id).map_err(|e| format!("something runs there: {e}"))?;
            let here: Vec<(&TaskId, &Live)> =
                self.live.iter().filter(|(_, live)| live.node == id).collect();
            let sum = |of: fn(&Resources) -> u32| -> u64 {
                here.iter().map(|(_, live)| u64::from(of(&live.each))).sum()
            };
            let capacity = &node.capacity;
            let mut used = vec![0u32; capacity.gpus.len()];
            for (task, live) in &here {
                let share = if live.each.gpu < 1000 { live.each.gpu } else { 1000 };
                if live.gpus.len() as u32 != live.each.gpus_touched() {
                    return Err(format!("{task} has {:?} for {}", live.gpus, live.each));
                }
                for gpu in &live.gpus {
                    match used.get_mut(usize::from(*gpu)) {
                        Some(used) => *used += share,
                        None => return Err(format!("{task} has GPU {gpu} that {id} has not")),
                    }
                }
            }
            let devices = |kind| -> u64 {
                let of = |live: &Live| live.each.devices.get(kind).copied().unwrap_or(0);
                here.iter().map(|(_, live)| u64::from(of(live))).sum()
            };
            let fits = sum(|e| e.cpu) <= u64::from(capacity.cpu)
                && sum(|e| e.memory) <= u64::from(capacity.memory)
                && used.iter().all(|share| *share <= 1000)
                && capacity.devices.iter().all(|(kind, has)| devices(kind) <= u64::from(*has));
            if !fits {
                return Err(format!("more runs on {id} than it has: {here:?}"));
            }
        }
        Ok(())
    }

    /// What was told and not confirmed is what the core says is outstanding.
    fn outstanding_is_known(&mut self, state: &State) -> Result<(), String> {
        let now = state.now();
        let listed = outstanding(state);
        let named = |effect: &Effect| match effect {
            Effect::Launch { task, .. } | Effect::Stop { task, .. } => Some(*task),
            _ => None,
        };
        let mut core: BTreeMap<TaskId, &Effect> = BTreeMap::new();
        for effect in &listed {
            if let Effect::Prolong { task, until, .. } = effect {
                let told = self.live.get(task).map(|live| live.until);
                if told.is_some_and(|told| told != *until) {
                    return Err(format!("{task} was told another end than {until}"));
                }
                continue;
            }
            let task = named(effect).ok_or(format!("{effect:?} cannot be confirmed"))?;
            if core.insert(task, effect).is_some() {
                return Err(format!("{task} is outstanding twice"));
            }
        }
        // What was told to be gone by now is gone.
        self.pending.retain(|_, told| !matches!(told, Effect::Stop { until, .. } if *until <= now));
        for (task, told) in &self.pending {
            match core.remove(task) {
                Some(effect) if effect == told => {}
                other => return Err(format!("told {told:?}, outstanding is {other:?}")),
            }
        }
        match core.into_values().next() {
            Some(effect) => Err(format!("outstanding and never told: {effect:?}")),
            None => Ok(()),
        }
    }

    /// Whether nothing is told that is not confirmed.
    pub fn is_quiet(&self) -> bool {
        self.pending.is_empty()
    }

    /// A node of every task that may still be reported on.
    pub fn reachable(&self, state: &State) -> Vec<TaskId> {
        let up = |node| state.cluster().node(node).is_ok_and(|n| n.health != Health::Lost);
        self.live.iter().filter(|(_, live)| up(live.node)).map(|(task, _)| *task).collect()
    }
}
