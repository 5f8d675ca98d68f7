//! The state and its inputs, one after the other.
//!
//! Who asked, who waits for an answer and where the journal is kept is not known here.

use era_core::units::Time;
use era_core::{Command, Input, Output, Refusal, Reply, State, next_pass, next_wakeup, step};

use crate::site::SiteBuilder;

/// Whoever writes down what happens.
pub trait EntryWriter {
    /// What is kept with an input, and the core need not know.
    type Note;

    /// An input is about to be carried out.
    fn input(&mut self, input: &Input, note: Option<Self::Note>);

    /// It was carried out, and left this state.
    fn output(&mut self, output: &Output, state: &State);
}

/// Nobody writes anything down.
impl EntryWriter for () {
    type Note = ();

    fn input(&mut self, _: &Input, _: Option<()>) {}

    fn output(&mut self, _: &Output, _: &State) {}
}

/// The state, and the rules by which inputs come to it.
pub struct Engine {
    state: Box<State>,
}

impl Engine {
    /// Goes on from a state.
    pub fn new(state: impl Into<Box<State>>) -> Engine {
        Engine { state: state.into() }
    }

    /// A site that stands at this instant; the refusal, if the core refuses a part of it.
    pub fn of<R: EntryWriter>(
        site: &SiteBuilder,
        at: Time,
        record: &mut R,
    ) -> Result<Engine, Refusal> {
        site.settings.check()?;
        site.market.check()?;
        let mut engine = Engine::new(site.state());
        for command in site.commands() {
            if let Reply::Refused { refusal, .. } = engine.send(at, command, None, record).reply {
                return Err(refusal);
            }
        }
        Ok(engine)
    }

    /// The state as the last input left it.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// When something happens by itself next; `None` while nothing is foreseen at all.
    pub fn next(&self) -> Option<Time> {
        next_wakeup(&self.state).into_iter().chain(next_pass(&self.state)).min()
    }

    /// An instant at which an input may be: the core keeps time from running backwards too; here
    /// it is kept out of the journal.
    pub fn clamp(&self, now: Time) -> Time {
        now.clamp(self.state.now().max(Time(0)), Time::LATEST)
    }

    /// Carries out a command.
    pub fn send<R: EntryWriter>(
        &mut self,
        at: Time,
        command: Command,
        note: Option<R::Note>,
        record: &mut R,
    ) -> Output {
        let seq = self.state.seq() + 1;
        let input = Input { seq, at, command };
        record.input(&input, note);
        let output = step(&mut self.state, input);
        // An input that the core would not count must not be in the journal either.
        assert_eq!(self.state.seq(), seq, "the core counts every input that is in order and time");
        record.output(&output, &self.state);
        output
    }

    /// A tick, if anything is due by now.
    pub fn tick_if_due<R: EntryWriter>(&mut self, now: Time, record: &mut R) -> Option<Output> {
        let is_due = next_wakeup(&self.state).is_some_and(|due| due <= now);
        is_due.then(|| self.send(now, Command::Tick, None, record))
    }

    /// A scheduling pass, if one is due by now.
    pub fn pass_if_due<R: EntryWriter>(&mut self, now: Time, record: &mut R) -> Option<Output> {
        let is_due = next_pass(&self.state).is_some_and(|due| due <= now);
        is_due.then(|| self.send(now, Command::Pass, None, record))
    }
}
