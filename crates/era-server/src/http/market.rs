//! Prices, the forward calendar and the rules of the market.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use era_api::Timestamp;
use era_api::market::{FareCalendar, Market, Mechanism, PriceHistory};
use era_app::answer::audited;
use era_app::wire::{self, Wrong};
use era_core::units::Span;
use era_core::{Command, Refusal};
use era_store::tables::Tables;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Caller;
use super::extract::{Body, From, Path, Query};
use super::failure::Failure;
use crate::App;

/// Shortest stretch of the calendar.
const STEP_MIN_S: u64 = 60;

/// The routes of the market.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(market))
        .routes(routes!(calendar))
        .routes(routes!(history))
        .routes(routes!(set_mechanism))
}

/// Prices now, and how many promises were kept.
#[utoipa::path(
    get, path = "/market", tag = "market",
    responses((status = 200, body = Market))
)]
async fn market(State(app): State<App>, _caller: Caller) -> Result<Json<Market>, Failure> {
    let state = app.driver.snapshot();
    let pools = state.cluster().pools().map(|pool| wire::pool_price(&state, pool));
    let pools: Vec<_> = pools.collect::<Result<_, Refusal>>()?;
    let (due, kept) = Tables::new(&app.store).promises().await?;
    Ok(Json(Market {
        mechanism: wire::mechanism(&state.calendar().market().rules),
        pools: pools.into_iter().flatten().collect(),
        promises_due: due,
        promises_kept: kept,
    }))
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
#[utoipa::path(
    get, path = "/market/{pool}/calendar", tag = "market",
    params(("pool" = String, Path, description = "The pool's name"), Stretch),
    responses((status = 200, body = FareCalendar))
)]
async fn calendar(
    State(app): State<App>,
    _caller: Caller,
    Path(pool): Path<String>,
    Query(asked): Query<Stretch>,
) -> Result<Json<FareCalendar>, Failure> {
    let state = app.driver.snapshot();
    let pool = state.cluster().pool(&wire::name("pool", &pool)?)?.clone();
    let from = asked.from.map_or(state.now(), wire::time).max(state.now());
    let last = state.now() + state.settings().horizon;
    let to = asked.to.map_or(from + Span::from_days(7), wire::time).min(last);
    let step = wire::span(asked.step_s.unwrap_or(3600).max(STEP_MIN_S));
    Ok(Json(wire::fare_calendar(&state, &pool, from, to, step.min(Span::from_days(31)))?))
}

/// Most points of a curve.
const POINTS_MAX: usize = 2000;

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
#[utoipa::path(
    get, path = "/market/{pool}/history", tag = "market",
    params(("pool" = String, Path, description = "The pool's name"), Past),
    responses((status = 200, body = PriceHistory))
)]
async fn history(
    State(app): State<App>,
    _caller: Caller,
    Path(pool): Path<String>,
    Query(asked): Query<Past>,
) -> Result<Json<PriceHistory>, Failure> {
    let state = app.driver.snapshot();
    let pool = state.cluster().pool(&wire::name("pool", &pool)?)?.clone();
    let to = asked.to.map_or_else(|| app.clock.now(), wire::time);
    let from = asked.from.map_or(to + Span::from_days(-7), wire::time);
    let points = asked.points.unwrap_or(500);
    if !(4..=POINTS_MAX).contains(&points) {
        return Err(Failure::bad_field(
            "points",
            Wrong::Range { least: 4, most: POINTS_MAX as u64 },
        ));
    }
    let order = wire::ordering_resource(&state, &pool) as usize;
    let rows = app.store.prices().read(pool.name.as_str(), (from, to), points, order).await?;
    let points = rows.iter().map(wire::past_price).collect();
    Ok(Json(PriceHistory { pool: pool.name.to_string(), points }))
}

/// Sets the rules of the market.
#[utoipa::path(
    put, path = "/market/mechanism", tag = "market",
    request_body = Mechanism,
    responses((status = 204))
)]
async fn set_mechanism(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Body(rules): Body<Mechanism>,
) -> Result<StatusCode, Failure> {
    caller.administers()?;
    let command = Command::SetMarket { rules: wire::mechanism_put(&rules)? };
    audited(&app, &caller, from.0, "market.mechanism", &rules.name, command).await?;
    Ok(StatusCode::NO_CONTENT)
}
