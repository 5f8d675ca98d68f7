//! What was spent and used by project: of one account over time, and of a group's members.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use era_api::account::{Chargeback, ChargebackLine, Spending, SpendingStretch, Spent};
use era_api::{Credits, Timestamp};
use era_app::seen::seen_by;
use era_app::wire::{Wrong, stamp, time};
use era_core::units::{Span, Time, UserId};
use era_store::tables;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Caller, Failure, Path, Query};
use crate::App;

/// The longest period that is summed up.
const PERIOD_MAX: Span = Span::from_days(400);
/// Sums are of whole hours.
const STEP_MIN_S: u64 = 3600;

/// Spending and chargeback.
pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(spending)).routes(routes!(chargeback))
}

/// Which period is wanted.
#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct Period {
    /// From; 30 days ago where nothing is said. Counted in whole hours.
    from: Option<Timestamp>,
    /// Until; now where nothing is said. At most 400 days later.
    to: Option<Timestamp>,
    /// In stretches of so many seconds, at least an hour; a day where nothing is said.
    step_s: Option<u64>,
}

impl Period {
    fn read(self, now: Time) -> Result<(Time, Time), Failure> {
        let to = self.to.map_or(now, time);
        let from = self.from.map_or(to + Span::from_days(-30), time);
        match from < to && to.since(from) <= PERIOD_MAX {
            true => Ok((from, to)),
            false => {
                let days = PERIOD_MAX.ms() / Span::from_days(1).ms();
                Err(Failure::bad_field("from", Wrong::Period { days }))
            }
        }
    }
}

/// What an account spent over time, by project.
#[utoipa::path(get, path = "/wallets/{user}/spending", tag = "wallets",
    params(("user" = String, Path), Period), responses(
    (status = 200, body = Spending),
))]
async fn spending(
    State(app): State<App>,
    caller: Caller,
    Path(user): Path<String>,
    Query(period): Query<Period>,
) -> Result<Json<Spending>, Failure> {
    let (from, to) = period.read(app.clock.now())?;
    let step_s = period.step_s.unwrap_or(86_400);
    if step_s < STEP_MIN_S {
        return Err(Failure::bad_field(
            "step_s",
            Wrong::Range { least: STEP_MIN_S, most: era_app::wire::seconds(PERIOD_MAX) },
        ));
    }
    // What was just paid for is on it.
    app.wait_for(app.driver.snapshot().seq()).await;
    let account = seen_account(&app, &caller, &user).await?;
    let hours = app.feed.tables().spending(account, from, to).await?;
    let step = era_app::wire::span(step_s);
    let mut stretches: BTreeMap<Time, BTreeMap<Option<String>, tables::Spent>> = BTreeMap::new();
    for hour in hours {
        let begin = Time(hour.hour * tables::HOUR_MS).max(from);
        let begin = from + Span(begin.since(from).ms() / step.ms() * step.ms());
        let sum = stretches.entry(begin).or_default().entry(hour.project).or_default();
        *sum = plus(*sum, hour.spent);
    }
    let stretch = |(from, projects): (Time, BTreeMap<Option<String>, tables::Spent>)| {
        let projects = projects.into_iter().map(|(project, sum)| spent(project, sum)).collect();
        SpendingStretch { from: stamp(from), projects }
    };
    let stretches = stretches.into_iter().map(stretch).collect();
    Ok(Json(Spending { user, from: stamp(from), to: stamp(to), step_s, stretches }))
}

/// What the members of a group spent in a period, by project. For those who head it.
#[utoipa::path(get, path = "/groups/{name}/chargeback", tag = "groups",
    params(("name" = String, Path), Period), responses(
    (status = 200, body = Chargeback),
))]
async fn chargeback(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Query(period): Query<Period>,
) -> Result<Json<Chargeback>, Failure> {
    let (from, to) = period.read(app.clock.now())?;
    let directory = app.auth.directory();
    let group = directory.group_named(&name).filter(|group| caller.heads(group.id));
    let group = group.ok_or_else(|| Failure::not_found("group", &name))?;
    app.wait_for(app.driver.snapshot().seq()).await;
    let found = app.feed.tables().chargeback(group.id, from, to).await?;
    let line = |by: tables::SpentBy| ChargebackLine {
        user: directory.user_name(by.account),
        spent: spent(by.project, by.spent),
    };
    let lines = found.into_iter().map(line).collect();
    Ok(Json(Chargeback { group: name, from: stamp(from), to: stamp(to), lines }))
}

/// An account whose money the caller may see.
pub(super) async fn seen_account(
    app: &App,
    caller: &Caller,
    user: &str,
) -> Result<UserId, Failure> {
    let account = match user == caller.name {
        true => Some((caller.user, caller.group)),
        false => app.feed.tables().account(user).await?,
    };
    let seen = seen_by(caller);
    let account = account.filter(|(account, team)| seen.allows(Some(*account), Some(*team)));
    Ok(account.ok_or_else(|| Failure::not_found("account", user))?.0)
}

fn plus(a: tables::Spent, b: tables::Spent) -> tables::Spent {
    let unit_ms = std::array::from_fn(|at| a.unit_ms[at].saturating_add(b.unit_ms[at]));
    tables::Spent { charged: a.charged + b.charged, refunded: a.refunded + b.refunded, unit_ms }
}

fn spent(project: Option<String>, sum: tables::Spent) -> Spent {
    let hours = |at: usize, whole: f64| sum.unit_ms[at] as f64 / 3_600_000.0 / whole;
    Spent {
        project,
        charged: Credits(sum.charged),
        refunded: Credits(sum.refunded),
        net: Credits(sum.charged - sum.refunded),
        cpu_hours: hours(0, 1000.0),
        memory_hours: hours(1, 1024.0),
        gpu_hours: hours(2, 1000.0),
    }
}
