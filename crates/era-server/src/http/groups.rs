//! Groups and their quotas.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use era_api::Page;
use era_api::account::{GroupView, NewGroup, QuotaView};
use era_api::page::NameFilter;
use era_app::groups;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Body, Caller, ClientAddr, Failure, Path, Query};
use crate::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, make)).routes(routes!(get)).routes(routes!(set_quota))
}

/// Groups by name: all for administrators, else one's own.
#[utoipa::path(get, path = "/groups", tag = "groups", params(NameFilter),
    responses((status = 200, body = Page<GroupView>)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(filter): Query<NameFilter>,
) -> Result<Json<Page<GroupView>>, Failure> {
    Ok(Json(groups::list(&app, &caller, filter).await?))
}

/// Make a group. For administrators.
#[utoipa::path(post, path = "/groups", tag = "groups", request_body = NewGroup,
    responses((status = 201, body = GroupView)))]
async fn make(
    State(app): State<App>,
    caller: Caller,
    from: ClientAddr,
    Body(wanted): Body<NewGroup>,
) -> Result<(StatusCode, Json<GroupView>), Failure> {
    let made = groups::make(&app, &caller, from.0, wanted).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

#[utoipa::path(get, path = "/groups/{name}", tag = "groups", params(("name" = String, Path)),
    responses((status = 200, body = GroupView)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<GroupView>, Failure> {
    Ok(Json(groups::get(&app, &caller, &name).await?))
}

/// Set what a group may use. For administrators.
#[utoipa::path(put, path = "/groups/{name}/quota", tag = "groups",
    params(("name" = String, Path)), request_body = QuotaView,
    responses((status = 200, body = GroupView)))]
async fn set_quota(
    State(app): State<App>,
    caller: Caller,
    from: ClientAddr,
    Path(name): Path<String>,
    Body(wanted): Body<QuotaView>,
) -> Result<Json<GroupView>, Failure> {
    Ok(Json(groups::set_quota(&app, &caller, from.0, &name, wanted).await?))
}
