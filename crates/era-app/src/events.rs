//! What changes: as a list, and live.

use era_api::Page;
use era_api::event::{EventFilter, EventView};
use era_store::tables::EventQuery;

use crate::Services;
use crate::auth::Caller;
use crate::error::{AppError, Kind};
use crate::feed::Listener;
use crate::visibility::{event_place, job_id, page_size, visible_to};
use crate::wire::{Wrong, kinds};

/// Events that the caller may see, oldest first.
pub async fn list(
    services: &Services,
    caller: &Caller,
    filter: &EventFilter,
) -> Result<Page<EventView>, AppError> {
    let limit = page_size(filter.limit)?;
    let bad = || AppError::bad_field("cursor", Wrong::EventId);
    let after = filter.cursor.as_deref().map(|text| event_place(text).ok_or_else(bad));
    let query = EventQuery {
        visible: visible_to(caller),
        after: after.transpose()?.unwrap_or((0, 0)),
        kinds: filter.event.as_deref().map(kinds).transpose()?.unwrap_or_default(),
        job: filter.job.map(job_id).transpose()?,
        limit: limit.saturating_add(1),
    };
    services.wait_for(services.driver.snapshot().seq()).await;
    let mut rows = services.feed.tables().events(&query).await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let items: Vec<EventView> = rows.into_iter().map(|row| services.feed.event(row)).collect();
    let next = items.last().filter(|_| more).map(|event| event.id.clone());
    Ok(Page { items, next })
}

/// Events that the caller may see, as they happen: after the one of this place, or from now on.
pub fn listen(
    services: &Services,
    caller: &Caller,
    last: Option<(u64, u32)>,
) -> Result<Listener, AppError> {
    let permit = services.feed.permit().ok_or_else(|| {
        let sentence = "too many listeners: try again later, or read /events";
        AppError::new(Kind::Unavailable, "too_many_listeners", sentence)
    })?;
    Ok(Listener::new(&services.feed, visible_to(caller), last, permit))
}
