//! Starting again: the newest segment's state, and what came after it carried out once more.

use era_core::{State, step};

use super::{Journal, PAGE, Stored, damaged, written};
use crate::StoreError;

/// What the journal says the state is.
#[derive(Debug)]
pub struct Restored {
    /// The state after the last entry.
    pub state: Box<State>,
    /// How many entries came after the newest segment's beginning.
    pub replayed: u64,
}

impl Journal {
    /// The state after the last entry; `None` where nothing was ever written.
    ///
    /// What is decided now must be what was decided then, byte for byte: a difference means that
    /// this is not the binary that wrote the journal, or that somebody changed it.
    pub async fn restore(&self) -> Result<Option<Restored>, StoreError> {
        let Some(head) = self.heads().await?.pop() else {
            return match self.last_seq().await? {
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
        let mut state: Box<State> =
            serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        if state.seq() + 1 != head.first_seq {
            let (found, told) = (state.seq(), head.first_seq);
            return Err(wrong(format!("its state is of input {found}, its first input is {told}")));
        }
        let mut replayed = 0;
        loop {
            let page = self.read(state.seq(), PAGE).await?;
            for entry in &page {
                again(&mut state, entry)?;
            }
            replayed += page.len() as u64;
            if page.len() < PAGE as usize {
                return Ok(Some(Restored { state, replayed }));
            }
        }
    }
}

/// Carries out an entry once more.
fn again(state: &mut State, entry: &Stored) -> Result<(), StoreError> {
    let expected = state.seq() + 1;
    if entry.seq != expected {
        return Err(damaged(expected, &format!("it is missing: {} follows", entry.seq)));
    }
    let input = entry.input()?;
    if (input.seq, input.at) != (entry.seq, entry.at) {
        return Err(damaged(entry.seq, &"its number or time is not its input's"));
    }
    let output = step(state, input);
    if written(&output.events) != entry.events || state.seq() != entry.seq {
        return Err(StoreError::Differs { seq: entry.seq });
    }
    Ok(())
}
