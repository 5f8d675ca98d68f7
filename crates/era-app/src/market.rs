//! Prices, the forward calendar and the rules of the market.

use std::net::IpAddr;

use era_api::Timestamp;
use era_api::market::{FareCalendar, MarketView, MechanismView, PriceHistory};
use era_core::units::Span;
use era_core::{Command, Refusal};

use crate::Services;
use crate::answer::audited;
use crate::auth::Caller;

use crate::error::AppError;
use crate::wire::{self, Wrong};

/// Shortest and longest stretch of the calendar, and how long one is where nothing is said.
const STEP_MIN_S: u64 = 60;
const STEP_MAX: Span = Span::from_days(31);
const STEP_S: u64 = 3600;
/// Most points of a curve, and how many one has where nothing is said.
const POINTS_MAX: usize = 2000;
const POINTS: usize = 500;

/// Prices now, and how many promises were kept.
pub async fn get(services: &Services) -> Result<MarketView, AppError> {
    let state = services.driver.snapshot();
    let pools = state.cluster().pools().map(|pool| wire::pool_price(&state, pool));
    let pools: Vec<_> = pools.collect::<Result<_, Refusal>>()?;
    let (due, kept) = services.feed.tables().promises().await?;
    Ok(MarketView {
        mechanism: wire::mechanism(&state.calendar().market().rules),
        pools: pools.into_iter().flatten().collect(),
        promises_due: due,
        promises_kept: kept,
    })
}

/// The forward calendar of a pool: of each stretch its cheapest slot. From now on, and for a week,
/// where nothing else is said.
pub fn calendar(
    services: &Services,
    pool: &str,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    step_s: Option<u64>,
) -> Result<FareCalendar, AppError> {
    let state = services.driver.snapshot();
    let pool = state.cluster().pool(&wire::name("pool", pool)?)?;
    let from = from.map_or(state.now(), wire::time).max(state.now());
    let last = state.now() + state.settings().horizon;
    let to = to.map_or(from + Span::from_days(7), wire::time).min(last);
    let step = wire::span(step_s.unwrap_or(STEP_S).max(STEP_MIN_S));
    Ok(wire::fare_calendar(&state, pool, from, to, step.min(STEP_MAX))?)
}

/// What a pool has cost over time: in the week until now, where nothing else is said.
pub async fn history(
    services: &Services,
    pool: &str,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    points: Option<usize>,
) -> Result<PriceHistory, AppError> {
    let state = services.driver.snapshot();
    let pool = state.cluster().pool(&wire::name("pool", pool)?)?;
    let to = to.map_or_else(|| services.clock.now(), wire::time);
    let from = from.map_or(to + Span::from_days(-7), wire::time);
    let points = points.unwrap_or(POINTS);
    if !(4..=POINTS_MAX).contains(&points) {
        let range = Wrong::Range { least: 4, most: POINTS_MAX as u64 };
        return Err(AppError::bad_field("points", range));
    }
    let order = wire::ordering_resource(&state, pool) as usize;
    let prices = services.store.prices();
    let rows = prices.read(pool.name.as_str(), (from, to), points, order).await?;
    let points = rows.iter().map(wire::past_price).collect();
    Ok(PriceHistory { pool: pool.name.to_string(), points })
}

/// Sets the rules of the market. For administrators.
pub async fn set_mechanism(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    rules: &MechanismView,
) -> Result<(), AppError> {
    caller.administers()?;
    let command = Command::SetMarket { rules: wire::mechanism_put(rules)? };
    audited(services, caller, from, "market.mechanism", &rules.name, command).await
}
