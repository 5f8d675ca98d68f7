//! Starting again: the newest segment's state, and what came after it carried out once more.

use era_core::State;

use super::Journal;
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
    pub async fn restore(&self) -> Result<Option<Restored>, StoreError> {
        let Some(mut follower) = self.follow().await? else { return Ok(None) };
        follower.catch_up().await?;
        Ok(Some(follower.restored()))
    }
}
