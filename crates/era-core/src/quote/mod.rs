//! What a bid would get: price, start and finish, or a refusal with counter-offers.
//!
//! Read-only, on a snapshot. `step` decides by the same function, so a quote that nothing came
//! between is what an acceptance gives. The value of a bid is compared with prices here and
//! nowhere else: prices come from the market, which never sees it.

mod counter;
mod decide;
mod decision;
mod gap;
mod places;
mod rearrange;

use serde::{Deserialize, Serialize};

pub(crate) use counter::counter_offers;
pub(crate) use decide::decide;
pub(crate) use decision::{Decision, Move};

use self::counter::counter_offers_by;
use self::decide::decide_noting;
use self::decision::Notes;
use crate::bid::{Bid, Request};
use crate::market::Weights;
use crate::offer::{CounterOffers, Declined, Quote};
use crate::refusal::Refusal;
use crate::resources::Resource;
use crate::state::Snapshot;
use crate::units::{Milli, Money, Name, Span, Time};

/// What a bid would get at `now`.
pub fn quote(snapshot: &Snapshot, bid: &Bid, now: Time) -> Result<Quote, Declined> {
    let now = now.max(snapshot.now());
    let mut notes = Notes::default();
    match decide_noting(snapshot, bid, now, false, &mut notes) {
        Ok(decision) => Ok(decision.quote()),
        Err(refusal) => {
            let counter = counter_offers_by(snapshot, bid, now, &refusal, &notes);
            Err(Declined { refusal, counter: Box::new(counter) })
        }
    }
}

/// Whether a price is one that was agreed to: at most `most`, where that was said.
pub fn within(price: Money, most: Option<Money>) -> Result<(), Declined> {
    match most {
        Some(most) if price > most => {
            let counter = CounterOffers { value: Some(price), ..CounterOffers::default() };
            let refusal = Refusal::PriceRose { price, most };
            Err(Declined { refusal, counter: Box::new(counter) })
        }
        _ => Ok(()),
    }
}

/// One line of the flexibility menu: finished by this time for this price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MenuLine {
    pub by: Time,
    /// For how much.
    pub price: Money,
    pub start: Time,
}

/// The flexibility menu of a request: what each later deadline would save, as far as the horizon
/// reaches. Later lines are cheaper; the first is the earliest possible finish.
pub fn menu(snapshot: &Snapshot, bid: &Bid, now: Time) -> Result<Vec<MenuLine>, Declined> {
    let now = now.max(snapshot.now());
    let [alternative] = &bid.one_of[..] else {
        return Err(Refusal::TooMany {
            what: "alternatives".into(),
            given: bid.one_of.len(),
            most: 1,
        }
        .into());
    };
    let [request] = &alternative.all_of[..] else {
        let given = alternative.all_of.len();
        return Err(Refusal::TooMany { what: "requests".into(), given, most: 1 }.into());
    };
    bid.check(now, snapshot.settings().horizon)?;
    Ok(decide::menu(snapshot, bid.user, request, now)?)
}

/// The price of the next whole unit of each resource in one slot of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotPrice {
    /// When the slot starts.
    pub from: Time,
    /// Times the base rate, for cores, memory and GPUs.
    pub density: [Milli; 3],
    /// What is promised of each.
    pub promised: [u64; 3],
    /// What could be promised of each.
    pub capacity: [u64; 3],
}

/// The forward price calendar of a pool over `[from, to)`, slot by slot.
pub fn price_calendar(
    snapshot: &Snapshot,
    pool: &Name,
    from: Time,
    to: Time,
) -> Result<Vec<SlotPrice>, Refusal> {
    snapshot.cluster().pool(pool)?;
    let Some(calendar) = snapshot.calendar().pool(pool) else { return Ok(Vec::new()) };
    let slots = &calendar.slots;
    let first = slots.slot_at(from.max(snapshot.now()));
    let last = slots.slot_at(to - Span(1)).min(slots.end() - 1);
    let line = |slot: i64| SlotPrice {
        from: slots.start_of(slot),
        density: Resource::ALL.map(|r| slots.density(r, slot).unwrap_or_default()),
        promised: Resource::ALL.map(|r| slots.promised(r, slot)),
        capacity: Resource::ALL.map(|r| slots.capacity(r, slot)),
    };
    Ok((first..=last).map(line).collect())
}

/// The cost of a request at base rates: what density 1 means.
pub fn base_cost(snapshot: &Snapshot, pool: &Name, request: &Request) -> Result<Money, Refusal> {
    let pool = snapshot.cluster().pool(pool)?;
    let raw = Weights::of(&pool.rates).base(&request.units());
    Weights::price(raw * u128::from(request.duration.0.max(0).unsigned_abs()))
        .ok_or(Refusal::TooLarge)
}
