//! What was spent and used by project: of one account over time, and of a group's members.

use axum::Json;
use axum::extract::State;
use era_api::Timestamp;
use era_api::account::{Chargeback, Spending};
use era_app::spending;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Caller, Failure, Path, Query};
use crate::App;

/// Spending and chargeback.
pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(spending)).routes(routes!(chargeback))
}

/// Which period is wanted.
#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct SpendingQuery {
    /// From; 30 days ago where nothing is said. Counted in whole hours.
    from: Option<Timestamp>,
    /// Until; now where nothing is said. At most 400 days later.
    to: Option<Timestamp>,
    /// In stretches of so many seconds, at least an hour; a day where nothing is said.
    step_s: Option<u64>,
}

/// What an account spent over time, by project.
#[utoipa::path(get, path = "/wallets/{user}/spending", tag = "wallets",
    params(("user" = String, Path), SpendingQuery), responses(
    (status = 200, body = Spending),
))]
async fn spending(
    State(app): State<App>,
    caller: Caller,
    Path(user): Path<String>,
    Query(SpendingQuery { from, to, step_s }): Query<SpendingQuery>,
) -> Result<Json<Spending>, Failure> {
    Ok(Json(spending::of_account(&app, &caller, user, from, to, step_s).await?))
}

/// What the members of a group spent in a period, by project. For those who head it.
#[utoipa::path(get, path = "/groups/{name}/chargeback", tag = "groups",
    params(("name" = String, Path), SpendingQuery), responses(
    (status = 200, body = Chargeback),
))]
async fn chargeback(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Query(SpendingQuery { from, to, .. }): Query<SpendingQuery>,
) -> Result<Json<Chargeback>, Failure> {
    Ok(Json(spending::of_group(&app, &caller, name, from, to).await?))
}
