//! Prices and the rules of the market.

use era_api::Credits;
use era_api::market as wire;
use era_core::State;
use era_core::calendar::{Booking, BookingHolder, Layer};
use era_core::cluster::Pool;
use era_core::market::{MarketRules, MechanismChoice};
use era_core::quote::{SlotPrice, price_calendar};
use era_core::refusal::Refusal;
use era_core::resources::{PerResource, Resource};
use era_core::units::{Milli, Money, Span, Time};
use era_store::prices::PriceRow;

use super::cluster::is_held;
use super::{BadField, Wrong, credits, fraction, milli, name, stamp};

pub fn mechanism(rules: &MarketRules) -> wire::MechanismView {
    let (density, low, high) = match &rules.mechanism {
        MechanismChoice::BasicEcon => (None, None, None),
        MechanismChoice::FirstFit { density } | MechanismChoice::OnDemand { density } => {
            (Some(*density), None, None)
        }
        MechanismChoice::Surge { low, high } => (None, Some(*low), Some(*high)),
    };
    wire::MechanismView {
        name: rules.mechanism.name().to_owned(),
        density: density.map(fraction),
        low: low.map(fraction),
        high: high.map(fraction),
        floor: fraction(rules.floor),
        ceiling: fraction(rules.ceiling),
    }
}

/// Rules that are to be set; a parameter that the mechanism does not have is refused.
pub fn mechanism_put(given: &wire::MechanismView) -> Result<MarketRules, BadField> {
    let mut mechanism = MechanismChoice::named(&name("name", &given.name)?)
        .map_err(|refusal| BadField::new("name", Wrong::Refused(Box::new(refusal))))?;
    for (field, value) in [("density", given.density), ("low", given.low), ("high", given.high)] {
        let Some(value) = value else { continue };
        let parameter = match (&mut mechanism, field) {
            (
                MechanismChoice::FirstFit { density } | MechanismChoice::OnDemand { density },
                "density",
            ) => density,
            (MechanismChoice::Surge { low, .. }, "low") => low,
            (MechanismChoice::Surge { high, .. }, "high") => high,
            _ => {
                let mechanism = given.name.clone();
                return Err(BadField::new(field, Wrong::NoParameter { mechanism }));
            }
        };
        *parameter = milli(field, value)?;
    }
    Ok(MarketRules {
        mechanism,
        floor: milli("floor", given.floor)?,
        ceiling: milli("ceiling", given.ceiling)?,
    })
}

/// The forward calendar of a pool in stretches of `step`: of each stretch its cheapest slot.
pub fn fare_calendar(
    state: &State,
    pool: &Pool,
    from: Time,
    to: Time,
    step: Span,
) -> Result<wire::FareCalendar, Refusal> {
    let slots = price_calendar(state, &pool.name, from, to)?;
    let mut points: Vec<wire::PricePoint> = Vec::new();
    for stretch in slots.chunk_by(|a, b| a.from.floor_to(step) == b.from.floor_to(step)) {
        let Some(cheapest) = stretch.iter().min_by_key(|slot| cost(pool, slot)) else { continue };
        let begin = stretch[0].from;
        let end = (begin.floor_to(step) + step).min(to);
        points.push(point(state, pool, cheapest, begin, end));
    }
    Ok(wire::FareCalendar { pool: pool.name.to_string(), points })
}

/// A pool's price now, and the cheapest within a day.
pub fn pool_price(state: &State, pool: &Pool) -> Result<Option<wire::PoolPrice>, Refusal> {
    let now = state.now();
    let slots = price_calendar(state, &pool.name, now, now + Span::from_days(1))?;
    let (Some(first), Some(cheapest)) =
        (slots.first(), slots.iter().min_by_key(|slot| cost(pool, slot)))
    else {
        return Ok(None);
    };
    let slot = state.settings().slot;
    let show = |price: &SlotPrice| point(state, pool, price, price.from, price.from + slot);
    Ok(Some(wire::PoolPrice {
        pool: pool.name.to_string(),
        now: show(first),
        cheapest: show(cheapest),
        queue_work: queue_work(state, pool),
    }))
}

