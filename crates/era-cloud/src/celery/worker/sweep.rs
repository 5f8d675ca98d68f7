//! Messages that somebody held and will not serve any more: they go back to their queues, by the
//! sign of life of whoever holds them, or, where that is no worker of ours, by their age alone
//! (Celery's visibility timeout).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Inner;
use crate::celery::bus::{self, Bus, BusError};
use crate::celery::names;
use crate::celery::node::renew_messages;
use crate::celery::unacked::holders;

/// Most messages that are put back in one turn.
const RESTORE_MAX: usize = 1000;
/// How long one sweep by age keeps others from sweeping.
const MUTEX_TIME: Duration = Duration::from_secs(60);

/// Keeps what this worker holds from being taken for abandoned, and puts back what others
/// abandoned, until the worker is gone.
pub(super) async fn keep_on(worker: Arc<Inner>) {
    loop {
        tokio::time::sleep(worker.node.lease() / 3).await;
        if let Err(error) = turn(&worker).await {
            tracing::warn!(%error, "abandoned messages wait");
        }
    }
}

async fn turn(worker: &Inner) -> Result<(), BusError> {
    let held: Vec<String> = worker.held().iter().cloned().collect();
    renew_messages(&worker.node, &held).await?;
    let dead = of_the_dead(worker.bus()).await?;
    let old = too_old(worker).await?;
    for tag in dead.iter().chain(&old).take(RESTORE_MAX) {
        if worker.bus().restore(tag).await? {
            tracing::info!(tag, "an abandoned message is served again");
        }
    }
    Ok(())
}

/// Messages whose holder gives no sign of life.
async fn of_the_dead(bus: &Bus) -> Result<Vec<String>, BusError> {
    let taken = holders(bus).await?;
    let mut alive: BTreeMap<&str, bool> = BTreeMap::new();
    for holder in taken.values() {
        if !alive.contains_key(holder.as_str()) {
            let mut exists = redis::cmd("EXISTS");
            exists.arg(names::worker(holder));
            let there: i64 = bus.run("say who is alive", &exists).await?;
            alive.insert(holder, there > 0);
        }
    }
    let dead = taken.iter().filter(|(_, holder)| !alive[holder.as_str()]);
    Ok(dead.map(|(tag, _)| tag.clone()).collect())
}

/// Messages that were taken so long ago that Celery counts them as abandoned. One looks at a time.
async fn too_old(worker: &Inner) -> Result<Vec<String>, BusError> {
    let mut mutex = redis::cmd("SET");
    mutex.arg(names::UNACKED_MUTEX).arg(worker.node.name()).arg("NX");
    mutex.arg("PX").arg(MUTEX_TIME.as_millis() as u64);
    let mine: Option<String> = worker.bus().run("let us look for old messages", &mutex).await?;
    if mine.is_none() {
        return Ok(Vec::new());
    }
    let visibility = i64::try_from(worker.bus().address().visibility.as_millis());
    let before = worker.bus().now().0.saturating_sub(visibility.unwrap_or(i64::MAX));
    let mut range = redis::cmd("ZRANGEBYSCORE");
    range.arg(names::UNACKED_INDEX).arg(0).arg(bus::seconds(era_core::units::Time(before.max(0))));
    range.arg("LIMIT").arg(0).arg(RESTORE_MAX);
    let old = worker.bus().run("show old messages", &range).await;
    let _: i64 =
        worker.bus().run("let others look", redis::cmd("DEL").arg(names::UNACKED_MUTEX)).await?;
    old
}
