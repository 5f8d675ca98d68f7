//! What was spent and used by project: of one account over time, and of a group's members.

use std::collections::BTreeMap;

use era_api::account::{Chargeback, ChargebackLine, Spending, SpendingStretch, Spent};
use era_api::{Credits, Timestamp};
use era_core::units::{Span, Time};
use era_store::tables;

use crate::Services;
use crate::auth::Caller;
use crate::error::AppError;
use crate::visibility;
use crate::wire::{Wrong, seconds, span, stamp, time};

/// The longest period that is summed up.
const PERIOD_MAX: Span = Span::from_days(400);
/// Sums are of whole hours.
const STEP_MIN_S: u64 = 3600;
/// How long a stretch is where nothing is said.
const STEP_S: u64 = 86_400;

/// A period: the 30 days until now, where nothing else is said.
fn period(
    now: Time,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
) -> Result<(Time, Time), AppError> {
    let to = to.map_or(now, time);
    let from = from.map_or(to + Span::from_days(-30), time);
    match from < to && to.since(from) <= PERIOD_MAX {
        true => Ok((from, to)),
        false => {
            let days = PERIOD_MAX.ms() / Span::from_days(1).ms();
            Err(AppError::bad_field("from", Wrong::Period { days }))
        }
    }
}

/// What an account spent over time, by project.
pub async fn of_account(
    services: &Services,
    caller: &Caller,
    user: String,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    step_s: Option<u64>,
) -> Result<Spending, AppError> {
    let (from, to) = period(services.clock.now(), from, to)?;
    let step_s = step_s.unwrap_or(STEP_S);
    if step_s < STEP_MIN_S {
        let range = Wrong::Range { least: STEP_MIN_S, most: seconds(PERIOD_MAX) };
        return Err(AppError::bad_field("step_s", range));
    }
    // What was just paid for is on it.
    services.wait_for(services.driver.snapshot().seq()).await;
    let account = visibility::account(services, caller, &user).await?;
    let hours = services.feed.tables().spending(account, from, to).await?;
    let step = span(step_s);
    let mut stretches: BTreeMap<Time, BTreeMap<Option<String>, tables::SpendingRow>> =
        BTreeMap::new();
    for hour in hours {
        let begin = Time(hour.hour * tables::HOUR_MS).max(from);
        let begin = from + Span(begin.since(from).ms() / step.ms() * step.ms());
        let sum = stretches.entry(begin).or_default().entry(hour.project).or_default();
        *sum = plus(*sum, hour.spent);
    }
    let stretch = |(from, projects): (Time, BTreeMap<Option<String>, tables::SpendingRow>)| {
        let projects = projects.into_iter().map(|(project, sum)| spent(project, sum)).collect();
        SpendingStretch { from: stamp(from), projects }
    };
    let stretches = stretches.into_iter().map(stretch).collect();
    Ok(Spending { user, from: stamp(from), to: stamp(to), step_s, stretches })
}

/// What the members of a group spent in a period, by project. For those who head it.
pub async fn of_group(
    services: &Services,
    caller: &Caller,
    name: String,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
) -> Result<Chargeback, AppError> {
    let (from, to) = period(services.clock.now(), from, to)?;
    let directory = services.auth.directory();
    let group = directory.group_named(&name).filter(|group| caller.heads(group.id));
    let group = group.ok_or_else(|| AppError::not_found("group", &name))?;
    services.wait_for(services.driver.snapshot().seq()).await;
    let found = services.feed.tables().chargeback(group.id, from, to).await?;
    let line = |by: tables::SpentBy| ChargebackLine {
        user: directory.user_name(by.account),
        spent: spent(by.project, by.spent),
    };
    let lines = found.into_iter().map(line).collect();
    Ok(Chargeback { group: name, from: stamp(from), to: stamp(to), lines })
}

fn plus(a: tables::SpendingRow, b: tables::SpendingRow) -> tables::SpendingRow {
    let unit_ms = std::array::from_fn(|at| a.unit_ms[at].saturating_add(b.unit_ms[at]));
    tables::SpendingRow {
        charged: a.charged + b.charged,
        refunded: a.refunded + b.refunded,
        unit_ms,
    }
}

fn spent(project: Option<String>, sum: tables::SpendingRow) -> Spent {
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
