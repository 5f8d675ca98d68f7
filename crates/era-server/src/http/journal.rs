//! The journal, to take away: what `era replay` and `era tune` read.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use era_app::journal;
use futures_util::stream::unfold;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Caller, Failure, Query};
use crate::App;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(export))
}

/// From where the journal is wanted.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct Stretch {
    /// From this segment on; from the first where nothing is said.
    segment: Option<u64>,
}

/// Every input with what was decided about it, one JSON object a line, for administrators.
#[utoipa::path(get, path = "/journal", tag = "journal", params(Stretch), responses(
    (status = 200, body = String, content_type = "application/x-ndjson"),
))]
async fn export(
    State(app): State<App>,
    caller: Caller,
    Query(Stretch { segment }): Query<Stretch>,
) -> Result<Response, Failure> {
    let export = journal::export(&app, &caller, segment).await?;
    // A page at a time, and only when the client has taken the one before.
    let lines = unfold(Some(export), |export| async move {
        let mut export = export?;
        match export.lines().await {
            Ok(Some(lines)) => Some((Ok(Bytes::from(lines)), Some(export))),
            Ok(None) => None,
            Err(error) => {
                tracing::error!(%error, "the journal cannot be read: an export breaks off");
                Some((Err(error), None))
            }
        }
    });
    let kind = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"journal.ndjson\""),
    ];
    Ok((kind, Body::from_stream(lines)).into_response())
}
