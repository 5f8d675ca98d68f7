//! Following a journal: what a [`Cursor`] decides is carried out here, for all who follow.
//!
//! What is made of entries, and where the place is kept up to which that was done, is the follower's.

use std::sync::Arc;

use era_drive::{Cursor, FollowRules, FollowStep};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

/// Somebody who follows.
pub(crate) trait Following: Send {
    type Error: Send;

    /// Up to where everything is taken.
    fn locate(&mut self) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// Takes what comes after this entry, a batch of it, and says up to where; nothing where somebody
    /// else has moved the place meanwhile.
    fn take(&mut self, after: u64)
    -> impl Future<Output = Result<Option<u64>, Self::Error>> + Send;

    /// Says in the log what failed, or gives it back if trying again is of no use.
    fn failed(&mut self, error: Self::Error) -> Result<(), Self::Error>;

    /// Whether whatever comes is looked at as it comes.
    fn is_attended(&self) -> bool {
        true
    }
}

/// Follows until nothing new is told any more and everything is taken, or until that is of no use.
/// Whoever notifies `wanted` waits for what is there.
pub(crate) async fn follow<F: Following>(
    mut follower: F,
    rules: FollowRules,
    mut committed: watch::Receiver<u64>,
    wanted: Arc<Notify>,
) -> Result<(), F::Error> {
    let begun = Instant::now();
    let mut cursor = Cursor::new(rules);
    let mut is_open = true;
    loop {
        cursor.told(*committed.borrow_and_update(), begun.elapsed());
        cursor.attended(follower.is_attended());
        match cursor.next(begun.elapsed()) {
            FollowStep::Locate => match follower.locate().await {
                Ok(at) => cursor.located(at, begun.elapsed()),
                Err(error) => {
                    follower.failed(error)?;
                    cursor.failed(begun.elapsed());
                }
            },
            FollowStep::Take(after) => match follower.take(after).await {
                Ok(to) => cursor.took(to, begun.elapsed()),
                Err(error) => {
                    follower.failed(error)?;
                    cursor.failed(begun.elapsed());
                }
            },
            FollowStep::Wait(until) => tokio::select! {
                changed = committed.changed(), if is_open => if changed.is_err() {
                    is_open = false;
                    cursor.closed();
                },
                () = wanted.notified() => cursor.wanted(),
                () = reached(until.map(|until| begun + until)) => {}
            },
            FollowStep::End => return Ok(()),
        }
    }
}

/// Waits until then; for ever where it is not known.
pub(crate) async fn reached(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
