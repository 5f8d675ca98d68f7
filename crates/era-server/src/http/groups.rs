//! Groups and their quotas.

use axum::Json;
use axum::http::StatusCode;
use era_api::Page;
use era_api::account::{GroupView, NewGroup, QuotaView};
use era_api::page::NameFilter;
use era_app::groups;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Body, Call, Failure, Path, Query};
use crate::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, make)).routes(routes!(get)).routes(routes!(set_quota))
}

/// Groups by name: all for administrators, else one's own.
#[utoipa::path(get, path = "/groups", tag = "groups", params(NameFilter),
    responses((status = 200, body = Page<GroupView>)))]
async fn list(
    call: Call,
    Query(filter): Query<NameFilter>,
) -> Result<Json<Page<GroupView>>, Failure> {
    Ok(Json(groups::list(&call.app, &call.caller, filter).await?))
}

/// Make a group. For administrators.
#[utoipa::path(post, path = "/groups", tag = "groups", request_body = NewGroup,
    responses((status = 201, body = GroupView)))]
async fn make(
    call: Call,
    Body(wanted): Body<NewGroup>,
) -> Result<(StatusCode, Json<GroupView>), Failure> {
    let made = groups::make(&call.app, &call.caller, call.from, wanted).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

#[utoipa::path(get, path = "/groups/{name}", tag = "groups", params(("name" = String, Path)),
    responses((status = 200, body = GroupView)))]
async fn get(call: Call, Path(name): Path<String>) -> Result<Json<GroupView>, Failure> {
    Ok(Json(groups::get(&call.app, &call.caller, &name).await?))
}

/// Set what a group may use. For administrators.
#[utoipa::path(put, path = "/groups/{name}/quota", tag = "groups",
    params(("name" = String, Path)), request_body = QuotaView,
    responses((status = 200, body = GroupView)))]
async fn set_quota(
    call: Call,
    Path(name): Path<String>,
    Body(wanted): Body<QuotaView>,
) -> Result<Json<GroupView>, Failure> {
    Ok(Json(groups::set_quota(&call.app, &call.caller, call.from, &name, wanted).await?))
}
