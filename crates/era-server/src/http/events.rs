//! What changes: as a list, and live as server-sent events.
//!
//! A listener that names the last event that it has (`Last-Event-ID`) misses none: what it lacks
//! is read from the tables, and so is whatever it was too slow to take. Nothing is kept for it in
//! memory beyond what all listeners share. A stream ends after a while; whoever comes back is
//! authenticated again.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::{Extension, Json};
use era_api::Page;
use era_api::event::{Event, EventFilter};
use era_store::tables::{EventQuery, Seen};
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use tokio::time::{Instant, sleep_until, timeout_at};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::lasting::{Lasting, Stopping};
use super::reading::kinds;
use super::seen::{event_place, job_id, page_size, seen_by};
use super::{Caller, Failure, Query, Session};
use crate::App;
use crate::feed::{Feed, House, Pulse, Told};
use crate::wire::Wrong;

/// How often an idle stream says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a stream lasts.
const STREAM_MAX: Duration = Duration::from_secs(3600);
/// How many events are read from the tables at a time.
const READ_AT_ONCE: u32 = 200;

/// Events.
pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(stream))
}

/// Events that the caller may see, oldest first; `cursor` may be the id of any event.
#[utoipa::path(get, path = "/events", tag = "events", params(EventFilter), responses(
    (status = 200, body = Page<Event>),
))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(filter): Query<EventFilter>,
) -> Result<Json<Page<Event>>, Failure> {
    let limit = page_size(filter.limit)?;
    let bad = || Failure::bad_field("cursor", Wrong::EventId);
    let after = filter.cursor.as_deref().map(|text| event_place(text).ok_or_else(bad));
    let query = EventQuery {
        seen: seen_by(&caller),
        after: after.transpose()?.unwrap_or((0, 0)),
        kinds: filter.event.as_deref().map(kinds).transpose()?.unwrap_or_default(),
        job: filter.job.map(job_id).transpose()?,
        limit: limit.saturating_add(1),
    };
    app.wait_for(app.driver.snapshot().seq()).await;
    let mut rows = app.feed.tables().events(&query).await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let items: Vec<Event> = rows.into_iter().map(|row| app.feed.told(row).event).collect();
    let next = items.last().filter(|_| more).map(|event| event.id.clone());
    Ok(Json(Page { items, next }))
}

