//! Utilisation by the platform's formula, and the five measures.

use era_api::Timestamp;
use era_api::cluster::Utilisation;
use era_api::report::Report;
use era_core::units::{Span, Time};

use crate::Services;
use crate::auth::Caller;

use crate::error::AppError;
use crate::report::{self, ReportPeriod};
use crate::wire::{Wrong, time};

/// Longest period.
const PERIOD_MAX: Span = Span::from_days(366);

/// The whole hours around a period that ends now at the latest, and where nothing is said began so
/// long before its end.
fn period(
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    now: Time,
    otherwise: Span,
) -> Result<ReportPeriod, AppError> {
    let to = to.map_or(now, time).min(now);
    let from = from.map_or_else(|| to - otherwise, time);
    if from >= to || to.since(from) > PERIOD_MAX {
        let days = PERIOD_MAX.ms() / Span::from_days(1).ms();
        return Err(AppError::bad_field("from", Wrong::Period { days }));
    }
    Ok(ReportPeriod::around(from.max(Time(0)), to, now))
}

/// What of the machines is given out, now and over a period where one is asked for.
pub async fn utilisation(
    services: &Services,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
) -> Result<Utilisation, AppError> {
    let now = services.clock.now();
    let period = period(from, to, now, Span::from_h(1))?;
    let use_of = report::gathered(services.feed.tables(), period).await?;
    let mut told = use_of.now(now);
    if from.is_some() {
        told.over_time = use_of.by_hour();
    }
    Ok(told)
}

/// The five measures that the platform is judged by, over the week until now where nothing else is
/// said; `without`, those of the same period without ERA beside them. For administrators.
pub async fn report(
    services: &Services,
    caller: &Caller,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    without: bool,
) -> Result<Report, AppError> {
    caller.administers()?;
    let period = period(from, to, services.clock.now(), Span::from_days(7))?;
    services.wait_for(services.driver.snapshot().seq()).await;
    let tables = services.feed.tables();
    let with = report::measured(tables, period).await?;
    let laboratory = services.laboratory.clone().filter(|_| without);
    let replays = match laboratory {
        Some(laboratory) => report::replays(laboratory, &services.store, period).await?,
        None => None,
    };
    let machines = tables.node_spans(period.from, period.to).await?;
    Ok(report::report(period, with, replays, &machines))
}
