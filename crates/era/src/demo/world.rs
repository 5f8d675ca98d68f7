//! The core on a virtual clock, with an executor that only pretends.
//!
//! What a real driver does, in small: it numbers inputs, writes them and their events to a
//! journal, carries out effects, reports back, and wakes the core when the core asks for it. After
//! every step all invariants are checked.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, anyhow, ensure};
use era_core::job::{StopReason, TaskId};
use era_core::market::MarketRules;
use era_core::settings::Settings;
use era_core::units::{JobId, Name, NodeId, Span, Time};
use era_core::{Command, Effect, Event, Input, Reply, State, check, next_wakeup, step};

/// From a launch to the report that the task runs.
const LAUNCH_TAKES: Span = Span::from_s(2);
/// From a stop signal to the exit of a task that obeys.
const STOP_TAKES: Span = Span::from_s(5);
/// What a task exits with that obeyed a stop signal.
const STOPPED: i32 = 143;

/// A line of the journal: an input and the events that it caused, both as they are stored.
struct Line {
    input: String,
    events: String,
}

/// What the pretended executor does later.
#[derive(Clone, Copy)]
enum Due {
    Start(TaskId),
    Exit(TaskId),
    Stop(TaskId, StopReason),
}

/// GPUs that a task held on a node for a while.
#[derive(Clone)]
pub(super) struct Stint {
    pub(super) job: JobId,
    pub(super) node: NodeId,
    pub(super) gpus: Vec<u8>,
    pub(super) from: Time,
    pub(super) to: Time,
}

/// A time at which a node was lost, and the time at which it came back.
pub(super) struct Outage {
    pub(super) node: NodeId,
    pub(super) from: Time,
    pub(super) to: Time,
}

/// What a step had to tell.
pub(super) struct News {
    pub(super) at: Time,
    pub(super) events: Vec<Event>,
    /// How much work those who went back to their queue had saved.
    pub(super) saved: BTreeMap<JobId, Span>,
}

pub(super) struct World {
    pub(super) state: State,
    pub(super) now: Time,
    pub(super) stints: Vec<Stint>,
    pub(super) outages: Vec<Outage>,
    /// Promises that were given another start because hardware was lost.
    pub(super) replanned: BTreeSet<JobId>,
    journal: Vec<Line>,
    news: Vec<News>,
    due: BTreeMap<(Time, u64), Due>,
    dues: u64,
    running: BTreeMap<TaskId, Stint>,
    lost: BTreeSet<NodeId>,
    /// How much work a part really is, where that is not what was stated.
    work: BTreeMap<(JobId, u16), Span>,
}

/// What a replay found.
pub(super) struct Replay {
    pub(super) inputs: usize,
    pub(super) events: usize,
}

impl World {
    pub(super) fn new(now: Time) -> World {
        World {
            state: State::new(settings(), MarketRules::default()),
            now,
            stints: Vec::new(),
            outages: Vec::new(),
            replanned: BTreeSet::new(),
            journal: Vec::new(),
            news: Vec::new(),
            due: BTreeMap::new(),
            dues: 0,
            running: BTreeMap::new(),
            lost: BTreeSet::new(),
            work: BTreeMap::new(),
        }
    }

    /// One input through the core, and its effects carried out.
    pub(super) fn send(&mut self, command: Command) -> anyhow::Result<Reply> {
        let seq = self.state.seq() + 1;
        let input = Input { seq, at: self.now, command };
        let line = serde_json::to_string(&input)?;
        let output = step(&mut self.state, input);
        check(&self.state).map_err(|problem| anyhow!("after input {seq}: {problem}"))?;
        self.journal.push(Line { input: line, events: serde_json::to_string(&output.events)? });
        self.replanned.extend(output.events.iter().filter_map(|event| match event {
            Event::Replanned { job, .. } => Some(*job),
            _ => None,
        }));
        let saved = output.events.iter().filter_map(|event| match event {
            Event::Requeued { job, .. } => {
                Some((*job, self.state.job(*job).ok()?.parts.first()?.done))
            }
            _ => None,
        });
        let saved = saved.collect();
        self.news.push(News { at: self.now, events: output.events, saved });
        for effect in output.effects {
            self.perform(effect);
        }
        Ok(output.reply)
    }

