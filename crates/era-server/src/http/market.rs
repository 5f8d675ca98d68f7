//! Prices, the forward calendar and the rules of the market.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use era_api::Timestamp;
use era_api::market::{FareCalendar, MarketView, MechanismView, PriceHistory};
use era_app::market;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{Body, Path, Query};
use super::failure::Failure;
use super::{Call, Caller};
use crate::App;

/// The routes of the market.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(market))
        .routes(routes!(calendar))
        .routes(routes!(history))
        .routes(routes!(set_mechanism))
}

/// Prices now, and how many promises were kept.
#[utoipa::path(get, path = "/market", tag = "market",
    responses((status = 200, body = MarketView)))]
async fn market(State(app): State<App>, _caller: Caller) -> Result<Json<MarketView>, Failure> {
    Ok(Json(market::get(&app).await?))
}

/// Which part of the calendar is wanted.
#[derive(Clone, Copy, Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Stretch {
    /// From; now where nothing is said.
    from: Option<Timestamp>,
    /// Until; a week later where nothing is said.
    to: Option<Timestamp>,
    /// In stretches of so many seconds; an hour where nothing is said.
    step_s: Option<u64>,
}

/// The forward calendar of a pool: of each stretch its cheapest slot.
#[utoipa::path(get, path = "/market/{pool}/calendar", tag = "market",
    params(("pool" = String, Path, description = "The pool's name"), Stretch),
    responses((status = 200, body = FareCalendar)))]
async fn calendar(
    State(app): State<App>,
    _caller: Caller,
    Path(pool): Path<String>,
    Query(Stretch { from, to, step_s }): Query<Stretch>,
) -> Result<Json<FareCalendar>, Failure> {
    Ok(Json(market::calendar(&app, &pool, from, to, step_s)?))
}

/// Which part of the past is wanted.
#[derive(Clone, Copy, Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Past {
    /// From; a week ago where nothing is said.
    from: Option<Timestamp>,
    /// Until; now where nothing is said.
    to: Option<Timestamp>,
    /// At most so many points, 4 to 2,000; 500 where nothing is said.
    points: Option<usize>,
}

/// What a pool has cost over time. Prices are kept for 90 days.
#[utoipa::path(get, path = "/market/{pool}/history", tag = "market",
    params(("pool" = String, Path, description = "The pool's name"), Past),
    responses((status = 200, body = PriceHistory)))]
async fn history(
    State(app): State<App>,
    _caller: Caller,
    Path(pool): Path<String>,
    Query(Past { from, to, points }): Query<Past>,
) -> Result<Json<PriceHistory>, Failure> {
    Ok(Json(market::history(&app, &pool, from, to, points).await?))
}

/// Sets the rules of the market.
#[utoipa::path(put, path = "/market/mechanism", tag = "market",
    request_body = MechanismView,
    responses((status = 204)))]
async fn set_mechanism(
    call: Call,
    Body(rules): Body<MechanismView>,
) -> Result<StatusCode, Failure> {
    market::set_mechanism(&call.app, &call.caller, call.from, &rules).await?;
    Ok(StatusCode::NO_CONTENT)
}
