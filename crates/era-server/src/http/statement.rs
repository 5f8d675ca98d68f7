//! Wallets' statements.

use axum::Json;
use era_api::Page;
use era_api::account::{StatementFilter, StatementLineView};
use era_app::statement;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Call, Failure, Path, Query};
use crate::App;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(statement)).routes(routes!(of_job))
}

/// What came into a wallet and went out of it, newest first.
#[utoipa::path(get, path = "/wallets/{user}/statement", tag = "wallets",
    params(("user" = String, Path), StatementFilter), responses(
    (status = 200, body = Page<StatementLineView>),
))]
async fn statement(
    call: Call,
    Path(user): Path<String>,
    Query(filter): Query<StatementFilter>,
) -> Result<Json<Page<StatementLineView>>, Failure> {
    Ok(Json(statement::of_wallet(&call.app, &call.caller, &user, &filter).await?))
}

/// What a job was charged and got back, line by line, oldest first.
#[utoipa::path(get, path = "/jobs/{id}/statement", tag = "jobs", params(("id" = u64, Path)),
    responses(
    (status = 200, body = Vec<StatementLineView>),
))]
async fn of_job(call: Call, Path(id): Path<u64>) -> Result<Json<Vec<StatementLineView>>, Failure> {
    Ok(Json(statement::of_job(&call.app, &call.caller, id).await?))
}
