//! Webhooks: one's own addresses that are told when something happens.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use era_api::account::{NewWebhook, Webhook, WebhookEvent, WebhookMade};
use era_api::page::PageAsk;
use era_api::{Credits, Page};
use era_app::audit;
use era_app::auth::{now_ms, token};
use era_app::paging;
use era_app::reach::check_url;
use era_app::webhook::news::name;
use era_app::wire::Wrong;
use era_store::accounts::WebhookRow;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Body, Caller, Failure, From, Path, Query};
use crate::App;

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

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, make)).routes(routes!(get, remove))
}

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

/// One's own webhooks.
#[utoipa::path(get, path = "/webhooks", tag = "webhooks", params(PageAsk),
    responses((status = 200, body = Page<Webhook>)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(ask): Query<PageAsk>,
) -> Result<Json<Page<Webhook>>, Failure> {
    let size = paging::size(&ask)?;
    let after = paging::number(&ask, 0)?;
    let rows = app.auth.rows().webhooks_of(caller.user.0, after, size as u32 + 1).await?;
    let hooks = rows.into_iter().map(describe).collect();
    Ok(Json(paging::page(hooks, size, |hook: &Webhook| hook.id.to_string())))
}

/// Make a webhook. Its secret is told once.
#[utoipa::path(post, path = "/webhooks", tag = "webhooks", request_body = NewWebhook,
    responses((status = 201, body = WebhookMade)))]
async fn make(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Body(wanted): Body<NewWebhook>,
) -> Result<(StatusCode, Json<WebhookMade>), Failure> {
    check(&app, &wanted)?;
    let rows = app.auth.rows();
    if rows.webhooks_of(caller.user.0, 0, WEBHOOKS_MAX as u32).await?.len() >= WEBHOOKS_MAX {
        let detail = format!("at most {WEBHOOKS_MAX} webhooks: remove one first");
        return Err(Failure::new(StatusCode::CONFLICT, "limit", detail));
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
        created: now_ms(),
    };
    row.id = rows.add_webhook(&row).await?;
    audit::note(&app, &caller.name, from.0, "webhook.create", &row.url, true).await;
    let secret = row.secret.clone();
    Ok((StatusCode::CREATED, Json(WebhookMade { webhook: describe(row), secret })))
}

fn check(app: &App, wanted: &NewWebhook) -> Result<(), Failure> {
    check_url(&wanted.url, app.reach)
        .map_err(|told| Failure::bad_field("url", Wrong::Url { told }))?;
    if wanted.events.is_empty() || wanted.events.len() > EVENTS.len() {
        return Err(Failure::bad_field("events", Wrong::Events));
    }
    let price = wanted.events.contains(&WebhookEvent::PriceBelow);
    if price != (wanted.pool.is_some() && wanted.below.is_some()) {
        return Err(Failure::bad_field("below", Wrong::PriceAlert));
    }
    if let Some(pool) = &wanted.pool {
        let name = era_app::wire::name("pool", pool)?;
        app.driver.snapshot().cluster().pool(&name)?;
    }
    Ok(())
}

async fn own(app: &App, caller: &Caller, id: u64) -> Result<WebhookRow, Failure> {
    let row = app.auth.rows().webhook(id).await?;
    row.filter(|row| row.user == caller.user.0).ok_or_else(|| Failure::not_found("webhook", id))
}

/// One webhook of one's own.
#[utoipa::path(get, path = "/webhooks/{id}", tag = "webhooks", params(("id" = u64, Path)),
    responses((status = 200, body = Webhook)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<u64>,
) -> Result<Json<Webhook>, Failure> {
    Ok(Json(describe(own(&app, &caller, id).await?)))
}

/// Remove a webhook of one's own; what it was still to be told is dropped.
#[utoipa::path(delete, path = "/webhooks/{id}", tag = "webhooks", params(("id" = u64, Path)),
    responses((status = 204)))]
async fn remove(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(id): Path<u64>,
) -> Result<StatusCode, Failure> {
    let row = own(&app, &caller, id).await?;
    app.auth.rows().remove_webhook(id).await?;
    audit::note(&app, &caller.name, from.0, "webhook.remove", &row.url, true).await;
    Ok(StatusCode::NO_CONTENT)
}
