//! Accounts, their quotas and their wallets.

use axum::Json;
use axum::http::StatusCode;
use era_api::Page;
use era_api::account::{
    Grant, NewUser, QuotaView, UserEdit, UserFilter, UserMade, UserView, Wallet,
};
use era_app::users;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Body, Call, Failure, Path, Query};
use crate::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, make))
        .routes(routes!(get, edit))
        .routes(routes!(set_quota))
        .routes(routes!(give))
        .routes(routes!(wallet))
}

/// Accounts by name: all for administrators, the group's for its administrators, else one's own.
#[utoipa::path(get, path = "/users", tag = "users", params(UserFilter),
    responses((status = 200, body = Page<UserView>)))]
async fn list(
    call: Call,
    Query(filter): Query<UserFilter>,
) -> Result<Json<Page<UserView>>, Failure> {
    Ok(Json(users::list(&call.app, &call.caller, filter).await?))
}

/// Make an account. For administrators.
#[utoipa::path(post, path = "/users", tag = "users", request_body = NewUser,
    responses((status = 201, body = UserMade)))]
async fn make(
    call: Call,
    Body(wanted): Body<NewUser>,
) -> Result<(StatusCode, Json<UserMade>), Failure> {
    let made = users::make(&call.app, &call.caller, call.from, wanted).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

#[utoipa::path(get, path = "/users/{name}", tag = "users", params(("name" = String, Path)),
    responses((status = 200, body = UserView)))]
async fn get(call: Call, Path(name): Path<String>) -> Result<Json<UserView>, Failure> {
    Ok(Json(users::get(&call.app, &call.caller, &name).await?))
}

/// Change an account. For administrators.
#[utoipa::path(patch, path = "/users/{name}", tag = "users", params(("name" = String, Path)),
    request_body = UserEdit, responses((status = 200, body = UserMade)))]
async fn edit(
    call: Call,
    Path(name): Path<String>,
    Body(edit): Body<UserEdit>,
) -> Result<Json<UserMade>, Failure> {
    Ok(Json(users::edit(&call.app, &call.caller, call.from, &name, edit).await?))
}

/// Set what an account may use. For administrators, and for those of its group, who divide the
/// group's quota.
#[utoipa::path(put, path = "/users/{name}/quota", tag = "users", params(("name" = String, Path)),
    request_body = QuotaView, responses((status = 200, body = UserView)))]
async fn set_quota(
    call: Call,
    Path(name): Path<String>,
    Body(wanted): Body<QuotaView>,
) -> Result<Json<UserView>, Failure> {
    Ok(Json(users::set_quota(&call.app, &call.caller, call.from, &name, wanted).await?))
}

/// Give credits to an account, or below zero take them. For administrators.
#[utoipa::path(post, path = "/users/{name}/grants", tag = "users",
    params(("name" = String, Path)), request_body = Grant,
    responses((status = 201, body = Wallet)))]
async fn give(
    call: Call,
    Path(name): Path<String>,
    Body(given): Body<Grant>,
) -> Result<(StatusCode, Json<Wallet>), Failure> {
    let made = users::grant(&call.app, &call.caller, call.from, &name, given).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// What an account has.
#[utoipa::path(get, path = "/users/{name}/wallet", tag = "users",
    params(("name" = String, Path)), responses((status = 200, body = Wallet)))]
async fn wallet(call: Call, Path(name): Path<String>) -> Result<Json<Wallet>, Failure> {
    Ok(Json(users::wallet(&call.app, &call.caller, &name)?))
}
