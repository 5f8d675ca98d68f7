//! One's own webhooks: listed, made and removed.

use std::net::IpAddr;

use era_api::account::{NewWebhook, Webhook, WebhookEvent, WebhookMade};
use era_api::page::PageAsk;
use era_api::{Credits, Page};
use era_store::accounts::WebhookRow;

use super::watch::name;
use crate::auth::{Caller, token};
use crate::egress::check_url;
use crate::error::{AppError, Kind};
use crate::wire::{self, Wrong};
use crate::{Services, audit, paging};

/// Most webhooks of an account.
const WEBHOOKS_MAX: usize = 20;
const EVENTS: [WebhookEvent; 6] = [
    WebhookEvent::JobStarted,
    WebhookEvent::JobFinished,
    WebhookEvent::JobFailed,
    WebhookEvent::ReservationKept,
    WebhookEvent::ReservationBroken,
    WebhookEvent::PriceBelow,
];

fn describe(row: WebhookRow) -> Webhook {
    let wanted = |event: &WebhookEvent| row.events.split(',').any(|w| w == name(*event));
    Webhook {
        id: row.id,
        url: row.url.clone(),
        events: EVENTS.into_iter().filter(wanted).collect(),
        pool: row.pool.clone(),
        below: row.below.map(Credits),
        last: row.last.clone(),
    }
}

/// One's own webhooks, in the order in which they were made.
pub async fn list(
    services: &Services,
    caller: &Caller,
    ask: PageAsk,
) -> Result<Page<Webhook>, AppError> {
    let size = paging::size(&ask)?;
    let after = paging::number(&ask, 0)?;
    let rows = services.auth.rows().webhooks_of(caller.user.0, after, size as u32 + 1).await?;
    let hooks = rows.into_iter().map(describe).collect();
    Ok(paging::page(hooks, size, |hook: &Webhook| hook.id.to_string()))
}

/// Makes a webhook. Its secret is told once.
pub async fn make(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    wanted: NewWebhook,
) -> Result<WebhookMade, AppError> {
    check(services, &wanted)?;
    let rows = services.auth.rows();
    if rows.webhooks_of(caller.user.0, 0, WEBHOOKS_MAX as u32).await?.len() >= WEBHOOKS_MAX {
        let detail = format!("at most {WEBHOOKS_MAX} webhooks: remove one first");
        return Err(AppError::new(Kind::Conflict, "limit", detail));
    }
    let names: Vec<_> = EVENTS.into_iter().filter(|e| wanted.events.contains(e)).collect();
    let events = names.into_iter().map(name).collect::<Vec<_>>().join(",");
    let mut row = WebhookRow {
        id: 0,
        user: caller.user.0,
        url: wanted.url,
        events,
        pool: wanted.pool,
        below: wanted.below.map(|below| below.0),
        was_below: false,
        secret: token::secret()?,
        last: None,
        created: services.clock.machine().0,
    };
    row.id = rows.add_webhook(&row).await?;
    audit::note(services, &caller.name, from, "webhook.create", &row.url, true).await;
    let secret = row.secret.clone();
    Ok(WebhookMade { webhook: describe(row), secret })
}

fn check(services: &Services, wanted: &NewWebhook) -> Result<(), AppError> {
    check_url(&wanted.url, services.egress)
        .map_err(|told| AppError::bad_field("url", Wrong::Url { told }))?;
    if wanted.events.is_empty() || wanted.events.len() > EVENTS.len() {
        return Err(AppError::bad_field("events", Wrong::Events));
    }
    let price = wanted.events.contains(&WebhookEvent::PriceBelow);
    if price != (wanted.pool.is_some() && wanted.below.is_some()) {
        return Err(AppError::bad_field("below", Wrong::PriceAlert));
    }
    if let Some(pool) = &wanted.pool {
        let name = wire::name("pool", pool)?;
        services.driver.snapshot().cluster().pool(&name)?;
    }
    Ok(())
}

async fn own(services: &Services, caller: &Caller, id: u64) -> Result<WebhookRow, AppError> {
    let row = services.auth.rows().webhook(id).await?;
    row.filter(|row| row.user == caller.user.0).ok_or_else(|| AppError::not_found("webhook", id))
}

/// One webhook of one's own.
pub async fn get(services: &Services, caller: &Caller, id: u64) -> Result<Webhook, AppError> {
    Ok(describe(own(services, caller, id).await?))
}

/// Removes a webhook of one's own; what it was still to be told is dropped.
pub async fn remove(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    id: u64,
) -> Result<(), AppError> {
    let row = own(services, caller, id).await?;
    services.auth.rows().remove_webhook(id).await?;
    audit::note(services, &caller.name, from, "webhook.remove", &row.url, true).await;
    Ok(())
}
