//! Following the journal: its newest state, and what comes after it carried out as it comes.
//!
//! Whoever starts again follows to the end and goes on from there; a standby and a replica stay
//! behind the end by a moment. What is decided now must be what was decided then, byte for byte: a
//! difference means that this is not the binary that wrote the journal, or that somebody changed
//! it.

use era_core::{Output, State};
use era_drive::{Replay, ReplayError};

use super::restore::Restored;
use super::{Journal, PAGE, Stored, damaged, written};
use crate::StoreError;

/// A state that follows the journal.
pub struct Follower {
    journal: Journal,
    replay: Replay,
}

impl Journal {
    /// Begins to follow with the newest segment's state; `None` where nothing was ever written.
    pub async fn follow(&self) -> Result<Option<Follower>, StoreError> {
        // Looked at before the segments: whoever begins a journal begins it with a segment, perhaps
        // at this moment.
        let last = self.last_seq().await?;
        let Some(head) = self.heads().await?.pop() else {
            return match last {
                0 => Ok(None),
                seq => Err(damaged(seq, &"it belongs to no segment")),
            };
        };
        head.check()?;
        let wrong = |problem: String| StoreError::Damaged {
            what: format!("segment {} of the journal", head.number),
            problem,
        };
        let text = self.state_text(head.number).await?;
        let state: Box<State> = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        if state.seq() + 1 != head.first_seq {
            let (found, told) = (state.seq(), head.first_seq);
            return Err(wrong(format!("its state is of input {found}, its first input is {told}")));
        }
        Ok(Some(Follower { journal: self.clone(), replay: Replay::new(state) }))
    }
}

impl Follower {
    /// The state after the last entry that was carried out.
    pub fn state(&self) -> &State {
        self.replay.state()
    }

    /// Carries out the next entries, at most a page of them, and shows each with what came of it.
    /// Says whether there may be more.
    pub async fn advance(
        &mut self,
        mut seen: impl FnMut(&Stored, Output),
    ) -> Result<bool, StoreError> {
        let page = self.journal.read(self.state().seq(), PAGE).await?;
        for entry in &page {
            let output = carry_out(&mut self.replay, entry)?;
            seen(entry, output);
        }
        Ok(page.len() == PAGE as usize)
    }

    /// Carries out all that is there.
    pub async fn catch_up(&mut self) -> Result<(), StoreError> {
        while self.advance(|_, _| {}).await? {}
        Ok(())
    }

    /// What it has come to, for whoever goes on from there.
    pub fn restored(self) -> Restored {
        Restored { replayed: self.replay.carried(), state: self.replay.into_state() }
    }
}

/// Carries out an entry once more.
fn carry_out(replay: &mut Replay, entry: &Stored) -> Result<Output, StoreError> {
    let input = entry.input()?;
    if (input.seq, input.at) != (entry.seq, entry.at) {
        return Err(damaged(entry.seq, &"its number or time is not its input's"));
    }
    let done = replay.carry_out(input, |events| written(events) == entry.events);
    done.map_err(|error| match error {
        ReplayError::Differs { seq } => StoreError::Differs { seq },
        ReplayError::Gap { expected, found } => {
            damaged(expected, &format!("it is missing: {found} follows"))
        }
    })
}
