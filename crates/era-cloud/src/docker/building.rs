//! How many images are built at a time, and for how long, whoever asks: a job for its own
//! Dockerfile, or a person. The same image is built once, however many tasks wait for it.
//!
//! Builds run beside tasks on the engine's machine and belong to none of them, so each is held to a
//! share of it. What is built, and out of what, is not known here.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

/// Most builds and pushes at a time.
pub const BUILDS_MAX: usize = 2;
/// How long one may take.
pub const BUILD_TIME: Duration = Duration::from_secs(3600);
/// Thousandths of a core that each step of a build has.
pub(super) const BUILD_CPU_MILLI: i32 = 4000;

static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(BUILDS_MAX)));

/// The images that are being built, by what they are called.
static UNDER_WAY: LazyLock<std::sync::Mutex<BTreeMap<String, Weak<Mutex<()>>>>> =
    LazyLock::new(Default::default);

/// A place among those who build, if there is one now. It is free again with the value.
pub fn build_place() -> Option<OwnedSemaphorePermit> {
    PLACES.clone().try_acquire_owned().ok()
}

/// A place among those who build, as soon as there is one.
pub(super) async fn next_place() -> Option<OwnedSemaphorePermit> {
    // It is never closed.
    PLACES.clone().acquire_owned().await.ok()
}

/// Waits until nobody else makes the image of this name.
pub(super) async fn alone(name: &str) -> OwnedMutexGuard<()> {
    let one = {
        // A map of names is right whoever panicked beside it.
        let mut all = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, one| one.strong_count() > 0);
        let there = all.get(name).and_then(Weak::upgrade);
        there.unwrap_or_else(|| {
            let one = Arc::new(Mutex::new(()));
            all.insert(name.to_owned(), Arc::downgrade(&one));
            one
        })
    };
    one.lock_owned().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_image_is_made_by_one_at_a_time_and_others_do_not_wait() {
        let first = alone("a:1").await;
        let other = tokio::time::timeout(Duration::from_secs(5), alone("b:1")).await;
        assert!(other.is_ok());
        let mut second = std::pin::pin!(alone("a:1"));
        let waits = tokio::time::timeout(Duration::from_millis(20), &mut second).await;
        assert!(waits.is_err());
        drop(first);
        assert!(tokio::time::timeout(Duration::from_secs(5), second).await.is_ok());
    }
}
