//! The audit trail, to read.

use axum::Json;
use axum::extract::State;
use era_api::account::AuditLine;
use era_api::page::PageAsk;
use era_api::{Page, Timestamp};
use era_app::paging;
use era_store::accounts::{AuditAsk, AuditRow};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Caller, Failure, Query};
use crate::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Which lines are listed. Every field narrows the list.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct AuditFilter {
    /// By this account.
    who: Option<String>,
    /// Of what was done: all that begins so, such as `user` or `token.revoke`.
    what: Option<String>,
    /// To this, such as a node's or an account's name.
    target: Option<String>,
    /// At or after.
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Most items, up to 1000.
    limit: Option<u32>,
}

/// The audit trail, newest first. For administrators.
#[utoipa::path(get, path = "/audit", tag = "audit", params(AuditFilter),
    responses((status = 200, body = Page<AuditLine>)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(filter): Query<AuditFilter>,
) -> Result<Json<Page<AuditLine>>, Failure> {
    caller.administers()?;
    let page = PageAsk { cursor: filter.cursor, limit: filter.limit };
    let size = paging::size(&page)?;
    let ask = AuditAsk {
        who: filter.who,
        what: filter.what,
        target: filter.target,
        since: filter.since.map(|at| at.as_millisecond()),
        until: filter.until.map(|at| at.as_millisecond()),
        before: paging::number(&page, u64::MAX)?,
    };
    let rows = app.auth.rows().audit_lines(&ask, size as u32 + 1).await?;
    let lines = rows.into_iter().map(line).collect();
    Ok(Json(paging::page(lines, size, |line: &AuditLine| line.id.to_string())))
}

fn line(row: AuditRow) -> AuditLine {
    AuditLine {
        id: row.id,
        at: stamp(row.at),
        who: row.who,
        from: row.origin,
        what: row.what,
        target: row.target,
        done: row.done,
    }
}

/// A stored instant as the wire writes it.
pub(super) fn stamp(ms: i64) -> Timestamp {
    era_app::wire::stamp(era_core::units::Time(ms))
}
