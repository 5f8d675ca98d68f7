//! One's own secrets: set and removed, and told to nobody but the jobs that name them.

use axum::Json;
use axum::http::StatusCode;
use era_api::Page;
use era_api::page::PageAsk;
use era_api::secret::{NewSecret, Secret};
use era_app::secrets;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Body, Call, Failure, Path, Query};
use crate::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(set, remove))
}

/// One's own secrets by name, without their values.
#[utoipa::path(get, path = "/secrets", tag = "secrets", params(PageAsk),
    responses((status = 200, body = Page<Secret>)))]
async fn list(call: Call, Query(ask): Query<PageAsk>) -> Result<Json<Page<Secret>>, Failure> {
    Ok(Json(secrets::list(&call.app, &call.caller, ask).await?))
}

/// Set a secret of one's own, or another value for it. Jobs that start later find that one.
#[utoipa::path(put, path = "/secrets/{name}", tag = "secrets",
    params(("name" = String, Path, pattern = "^[A-Z_][A-Z0-9_]*$", max_length = 64)),
    request_body = NewSecret, responses((status = 200, body = Secret)))]
async fn set(
    call: Call,
    Path(name): Path<String>,
    Body(new): Body<NewSecret>,
) -> Result<Json<Secret>, Failure> {
    Ok(Json(secrets::set(&call.app, &call.caller, call.from, name, new).await?))
}

/// Remove a secret of one's own. A job that names it and has not started will not start.
#[utoipa::path(delete, path = "/secrets/{name}", tag = "secrets",
    params(("name" = String, Path)), responses((status = 204)))]
async fn remove(call: Call, Path(name): Path<String>) -> Result<StatusCode, Failure> {
    secrets::remove(&call.app, &call.caller, call.from, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
