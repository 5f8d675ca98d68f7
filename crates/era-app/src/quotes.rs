//! Quotes: what a bid would get, with its menu, counter-offers and holds.

use era_api::quote::{HoldView, QuoteAsk, Quoted};
use era_core::quote::{menu, quote as price, within};
use era_core::units::{HoldId, Money, Name, Time};
use era_core::{Command, Reply, Snapshot};
use tokio::time::Instant;

use crate::Services;
use crate::answer::{done, refused};
use crate::auth::Caller;
use crate::clock::Clock;
use crate::error::AppError;
use crate::what_if;
use crate::wire::{self, Wrong};

/// A state, and the time by which it is asked.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// What there is.
    pub snapshot: &'a Snapshot,
    /// Never before the snapshot's own.
    pub now: Time,
}

impl Moment<'_> {
    /// A state as it is asked now.
    pub fn now<'a>(clock: &dyn Clock, snapshot: &'a Snapshot) -> Moment<'a> {
        Moment { snapshot, now: clock.now().max(snapshot.now()) }
    }
}

/// What a bid would get: price and slot, or a refusal with counter-offers. Nothing is set aside.
pub fn quote(
    services: &Services,
    caller: &Caller,
    at: Moment<'_>,
    asked: &QuoteAsk,
) -> Result<Quoted, AppError> {
    let begun = Instant::now();
    let bid = wire::bid(caller.user, asked)?;
    let by = caller.actor();
    let snapshot = what_if::without_hold(at.snapshot, asked.instead_of, by, at.now)?;
    let answer = price(&snapshot, &bid, at.now);
    let answer = answer.and_then(|found| within(found.price, most(asked)).map(|()| found));
    let told = answer.as_ref().ok().map(|found| found.price);
    services.asks.asked(&bid, at.now, told, begun.elapsed());
    let found = answer?;
    let menu = if asked.menu { wire::menu(&menu(&snapshot, &bid, at.now)?) } else { Vec::new() };
    let wallet = wire::wallet(&snapshot, &bid, found.price);
    Ok(Quoted { quote: wire::quote(&found), hold: None, menu, wallet })
}

/// The same, with capacity and price set aside for a while.
pub async fn hold(
    services: &Services,
    caller: &Caller,
    asked: &QuoteAsk,
    key: Option<Name>,
) -> Result<Quoted, AppError> {
    let begun = Instant::now();
    let snapshot = services.driver.snapshot();
    let Moment { now, .. } = Moment::now(&*services.clock, &snapshot);
    let bid = wire::bid(caller.user, asked)?;
    if asked.instead_of.is_some() {
        let both = Wrong::NotBoth { one: "hold", other: "instead_of" };
        return Err(AppError::bad_field("instead_of", both));
    }
    // Before anything is set aside: whoever is refused the menu holds nothing.
    let menu = if asked.menu { wire::menu(&menu(&snapshot, &bid, now)?) } else { Vec::new() };
    let answer = services.driver.ask(Command::Hold { key, bid: bid.clone() }, None).await?;
    let held = match answer.reply {
        Reply::Held { hold, expires, quote } => Ok((hold, expires, quote)),
        other => Err(refused(other)),
    };
    let told = held.as_ref().ok().map(|(_, _, quote)| quote.price);
    services.asks.asked(&bid, now, told, begun.elapsed());
    let (hold, expires, quote) = held?;
    if let Err(declined) = within(quote.price, most(asked)) {
        drop_hold(services, caller, hold.0).await?;
        return Err(declined.into());
    }
    let hold = Some(HoldView { id: hold.0, expires: wire::stamp(expires) });
    let wallet = wire::wallet(&snapshot, &bid, quote.price);
    Ok(Quoted { quote: wire::quote(&quote), hold, menu, wallet })
}

/// The most that it may cost.
fn most(asked: &QuoteAsk) -> Option<Money> {
    asked.most.map(wire::money)
}

pub async fn drop_hold(services: &Services, caller: &Caller, id: u64) -> Result<(), AppError> {
    let command = Command::DropHold { hold: HoldId(id), by: caller.actor() };
    done(services.driver.ask(command, None).await?)
}