/// The share of a pool that is in use now without a promise: cores, memory, GPUs.
fn queue_work(state: &State, pool: &Pool) -> PerResource<f64> {
    let mut used = [0_u64; 3];
    let Some(calendar) = state.calendar().pool(&pool.name) else { return [0.0; 3] };
    for booking in calendar.nodes.iter().flat_map(|node_calendar| node_calendar.bookings()) {
        if !is_held(state, booking, state.now()) || !is_queue_work(state, booking) {
            continue;
        }
        let take = &booking.take;
        used[Resource::Cpu as usize] += u64::from(take.cpu);
        used[Resource::Memory as usize] += u64::from(take.memory);
        used[Resource::Gpu as usize] +=
            u64::from(take.gpus.count_ones()) * u64::from(take.gpu_share);
    }
    let capacity = calendar.capacity();
    Resource::ALL.map(|r| share(used[r as usize], capacity[r as usize]))
}

/// Whether it is no part of a promise: a job of a queue, or growth beyond what was promised.
fn is_queue_work(state: &State, booking: &Booking) -> bool {
    let BookingHolder::Job { job, .. } = booking.holder else { return false };
    let queued = |job| state.job(job).is_ok_and(|job| job.queue().is_some());
    booking.layer == Layer::Soft || queued(job)
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A pool's prices at an instant, to be written down; `None` where it has nothing to sell.
pub fn price_row(state: &State, pool: &Pool, now: Time) -> Result<Option<PriceRow>, Refusal> {
    let slots = price_calendar(state, &pool.name, now, now + state.settings().slot)?;
    let sells = |slot: &&SlotPrice| slot.capacity.iter().any(|amount| *amount > 0);
    let Some(slot) = slots.first().filter(sells) else { return Ok(None) };
    let point = point(state, pool, slot, now, now);
    let thousandths = |share: f64| (share * 1000.0).round() as i64;
    Ok(Some(PriceRow {
        at: now,
        price: [point.cpu.0, point.memory.0, point.gpu.0],
        promised: point.promised.map(thousandths),
    }))
}

/// What was written down.
pub fn past_price(row: &PriceRow) -> wire::PastPrice {
    let [cpu, memory, gpu] = row.price.map(Credits);
    let promised = row.promised.map(|share| share as f64 / 1000.0);
    wire::PastPrice { at: stamp(row.at), cpu, memory, gpu, promised }
}

/// The resource whose price people compare a pool by: GPUs where it has any, else cores.
pub fn ordering_resource(state: &State, pool: &Pool) -> Resource {
    let has = |node: &std::sync::Arc<era_core::cluster::Node>| {
        node.pool == pool.name && node.capacity.amount(Resource::Gpu) > 0
    };
    if state.cluster().nodes().any(has) { Resource::Gpu } else { Resource::Cpu }
}

/// What orders slots by price: a GPU where the pool has any, else a core and a GiB.
fn cost(pool: &Pool, slot: &SlotPrice) -> i64 {
    let of = |resource: Resource| rate(pool.rates.of(resource), slot.density[resource as usize]).0;
    if slot.capacity[2] > 0 { of(Resource::Gpu) } else { of(Resource::Cpu) + of(Resource::Memory) }
}

fn rate(base: Money, density: Milli) -> Money {
    let scaled = i128::from(base.0) * i128::from(density.0) / 1000;
    Money(i64::try_from(scaled).unwrap_or(i64::MAX))
}

fn point(state: &State, pool: &Pool, slot: &SlotPrice, from: Time, to: Time) -> wire::PricePoint {
    // What a pool does not have has no price.
    let price = |r: Resource| match slot.capacity[r as usize] {
        0 => Credits::ZERO,
        _ => credits(rate(pool.rates.of(r), slot.density[r as usize])),
    };
    let forecast = |r: Resource| {
        let curve = state.calendar().market().forecast.at(&pool.name, r, slot.from);
        let demand = curve.demand(Milli(0));
        share(demand, slot.capacity[r as usize])
    };
    wire::PricePoint {
        from: stamp(from),
        to: stamp(to),
        cpu: price(Resource::Cpu),
        memory: price(Resource::Memory),
        gpu: price(Resource::Gpu),
        promised: Resource::ALL
            .map(|r| share(slot.promised[r as usize], slot.capacity[r as usize])),
        forecast: Resource::ALL.map(forecast),
    }
}
