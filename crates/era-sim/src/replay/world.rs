//! The core, an executor and a clock: whatever is due happens in order, and the queues are gone
//! through whenever something changed.
//!
//! Who asks for what is not known here; whoever drives a world sends that.

use std::collections::BTreeSet;

use era_core::input::Terms;
use era_core::units::Time;
use era_core::{Command, Event, Input, Output, Reply, State, next_wakeup, step};

use super::executor::{ConductOf, Executor};

/// Sees each input with what came of it, and the state that it left.
type Watch<'a> = dyn FnMut(&Input, &Output, &State) + 'a;

/// A world, and whoever watches it.
pub struct World<'a> {
    /// The core.
    pub state: State,
    executor: Executor,
    conduct: &'a ConductOf<'a>,
    watch: Box<Watch<'a>>,
    /// Instants at which waiting work may start that could not before.
    looks: BTreeSet<Time>,
    changed: bool,
}

impl<'a> World<'a> {
    /// Goes on from a state, with what runs in it.
    pub fn new(
        state: State,
        conduct: &'a ConductOf<'a>,
        watch: impl FnMut(&Input, &Output, &State) + 'a,
    ) -> World<'a> {
        let mut executor = Executor::default();
        executor.take_over(&state, conduct);
        let watch = Box::new(watch);
        World { state, executor, conduct, watch, looks: BTreeSet::new(), changed: true }
    }

    /// When something happens by itself next.
    pub fn next(&self) -> Option<Time> {
        let look = self.looks.first().copied();
        let times = [self.executor.next(), next_wakeup(&self.state), look];
        times.into_iter().flatten().min().map(|time| time.max(self.state.now()))
    }

    /// Lets everything happen that is due until now.
    pub fn advance(&mut self, now: Time) {
        while self.executor.next().is_some_and(|time| time <= now) {
            let Some(commands) = self.executor.take(now) else { break };
            for command in commands {
                self.send(now, command);
            }
        }
        if next_wakeup(&self.state).is_some_and(|time| time <= now) {
            self.send(now, Command::Tick);
        }
        while self.looks.first().is_some_and(|time| *time <= now) {
            self.looks.pop_first();
            self.changed = true;
        }
    }

    /// Carries out a command.
    pub fn send(&mut self, at: Time, command: Command) -> Output {
        let is_pass = matches!(command, Command::Pass);
        let lost = match &command {
            Command::Lost { node } => Some(*node),
            _ => None,
        };
        if let Command::Submit { job, .. } = &command
            && let Terms::Queue { request, .. } = &job.terms
            && request.window.earliest > at
        {
            self.looks.insert(request.window.earliest);
        }
        let input = Input { seq: self.state.seq() + 1, at, command };
        let output = step(&mut self.state, input.clone());
        if let Some(node) = lost.filter(|_| output.reply == Reply::Done) {
            self.executor.node_lost(node);
        }
        for event in &output.events {
            if let Event::Requeued { not_before, .. } = event {
                self.looks.insert(*not_before);
            }
        }
        self.executor.obey(&self.state, &output.effects, self.conduct);
        self.changed |= !is_pass && output.events.iter().any(gives_queues_a_reason);
        (self.watch)(&input, &output, &self.state);
        output
    }

    /// Goes through the queues if anything changed since the last time.
    pub fn settle(&mut self, now: Time) {
        if std::mem::take(&mut self.changed) {
            self.send(now, Command::Pass);
        }
    }
}

/// Whether waiting work might start after this that could not before.
fn gives_queues_a_reason(event: &Event) -> bool {
    !matches!(
        event,
        Event::Refused { .. }
            | Event::BidDeclined { .. }
            | Event::Promised { .. }
            | Event::Held { .. }
            | Event::Launched { .. }
            | Event::Running { .. }
            | Event::Stopping { .. }
            | Event::Checkpointed { .. }
            | Event::IdleReported { .. }
            | Event::Posted { .. }
            | Event::Ignored { .. }
            | Event::Forgotten { .. }
    )
}
