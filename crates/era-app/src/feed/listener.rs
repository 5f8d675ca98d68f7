//! Events as they happen, for one who listens.
//!
//! A listener that names the last event that it has misses none: what it lacks is read from the
//! tables, and so is whatever it was too slow to take. Nothing is kept for it in memory beyond
//! what all listeners share.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use era_store::tables::{EventQuery, VisibleJobs};
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use tokio::time::{Instant, timeout_at};

use super::{ClusterChange, Feed, FeedEvent, Message, Pulse};
use crate::follow::reached;

/// How long a stream lasts.
const STREAM_MAX: Duration = Duration::from_secs(3600);
/// How many events are read from the tables at a time.
const READ_AT_ONCE: u32 = 200;

/// Somebody who listens, at a place in the stream.
pub struct Listener {
    feed: Feed,
    seen: VisibleJobs,
    live: broadcast::Receiver<Arc<[FeedEvent]>>,
    changes: broadcast::Receiver<(ClusterChange, Arc<Message>)>,
    /// The last event that was passed on, or passed over.
    last: (u64, u32),
    /// Whether there may be events in the tables that were not passed on.
    behind: bool,
    /// What others do, as far as everybody hears of it.
    pulse: Pulse,
    ready: VecDeque<FeedEvent>,
    until: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Listener {
    /// Listens from after this event on, or from now on.
    pub fn new(
        feed: &Feed,
        seen: VisibleJobs,
        last: Option<(u64, u32)>,
        permit: OwnedSemaphorePermit,
    ) -> Listener {
        // First listen, then look where the tables are: what comes between is in both.
        let live = feed.listen();
        let mut pulse = Pulse::default();
        if last.is_some() {
            pulse.note();
        }
        Listener {
            pulse,
            seen,
            live,
            changes: feed.listen_to_changes(),
            last: last.unwrap_or((feed.applied(), u32::MAX)),
            behind: last.is_some(),
            ready: VecDeque::new(),
            until: Instant::now() + STREAM_MAX,
            feed: feed.clone(),
            _permit: permit,
        }
    }

    /// The next event; `None` when the stream is over.
    pub async fn next(&mut self) -> Option<Arc<Message>> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                self.last = told.place;
                return Some(told.message);
            }
            if self.behind {
                self.catch_up().await?;
                continue;
            }
            let live = tokio::select! {
                live = timeout_at(self.until, self.live.recv()) => live,
                change = self.changes.recv() => match change {
                    Ok((change, message)) if change.is_for(self.seen) => return Some(message),
                    // Not for this one; or more than could be taken, each as good as the other.
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => continue,
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
                () = reached(self.pulse.due()) => {
                    self.pulse.told();
                    return Some(Message::of(ClusterChange::Cluster.event(self.feed.clock.machine())));
                }
            };
            match live {
                Ok(Ok(batch)) => {
                    let new = |told: &&FeedEvent| told.place > self.last;
                    if batch.iter().filter(new).any(|told| told.changes_cluster) {
                        self.pulse.note();
                    }
                    let seen = |told: &&FeedEvent| self.seen.allows(told.account, told.team);
                    self.ready.extend(batch.iter().filter(new).filter(seen).cloned());
                }
                Ok(Err(broadcast::error::RecvError::Lagged(_))) => {
                    self.behind = true;
                    self.pulse.note();
                }
                // The feed has ended, or the stream has lasted long enough.
                Ok(Err(broadcast::error::RecvError::Closed)) | Err(_) => return None,
            }
        }
    }

    /// Reads on in the tables.
    async fn catch_up(&mut self) -> Option<()> {
        let query = EventQuery::all(self.seen, self.last, READ_AT_ONCE);
        match self.feed.tables().events(&query).await {
            Ok(rows) => {
                self.behind = rows.len() == READ_AT_ONCE as usize;
                self.ready.extend(rows.into_iter().map(|row| self.feed.told(row)));
                Some(())
            }
            Err(error) => {
                tracing::error!(%error, "events cannot be read: a stream ends");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use era_core::units::UserId;

    use super::*;
    use crate::feed::tests::Site;

    #[tokio::test]
    async fn whoever_sees_only_own_jobs_hears_that_another_one_came_and_nothing_about_it() {
        let folder = tempfile::tempdir().unwrap();
        let site = Site::new(folder.path()).await;
        let last = site.app.driver.snapshot().seq();
        assert!(site.app.wait_for(last).await);
        let feed = &site.app.feed;
        let mut ada =
            Listener::new(feed, VisibleJobs::Own(UserId(1)), None, feed.permit().unwrap());
        let (theirs, _) = site.submit(2).await;
        let told = tokio::time::timeout(Duration::from_secs(10), ada.next()).await;
        let told = told.unwrap().unwrap();
        assert_eq!((told.event.event.as_str(), told.event.job), ("cluster_changed", None));
        assert!(!told.json.contains("bob") && !told.json.contains(&format!("job-of-{theirs}")));
        // Her own comes as it is, and the cluster's once more, but not at once.
        let (hers, _) = site.submit(1).await;
        let wanted = [("queued".to_owned(), Some(hers)), ("cluster_changed".to_owned(), None)];
        let mut heard = Vec::new();
        while !wanted.iter().all(|news| heard.contains(news)) {
            let told = tokio::time::timeout(Duration::from_secs(10), ada.next()).await;
            let told = told.unwrap().unwrap();
            heard.push((told.event.event.clone(), told.event.job));
        }
        assert!(heard.iter().all(|(_, job)| *job != Some(theirs)), "{heard:?}");
        site.stop().await;
    }

    #[tokio::test]
    async fn a_message_is_written_once_for_all_that_hear_it() {
        let folder = tempfile::tempdir().unwrap();
        let site = Site::new(folder.path()).await;
        assert!(site.app.wait_for(site.app.driver.snapshot().seq()).await);
        let feed = &site.app.feed;
        let listener = |seen| Listener::new(feed, seen, None, feed.permit().unwrap());
        let (mut bob, mut root) =
            (listener(VisibleJobs::Own(UserId(2))), listener(VisibleJobs::All));
        let (job, _) = site.submit(2).await;
        let queued = async |listener: &mut Listener| loop {
            let told = tokio::time::timeout(Duration::from_secs(10), listener.next()).await;
            let told = told.unwrap().unwrap();
            if told.event.event == "queued" {
                return told;
            }
        };
        let (his, hers) = (queued(&mut bob).await, queued(&mut root).await);
        assert!(Arc::ptr_eq(&his, &hers), "one message, and not one for each");
        assert_eq!(his.event.job, Some(job));
        assert_eq!(his.json, serde_json::to_string(&his.event).unwrap());
        site.stop().await;
    }
}
