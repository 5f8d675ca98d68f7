//! Webhooks: one's own addresses that are told when something happens.

use axum::Json;
use axum::http::StatusCode;
use era_api::Page;
use era_api::account::{NewWebhook, Webhook, WebhookMade};
use era_api::page::PageAsk;
use era_app::webhook::own;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Body, Call, Failure, Path, Query};
use crate::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, make)).routes(routes!(get, remove))
}

/// One's own webhooks.
#[utoipa::path(get, path = "/webhooks", tag = "webhooks", params(PageAsk),
    responses((status = 200, body = Page<Webhook>)))]
async fn list(call: Call, Query(ask): Query<PageAsk>) -> Result<Json<Page<Webhook>>, Failure> {
    Ok(Json(own::list(&call.app, &call.caller, ask).await?))
}

/// Make a webhook. Its secret is told once.
#[utoipa::path(post, path = "/webhooks", tag = "webhooks", request_body = NewWebhook,
    responses((status = 201, body = WebhookMade)))]
async fn make(
    call: Call,
    Body(wanted): Body<NewWebhook>,
) -> Result<(StatusCode, Json<WebhookMade>), Failure> {
    let made = own::make(&call.app, &call.caller, call.from, wanted).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// One webhook of one's own.
#[utoipa::path(get, path = "/webhooks/{id}", tag = "webhooks", params(("id" = u64, Path)),
    responses((status = 200, body = Webhook)))]
async fn get(call: Call, Path(id): Path<u64>) -> Result<Json<Webhook>, Failure> {
    Ok(Json(own::get(&call.app, &call.caller, id).await?))
}

/// Remove a webhook of one's own; what it was still to be told is dropped.
#[utoipa::path(delete, path = "/webhooks/{id}", tag = "webhooks", params(("id" = u64, Path)),
    responses((status = 204)))]
async fn remove(call: Call, Path(id): Path<u64>) -> Result<StatusCode, Failure> {
    own::remove(&call.app, &call.caller, call.from, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
