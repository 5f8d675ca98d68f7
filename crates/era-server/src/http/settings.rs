//! The rules of the house, by name.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use era_api::settings::Settings;
use era_app::answer::audited;
use era_app::wire;
use era_core::Command;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Caller;
use super::extract::{Body, From};
use super::failure::Failure;
use crate::App;

/// The routes of settings.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(settings, change))
}

/// All settings in force.
#[utoipa::path(
    get, path = "/settings", tag = "settings",
    responses((status = 200, body = Settings))
)]
async fn settings(State(app): State<App>, _caller: Caller) -> Json<Settings> {
    Json(Settings(wire::settings(app.driver.snapshot().settings())))
}

/// Changes those that are named.
#[utoipa::path(
    patch, path = "/settings", tag = "settings",
    request_body = Settings,
    responses((status = 204))
)]
async fn change(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Body(changes): Body<Settings>,
) -> Result<StatusCode, Failure> {
    caller.administers()?;
    let changes: BTreeMap<_, _> = changes.0;
    let state = app.driver.snapshot();
    let settings = wire::settings_put(state.settings(), &changes)?;
    let names = changes.keys().map(String::as_str).collect::<Vec<_>>().join(",");
    audited(&app, &caller, from.0, "settings.set", &names, Command::SetSettings { settings })
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
