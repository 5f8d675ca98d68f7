//! What will be asked for, learned from what was: published to the scheduler as an input.
//!
//! Demand that was turned away is demand, so every question counts, taken or not; the store has
//! them all ([`crate::asks`]). Learning is pure and may take a while, so it is done aside.

use std::collections::BTreeMap;
use std::sync::Arc;

use era_core::bid::{Bid, Request, Value};
use era_core::cluster::{Eligibility, Purpose};
use era_core::forecast::history::{
    DemandHistory, PAST_REQUESTS_MAX, PastPool, PastRequest, Wanted,
};
use era_core::forecast::{Forecast, relaxation};
use era_core::quote::base_cost;
use era_core::units::{Money, Name, Span, Time};
use era_core::{Command, Snapshot};
use era_store::StoreError;
use era_store::journal::AskedQuote;

use crate::Services;
use crate::driver::Unanswered;

/// How far back questions are read.
const MEMORY: Span = Span::from_days(28);
/// The learner's slot: demand an hour ahead is known no finer.
const SLOT: Span = Span::from_h(1);
/// What is published must do until the next time.
const EVERY: Span = Span::from_h(1);
const DAY: Span = Span::from_days(1);
const WEEK: Span = Span::from_days(7);

/// Why no forecast was published.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoForecast {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    #[error("nothing can be learned from what was asked: {0}")]
    History(String),
}

/// Learns from what was asked so far and publishes it; says from how many requests. Where nobody
/// ever asked, nothing is published.
pub(super) async fn publish(app: &Services, now: Time) -> Result<Option<usize>, NoForecast> {
    let asks = app.store.asks();
    asks.forget_before(now - MEMORY).await?;
    let most = u32::try_from(PAST_REQUESTS_MAX).unwrap_or(u32::MAX);
    let asked = asks.read(now - MEMORY, now, most).await?;
    let state = app.driver.snapshot();
    let learned = tokio::task::spawn_blocking(move || learn(&state, &asked, now)).await;
    let learned = learned.map_err(|e| NoForecast::History(e.to_string()))?;
    let Some((forecast, requests)) = learned.map_err(NoForecast::History)? else {
        return Ok(None);
    };
    let command = Command::PublishForecast { forecast: Arc::new(forecast) };
    app.driver.ask(command, None).await?;
    Ok(Some(requests))
}

fn learn(
    state: &Snapshot,
    asked: &[AskedQuote],
    now: Time,
) -> Result<Option<(Forecast, usize)>, String> {
    let requests: Vec<PastRequest> = asked.iter().flat_map(|asked| past(state, asked)).collect();
    let Some(from) = requests.iter().map(|past| past.submitted).min() else { return Ok(None) };
    let count = requests.len();
    let horizon = state.settings().horizon;
    let history =
        DemandHistory { slot: SLOT, reach: horizon, from, to: now, pools: pools(state), requests };
    // Weeks repeat themselves, but one must have seen two of them to say so.
    let cycle = if now.since(from) >= Span(2 * WEEK.ms()) { WEEK } else { DAY };
    let wanted = Wanted { from: now, horizon: Span(horizon.ms() + EVERY.ms()), cycle };
    let forecast = relaxation::forecast(&history, &wanted).map_err(|e| e.to_string())?;
    Ok(Some((forecast, count)))
}

fn pools(state: &Snapshot) -> BTreeMap<Name, PastPool> {
    let pools = state.cluster().pools().filter_map(|pool| {
        let capacity = state.calendar().pool(&pool.name)?.capacity();
        Some((pool.name.clone(), PastPool { rates: pool.rates, capacity }))
    });
    pools.collect()
}

/// The requests of a question: those of its first choice, which share its worth evenly. Who takes
/// the price has said no worth. It counts as what was told, or else as what its resources cost: if
/// it counted as worth any price, a few of them would raise all prices to the ceiling.
fn past(state: &Snapshot, asked: &AskedQuote) -> Vec<PastRequest> {
    // What cannot be read any more is of an older time and teaches nothing.
    let Ok(bid) = asked.bid() else { return Vec::new() };
    let Some(first) = bid.one_of.first() else { return Vec::new() };
    let share = |value: Money| Money(value.0 / first.all_of.len().max(1) as i64);
    let worth = match bid.value {
        Value::Flat(Money::MOST) => asked.price,
        ref said => Some(said.most()),
    };
    let past = |request: &Request| {
        let pool = pool_for(state, &bid, request)?;
        let value = match worth {
            Some(worth) => share(worth),
            None => base_cost(state, &pool, request).ok()?,
        };
        Some(PastRequest {
            pool,
            units: request.units(),
            duration: request.duration,
            window: request.window,
            submitted: asked.at,
            value,
        })
    };
    first.all_of.iter().filter_map(past).collect()
}

/// The pool that has most nodes for it.
fn pool_for(state: &Snapshot, bid: &Bid, request: &Request) -> Option<Name> {
    let user = state.accounts().user(bid.user).ok()?;
    let ask = Eligibility {
        each: &request.each,
        constraints: &request.constraints,
        level: user.level,
        gpus: request.units()[2],
        purpose: Purpose::Promise,
    };
    let mut nodes = BTreeMap::<&Name, usize>::new();
    for node in state.cluster().nodes().filter(|node| ask.would_allow(node)) {
        *nodes.entry(&node.pool).or_default() += 1;
    }
    // The first by name where two have as many.
    let most = nodes.into_iter().rev().max_by_key(|(_, nodes)| *nodes);
    most.map(|(pool, _)| pool.clone())
}

#[cfg(test)]
mod tests {
    use era_core::bid::{Shape, Window};
    use era_core::cluster::Pool;
    use era_core::input::NewNode;
    use era_core::resources::{Capacity, Resources};
    use era_core::units::{GroupId, UserId};
    use era_drive::{Engine, SiteBuilder, name};

    use super::*;

    #[test]
    fn who_takes_the_price_is_not_learned_as_worth_any_price() {
        let mut pool = Pool::new(name("main"));
        pool.rates.cpu = Money::credits(2);
        let capacity = Capacity { cpu: 4000, memory: 4096, ..Capacity::default() };
        let nodes = vec![NewNode::new(name("a"), name("main"), capacity)];
        let mut site = SiteBuilder { pools: vec![pool], nodes, ..SiteBuilder::default() };
        site.user(UserId(1), GroupId(1), Money::credits(100));
        let engine = Engine::of(&site, Time(0), &mut ()).unwrap();
        let each = Resources { cpu: 1000, ..Resources::default() };
        let window = Window { earliest: Time(0), deadline: Time::from_s(7200) };
        let request = Request::new(Shape::gang(1), each, Span::from_h(1), window);
        let learned = |value, price| {
            let bid = Bid::single(UserId(1), request.clone(), value);
            let found = past(engine.state(), &AskedQuote::new(Time(0), &bid, price));
            found.into_iter().map(|past| past.value).collect::<Vec<_>>()
        };
        assert_eq!(learned(Money::credits(9), Some(Money::credits(3))), [Money::credits(9)]);
        assert_eq!(learned(Money::MOST, Some(Money::credits(3))), [Money::credits(3)]);
        assert_eq!(learned(Money::MOST, None), [Money::credits(2)], "what an hour of a core costs");
    }
}
