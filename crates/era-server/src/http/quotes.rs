//! Quotes: what a bid would get, with its menu, counter-offers and holds.

use std::time::Instant;

use axum::Json;
use axum::extract::State;
use era_api::account::Scope;
use era_api::quote::{Hold, QuoteAsk, Quoted};
use era_core::quote::{Declined, menu, quote};
use era_core::units::HoldId;
use era_core::{Command, Reply};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::caller::Caller;
use super::extract::{Body, Path};
use super::failure::Failure;
use super::idempotency::Key;
use super::reply::{done, refused};
use crate::App;
use crate::clock::{Clock, SystemClock};
use crate::wire;

/// The routes of quotes and holds.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(ask)).routes(routes!(drop_hold))
}

/// What a bid would get: price and slot, or a refusal with counter-offers.
#[utoipa::path(
    post, path = "/quotes", tag = "quotes",
    request_body = QuoteAsk,
    responses((status = 200, body = Quoted))
)]
async fn ask(
    State(app): State<App>,
    caller: Caller,
    key: Option<Key>,
    Body(asked): Body<QuoteAsk>,
) -> Result<Json<Quoted>, Failure> {
    let begun = Instant::now();
    let snapshot = app.driver.snapshot();
    let now = SystemClock.now().max(snapshot.now());
    let bid = wire::bid(caller.user, &asked)?;
    if asked.hold {
        caller.may(Scope::Write)?;
        // Before anything is set aside: whoever is refused the menu holds nothing.
        let menu = if asked.menu { wire::menu(&menu(&snapshot, &bid, now)?) } else { Vec::new() };
        let key = key.and_then(|key| key.for_core(caller.user));
        let answer = app.driver.ask(Command::Hold { key, bid: bid.clone() }, None).await?;
        let held = match answer.reply {
            Reply::Held { hold, expires, quote } => Ok((hold, expires, quote)),
            other => Err(refused(other)),
        };
        let price = held.as_ref().ok().map(|(_, _, quote)| quote.price);
        app.asks.asked(&bid, now, price, begun.elapsed());
        let (hold, expires, quote) = held?;
        let hold = Some(Hold { id: hold.0, expires: wire::stamp(expires) });
        return Ok(Json(Quoted { quote: wire::quote(&quote), hold, menu }));
    }
    let answer = quote(&snapshot, &bid, now);
    let price = answer.as_ref().ok().map(|found| found.price);
    app.asks.asked(&bid, now, price, begun.elapsed());
    let found = answer?;
    let menu = if asked.menu { wire::menu(&menu(&snapshot, &bid, now)?) } else { Vec::new() };
    Ok(Json(Quoted { quote: wire::quote(&found), hold: None, menu }))
}

/// Gives up a hold.
#[utoipa::path(
    delete, path = "/holds/{id}", tag = "quotes",
    params(("id" = u64, Path, description = "The hold's number")),
    responses((status = 204))
)]
async fn drop_hold(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<u64>,
) -> Result<axum::http::StatusCode, Failure> {
    caller.may(Scope::Write)?;
    let command = Command::DropHold { hold: HoldId(id), by: caller.actor() };
    done(app.driver.ask(command, None).await?)
}

impl From<Declined> for Failure {
    fn from(declined: Declined) -> Failure {
        Failure::refused(&declined.refusal, &declined.counter)
    }
}
