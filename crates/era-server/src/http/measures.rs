//! Utilisation by the platform's formula, and the five measures.

use axum::Json;
use axum::extract::State;
use era_api::Timestamp;
use era_api::cluster::Utilisation;
use era_api::report::Report;
use era_app::measures;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Caller, Failure, Query};
use crate::App;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(utilisation)).routes(routes!(measures))
}

/// A period, in whole hours.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct MeasuresQuery {
    /// From, rounded down to the hour.
    from: Option<Timestamp>,
    /// Until, rounded up to the hour; now where nothing is said.
    to: Option<Timestamp>,
    /// For reports: whether the same period without ERA is wanted too. It takes a while.
    without: Option<bool>,
}

/// What of the machines is given out, now and over a period.
#[utoipa::path(get, path = "/utilisation", tag = "cluster", params(MeasuresQuery), responses(
    (status = 200, body = Utilisation),
))]
async fn utilisation(
    State(app): State<App>,
    _caller: Caller,
    Query(MeasuresQuery { from, to, .. }): Query<MeasuresQuery>,
) -> Result<Json<Utilisation>, Failure> {
    Ok(Json(measures::utilisation(&app, from, to).await?))
}

/// The five measures that the platform is judged by, for administrators.
#[utoipa::path(get, path = "/report", tag = "cluster", params(MeasuresQuery), responses(
    (status = 200, body = Report),
))]
async fn measures(
    State(app): State<App>,
    caller: Caller,
    Query(MeasuresQuery { from, to, without }): Query<MeasuresQuery>,
) -> Result<Json<Report>, Failure> {
    let without = without.unwrap_or(false);
    Ok(Json(measures::report(&app, &caller, from, to, without).await?))
}
