//! Utilisation by the platform's formula, and the five measures.

use axum::Json;
use axum::extract::State;
use era_api::Timestamp;
use era_api::cluster::Utilisation;
use era_api::report::Report;
use era_app::report::{self, Period};
use era_app::wire::Wrong;
use era_core::units::{Span, Time};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Caller, Failure, Query};
use crate::App;

/// Longest period.
const PERIOD_MAX: Span = Span::from_days(366);

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(utilisation)).routes(routes!(measures))
}

/// A period, in whole hours.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct Asked {
    /// From, rounded down to the hour.
    from: Option<Timestamp>,
    /// Until, rounded up to the hour; now where nothing is said.
    to: Option<Timestamp>,
    /// For reports: whether the same period without ERA is wanted too. It takes a while.
    without: Option<bool>,
}

impl Asked {
    fn period(&self, now: Time, otherwise: Span) -> Result<Period, Failure> {
        let at = |at: Option<Timestamp>| at.map(|at| Time(at.as_millisecond()));
        let to = at(self.to).unwrap_or(now).min(now);
        let from = at(self.from).unwrap_or(to - otherwise);
        if from >= to || to.since(from) > PERIOD_MAX {
            let days = PERIOD_MAX.ms() / Span::from_days(1).ms();
            return Err(Failure::bad_field("from", Wrong::Period { days }));
        }
        Ok(Period::around(from.max(Time(0)), to, now))
    }
}

/// What of the machines is given out, now and over a period.
#[utoipa::path(get, path = "/utilisation", tag = "cluster", params(Asked), responses(
    (status = 200, body = Utilisation),
))]
async fn utilisation(
    State(app): State<App>,
    _caller: Caller,
    Query(asked): Query<Asked>,
) -> Result<Json<Utilisation>, Failure> {
    let now = app.clock.now();
    let period = asked.period(now, Span::from_h(1))?;
    let use_of = report::gathered(app.feed.tables(), period).await?;
    let mut told = use_of.now(now);
    if asked.from.is_some() {
        told.over_time = use_of.by_hour();
    }
    Ok(Json(told))
}

/// The five measures that the platform is judged by, for administrators.
#[utoipa::path(get, path = "/report", tag = "cluster", params(Asked), responses(
    (status = 200, body = Report),
))]
async fn measures(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<Asked>,
) -> Result<Json<Report>, Failure> {
    caller.administers()?;
    let now = app.clock.now();
    let period = asked.period(now, Span::from_days(7))?;
    app.wait_for(app.driver.snapshot().seq()).await;
    let tables = app.feed.tables();
    let with = report::measured(tables, period).await?;
    let laboratory = app.laboratory.clone().filter(|_| asked.without.unwrap_or(false));
    let replays = match laboratory {
        Some(laboratory) => report::replays(laboratory, &app.store, period).await?,
        None => None,
    };
    let machines = tables.node_spans(period.from, period.to).await?;
    Ok(Json(report::report(period, with, replays, &machines)))
}
