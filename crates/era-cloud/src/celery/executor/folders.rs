//! Work in the folders of jobs. They are shared, and a shared file system may hang for as long as it
//! likes: whoever asks here waits a few seconds at most, and nothing else waits with it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use era_core::job::TaskId;
use tokio::sync::Semaphore;

/// How long a folder may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most folders that are asked at once: each that hangs takes a thread with it.
const ASKED_MAX: usize = 64;

/// The folders that are asked something.
#[derive(Debug)]
pub(super) struct Folders {
    patience: Duration,
    places: Arc<Semaphore>,
    busy: Arc<Mutex<BTreeSet<TaskId>>>,
}

impl Default for Folders {
    fn default() -> Folders {
        let places = Arc::new(Semaphore::new(ASKED_MAX));
        Folders { patience: PATIENCE, places, busy: Arc::default() }
    }
}

/// Goes with the work, however that ends.
struct Busy(Arc<Mutex<BTreeSet<TaskId>>>, TaskId);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.1);
    }
}

impl Folders {
    /// Does something in the folder of a task's job. `None` where that takes too long; it goes on
    /// all the same, and until it is over nothing more is asked there for this task.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        task: TaskId,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        if !self.busy.lock().unwrap_or_else(PoisonError::into_inner).insert(task) {
            return None;
        }
        let busy = Busy(Arc::clone(&self.busy), task);
        let places = Arc::clone(&self.places);
        let done = async move {
            let place = places.acquire_owned().await.ok()?;
            let work = move || {
                let _until_done = (busy, place);
                work()
            };
            tokio::task::spawn_blocking(work).await.ok()
        };
        let done = tokio::time::timeout(self.patience, done).await;
        if done.is_err() {
            tracing::warn!(%task, "the folder of a job does not answer");
        }
        done.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::tests::launch;

    #[tokio::test]
    async fn a_folder_that_hangs_keeps_nobody_waiting_and_is_asked_no_more() {
        let folders = Folders { patience: Duration::from_millis(50), ..Folders::default() };
        let (hung, other) = (launch(1, &["true"]).task, launch(2, &["true"]).task);
        let (release, held) = std::sync::mpsc::channel::<()>();
        let hangs = folders.ask(hung, move || held.recv().is_ok());
        assert_eq!(hangs.await, None);
        assert_eq!(folders.ask(hung, || ()).await, None, "it hangs still");
        let folders = Folders { patience: PATIENCE, ..folders };
        assert_eq!(folders.ask(other, || 7).await, Some(7));
        drop(release);
        while !folders.busy.lock().expect("whole").is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(folders.ask(hung, || 8).await, Some(8));
    }
}
