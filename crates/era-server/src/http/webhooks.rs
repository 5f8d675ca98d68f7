//! Webhooks: one's own addresses that are told when something happens.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use era_api::Page;
use era_api::account::{NewWebhook, Webhook, WebhookMade};
use era_api::page::PageAsk;
use era_app::webhook::own;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Body, Caller, ClientAddr, Failure, Path, Query};
use crate::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, make)).routes(routes!(get, remove))
}

/// One's own webhooks.
#[utoipa::path(get, path = "/webhooks", tag = "webhooks", params(PageAsk),
    responses((status = 200, body = Page<Webhook>)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(ask): Query<PageAsk>,
) -> Result<Json<Page<Webhook>>, Failure> {
    Ok(Json(own::list(&app, &caller, ask).await?))
}

/// Make a webhook. Its secret is told once.
#[utoipa::path(post, path = "/webhooks", tag = "webhooks", request_body = NewWebhook,
    responses((status = 201, body = WebhookMade)))]
async fn make(
    State(app): State<App>,
    caller: Caller,
    from: ClientAddr,
    Body(wanted): Body<NewWebhook>,
) -> Result<(StatusCode, Json<WebhookMade>), Failure> {
    let made = own::make(&app, &caller, from.0, wanted).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// One webhook of one's own.
#[utoipa::path(get, path = "/webhooks/{id}", tag = "webhooks", params(("id" = u64, Path)),
    responses((status = 200, body = Webhook)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<u64>,
) -> Result<Json<Webhook>, Failure> {
    Ok(Json(own::get(&app, &caller, id).await?))
}

/// Remove a webhook of one's own; what it was still to be told is dropped.
#[utoipa::path(delete, path = "/webhooks/{id}", tag = "webhooks", params(("id" = u64, Path)),
    responses((status = 204)))]
async fn remove(
    State(app): State<App>,
    caller: Caller,
    from: ClientAddr,
    Path(id): Path<u64>,
) -> Result<StatusCode, Failure> {
    own::remove(&app, &caller, from.0, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
