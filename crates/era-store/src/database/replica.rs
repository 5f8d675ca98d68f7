//! A replica for reads that may be a little behind, which nobody needs: while it does not answer,
//! the database itself is read.
//!
//! It is asked now and then, and not by whoever reads: a host that vanished would have each of them
//! wait. A read that meets its end fails; the next one goes elsewhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use sqlx::Connection as _;

use super::StoreError;
use super::{ConnectionPool, Durability, Place, READERS, options};

/// How often it is asked.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How long it may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// A replica. A clone shares.
#[derive(Clone, Debug)]
pub(super) struct Replica {
    readers: ConnectionPool,
    answers: Arc<AtomicBool>,
}

impl Replica {
    /// Looks whether it is there, now and from now on.
    pub(super) async fn watched(
        place: &Place,
        durability: Durability,
    ) -> Result<Replica, StoreError> {
        let dialect = place.dialect();
        let options = options(dialect, durability).max_connections(READERS);
        let connections =
            options.acquire_timeout(ANSWER_MAX).connect_lazy(place.url().unwrap_or_default())?;
        let readers = ConnectionPool::new(connections, dialect);
        let answers = Arc::new(AtomicBool::new(is_there(&readers).await));
        tokio::spawn(watch(readers.clone(), Arc::downgrade(&answers), place.clone()));
        Ok(Replica { readers, answers })
    }

    /// Its connections, while it answers.
    pub(super) fn answering(&self) -> Option<&ConnectionPool> {
        self.answers.load(Ordering::Relaxed).then_some(&self.readers)
    }

    /// How many statements it was handed.
    pub(super) fn statements(&self) -> u64 {
        self.readers.statements()
    }

    pub(super) async fn close(&self) {
        self.readers.connections.close().await;
    }
}

/// Until the database is closed, or nobody has it any more.
async fn watch(readers: ConnectionPool, answers: Weak<AtomicBool>, place: Place) {
    while !readers.connections.is_closed() {
        tokio::time::sleep(ASK_EVERY).await;
        let there = is_there(&readers).await;
        let Some(answers) = answers.upgrade() else { return };
        match (answers.swap(there, Ordering::Relaxed), there) {
            (true, false) => tracing::warn!(%place, "the replica is away: it is read past"),
            (false, true) => tracing::info!(%place, "the replica is there"),
            _ => {}
        }
    }
}

async fn is_there(readers: &ConnectionPool) -> bool {
    let asked = async {
        let mut connection = readers.connections.acquire().await?;
        connection.ping().await
    };
    matches!(tokio::time::timeout(ANSWER_MAX, asked).await, Ok(Ok(())))
}
