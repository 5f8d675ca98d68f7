//! The cluster of the demo on a virtual clock, and a chronicle of what happens in it.
//!
//! After every step all invariants are checked, and the journal is kept as it would be stored, so
//! that the day can be played again.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, anyhow, ensure};
use era_core::job::TaskId;
use era_core::units::{JobId, Name, NodeId, Span, Time};
use era_core::{Command, Effect, Event, Input, Output, Reply, State, check, step};
use era_drive::{Conduct, Pace, Scenario, SiteBuilder};

/// How fast the machines are.
const PACE: Pace = Pace { launch: Span::from_s(2), stop: Span::from_s(5), ..Pace::AT_ONCE };
/// By how much a job is over before its time is, where nothing else is said.
const SPARE: Span = Span::from_min(1);

/// A line of the journal: an input and the events that it caused, both as they are stored.
struct JournalText {
    input: String,
    events: String,
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
pub(super) struct StepNews {
    pub(super) at: Time,
    pub(super) events: Vec<Event>,
    /// How much work those who went back to their queue had saved.
    pub(super) saved: BTreeMap<JobId, Span>,
}

/// What has happened so far.
#[derive(Default)]
pub(super) struct Chronicle {
    /// How much work a part really is, where that is not what was stated.
    works: BTreeMap<(JobId, u16), Span>,
    /// Who held which GPUs, until they were given back.
    stints: Vec<Stint>,
    running: BTreeMap<TaskId, Stint>,
    pub(super) outages: Vec<Outage>,
    /// Promises that were given another start because hardware was lost.
    pub(super) replanned: BTreeSet<JobId>,
    journal: Vec<JournalText>,
    news: Vec<StepNews>,
    /// The first thing that was not as it must be.
    problem: Option<String>,
}

pub(super) struct World {
    site: SiteBuilder,
    world: era_drive::World<Chronicle>,
    pub(super) now: Time,
}

/// What a replay found.
pub(super) struct Replay {
    pub(super) inputs: usize,
    pub(super) events: usize,
}

impl Scenario for Chronicle {
    fn conduct(&self, state: &State, job: JobId, part: u16) -> Conduct {
        let stated = || {
            let part = state.job(job).ok()?.parts.get(usize::from(part))?;
            Some(Span(part.request.duration.0 - SPARE.0))
        };
        let known = self.works.get(&(job, part)).copied();
        let work = known.or_else(stated).unwrap_or(Span(1));
        Conduct { work, saves_on_stop: true, ..Conduct::default() }
    }

    fn follow(&mut self, input: &Input, output: &Output, state: &State) {
        if let Err(problem) = self.note(input, output, state) {
            self.problem.get_or_insert(problem.to_string());
        }
    }
}

impl Chronicle {
    fn note(&mut self, input: &Input, output: &Output, state: &State) -> anyhow::Result<()> {
        let seq = input.seq;
        check(state).map_err(|problem| anyhow!("after input {seq}: {problem}"))?;
        let (input_text, events) =
            (serde_json::to_string(input)?, serde_json::to_string(&output.events)?);
        self.journal.push(JournalText { input: input_text, events });
        match &input.command {
            Command::Exited { task, .. } => {
                let over = self.running.remove(task);
                self.stints.extend(over.map(|stint| Stint { to: input.at, ..stint }));
            }
            Command::Lost { node } => {
                let dead = self.running.extract_if(.., |_, stint| stint.node == *node);
                self.stints.extend(dead.map(|(_, stint)| Stint { to: input.at, ..stint }));
                self.outages.push(Outage { node: *node, from: input.at, to: Time::MAX });
            }
            Command::Resume { node } => {
                let outages = self.outages.iter_mut();
                for outage in outages.filter(|o| o.node == *node && o.to == Time::MAX) {
                    outage.to = input.at;
                }
            }
            _ => {}
        }
        for effect in &output.effects {
            if let Effect::Launch { task, node, gpus, .. } = effect {
                let (job, node, gpus) = (task.job, *node, gpus.clone());
                let stint = Stint { job, node, gpus, from: input.at, to: input.at };
                self.running.insert(*task, stint);
            }
        }
        self.replanned.extend(output.events.iter().filter_map(|event| match event {
            Event::Replanned { job, .. } => Some(*job),
            _ => None,
        }));
        let saved = output.events.iter().filter_map(|event| match event {
            Event::Requeued { job, .. } => Some((*job, state.job(*job).ok()?.parts.first()?.done)),
            _ => None,
        });
        let saved = saved.collect();
        self.news.push(StepNews { at: input.at, events: output.events.clone(), saved });
        Ok(())
    }