/// Events that the caller may see, as they happen.
///
/// Some are not in the journal and only say that a look is worth while: `account_changed`,
/// `data_changed`, `lab_changed`, and for everybody `cluster_changed`, when the calendar, prices,
/// machines or queues are no longer as they were, whoever changed them. That one says neither what
/// nor whose, and comes every two seconds at most. They have no `id`; whoever was away has missed
/// them.
#[utoipa::path(get, path = "/events/stream", tag = "events",
    params(("last-event-id" = Option<String>, Header, description = "Go on after this event")),
    responses(
    (status = 200, body = String, content_type = "text/event-stream",
     description = "`event` is the kind, `id` its place, `data` the event as JSON"),
))]
async fn stream(
    State(app): State<App>,
    caller: Caller,
    session: Session,
    stopping: Option<Extension<Stopping>>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, Failure> {
    let bad = || Failure::bad_field("last-event-id", Wrong::EventId);
    let last = headers.get("last-event-id").map(|value| {
        value.to_str().ok().filter(|text| text.len() <= 64).and_then(event_place).ok_or_else(bad)
    });
    let seat = app.feed.seat().ok_or_else(|| {
        let detail = "too many listeners: try again later, or read /events";
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_listeners", detail)
    })?;
    let listener = Listener::new(&app.feed, seen_by(&caller), last.transpose()?, seat);
    let lasting = Lasting::new(&app, &session.live, stopping.as_deref())?;
    let events = unfold((listener, lasting), |(mut listener, lasting)| async move {
        let event = tokio::select! {
            biased;
            () = lasting.over() => None,
            event = listener.next() => event,
        };
        Some((Ok(message(&event?)), (listener, lasting)))
    });
    // Something at once, so that whatever stands between passes the beginning on.
    let hello = futures_util::stream::iter([Ok(sse::Event::default().comment("here"))]);
    Ok(Sse::new(hello.chain(events)).keep_alive(KeepAlive::new().interval(HEARTBEAT).text("alive")))
}

fn message(event: &Event) -> sse::Event {
    let mut told = sse::Event::default().event(&event.event);
    // News that are not in the journal have no place to go on from.
    if !event.id.is_empty() {
        told = told.id(&event.id);
    }
    // Strings and numbers only, on one line: it can be written.
    told.json_data(event).unwrap_or_default()
}

/// Waits until then; for ever where it is not known.
async fn reached(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Somebody who listens, at a place in the stream.
struct Listener {
    feed: Feed,
    seen: Seen,
    live: broadcast::Receiver<Arc<[Told]>>,
    house: broadcast::Receiver<House>,
    /// The last event that was passed on, or passed over.
    last: (u64, u32),
    /// Whether there may be events in the tables that were not passed on.
    behind: bool,
    /// What others do, as far as everybody hears of it.
    pulse: Pulse,
    ready: VecDeque<Told>,
    until: Instant,
    _seat: OwnedSemaphorePermit,
}

impl Listener {
    fn new(
        feed: &Feed,
        seen: Seen,
        last: Option<(u64, u32)>,
        seat: OwnedSemaphorePermit,
    ) -> Listener {
        // First listen, then look where the tables are: what comes between is in both.
        let live = feed.listen();
        let mut pulse = Pulse::default();
        if last.is_some() {
            pulse.missed();
        }
        Listener {
            pulse,
            seen,
            live,
            house: feed.listen_to_house(),
            last: last.unwrap_or((feed.applied(), u32::MAX)),
            behind: last.is_some(),
            ready: VecDeque::new(),
            until: Instant::now() + STREAM_MAX,
            feed: feed.clone(),
            _seat: seat,
        }
    }

    /// The next event; `None` when the stream is over.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                self.last = told.place;
                return Some(told.event);
            }
            if self.behind {
                self.catch_up().await?;
                continue;
            }
            let live = tokio::select! {
                live = timeout_at(self.until, self.live.recv()) => live,
                news = self.house.recv() => match news {
                    Ok(news) if news.is_for(self.seen) => return Some(news.event()),
                    // Not for this one; or more than could be taken, each as good as the other.
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => continue,
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
                () = reached(self.pulse.due()) => {
                    self.pulse.told();
                    return Some(House::Cluster.event());
                }
            };
            match live {
                Ok(Ok(batch)) => {
                    let new = |told: &&Told| told.place > self.last;
                    batch.iter().filter(new).for_each(|told| self.pulse.note(&told.event));
                    let seen = |told: &&Told| self.seen.allows(told.account, told.team);
                    self.ready.extend(batch.iter().filter(new).filter(seen).cloned());
                }
                Ok(Err(broadcast::error::RecvError::Lagged(_))) => {
                    self.behind = true;
                    self.pulse.missed();
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
        let mut ada = Listener::new(feed, Seen::Own(UserId(1)), None, feed.seat().unwrap());
        let (theirs, _) = site.submit(2).await;
        let told = tokio::time::timeout(Duration::from_secs(10), ada.next()).await;
        let told = told.unwrap().unwrap();
        assert_eq!((told.event.as_str(), told.job), ("cluster_changed", None));
        let written = serde_json::to_string(&told).unwrap();
        assert!(!written.contains("bob") && !written.contains(&format!("job-of-{theirs}")));
        // Her own comes as it is, and the cluster's once more, but not at once.
        let (hers, _) = site.submit(1).await;
        let wanted = [("queued".to_owned(), Some(hers)), ("cluster_changed".to_owned(), None)];
        let mut heard = Vec::new();
        while !wanted.iter().all(|news| heard.contains(news)) {
            let told = tokio::time::timeout(Duration::from_secs(10), ada.next()).await;
            let told = told.unwrap().unwrap();
            heard.push((told.event, told.job));
        }
        assert!(heard.iter().all(|(_, job)| *job != Some(theirs)), "{heard:?}");
        site.stop().await;
    }
}
