//! The rules of the house, by name.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use era_api::settings::SettingsView;
use era_app::settings;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::Body;
use super::failure::Failure;
use super::{Call, Caller};
use crate::App;

/// The routes of settings.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(settings, change))
}

/// All settings in force.
#[utoipa::path(get, path = "/settings", tag = "settings",
    responses((status = 200, body = SettingsView)))]
async fn settings(State(app): State<App>, _caller: Caller) -> Json<SettingsView> {
    Json(settings::get(&app))
}

/// Changes those that are named.
#[utoipa::path(patch, path = "/settings", tag = "settings",
    request_body = SettingsView,
    responses((status = 204)))]
async fn change(call: Call, Body(changes): Body<SettingsView>) -> Result<StatusCode, Failure> {
    settings::change(&call.app, &call.caller, call.from, changes).await?;
    Ok(StatusCode::NO_CONTENT)
}
