//! The lease of a node: renewed three times in its length, and what happens when it is gone.
//!
//! What is announced is how long the node's tasks may last without a renewal: the lease that they
//! are told of, and what they take to be gone.

use std::time::Duration;

use tokio::time::Instant;

use super::{AGAIN, CeleryNode, NodeError};
use crate::celery::bus::{self, BusError};
use crate::celery::names;
use crate::executor::Order;

/// How long another worker of the same name is waited for beyond its lease.
const JOIN_TIME: Duration = Duration::from_secs(3);
/// Most held messages that are renewed in one command.
const RENEW_MAX: usize = 1000;

/// What Redis says to a renewal.
enum Beat {
    /// The lease is renewed.
    Held,
    /// Redis has forgotten us: it lost its memory, and whatever we run is still ours.
    Unknown,
    /// The scheduler has given us up: nothing of ours may go on.
    Lost,
}

impl CeleryNode {
    /// Announces the node. A worker that was here a moment ago may still hold it for one lease.
    pub(super) async fn join_patiently(&self) -> Result<(), NodeError> {
        let begun = tokio::time::Instant::now();
        loop {
            if self.join().await? {
                self.inner.leased.send_replace(true);
                return Ok(());
            }
            if begun.elapsed() > self.announced() + JOIN_TIME {
                return Err(NodeError::Taken(self.name().to_owned()));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn join(&self) -> Result<bool, BusError> {
        let found = serde_json::to_string(&self.inner.found).unwrap_or_default();
        let (asked, held) = (Instant::now(), self.lease());
        let (generation, lease) = (self.generation(), self.announced().as_millis() as u64);
        let joined: u8 = self
            .bus()
            .script("let us serve a node", &bus::JOIN, |call| {
                call.key(names::node(self.name())).key(names::NODES);
                call.key(names::worker(self.name()));
                call.arg(self.name()).arg(generation).arg(found).arg(lease);
            })
            .await?;
        if joined == 1 {
            self.confirmed(asked, held);
        }
        Ok(joined == 1)
    }

    async fn renew(&self) -> Result<Beat, BusError> {
        let (asked, held) = (Instant::now(), self.lease());
        let (generation, lease) = (self.generation(), self.announced().as_millis() as u64);
        let word: String = self
            .bus()
            .script("renew a lease", &bus::BEAT, |call| {
                call.key(names::node(self.name())).key(names::worker(self.name()));
                call.arg(generation).arg(lease);
            })
            .await?;
        Ok(match word.as_str() {
            "ok" => {
                self.confirmed(asked, held);
                Beat::Held
            }
            "unknown" => Beat::Unknown,
            _ => Beat::Lost,
        })
    }

    /// Lets the supervisor run everything for one lease more, counted from before the renewal.
    fn prolong_all(&self) {
        for (task, until) in self.running().leased() {
            let until = self.guarded(until);
            self.inner.behind.carry_out(Order::Prolong { task, until });
        }
    }

    /// Ends everything, and begins anew once nothing runs any more.
    async fn give_up(&self) {
        self.confirmed(Instant::now(), Duration::ZERO);
        self.inner.leased.send_replace(false);
        tracing::warn!(node = self.name(), "the scheduler gave this node up: its tasks are ended");
        let now = self.bus().now();
        for (task, _) in self.running().leased() {
            self.inner.behind.carry_out(Order::Stop { task, until: now });
        }
        while !self.running().leased().is_empty() {
            tokio::time::sleep(AGAIN).await;
        }
        match super::adopt::new_generation(&self.inner.folder) {
            Ok(generation) => {
                *self.inner.generation.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
                    generation;
            }
            Err(error) => tracing::error!(%error, "a new generation cannot be kept"),
        }
        // The sign of life of the last generation lapses first.
        self.rejoin().await;
    }

    async fn rejoin(&self) {
        while let Err(error) = self.join_patiently().await {
            tracing::warn!(%error, "this node cannot serve yet");
            tokio::time::sleep(AGAIN).await;
        }
    }
}

/// Renews the lease until the node is gone.
pub(super) async fn beat(again: impl Fn() -> Option<CeleryNode>) {
    loop {
        let Some(node) = again() else { return };
        let wait = node.lease() / 3;
        match node.renew().await {
            Ok(Beat::Held) => {
                node.prolong_all();
                node.inner.leased.send_replace(true);
                if let Err(error) = node.renew_claims().await {
                    tracing::warn!(%error, "claims are not renewed");
                }
            }
            Ok(Beat::Unknown) => {
                tracing::warn!("Redis has lost its memory: this node announces itself again");
                node.rejoin().await;
                node.prolong_all();
            }
            Ok(Beat::Lost) => node.give_up().await,
            Err(error) => {
                tracing::warn!(%error, "the lease is not renewed");
                tokio::time::sleep(AGAIN.min(wait)).await;
                continue;
            }
        }
        drop(node);
        tokio::time::sleep(wait).await;
    }
}

/// Says of held messages that somebody still works on them, so that Celery does not take them for
/// abandoned.
pub(crate) async fn renew_messages(node: &CeleryNode, tags: &[String]) -> Result<(), BusError> {
    let now = bus::seconds(node.bus().now());
    for tags in tags.chunks(RENEW_MAX) {
        let mut add = redis::cmd("ZADD");
        add.arg(names::UNACKED_INDEX).arg("XX");
        for tag in tags {
            add.arg(&now).arg(tag);
        }
        let _: i64 = node.bus().run("keep messages from being sent again", &add).await?;
    }
    Ok(())
}
