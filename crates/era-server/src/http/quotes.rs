//! Quotes: what a bid would get, with its menu, counter-offers and holds.

use axum::Json;
use axum::http::StatusCode;
use era_api::account::Scope;
use era_api::quote::{QuoteAsk, Quoted};
use era_app::quotes::{self, Moment};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Call;
use super::extract::{Body, Path};
use super::failure::Failure;
use super::idempotency::Key;
use crate::App;

/// The routes of quotes and holds.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(ask)).routes(routes!(drop_hold))
}

/// What a bid would get: price and slot, or a refusal with counter-offers.
#[utoipa::path(post, path = "/quotes", tag = "quotes",
    request_body = QuoteAsk,
    responses((status = 200, body = Quoted)))]
async fn ask(
    call: Call,
    key: Option<Key>,
    Body(asked): Body<QuoteAsk>,
) -> Result<Json<Quoted>, Failure> {
    if asked.hold {
        call.caller.may(Scope::Write)?;
        let key = key.and_then(|key| key.for_core(call.caller.user));
        return Ok(Json(quotes::hold(&call.app, &call.caller, &asked, key).await?));
    }
    let snapshot = call.app.driver.snapshot();
    Ok(Json(quotes::quote(
        &call.app,
        &call.caller,
        Moment::now(&*call.app.clock, &snapshot),
        &asked,
    )?))
}

/// Gives up a hold.
#[utoipa::path(delete, path = "/holds/{id}", tag = "quotes",
    params(("id" = u64, Path, description = "The hold's number")),
    responses((status = 204)))]
async fn drop_hold(call: Call, Path(id): Path<u64>) -> Result<StatusCode, Failure> {
    call.caller.may(Scope::Write)?;
    quotes::drop_hold(&call.app, &call.caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
