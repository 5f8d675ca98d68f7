//! An engine, machines and a virtual clock: whatever is due happens in order.
//!
//! Who asks for what is not known here; whoever drives a world sends that.

use era_core::units::{JobId, Time};
use era_core::{Command, Input, Output, Refusal, Reply, State};

use crate::engine::{Engine, EntryWriter};
use crate::executor::{Conduct, Pace, VirtualExecutor};
use crate::site::SiteBuilder;

/// Whose world it is.
pub trait Scenario {
    /// How a part of a job behaves, in a state that knows the job.
    fn conduct(&self, state: &State, job: JobId, part: u16) -> Conduct;

    /// Sees each input with what came of it, and the state that it left.
    fn follow(&mut self, input: &Input, output: &Output, state: &State);
}

/// A cluster on a virtual clock.
pub struct World<S> {
    engine: Engine,
    executor: VirtualExecutor,
    shown: Shown<S>,
}

/// Shows an input and its output together.
struct Shown<S> {
    scenario: S,
    input: Option<Input>,
}

impl<S: Scenario> EntryWriter for Shown<S> {
    type Note = ();

    fn input(&mut self, input: &Input, _: Option<()>) {
        self.input = Some(input.clone());
    }

    fn output(&mut self, output: &Output, state: &State) {
        if let Some(input) = self.input.take() {
            self.scenario.follow(&input, output, state);
        }
    }
}

impl<S: Scenario> World<S> {
    /// Goes on from a state, with what runs in it.
    pub fn new(state: State, pace: Pace, scenario: S) -> World<S> {
        let mut executor = VirtualExecutor::new(pace);
        executor.take_over(&state, &|state, job, part| scenario.conduct(state, job, part));
        let shown = Shown { scenario, input: None };
        World { engine: Engine::new(state), executor, shown }
    }

    /// A site that stands at this instant; the refusal, if the core refuses a part of it.
    pub fn of(site: &SiteBuilder, at: Time, pace: Pace, scenario: S) -> Result<World<S>, Refusal> {
        let mut shown = Shown { scenario, input: None };
        let engine = Engine::of(site, at, &mut shown)?;
        Ok(World { engine, executor: VirtualExecutor::new(pace), shown })
    }

    /// The state as the last input left it.
    pub fn state(&self) -> &State {
        self.engine.state()
    }

    /// Whose world it is.
    pub fn scenario(&self) -> &S {
        &self.shown.scenario
    }

    /// Whose world it is, to be told something.
    pub fn scenario_mut(&mut self) -> &mut S {
        &mut self.shown.scenario
    }

    /// Whose world it was.
    pub fn into_scenario(self) -> S {
        self.shown.scenario
    }

    /// When something happens by itself next.
    pub fn next(&self) -> Option<Time> {
        let next = self.next_report().into_iter().chain(self.engine.next()).min();
        next.map(|time| time.max(self.state().now()))
    }

    /// When the machines report something next.
    pub fn next_report(&self) -> Option<Time> {
        self.executor.next()
    }

    /// Lets everything happen that is due until now, but for a pass: what is asked at the same
    /// instant comes before it.
    pub fn advance(&mut self, now: Time) {
        loop {
            while self.report(now) {}
            if let Some(output) = self.engine.tick_if_due(now, &mut self.shown) {
                self.obey(&output);
            }
            if self.next_report().is_none_or(|next| next > now) {
                return;
            }
        }
    }

    /// Sends the next report that is due, if there is one.
    pub fn report(&mut self, now: Time) -> bool {
        let scenario = &self.shown.scenario;
        let conduct = |state: &State, job, part| scenario.conduct(state, job, part);
        let Some(commands) = self.executor.take(now, self.engine.state(), &conduct) else {
            return false;
        };
        for command in commands {
            self.send(now, command);
        }
        true
    }

    /// Carries out a command.
    pub fn send(&mut self, at: Time, command: Command) -> Output {
        let lost = match &command {
            Command::Lost { node } => Some(*node),
            _ => None,
        };
        let output = self.engine.send(at, command, None, &mut self.shown);
        if let Some(node) = lost.filter(|_| output.reply == Reply::Done) {
            self.executor.node_lost(node);
        }
        self.obey(&output);
        output
    }

    /// Goes through the queues if that is due.
    pub fn settle(&mut self, now: Time) {
        if let Some(output) = self.engine.pass_if_due(now, &mut self.shown) {
            self.obey(&output);
        }
    }

    /// Lets time pass until then, whatever happens first coming first.
    pub fn until(&mut self, time: Time) {
        while let Some(now) = self.next().filter(|next| *next <= time) {
            self.advance(now);
            self.settle(now);
        }
    }

    fn obey(&mut self, output: &Output) {
        self.executor.obey(self.engine.state(), &output.effects);
    }
}
