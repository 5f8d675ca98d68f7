//! The audit trail, to read.

use axum::Json;
use era_api::Page;
use era_api::account::{AuditFilter, AuditLine};
use era_app::audit;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Call, Failure, Query};
use crate::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// The audit trail, newest first. For administrators.
#[utoipa::path(get, path = "/audit", tag = "audit", params(AuditFilter),
    responses((status = 200, body = Page<AuditLine>)))]
async fn list(
    call: Call,
    Query(filter): Query<AuditFilter>,
) -> Result<Json<Page<AuditLine>>, Failure> {
    Ok(Json(audit::list(&call.app, &call.caller, filter).await?))
}
