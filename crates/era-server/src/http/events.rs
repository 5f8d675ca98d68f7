//! What changes: as a list, and live as server-sent events.
//!
//! A listener that names the last event that it has (`Last-Event-ID`) misses none. A stream ends
//! after a while; whoever comes back is authenticated again.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{self, KeepAlive, Sse};
use axum::{Extension, Json};
use era_api::Page;
use era_api::event::{EventFilter, EventView};
use era_app::events;
use era_app::feed::Message;
use era_app::visibility::event_place;
use era_app::wire::Wrong;
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::open_session::{OpenSession, Stopping};
use super::{Call, Failure, Query, Session};
use crate::App;

/// How often an idle stream says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(stream))
}

/// Events that the caller may see, oldest first; `cursor` may be the id of any event.
#[utoipa::path(get, path = "/events", tag = "events", params(EventFilter), responses(
    (status = 200, body = Page<EventView>),
))]
async fn list(
    call: Call,
    Query(filter): Query<EventFilter>,
) -> Result<Json<Page<EventView>>, Failure> {
    Ok(Json(events::list(&call.app, &call.caller, &filter).await?))
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
    call: Call,
    session: Session,
    stopping: Option<Extension<Stopping>>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, Failure> {
    let bad = || Failure::bad_field("last-event-id", Wrong::EventId);
    let last = headers.get("last-event-id").map(|value| {
        value.to_str().ok().filter(|text| text.len() <= 64).and_then(event_place).ok_or_else(bad)
    });
    let listener = events::listen(&call.app, &call.caller, last.transpose()?)?;
    let open = OpenSession::new(&call.app, &session.live, stopping.as_deref())?;
    let stream = unfold((listener, open), |(mut listener, open)| async move {
        let message = tokio::select! {
            biased;
            () = open.over() => None,
            message = listener.next() => message,
        };
        Some((Ok(framed(&*message?)), (listener, open)))
    });
    // Something at once, so that whatever stands between passes the beginning on.
    let hello = futures_util::stream::iter([Ok(sse::Event::default().comment("here"))]);
    Ok(Sse::new(hello.chain(stream)).keep_alive(KeepAlive::new().interval(HEARTBEAT).text("alive")))
}

fn framed(message: &Message) -> sse::Event {
    let told = sse::Event::default().event(&message.event.event).data(&message.json);
    // News that are not in the journal have no place to go on from.
    if message.event.id.is_empty() { told } else { told.id(&message.event.id) }
}
