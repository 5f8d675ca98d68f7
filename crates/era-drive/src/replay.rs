//! A journal carried out once more: whoever starts again, stands by, or verifies what was recorded.
//!
//! What is decided now must be what was decided then: a difference means that this is not the
//! version that wrote the journal, or that somebody changed it. Where entries are read from, and how
//! decisions are written there, is not known here.

use era_core::{Event, Input, Output, State, step};

/// A state on its way along a journal.
#[derive(Clone, Debug)]
pub struct Replay {
    state: Box<State>,
    /// How many entries it carried out since the segment that it began with.
    carried: u64,
}

/// Why an entry is not what comes next. After a gap the state is as it was; after a difference it is
/// no longer the journal's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// Another one stands where this one comes next.
    Gap { expected: u64, found: u64 },
    /// The core does not count it, or decides something else.
    Differs { seq: u64 },
}

impl Replay {
    /// Begins with the state of a segment.
    pub fn new(state: Box<State>) -> Replay {
        Replay { state, carried: 0 }
    }

    /// The state after the last entry that was carried out.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// How many entries were carried out.
    pub fn carried(&self) -> u64 {
        self.carried
    }

    /// The same, for whoever goes on from there.
    pub fn into_state(self) -> Box<State> {
        self.state
    }

    /// Carries out an entry; `recorded` says whether what is decided is what is recorded.
    pub fn carry_out(
        &mut self,
        input: Input,
        recorded: impl FnOnce(&[Event]) -> bool,
    ) -> Result<Output, ReplayError> {
        let (expected, seq) = (self.state.seq() + 1, input.seq);
        if seq != expected {
            return Err(ReplayError::Gap { expected, found: seq });
        }
        let output = step(&mut self.state, input);
        if self.state.seq() != seq || !recorded(&output.events) {
            return Err(ReplayError::Differs { seq });
        }
        self.carried += 1;
        Ok(output)
    }
}