    /// A command of the scenario's own set-up, which cannot be refused.
    pub(super) fn set_up(&mut self, command: Command) -> anyhow::Result<()> {
        let reply = self.send(command)?;
        ensure!(matches!(reply, Reply::Done | Reply::Joined { .. }), "refused: {reply:?}");
        Ok(())
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Launch { task, node, gpus, .. } if !self.lost.contains(&node) => {
                let (from, to) = (self.now, self.now);
                self.running.insert(task, Stint { job: task.job, node, gpus, from, to });
                self.later(LAUNCH_TAKES, Due::Start(task));
            }
            Effect::Stop { task, why, .. } => self.later(STOP_TAKES, Due::Stop(task, why)),
            // Nobody is there to be told, and no guard to be moved.
            _ => {}
        }
    }

    fn later(&mut self, after: Span, due: Due) {
        self.dues += 1;
        self.due.insert((self.now + after, self.dues), due);
    }

    /// Lets time pass until `time`, whatever happens first coming first.
    pub(super) fn until(&mut self, time: Time) -> anyhow::Result<()> {
        loop {
            let due = self.due.keys().next().copied();
            let wakeup = next_wakeup(&self.state);
            let next = due.map(|(at, _)| at).into_iter().chain(wakeup).min();
            let Some(next) = next.filter(|next| *next <= time) else { break };
            self.now = self.now.max(next);
            match due.filter(|(at, _)| *at == next).and_then(|key| self.due.remove(&key)) {
                Some(Due::Start(task)) => self.started(task)?,
                Some(Due::Exit(task)) => self.exited(task, 0)?,
                Some(Due::Stop(task, why)) => self.stopped(task, why)?,
                None => {
                    self.send(Command::Tick)?;
                    self.pass()?;
                }
            }
        }
        self.now = time;
        self.send(Command::Tick)?;
        self.pass()
    }

    /// A scheduling pass, if anybody waits.
    pub(super) fn pass(&mut self) -> anyhow::Result<()> {
        let waits =
            self.state.queues().iter().any(|q| self.state.waiting(&q.name).next().is_some());
        if waits {
            self.send(Command::Pass)?;
        }
        Ok(())
    }

    fn started(&mut self, task: TaskId) -> anyhow::Result<()> {
        if !self.running.contains_key(&task) {
            return Ok(());
        }
        self.send(Command::Started { task })?;
        let part = &self.state.job(task.job)?.parts[usize::from(task.part)];
        let work = self.work.get(&(task.job, task.part)).copied();
        let work = work.unwrap_or(Span(part.request.duration.0 - 60_000));
        self.later(Span((work.0 - part.done.0).max(1)), Due::Exit(task));
        Ok(())
    }

    /// A task obeys a stop signal; whoever will go on later saves its work first.
    fn stopped(&mut self, task: TaskId, why: StopReason) -> anyhow::Result<()> {
        let Some(stint) = self.running.get(&task) else { return Ok(()) };
        let ran = self.now.since(stint.from);
        let part = &self.state.job(task.job)?.parts[usize::from(task.part)];
        if why == StopReason::Preempted {
            let done = Span(part.done.0 + ran.0);
            self.send(Command::Checkpointed { task, done })?;
        }
        self.exited(task, STOPPED)
    }

    fn exited(&mut self, task: TaskId, code: i32) -> anyhow::Result<()> {
        let Some(stint) = self.running.remove(&task) else { return Ok(()) };
        self.stints.push(Stint { to: self.now, ..stint });
        self.send(Command::Exited { task, code, at: None })?;
        self.pass()
    }

    /// Says how much work a part of a job really is.
    pub(super) fn really_takes(&mut self, job: JobId, part: u16, work: Span) {
        self.work.insert((job, part), work);
    }

    /// A task of a job that runs reports how much of its work is saved.
    pub(super) fn checkpoint(&mut self, job: JobId, done: Span) -> anyhow::Result<()> {
        let task = self.running.keys().find(|task| task.job == job).copied();
        let task = task.with_context(|| format!("{job} does not run"))?;
        self.send(Command::Checkpointed { task, done })?;
        Ok(())
    }

    /// The node under the first task of a job.
    pub(super) fn node_of(&self, job: JobId) -> Option<NodeId> {
        self.running.iter().find(|(task, _)| task.job == job).map(|(_, stint)| stint.node)
    }

    /// A node is gone, with all that runs on it.
    pub(super) fn lose(&mut self, node: NodeId) -> anyhow::Result<()> {
        self.lost.insert(node);
        self.outages.push(Outage { node, from: self.now, to: Time::MAX });
        let now = self.now;
        let dead = self.running.extract_if(.., |_, stint| stint.node == node);
        self.stints.extend(dead.map(|(_, stint)| Stint { to: now, ..stint }));
        self.set_up(Command::Lost { node })?;
        self.pass()
    }

    /// It is back.
    pub(super) fn bring_back(&mut self, node: NodeId) -> anyhow::Result<()> {
        self.lost.remove(&node);
        for outage in self.outages.iter_mut().filter(|o| o.node == node && o.to == Time::MAX) {
            outage.to = self.now;
        }
        self.set_up(Command::Resume { node })?;
        self.pass()
    }

    /// What happened since this was last asked.
    pub(super) fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// Every stint, those that go on cut at the present.
    pub(super) fn all_stints(&self) -> impl Iterator<Item = Stint> {
        let open = self.running.values().map(|stint| Stint { to: self.now, ..stint.clone() });
        self.stints.iter().cloned().chain(open)
    }

    /// What people call a node.
    pub(super) fn node_name(&self, node: NodeId) -> String {
        self.state.cluster().node(node).map_or_else(|_| node.to_string(), |n| n.name.to_string())
    }

    /// Plays the journal through a fresh core and compares every event, byte for byte.
    pub(super) fn replay(&self) -> anyhow::Result<Replay> {
        let mut state = State::new(settings(), MarketRules::default());
        let mut events = 0;
        for line in &self.journal {
            let input: Input = serde_json::from_str(&line.input)?;
            let seq = input.seq;
            let output = step(&mut state, input);
            let told = serde_json::to_string(&output.events)?;
            ensure!(told == line.events, "input {seq} caused other events when replayed");
            events += output.events.len();
        }
        ensure!(state == self.state, "the replayed state differs");
        Ok(Replay { inputs: self.journal.len(), events })
    }
}

/// The rules of the house as they come, but for a horizon that is enough for a day.
fn settings() -> Settings {
    Settings { horizon: Span::from_days(2), ..Settings::default() }
}

/// A name that the scenario spells right.
pub(super) fn name(text: &str) -> anyhow::Result<Name> {
    Ok(Name::new(text)?)
}