    /// Every stint, those that go on cut at the present.
    pub(super) fn stints(&self, now: Time) -> impl Iterator<Item = Stint> {
        let open = self.running.values().map(move |stint| Stint { to: now, ..stint.clone() });
        self.stints.iter().cloned().chain(open)
    }
}

impl World {
    /// A site, and nobody has asked for anything.
    pub(super) fn new(site: SiteBuilder, now: Time) -> anyhow::Result<World> {
        let world = era_drive::World::of(&site, now, PACE, Chronicle::default())?;
        let mut world = World { site, world, now };
        world.examine()?;
        Ok(world)
    }

    pub(super) fn state(&self) -> &State {
        self.world.state()
    }

    pub(super) fn chronicle(&self) -> &Chronicle {
        self.world.scenario()
    }

    /// One input through the core, and its effects carried out.
    pub(super) fn send(&mut self, command: Command) -> anyhow::Result<Reply> {
        let reply = self.world.send(self.now, command).reply;
        self.examine()?;
        Ok(reply)
    }

    fn examine(&mut self) -> anyhow::Result<()> {
        match self.world.scenario_mut().problem.take() {
            Some(problem) => Err(anyhow!(problem)),
            None => Ok(()),
        }
    }

    /// A command of the story's own, which cannot be refused.
    fn must(&mut self, command: Command) -> anyhow::Result<()> {
        let reply = self.send(command)?;
        ensure!(reply == Reply::Done, "refused: {reply:?}");
        Ok(())
    }

    /// Lets time pass until `time`, whatever happens first coming first.
    pub(super) fn until(&mut self, time: Time) -> anyhow::Result<()> {
        self.world.until(time);
        self.now = time;
        self.send(Command::Tick)?;
        self.pass()
    }

    /// A scheduling pass, if one is due.
    pub(super) fn pass(&mut self) -> anyhow::Result<()> {
        self.world.settle(self.now);
        self.examine()
    }

    /// Says how much work a part of a job really is.
    pub(super) fn really_takes(&mut self, job: JobId, part: u16, work: Span) {
        self.world.scenario_mut().works.insert((job, part), work);
    }

    /// A task of a job that runs reports how much of its work is saved.
    pub(super) fn checkpoint(&mut self, job: JobId, done: Span) -> anyhow::Result<()> {
        let task = self.chronicle().running.keys().find(|task| task.job == job).copied();
        let task = task.with_context(|| format!("{job} does not run"))?;
        self.send(Command::Checkpointed { task, done })?;
        Ok(())
    }

    /// The node under the first task of a job.
    pub(super) fn node_of(&self, job: JobId) -> Option<NodeId> {
        let chronicle = self.chronicle();
        chronicle.running.iter().find(|(task, _)| task.job == job).map(|(_, stint)| stint.node)
    }

    /// A node is gone, with all that runs on it.
    pub(super) fn lose(&mut self, node: NodeId) -> anyhow::Result<()> {
        self.must(Command::Lost { node })?;
        self.pass()
    }

    pub(super) fn bring_back(&mut self, node: NodeId) -> anyhow::Result<()> {
        self.must(Command::Resume { node })?;
        self.pass()
    }

    /// What happened since this was last asked.
    pub(super) fn take_news(&mut self) -> Vec<StepNews> {
        std::mem::take(&mut self.world.scenario_mut().news)
    }

    /// What people call a node.
    pub(super) fn node_name(&self, node: NodeId) -> String {
        self.state().cluster().node(node).map_or_else(|_| node.to_string(), |n| n.name.to_string())
    }

    /// Plays the journal through a fresh core and compares every event, byte for byte.
    pub(super) fn replay(&self) -> anyhow::Result<Replay> {
        let mut state = self.site.state();
        let mut events = 0;
        let chronicle = self.chronicle();
        for line in &chronicle.journal {
            let input: Input = serde_json::from_str(&line.input)?;
            let seq = input.seq;
            let output = step(&mut state, input);
            let told = serde_json::to_string(&output.events)?;
            ensure!(told == line.events, "input {seq} caused other events when replayed");
            events += output.events.len();
        }
        ensure!(state == *self.state(), "the replayed state differs");
        Ok(Replay { inputs: chronicle.journal.len(), events })
    }
}

/// A name that the scenario spells right.
pub(super) fn name(text: &str) -> anyhow::Result<Name> {
    Ok(Name::new(text)?)
}
