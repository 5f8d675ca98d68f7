//! Writing a journal.

use std::io::{self, Write};

use era_core::units::Time;
use era_core::wire::WIRE_VERSION;
use era_core::{CORE_VERSION, Command, Event, Input, Output, State, step};
use serde::Serialize;

/// Writes lines of a journal.
pub struct Writer<W> {
    out: W,
    segment: u64,
}

#[derive(Serialize)]
struct SegmentLine<'a> {
    segment: u64,
    core_version: u32,
    wire_version: u32,
    state: &'a State,
}

#[derive(Serialize)]
struct EntryLine<'a> {
    input: &'a Input,
    events: &'a [Event],
}

impl<W: Write> Writer<W> {
    /// Writes to this. Nothing is written yet.
    pub fn new(out: W) -> Writer<W> {
        Writer { out, segment: 0 }
    }

    /// Begins a segment that starts from this state.
    pub fn begin(&mut self, state: &State) -> io::Result<()> {
        self.segment += 1;
        self.line(&SegmentLine {
            segment: self.segment,
            core_version: CORE_VERSION,
            wire_version: WIRE_VERSION,
            state,
        })
    }

    /// Writes an input and what was decided about it.
    pub fn entry(&mut self, input: &Input, events: &[Event]) -> io::Result<()> {
        self.line(&EntryLine { input, events })
    }

    /// Gives back what was written to.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line).map_err(io::Error::from)?;
        self.out.write_all(b"\n")
    }
}

/// The core with a journal: whatever is sent to it is written down with what came of it.
pub struct Recorder<W> {
    state: State,
    journal: Writer<W>,
}

impl<W: Write> Recorder<W> {
    /// Begins a journal with this state.
    pub fn new(state: State, out: W) -> io::Result<Recorder<W>> {
        let mut journal = Writer::new(out);
        journal.begin(&state)?;
        Ok(Recorder { state, journal })
    }

    /// The state now.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Carries out a command and writes it down.
    pub fn send(&mut self, at: Time, command: Command) -> io::Result<Output> {
        let input = Input { seq: self.state.seq() + 1, at, command };
        let output = step(&mut self.state, input.clone());
        self.journal.entry(&input, &output.events)?;
        Ok(output)
    }

    /// Closes the segment and begins the next.
    pub fn next_segment(&mut self) -> io::Result<()> {
        self.journal.begin(&self.state)
    }

    /// Gives back what was written to.
    pub fn into_inner(self) -> W {
        self.journal.into_inner()
    }
}
